//! `POST /v1/responses`, as it goes out.

use crate::error::ApiError;
use crate::wire::chat::is_refusal;
use crate::wire::{Dialect, ReplyHead, named_event, own_fields, unsent_text};
use bytes::Bytes;
use conclave_core::{FinishReason, ToolCall, Usage};
use conclave_engine::{Delivered, Reply};
use serde_json::{Map, Value, json};

/// What the ids of responses begin with.
pub(crate) const ID_PREFIX: &str = "resp_";

/// How far a response has come, and why it goes no further where it is `incomplete`.
struct ResponseStatus {
    word: &'static str,
    incomplete_details: Value,
}

impl ResponseStatus {
    const fn of(word: &'static str) -> Self {
        Self { word, incomplete_details: Value::Null }
    }

    fn incomplete(reason: &str) -> Self {
        Self { word: "incomplete", incomplete_details: json!({"reason": reason}) }
    }
}

/// What a response says, however it was come by: decided just now, or read back.
#[derive(Clone, Debug)]
pub(crate) struct ResponseContent {
    pub head: ReplyHead,
    pub delivered: Delivered,
    /// It stands in `refusal`: the model refused, or our own words would be parsed as JSON.
    pub as_refusal: bool,
}

impl ResponseContent {
    fn of_reply(reply: &Reply, structured: bool) -> Self {
        let choice = reply.decision.choices.first();
        Self {
            head: ReplyHead::of_reply(reply),
            delivered: choice.map(|choice| choice.delivered.clone()).unwrap_or_default(),
            as_refusal: choice.is_some_and(|choice| is_refusal(choice, structured)),
        }
    }

    fn status(&self) -> ResponseStatus {
        match self.delivered.finish {
            FinishReason::ContentFilter => ResponseStatus::incomplete("content_filter"),
            FinishReason::Length => ResponseStatus::incomplete("max_output_tokens"),
            FinishReason::Stop | FinishReason::ToolCalls => ResponseStatus::of("completed"),
        }
    }

    fn output(&self) -> Vec<Value> {
        let delivered = &self.delivered;
        let text = (!delivered.text.is_empty() || delivered.tool_calls.is_empty())
            .then(|| message_item(&self.head, self.status().word, &[self.text_part()]));
        let calls = delivered.tool_calls.iter().enumerate();
        let calls = calls.map(|(at, one)| call_item(&self.head, at, one, &one.arguments));
        text.into_iter().chain(calls).collect()
    }

    fn text_part(&self) -> Value {
        text_part(&self.delivered.text, self.as_refusal)
    }

    pub(crate) fn to_object(&self, echo: &Map<String, Value>) -> Value {
        let usage = Some(self.delivered.usage);
        response_object(&self.head, echo, &self.status(), &self.output(), usage)
    }
}

#[derive(Debug, Default)]
pub(crate) struct ResponsesDialect {
    echo: Map<String, Value>,
    structured: bool,
    omit_own_fields: bool,
    head: Option<ReplyHead>,
    sequence: u64,
    sent: usize,
    is_open: bool,
}

impl ResponsesDialect {
    pub(crate) fn new(echo: Map<String, Value>, structured: bool, omit_own_fields: bool) -> Self {
        Self { echo, structured, omit_own_fields, ..Self::default() }
    }

    fn numbered_event(&mut self, mut event: Value) -> Bytes {
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        named_event(&event)
    }

    fn message_id(&self) -> String {
        self.head.as_ref().map(|head| head.visible_id("msg_")).unwrap_or_default()
    }

    /// An event about the text, which is the first part of the first item.
    fn text_event(&mut self, kind: &str, field: &str, value: Value) -> Bytes {
        let mut event = json!({
            "type": kind, "item_id": self.message_id(), "output_index": 0, "content_index": 0,
        });
        event[field] = value;
        if kind.starts_with("response.output_text") {
            event["logprobs"] = json!([]);
        }
        self.numbered_event(event)
    }

    fn open_item(&mut self, as_refusal: bool) -> Vec<Bytes> {
        if self.is_open {
            return Vec::new();
        }
        self.is_open = true;
        let head = self.head.clone();
        let item = head.map(|head| message_item(&head, "in_progress", &[]));
        let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
        vec![
            self.numbered_event(added),
            self.text_event("response.content_part.added", "part", text_part("", as_refusal)),
        ]
    }

