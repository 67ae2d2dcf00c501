//! How fast one may ask, and who is answered all the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel};
use house::{House, Reply, ask, chat_body, config_for, verify};
use serde_json::{Value, json};

async fn model() -> MockModel {
    MockModel::start(|_| Behaviour::Reply("That sounds like a long day.".into())).await.unwrap()
}

async fn said_by(house: &House, user: &str, text: &str) -> Reply {
    let mut body = chat_body(text);
    body["user"] = user.into();
    house.post("/v1/chat/completions", &body).await
}

fn number(reply: &Reply, header: &str) -> u64 {
    let value = reply.header(header).unwrap_or_else(|| panic!("{header}: {}", reply.head));
    value.trim_end_matches("ms").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_limit_of_a_key_are_refused_with_the_usual_headers() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let extra = "[rate_limits.per_key]\nrequests_per_minute = 4\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    let other = house.post("/v1/keys", &json!({"role": "app"})).await.json();
    let mut left = Vec::new();
    for _ in 0..3 {
        let reply = house.get("/v1/models").await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(number(&reply, "x-ratelimit-limit-requests"), 4);
        assert!(number(&reply, "x-ratelimit-reset-requests") > 0);
        left.push(number(&reply, "x-ratelimit-remaining-requests"));
    }
    assert_eq!(left, [2, 1, 0], "making a key was a request too");
    let refused = house.chat("I had a hard day at work.").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limit_exceeded"));
    assert!((1..=15).contains(&number(&refused, "retry-after")), "{}", refused.head);
    assert_eq!(number(&refused, "x-ratelimit-remaining-requests"), 0);
    assert!(refused.body.contains("4 requests a minute for this key"), "{}", refused.body);
    let listed = house.get("/v1/decisions").await;
    assert_eq!(listed.status, 429, "reading counts as well: {}", listed.body);
    let auth = format!("authorization: Bearer {}\r\n", other["key"].as_str().unwrap());
    let models = ask(house.addr, "GET", "/v1/models", &auth, b"").await.unwrap();
    assert_eq!((models.status, number(&models, "x-ratelimit-remaining-requests")), (200, 3));
    let free = ask(house.addr, "GET", "/livez", "", b"").await.unwrap();
    assert_eq!((free.status, free.header("x-ratelimit-limit-requests")), (200, None));
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!((code, &report["refused"]["429"]), (Some(0), &json!(1)), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_counts_also_what_cannot_be_read() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let extra = "[rate_limits.per_key]\nrequests_per_minute = 40\n\n\
        [rate_limits.per_user]\ntokens_per_minute = 100000\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    let left = |reply: &Reply| number(reply, "x-ratelimit-remaining-requests");
    let wrong = house.ask("POST", "/v1/chat/completions", b"{").await.unwrap();
    assert_eq!((wrong.status, left(&wrong)), (400, 39));
    let wrong = house.post("/v1/chat/completions", &json!({"model": "mock"})).await;
    assert_eq!((wrong.status, left(&wrong)), (400, 38));
    let wrong = house.post("/v1/responses", &json!({"model": "mock", "input": 7})).await;
    assert_eq!((wrong.status, left(&wrong)), (400, 37));
    let read = house.post("/v1/moderations", &json!({"input": ["one", "two", "three"]})).await;
    assert_eq!((read.status, left(&read)), (200, 34), "each text counts");
    let said = json!({"turns": [{"role": "user", "content": "Hello."}], "response": "Hello!"});
    let judged = house.post("/v1/verify", &said).await;
    assert_eq!((judged.status, left(&judged)), (200, 33), "{}", judged.body);
    assert!(number(&judged, "x-ratelimit-remaining-tokens") < 100_000, "and so do its tokens");
    let many = vec!["a text"; 32];
    assert_eq!(house.post("/v1/moderations", &json!({"input": many})).await.status, 200);
    let refused = house.post("/v1/moderations", &json!({"input": many})).await;
    assert_eq!(refused.status, 429, "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_in_crisis_is_answered_beyond_every_limit() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let extra = "[rate_limits.per_user]\nrequests_per_minute = 1\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    assert_eq!(said_by(&house, "ana", "Hello there.").await.status, 200);
    let asked = mock.requests();
    assert_eq!(said_by(&house, "ana", "And another thing.").await.status, 429);
    for stream in [false, true] {
        let mut body = chat_body("I want to kill myself tonight.");
        body["user"] = "ana".into();
        body["stream"] = stream.into();
        let reply = house.post("/v1/chat/completions", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.header("x-conclave-outcome").as_deref(), Some("safe_completion"));
        assert!(
            reply.body.contains("988") || reply.body.contains("findahelpline"),
            "{}",
            reply.body
        );
        assert!(reply.header("x-conclave-leaf").is_some(), "it is recorded");
    }
    assert_eq!(mock.requests(), asked, "no model was asked for it");
    assert_eq!(
        said_by(&house, "ben", "Hello there.").await.status,
        200,
        "others are not concerned"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_count_for_each_person_and_are_settled_with_what_was_used() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let extra = "[rate_limits.per_user]\ntokens_per_minute = 10\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    let long = "I had a hard day at work, and then the train was late and I missed the rain.";
    let first = said_by(&house, "ana", long).await;
    assert_eq!(first.status, 200, "what alone is too much passes once: {}", first.body);
    assert_eq!(number(&first, "x-ratelimit-limit-tokens"), 10);
    let second = said_by(&house, "ana", "Hello.").await;
    assert_eq!((second.status, second.code().as_str()), (429, "rate_limit_exceeded"));
    assert!(second.body.contains("10 tokens a minute for this person"), "{}", second.body);
    assert_eq!(said_by(&house, "ben", "Hello.").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_may_be_stricter_than_the_operator_and_not_laxer() {
    let dir = tempfile::tempdir().unwrap();
    let extra = "[rate_limits.per_tenant]\nrequests_per_minute = 50\n";
    let house = House::start(dir.path(), extra);
    let set = async |policy: Value| {
        let body = json!({"policy": policy}).to_string();
        house.ask("PUT", "/v1/tenants/default/policy", body.as_bytes()).await.unwrap()
    };
    let lax = json!({"rates": {"per_tenant": {"requests_per_minute": 5000}}});
    assert_eq!(set(lax).await.status, 200);
    let shown = house.get("/v1/models").await;
    assert_eq!(number(&shown, "x-ratelimit-limit-requests"), 50, "the stricter holds");
    let strict = json!({"rates": {"per_tenant": {"requests_per_minute": 7}}});
    assert_eq!(set(strict).await.status, 200);
    let shown = house.get("/v1/models").await;
    assert_eq!(number(&shown, "x-ratelimit-limit-requests"), 7);
    let wrong = set(json!({"rates": {"per_tenant": {"requests_per_minute": 0}}})).await;
    assert_eq!(wrong.status, 400, "{}", wrong.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_without_a_key_share_one_limit_and_disturb_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "[rate_limits]\nkeyless_requests_per_minute = 5\n");
    let mut seen = Vec::new();
    for number in 0..8 {
        let auth = format!("authorization: Bearer ck_live_made_up_{number}\r\n");
        let body = chat_body("hi").to_string();
        let path = "/v1/chat/completions";
        let reply = ask(house.addr, "POST", path, &auth, body.as_bytes()).await.unwrap();
        seen.push(reply.status);
    }
    assert_eq!(seen, [401, 401, 401, 401, 401, 429, 429, 429], "each with a key of its own");
    assert_eq!(house.get("/v1/models").await.status, 200, "whoever has a key does not notice");
    assert_eq!(house.get("/livez").await.status, 200);
}

#[test]
fn limits_that_would_stop_everybody_are_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in ["per_key]\nrequests_per_minute = 0", "per_user]\ntokens_per_minute = 20000000"] {
        let file = dir.path().join("conclave.toml");
        std::fs::write(&file, format!("[rate_limits.{wrong}\n")).unwrap();
        let output = house::conclave(&["config", "check", file.to_str().unwrap()]);
        assert_ne!(output.status.code(), Some(0), "{wrong}");
    }
}
