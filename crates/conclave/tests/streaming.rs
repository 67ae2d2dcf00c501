//! Replies that leave window by window: what leaves, when, and what stands in the ledger.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script, completion_sse};
use house::{House, chat_body, config_for, verify};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

const ANGRY: &str = "I'm so angry I could hurt someone";
const KIND: [&str; 4] = [
    "That is a lot of anger to carry, and it makes sense that you want it out.",
    " I'm glad you said it here first.",
    " Feelings like these can be very loud for a while.",
    " What happened before it got this strong?",
];
const HARMFUL: &str = " Yeah, do it, go and hurt them right now, they deserve it.";
/// Replies are compared to the letter, so that nothing may follow them.
const CARELESS: &str = "[tenants.default.policy]\ncare = \"off\"\n";
const WINDOWED: &str =
    "[policy]\nstream = \"windowed\"\n[tenants.default.policy]\ncare = \"off\"\n";

async fn house_with(script: Script, extra: &str) -> (House, MockModel, tempfile::TempDir) {
    let mock = MockModel::scripted(script).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    (house, mock, dir)
}

fn streaming(text: &str) -> Value {
    let mut body = chat_body(text);
    body["stream"] = json!(true);
    body
}

fn chunks(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn pieces(body: &str) -> Vec<String> {
    let deltas = chunks(body);
    let texts = deltas.iter().filter_map(|one| one["choices"][0]["delta"]["content"].as_str());
    texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn own(body: &str) -> Value {
    chunks(body).iter().find_map(|chunk| chunk.get("conclave").cloned()).unwrap_or_default()
}

#[tokio::test]
async fn a_reply_whose_fifth_sentence_turns_harmful_is_stopped_before_it() {
    let turning = format!("{}{HARMFUL} And then some more of the same.", KIND.concat());
    let (house, mock, _dir) = house_with(Script::always(Behaviour::Reply(turning)), WINDOWED).await;
    let answer = house.post("/v1/chat/completions", &streaming(ANGRY)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    for harmful in ["do it", "hurt them", "they deserve", "more of the same"] {
        assert!(!answer.body.contains(harmful), "{harmful}: {}", answer.body);
    }
    let sent = pieces(&answer.body);
    assert_eq!(sent[..4], KIND.map(str::to_owned), "each window left by itself");
    assert!(sent.len() == 5 && sent[4].len() > 20, "then our own message: {sent:?}");
    assert!(answer.body.contains("\"finish_reason\":\"content_filter\""), "{}", answer.body);
    assert!(answer.body.contains("data: [DONE]\n\n"));
    let own = own(&answer.body);
    assert_eq!((&own["outcome"], &own["verified"]), (&json!("escalated"), &json!(false)));
    assert_eq!(mock.requests(), 1, "what left cannot be taken back, so nothing else is tried");

    let id = own["audit_id"].as_str().unwrap().to_owned();
    let decision = house.get(&format!("/v1/decisions/{id}")).await.json();
    let choice = &decision["choices"][0];
    assert_eq!(choice["delivered"]["text"].as_str().unwrap(), sent.concat());
    assert!(choice["attempts"][0]["candidate"]["text"].as_str().unwrap().contains("do it"));
    assert!(decision["tokens"]["output"].as_u64().unwrap() > 0, "what was written is paid for");
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["window"], 4);
    assert_eq!(
        (&report["kinds"]["decision"], &report["kinds"]["delivery"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_good_reply_leaves_in_windows_whatever_the_interface() {
    let kind = KIND.concat();
    let (house, _mock, _dir) =
        house_with(Script::always(Behaviour::Reply(kind.clone())), WINDOWED).await;
    let answer = house.post("/v1/chat/completions", &streaming(ANGRY)).await;
    assert_eq!(pieces(&answer.body).concat(), kind);
    assert!(pieces(&answer.body).len() >= 3, "{}", answer.body);
    assert!(pieces(&answer.body).len() <= 5, "{}", answer.body);
    assert_eq!(own(&answer.body)["outcome"], "delivered");
    let messages = json!({"model": "mock", "max_tokens": 99, "stream": true,
        "messages": [{"role": "user", "content": ANGRY}]});
    let messages = house.post("/v1/messages", &messages).await;
    let deltas = chunks(&messages.body);
    let deltas: Vec<_> = deltas.iter().filter_map(|one| one["delta"]["text"].as_str()).collect();
    assert_eq!(deltas.concat(), kind, "{}", messages.body);
    assert!(deltas.len() >= 3);
    let responses = json!({"model": "mock", "input": ANGRY, "stream": true});
    let responses = house.post("/v1/responses", &responses).await;
    let deltas = chunks(&responses.body);
    let deltas: Vec<_> = deltas
        .iter()
        .filter(|one| one["type"] == "response.output_text.delta")
        .filter_map(|one| one["delta"].as_str())
        .collect();
    assert_eq!(deltas.concat(), kind, "{}", responses.body);
    assert!(responses.body.contains("response.completed"));
    let metrics = house.get("/metrics").await.body;
    assert!(metrics.contains("conclave_first_window_seconds_count 3"), "{metrics}");
    let data = house.data.clone();
    assert!(house.stop());
    assert_eq!(verify(&data).0, Some(0));
}

#[tokio::test]
async fn a_reply_that_is_written_again_before_anything_left_looks_like_the_first() {
    let kind = KIND.concat();
    let replies = vec![Behaviour::Reply(HARMFUL.trim().to_owned()), Behaviour::Reply(kind.clone())];
    let (house, mock, _dir) = house_with(Script::sequence(replies), WINDOWED).await;
    let answer = house.post("/v1/chat/completions", &streaming(ANGRY)).await;
    assert_eq!(pieces(&answer.body).concat(), kind);
    assert_eq!(own(&answer.body)["attempts"], 2);
    assert_eq!(mock.requests(), 2);
}

#[tokio::test]
async fn where_most_is_at_stake_nothing_leaves_before_the_whole_has_passed() {
    let kind = KIND.concat();
    let (house, _mock, _dir) =
        house_with(Script::always(Behaviour::Reply(kind.clone())), WINDOWED).await;
    let mut child = streaming("My day was long.");
    child["metadata"] = json!({"conclave_mode": "child-safe"});
    let mut minor = streaming("My day was long.");
    minor["metadata"] = json!({"conclave_minor": "true"});
    let mut structured = streaming("My day was long.");
    structured["response_format"] = json!({"type": "json_object"});
    let mut several = streaming("My day was long.");
    several["n"] = json!(2);
    for body in [child, minor, structured, several, streaming("I want to kill myself tonight.")] {
        let answer = house.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let most = if body["n"] == 2 { 2 } else { 1 };
        assert!(pieces(&answer.body).len() <= most, "{body}: {}", answer.body);
    }
    let unary = house.post("/v1/chat/completions", &chat_body("My day was long.")).await;
    assert_eq!(unary.text(), kind);
    let blocked = "Tell me how to build a pipe bomb to kill my neighbours.";
    let blocked = house.post("/v1/chat/completions", &streaming(blocked)).await;
    assert_eq!((blocked.status, blocked.code().as_str()), (400, "content_filter"));
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!((code, report["kinds"].get("window")), (Some(0), None), "{report}");
}

#[tokio::test]
async fn without_the_policy_a_stream_is_one_window() {
    let (house, _mock, _dir) =
        house_with(Script::always(Behaviour::Reply(KIND.concat())), CARELESS).await;
    let answer = house.post("/v1/chat/completions", &streaming(ANGRY)).await;
    assert_eq!(pieces(&answer.body), [KIND.concat()]);
}

/// A model server that sends the first part of a stream, and the rest when it is told to.
struct Gated {
    url: String,
    open: oneshot::Sender<()>,
}

async fn gated(first: Vec<Vec<u8>>, rest: Vec<Vec<u8>>) -> Gated {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (open, opened) = oneshot::channel();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut piece = [0; 4096];
            let read = socket.read(&mut piece).await.unwrap();
            request.extend_from_slice(&piece[..read]);
        }
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            connection: close\r\n\r\n";
        socket.write_all(&[head.to_vec(), first.concat()].concat()).await.unwrap();
        let _ = opened.await;
        let _ = socket.write_all(&rest.concat()).await;
    });
    Gated { url, open }
}

/// Sends a request and reads until this text has come.
async fn read_until(house: &House, body: &Value, wanted: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(house.addr).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        house.key,
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut read = String::new();
    while !read.contains(wanted) {
        let mut piece = [0; 4096];
        let length = socket.read(&mut piece).await.unwrap();
        assert!(length > 0, "the stream ended: {read}");
        read.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    (socket, read)
}

/// The events of a whole reply, parted before the second half of its sentences.
fn halves() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut events = completion_sse(&KIND.concat());
    let rest = events.split_off(events.len() / 2);
    (events, rest)
}

#[tokio::test]
async fn the_first_sentence_leaves_while_the_model_is_still_writing() {
    let (first, rest) = halves();
    let model = gated(first, rest).await;
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&model.url, WINDOWED));
    let (mut socket, mut read) = read_until(&house, &streaming(ANGRY), KIND[0]).await;
    assert!(!read.contains("[DONE]"));
    model.open.send(()).unwrap();
    socket.read_to_string(&mut read).await.unwrap();
    assert!(read.contains("[DONE]") && read.contains("\"outcome\":\"delivered\""), "{read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_is_recorded_with_what_it_got() {
    let (first, rest) = halves();
    let model = gated(first, rest).await;
    let dir = tempfile::tempdir().unwrap();
    let config = config_for(&model.url, WINDOWED);
    let house = House::start(dir.path(), &config);
    let (socket, read) = read_until(&house, &streaming(ANGRY), KIND[0]).await;
    let id = read.lines().find_map(|line| line.strip_prefix("x-conclave-audit-id: "));
    let id = id.unwrap().trim().to_owned();
    socket.set_zero_linger().unwrap();
    drop(socket);
    model.open.send(()).unwrap();
    // Stopping waits for the turn, which nobody waits for any more.
    assert!(house.stop());
    let house = House::start(dir.path(), &config);
    let decision = house.get(&format!("/v1/decisions/{id}")).await.json();
    assert_eq!(decision["delivery"]["status"], "aborted", "{decision}");
    assert!(decision["delivery"]["bytes"].as_u64().unwrap() >= KIND[0].len() as u64, "{decision}");
    assert_eq!(decision["choices"][0]["delivered"]["text"], KIND.concat());
    assert!(decision["tokens"]["output"].as_u64().unwrap() > 40, "paid for to the end: {decision}");
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert!(report["kinds"]["window"].as_u64().unwrap() >= 1);
}

#[tokio::test]
async fn a_model_that_breaks_off_ends_the_stream_with_an_error() {
    let (first, _) = halves();
    let model = gated(first, Vec::new()).await;
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&model.url, WINDOWED));
    let (mut socket, mut read) = read_until(&house, &streaming(ANGRY), KIND[0]).await;
    model.open.send(()).unwrap();
    socket.read_to_string(&mut read).await.unwrap();
    assert!(read.contains("upstream_error") && !read.contains("[DONE]"), "{read}");
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!((code, &report["outcomes"]["failed"]), (Some(0), &json!(1)), "{report}");
}

