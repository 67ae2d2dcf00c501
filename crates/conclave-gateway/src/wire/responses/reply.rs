//! `POST /v1/responses`, as it goes out.

use crate::error::ApiError;
use crate::wire::dialect::{Dialect, Head, named, unsent};
use crate::wire::own_fields::own_fields;
use bytes::Bytes;
use conclave_core::{FinishReason, ToolCall, Usage};
use conclave_engine::{Delivered, Reply};
use serde_json::{Map, Value, json};

/// What the ids of responses begin with.
pub(crate) const ID_PREFIX: &str = "resp_";

/// What a response says, however it was come by: decided just now, or read back.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub head: Head,
    pub delivered: Delivered,
    /// Our own words stand in `refusal`, because the client will parse the text as JSON.
    pub as_refusal: bool,
}

impl Said {
    fn of(reply: &Reply, structured: bool) -> Self {
        let choice = reply.decision.choices.first();
        Self {
            head: Head::of(reply),
            delivered: choice.map(|choice| choice.delivered.clone()).unwrap_or_default(),
            as_refusal: structured && !reply.decision.outcome.is_verified(),
        }
    }

    /// `completed`, or `incomplete` and why.
    fn status(&self) -> (&'static str, Value) {
        match self.delivered.finish {
            FinishReason::ContentFilter => ("incomplete", json!({"reason": "content_filter"})),
            FinishReason::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
            FinishReason::Stop | FinishReason::ToolCalls => ("completed", Value::Null),
        }
    }

    fn output(&self) -> Vec<Value> {
        let delivered = &self.delivered;
        let text = (!delivered.text.is_empty() || delivered.tool_calls.is_empty())
            .then(|| item(&self.head, self.status().0, &[self.part()]));
        let calls = delivered.tool_calls.iter().enumerate();
        let calls = calls.map(|(at, one)| call(&self.head, at, one, &one.arguments));
        text.into_iter().chain(calls).collect()
    }

    fn part(&self) -> Value {
        part(&self.delivered.text, self.as_refusal)
    }

    /// The response object.
    pub(crate) fn object(&self, echo: &Map<String, Value>) -> Value {
        let (status, why) = self.status();
        object(&self.head, echo, (status, why), &self.output(), Some(self.delivered.usage))
    }
}

/// OpenAI's responses interface.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    echo: Map<String, Value>,
    structured: bool,
    omit_own_fields: bool,
    head: Option<Head>,
    sequence: u64,
    sent: usize,
    is_open: bool,
}

impl Responses {
    pub(crate) fn new(echo: Map<String, Value>, structured: bool, omit_own_fields: bool) -> Self {
        Self { echo, structured, omit_own_fields, ..Self::default() }
    }

    fn event(&mut self, mut event: Value) -> Bytes {
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        named(&event)
    }

    fn message_id(&self) -> String {
        self.head.as_ref().map(|head| head.visible_id("msg_")).unwrap_or_default()
    }

    /// An event about the text, which is the first part of the first item.
    fn about_text(&mut self, kind: &str, field: &str, value: Value) -> Bytes {
        let mut event = json!({
            "type": kind, "item_id": self.message_id(), "output_index": 0, "content_index": 0,
        });
        event[field] = value;
        if kind.starts_with("response.output_text") {
            event["logprobs"] = json!([]);
        }
        self.event(event)
    }

    fn open(&mut self, as_refusal: bool) -> Vec<Bytes> {
        if self.is_open {
            return Vec::new();
        }
        self.is_open = true;
        let head = self.head.clone();
        let item = head.map(|head| item(&head, "in_progress", &[]));
        let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
        vec![
            self.event(added),
            self.about_text("response.content_part.added", "part", part("", as_refusal)),
        ]
    }

