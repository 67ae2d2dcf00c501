//! What a client and a provider say to each other passes as it was said: the order of schemas, fields of an
//! interface's own, refusals, errors and odd letters.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script, last_user_message};
use house::{House, chat_body, config_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const QUICK: &str = "[detection]\nsecond_tier = \"never\"\n";
/// No sorting leaves this as it is.
const SCHEMA: &str = r#"{"type":"object","properties":{"why":{"type":"string"},"answer":{"type":"string"}},"required":["why","answer"],"additionalProperties":false}"#;

struct Scene {
    house: House,
    mock: MockModel,
    _dir: TempDir,
}

impl Scene {
    async fn begin(config: &str, behaviour: Behaviour) -> Self {
        let mock = MockModel::scripted(Script::always(behaviour)).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let house = House::start(dir.path(), &config_for(&mock.base_url(), config));
        Self { house, mock, _dir: dir }
    }

    /// The same with a provider that speaks Anthropic's interface.
    async fn anthropic(behaviour: Behaviour) -> Self {
        let mock = MockModel::scripted(Script::always(behaviour)).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "{QUICK}[[providers]]\nname = \"own\"\nkind = \"anthropic\"\nbase_url = \"{}\"\n\
             [[models]]\nname = \"mock\"\nprovider = \"own\"\n\
             input_usd_per_million = 1.0\noutput_usd_per_million = 1.0\n",
            mock.base_url()
        );
        let house = House::start(dir.path(), &config);
        Self { house, mock, _dir: dir }
    }

    fn sent(&self) -> Value {
        self.mock.bodies().pop().unwrap()
    }
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn anthropic_reply(text: &str) -> Behaviour {
    Behaviour::Json(json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }))
}

