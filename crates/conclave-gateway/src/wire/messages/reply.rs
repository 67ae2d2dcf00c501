//! `POST /v1/messages`, as it goes out.

use crate::error::{ApiError, Envelope};
use crate::wire::{Dialect, ReplyHead, named_event, own_fields, unsent_text};
use bytes::Bytes;
use conclave_core::{FinishReason, ToolCall, Usage};
use conclave_engine::{Delivered, Reply};
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(crate) struct MessagesDialect {
    omit_own_fields: bool,
    sent: usize,
    /// Blocks that were begun.
    blocks: usize,
}

impl MessagesDialect {
    pub(crate) const fn new(omit_own_fields: bool) -> Self {
        Self { omit_own_fields, sent: 0, blocks: 0 }
    }

    fn block_events(&mut self, start: &Value, delta: &Value) -> Vec<Bytes> {
        let index = self.blocks;
        self.blocks += 1;
        vec![
            named_event(
                &json!({"type": "content_block_start", "index": index, "content_block": start}),
            ),
            named_event(&json!({"type": "content_block_delta", "index": index, "delta": delta})),
            named_event(&json!({"type": "content_block_stop", "index": index})),
        ]
    }
}

impl Dialect for MessagesDialect {
    fn whole_reply(&self, reply: &Reply) -> Value {
        let said = first_delivered(reply);
        let mut body =
            message_object(&ReplyHead::of_reply(reply), &content_blocks(&said), said.usage);
        body["stop_reason"] = json!(stop_reason(&said));
        if is_refused(&said) {
            body["stop_details"] = refusal_details();
        }
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn open_stream(&mut self, head: &ReplyHead) -> Vec<Bytes> {
        let message = message_object(head, &[], Usage::default());
        vec![named_event(&json!({"type": "message_start", "message": message}))]
    }

    fn stream_piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut frames = Vec::new();
        if self.sent == 0 {
            self.blocks = 1;
            let block = json!({"type": "text", "text": ""});
            frames.push(named_event(
                &json!({"type": "content_block_start", "index": 0, "content_block": block}),
            ));
        }
        self.sent += text.len();
        let delta = json!({"type": "text_delta", "text": text});
        frames
            .push(named_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        frames
    }

    fn close_stream(&mut self, reply: &Reply) -> Vec<Bytes> {
        let said = first_delivered(reply);
        let mut frames = Vec::new();
        let rest = unsent_text(&said.text, self.sent).to_owned();
        if !rest.is_empty() {
            frames.extend(self.stream_piece(&rest));
        }
        if self.sent > 0 {
            frames.push(named_event(&json!({"type": "content_block_stop", "index": 0})));
        }
        for call in &said.tool_calls {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            let arguments = parsed_arguments(call).to_string();
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            frames.extend(self.block_events(&start, &delta));
        }
        let mut delta = json!({"stop_reason": stop_reason(&said), "stop_sequence": null});
        if is_refused(&said) {
            delta["stop_details"] = refusal_details();
        }
        let usage = usage_object(said.usage);
        let mut end = json!({"type": "message_delta", "delta": delta, "usage": usage});
        if !self.omit_own_fields {
            end["conclave"] = own_fields(reply);
        }
        frames.push(named_event(&end));
        frames.push(named_event(&json!({"type": "message_stop"})));
        frames
    }

    fn break_stream(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![named_event(&error.body(self.envelope()))]
    }

    fn envelope(&self) -> Envelope {
        Envelope::Anthropic
    }
}

fn first_delivered(reply: &Reply) -> Delivered {
    reply.decision.choices.first().map(|choice| choice.delivered.clone()).unwrap_or_default()
}

fn message_object(head: &ReplyHead, content: &[Value], used: Usage) -> Value {
    json!({
        "id": head.visible_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage_object(used),
    })
}

fn usage_object(usage: Usage) -> Value {
    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
}

fn content_blocks(said: &Delivered) -> Vec<Value> {
    let text = (!said.text.is_empty()).then(|| json!({"type": "text", "text": said.text}));
    let calls = said.tool_calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": parsed_arguments(call)})
    });
    text.into_iter().chain(calls).collect()
}

/// The arguments as the object this interface wants; what is none stands in one, so that nothing of
/// what was judged is lost.
fn parsed_arguments(call: &ToolCall) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ if call.arguments.trim().is_empty() => json!({}),
        _ => json!({"arguments": call.arguments}),
    }
}

/// Whether the model or we refused: this interface tells neither apart.
fn is_refused(said: &Delivered) -> bool {
    said.is_refusal || said.finish == FinishReason::ContentFilter
}

fn stop_reason(said: &Delivered) -> &'static str {
    match said.finish {
        _ if is_refused(said) => "refusal",
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
    }
}

fn refusal_details() -> Value {
    json!({"type": "refusal", "category": null, "explanation": null})
}
