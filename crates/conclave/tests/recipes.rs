//! Recipes as a client and an operator see them: through HTTP with a mock model, and offline by command.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, conclave, config_for};
use serde_json::{Value, json};
use std::path::Path;

const RECIPES: &str =
    "[recipes]\nlarge = \"mock\"\nprovider_regions = { mock = \"NZ\" }\ndir = \"DIR\"\n";
const OWN: &str = r#"
name = "story-titles"
title = "Suggests titles"
work = "model"
human_in_loop = false
[models]
class = "large"
[limits]
input_tokens_max = 1000
output_tokens_max = 100
[[guards]]
guard = "pii"
action = "redact"
[prompt]
user = "Job: a title. <material>{{input}}</material>"
[schema]
input = '{"type": "object"}'
output = '{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}'
"#;

/// The reference example.
fn example() -> Value {
    json!({
        "agent_name": "interview-analyzer",
        "context": {
            "user_id": "user-456", "transcript_id": "transcript-789",
            "sensitivity_level": "medium", "cultural_affiliations": ["First Nations"],
            "consent_scope": ["research", "publication"], "purpose": "housing study",
        },
        "input": {
            "transcript_ids": ["transcript-789"], "focus_areas": ["housing", "employment"],
            "include_emotion_trajectory": true,
            "transcripts": [{"id": "transcript-789", "segments": [
                {"index": 0, "speaker": "Interviewer", "text": "What happened?"},
                {"index": 1, "speaker": "Storyteller", "text": "The rent went up twice and the house was cold."},
            ]}],
        },
    })
}

fn result(quote: &str) -> Behaviour {
    let citation = json!({"transcript_id": "transcript-789", "segment_index": 1, "text": quote});
    let result = json!({
        "themes": [{"theme": "housing", "support_count": 1, "exemplar_quotes": [citation]}],
        "key_quotes": [citation],
        "actionable_insights": [{"insight": "Tenants describe rising rents.", "citations": [citation]}],
    });
    Behaviour::Reply(result.to_string())
}

async fn house_with(script: Script) -> (House, MockModel, tempfile::TempDir) {
    let mock = MockModel::scripted(script).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("titles.toml"), OWN).unwrap();
    let section = RECIPES.replace("DIR", own.to_str().unwrap());
    let house = House::start(dir.path(), &config_for(&mock.base_url(), &section));
    (house, mock, dir)
}

/// Keeps what the storyteller of the example agreed to; the id of the consent.
async fn agreed(house: &House) -> String {
    let consent = json!({
        "subject": "user-456", "scopes": ["research", "publication"],
        "purposes": ["housing study"],
        "evidence": {"kind": "written", "reference": "form 7"},
    });
    let kept = house.post("/v1/consents", &consent).await;
    assert_eq!(kept.status, 201, "{}", kept.body);
    kept.json()["id"].as_str().unwrap().to_owned()
}

const EXECUTE: &str = "/v1/agents/interview-analyzer/execute";

#[tokio::test]
async fn the_reference_example_goes_through_a_mock_model() {
    let (house, mock, _dir) = house_with(Script::always(result("The rent went up twice"))).await;
    let listed = house.get("/v1/agents").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 8, "seven and one of our own");
    let consent = agreed(&house).await;
    let answer = house.post(EXECUTE, &example()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = answer.json();
    assert_eq!(body["citations"][0]["text"], "The rent went up twice");
    assert_eq!(body["metadata"]["failing_metrics"], json!([]), "{body}");
    let sent = mock.bodies()[0].clone();
    assert_eq!(sent["response_format"]["type"], "json_object");
    assert!(sent["messages"][0]["content"].as_str().unwrap().contains("Cite or refuse"));
    let id = body["metadata"]["audit_id"].as_str().unwrap();
    let again = house.get(&format!("/v1/agents/runs/{id}")).await;
    assert_eq!((again.status, &again.json()["data"]), (200, &body["data"]));
    let decision = house.get(&format!("/v1/decisions/{id}")).await.json();
    assert_eq!(decision["outcome"], "delivered", "a run is a decision like any other");
    let shown = house.get("/v1/agents/interview-analyzer").await.json();
    assert_eq!(shown["kpis"]["runs"], 1);
    assert_eq!(shown["kpis"]["figures"]["citation_coverage"], 1.0);
    assert_eq!(body["metadata"]["consent_verified"], true, "{body}");
    let taken_back = json!({"kind": "verbal", "reference": "by telephone"});
    let taken_back = json!({ "evidence": taken_back });
    let withdrawn = house
        .ask("DELETE", &format!("/v1/consents/{consent}"), taken_back.to_string().as_bytes())
        .await
        .unwrap();
    assert_eq!(withdrawn.status, 200, "{}", withdrawn.body);
    let asked = mock.bodies().len();
    let answer = house.post(EXECUTE, &example()).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(answer.json()["error"]["code"], "consent_withdrawn");
    assert_eq!(mock.bodies().len(), asked, "no model was asked");
    let again = house.get(&format!("/v1/agents/runs/{id}")).await;
    assert_eq!(again.json()["error"]["code"], "consent_withdrawn", "{}", again.body);
    assert_eq!(house.get("/v1/agents/runs/nothing").await.status, 404);
    assert_eq!(house.post("/v1/agents/fortune-teller/execute", &example()).await.status, 404);
    assert!(house.stop());
}

