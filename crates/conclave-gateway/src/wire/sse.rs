//! `POST /v1/chat/completions` as server-sent events, after the whole reply has passed.

use crate::wire::chat_reply::{Form, completion_id, delta, usage};
use crate::wire::own_fields::own_fields;
use bytes::Bytes;
use conclave_engine::Reply;
use serde_json::{Value, json};

/// Every frame of the stream, in order.
pub(crate) fn frames(reply: &Reply, form: Form, include_usage: bool) -> Vec<Bytes> {
    let decision = &*reply.decision;
    let chunk = |choices: Value| {
        json!({
            "id": completion_id(reply),
            "object": "chat.completion.chunk",
            "created": decision.timestamp_ms / 1_000,
            "model": decision.model,
            "choices": choices,
        })
    };
    let mut frames = Vec::new();
    for (index, choice) in decision.choices.iter().enumerate() {
        let delta = delta(choice, form.structured);
        frames.push(frame(&chunk(json!([
            {"index": index, "delta": delta, "logprobs": null, "finish_reason": null}
        ]))));
        let finish = choice.delivered.finish.as_str();
        let mut last = chunk(json!([
            {"index": index, "delta": {}, "logprobs": null, "finish_reason": finish}
        ]));
        if !form.omit_own_fields && index + 1 == decision.choices.len() {
            last["conclave"] = own_fields(reply);
        }
        frames.push(frame(&last));
    }
    if include_usage {
        let mut last = chunk(json!([]));
        last["usage"] = usage(reply);
        frames.push(frame(&last));
    }
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    frames
}

fn frame(chunk: &Value) -> Bytes {
    Bytes::from(format!("data: {chunk}\n\n"))
}
