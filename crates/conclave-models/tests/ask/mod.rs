//! How the tests ask.
#![allow(dead_code, reason = "each test binary uses its own part")]

use conclave_core::{Candidate, Message, Role, Score};
use conclave_engine::{Model, ModelError, ModelRequest};
use conclave_models::{ApiKey, HostedModel, ProviderConfig};
use conclave_testkit::MockModel;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Any error fails a test.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A provider at this mock, with a key.
pub fn config(mock: &MockModel) -> ProviderConfig {
    ProviderConfig {
        api_keys: vec![ApiKey::new("sk-test-0123456789")],
        upstream_model: Some("upstream".into()),
        ..ProviderConfig::new("mock", mock.base_url())
    }
}

/// A person says this.
pub fn request(text: &str) -> ModelRequest {
    let body = json!({"model": "visible", "messages": [{"role": "user", "content": text}]});
    ModelRequest {
        body: Arc::new(object(body)),
        conversation: Arc::new([Message::text(Role::User, text)]),
        guidance: None,
        temperature: None,
        field: Arc::default(),
        crisis: Score::ZERO,
        reasons: Vec::new(),
        attempt: 0,
        seed: 1,
        timeout: Duration::from_secs(10),
        pause: Duration::from_secs(10),
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

/// Asks it.
pub async fn ask(model: &HostedModel, text: &str) -> Result<Candidate, ModelError> {
    model.generate(request(text)).await
}
