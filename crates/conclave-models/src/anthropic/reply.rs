//! Reads a message of Anthropic's.

use super::REPLY_TOOL;
use crate::calls::{CALLS_MAX, named};
use crate::fault::Fault;
use crate::mend::mended;
use crate::reply::{Draft, Proposal};
use crate::usage::Claim;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

/// Reads the body of a 200. The parser's own words are left out: they can quote the reply.
pub(crate) fn read_reply(bytes: &[u8]) -> Result<Proposal, Fault> {
    match serde_json::from_slice(bytes) {
        Ok(message) => understand(message),
        Err(_) => match mended(bytes) {
            Cow::Borrowed(_) => Err(no_message()),
            Cow::Owned(bytes) => {
                understand(serde_json::from_slice(&bytes).map_err(|_| no_message())?)
            }
        },
    }
}

fn no_message() -> Fault {
    Fault::invalid("the answer is no message")
}

fn understand(message: Message<'_>) -> Result<Proposal, Fault> {
    match message.kind.as_deref() {
        Some("message") => {}
        Some("error") => return Err(Fault::refused("an error with status 200", false)),
        _ => return Err(no_message()),
    }
    let claim = message.usage.map(Claim::read).unwrap_or_default();
    let mut draft = Draft { model: message.model, ..Draft::default() };
    for block in message.content {
        take(&mut draft, block)?;
    }
    draft.finish = message.stop_reason.map(|reason| finish(&reason).to_owned());
    if draft.tool_calls.is_empty() && draft.finish.as_deref() == Some("tool_calls") {
        draft.finish = None;
    }
    Ok(Proposal { candidate: draft.into_candidate()?, claim })
}

/// Thinking and whatever else is not for the person is dropped; an action we cannot read is not.
fn take(draft: &mut Draft, block: Block<'_>) -> Result<(), Fault> {
    let arguments = || block.input.map_or("{}", RawValue::get).to_owned();
    match block.kind.as_str() {
        "text" => add_text(draft, &block.text.unwrap_or_default()),
        "tool_use" if block.name.as_deref() == Some(REPLY_TOOL) => add_text(draft, &arguments()),
        "tool_use" => {
            let at = draft.tool_calls.len();
            if at == CALLS_MAX {
                return Err(Fault::invalid("the reply calls too many tools"));
            }
            let arguments = arguments();
            draft.tool_calls.push(named(at, block.id, block.name, arguments)?);
        }
        other if other.ends_with("tool_use") => {
            return Err(Fault::invalid("the reply uses a tool that nobody offered"));
        }
        _ => {}
    }
    Ok(())
}

fn add_text(draft: &mut Draft, text: &str) {
    draft.text.get_or_insert_default().push_str(text);
}

/// Why it stopped, in the words of OpenAI's protocol.
fn finish(reason: &str) -> &str {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        _ => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Candidate, FinishReason, ToolCall};
    use serde_json::{Value, json};

    fn read(message: &Value) -> Result<Candidate, Fault> {
        read_reply(message.to_string().as_bytes()).map(|proposal| proposal.candidate)
    }

    fn message(content: &Value, stop_reason: &str) -> Value {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
            "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 2},
        })
    }

    #[test]
    fn text_and_tools_come_back_and_thinking_does_not() {
        let content = json!([
            {"type": "thinking", "thinking": "secret", "signature": "x"},
            {"type": "text", "text": "Let me "},
            {"type": "text", "text": "look."},
            {"type": "tool_use", "id": "t1", "name": "forecast", "input": {"city": "Oslo"}},
        ]);
        let candidate = read(&message(&content, "tool_use")).unwrap();
        assert_eq!(candidate.text, "Let me look.");
        assert_eq!(candidate.model, "claude-x");
        assert_eq!(candidate.finish, FinishReason::ToolCalls);
        let call = ToolCall {
            id: "t1".into(),
            name: "forecast".into(),
            arguments: r#"{"city":"Oslo"}"#.into(),
        };
        assert_eq!(candidate.tool_calls, [call]);
    }

    #[test]
    fn every_way_to_stop_is_known() {
        let content = json!([{"type": "text", "text": "so"}]);
        for (reason, expected) in [
            ("end_turn", FinishReason::Stop),
            ("stop_sequence", FinishReason::Stop),
            ("pause_turn", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("refusal", FinishReason::ContentFilter),
        ] {
            assert_eq!(read(&message(&content, reason)).unwrap().finish, expected, "{reason}");
        }
        let withheld = read(&message(&json!([]), "refusal")).unwrap_err();
        assert!(withheld.is_conclusive, "a refusal is not taken to another model");
    }

    #[test]
    fn a_reply_that_had_to_fit_a_schema_is_text() {
        let content = json!([
            {"type": "tool_use", "id": "t", "name": REPLY_TOOL, "input": {"a": 1}},
        ]);
        let candidate = read(&message(&content, "tool_use")).unwrap();
        assert_eq!((candidate.text.as_str(), candidate.finish), (r#"{"a":1}"#, FinishReason::Stop));
        assert!(candidate.tool_calls.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_no_reply() {
        let many: Vec<_> = (0..200)
            .map(|_| json!({"type": "tool_use", "id": "t", "name": "f", "input": {}}))
            .collect();
        for odd in [
            json!({}),
            json!([]),
            json!({"type": "error", "error": {"type": "overloaded_error"}}),
            json!({"type": "completion", "completion": "hi"}),
            message(&json!([]), "end_turn"),
            message(&json!("text"), "end_turn"),
            message(&json!([{"text": "hi"}]), "end_turn"),
            message(&json!([{"type": "thinking", "thinking": "x"}]), "end_turn"),
            message(&json!([{"type": "tool_use", "id": "t"}]), "tool_use"),
            message(&json!([{"type": "server_tool_use", "id": "t", "name": "f"}]), "tool_use"),
            message(&json!(many), "tool_use"),
        ] {
            assert!(read(&odd).is_err(), "{odd}");
        }
        assert!(read_reply(b"\xff\xfe").is_err());
    }
}