    fn text_events(&mut self, said: &Said) -> Vec<Bytes> {
        let text = &said.delivered.text;
        if text.is_empty() && !said.delivered.tool_calls.is_empty() {
            return Vec::new();
        }
        let kind = if said.as_refusal { "response.refusal" } else { "response.output_text" };
        let field = if said.as_refusal { "refusal" } else { "text" };
        let mut frames = self.open(said.as_refusal);
        let rest = unsent(text, self.sent);
        if !rest.is_empty() {
            frames.push(self.about_text(&format!("{kind}.delta"), "delta", json!(rest)));
        }
        frames.push(self.about_text(&format!("{kind}.done"), field, json!(text)));
        frames.push(self.about_text("response.content_part.done", "part", said.part()));
        let item = item(&said.head, said.status().0, &[said.part()]);
        frames.push(
            self.event(
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            ),
        );
        frames
    }

    fn call_events(&mut self, said: &Said) -> Vec<Bytes> {
        let first = usize::from(self.is_open);
        let mut frames = Vec::new();
        for (at, one) in said.delivered.tool_calls.iter().enumerate() {
            let begun = call(&said.head, at, one, "");
            let whole = call(&said.head, at, one, &one.arguments);
            let (index, id) = (first + at, whole["id"].clone());
            let events = [
                json!({"type": "response.output_item.added", "item": begun}),
                json!({"type": "response.function_call_arguments.delta", "item_id": id,
                    "delta": one.arguments}),
                json!({"type": "response.function_call_arguments.done", "item_id": id,
                    "name": one.name, "arguments": one.arguments}),
                json!({"type": "response.output_item.done", "item": whole}),
            ];
            for mut event in events {
                event["output_index"] = json!(index);
                frames.push(self.event(event));
            }
        }
        frames
    }
}

impl Dialect for Responses {
    fn whole(&self, reply: &Reply) -> Value {
        let mut body = Said::of(reply, self.structured).object(&self.echo);
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn opening(&mut self, head: &Head) -> Vec<Bytes> {
        self.head = Some(head.clone());
        let begun = object(head, &self.echo, ("in_progress", Value::Null), &[], None);
        ["response.created", "response.in_progress"]
            .map(|kind| self.event(json!({"type": kind, "response": begun})))
            .into()
    }

    fn piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut frames = self.open(false);
        frames.push(self.about_text("response.output_text.delta", "delta", json!(text)));
        self.sent += text.len();
        frames
    }

    fn closing(&mut self, reply: &Reply) -> Vec<Bytes> {
        let said = Said::of(reply, self.structured);
        let mut frames = self.text_events(&said);
        frames.extend(self.call_events(&said));
        let kind = format!("response.{}", said.status().0);
        let whole = self.whole(reply);
        frames.push(self.event(json!({"type": kind, "response": whole})));
        frames
    }

    fn broken(&mut self, error: &ApiError) -> Vec<Bytes> {
        let mut event = error.body(self.envelope())["error"].clone();
        event["type"] = json!("error");
        vec![self.event(event)]
    }
}

fn object(
    head: &Head,
    echo: &Map<String, Value>,
    (status, why): (&str, Value),
    output: &[Value],
    used: Option<Usage>,
) -> Value {
    let mut object = json!({
        "id": head.visible_id(ID_PREFIX),
        "object": "response",
        "created_at": head.created_s,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": why,
        "model": head.model,
        "output": output,
        "usage": used.map(usage),
    });
    if let Some(fields) = object.as_object_mut() {
        fields.extend(echo.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    object
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

fn item(head: &Head, status: &str, content: &[Value]) -> Value {
    json!({
        "type": "message",
        "id": head.visible_id("msg_"),
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn part(text: &str, as_refusal: bool) -> Value {
    if as_refusal {
        return json!({"type": "refusal", "refusal": text});
    }
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn call(head: &Head, at: usize, call: &ToolCall, arguments: &str) -> Value {
    json!({
        "type": "function_call",
        "id": format!("{}_{at}", head.visible_id("fc_")),
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    })
}