#[tokio::test]
async fn an_invented_quote_never_reaches_the_client() {
    let (house, _mock, _dir) = house_with(Script::always(result("I was never happier"))).await;
    agreed(&house).await;
    let answer = house.post(EXECUTE, &example()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert!(answer.json()["review_id"].is_string(), "people are asked: {}", answer.body);
    assert!(!answer.body.contains("never happier"), "{}", answer.body);
    assert!(answer.body.contains("invented_quote"), "{}", answer.body);
    assert!(house.stop());
}

#[tokio::test]
async fn without_a_scope_of_consent_no_model_is_asked() {
    let (house, mock, _dir) = house_with(Script::always(result("The rent went up twice"))).await;
    let mut request = example();
    request["context"]["consent_scope"] = json!([]);
    let answer = house.post(EXECUTE, &request).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(answer.json()["error"]["code"], "consent_required");
    assert!(mock.bodies().is_empty(), "no model was asked");
    let mut request = example();
    request["context"]["tenant_id"] = json!("somebody-else");
    assert_eq!(house.post(EXECUTE, &request).await.json()["error"]["code"], "forbidden");
    let wrong = house.post(EXECUTE, &json!({"input": {"focus_areas": 3}})).await;
    assert_eq!(wrong.json()["error"]["param"], "input.focus_areas");
    assert!(house.stop());
}

#[tokio::test]
async fn identifying_data_is_replaced_in_answers_and_logs() {
    let reply = r#"{"title": "Ask for Mara at mara@example.org"}"#;
    let (house, mock, _dir) = house_with(Script::always(Behaviour::Reply(reply.into()))).await;
    let request = json!({"input": {"story": "Call 021 555 0199 or jane@example.com."}});
    let answer = house.post("/v1/agents/story-titles/execute", &request).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["metadata"]["outcome"], "redacted");
    assert!(!answer.body.contains("mara@example.org"), "{}", answer.body);
    assert!(!mock.bodies()[0].to_string().contains("jane@example.com"), "the model saw a token");
    let log = house.log();
    assert!(!log.contains("mara@example.org") && !log.contains("jane@example.com"), "{log}");
    assert!(house.stop());
}

fn offline(dir: &Path, request: &Value) -> (bool, Value) {
    let file = dir.join("request.json");
    std::fs::write(&file, request.to_string()).unwrap();
    let data = dir.join("data");
    let args = ["recipes", "run", file.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let done = conclave(&args);
    let text = String::from_utf8_lossy(&done.stdout);
    let printed = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{done:?}"));
    (done.status.success(), printed)
}

#[tokio::test]
async fn recipes_run_offline_and_are_counted_from_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    agreed(&house).await;
    assert!(house.stop());
    let mut request = example();
    request["input"]["transcripts"][0]["segments"][1]["text"] =
        json!("The rent went up twice. Rent is all we speak of.");
    let (done, printed) = offline(dir.path(), &request);
    assert!(done, "{printed}");
    assert_eq!(printed["data"]["extractive"], true);
    let intake = json!({
        "agent_name": "consent-intake",
        "context": {"user_id": "u", "consent_scope": ["research"], "country": "NZ"},
        "input": {"raw_content": "Mara: Hello.", "content_type": "notes",
                  "provided_consent": {"written": true, "scope": ["research"]}},
    });
    let (done, printed) = offline(dir.path(), &intake);
    assert!(done, "{printed}");
    assert_eq!(printed["data"]["validation_status"], "valid");
    let steward = json!({
        "agent_name": "cost-steward",
        "input": {"request": {"model": "builtin"}, "estimated_tokens": {"input": 5, "output": 5}},
    });
    assert_eq!(offline(dir.path(), &steward).1["data"]["recommendation"], "proceed");
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let kpis = conclave(&["recipes", "kpis", "interview-analyzer", "--data", data]);
    let kpis: Value = serde_json::from_slice(&kpis.stdout).unwrap();
    assert_eq!(kpis["interview-analyzer"]["runs"], 1, "{kpis}");
    assert!(conclave(&["ledger", "verify", "--data", data]).status.success());
    let listed = conclave(&["recipes", "list"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 7);
}
