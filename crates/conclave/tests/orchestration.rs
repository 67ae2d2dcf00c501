//! Consent and regions in chat, what was used, accounts of people, and a held run whose process died:
//! through the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel};
use house::{House, Reply, conclave, config_for};
use serde_json::{Value, json};
use std::process::Command;

async fn start(extra: &str) -> (House, MockModel, tempfile::TempDir) {
    let mock = MockModel::start(|body| {
        if body.get("input").is_some() {
            return Behaviour::Json(json!({
                "object": "list", "model": "up",
                "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                "usage": {"prompt_tokens": 3, "total_tokens": 3},
            }));
        }
        Behaviour::Reply("Hello! What is on your mind today?".into())
    })
    .await
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    (house, mock, dir)
}

fn said(user: &str, text: &str) -> Value {
    json!({"model": "mock", "user": user, "messages": [{"role": "user", "content": text}]})
}

const CHAT: &str = "/v1/chat/completions";

fn told(reply: &Reply) -> (u16, String) {
    (reply.status, reply.code())
}

#[tokio::test]
async fn chat_needs_consent_and_a_withdrawal_acts_on_the_next_turn() {
    let policy = "[tenants.default.policy]\nrequire_consent_for_agents = [\"chat\"]\n";
    let (house, mock, _dir) = start(policy).await;
    let answer = house.post(CHAT, &said("ana", "My day was long.")).await;
    assert_eq!(told(&answer), (403, "consent_required".into()), "{}", answer.body);
    assert!(answer.own("audit_id").is_string(), "the refusal is a decision: {}", answer.body);
    let anthropic = json!({"model": "mock", "max_tokens": 9, "metadata": {"user_id": "ana"},
        "messages": [{"role": "user", "content": "My day was long."}]});
    let answer = house.post("/v1/messages", &anthropic).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(answer.json()["error"]["type"], "permission_error");
    let consent = json!({
        "subject": "ana", "scopes": ["chat"], "purposes": ["conversation"],
        "evidence": {"kind": "electronic", "reference": "click 9"},
    });
    let kept = house.post("/v1/consents", &consent).await;
    let id = kept.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(house.post(CHAT, &said("ana", "My day was long.")).await.status, 200);
    assert_eq!(mock.bodies().len(), 1);
    let evidence = json!({"evidence": {"kind": "verbal", "reference": "by telephone"}});
    let path = format!("/v1/consents/{id}");
    let withdrawn = house.ask("DELETE", &path, evidence.to_string().as_bytes()).await.unwrap();
    assert_eq!(withdrawn.status, 200, "{}", withdrawn.body);
    let answer = house.post(CHAT, &said("ana", "My day was long.")).await;
    assert_eq!(told(&answer), (403, "consent_withdrawn".into()), "{}", answer.body);
    let mut stream = said("ana", "My day was long.");
    stream["stream"] = json!(true);
    assert_eq!(told(&house.post(CHAT, &stream).await), (403, "consent_withdrawn".into()));
    let crisis = house.post(CHAT, &said("ana", "I want to kill myself tonight")).await;
    assert_eq!((crisis.status, crisis.own("outcome")), (200, "safe_completion".into()));
    assert_eq!(mock.bodies().len(), 1, "no model was asked without consent");
    let why =
        house.get(&format!("/v1/decisions/{}/explanation", text(&answer.own("audit_id")))).await;
    assert!(why.body.contains("taken your consent back"), "{}", why.body);
    assert!(house.stop());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

#[tokio::test]
async fn words_do_not_go_where_the_rules_forbid_it() {
    let extra = "[tenants.default.policy]\nregions = [\"DE\"]\n\
                 [recipes]\nprovider_regions = { mock = \"RU\" }\n";
    let (house, mock, _dir) = start(extra).await;
    let auth = format!("authorization: Bearer {}\r\n", house.key);
    for (country, model, expected) in [
        ("x-conclave-country: FR\r\n", "mock", 403),
        ("", "mock", 403),
        ("x-conclave-country: FR\r\n", "builtin", 200),
    ] {
        let mut body = said("ana", "My day was long.");
        body["model"] = json!(model);
        let headers = format!("{auth}{country}");
        let body = body.to_string();
        let answer = house::ask(house.addr, "POST", CHAT, &headers, body.as_bytes()).await.unwrap();
        assert_eq!(answer.status, expected, "{country} {model}: {}", answer.body);
        if expected == 403 {
            assert_eq!(answer.code(), "jurisdiction");
        }
    }
    assert!(mock.bodies().is_empty(), "nothing was sent there");
    assert!(house.stop());
}

#[tokio::test]
async fn what_was_used_is_shown_by_whatever_is_asked_for() {
    let (house, _mock, dir) = start("").await;
    for (user, words) in [("ana", "My day was long."), ("ben", "Hello."), ("ben", "Hello again.")] {
        assert_eq!(house.post(CHAT, &said(user, words)).await.status, 200);
    }
    let vectors = house.post("/v1/embeddings", &json!({"model": "mock", "input": "tea"})).await;
    assert_eq!(vectors.status, 200, "{}", vectors.body);
    assert!(vectors.own("audit_id").is_string() && vectors.own("leaf_hash").is_string());
    assert_eq!(vectors.header("x-conclave-outcome").as_deref(), Some("unjudged"));
    assert_eq!(house.post(CHAT, &json!({"model": "nobody", "messages": []})).await.status, 400);
    let by_recipe = house.get("/v1/usage?by=recipe,outcome").await.json();
    let rows = by_recipe["data"].as_array().unwrap();
    let row = |recipe: &str| {
        rows.iter().find(|row| row["recipe"] == recipe).unwrap_or_else(|| panic!("{by_recipe}"))
    };
    assert_eq!(row("chat")["requests"], 3, "{by_recipe}");
    assert_eq!(row("embeddings")["requests"], 1, "{by_recipe}");
    assert_eq!(row("embeddings")["input_tokens"], 3);
    let costs: u64 = rows.iter().map(|row| row["cost_microusd"].as_u64().unwrap()).sum();
    assert!(costs > 0);
    assert_eq!(by_recipe["cost_microusd"].as_u64(), Some(costs), "the sums are those of the rows");
    let of_ben = house.get("/v1/usage?by=day&user=ben").await.json();
    assert_eq!(of_ben["requests"], 2, "{of_ben}");
    assert_eq!(house.get("/v1/usage?user=nobody").await.status, 404);
    let by_user = house.get("/v1/usage?by=user&limit=1").await.json();
    assert_eq!(
        (by_user["has_more"].as_bool(), by_user["next_offset"].as_u64()),
        (Some(true), Some(1))
    );
    assert!(!by_user.to_string().contains("ben"), "people are shown by pseudonym");
    let by_key = house.get("/v1/usage?by=key").await.json();
    assert!(by_key["data"].as_array().unwrap().iter().any(|row| row["key"].is_string()));
    let url = format!("http://{}", house.addr);
    let args = ["usage", "--by", "model,provider", "--url", &url, "--key", &house.key];
    let printed = conclave(&args);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.starts_with("model") && printed.contains("mock"), "{printed}");
    assert!(house.stop());
    let data = dir.path().join("data");
    let checked = conclave(&["ledger", "verify", "--data", data.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

fn people(house: &House, args: &[&str]) -> Value {
    let data = house.data.to_str().unwrap();
    let url = format!("http://{}", house.addr);
    let mut all = vec!["--json", "people"];
    all.extend(args);
    all.extend(["--data", data]);
    if args[0] == "add" {
        all.extend(["--url", &url, "--key", &house.key]);
    }
    let done = conclave(&all);
    serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)))
}