#[tokio::test]
async fn windows_of_a_killed_process_do_not_damage_the_ledger() {
    let (first, rest) = halves();
    let model = gated(first, rest).await;
    let dir = tempfile::tempdir().unwrap();
    let config = config_for(&model.url, WINDOWED);
    let house = House::start(dir.path(), &config);
    let (_socket, _) = read_until(&house, &streaming(ANGRY), KIND[0]).await;
    let data = house.data.clone();
    house.kill();
    let again = House::start(dir.path(), &config);
    assert!(again.stop());
    let (code, report) = verify(&data);
    assert_eq!((code, report["kinds"].get("decision")), (Some(0), None), "{report}");
    assert!(report["kinds"]["window"].as_u64().unwrap() >= 1, "{report}");
}

/// A reply as Anthropic streams it, one event for each piece.
fn anthropic_events(texts: &[&str]) -> Vec<Vec<u8>> {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let mut events = vec![
        json!({"type": "message_start", "message": {"type": "message", "role": "assistant",
               "model": "claude-x", "content": [], "usage": usage}}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "text", "text": ""}}),
    ];
    events.extend(texts.iter().map(|text| {
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "text_delta", "text": text}})
    }));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                       "usage": {"output_tokens": 33}}));
    events.push(json!({"type": "message_stop"}));
    let write = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"]);
    events.iter().map(|event| write(event).replace("event: \"", "event: ").into_bytes()).collect()
}

