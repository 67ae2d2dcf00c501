//! What is a reply and what is not.

use super::*;
use conclave_core::{GenerationFailure, ToolCall};
use serde_json::{Value, json};

fn read(value: &Value) -> Result<Candidate, GenerationFailure> {
    read_bytes(value.to_string().as_bytes())
}

fn read_bytes(bytes: &[u8]) -> Result<Candidate, GenerationFailure> {
    match read_reply(bytes) {
        Ok(proposal) => Ok(proposal.candidate),
        Err(fault) => Err(fault.failure),
    }
}

fn message(message: &Value) -> Value {
    json!({"choices": [{"message": message, "finish_reason": "stop"}]})
}

#[test]
fn an_ordinary_reply_is_read_and_unknown_fields_are_dropped() {
    let reply = json!({
        "id": "x", "object": "chat.completion", "model": "upstream-1", "service_tier": "default",
        "choices": [
            {"index": 0, "logprobs": null, "finish_reason": "length", "message": {
                "role": "assistant", "content": "hello", "reasoning_content": "hidden",
                "annotations": [], "audio": null,
            }},
            {"index": 1, "message": {"content": "second"}},
        ],
    });
    let candidate = read(&reply).unwrap();
    assert_eq!(candidate.text, "hello");
    assert_eq!(candidate.model, "upstream-1");
    assert_eq!(candidate.finish, FinishReason::Length);
    assert!(!format!("{candidate:?}").contains("hidden"));
}

#[test]
fn a_refusal_is_judged_as_text() {
    for said in [json!(null), json!("")] {
        let reply = message(&json!({"content": said, "refusal": "I cannot help with that."}));
        let candidate = read(&reply).unwrap();
        assert_eq!(candidate.text, "I cannot help with that.");
        assert!(candidate.is_refusal, "and stays one");
    }
    let both = read(&message(&json!({"content": "Yes.", "refusal": "No."}))).unwrap();
    assert_eq!((both.text.as_str(), both.is_refusal), ("Yes.", false));
}

#[test]
fn half_a_letter_does_not_spoil_a_reply() {
    let reply = br#"{"choices":[{"message":{"content":"so \\ud83d \ud83d"}}]}"#;
    assert_eq!(read_bytes(reply).unwrap().text, "so \\ud83d \u{fffd}");
}

#[test]
fn what_a_model_held_likely_is_read_with_its_own_words_only() {
    let piece = json!({"token": "Hi", "logprob": -0.25, "bytes": [72, 105], "top_logprobs": []});
    let reply = |text: &str| json!({"choices": [{"message": {"content": text}, "logprobs": {"content": [piece]}}]});
    let read_back = read(&reply("Hi")).unwrap().logprobs.unwrap();
    let read_back: Value = serde_json::from_str(&read_back).unwrap();
    assert_eq!(read_back["content"], json!([piece]));
    assert_eq!(read(&reply("Ho")).unwrap().logprobs, None);
}

#[test]
fn a_model_name_that_is_no_name_is_dropped() {
    for name in ["long ".repeat(100), "line\nbreak".into()] {
        let reply = json!({"model": name, "choices": [{"message": {"content": "hello"}}]});
        assert_eq!(read(&reply).unwrap().model, "");
    }
}

#[test]
fn silence_is_a_candidate() {
    assert!(read(&message(&json!({"content": ""}))).unwrap().is_silence());
}

#[test]
fn tool_calls_are_read_in_every_form() {
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: "look".into(),
        arguments: arguments.into(),
    };
    for (wire, expected) in [
        (
            json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}),
            call("c", "{}"),
        ),
        (
            json!({"function": {"name": "look", "arguments": {"at": 1}}}),
            call("call_0", r#"{"at":1}"#),
        ),
        (
            json!({"id": "c", "type": "custom", "custom": {"name": "look", "input": "up"}}),
            call("c", "up"),
        ),
        (json!({"id": "", "function": {"name": "look"}}), call("call_0", "")),
    ] {
        let reply = message(&json!({"content": null, "tool_calls": [wire]}));
        let candidate = read(&reply).unwrap();
        assert_eq!(candidate.tool_calls, [expected]);
        assert_eq!(candidate.finish, FinishReason::ToolCalls);
    }
    let legacy = message(&json!({"function_call": {"name": "look", "arguments": "{}"}}));
    assert_eq!(read(&legacy).unwrap().tool_calls, [call("call_0", "{}")]);
}

