//! `POST /v1/messages`, as it goes out.

use crate::error::{ApiError, Envelope};
use crate::wire::dialect::{Dialect, Head, named, unsent};
use crate::wire::own_fields::own_fields;
use bytes::Bytes;
use conclave_core::{FinishReason, ToolCall, Usage};
use conclave_engine::{Delivered, Reply};
use serde_json::{Value, json};

/// Anthropic's messages interface.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    omit_own_fields: bool,
    sent: usize,
    /// Blocks that were begun.
    blocks: usize,
}

impl Messages {
    pub(crate) const fn new(omit_own_fields: bool) -> Self {
        Self { omit_own_fields, sent: 0, blocks: 0 }
    }

    fn block(&mut self, start: &Value, delta: &Value) -> Vec<Bytes> {
        let index = self.blocks;
        self.blocks += 1;
        vec![
            named(&json!({"type": "content_block_start", "index": index, "content_block": start})),
            named(&json!({"type": "content_block_delta", "index": index, "delta": delta})),
            named(&json!({"type": "content_block_stop", "index": index})),
        ]
    }
}

impl Dialect for Messages {
    fn whole(&self, reply: &Reply) -> Value {
        let said = delivered(reply);
        let mut body = message(&Head::of(reply), &content(&said), said.usage);
        body["stop_reason"] = json!(stop_reason(said.finish));
        if said.finish == FinishReason::ContentFilter {
            body["stop_details"] = refusal();
        }
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn opening(&mut self, head: &Head) -> Vec<Bytes> {
        let message = message(head, &[], Usage::default());
        vec![named(&json!({"type": "message_start", "message": message}))]
    }

    fn piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut frames = Vec::new();
        if self.sent == 0 {
            self.blocks = 1;
            let block = json!({"type": "text", "text": ""});
            frames.push(named(
                &json!({"type": "content_block_start", "index": 0, "content_block": block}),
            ));
        }
        self.sent += text.len();
        let delta = json!({"type": "text_delta", "text": text});
        frames.push(named(&json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        frames
    }

    fn closing(&mut self, reply: &Reply) -> Vec<Bytes> {
        let said = delivered(reply);
        let mut frames = Vec::new();
        let rest = unsent(&said.text, self.sent).to_owned();
        if !rest.is_empty() {
            frames.extend(self.piece(&rest));
        }
        if self.sent > 0 {
            frames.push(named(&json!({"type": "content_block_stop", "index": 0})));
        }
        for call in &said.tool_calls {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            let arguments = arguments(call).to_string();
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            frames.extend(self.block(&start, &delta));
        }
        let mut delta = json!({"stop_reason": stop_reason(said.finish), "stop_sequence": null});
        if said.finish == FinishReason::ContentFilter {
            delta["stop_details"] = refusal();
        }
        let usage = usage(said.usage);
        let mut end = json!({"type": "message_delta", "delta": delta, "usage": usage});
        if !self.omit_own_fields {
            end["conclave"] = own_fields(reply);
        }
        frames.push(named(&end));
        frames.push(named(&json!({"type": "message_stop"})));
        frames
    }

    fn broken(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![named(&error.body(self.envelope()))]
    }

    fn envelope(&self) -> Envelope {
        Envelope::Anthropic
    }
}

fn delivered(reply: &Reply) -> Delivered {
    reply.decision.choices.first().map(|choice| choice.delivered.clone()).unwrap_or_default()
}

fn message(head: &Head, content: &[Value], used: Usage) -> Value {
    json!({
        "id": head.visible_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(used),
    })
}

fn usage(usage: Usage) -> Value {
    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
}

fn content(said: &Delivered) -> Vec<Value> {
    let text = (!said.text.is_empty()).then(|| json!({"type": "text", "text": said.text}));
    let calls = said.tool_calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments(call)})
    });
    text.into_iter().chain(calls).collect()
}

/// The arguments as the object this interface wants; what is none stands in one, so that nothing of
/// what was judged is lost.
fn arguments(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ if call.arguments.trim().is_empty() => json!({}),
        _ => json!({"arguments": call.arguments}),
    }
}

const fn stop_reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
    }
}

fn refusal() -> Value {
    json!({"type": "refusal", "category": null, "explanation": null})
}
