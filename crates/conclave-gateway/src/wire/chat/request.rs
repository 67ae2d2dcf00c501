//! `POST /v1/chat/completions`, as it comes in.
//!
//! **Invariant:** what is judged and what is passed on are the same messages: a message that cannot be
//! read for judging is an error, never passed unread.

use crate::admission::identity;
use crate::error::ApiError;
use crate::wire::fields;
use crate::wire::inquiry::Inquiry;
use conclave_core::{Content, Message, Part, Role};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Messages in one request.
const MESSAGES_MAX: usize = 2_000;
/// Parts without words: they are passed on, and marked as not judged. Of any other kind nobody knows
/// whether a model reads it.
const UNJUDGED: [&str; 4] = ["image_url", "input_audio", "video_url", "file"];
/// Replies in one request.
const CHOICES_MAX: u64 = 8;

/// A chat request, checked.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub inquiry: Inquiry,
    /// Whether a stream ends with what it cost.
    pub include_usage: bool,
}

impl ChatRequest {
    /// Checks a request; the error names the field.
    pub(crate) fn parse(document: Value) -> Result<Self, ApiError> {
        let mut body = fields::object(document)?;
        let model = fields::model(&body)?;
        let conversation = conversation(body.get("messages"))?;
        let stream = fields::flag(&body, "stream")?;
        let include_usage = include_usage(&body)?;
        let structured = wants_json(body.get("response_format"));
        let choices = choices(&body)?;
        let user = identity::user(&body)?;
        let metadata = fields::take_metadata(&mut body)?;
        let inquiry = Inquiry {
            model,
            conversation,
            stream,
            choices,
            structured,
            metadata,
            user,
            session: None,
            kept: None,
            body,
        };
        Ok(Self { inquiry, include_usage })
    }
}

/// Whether a stream is to end with what it cost.
pub(crate) fn include_usage(body: &Map<String, Value>) -> Result<bool, ApiError> {
    match body.get("stream_options") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(options)) => fields::flag(options, "include_usage"),
        Some(_) => Err(ApiError::invalid("stream_options", "must be an object")),
    }
}

/// Whether a `response_format` asks for JSON.
pub(crate) fn wants_json(format: Option<&Value>) -> bool {
    let kind = format.and_then(|format| format.get("type")).and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "text")
}

/// How many replies are wanted.
pub(crate) fn choices(body: &Map<String, Value>) -> Result<u8, ApiError> {
    let wrong =
        || ApiError::invalid("n", format!("must be a whole number from 1 to {CHOICES_MAX}"));
    match body.get("n") {
        None | Some(Value::Null) => Ok(1),
        Some(value) => value
            .as_u64()
            .filter(|n| (1..=CHOICES_MAX).contains(n))
            .and_then(|n| u8::try_from(n).ok())
            .ok_or_else(wrong),
    }
}

/// The messages of a chat request as they are judged.
pub(crate) fn conversation(messages: Option<&Value>) -> Result<Arc<[Message]>, ApiError> {
    let list = match messages {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => {
            return Err(ApiError::invalid("messages", "must hold at least one message"));
        }
        _ => {
            return Err(ApiError::invalid("messages", "must be an array of messages"));
        }
    };
    if list.len() > MESSAGES_MAX {
        let message = format!("must hold at most {MESSAGES_MAX} messages");
        return Err(ApiError::invalid("messages", message));
    }
    list.iter().enumerate().map(|(at, value)| message(at, value)).collect()
}

fn message(at: usize, value: &Value) -> Result<Message, ApiError> {
    let path = format!("messages[{at}]");
    let Value::Object(fields) = value else {
        return Err(ApiError::invalid(path, "must be an object"));
    };
    let role = fields
        .get("role")
        .and_then(Value::as_str)
        .ok_or_else(|| ApiError::invalid(format!("{path}.role"), "must be a string"))?;
    let role = Role::parse(role).ok_or_else(|| {
        ApiError::invalid(format!("{path}.role"), format!("`{role}` is not a role"))
    })?;
    let content = match fields.get("content") {
        Some(Value::String(text)) => Content::Text(text.clone()),
        Some(Value::Array(list)) => Content::Parts(parts(&path, list)?),
        None | Some(Value::Null) if role == Role::Assistant => Content::Text(String::new()),
        _ => {
            let message = "must be a string or an array of parts";
            return Err(ApiError::invalid(format!("{path}.content"), message));
        }
    };
    Ok(Message { role, content })
}

