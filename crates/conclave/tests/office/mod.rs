//! A house whose model says something vile to a person who asked a harmless question in Japanese, with two
//! reviewers and an application: where appeals come from.
#![allow(dead_code, reason = "each test binary uses its own part")]

use crate::house::{self, House, Reply, conclave, config_for};
use conclave_testkit::{Behaviour, MockModel};
use serde_json::{Value, json};

pub const ASKED: &str = "今日の夕飯は何がいいでしょうか。";
pub const VILE: &str = "Nobody would miss you. You should kill yourself tonight.";
pub const WORDS: &str = "夕飯のことを聞いただけです。<script>alert(1)</script>";
pub const ANSWER: &str = "お尋ねになったことに問題はなく、お答えするべきでした。";
pub const CORRECTED: &str = "温かいうどんはいかがですか。<b>卵</b>を落としても合います。";
pub const PERSON: &str = "hanako";

/// A key, or a person's token.
pub struct Pass(pub String);

impl Pass {
    /// The public part of a key.
    pub fn id(&self) -> &str {
        self.0.split('_').nth(2).unwrap()
    }
}

pub struct Office {
    pub house: House,
    pub app: Pass,
    pub aki: Pass,
    pub bo: Pass,
    _mock: MockModel,
    _dir: tempfile::TempDir,
}

/// What became of a turn.
pub struct Told {
    pub audit: String,
    pub why: String,
    pub review: String,
}

fn vile(_: &Value) -> Behaviour {
    Behaviour::Reply(VILE.to_owned())
}

fn make_key(house: &House, role: &str, tenant: &str, person: Option<&str>) -> Pass {
    let data = house.data.to_str().unwrap();
    let mut args =
        vec!["--json", "keys", "create", "--role", role, "--tenant", tenant, "--data", data];
    if let Some(person) = person {
        args.extend(["--person", person]);
    }
    let output = conclave(&args);
    let made: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    Pass(made["key"].as_str().unwrap().to_owned())
}

pub async fn office() -> Office {
    let mock = MockModel::start(vile).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = config_for(
        &mock.base_url(),
        "[reviews]\nstaffed = true\n[webhooks]\nallow_private = true\n\
         [rate_limits]\nkeyless_requests_per_minute = 0\n\
         [tenants.default.policy]\nwhy_url = true\n",
    );
    let house = House::start(dir.path(), &config);
    let app = make_key(&house, "app", "default", None);
    let aki = make_key(&house, "reviewer", "default", Some("aki"));
    let bo = make_key(&house, "reviewer", "default", Some("bo"));
    let office = Office { house, app, aki, bo, _mock: mock, _dir: dir };
    for pass in [&office.app, &office.aki, &office.bo] {
        office.known(pass).await;
    }
    office
}

impl Office {
    pub fn key(&self, role: &str, tenant: &str) -> Pass {
        make_key(&self.house, role, tenant, None)
    }

    /// New keys are known within a second.
    pub async fn known(&self, pass: &Pass) {
        for _ in 0..20_000 {
            if self.ask(pass, "GET", "/v1/protocols", &Value::Null).await.status != 401 {
                return;
            }
        }
        panic!("the key is not known");
    }

    pub async fn ask(&self, pass: &Pass, method: &str, path: &str, body: &Value) -> Reply {
        let auth = format!("authorization: Bearer {}\r\n", pass.0);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        house::ask(self.house.addr, method, path, &auth, body.as_bytes()).await.unwrap()
    }

    /// A page, without a key.
    pub async fn page(&self, path: &str) -> Reply {
        let english = "accept-language: en\r\n";
        house::ask(self.house.addr, "GET", path, english, b"").await.unwrap()
    }

    /// A form, without a key.
    pub async fn send_form(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let body: Vec<_> =
            fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let body = body.join("&");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: \
             application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n",
            self.house.addr,
            body.len()
        );
        house::raw(self.house.addr, &[head.as_bytes(), body.as_bytes()].concat()).await.unwrap()
    }

    /// The person asks, and the reply is withheld.
    pub async fn withheld(&self) -> Told {
        let asked = json!({"model": "mock", "user": PERSON,
            "messages": [{"role": "user", "content": ASKED}]});
        let reply = self.ask(&self.app, "POST", "/v1/chat/completions", &asked).await;
        assert_eq!(
            (reply.status, reply.own("outcome")),
            (200, "escalated".into()),
            "{}",
            reply.body
        );
        let own = |name: &str| {
            reply.own(name).as_str().unwrap_or_else(|| panic!("{name}: {}", reply.body)).to_owned()
        };
        Told { audit: own("audit_id"), why: own("why_url"), review: own("review_id") }
    }

    /// Claims and decides a review.
    pub async fn decide(&self, pass: &Pass, review: &str, mut ruling: Value) -> Reply {
        let path = format!("/v1/reviews/{review}");
        let claimed = self.ask(pass, "POST", &format!("{path}/claim"), &json!({})).await;
        if claimed.status != 200 {
            return claimed;
        }
        ruling["token"] = claimed.json()["claim"]["token"].clone();
        self.ask(pass, "POST", &format!("{path}/decide"), &ruling).await
    }

    /// What the ledger tells, once it tells of so many steps of appeals.
    pub fn verified(&self, steps: u64) -> Value {
        let mut reported = (0..500).map(|_| house::verify(&self.house.data));
        let is_whole = |(_, report): &(_, Value)| report["kinds"]["appeal.change"] == steps;
        let (code, report) = reported.find(is_whole).expect("every step is in the ledger");
        assert_eq!(code, Some(0), "{report}");
        report
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        use std::fmt::Write;
        write!(out, "%{byte:02X}").unwrap();
        out
    })
}
