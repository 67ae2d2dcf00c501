//! What every endpoint makes of its request: the one form in which it is judged and passed on.

use conclave_core::{Message, SessionId, UserId};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request, whatever interface it came by.
#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    pub model: String,
    pub conversation: Arc<[Message]>,
    /// Whether the client reads events.
    pub stream: bool,
    pub choices: u8,
    /// Whether the client expects JSON, so that a refusal must not stand in its place.
    pub structured: bool,
    pub metadata: Option<Map<String, Value>>,
    /// Who asks, where the interface has its own field for it.
    pub user: Option<UserId>,
    /// Which conversation it goes on with, where the interface says so.
    pub session: Option<SessionId>,
    /// What the endpoint wants back later.
    pub kept: Option<Value>,
    /// The request in OpenAI's chat form, less what is ours.
    pub body: Map<String, Value>,
}
