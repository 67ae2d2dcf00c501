//! OpenAI chat completions as a provider writes them, whole and as events.

use serde_json::{Value, json};

/// The id of every tool call the mock makes.
pub const TOOL_CALL_ID: &str = "call_mock_1";

/// Unix time of every reply: the mock has no clock, so that its bytes are the same in every run.
const CREATED: u64 = 1_700_000_000;

/// How many characters of a reply one event carries.
const EVENT_CHARS: usize = 12;

/// A whole reply around this message.
#[must_use]
pub fn completion(message: &Value, finish_reason: &str, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-mock",
        "object": "chat.completion",
        "created": CREATED,
        "model": "mock-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage,
    })
}

/// The message of an ordinary reply.
pub(crate) fn text_message(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// The message that calls one tool.
pub(crate) fn tool_message(name: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{
        "id": TOOL_CALL_ID,
        "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()},
    }]})
}

/// What a reply of this length costs, by the mock's count.
pub(crate) fn usage_of(text: &str) -> Value {
    let output = text.len().div_ceil(4);
    json!({"prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output})
}

/// The events of a reply: a role, the text in small pieces, an end, and what it cost.
#[must_use]
pub fn completion_sse(text: &str) -> Vec<Vec<u8>> {
    let mut events = vec![event(&json!({"role": "assistant", "content": ""}), None)];
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(EVENT_CHARS) {
        let piece: String = piece.iter().collect();
        events.push(event(&json!({"content": piece}), None));
    }
    events.push(event(&json!({}), Some("stop")));
    events.extend(last_events(&usage_of(text)));
    events
}

/// The events of a tool call, its arguments in two pieces.
pub(crate) fn tool_call_sse(name: &str, arguments: &Value) -> Vec<Vec<u8>> {
    let arguments = arguments.to_string();
    let middle =
        (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
    let (head, tail) = arguments.split_at(middle);
    let open = json!({"role": "assistant", "content": null, "tool_calls": [{
        "index": 0,
        "id": TOOL_CALL_ID,
        "type": "function",
        "function": {"name": name, "arguments": head},
    }]});
    let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": tail}}]});
    let mut events =
        vec![event(&open, None), event(&rest, None), event(&json!({}), Some("tool_calls"))];
    events.extend(last_events(&usage_of(&arguments)));
    events
}

fn last_events(usage: &Value) -> [Vec<u8>; 2] {
    let mut chunk = chunk(&json!([]));
    chunk["usage"] = usage.clone();
    [frame(&chunk), b"data: [DONE]\n\n".to_vec()]
}

fn event(delta: &Value, finish_reason: Option<&str>) -> Vec<u8> {
    frame(&chunk(&json!([
        {"index": 0, "delta": delta, "finish_reason": finish_reason}
    ])))
}

fn chunk(choices: &Value) -> Value {
    json!({
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "mock-model",
        "choices": choices,
    })
}

fn frame(chunk: &Value) -> Vec<u8> {
    format!("data: {chunk}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_put_together_are_the_text() {
        let text = "Something rather longer than one event, 日本語 too.";
        let mut joined = String::new();
        for event in completion_sse(text) {
            let line = String::from_utf8(event).unwrap();
            let data = line.strip_prefix("data: ").unwrap().trim_end();
            let Ok(chunk) = serde_json::from_str::<Value>(data) else {
                assert_eq!(data, "[DONE]");
                continue;
            };
            joined.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or(""));
        }
        assert_eq!(joined, text);
    }
}
