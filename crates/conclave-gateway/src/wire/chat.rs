//! `POST /v1/chat/completions`: OpenAI's chat interface. Its form is the one that every other interface is
//! put into.
//!
//! **Invariant:** what is judged and what is passed on are the same messages: a message that cannot be
//! read for judging is an error, never passed unread.

use crate::error::ApiError;
use crate::wire::files::text_of_file;
use crate::wire::{
    Dialect, Inquiry, ReplyHead, data_event, finish_reason, flag_field, json_object, model_field,
    own_fields, take_metadata, unsent_text, user_field,
};
use bytes::Bytes;
use conclave_core::{Content, Message, Outcome, Part, Role, ToolCall, Usage};
use conclave_engine::{Choice, Reply};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Messages in one request.
const MESSAGES_MAX: usize = 2_000;
/// Parts without words: they are passed on, and marked as not judged. Of any other kind nobody knows
/// whether a model reads it.
const UNJUDGED: [&str; 4] = ["image_url", "input_audio", "video_url", "file"];
/// Replies in one request.
const CHOICES_MAX: u64 = 8;
/// What stands in the place of one of several choices that no model gave.
const UNANSWERED: &str = "The model could not answer.";
/// What the ids of completions begin with.
const ID_PREFIX: &str = "chatcmpl-";

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
        let mut body = json_object(document)?;
        let model = model_field(&body)?;
        let conversation = read_conversation(&mut body)?;
        let stream = flag_field(&body, "stream")?;
        let include_usage = read_include_usage(&body)?;
        let structured = wants_json(body.get("response_format"));
        let choices = read_choices(&body)?;
        let user = user_field(&body)?;
        let metadata = take_metadata(&mut body)?;
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
pub(crate) fn read_include_usage(body: &Map<String, Value>) -> Result<bool, ApiError> {
    match body.get("stream_options") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(options)) => flag_field(options, "include_usage"),
        Some(_) => Err(ApiError::invalid("stream_options", "must be an object")),
    }
}

/// Whether a `response_format` asks for JSON.
pub(crate) fn wants_json(format: Option<&Value>) -> bool {
    let kind = format.and_then(|format| format.get("type")).and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "text")
}

/// How many replies are wanted.
pub(crate) fn read_choices(body: &Map<String, Value>) -> Result<u8, ApiError> {
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

/// The messages of a chat request as they are judged. Files that are text are opened in them, so that what is
/// judged is what is passed on.
pub(crate) fn read_conversation(body: &mut Map<String, Value>) -> Result<Arc<[Message]>, ApiError> {
    let Some(Value::Array(list)) = body.get_mut("messages") else {
        return Err(ApiError::invalid("messages", "must be an array of messages"));
    };
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "must hold at least one message"));
    }
    if list.len() > MESSAGES_MAX {
        let message = format!("must hold at most {MESSAGES_MAX} messages");
        return Err(ApiError::invalid("messages", message));
    }
    list.iter_mut().enumerate().map(|(at, value)| read_message(at, value)).collect()
}

fn read_message(at: usize, value: &mut Value) -> Result<Message, ApiError> {
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
    let content = match fields.get_mut("content") {
        Some(Value::String(text)) => Content::Text(text.clone()),
        Some(Value::Array(list)) => Content::Parts(read_parts(&path, list)?),
        None | Some(Value::Null) if role == Role::Assistant => Content::Text(String::new()),
        _ => {
            let message = "must be a string or an array of parts";
            return Err(ApiError::invalid(format!("{path}.content"), message));
        }
    };
    Ok(Message { role, content })
}

fn read_parts(path: &str, list: &mut [Value]) -> Result<Vec<Part>, ApiError> {
    let parts = list.iter_mut().enumerate();
    parts
        .map(|(at, value)| {
            let place = |wrong| ApiError::invalid(format!("{path}.content[{at}]"), wrong);
            let part = read_part(value).map_err(place)?;
            let Some(text) = text_of_file(value).map_err(place)? else { return Ok(part) };
            let mut opened = json!({"type": "text", "text": text});
            if let Some(mark) = value.get("cache_control") {
                opened["cache_control"] = mark.clone();
            }
            *value = opened;
            Ok(Part::Document { text })
        })
        .collect()
}

/// A part of a message as it is judged, or what is wrong with it.
pub(crate) fn read_part(part: &Value) -> Result<Part, &'static str> {
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

/// How a reply is to be worded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplyForm {
    /// Withheld text stands in `refusal`, because the client will parse `content` as JSON.
    pub structured: bool,
    /// Leave the `conclave` key out.
    pub omit_own_fields: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ChatDialect {
    pub form: ReplyForm,
    pub include_usage: bool,
    head: Option<ReplyHead>,
    sent: usize,
}

impl ChatDialect {
    pub(crate) const fn new(form: ReplyForm, include_usage: bool) -> Self {
        Self { form, include_usage, head: None, sent: 0 }
    }