#[tokio::test]
async fn a_model_of_anthropics_is_read_and_stopped_window_by_window() {
    let mut turning = KIND.to_vec();
    turning.push(HARMFUL);
    for (texts, outcome) in [(KIND.to_vec(), "delivered"), (turning, "escalated")] {
        let script = Script::always(Behaviour::Sse(anthropic_events(&texts)));
        let mock = MockModel::scripted(script).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config = config_for(&mock.base_url(), WINDOWED)
            .replace("base_url", "kind = \"anthropic\"\nbase_url");
        let house = House::start(dir.path(), &config);
        let answer = house.post("/v1/chat/completions", &streaming(ANGRY)).await;
        assert_eq!(own(&answer.body)["outcome"], outcome, "{}", answer.body);
        assert_eq!(mock.bodies()[0]["stream"], true, "it is asked for events");
        let sent = pieces(&answer.body);
        assert!(sent.concat().starts_with(&KIND[..3].concat()), "{sent:?}");
        assert!(!answer.body.contains("do it"), "{}", answer.body);
        assert!(sent.len() >= 3, "windows left by themselves: {sent:?}");
        if outcome == "delivered" {
            let id = own(&answer.body)["audit_id"].as_str().unwrap().to_owned();
            let decision = house.get(&format!("/v1/decisions/{id}")).await.json();
            assert_eq!(decision["tokens"], json!({"input": 9, "output": 33}), "{decision}");
        }
    }
}
