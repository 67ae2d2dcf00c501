//! A house with an application and two elders, as several tests use it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use crate::house::{self, House, Reply, conclave};
use serde_json::{Value, json};

const CONFIG: &str = "[reviews]\nstaffed = true\n[webhooks]\nallow_private = true\n\
    [rate_limits]\nkeyless_requests_per_minute = 0\n";
pub const ROLES: [&str; 6] = ["app", "reviewer", "elder", "admin", "auditor", "owner"];

/// A key with its id.
pub struct Key {
    pub id: String,
    pub secret: String,
}

pub fn key(house: &House, role: &str, tenant: &str) -> Key {
    let data = house.data.to_str().unwrap();
    let args = ["--json", "keys", "create", "--role", role, "--tenant", tenant, "--data", data];
    let output = conclave(&args);
    let made: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    Key { id: text(&made["record"]["id"]), secret: text(&made["key"]) }
}

pub async fn ask(house: &House, key: &Key, method: &str, path: &str, body: &Value) -> Reply {
    let auth = format!("authorization: Bearer {}\r\n", key.secret);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    house::ask(house.addr, method, path, &auth, body.as_bytes()).await.unwrap()
}

/// New keys are known within a second.
pub async fn known(house: &House, key: &Key) {
    for _ in 0..20_000 {
        if ask(house, key, "GET", "/v1/protocols", &Value::Null).await.status != 401 {
            return;
        }
    }
    panic!("the key is not known");
}

pub struct Village {
    pub house: House,
    pub owner: Key,
    pub app: Key,
    pub elders: [Key; 2],
    _dir: tempfile::TempDir,
}

/// A house with an application and two elders, who have laid down what is sacred.
pub async fn village() -> Village {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), CONFIG);
    let owner = Key { id: String::new(), secret: house.key.clone() };
    let (app, first, second) = (
        key(&house, "app", "default"),
        key(&house, "elder", "default"),
        key(&house, "elder", "default"),
    );
    for key in [&app, &first, &second] {
        known(&house, key).await;
    }
    let seat = |key: &Key| format!("/v1/protocols/River%20People/elders/{}", key.id);
    let named = ask(&house, &owner, "PUT", &seat(&first), &json!({"person": "Ana"})).await;
    assert_eq!(named.status, 200, "{}", named.body);
    let protocol = json!({"terms": [{"spellings": ["churinga"], "sacred": true}]});
    let laid = ask(&house, &first, "PUT", "/v1/protocols/River%20People", &protocol).await;
    assert_eq!(laid.status, 200, "{}", laid.body);
    let laid = ask(&house, &owner, "PUT", "/v1/protocols/River%20People", &protocol).await;
    assert_eq!(laid.status, 403, "nobody but its elders");
    let named = ask(&house, &first, "PUT", &seat(&second), &json!({"person": "Ben"})).await;
    assert_eq!(named.status, 200, "{}", named.body);
    Village { house, owner, app, elders: [first, second], _dir: dir }
}

pub fn chat(text: &str) -> Value {
    json!({"model": "builtin", "messages": [{"role": "user", "content": text}]})
}

impl Village {
    /// Something sacred is said; returns the id of its review.
    pub async fn held(&self) -> String {
        let told = chat("And then they carried the churinga to the cave.");
        let reply = ask(&self.house, &self.app, "POST", "/v1/chat/completions", &told).await;
        assert_eq!((reply.status, reply.own("outcome")), (200, "held".into()), "{}", reply.body);
        assert_eq!(reply.json()["choices"][0]["finish_reason"], "content_filter");
        reply.own("review_id").as_str().unwrap().to_owned()
    }

    pub async fn claim(&self, key: &Key, review: &str) -> Reply {
        ask(&self.house, key, "POST", &format!("/v1/reviews/{review}/claim"), &json!({})).await
    }

    pub async fn decide(&self, key: &Key, review: &str, ruling: &Value) -> Reply {
        let path = format!("/v1/reviews/{review}/decide");
        ask(&self.house, key, "POST", &path, ruling).await
    }

    pub async fn result(&self, review: &str) -> Reply {
        let path = format!("/v1/reviews/{review}/result");
        ask(&self.house, &self.app, "GET", &path, &Value::Null).await
    }
}
