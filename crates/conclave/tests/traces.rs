//! Traces, from the caller's header to a collector and to the provider.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, ask, binary, chat_body, config_for};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const SECRET_WORDS: &str = "My neighbour Ottilie bakes marzipan hedgehogs";
const REPLY: &str = "Marzipan hedgehogs sound delightful; what does Ottilie do about the spikes?";
const PARENT: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\
    tracestate: vendor=opaque\r\n";
const UNSAMPLED: &str = "traceparent: 00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n";

/// A collector that keeps the head and the body of every request, and answers with a status.
#[derive(Clone, Default)]
struct Collector {
    kept: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    async fn start(status: &'static str) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let collector = Self::default();
        let kept = collector.kept.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                let (head, body) = loop {
                    let mut piece = [0; 16 * 1024];
                    let read = stream.read(&mut piece).await.unwrap_or(0);
                    bytes.extend_from_slice(&piece[..read]);
                    if let Some(whole) = whole(&bytes) {
                        break whole;
                    }
                    assert!(read > 0, "the request ended early");
                };
                kept.lock().unwrap().push((head, serde_json::from_str(&body).unwrap()));
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (collector, addr)
    }

    fn spans(&self) -> Vec<Value> {
        let kept = self.kept.lock().unwrap();
        let bodies = kept.iter().map(|(_, body)| &body["resourceSpans"][0]);
        bodies.flat_map(|part| part["scopeSpans"][0]["spans"].as_array().unwrap().clone()).collect()
    }
}

fn whole(bytes: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    (body.len() >= length).then(|| (lower, body.to_owned()))
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

fn attribute(of: &Value, name: &str) -> Value {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == name);
    found.map(|attribute| attribute["value"].clone()).unwrap_or_default()
}

fn started(dir: &std::path::Path, mock: &MockModel, collector: SocketAddr) -> House {
    let mut program = Command::new(binary());
    program
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}"))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-secret")
        .env("OTEL_SERVICE_NAME", "talks");
    House::try_start(program, dir, &config_for(&mock.base_url(), "")).unwrap()
}

async fn chat(house: &House, headers: &str) -> house::Reply {
    let body = serde_json::json!({
        "model": "mock", "user": "ottilie@example.com",
        "messages": [{"role": "user", "content": SECRET_WORDS}],
    });
    let headers = format!("authorization: Bearer {}\r\n{headers}", house.key);
    let body = body.to_string();
    ask(house.addr, "POST", "/v1/chat/completions", &headers, body.as_bytes()).await.unwrap()
}

// The collector must go on taking spans while the program is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_is_only_read_is_not_called_a_chat() {
    let dir = tempfile::tempdir().unwrap();
    let mock = MockModel::scripted(Script::always(Behaviour::Reply(REPLY.into()))).await.unwrap();
    let (collector, addr) = Collector::start("200 OK").await;
    let house = started(dir.path(), &mock, addr);
    let read = house.post("/v1/moderations", &serde_json::json!({"input": "tea"})).await;
    assert_eq!(read.status, 200, "{}", read.body);
    assert!(house.stop(), "what is left is sent at the end");
    let spans = collector.spans();
    let [root] = named(&spans, "moderations")[..] else { panic!("one turn: {spans:#?}") };
    let name = attribute(root, "gen_ai.operation.name");
    assert_eq!(name, serde_json::json!({"stringValue": "moderations"}));
}