fn parts(path: &str, list: &[Value]) -> Result<Vec<Part>, ApiError> {
    let parts = list.iter().enumerate();
    parts
        .map(|(at, value)| {
            part(value).map_err(|wrong| ApiError::invalid(format!("{path}.content[{at}]"), wrong))
        })
        .collect()
}

/// A part of a message as it is judged, or what is wrong with it.
pub(crate) fn part(part: &Value) -> Result<Part, &'static str> {
    let kind = part.get("type").and_then(Value::as_str);
    let kind = kind.ok_or("must be an object with a `type`")?;
    let text = |field: &str| part.get(field).and_then(Value::as_str);
    match kind {
        "text" | "input_text" | "output_text" | "refusal" => {
            let field = if kind == "refusal" { "refusal" } else { "text" };
            let text = text(field).ok_or("must hold its text as a string")?;
            Ok(Part::Text { text: text.to_owned() })
        }
        other if !UNJUDGED.contains(&other) => {
            Err("must be text, `image_url`, `input_audio`, `video_url` or `file`")
        }
        _ if text("text").is_some() => Err("must hold no text beside what its type is for"),
        other => Ok(Part::Unjudged { kind: other.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Envelope;
    use serde_json::json;

    fn parse(value: Value) -> Result<ChatRequest, ApiError> {
        ChatRequest::parse(value)
    }

    #[test]
    fn a_request_is_taken_whole_and_what_is_ours_goes_no_further() {
        let request = parse(json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true}, "n": 2,
            "messages": [
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": [{"type": "text", "text": "Hello"},
                    {"type": "image_url", "image_url": {"url": "data:"}}]},
                {"role": "assistant", "content": null, "tool_calls": []},
            ],
            "metadata": {"conclave_mode": "normal", "team": "blue"},
            "seed": 7, "unheard_of": {"kept": true},
        }))
        .unwrap();
        assert!(request.include_usage);
        let request = request.inquiry;
        assert_eq!((request.model.as_str(), request.choices), ("m", 2));
        assert!(request.stream && !request.structured);
        assert_eq!(request.conversation[1].content.as_text(), "Hello");
        assert_eq!(request.body["metadata"], json!({"team": "blue"}));
        assert_eq!(request.body["unheard_of"], json!({"kept": true}));
        assert_eq!(request.metadata.unwrap()["conclave_mode"], "normal");
    }

    #[test]
    fn every_wrong_shape_names_its_place() {
        let message = |m: Value| json!({"model": "m", "messages": [m]});
        let part = |part: Value| message(json!({"role": "user", "content": [part]}));
        let cases = [
            (json!([]), ""),
            (json!({"messages": [{"role": "user", "content": "x"}]}), "model"),
            (json!({"model": 3, "messages": [{"role": "user", "content": "x"}]}), "model"),
            (json!({"model": "m"}), "messages"),
            (json!({"model": "m", "messages": []}), "messages"),
            (json!({"model": "m", "messages": "hello"}), "messages"),
            (message(json!("hello")), "messages[0]"),
            (message(json!({"content": "x"})), "messages[0].role"),
            (message(json!({"role": "robot", "content": "x"})), "messages[0].role"),
            (message(json!({"role": "user"})), "messages[0].content"),
            (message(json!({"role": "user", "content": {"a": 1}})), "messages[0].content"),
            (message(json!({"role": "user", "content": ["x"]})), "messages[0].content[0]"),
            (part(json!({"type": "thinking", "thinking": "x"})), "messages[0].content[0]"),
            (part(json!({"type": "document", "text": "x"})), "messages[0].content[0]"),
            (part(json!({"type": "Text", "text": "x"})), "messages[0].content[0]"),
            (
                part(json!({"type": "image_url", "image_url": {"url": "data:"}, "text": "x"})),
                "messages[0].content[0]",
            ),
            (
                json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
                "stream": "true"}),
                "stream",
            ),
            (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 0}), "n"),
            (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 1.5}), "n"),
        ];
        for (body, place) in cases {
            let error = parse(body.clone()).unwrap_err().body(Envelope::OpenAi);
            assert_eq!(error["error"]["param"].as_str().unwrap_or(""), place, "{body}");
        }
    }
}
