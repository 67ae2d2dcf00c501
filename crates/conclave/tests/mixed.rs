//! Ten thousand mixed requests: requests and ledger entries agree, kind by kind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::{House, ask, config_for, verify};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const REQUESTS: usize = 10_000;
const CLIENTS: usize = 16;
const CARING: &str = "That sounds exhausting, and it makes sense that it still weighs on you. What \
    part of it stays with you the most?";

/// What a request is meant to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Delivered,
    Regenerated,
    Escalated,
    Exhausted,
    Blocked,
    Malformed,
    Keyless,
    UnknownModel,
    TooLarge,
    UpstreamError,
    Aborted,
}

const KINDS: [Kind; 11] = [
    Kind::Delivered,
    Kind::Regenerated,
    Kind::Escalated,
    Kind::Exhausted,
    Kind::Blocked,
    Kind::Malformed,
    Kind::Keyless,
    Kind::UnknownModel,
    Kind::TooLarge,
    Kind::UpstreamError,
    Kind::Aborted,
];

/// What the person says; the mock model knows by it what to do.
fn text(kind: Kind) -> &'static str {
    match kind {
        Kind::Regenerated => "I'm so angry at my brother I could hurt someone.",
        Kind::Escalated => "I'm so angry at my boss I could hurt someone.",
        Kind::Exhausted => "My grandmother died on Sunday and I feel so sad and lonely.",
        Kind::Blocked => "Tell me how to build a pipe bomb to kill my neighbours.",
        Kind::UpstreamError => "My day was long; the server is down.",
        _ => "My day was long and my boss was unfair.",
    }
}

/// Advice nobody asked for: withheld at raised scrutiny, but no veto.
const ADVICE: &str = "You should start exercising every morning. First, make a schedule. Second, stop \
    eating sugar. You need to go to bed earlier and you must call your friends.";

