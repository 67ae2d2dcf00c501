//! Held text is read by those who decide about it, and by no other route: every route that reads, and every
//! page, with everybody who might try it, before a decision and after each kind of decision.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;
mod village;

use conclave_gateway::ROUTES;
use conclave_testkit::{Behaviour, MockModel};
use house::{House, config_for};
use serde_json::{Value, json};
use village::{Key, ROLES, ask, key, known};

/// Stands in everything that a model proposes, and in nothing that anybody else says.
const CANARY: &str = "zanzibarfinch";
const RECIPE: &str = r#"
name = "story-titles"
title = "Suggests titles"
work = "model"
human_in_loop = true
[models]
class = "large"
[limits]
input_tokens_max = 1000
output_tokens_max = 100
[[guards]]
guard = "pii"
action = "redact"
[prompt]
user = "Job: a title. <material>{{input}}</material>"
[schema]
input = '{"type": "object"}'
output = '{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}'
"#;

/// What became of the reviews when somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Waiting,
    Approved,
    Rejected,
}

/// One thing that was held.
struct HeldItem {
    decision: String,
    review: String,
}

struct Scene {
    house: House,
    keys: Vec<(String, String)>,
    elders: [Key; 2],
    reviewer: Key,
    app: Key,
    /// The dashboard's session of the owner.
    cookie: String,
    _mock: MockModel,
    _dir: tempfile::TempDir,
}

fn proposal(body: &Value) -> Behaviour {
    if body.to_string().contains("Job: a title") {
        return Behaviour::Reply(json!({"title": format!("The {CANARY} at dawn")}).to_string());
    }
    let told = format!(
        "Here is an old story about a bird. Long ago a {CANARY} lived near a cave where a churinga \
         was kept, and it sang there every morning. Would you like to hear more?"
    );
    Behaviour::Reply(told)
}

async fn scene() -> Scene {
    let mock = MockModel::start(proposal).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let recipes = dir.path().join("recipes");
    std::fs::create_dir(&recipes).unwrap();
    std::fs::write(recipes.join("story-titles.toml"), RECIPE).unwrap();
    let extra = format!(
        "[reviews]\nstaffed = true\n[rate_limits]\nkeyless_requests_per_minute = 0\n\
         [recipes]\nlarge = \"mock\"\nprovider_regions = {{ mock = \"NZ\" }}\ndir = \"{}\"\n",
        recipes.display()
    );
    let house = House::start(dir.path(), &config_for(&mock.base_url(), &extra));
    let owner = Key { id: String::new(), secret: house.key.clone() };
    let app = key(&house, "app", "default");
    let reviewer = key(&house, "reviewer", "default");
    let elders = [key(&house, "elder", "default"), key(&house, "elder", "default")];
    let mut keys = vec![("owner".to_owned(), house.key.clone())];
    for role in ROLES {
        let stranger = key(&house, role, "default");
        known(&house, &stranger).await;
        keys.push((format!("another {role}"), stranger.secret));
    }
    for one in [&app, &reviewer, &elders[0], &elders[1]] {
        known(&house, one).await;
    }
    let seat = |one: &Key| format!("/v1/protocols/River%20People/elders/{}", one.id);
    let named = ask(&house, &owner, "PUT", &seat(&elders[0]), &json!({"person": "Ana"})).await;
    assert_eq!(named.status, 200, "{}", named.body);
    let named = ask(&house, &elders[0], "PUT", &seat(&elders[1]), &json!({"person": "Ben"})).await;
    assert_eq!(named.status, 200, "{}", named.body);
    let protocol = json!({"terms": [{"spellings": ["churinga"], "sacred": true}]});
    let laid = ask(&house, &elders[0], "PUT", "/v1/protocols/River%20People", &protocol).await;
    assert_eq!(laid.status, 200, "{}", laid.body);
    let token = ask(&house, &app, "POST", "/v1/tokens", &json!({"user": "ana"})).await.json();
    keys.push(("author".to_owned(), app.secret.clone()));
    keys.push(("end user".to_owned(), token["token"].as_str().unwrap().to_owned()));
    let cookie = sign_in(&house).await;
    Scene { house, keys, elders, reviewer, app, cookie, _mock: mock, _dir: dir }
}