#[tokio::test]
async fn a_schema_reaches_every_kind_of_provider_in_its_order() {
    let reply = Behaviour::Reply(r#"{"why":"It is so.","answer":"Kyoto"}"#.into());
    let openai = Scene::begin(QUICK, reply).await;
    let format = json!({"type": "json_schema", "name": "n", "schema": schema()});
    let tool = json!({"type": "function", "function": {"name": "look", "parameters": schema()}});
    let mut chat = chat_body("Where is Kyoto?");
    chat["tools"] = json!([tool]);
    chat["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema()}});
    openai.house.post("/v1/chat/completions", &chat).await;
    let text = json!({"format": format});
    let responses = json!({"model": "mock", "input": "Where is Kyoto?", "text": text});
    openai.house.post("/v1/responses", &responses).await;
    let messages = json!({
        "model": "mock", "max_tokens": 50,
        "messages": [{"role": "user", "content": "Where is Kyoto?"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema()}},
    });
    openai.house.post("/v1/messages", &messages).await;
    let seen = openai.mock.bodies();
    assert!(seen.len() >= 3, "{seen:?}");
    for body in seen {
        let sent = &body["response_format"]["json_schema"]["schema"];
        assert_eq!(sent.to_string(), SCHEMA, "{body}");
    }
    let anthropic = Scene::anthropic(anthropic_reply("Kyoto is in Japan.")).await;
    anthropic.house.post("/v1/chat/completions", &chat).await;
    assert_eq!(anthropic.sent()["tools"][0]["input_schema"].to_string(), SCHEMA);
}

#[tokio::test]
async fn fields_and_betas_of_anthropics_own_reach_a_provider_of_it() {
    let scene = Scene::anthropic(anthropic_reply("Kyoto is in Japan.")).await;
    let mark = json!({"type": "ephemeral"});
    let body = json!({
        "model": "mock", "max_tokens": 50, "service_tier": "auto",
        "metadata": {"user_id": "ana"}, "output_config": {"effort": "low"},
        "system": [{"type": "text", "text": "Be kind.", "cache_control": mark}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Where is Kyoto?", "cache_control": mark}]}],
    })
    .to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         anthropic-beta: one-2025-01-01,two-2025-01-01\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        scene.house.key,
        body.len()
    );
    let answer = house::raw(scene.house.addr, head.as_bytes()).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let sent = scene.sent();
    assert_eq!(sent["service_tier"], "auto");
    assert_eq!(sent["metadata"], json!({"user_id": "ana"}));
    assert_eq!(sent["output_config"], json!({"effort": "low"}));
    assert_eq!(sent["system"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][0]["content"][0]["cache_control"], mark);
    let seen = scene.mock.seen().pop().unwrap();
    assert_eq!(seen.header("anthropic-beta"), Some("one-2025-01-01,two-2025-01-01"));
}

const REFUSAL: &str = "I can't help with that.";

#[tokio::test]
async fn a_models_refusal_stays_one_in_every_dialect() {
    let refused = json!({"role": "assistant", "content": null, "refusal": REFUSAL});
    let scene = Scene::begin(
        QUICK,
        Behaviour::Json(json!({
            "model": "m", "choices": [{"index": 0, "message": refused, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 5},
        })),
    )
    .await;
    let said = "Tell me about the weather in Kyoto, please.";
    let chat = scene.house.chat(said).await.json();
    assert_eq!(chat["choices"][0]["message"]["refusal"], REFUSAL, "{chat}");
    assert_eq!(chat["choices"][0]["message"]["content"], Value::Null);
    assert_eq!(chat["choices"][0]["finish_reason"], "stop");
    assert_eq!(chat["conclave"]["verified"], true, "it was judged like any text");
    let mut streamed = chat_body(said);
    streamed["stream"] = json!(true);
    let streamed = scene.house.post("/v1/chat/completions", &streamed).await.body;
    assert!(streamed.contains(&format!(r#""refusal":"{REFUSAL}""#)), "{streamed}");
    let responses = json!({"model": "mock", "input": said});
    let made = scene.house.post("/v1/responses", &responses).await.json();
    let part = json!({"type": "refusal", "refusal": REFUSAL});
    assert_eq!(made["output"][0]["content"][0], part, "{made}");
    let id = made["id"].as_str().unwrap();
    let again = scene.house.get(&format!("/v1/responses/{id}")).await.json();
    assert_eq!(again["output"][0]["content"][0], part, "{again}");
    let said = json!([{"role": "user", "content": said}]);
    let messages = json!({"model": "mock", "max_tokens": 50, "messages": said});
    let messages = scene.house.post("/v1/messages", &messages).await.json();
    assert_eq!(messages["stop_reason"], "refusal");
    assert_eq!(messages["content"][0]["text"], REFUSAL);
}

#[tokio::test]
async fn what_a_provider_says_of_a_request_keeps_its_status_and_code() {
    let mock = MockModel::start(|body| {
        let error = |code: &str, said: &str| {
            let error = json!({"message": said, "type": "x", "param": null, "code": code});
            json!({"error": error}).to_string()
        };
        match body["input"].as_str().unwrap_or_else(|| last_user_message(body)) {
            "too long" => Behaviour::Status(
                400,
                error("context_length_exceeded", "maximum context length, key sk-abcdef123456"),
            ),
            "wrong" => Behaviour::Status(400, error("take the knife", "no")),
            "gone" => Behaviour::Status(404, error("model_not_found", "no")),
            "large" => Behaviour::Status(413, String::new()),
            "busy" => Behaviour::RetryAfter(429, 17),
            "closed" => Behaviour::Status(401, error("invalid_api_key", "no")),
            _ => Behaviour::Status(503, String::new()),
        }
    })
    .await
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), QUICK));
    for (said, status, code) in [
        ("too long", 400, "context_length_exceeded"),
        ("wrong", 400, "upstream_invalid_request"),
        ("gone", 404, "model_not_found"),
        ("large", 413, "upstream_too_large"),
        ("busy", 429, "upstream_rate_limit"),
        ("closed", 502, "upstream_error"),
        ("down", 502, "upstream_error"),
    ] {
        let answer = house.chat(said).await;
        let got = (answer.status, answer.code());
        assert_eq!(got, (status, code.to_owned()), "{said}: {}", answer.body);
        assert!(!answer.body.contains("sk-") && !answer.body.contains("knife"), "{}", answer.body);
        let wait = (status == 429).then(|| "17".to_owned());
        assert_eq!(answer.header("retry-after"), wait, "{said}");
    }
    let vectors = json!({"model": "mock", "input": "busy"});
    let answer = house.post("/v1/embeddings", &vectors).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "upstream_rate_limit"));
    assert_eq!(answer.header("retry-after").as_deref(), Some("17"));
    let rows = house.get("/v1/decisions?limit=100").await.json();
    let failed = rows["data"].as_array().unwrap().iter().filter(|row| row["outcome"] == "failed");
    assert_eq!(failed.count(), 8, "each is recorded");
}

#[tokio::test]
async fn half_a_letter_in_a_stream_is_no_fault_of_the_provider() {
    let event = |delta: &str, finish: &str| {
        let choice =
            format!(r#"{{"index":0,"delta":{{"content":"{delta}"}},"finish_reason":{finish}}}"#);
        format!("data: {{\"choices\":[{choice}]}}\n\n").into_bytes()
    };
    let pieces = vec![
        event(r"Kyoto is a city in Japan. \ud83d", "null"),
        event("", "\"stop\""),
        b"data: [DONE]\n\n".to_vec(),
    ];
    let config = format!("{QUICK}[policy]\nstream = \"windowed\"\n");
    let scene = Scene::begin(&config, Behaviour::Sse(pieces)).await;
    let mut body = chat_body("Where is Kyoto?");
    body["stream"] = json!(true);
    let answer = scene.house.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains("Kyoto is a city in Japan."), "{}", answer.body);
    assert!(answer.body.contains("[DONE]") && !answer.body.contains("upstream_error"));
}

#[tokio::test]
async fn logprobs_pass_with_a_models_own_words_and_with_no_others() {
    let pieces = |text: &str| {
        let bytes = text.as_bytes();
        json!([{"token": text, "logprob": -0.5, "bytes": bytes, "top_logprobs": []}])
    };
    let said = "Kyoto is a city in Japan.";
    let reply = |stated: &str| {
        Behaviour::Json(json!({
            "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": said},
                "logprobs": {"content": pieces(stated), "refusal": null}}],
        }))
    };
    let mut body = chat_body("Where is Kyoto?");
    body["logprobs"] = json!(true);
    let own = Scene::begin(QUICK, reply(said)).await;
    let answer = own.house.post("/v1/chat/completions", &body).await.json();
    assert_eq!(answer["choices"][0]["logprobs"]["content"], pieces(said), "{answer}");
    let other = Scene::begin(QUICK, reply("Take the knife.")).await;
    let answer = other.house.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.json()["choices"][0]["logprobs"], Value::Null);
    assert!(!answer.body.contains("knife"), "{}", answer.body);
}

#[tokio::test]
async fn a_misspelt_name_of_ours_is_an_error_that_names_the_right_one() {
    let scene = Scene::begin(QUICK, Behaviour::Reply("Kyoto is in Japan.".into())).await;
    let mut body = chat_body("Where is Kyoto?");
    body["metadata"] = json!({"conclave_minr": "true"});
    let answer = scene.house.post("/v1/chat/completions", &body).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"));
    assert!(answer.body.contains("`conclave_minor`"), "{}", answer.body);
    assert_eq!(scene.mock.requests(), 0);
}
