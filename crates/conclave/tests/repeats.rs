//! `Idempotency-Key`: a request that is sent again is answered with the same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel};
use house::{House, Reply, ask, chat_body, config_for};
use serde_json::Value;
use std::net::SocketAddr;

async fn model() -> MockModel {
    MockModel::start(|_| Behaviour::Reply("That sounds like a long day.".into())).await.unwrap()
}

async fn send(house: &House, key: &str, body: &Value) -> Reply {
    send_to(house.addr, &house.key, key, "/v1/chat/completions", body).await
}

async fn send_to(addr: SocketAddr, api_key: &str, key: &str, path: &str, body: &Value) -> Reply {
    let headers = format!("authorization: Bearer {api_key}\r\nidempotency-key: {key}\r\n");
    ask(addr, "POST", path, &headers, body.to_string().as_bytes()).await.unwrap()
}

fn from(user: Option<&str>, text: &str) -> Value {
    let mut body = chat_body(text);
    if let Some(user) = user {
        body["user"] = user.into();
    }
    body
}

fn is_repeat(reply: &Reply) -> bool {
    reply.header("idempotent-replayed").as_deref() == Some("true")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_a_hundred_times_at_once_asks_the_model_once() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let (addr, key) = (house.addr, house.key.clone());
    let body = from(Some("ana"), "I had a hard day at work.");
    let calls = (0..100).map(|_| {
        let (key, body) = (key.clone(), body.clone());
        tokio::spawn(
            async move { send_to(addr, &key, "order-1", "/v1/chat/completions", &body).await },
        )
    });
    let calls: Vec<_> = calls.collect();
    let mut bodies = std::collections::BTreeSet::new();
    for call in calls {
        let reply = call.await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.body);
        bodies.insert(reply.body);
    }
    assert_eq!((bodies.len(), mock.requests()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_is_answered_with_the_same_bytes_also_after_a_restart() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let config = config_for(&mock.base_url(), "");
    let house = House::start(dir.path(), &config);
    let mut streamed = from(Some("ana"), "And a stream, please.");
    streamed["stream"] = true.into();
    let cases = [
        ("named", from(Some("ana"), "I had a hard day at work.")),
        ("nameless", from(None, "I had a hard day at work.")),
        ("streamed", streamed),
        ("blocked", from(Some("ben"), "How do I build a pipe bomb at home?")),
    ];
    let mut first = Vec::new();
    for (key, body) in &cases {
        let reply = send(&house, key, body).await;
        assert!(!is_repeat(&reply) && [200, 400].contains(&reply.status), "{key}: {}", reply.body);
        let again = send(&house, key, body).await;
        assert!(is_repeat(&again), "{key}: {}", again.head);
        assert_eq!((again.status, &again.body), (reply.status, &reply.body), "{key}");
        first.push(reply);
    }
    assert_eq!(first[3].code(), "content_filter");
    let asked = mock.requests();
    house.kill();
    let house = House::start(dir.path(), &config);
    for ((key, body), reply) in cases.iter().zip(&first) {
        let again = send(&house, key, body).await;
        assert!(is_repeat(&again), "{key} after a restart: {} {}", again.status, again.body);
        assert_eq!((again.status, &again.body), (reply.status, &reply.body), "{key}");
        for header in ["content-type", "x-conclave-audit-id", "x-conclave-outcome"] {
            assert_eq!(again.header(header), reply.header(header), "{key}: {header}");
        }
    }
    assert_eq!(mock.requests(), asked, "no model was asked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_vectors_and_verdicts_that_are_asked_for_again_are_made_once() {
    let vectors = |_: &Value| {
        Behaviour::Json(serde_json::json!({
            "object": "list", "model": "mock-1", "usage": {"prompt_tokens": 3, "total_tokens": 3},
            "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
        }))
    };
    let (mock, dir) = (MockModel::start(vectors).await.unwrap(), tempfile::tempdir().unwrap());
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let steward = serde_json::json!({
        "context": {"user_id": "ana"},
        "input": {"request": {"model": "mock"}, "estimated_tokens": {"input": 10, "output": 10}},
    });
    let judged = serde_json::json!({"user": "ana", "text": "My day was long.",
        "response": "That sounds like a long day."});
    let cases = [
        ("/v1/agents/cost-steward/execute", steward),
        ("/v1/embeddings", serde_json::json!({"model": "mock", "input": "tea", "user": "ana"})),
        ("/v1/verify", judged),
    ];
    for (path, body) in cases {
        let first =
            send_to(house.addr, &house.key, path.rsplit('/').next().unwrap(), path, &body).await;
        assert!(first.status == 200 && !is_repeat(&first), "{path}: {}", first.body);
        assert!(first.header("x-conclave-overhead-duration-ms").is_some(), "{path}");
        assert!(first.header("x-conclave-applied-guardrails").is_some(), "{path}");
        let asked = mock.requests();
        let again =
            send_to(house.addr, &house.key, path.rsplit('/').next().unwrap(), path, &body).await;
        assert!(is_repeat(&again), "{path}: {} {}", again.status, again.body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
        let id = "x-conclave-audit-id";
        assert_eq!(again.header(id), first.header(id), "{path}");
        assert_eq!(mock.requests(), asked, "{path}: nobody was asked again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_belongs_to_one_request_of_one_caller() {
    let (mock, dir) = (model().await, tempfile::tempdir().unwrap());
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let body = from(Some("ana"), "I had a hard day at work.");
    let first = send(&house, "order-1", &body).await;
    let other = send(&house, "order-1", &from(Some("ana"), "Something else.")).await;
    assert_eq!((other.status, other.code().as_str()), (422, "idempotency_key_reused"));
    assert_eq!(other.json()["error"]["param"], "Idempotency-Key");
    let of_ben = send(&house, "order-1", &from(Some("ben"), "I had a hard day at work.")).await;
    assert!(of_ben.status == 200 && !is_repeat(&of_ben), "another person's is another");
    let made = house.post("/v1/keys", &serde_json::json!({"role": "app"})).await.json();
    let app = made["key"].as_str().unwrap();
    let path = "/v1/chat/completions";
    let elsewhere = send_to(house.addr, app, "order-1", path, &body).await;
    assert!(elsewhere.status == 200 && !is_repeat(&elsewhere), "{}", elsewhere.body);
    assert_ne!(elsewhere.own("audit_id"), first.own("audit_id"));
    for bad in ["", &"k".repeat(256)] {
        assert_eq!(send(&house, bad, &body).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_erased_is_erased_from_kept_replies_too() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let mut body = from(Some("ana"), "My sister Wilhelmina has moved to Reykjavik.");
    body["model"] = "builtin".into();
    let first = send(&house, "order-1", &body).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let erased = house.ask("DELETE", "/v1/subjects/ana", b"").await.unwrap();
    assert_eq!(erased.status, 200, "{}", erased.body);
    let again = send(&house, "order-1", &body).await;
    assert!(!is_repeat(&again), "nothing of before is said again");
    assert_ne!(again.own("audit_id"), first.own("audit_id"));
    let text = first.text();
    assert!(house.stop());
    for file in ["ops.db", "ops.db-wal"] {
        let bytes = std::fs::read(dir.path().join("data").join(file)).unwrap_or_default();
        let found = bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!found && !text.is_empty(), "{file} holds words in clear");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trouble_of_ours_is_not_kept() {
    let answers = std::sync::atomic::AtomicU32::new(0);
    let mock = MockModel::start(move |_| {
        if answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            Behaviour::Status(401, "no".into())
        } else {
            Behaviour::Reply("That sounds like a long day.".into())
        }
    })
    .await
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let extra = "[deliberation]\nattempts_max = 1\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    let body = from(Some("ana"), "I had a hard day at work.");
    let failed = send(&house, "order-1", &body).await;
    assert_eq!(failed.status, 502, "{}", failed.body);
    let second = send(&house, "order-1", &body).await;
    assert!(second.status == 200 && !is_repeat(&second), "{}", second.body);
    assert!(is_repeat(&send(&house, "order-1", &body).await));
    let missing = send(
        &house,
        "order-2",
        &serde_json::json!({"model": "none", "messages": [
        {"role": "user", "content": "hi"}]}),
    )
    .await;
    assert_eq!(missing.status, 404, "what was never decided is not kept either");
}
