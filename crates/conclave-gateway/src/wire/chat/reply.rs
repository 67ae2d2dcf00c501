//! `POST /v1/chat/completions`, as it goes out.

use crate::error::ApiError;
use crate::wire::dialect::{Dialect, Head, data, finish, unsent};
use crate::wire::own_fields::own_fields;
use bytes::Bytes;
use conclave_core::{Outcome, ToolCall};
use conclave_engine::{Choice, Reply};
use serde_json::{Value, json};

/// How a reply is to be worded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    /// Withheld text stands in `refusal`, because the client will parse `content` as JSON.
    pub structured: bool,
    /// Leave the `conclave` key out.
    pub omit_own_fields: bool,
}

/// OpenAI's chat interface.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    pub form: Form,
    pub include_usage: bool,
    head: Option<Head>,
    sent: usize,
}

impl Chat {
    pub(crate) const fn new(form: Form, include_usage: bool) -> Self {
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

    fn delta(&self, index: usize, delta: &Value) -> Bytes {
        data(&self.chunk(&json!([
            {"index": index, "delta": delta, "logprobs": null, "finish_reason": null}
        ])))
    }

    /// What a streamed choice adds to what was sent of it: text or refusal, and whole tool calls.
    fn rest(&self, choice: &Choice, sent: usize) -> Value {
        let mut delta = message(choice, self.form.structured);
        if let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) {
            for (index, call) in calls.iter_mut().enumerate() {
                call["index"] = json!(index);
            }
        }
        if delta.get("refusal").is_some_and(Value::is_null) {
            delta.as_object_mut().map(|fields| fields.remove("refusal"));
        }
        if sent > 0 {
            delta.as_object_mut().map(|fields| fields.remove("role"));
            delta["content"] = json!(unsent(&choice.delivered.text, sent));
        }
        delta
    }
}

/// What stands in the place of one of several choices that no model gave.
const UNANSWERED: &str = "The model could not answer.";
/// What the ids of completions begin with.
const ID_PREFIX: &str = "chatcmpl-";

impl Dialect for Chat {
    fn whole(&self, reply: &Reply) -> Value {
        let decision = &*reply.decision;
        let choices: Vec<_> = decision
            .choices
            .iter()
            .enumerate()
            .map(|(index, choice)| {
                json!({
                    "index": index,
                    "message": message(choice, self.form.structured),
                    "logprobs": null,
                    "finish_reason": finish(choice),
                })
            })
            .collect();
        let head = Head::of(reply);
        let mut body = json!({
            "id": head.visible_id(ID_PREFIX),
            "object": "chat.completion",
            "created": head.created_s,
            "model": head.model,
            "choices": choices,
            "usage": usage(reply),
        });
        if !self.form.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn opening(&mut self, head: &Head) -> Vec<Bytes> {
        self.head = Some(head.clone());
        Vec::new()
    }

    fn piece(&mut self, text: &str) -> Vec<Bytes> {
        let mut delta = json!({"content": text});
        if self.sent == 0 {
            delta["role"] = json!("assistant");
        }
        self.sent += text.len();
        vec![self.delta(0, &delta)]
    }

    fn closing(&mut self, reply: &Reply) -> Vec<Bytes> {
        let decision = &*reply.decision;
        let mut frames = Vec::new();
        for (index, choice) in decision.choices.iter().enumerate() {
            let sent = if index == 0 { self.sent } else { 0 };
            frames.push(self.delta(index, &self.rest(choice, sent)));
            let finish = finish(choice);
            let mut last = self.chunk(&json!([
                {"index": index, "delta": {}, "logprobs": null, "finish_reason": finish}
            ]));
            if !self.form.omit_own_fields && index + 1 == decision.choices.len() {
                last["conclave"] = own_fields(reply);
            }
            frames.push(data(&last));
        }
        if self.include_usage {
            let mut last = self.chunk(&json!([]));
            last["usage"] = usage(reply);
            frames.push(data(&last));
        }
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        frames
    }

    fn broken(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![data(&error.body(self.envelope()))]
    }
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
pub(crate) fn is_withheld(choice: &Choice) -> bool {
    !matches!(choice.outcome, Outcome::Delivered | Outcome::Redacted)
}

fn message(choice: &Choice, structured: bool) -> Value {
    let text = &choice.delivered.text;
    let mut message = if choice.outcome == Outcome::Failed {
        json!({"role": "assistant", "content": null, "refusal": UNANSWERED})
    } else if structured && is_withheld(choice) {
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

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_engine::Delivered;
    use std::time::Duration;

    fn choice(outcome: Outcome, text: &str) -> Choice {
        Choice {
            outcome,
            verdict: None,
            attempts: Vec::new(),
            delivered: Delivered { text: text.to_owned(), ..Delivered::default() },
            model_time: Duration::ZERO,
            windows: Vec::new(),
        }
    }

    #[test]
    fn a_choice_that_no_model_gave_does_not_look_like_an_empty_one() {
        let failed = choice(Outcome::Failed, "");
        let said = message(&failed, false);
        assert_eq!((&said["content"], &said["refusal"]), (&Value::Null, &json!(UNANSWERED)));
        assert_eq!(finish(&failed), "content_filter");
        let given = choice(Outcome::Delivered, "Yes.");
        assert_eq!(message(&given, false)["content"], "Yes.");
        assert_eq!(finish(&given), given.delivered.finish.as_str());
        let streamed = Chat::default().rest(&failed, 0);
        assert_eq!(streamed["refusal"], UNANSWERED);
    }
}