    fn text_events(&mut self, said: &ResponseContent) -> Vec<Bytes> {
        let text = &said.delivered.text;
        if text.is_empty() && !said.delivered.tool_calls.is_empty() {
            return Vec::new();
        }
        let kind = if said.as_refusal { "response.refusal" } else { "response.output_text" };
        let field = if said.as_refusal { "refusal" } else { "text" };
        let mut frames = self.open_item(said.as_refusal);
        let rest = unsent_text(text, self.sent);
        if !rest.is_empty() {
            frames.push(self.text_event(&format!("{kind}.delta"), "delta", json!(rest)));
        }
        frames.push(self.text_event(&format!("{kind}.done"), field, json!(text)));
        frames.push(self.text_event("response.content_part.done", "part", said.text_part()));
        let item = message_item(&said.head, said.status().word, &[said.text_part()]);
        frames.push(self.numbered_event(
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ));
        frames
    }

    fn call_events(&mut self, said: &ResponseContent) -> Vec<Bytes> {
        let first = usize::from(self.is_open);
        let mut frames = Vec::new();
        for (at, one) in said.delivered.tool_calls.iter().enumerate() {
            let begun = call_item(&said.head, at, one, "");
            let whole = call_item(&said.head, at, one, &one.arguments);
            let id = whole["id"].clone();
            let events = [
                json!({"type": "response.output_item.added", "item": begun}),
                json!({"type": "response.function_call_arguments.delta", "item_id": id,
                    "delta": one.arguments}),
                json!({"type": "response.function_call_arguments.done", "item_id": id,
                    "name": one.name, "arguments": one.arguments}),
                json!({"type": "response.output_item.done", "item": whole}),
            ];
            for mut event in events {
                event["output_index"] = json!(first + at);
                frames.push(self.numbered_event(event));
            }
        }
        frames
    }
}

impl Dialect for ResponsesDialect {
    fn whole_reply(&self, reply: &Reply) -> Value {
        let mut body = ResponseContent::of_reply(reply, self.structured).to_object(&self.echo);
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn open_stream(&mut self, head: &ReplyHead) -> Vec<Bytes> {
        self.head = Some(head.clone());
        let status = ResponseStatus::of("in_progress");
        let begun = response_object(head, &self.echo, &status, &[], None);
        ["response.created", "response.in_progress"]
            .map(|kind| self.numbered_event(json!({"type": kind, "response": begun})))
            .into()
    }

    fn stream_piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut frames = self.open_item(false);
        frames.push(self.text_event("response.output_text.delta", "delta", json!(text)));
        self.sent += text.len();
        frames
    }

    fn close_stream(&mut self, reply: &Reply) -> Vec<Bytes> {
        let said = ResponseContent::of_reply(reply, self.structured);
        let mut frames = self.text_events(&said);
        frames.extend(self.call_events(&said));
        let kind = format!("response.{}", said.status().word);
        let whole = self.whole_reply(reply);
        frames.push(self.numbered_event(json!({"type": kind, "response": whole})));
        frames
    }

    fn break_stream(&mut self, error: &ApiError) -> Vec<Bytes> {
        let mut event = error.body(self.envelope())["error"].clone();
        event["type"] = json!("error");
        vec![self.numbered_event(event)]
    }
}

fn response_object(
    head: &ReplyHead,
    echo: &Map<String, Value>,
    status: &ResponseStatus,
    output: &[Value],
    used: Option<Usage>,
) -> Value {
    let mut object = json!({
        "id": head.visible_id(ID_PREFIX),
        "object": "response",
        "created_at": head.created_s,
        "status": status.word,
        "background": false,
        "error": null,
        "incomplete_details": status.incomplete_details,
        "model": head.model,
        "output": output,
        "usage": used.map(usage_object),
    });
    if let Some(fields) = object.as_object_mut() {
        fields.extend(echo.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    object
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

fn message_item(head: &ReplyHead, status: &str, content: &[Value]) -> Value {
    json!({
        "type": "message",
        "id": head.visible_id("msg_"),
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn text_part(text: &str, as_refusal: bool) -> Value {
    if as_refusal {
        return json!({"type": "refusal", "refusal": text});
    }
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn call_item(head: &ReplyHead, at: usize, call: &ToolCall, arguments: &str) -> Value {
    json!({
        "type": "function_call",
        "id": format!("{}_{at}", head.visible_id("fc_")),
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    })
}