// The collector must go on taking spans while the program is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_one_trace_with_a_vote_an_event_and_no_words() {
    let dir = tempfile::tempdir().unwrap();
    let mock = MockModel::scripted(Script::always(Behaviour::Reply(REPLY.into()))).await.unwrap();
    let (collector, addr) = Collector::start("200 OK").await;
    let house = started(dir.path(), &mock, addr);
    let answer = chat(&house, PARENT).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, REPLY));
    assert_eq!(chat(&house, UNSAMPLED).await.status, 200);
    let key = house.key.clone();
    assert!(house.stop(), "what is left is sent at the end");

    let spans = collector.spans();
    let [root] =
        named(&spans, "chat mock").into_iter().filter(|s| s["kind"] == 2).collect::<Vec<_>>()[..]
    else {
        panic!("one turn is traced: {spans:#?}")
    };
    assert_eq!(root["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(root["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(root["traceState"], "vendor=opaque");
    for (name, value) in [
        ("gen_ai.operation.name", serde_json::json!({"stringValue": "chat"})),
        ("gen_ai.provider.name", serde_json::json!({"stringValue": "mock"})),
        ("gen_ai.request.model", serde_json::json!({"stringValue": "mock"})),
        ("conclave.outcome", serde_json::json!({"stringValue": "delivered"})),
        ("gen_ai.response.id", serde_json::json!({"stringValue": answer.own("audit_id")})),
    ] {
        assert_eq!(attribute(root, name), value, "{name}");
    }
    for name in ["preflight", "panel", "recording"] {
        let [child] = named(&spans, name)[..] else { panic!("{name}: {spans:#?}") };
        assert_eq!(child["parentSpanId"], root["spanId"], "{name}");
    }
    let [call] =
        named(&spans, "chat mock").into_iter().filter(|s| s["kind"] == 3).collect::<Vec<_>>()[..]
    else {
        panic!("one model call: {spans:#?}")
    };
    let told = mock.seen()[0].header("traceparent").unwrap().to_owned();
    let span = call["spanId"].as_str().unwrap();
    assert_eq!(told, format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-01"));
    assert_eq!(mock.seen()[0].header("tracestate"), Some("vendor=opaque"));
    // What the caller does not record is handed on as it came.
    let handed = mock.seen()[1].header("traceparent").unwrap().to_owned();
    assert_eq!(handed, "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");

    let events = named(&spans, "panel")[0]["events"].as_array().unwrap().clone();
    let verifiers: Vec<_> =
        events.iter().map(|event| attribute(event, "gen_ai.evaluation.name")).collect();
    assert!(verifiers.len() >= 6, "{events:#?}");
    assert!(verifiers.contains(&serde_json::json!({"stringValue": "crisis"})));
    for event in &events {
        assert_eq!(event["name"], "gen_ai.evaluation.result");
        assert!(attribute(event, "gen_ai.evaluation.score.label").is_object(), "{event}");
    }

    let kept = collector.kept.lock().unwrap();
    assert!(kept.iter().all(|(head, _)| head.starts_with("post /v1/traces ")));
    assert!(kept.iter().all(|(head, _)| head.contains("api-key: collector-secret")));
    let everything: String = kept.iter().map(|(_, body)| body.to_string()).collect();
    assert!(everything.contains("\"talks\""));
    for word in ["Ottilie", "ottilie", "hedgehog", "arzipan", &key, "collector-secret"] {
        assert!(!everything.contains(word), "a trace says {word:?}");
    }
}

// The collector must go on taking spans while the program is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mock = MockModel::scripted(Script::always(Behaviour::Reply(REPLY.into()))).await.unwrap();
    let (_collector, addr) = Collector::start("503 Service Unavailable").await;
    let house = started(dir.path(), &mock, addr);
    for _ in 0..5 {
        assert_eq!(chat(&house, "").await.status, 200);
    }
    let dropped = async {
        loop {
            let page = house.get("/metrics").await.body;
            let line = page.lines().find_map(|l| l.strip_prefix("conclave_spans_dropped_total "));
            if line.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0) >= 5 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), dropped).await.unwrap();
    assert!(house.log().contains("the collector does not take traces"));
    assert!(house.stop());
}

// The collector must go on taking spans while the program is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_collector_the_context_is_handed_on_unless_the_operator_says_no() {
    for (setting, expected) in [("", true), ("[telemetry]\ntell_providers = false\n", false)] {
        let dir = tempfile::tempdir().unwrap();
        let mock =
            MockModel::scripted(Script::always(Behaviour::Reply(REPLY.into()))).await.unwrap();
        let house = House::start(dir.path(), &config_for(&mock.base_url(), setting));
        let auth = format!("authorization: Bearer {}\r\n{PARENT}", house.key);
        let body = chat_body("Good morning").to_string();
        let path = "/v1/chat/completions";
        let answer = ask(house.addr, "POST", path, &auth, body.as_bytes()).await.unwrap();
        assert_eq!(answer.status, 200);
        let told = mock.seen()[0].header("traceparent").is_some();
        assert_eq!(told, expected, "{setting}");
    }
}
