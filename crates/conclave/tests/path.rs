//! One turn through the whole house, as a client sees it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, chat_body, config_for, verify};
use serde_json::json;

const ANGRY: &str = "I'm so angry I could hurt someone";
const CARING: &str = "That is a lot of anger to carry, and it makes sense that you want it out. \
    I'm glad you said it here first. What happened?";

fn reply(text: &str) -> Behaviour {
    Behaviour::Reply(text.into())
}

async fn house_with(script: Script) -> (House, MockModel, tempfile::TempDir) {
    let mock = MockModel::scripted(script).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    (house, mock, dir)
}

#[tokio::test]
async fn a_harmful_first_reply_is_replaced_by_a_caring_one() {
    let script = Script::sequence(vec![reply("Yeah, do it."), reply(CARING)]);
    let (house, mock, _dir) = house_with(script).await;
    let answer = house.chat(ANGRY).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.text().starts_with(CARING), "{}", answer.body);
    assert_eq!(answer.own("attempts"), 2);
    assert_eq!(answer.own("outcome"), "delivered");
    assert_eq!(answer.own("verified"), true);
    assert_eq!(answer.own("leaf_hash").as_str().unwrap().len(), 64);
    assert_eq!(
        answer.header("x-conclave-audit-id"),
        answer.own("audit_id").as_str().map(Into::into)
    );
    let second = mock.bodies()[1].to_string();
    assert!(!second.contains("Yeah, do it"), "the rejected reply reached the next prompt");

    let id = answer.own("audit_id").as_str().unwrap().to_owned();
    let decision = house.get(&format!("/v1/decisions/{id}")).await.json();
    let attempts = decision["choices"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts[0]["candidate"]["text"], "Yeah, do it.");
    assert_eq!(attempts[1]["candidate"]["text"], CARING);
    for attempt in attempts {
        let agents = attempt["panels"][0]["verifying_agents"].as_array().unwrap();
        assert!(agents.len() >= 6, "every ballot is kept: {agents:?}");
    }
    let listed = house.get("/v1/decisions?limit=1").await.json();
    assert_eq!(listed["data"][0]["id"], id.as_str());

    let why = house.get(&format!("/v1/decisions/{id}/explanation")).await.json();
    assert!(why["story"].as_array().unwrap().len() >= 2, "{why}");
    assert!(!why["safety_verification"]["concerns_raised"].as_array().unwrap().is_empty());
    assert!(house.stop());
}

#[tokio::test]
async fn where_a_person_stands_can_be_asked() {
    let (house, _mock, _dir) = house_with(Script::always(reply(CARING))).await;
    let unknown = house.get("/v1/users/nobody/drift").await.json();
    assert_eq!((&unknown["state"], &unknown["messages"]), (&json!("green"), &json!(0)));
    for _ in 0..2 {
        let mut body = chat_body("My day was long.");
        body["user"] = json!("ana");
        assert_eq!(house.post("/v1/chat/completions", &body).await.status, 200);
    }
    let known = house.get("/v1/users/ana/drift").await.json();
    assert_eq!((&known["state"], &known["messages"]), (&json!("green"), &json!(2)));
    assert_eq!(known["alerts"], json!([]));
    let long = "x".repeat(2_000);
    assert_eq!(house.get(&format!("/v1/users/{long}/drift")).await.status, 400);
}

#[tokio::test]
async fn a_reply_that_is_always_harmful_is_never_delivered() {
    let (house, mock, _dir) = house_with(Script::always(reply("Yeah, do it."))).await;
    for stream in [false, true] {
        let mut body = chat_body(ANGRY);
        body["stream"] = json!(stream);
        let answer = house.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.body.contains("do it"), "{}", answer.body);
        assert!(answer.body.contains("\"outcome\":\"escalated\""), "{}", answer.body);
        assert!(answer.body.contains("\"finish_reason\":\"content_filter\""), "{}", answer.body);
        assert!(answer.body.contains("\"attempts\":3"));
    }
    assert_eq!(mock.requests(), 6);
}

#[tokio::test]
async fn structured_output_gets_its_refusal_in_the_refusal_field() {
    let (house, _mock, _dir) = house_with(Script::always(reply("Yeah, do it."))).await;
    let mut body = chat_body(ANGRY);
    body["response_format"] = json!({"type": "json_object"});
    let message =
        house.post("/v1/chat/completions", &body).await.json()["choices"][0]["message"].clone();
    assert!(message["content"].is_null());
    assert!(message["refusal"].as_str().unwrap().len() > 20);
}

#[tokio::test]
async fn the_stream_is_whole_and_verified() {
    let (house, _mock, _dir) = house_with(Script::always(reply(CARING))).await;
    let mut body = chat_body(ANGRY);
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let answer = house.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.header("content-type").unwrap(), "text/event-stream; charset=utf-8");
    let chunks: Vec<serde_json::Value> = answer
        .body
        .split("\n\n")
        .filter_map(|frame| serde_json::from_str(frame.strip_prefix("data: ")?).ok())
        .collect();
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert!(text.starts_with(CARING), "{text}");
    assert_eq!(chunks.last().unwrap()["choices"], json!([]));
    assert!(chunks.last().unwrap()["usage"]["total_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_reply_made_elsewhere_is_verified() {
    let (house, mock, _dir) = house_with(Script::always(reply(CARING))).await;
    let line = |response: &str| json!({"text": ANGRY, "response": response, "user": "ana"});
    let good = house.post("/v1/verify", &line(CARING)).await.json();
    assert_eq!(good["approved"], true, "{good}");
    let bad = house.post("/v1/verify", &line("Yeah, do it.")).await.json();
    assert_eq!(bad["approved"], false, "{bad}");
    assert_eq!(bad["action"], "escalate");
    assert!(bad["audit_id"].is_string());
    assert_eq!(mock.requests(), 0);
    assert_eq!(house.post("/v1/verify", &json!({"text": "hi"})).await.status, 400);
}

#[tokio::test]
async fn out_of_the_box_the_built_in_responder_answers() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let body =
        json!({"model": "builtin", "messages": [{"role": "user", "content": "My day was hard."}]});
    let answer = house.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.own("outcome"), "delivered");
    assert!(answer.text().len() > 10);
    let models = house.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "builtin");
    for path in ["/livez", "/readyz", "/health", "/metrics", "/openapi.json"] {
        assert_eq!(house.get(path).await.status, 200, "{path}");
    }
    assert!(
        house
            .get("/metrics")
            .await
            .body
            .contains("conclave_decisions_total{outcome=\"delivered\"} 1")
    );
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["decision"], 1);
    assert_eq!(report["kinds"]["delivery"], 1);
}

#[tokio::test]
async fn tool_calls_are_judged_and_passed_whole() {
    let call =
        Behaviour::ToolCall { name: "get_weather".into(), arguments: json!({"city": "Kyoto"}) };
    let (house, _mock, _dir) = house_with(Script::always(call)).await;
    let answer = house.chat("What is the weather in Kyoto?").await.json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["tool_calls"][0]["function"]["name"], "get_weather", "{answer}");
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    let wipe = Behaviour::ToolCall {
        name: "shell".into(),
        arguments: json!({"command": "rm -rf / --no-preserve-root"}),
    };
    let (house, _mock, _dir) = house_with(Script::always(wipe)).await;
    let answer = house.chat("Please tidy up my downloads.").await;
    assert!(!answer.body.contains("rm -rf"), "{}", answer.body);
    assert_eq!(answer.own("outcome"), "escalated");
}
