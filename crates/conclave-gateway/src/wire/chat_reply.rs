//! `POST /v1/chat/completions`, as it goes out in one piece.

use crate::wire::own_fields::own_fields;
use conclave_core::{Outcome, ToolCall};
use conclave_engine::{Choice, Reply};
use serde_json::{Value, json};

/// How a reply is to be worded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Withheld text stands in `refusal`, because the client will parse `content` as JSON.
    pub structured: bool,
    /// Leave the `conclave` key out.
    pub omit_own_fields: bool,
}

/// The id clients see; derived from the audit id, so that either finds the other.
pub(crate) fn completion_id(reply: &Reply) -> String {
    format!("chatcmpl-{}", reply.decision.id.0.simple())
}

/// The whole completion.
pub(crate) fn completion(reply: &Reply, form: Form) -> Value {
    let decision = &*reply.decision;
    let choices: Vec<_> = decision
        .choices
        .iter()
        .enumerate()
        .map(|(index, choice)| {
            json!({
                "index": index,
                "message": message(choice, form.structured),
                "logprobs": null,
                "finish_reason": choice.delivered.finish.as_str(),
            })
        })
        .collect();
    let mut body = json!({
        "id": completion_id(reply),
        "object": "chat.completion",
        "created": decision.timestamp_ms / 1_000,
        "model": decision.model,
        "choices": choices,
        "usage": usage(reply),
    });
    if !form.omit_own_fields {
        body["conclave"] = own_fields(reply);
    }
    body
}

/// The delivered candidates' tokens; what the whole turn cost stands under `conclave`.
pub(crate) fn usage(reply: &Reply) -> Value {
    let delivered = reply.decision.choices.iter().map(|choice| choice.delivered.usage);
    let sum = delivered.fold(conclave_core::Usage::default(), conclave_core::Usage::plus);
    json!({
        "prompt_tokens": sum.input_tokens,
        "completion_tokens": sum.output_tokens,
        "total_tokens": sum.input_tokens.saturating_add(sum.output_tokens),
    })
}

/// Whether the text is ours in place of a model's.
fn is_withheld(choice: &Choice) -> bool {
    !matches!(choice.outcome, Outcome::Delivered | Outcome::Redacted)
}

fn message(choice: &Choice, structured: bool) -> Value {
    let text = &choice.delivered.text;
    let mut message = if structured && is_withheld(choice) {
        json!({"role": "assistant", "content": null, "refusal": text})
    } else if text.is_empty() && !choice.delivered.tool_calls.is_empty() {
        json!({"role": "assistant", "content": null, "refusal": null})
    } else {
        json!({"role": "assistant", "content": text, "refusal": null})
    };
    if !choice.delivered.tool_calls.is_empty() {
        message["tool_calls"] = choice.delivered.tool_calls.iter().map(tool_call).collect();
    }
    message
}

/// What a streamed choice adds: role, text or refusal, and whole tool calls.
pub(crate) fn delta(choice: &Choice, structured: bool) -> Value {
    let mut delta = message(choice, structured);
    if let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) {
        for (index, call) in calls.iter_mut().enumerate() {
            call["index"] = json!(index);
        }
    }
    if delta.get("refusal").is_some_and(Value::is_null) {
        delta.as_object_mut().map(|fields| fields.remove("refusal"));
    }
    delta
}

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}
