//! Requests drawn from the description of the interface, right ones and wrong ones, for every operation:
//! no bug of ours answers, and every answer has the shape that is described for its status.
//!
//! The draw is seeded. `CONCLAVE_CONTRACT_ROUNDS` and `CONCLAVE_CONTRACT_SEED` ask for more, or for the same again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod contract_suite;
mod house;

use conclave_gateway::{OPENAPI, ROUTES, Route};
use contract_suite::draw::{self, Dice};
use contract_suite::schema::Page;
use house::{House, Reply};
use serde_json::Value;

const CONFIG: &str = "[reviews]\nstaffed = true\n[detection]\nsecond_tier = \"never\"\n\
                      [rate_limits]\nkeyless_requests_per_minute = 0\n";
/// How many requests each operation gets.
const ROUNDS: usize = 8;
/// Trouble that a test without models and other parties can honestly meet.
const HONEST_TROUBLE: [&str; 2] = ["guard_unavailable", "upstream_error"];

const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
];

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One request as it is sent.
struct Drawn {
    method: String,
    path: String,
    headers: String,
    body: Vec<u8>,
}

fn draw_one(page: &Page, route: Route, round: usize, dice: &mut Dice) -> Drawn {
    let Route { method, path, .. } = route;
    let operation = page.0["paths"][path][method].clone();
    let mut target = path.to_owned();
    let (mut query, mut headers) = (Vec::new(), String::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let parameter = page.resolve(parameter);
        let name = parameter["name"].as_str().unwrap();
        let drawn = match (round, parameter.get("example")) {
            (0, Some(example)) => example.clone(),
            _ => draw::value(page, &parameter["schema"], dice, 0),
        };
        let text = drawn.as_str().map_or_else(|| drawn.to_string(), str::to_owned);
        match parameter["in"].as_str().unwrap() {
            "path" => target = target.replace(&format!("{{{name}}}"), &escaped(&text)),
            "query" if dice.roll(2) == 0 => query.push(format!("{name}={}", escaped(&text))),
            "header" if dice.roll(3) == 0 && printable(&text) => {
                headers.push_str(&format!("{name}: {text}\r\n"));
            }
            _ => {}
        }
    }
    if !query.is_empty() {
        target = format!("{target}?{}", query.join("&"));
    }
    let described = &operation["requestBody"]["content"]["application/json"];
    let body = body_of(page, described, round, dice);
    let kind = if round < 4 { CONTENT_TYPES[0] } else { *dice.pick(&CONTENT_TYPES) };
    if !kind.is_empty() {
        headers.push_str(&format!("content-type: {kind}\r\n"));
    }
    Drawn { method: method.to_uppercase(), path: target, headers, body }
}

/// First what the description itself shows; then right ones, wrong in the value, wrong in the bytes.
fn body_of(page: &Page, described: &Value, round: usize, dice: &mut Dice) -> Vec<u8> {
    if described.is_null() {
        return Vec::new();
    }
    let shown = described["examples"].as_object().and_then(|all| all.values().next());
    if let (0, Some(example)) = (round, shown) {
        return example["value"].to_string().into_bytes();
    }
    let right = draw::value(page, &described["schema"], dice, 0);
    match round % 4 {
        0 | 1 => right.to_string().into_bytes(),
        2 => draw::spoiled(right, dice).to_string().into_bytes(),
        _ => draw::broken(&right.to_string(), dice),
    }
}

fn printable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

/// Percent-encoded, all of it, so that a path stays one path.
fn escaped(text: &str) -> String {
    let text = if text.is_empty() { "x" } else { text };
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

async fn send(house: &House, drawn: &Drawn) -> Reply {
    let Drawn { method, path, headers, body } = drawn;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}authorization: Bearer \
         {}\r\ncontent-length: {}\r\n\r\n",
        house.key,
        body.len()
    );
    house::raw(house.addr, &[head.as_bytes(), body].concat()).await.unwrap()
}

/// What is wrong with a reply by what is described for it.
fn fault(page: &Page, route: Route, reply: &Reply) -> Option<String> {
    let Route { method, path, .. } = route;
    if reply.status >= 500 && !HONEST_TROUBLE.contains(&reply.code().as_str()) {
        return Some(format!("a bug of ours: {}", reply.body));
    }
    let described = &page.0["paths"][path][method]["responses"][reply.status.to_string()];
    if described.is_null() {
        return Some(format!("the status is not described: {}", reply.body));
    }
    let kinds = page.resolve(described)["content"].as_object()?;
    let kind = reply.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or("").trim().to_owned();
    let Some(content) = kinds.get(&kind) else {
        return Some(format!("the content type `{kind}` is not described"));
    };
    if kind != "application/json" {
        return None;
    }
    let Ok(body) = serde_json::from_str(&reply.body) else {
        return Some(format!("no JSON: {}", reply.body));
    };
    page.fault(&content["schema"], &body, "body")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_answers_as_described_whatever_is_sent() {
    let page = Page(serde_json::from_str(OPENAPI).unwrap());
    let rounds = from_environment("CONCLAVE_CONTRACT_ROUNDS", ROUNDS as u64);
    let seed = from_environment("CONCLAVE_CONTRACT_SEED", 9);
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), CONFIG);
    let (mut faults, mut fine) = (Vec::new(), std::collections::BTreeSet::new());
    for (number, route) in ROUTES.iter().enumerate() {
        let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        for round in 0..usize::try_from(rounds).unwrap() {
            let drawn = draw_one(&page, *route, round, &mut dice);
            let reply = send(&house, &drawn).await;
            if reply.status < 300 {
                fine.insert(number);
            }
            if let Some(fault) = fault(&page, *route, &reply) {
                let body = String::from_utf8_lossy(&drawn.body);
                let body: String = body.chars().take(600).collect();
                faults.push(format!(
                    "{} {} ({} {}) round {round} -> {}: {fault}\n    sent: {body}",
                    drawn.method, drawn.path, route.method, route.path, reply.status
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    // A draw that nobody ever takes would try nothing but the first check. What has an id of ours is not found
    // by drawing, so that about half of the operations answer with more than an error.
    let refused = ROUTES.iter().enumerate().filter(|(number, _)| !fine.contains(number));
    let refused: Vec<_> = refused.map(|(_, route)| (route.method, route.path)).collect();
    assert!(fine.len() >= 30, "only {} operations answered: {refused:?}", fine.len());
    assert_eq!(house.get("/livez").await.status, 200);
    assert!(!house.log().contains("panicked"), "{}", house.log());
}

#[test]
fn the_judge_sees_what_is_wrong() {
    let page = Page(serde_json::json!({"components": {"schemas": {"A": {"type": "object",
        "required": ["a"], "properties": {"a": {"type": ["integer", "null"], "minimum": 1},
        "b": {"type": "array", "items": {"enum": ["x"]}}}, "additionalProperties": false}}}}));
    let schema = serde_json::json!({"$ref": "#/components/schemas/A"});
    let judge = |text: &str| page.fault(&schema, &serde_json::from_str(text).unwrap(), "body");
    assert_eq!(judge(r#"{"a": 1, "b": ["x"]}"#), None);
    assert_eq!(judge(r#"{"a": null}"#), None);
    for wrong in [
        r#"{}"#,
        r#"{"a": 0}"#,
        r#"{"a": "1"}"#,
        r#"{"a": 1, "b": ["y"]}"#,
        r#"{"a": 1, "c": 2}"#,
        "[]",
    ] {
        assert!(judge(wrong).is_some(), "{wrong}");
    }
}