/// Every cookie that a response sets, as a browser sends them back; one that it clears is gone.
fn cookie_set_by(head: &str) -> String {
    let set = head.lines().filter_map(|line| line.split_once(": "));
    let set = set.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let pairs = set.filter_map(|(_, value)| value.split(';').next());
    pairs.filter(|pair| !pair.ends_with('=')).collect::<Vec<_>>().join("; ")
}

async fn sign_in(house: &House) -> String {
    let form = house::ask(house.addr, "GET", "/login", "", b"").await.unwrap();
    let token = form.body.split("name=\"token\" value=\"").nth(1).expect("a token");
    let token = token.split('"').next().unwrap();
    let cookie = cookie_set_by(&form.head);
    let password = house.password.as_deref().unwrap();
    let body = format!("token={token}&name=owner&password={password}");
    let addr = house.addr;
    let head = format!(
        "POST /login HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncookie: {cookie}\r\n\
         origin: http://{addr}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let entered = house::raw(addr, format!("{head}{body}").as_bytes()).await.unwrap();
    assert_eq!(entered.status, 303, "{}", entered.body);
    cookie_set_by(&entered.head)
}

impl Scene {
    async fn hold_chat(&self) -> HeldItem {
        let said = json!({"model": "mock", "user": "ana", "messages": [
            {"role": "user", "content": "Can you tell me an old story about a bird?"}]});
        let held = ask(&self.house, &self.app, "POST", "/v1/chat/completions", &said).await;
        assert_eq!(held.own("outcome"), "held", "{}", held.body);
        assert!(!held.body.contains(CANARY), "{}", held.body);
        let text = |name: &str| held.own(name).as_str().unwrap().to_owned();
        HeldItem { decision: text("audit_id"), review: text("review_id") }
    }

    async fn hold_run(&self) -> HeldItem {
        let run = json!({"agent_name": "story-titles", "input": {"text": "A morning."},
            "context": {"user_id": "ana", "sensitivity_level": "low", "purpose": "study",
                "consent_scope": ["research"], "cultural_affiliations": []}});
        let path = "/v1/agents/story-titles/execute";
        let held = ask(&self.house, &self.app, "POST", path, &run).await;
        assert_eq!(held.status, 202, "{}", held.body);
        assert!(!held.body.contains(CANARY), "{}", held.body);
        let held = held.json();
        let decision = held["status_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        HeldItem { decision, review: held["review_id"].as_str().unwrap().to_owned() }
    }

    async fn decide(&self, who: &Key, item: &HeldItem, ruling: &str) {
        let path = format!("/v1/reviews/{}", item.review);
        let claimed =
            ask(&self.house, who, "POST", &format!("{path}/claim"), &json!({})).await.json();
        assert!(claimed["words"].to_string().contains(CANARY), "who decides reads: {claimed}");
        let said = json!({"token": claimed["claim"]["token"], "ruling": ruling, "notes": "so"});
        let decided = ask(&self.house, who, "POST", &format!("{path}/decide"), &said).await;
        assert_eq!(decided.status, 200, "{}", decided.body);
        assert!(!decided.body.contains(CANARY), "{}", decided.body);
    }

    /// Looks everywhere; gives back where the text can be read and may not be.
    async fn leaks(&self, item: &HeldItem, moment: Moment) -> Vec<String> {
        let mut leaks = Vec::new();
        for route in ROUTES.iter().filter(|route| route.method == "get") {
            let path = filled(route.path, item);
            for (who, secret) in &self.keys {
                let auth = format!("authorization: Bearer {secret}\r\n");
                let reply = house::ask(self.house.addr, "GET", &path, &auth, b"").await.unwrap();
                let is_open = may_read(route.path, who, moment);
                if reply.body.contains(CANARY) && !is_open {
                    leaks.push(format!("{moment:?}: {who}: {path}: {}", reply.body));
                }
            }
        }
        let pages = [
            "/".to_owned(),
            "/decisions".to_owned(),
            "/reviews".to_owned(),
            "/live".to_owned(),
            format!("/decisions/{}", item.decision),
            format!("/reviews/{}", item.review),
        ];
        for page in pages {
            let auth = format!("cookie: {}\r\n", self.cookie);
            let reply = house::ask(self.house.addr, "GET", &page, &auth, b"").await.unwrap();
            assert_eq!(reply.status, 200, "{page}: {}", reply.body);
            let is_open = moment == Moment::Approved && page.starts_with("/decisions/");
            if reply.body.contains(CANARY) && !is_open {
                leaks.push(format!("{moment:?}: page {page}: {}", reply.body));
            }
        }
        leaks
    }
}

/// The only places where somebody who does not decide may read what was held, and why.
fn may_read(route: &str, who: &str, moment: Moment) -> bool {
    let is_owner = who.ends_with("owner");
    match (route, moment) {
        // What was approved is read by whoever may read the words of the decision.
        ("/v1/decisions/{id}" | "/v1/subjects/{id}", Moment::Approved) => is_owner,
        // It is handed to its author, or to the owner.
        ("/v1/reviews/{id}/result" | "/v1/agents/runs/{id}", Moment::Approved) => {
            is_owner || who == "author"
        }
        // What was rejected is there for those who check whether that was right.
        ("/v1/decisions/{id}", Moment::Rejected) => who == "another auditor",
        _ => false,
    }
}

fn filled(path: &str, item: &HeldItem) -> String {
    let HeldItem { decision, review } = item;
    match path {
        _ if path.starts_with("/v1/responses/") => {
            path.replace("{id}", &format!("resp_{decision}"))
        }
        "/v1/agents/{name}" => "/v1/agents/story-titles".to_owned(),
        "/v1/models/{model}" => "/v1/models/mock".to_owned(),
        "/v1/users/{id}/drift" => "/v1/users/ana/drift".to_owned(),
        "/v1/subjects/{id}" => "/v1/subjects/ana".to_owned(),
        "/v1/tenants/{id}/policy" => "/v1/tenants/default/policy".to_owned(),
        "/v1/protocols/{community}" => "/v1/protocols/River%20People".to_owned(),
        "/ledger/tile/{path}" => "/ledger/tile/0/000.p/1".to_owned(),
        "/ledger/tile/entries/{path}" => "/ledger/tile/entries/000.p/1".to_owned(),
        _ if path.starts_with("/v1/reviews/") => path.replace("{id}", review),
        _ => path.replace("{id}", decision),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_text_is_read_by_nobody_who_does_not_decide() {
    let scene = scene().await;
    // What is rejected comes first: the person's export has every decision, the approved ones too.
    for (ruling, moment) in [("reject", Moment::Rejected), ("approve", Moment::Approved)] {
        let chat = scene.hold_chat().await;
        let run = scene.hold_run().await;
        if ruling == "reject" {
            for item in [&chat, &run] {
                assert_eq!(scene.leaks(item, Moment::Waiting).await, [""; 0]);
            }
        }
        let elders = if ruling == "reject" { 1 } else { 2 };
        for elder in &scene.elders[..elders] {
            scene.decide(elder, &chat, ruling).await;
        }
        scene.decide(&scene.reviewer, &run, ruling).await;
        for item in [&chat, &run] {
            assert_eq!(scene.leaks(item, moment).await, [""; 0]);
        }
        let owner = scene.house.get(&format!("/v1/decisions/{}", chat.decision)).await;
        assert_eq!(owner.body.contains(CANARY), moment == Moment::Approved, "{}", owner.body);
        let auditor = scene.keys.iter().find(|(who, _)| who == "another auditor").unwrap();
        let auth = format!("authorization: Bearer {}\r\n", auditor.1);
        let path = format!("/v1/decisions/{}", run.decision);
        let seen = house::ask(scene.house.addr, "GET", &path, &auth, b"").await.unwrap();
        assert_eq!(seen.body.contains(CANARY), moment == Moment::Rejected, "{}", seen.body);
    }
}
