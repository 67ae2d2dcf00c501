//! What a verifier elsewhere is shown of a case.
//!
//! **Invariant:** the tenant's instructions are not shown to anybody.
//!
//! **Invariant:** a reply is shown whole or not at all: half a reply that looks harmless proves nothing.

use conclave_core::{Candidate, Role};
use conclave_engine::{Case, VerifierError};
use serde_json::{Value, json};

/// The longest reply that is sent to a verifier.
const REPLY_BYTES_MAX: usize = 256 * 1024;
/// How many of the last messages are shown.
const MESSAGES_MAX: usize = 8;
/// How much of each is shown: its end, because there it says what is wanted.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// The reply: what it says and what it would do.
pub(super) fn reply(candidate: &Candidate) -> Result<Value, VerifierError> {
    let calls = candidate.tool_calls.iter();
    let bytes = candidate.text.len()
        + calls.clone().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
    if bytes > REPLY_BYTES_MAX {
        return Err(VerifierError(format!("the reply has more than {REPLY_BYTES_MAX} bytes")));
    }
    let calls: Vec<_> =
        calls.map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
    Ok(json!({"text": candidate.text, "tool_calls": calls}))
}

/// The reply as one text, its tool calls in words of their own.
pub(super) fn reply_text(candidate: &Candidate) -> Result<String, VerifierError> {
    reply(candidate)?;
    let calls = candidate.tool_calls.iter();
    let calls = calls.map(|call| format!("[calls {} with {}]", call.name, call.arguments));
    let said = Some(candidate.text.clone()).filter(|text| !text.is_empty());
    Ok(said.into_iter().chain(calls).collect::<Vec<_>>().join("\n"))
}

/// The last messages of the conversation.
pub(super) fn conversation(case: &Case) -> Value {
    let told: Vec<_> =
        case.conversation.iter().filter(|message| !message.role.is_tenant()).collect();
    let last = told.iter().skip(told.len().saturating_sub(MESSAGES_MAX));
    last.map(|message| {
        let role = if message.role == Role::Tool { "tool" } else { message.role.as_str() };
        json!({"role": role, "content": end_of(&message.content.as_text())})
    })
    .collect()
}

/// The end of a text, if it is long.
pub(super) fn end_of(text: &str) -> &str {
    let first = text.char_indices().rev().nth(MESSAGE_CHARS_MAX - 1);
    first.and_then(|(at, _)| text.get(at..)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_shown_by_its_end() {
        assert_eq!(end_of("short"), "short");
        let long = format!("{}終わり", "あ".repeat(MESSAGE_CHARS_MAX));
        assert_eq!(end_of(&long).chars().count(), MESSAGE_CHARS_MAX);
        assert!(end_of(&long).ends_with("終わり"));
    }

    #[test]
    fn a_reply_is_shown_whole_or_not_at_all() {
        let text = "a".repeat(REPLY_BYTES_MAX);
        let fits = Candidate { text: text.clone(), ..Candidate::default() };
        assert_eq!(reply(&fits).unwrap()["text"], text.as_str());
        let longer = Candidate { text: text + "a", ..Candidate::default() };
        assert!(reply(&longer).is_err());
    }
}