    fn chunk(&self, choices: &Value) -> Value {
        let head = self.head.as_ref();
        json!({
            "id": head.map(|head| head.visible_id(ID_PREFIX)),
            "object": "chat.completion.chunk",
            "created": head.map(|head| head.created_s),
            "model": head.map(|head| head.model.as_str()),
            "choices": choices,
        })
    }

    fn delta_event(&self, index: usize, delta: &Value) -> Bytes {
        data_event(&self.chunk(&json!([
            {"index": index, "delta": delta, "logprobs": null, "finish_reason": null}
        ])))
    }

    /// What a streamed choice adds to what was sent of it: text or refusal, and whole tool calls.
    fn unsent_delta(&self, choice: &Choice, sent: usize) -> Value {
        let mut delta = reply_message(choice, self.form.structured);
        if let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) {
            for (index, call) in calls.iter_mut().enumerate() {
                call["index"] = json!(index);
            }
        }
        if delta.get("refusal").is_some_and(Value::is_null) {
            delta.as_object_mut().map(|fields| fields.shift_remove("refusal"));
        }
        if sent > 0 {
            delta.as_object_mut().map(|fields| fields.shift_remove("role"));
            delta["content"] = json!(unsent_text(&choice.delivered.text, sent));
        }
        delta
    }
}

impl Dialect for ChatDialect {
    fn whole_reply(&self, reply: &Reply) -> Value {
        let decision = &*reply.decision;
        let choices: Vec<_> = decision
            .choices
            .iter()
            .enumerate()
            .map(|(index, choice)| {
                json!({
                    "index": index,
                    "message": reply_message(choice, self.form.structured),
                    "logprobs": choice.delivered.own_logprobs(),
                    "finish_reason": finish_reason(choice),
                })
            })
            .collect();
        let head = ReplyHead::of_reply(reply);
        let mut body = json!({
            "id": head.visible_id(ID_PREFIX),
            "object": "chat.completion",
            "created": head.created_s,
            "model": head.model,
            "choices": choices,
            "usage": usage_object(reply),
        });
        if !self.form.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn open_stream(&mut self, head: &ReplyHead) -> Vec<Bytes> {
        self.head = Some(head.clone());
        Vec::new()
    }

    fn stream_piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut delta = json!({"content": text});
        if self.sent == 0 {
            delta["role"] = json!("assistant");
        }
        self.sent += text.len();
        vec![self.delta_event(0, &delta)]
    }

    fn close_stream(&mut self, reply: &Reply) -> Vec<Bytes> {
        let decision = &*reply.decision;
        let mut frames = Vec::new();
        for (index, choice) in decision.choices.iter().enumerate() {
            let sent = if index == 0 { self.sent } else { 0 };
            frames.push(self.delta_event(index, &self.unsent_delta(choice, sent)));
            let finish = finish_reason(choice);
            let mut last = self.chunk(&json!([
                {"index": index, "delta": {}, "logprobs": null, "finish_reason": finish}
            ]));
            if !self.form.omit_own_fields && index + 1 == decision.choices.len() {
                last["conclave"] = own_fields(reply);
            }
            frames.push(data_event(&last));
        }
        if self.include_usage {
            let mut last = self.chunk(&json!([]));
            last["usage"] = usage_object(reply);
            frames.push(data_event(&last));
        }
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        frames
    }

    fn break_stream(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![data_event(&error.body(self.envelope()))]
    }
}

/// The delivered candidates' tokens; what the whole turn cost stands under `conclave`.
pub(crate) fn usage_object(reply: &Reply) -> Value {
    let delivered = reply.decision.choices.iter().map(|choice| choice.delivered.usage);
    let sum = delivered.fold(Usage::default(), Usage::plus);
    json!({
        "prompt_tokens": sum.input_tokens,
        "completion_tokens": sum.output_tokens,
        "total_tokens": sum.input_tokens.saturating_add(sum.output_tokens),
    })
}

/// Whether the text is ours in place of a model's.
pub(crate) fn is_withheld(choice: &Choice) -> bool {
    !matches!(choice.outcome, Outcome::Delivered | Outcome::Redacted)
}

/// Whether the text is a refusal: the model's own, or ours where a client will parse the content.
pub(crate) fn is_refusal(choice: &Choice, structured: bool) -> bool {
    choice.delivered.is_refusal || (structured && is_withheld(choice))
}

fn reply_message(choice: &Choice, structured: bool) -> Value {
    let text = &choice.delivered.text;
    let mut message = if choice.outcome == Outcome::Failed {
        json!({"role": "assistant", "content": null, "refusal": UNANSWERED})
    } else if is_refusal(choice, structured) {
        json!({"role": "assistant", "content": null, "refusal": text})
    } else if text.is_empty() && !choice.delivered.tool_calls.is_empty() {
        json!({"role": "assistant", "content": null, "refusal": null})
    } else {
        json!({"role": "assistant", "content": text, "refusal": null})
    };
    if !choice.delivered.tool_calls.is_empty() {
        message["tool_calls"] = choice.delivered.tool_calls.iter().map(tool_call_object).collect();
    }
    message
}

fn tool_call_object(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
