//! The shapes clients send and get, a folder or a file for each interface. Requests are read into one
//! [`Inquiry`] in chat form, and replies are worded through one [`Dialect`]; what every interface needs for
//! that stands here. Nothing here asks the engine anything or knows a connection.
//!
//! **Invariant:** a stream says what the whole reply says: the pieces that were sent and what
//! [`Dialect::close_stream`] adds are the delivered text, to the byte.

pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod files;
pub(crate) mod messages;
pub(crate) mod moderation;
pub(crate) mod responses;

use crate::error::{ApiError, Envelope};
use bytes::Bytes;
use conclave_core::{AuditId, Content, Message, Outcome, Part, SessionId, UserId};
use conclave_engine::{Choice, ReleasedWindow, Reply};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Where a request in chat form carries what has no place in it, such as fields of Anthropic's own; no provider is
/// sent the field itself.
pub(crate) const OWN_FIELDS: &str = "conclave";
/// How many kinds of unjudged parts are named, and how long a name may be.
const KINDS_MAX: usize = 16;
const KIND_BYTES_MAX: usize = 64;

/// A request in the one form in which it is judged and passed on, whatever interface it came by.
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

/// The request as an object.
pub(crate) fn json_object(document: Value) -> Result<Map<String, Value>, ApiError> {
    match document {
        Value::Object(mut body) => {
            // What stands there is what we put there ourselves.
            body.shift_remove(OWN_FIELDS);
            Ok(body)
        }
        _ => Err(ApiError::malformed("The request body must be a JSON object.")),
    }
}

/// The body of a request of our own, read into its type.
pub(crate) fn typed_body<T: DeserializeOwned>(document: Value) -> Result<T, ApiError> {
    serde_json::from_value(document)
        .map_err(|error| ApiError::malformed(format!("The body cannot be used: {error}.")))
}

/// The model that is asked for.
pub(crate) fn model_field(body: &Map<String, Value>) -> Result<String, ApiError> {
    text_field(body, "model")?
        .filter(|model| !model.is_empty())
        .ok_or_else(|| ApiError::invalid("model", "You must name a model."))
}

/// A string, if there is one.
pub(crate) fn text_field(
    body: &Map<String, Value>,
    name: &str,
) -> Result<Option<String>, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::invalid(name, "must be a string")),
    }
}

/// A flag; off when absent.
pub(crate) fn flag_field(body: &Map<String, Value>, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ApiError::invalid(name, "must be true or false")),
    }
}

/// Says in chat form whether the client reads events: who does waits as long as a reply keeps coming.
pub(crate) fn keep_stream(body: &mut Map<String, Value>, stream: bool) {
    if stream {
        body.insert("stream".to_owned(), Value::Bool(true));
    }
}

/// A list; empty when absent.
pub(crate) fn list_field<'a>(
    body: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a [Value], ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(ApiError::invalid(name, "must be an array")),
    }
}

/// Takes `metadata` apart: what is addressed to us goes no further.
pub(crate) fn take_metadata(
    body: &mut Map<String, Value>,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let metadata = match body.get_mut("metadata") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(ApiError::invalid("metadata", "must be an object")),
    };
    let stated = metadata.clone();
    metadata.retain(|key, _| !key.starts_with("conclave_"));
    if metadata.is_empty() {
        body.shift_remove("metadata");
    }
    Ok(Some(stated))
}

/// The person: `safety_identifier`, else `user`; nobody when both are absent.
pub(crate) fn user_field(body: &Map<String, Value>) -> Result<Option<UserId>, ApiError> {
    for field in ["safety_identifier", "user"] {
        match body.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() => {}
            Some(Value::String(name)) => {
                return UserId::new(name.as_str())
                    .map(Some)
                    .map_err(|error| ApiError::invalid(field, error.to_string()));
            }
            Some(_) => return Err(ApiError::invalid(field, "must be a string")),
        }
    }
    Ok(None)
}

/// What is known of a reply before it is decided.
#[derive(Clone, Debug)]
pub(crate) struct ReplyHead {
    /// The decision it will belong to.
    pub id: AuditId,
    /// When the turn began, in seconds since the Unix epoch.
    pub created_s: u64,
    /// The model asked for.
    pub model: String,
}

impl ReplyHead {
    /// The head of a decided reply.
    pub(crate) fn of_reply(reply: &Reply) -> Self {
        let decision = &*reply.decision;
        Self {
            id: decision.id,
            created_s: decision.timestamp_ms / 1_000,
            model: decision.model.clone(),
        }
    }

    /// The head of a reply of which something was released.
    pub(crate) fn of_window(first: &ReleasedWindow, model: String) -> Self {
        Self { id: first.id, created_s: first.timestamp_ms / 1_000, model }
    }

    /// The id clients see; made of the audit id, so that either finds the other.
    pub(crate) fn visible_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.id.0.simple())
    }
}