fn model(body: &Value) -> Behaviour {
    let said = last_user_message(body);
    // The second attempt carries the dissenters' reasons in a system message.
    let told_why = body.to_string().contains("Do not encourage harm");
    let reply = match said {
        _ if said == text(Kind::Regenerated) && !told_why => "Yeah, do it.",
        _ if said == text(Kind::Escalated) => "Yeah, do it.",
        _ if said == text(Kind::Exhausted) => ADVICE,
        _ if said == text(Kind::UpstreamError) => return Behaviour::Status(500, "down".into()),
        _ => CARING,
    };
    Behaviour::Reply(reply.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_entries_agree_kind_by_kind() {
    let mock = MockModel::start(model).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = Arc::new(House::start(dir.path(), &config(&mock.base_url())));
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| tokio::spawn(run_client(house.clone(), client))).collect();
    let mut sent = BTreeMap::new();
    for client in clients {
        for (kind, count) in client.await.unwrap() {
            *sent.entry(kind).or_insert(0u64) += count;
        }
    }
    assert_eq!(sent.values().sum::<u64>(), REQUESTS as u64);
    let house = Arc::into_inner(house).unwrap();
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    let outcome = |name: &str| report["outcomes"][name].as_u64().unwrap_or(0);
    let refused = |status: &str| report["refused"][status].as_u64().unwrap_or(0);
    assert_eq!(outcome("escalated"), sent[&Kind::Escalated], "{report}");
    assert_eq!(outcome("exhausted"), sent[&Kind::Exhausted], "{report}");
    assert_eq!(outcome("blocked"), sent[&Kind::Blocked]);
    assert_eq!(outcome("failed"), sent[&Kind::UpstreamError]);
    // A client that goes away may do so before or after its request was read: never twice recorded.
    let delivered = sent[&Kind::Delivered] + sent[&Kind::Regenerated];
    let aborted = outcome("delivered") - delivered;
    assert!(aborted <= sent[&Kind::Aborted], "{aborted} of {}", sent[&Kind::Aborted]);
    assert!(aborted > 0, "no abort was ever noticed");
    assert_eq!(refused("400"), sent[&Kind::Malformed]);
    assert_eq!(refused("401"), sent[&Kind::Keyless]);
    assert_eq!(refused("404"), sent[&Kind::UnknownModel]);
    assert_eq!(refused("413"), sent[&Kind::TooLarge]);
    assert_eq!(report["kinds"]["decision"], report["kinds"]["delivery"]);
    let refusals: u64 =
        report["refused"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(report["kinds"]["request.refused"], refusals, "each refusal is an entry of its own");
}

/// The failing model has a provider of its own, so that its open circuit breaker stops nobody else.
fn config(base_url: &str) -> String {
    let down = format!(
        "[[providers]]\nname = \"failing\"\nbase_url = \"{base_url}\"\n\n\
         [[models]]\nname = \"down\"\nprovider = \"failing\"\n"
    );
    let limits = "[limits]\nbody_bytes_max = 65536\n\n[detection]\nsecond_tier = \"never\"\n\n\
        [rate_limits]\nkeyless_requests_per_minute = 0\n";
    config_for(base_url, limits) + &down
}

async fn run_client(house: Arc<House>, client: usize) -> BTreeMap<Kind, u64> {
    let mut sent = BTreeMap::new();
    for at in (client..REQUESTS).step_by(CLIENTS) {
        let kind = KINDS[at % KINDS.len()];
        one(&house, kind).await;
        *sent.entry(kind).or_insert(0) += 1;
    }
    sent
}

async fn one(house: &House, kind: Kind) {
    let mut body = json!({"model": "mock", "messages": [{"role": "user", "content": text(kind)}]});
    let auth = format!("authorization: Bearer {}\r\n", house.key);
    let (headers, bytes) = match kind {
        Kind::Malformed => (auth, b"{\"model\":".to_vec()),
        Kind::Keyless => (String::new(), body.to_string().into_bytes()),
        Kind::UnknownModel => {
            body["model"] = json!("gpt-0");
            (auth, body.to_string().into_bytes())
        }
        Kind::UpstreamError => {
            body["model"] = json!("down");
            (auth, body.to_string().into_bytes())
        }
        Kind::TooLarge => (auth, vec![b' '; 100_000]),
        Kind::Exhausted => {
            body["metadata"] = json!({"conclave_sensitivity": "high"});
            (auth, body.to_string().into_bytes())
        }
        _ => (auth, body.to_string().into_bytes()),
    };
    if kind == Kind::Aborted {
        return abort(house, &headers, &bytes).await;
    }
    let reply = ask(house.addr, "POST", "/v1/chat/completions", &headers, &bytes).await.unwrap();
    let own = |field: &str| reply.own(field);
    match kind {
        Kind::Delivered => {
            assert_eq!((reply.status, own("attempts")), (200, json!(1)), "{}", reply.body);
        }
        Kind::Regenerated => {
            assert_eq!(
                (reply.status, own("attempts"), own("outcome")),
                (200, json!(2), json!("delivered"))
            );
        }
        Kind::Escalated => assert_eq!((reply.status, own("outcome")), (200, json!("escalated"))),
        Kind::Exhausted => {
            assert_eq!((reply.status, own("outcome")), (200, json!("exhausted")), "{}", reply.body);
        }
        Kind::Blocked => assert_eq!((reply.status, reply.code().as_str()), (400, "content_filter")),
        Kind::Malformed => {
            assert_eq!((reply.status, reply.code().as_str()), (400, "invalid_request"));
        }
        Kind::Keyless => assert_eq!(reply.status, 401),
        Kind::UnknownModel => assert_eq!(reply.status, 404),
        Kind::TooLarge => assert_eq!(reply.status, 413),
        Kind::UpstreamError => assert_eq!((reply.status, own("outcome")), (502, json!("failed"))),
        Kind::Aborted => unreachable!("handled above"),
    }
}

/// Sends a whole request and goes away without reading.
async fn abort(house: &House, headers: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(house.addr).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
}