#[tokio::test]
async fn accounts_are_entered_by_command_and_given_work() {
    let (house, _mock, _dir) = start("[reviews]\nstaffed = true\n").await;
    let made = people(&house, &["add", "mia", "--role", "reviewer"]);
    assert_eq!(made["password"].as_str().unwrap().len(), 20);
    people(&house, &["add", "aroha", "--role", "elder", "--community", "River People"]);
    let listed = people(&house, &["list"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["aroha", "mia", "owner"]);
    assert!(!listed.to_string().contains("hash"), "{listed}");
    // Something that no reviewer's community claims is given to the reviewer.
    let unclear = said("ana", "I'm so angry I could hurt someone");
    let policy = json!({"policy": {"regions": ["DE"]}});
    let set = house.ask("PUT", "/v1/tenants/default/policy", policy.to_string().as_bytes()).await;
    assert_eq!(set.unwrap().status, 200);
    let held = house.post(CHAT, &unclear).await;
    assert_eq!(held.own("outcome"), "held", "{}", held.body);
    let shown = house.get(&format!("/v1/reviews/{}", text(&held.own("review_id")))).await.json();
    assert_eq!(shown["assigned_to"], "person:mia", "{shown}");
    assert_eq!(people(&house, &["remove", "mia"])["removed"], true);
    assert_eq!(people(&house, &["remove", "mia"])["removed"], false);
    let data = house.data.to_str().unwrap();
    let last = conclave(&["people", "remove", "owner", "--data", data]);
    assert_eq!(last.status.code(), Some(2), "the last owner stays");
    assert!(house.stop());
}

#[tokio::test]
async fn a_person_is_promised_only_in_a_tenant_that_has_one() {
    let mock = MockModel::start(|_| Behaviour::Reply("Yeah, do it. They deserve it.".into()));
    let mock = mock.await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let staffed = config_for(&mock.base_url(), "[reviews]\nstaffed = true\n");
    let house = House::start(dir.path(), &staffed);
    assert_eq!(house.post("/v1/tenants", &json!({"id": "acme"})).await.status, 200);
    let key_of = async |tenant: &str, role: &str| {
        let order = json!({"role": role, "label": role, "tenant": tenant});
        house.post("/v1/keys", &order).await.json()
    };
    let furious = said("ana", "I'm so furious I could hurt someone tonight.").to_string();
    let escalate = async |key: &Value| {
        let auth = format!("authorization: Bearer {}\r\n", text(&key["key"]));
        let told = house::ask(house.addr, "POST", CHAT, &auth, furious.as_bytes()).await.unwrap();
        assert_eq!(told.own("outcome"), "escalated", "{}", told.body);
        told.body
    };
    let own = escalate(&key_of("default", "app").await).await;
    assert!(own.contains("person will"), "the owner looks: {own}");
    let acme = key_of("acme", "app").await;
    let unattended = escalate(&acme).await;
    assert!(!unattended.contains("person will"), "nobody of acme does: {unattended}");
    key_of("acme", "reviewer").await;
    let attended = escalate(&acme).await;
    assert!(attended.contains("person will"), "{attended}");
    assert!(house.stop());
}

#[tokio::test]
async fn a_community_whose_first_elder_has_an_account_only_can_lay_down_its_protocol() {
    let (house, _mock, _dir) = start("").await;
    people(&house, &["add", "aroha", "--role", "elder", "--community", "River People"]);
    let order = json!({"role": "elder", "label": "Aroha"});
    let key = house.post("/v1/keys", &order).await.json();
    let seat = format!("/v1/protocols/River%20People/elders/{}", text(&key["id"]));
    let person = json!({"person": "Aroha"}).to_string();
    let named = house.ask("PUT", &seat, person.as_bytes()).await.unwrap();
    assert_eq!(named.status, 200, "{}", named.body);
    let protocol = json!({"terms": [{"spellings": ["churinga"], "sacred": true}]}).to_string();
    let path = "/v1/protocols/River%20People";
    let elder = format!("authorization: Bearer {}\r\n", text(&key["key"]));
    let laid = house::ask(house.addr, "PUT", path, &elder, protocol.as_bytes()).await.unwrap();
    assert_eq!(laid.status, 200, "{}", laid.body);
    let refused = house.ask("PUT", path, protocol.as_bytes()).await.unwrap();
    assert_eq!(refused.status, 403, "nobody but its elders: {}", refused.body);
    let again = house.ask("PUT", "/v1/protocols/River%20People/elders/k9", person.as_bytes()).await;
    let again = again.unwrap();
    assert_eq!(again.status, 202, "now the elders decide: {}", again.body);
    let proposed = &again.json()["proposed"][0];
    let path = format!("/v1/reviews/{}", text(&proposed["review_id"]));
    let waits = house.get(&path).await.json();
    assert_eq!(waits["issues"][0]["code"], "elder_proposed", "{waits}");
    assert!(house.stop());
}

/// A process dies between the decision of a held run and its review: the next one opens the review, and
/// the run goes on from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_run_whose_process_died_is_put_before_people_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[reviews]\nstaffed = true\n";
    // Not the shipped program: it cannot be told to die.
    let mut dying = Command::new(env!("CARGO_BIN_EXE_conclave"));
    dying.env("CONCLAVE_DIE_AT", "run.recorded:1");
    let house = House::try_start(dying, dir.path(), config).unwrap();
    let consent = json!({
        "subject": "u", "scopes": ["support"], "purposes": ["help"],
        "evidence": {"kind": "written", "reference": "form 7"},
    });
    assert_eq!(house.post("/v1/consents", &consent).await.status, 201);
    let run = json!({
        "context": {"user_id": "u", "consent_scope": ["support"], "purpose": "help"},
        "input": {"ticket_thread": [{"author": "customer", "text": "My heating has been off for a week."}],
                  "profile_context": {}},
    });
    let path = "/v1/agents/de-escalator/execute";
    let answered = house.ask("POST", path, run.to_string().as_bytes()).await;
    assert!(answered.is_err(), "it died: {answered:?}");
    assert_eq!(house.wait(), Some(9));
    let house = House::start(dir.path(), config);
    // Whoever has just decided is given some seconds to ask by themselves.
    let mut open = Value::Null;
    for _ in 0..700 {
        open = house.get("/v1/reviews").await.json();
        if !open["data"].as_array().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(open["data"].as_array().unwrap().len(), 1, "{open}");
    let review = open["data"][0].clone();
    assert_eq!(
        (&review["kind"], &review["content_type"]),
        (&json!("draft"), &json!("recipe:de-escalator"))
    );
    let run = format!("/v1/agents/runs/{}", text(&review["audit_id"]));
    assert_eq!(house.get(&run).await.status, 202, "nothing before it is decided");
    // Nobody decides what came from their own key.
    let data = house.data.to_str().unwrap();
    let made = conclave(&["--json", "keys", "create", "--role", "reviewer", "--data", data]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let auth = format!("authorization: Bearer {}\r\n", text(&made["key"]));
    let path = format!("/v1/reviews/{}", text(&review["id"]));
    let ask = async |what: &str, body: Value| {
        let (path, body) = (format!("{path}/{what}"), body.to_string());
        house::ask(house.addr, "POST", &path, &auth, body.as_bytes()).await.unwrap()
    };
    let claimed = ask("claim", json!({})).await;
    assert_eq!(claimed.status, 200, "{}", claimed.body);
    let ruling = json!({"token": claimed.json()["claim"]["token"], "ruling": "approve"});
    let decided = ask("decide", ruling).await;
    assert_eq!(decided.status, 200, "{}", decided.body);
    let fetched = house.get(&run).await;
    assert_eq!(fetched.status, 200, "{}", fetched.body);
    assert!(fetched.json()["data"]["draft_response"].is_string(), "{}", fetched.body);
    assert!(house.stop());
}
