//! What the tests of this crate ask.

use conclave_core::{Message, Role, Score};
use conclave_engine::ModelRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A first request in which a person says this.
pub(crate) fn request_saying(text: &str) -> ModelRequest {
    request_with(
        &json!({"model": "visible", "messages": [{"role": "user", "content": text}]}),
        &[Message::text(Role::User, text)],
    )
}

/// A first request with this body and conversation.
pub(crate) fn request_with(body: &Value, conversation: &[Message]) -> ModelRequest {
    ModelRequest {
        body: Arc::new(body.as_object().cloned().unwrap_or_default()),
        conversation: conversation.into(),
        guidance: None,
        temperature: None,
        field: Arc::default(),
        crisis: Score::ZERO,
        reasons: Vec::new(),
        attempt: 0,
        seed: 1,
        timeout: Duration::from_secs(5),
        pause: Duration::from_secs(5),
    }
}
