//! How an interface words what was decided: in one piece, or as events.
//!
//! **Invariant:** a stream says what the whole reply says: the pieces that were sent and what
//! [`Dialect::closing`] adds are the delivered text, to the byte.

use crate::error::{ApiError, Envelope};
use bytes::Bytes;
use conclave_core::{AuditId, Outcome};
use conclave_engine::{Choice, ReleasedWindow, Reply};
use serde_json::Value;

/// What is known of a reply before it is decided.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The decision it will belong to.
    pub id: AuditId,
    /// When the turn began, in seconds since the Unix epoch.
    pub created_s: u64,
    /// The model asked for.
    pub model: String,
}

impl Head {
    /// The head of a decided reply.
    pub(crate) fn of(reply: &Reply) -> Self {
        let decision = &*reply.decision;
        Self {
            id: decision.id,
            created_s: decision.timestamp_ms / 1_000,
            model: decision.model.clone(),
        }
    }

    /// The head of a reply of which something was released.
    pub(crate) fn released(first: &ReleasedWindow, model: String) -> Self {
        Self { id: first.id, created_s: first.timestamp_ms / 1_000, model }
    }

    /// The id clients see; made of the audit id, so that either finds the other.
    pub(crate) fn visible_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.id.0.simple())
    }
}

/// One interface's way to put a reply.
pub(crate) trait Dialect: Send {
    /// The whole reply.
    fn whole(&self, reply: &Reply) -> Value;
    /// What a stream begins with.
    fn opening(&mut self, head: &Head) -> Vec<Bytes>;
    /// The next piece of the first choice's text.
    fn piece(&mut self, text: &str) -> Vec<Bytes>;
    /// What has not been sent of the reply, and the end of the stream.
    fn closing(&mut self, reply: &Reply) -> Vec<Bytes>;
    /// The end of a stream that began and cannot be finished.
    fn broken(&mut self, error: &ApiError) -> Vec<Bytes>;
    /// The shape of errors.
    fn envelope(&self) -> Envelope {
        Envelope::OpenAi
    }
}

/// Why a choice ends. One that no model answered must not look like one with nothing to say.
pub(crate) fn finish(choice: &Choice) -> &'static str {
    match choice.outcome {
        Outcome::Failed => "content_filter",
        _ => choice.delivered.finish.as_str(),
    }
}

/// An event without a name.
pub(crate) fn data(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

/// An event with the name that its `type` says.
pub(crate) fn named(value: &Value) -> Bytes {
    let name = value.get("type").and_then(Value::as_str).unwrap_or("message");
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// What of a text has not been sent. A text that does not go on from what was sent is given whole:
/// rather twice than lost.
pub(crate) fn unsent(text: &str, sent: usize) -> &str {
    text.get(sent..).unwrap_or(text)
}