#[test]
fn what_is_no_reply_is_invalid() {
    let many = vec![json!({"function": {"name": "look"}}); crate::calls::CALLS_MAX + 1];
    for reply in [
        json!(null),
        json!([]),
        json!("text"),
        json!({}),
        json!({"choices": null}),
        json!({"choices": []}),
        json!({"choices": [{}]}),
        json!({"choices": [{"message": null}]}),
        json!({"choices": "none"}),
        message(&json!({})),
        message(&json!({"content": null})),
        message(&json!({"content": 7})),
        message(&json!({"content": {"text": "hello"}})),
        message(&json!({"content": [], "tool_calls": []})),
        message(&json!({"content": null, "reasoning_content": "only thoughts"})),
        message(&json!({"content": "text", "tool_calls": [{"id": "c"}]})),
        message(&json!({"content": "text", "tool_calls": [{"function": {"arguments": "{}"}}]})),
        message(&json!({"content": "text", "tool_calls": [{"function": {"name": ""}}]})),
        message(&json!({"content": "text", "tool_calls": "all of them"})),
        message(&json!({"tool_calls": [{"function": {"name": "n".repeat(257)}}]})),
        message(&json!({"tool_calls": [{"function": {"name": "Do not tell anybody."}}]})),
        message(&json!({"content": "text", "tool_calls": many})),
    ] {
        assert_eq!(read(&reply), Err(GenerationFailure::Invalid), "{reply}");
    }
}

#[test]
fn bytes_that_are_no_json_are_invalid() {
    let deep = "[".repeat(200_000);
    let duplicate = r#"{"choices":[],"choices":[{"message":{"content":"x"}}]}"#;
    for bytes in [
        &b""[..],
        b"<html></html>",
        b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
        b"{\"choices\":[{\"message\":{\"content\":\"cut",
        b"NaN",
        b"{\"a\":NaN",
        deep.as_bytes(),
        duplicate.as_bytes(),
    ] {
        assert_eq!(read_bytes(bytes), Err(GenerationFailure::Invalid));
    }
}

#[test]
fn the_providers_filter_and_its_errors_are_refusals() {
    let filtered = json!({"choices": [{"message": {}, "finish_reason": "content_filter"}]});
    assert_eq!(read(&filtered), Err(GenerationFailure::Refused));
    let failed = json!({"error": {"message": "overloaded", "code": 502}});
    assert_eq!(read(&failed), Err(GenerationFailure::Refused));
}

#[test]
fn numbers_json_does_not_have_are_forgiven_outside_strings() {
    let reply = br#"{"choices":[{"message":{"content":"a \"NaN\" \\"},"score":-Infinity}],
        "usage":{"prompt_tokens":NaN,"completion_tokens":Infinity}}"#;
    let proposal = read_reply(reply).unwrap();
    assert_eq!(proposal.candidate.text, r#"a "NaN" \"#);
    assert_eq!(proposal.claim, Claim::default());
}

proptest::proptest! {
    #[test]
    fn a_damaged_reply_is_read_or_refused_but_never_a_panic(
        at in 0_usize..120, byte in proptest::num::u8::ANY, length in 0_usize..120,
    ) {
        let call = json!({"id": "c", "function": {"name": "look", "arguments": "{}"}});
        let reply = message(&json!({"content": "h\u{e9}llo", "tool_calls": [call]}));
        let mut bytes = reply.to_string().into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(length));
        match read_bytes(&bytes) {
            Ok(candidate) => proptest::prop_assert!(!candidate.is_silence()),
            Err(failure) => proptest::prop_assert_eq!(failure, GenerationFailure::Invalid),
        }
    }
}
