//! Bad input gets a clear error in the right shape and code, and nothing is lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::{House, ask, chat_body, config_for, raw, verify};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn wrong_requests_are_refused_in_the_openai_shape() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"model\":\"{}\"}}", "x".repeat(9 * 1024 * 1024));
    let cases: Vec<(&[u8], u16, &str)> = vec![
        (b"{", 400, "invalid_request"),
        (b"", 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b"\"\xff\xfe\"", 400, "invalid_request"),
        (b"{\"model\":\"builtin\",\"messages\":[]}", 400, "invalid_request"),
        (b"{\"model\":\"builtin\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"messages\":[]}", 400, "invalid_request"),
        (b"{\"model\":\"builtin\",\"messages\":[{\"content\":\"a\"}]}", 400, "invalid_request"),
        (b"{\"model\":\"builtin\",\"messages\":[{\"role\":\"user\",\"content\":7}]}", 400, "invalid_request"),
        (b"{\"model\":\"builtin\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":\"true\"}", 400, "invalid_request"),
        (b"{\"model\":\"gpt-0\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", 404, "model_not_found"),
        (deep.as_bytes(), 400, "invalid_request"),
        (long.as_bytes(), 413, "request_too_large"),
    ];
    for (body, status, code) in &cases {
        let started = Instant::now();
        let answer = house.ask("POST", "/v1/chat/completions", body).await.unwrap();
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{shown}");
        let error = answer.json()["error"].clone();
        for field in ["message", "type", "param", "code"] {
            assert!(error.get(field).is_some(), "{shown}: {field} is missing");
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{shown}");
        assert!(answer.header("x-request-id").is_some());
    }
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["refused"], json!({"400": 10, "404": 1, "413": 1}));
}

#[tokio::test]
async fn keys_paths_and_methods_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let body = chat_body("hi").to_string();
    for headers in [
        "",
        "authorization: Bearer ck_nobody\r\n",
        "authorization: Basic x\r\n",
        "x-api-key: no\r\n",
    ] {
        let answer = ask(house.addr, "POST", "/v1/chat/completions", headers, body.as_bytes())
            .await
            .unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (401, "invalid_api_key"), "{headers}");
    }
    let by_other_header = format!("x-api-key: {}\r\n", house.key);
    let answer = ask(house.addr, "GET", "/v1/models", &by_other_header, b"").await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(house.get("/v1/nothing").await.status, 404);
    assert_eq!(house.get("/v1/chat/completions").await.status, 405);
    assert_eq!(house.get("/v1/decisions/not-an-id").await.status, 404);
    assert_eq!(house.get("/v1/decisions?limit=0").await.status, 400);
    assert_eq!(house.get("/v1/decisions?colour=red").await.status, 400);
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused_without_being_kept() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let body = vec![b' '; 100 * 1024 * 1024];
    let answer = house.ask("POST", "/v1/chat/completions", &body).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (413, "request_too_large"));
    // Without a declared length the limit holds while the body streams in.
    let mut chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n",
        house.key
    )
    .into_bytes();
    for _ in 0..160 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&vec![b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(raw(house.addr, &chunked).await.unwrap().status, 413);
    assert_eq!(house.get("/livez").await.status, 200);
}

#[tokio::test]
async fn a_broken_model_server_gives_a_clear_error_and_a_recorded_decision() {
    let faults: Vec<(&str, Behaviour, u16)> = vec![
        ("hang", Behaviour::Hang, 504),
        ("half-close", Behaviour::HalfClose, 502),
        ("hang-up", Behaviour::HangUp, 502),
        ("reset", Behaviour::Reset, 502),
        ("garbage", Behaviour::Garbage(b"\x00\x01not json".to_vec()), 502),
        ("500", Behaviour::Status(500, "sk-secret-0123456789abcdef exploded".into()), 502),
        ("empty", Behaviour::EmptyChoices, 502),
        ("null", Behaviour::NullContent, 502),
        ("html", Behaviour::Html200, 502),
        ("redirect", Behaviour::Redirect("http://169.254.169.254/".into()), 502),
        ("utf8", Behaviour::InvalidUtf8, 502),
        ("huge", Behaviour::HugeChunked(64 * 1024 * 1024), 502),
    ];
    let table: std::collections::HashMap<_, _> =
        faults.iter().map(|(name, fault, _)| ((*name).to_owned(), fault.clone())).collect();
    let mock = MockModel::start(move |body| {
        table.get(last_user_message(body)).cloned().unwrap_or(Behaviour::Reply("Fine.".into()))
    })
    .await
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let extra = "[deliberation]\nturn_deadline_ms = 1000\nattempts_max = 1\n";
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    for (name, _, status) in &faults {
        let answer = house.chat(name).await;
        assert_eq!(answer.status, *status, "{name}: {}", answer.body);
        assert!(answer.code().starts_with("upstream_"), "{name}: {}", answer.body);
        assert!(!answer.body.contains("sk-secret"), "{name}");
        assert_eq!(answer.own("outcome"), "failed", "{name}");
    }
    assert!(!house.log().contains("sk-secret"), "a secret was logged");
    assert_eq!(house.chat("hello").await.status, 200, "the gateway recovers");
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["outcomes"]["failed"], faults.len());
    assert_eq!(report["kinds"]["decision"], faults.len() + 1);
}