/// One interface's way to put a reply.
pub(crate) trait Dialect: Send {
    fn whole_reply(&self, reply: &Reply) -> Value;
    /// What a stream begins with.
    fn open_stream(&mut self, head: &ReplyHead) -> Vec<Bytes>;
    /// The next piece of the first choice's text.
    fn stream_piece(&mut self, text: &str) -> Vec<Bytes>;
    /// What has not been sent of the reply, and the end of the stream.
    fn close_stream(&mut self, reply: &Reply) -> Vec<Bytes>;
    /// The end of a stream that began and cannot be finished.
    fn break_stream(&mut self, error: &ApiError) -> Vec<Bytes>;
    /// The shape of errors.
    fn envelope(&self) -> Envelope {
        Envelope::OpenAi
    }
}

/// Why a choice ends. One that no model answered must not look like one with nothing to say.
pub(crate) fn finish_reason(choice: &Choice) -> &'static str {
    match choice.outcome {
        Outcome::Failed => "content_filter",
        _ => choice.delivered.finish.as_str(),
    }
}

/// An event without a name.
pub(crate) fn data_event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

/// An event with the name that its `type` says.
pub(crate) fn named_event(value: &Value) -> Bytes {
    let name = value.get("type").and_then(Value::as_str).unwrap_or("message");
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// What of a text has not been sent. A text that does not go on from what was sent is given whole:
/// rather twice than lost.
pub(crate) fn unsent_text(text: &str, sent: usize) -> &str {
    text.get(sent..).unwrap_or(text)
}

/// The value of the `conclave` key.
pub(crate) fn own_fields(reply: &Reply) -> Value {
    let decision = &*reply.decision;
    let named = decision.input.named_categories();
    let categories: Vec<_> = named.map(|one| one.category.as_str()).collect();
    let mut fields = json!({
        "audit_id": decision.id.to_string(),
        "outcome": decision.outcome.as_str(),
        "action": decision.action.as_str(),
        "verified": decision.outcome.is_verified(),
        "safety_score": decision.safety_score_e4().map(fraction_of),
        "attempts": decision.attempts(),
        "categories": categories,
        "scrutiny": decision.scrutiny.as_str(),
        "directive": decision.directive.map(|directive| directive.to_string()),
        "receipt_url": format!("/v1/decisions/{}/receipt", decision.id),
        "leaf_hash": reply.leaf_hash.map(hex::encode),
        "cost_usd": decision.cost.dollars(),
        "unjudged": unjudged_kinds(&decision.conversation),
    });
    if let Some(model) = &decision.terms.downgraded_from {
        fields["downgraded_from"] = model.as_str().into();
    }
    if let Some(review) = &reply.review_id {
        fields["review_id"] = review.as_str().into();
    }
    if let Some(url) = &reply.why_url {
        fields["why_url"] = url.as_str().into();
    }
    fields
}

/// The kinds of parts that were passed on without being judged: images, sound, files.
pub(crate) fn unjudged_kinds(conversation: &[Message]) -> Vec<&str> {
    let parts = conversation.iter().flat_map(|message| match &message.content {
        Content::Parts(parts) => parts.as_slice(),
        Content::Text(_) => &[],
    });
    let mut kinds: Vec<&str> = Vec::new();
    for part in parts {
        if let Part::Unjudged { kind } = part
            && kinds.len() < KINDS_MAX
            && !kinds.contains(&kind.as_str())
        {
            kinds.push(&kind[..kind.floor_char_boundary(KIND_BYTES_MAX)]);
        }
    }
    kinds
}

/// Ten-thousandths as a number within 0..=1.
pub(crate) fn fraction_of(e4: u16) -> f64 {
    f64::from(e4) / 1e4
}

/// The time Conclave added to the model's.
pub(crate) fn overhead_of(reply: &Reply) -> Duration {
    reply.decision.latency.saturating_sub(reply.decision.model_time)
}

/// Adds the `x-conclave-*` headers.
pub(crate) fn add_own_headers(headers: &mut HeaderMap, reply: &Reply) {
    let decision = &*reply.decision;
    let overhead_ms = overhead_of(reply).as_secs_f64() * 1e3;
    let mut add = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    add("x-conclave-audit-id", decision.id.to_string());
    add("x-conclave-outcome", decision.outcome.as_str().to_owned());
    if let Some(hash) = reply.leaf_hash {
        add("x-conclave-leaf", hex::encode(hash));
    }
    add("x-conclave-overhead-duration-ms", format!("{overhead_ms:.3}"));
    add("x-conclave-response-cost", format!("{:.6}", decision.cost.dollars()));
    if let Some(model) = &decision.terms.downgraded_from {
        add("x-conclave-downgraded-from", model.clone());
    }
    let looked = decision.guards.iter().map(|guard| guard.as_str());
    let panel = decision.choices.iter().any(|choice| choice.verdict.is_some()).then_some("panel");
    let names: Vec<_> = looked.chain(panel).collect();
    add("x-conclave-applied-guardrails", names.join(","));
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
