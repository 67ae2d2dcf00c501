//! Streams, cut anywhere and broken everywhere.

use super::*;
use conclave_core::{Candidate, FinishReason, GenerationFailure, ToolCall};
use conclave_testkit::completion_sse;
use serde_json::{Value, json};

fn read(pieces: &[Vec<u8>]) -> Result<Candidate, GenerationFailure> {
    let mut accumulator = Box::<Accumulator>::default();
    let fed = pieces.iter().try_for_each(|piece| accumulator.feed(piece).map(|_| ()));
    match fed.and_then(|()| accumulator.finish()) {
        Ok(proposal) => Ok(proposal.candidate),
        Err(fault) => Err(fault.failure),
    }
}

fn event(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

fn delta(delta: &Value, finish_reason: Option<&str>) -> Vec<u8> {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}))
}

fn done() -> Vec<u8> {
    b"data: [DONE]\n\n".to_vec()
}

const TEXT: &str = "Longer than one event, with 日本語 and an emoji 🌱 in it.";

#[test]
fn a_stream_gives_the_same_reply_however_it_is_cut() {
    let stream = completion_sse(TEXT).concat();
    for size in 1..64 {
        let pieces: Vec<Vec<u8>> = stream.chunks(size).map(<[u8]>::to_vec).collect();
        let candidate = read(&pieces).unwrap();
        assert_eq!(candidate.text, TEXT, "pieces of {size}");
        assert_eq!(candidate.model, "mock-model");
        assert_eq!(candidate.finish, FinishReason::Stop);
    }
}

#[test]
fn the_usage_of_the_last_event_is_the_claim() {
    let mut accumulator = Box::<Accumulator>::default();
    for piece in completion_sse("hello") {
        accumulator.feed(&piece).unwrap();
    }
    assert_ne!(accumulator.finish().unwrap().claim, Claim::default());
}

#[test]
fn a_stream_must_say_that_it_is_complete() {
    let said = delta(&json!({"content": "hello"}), None);
    let stopped = delta(&json!({}), Some("stop"));
    assert_eq!(read(&[said.clone(), stopped]).unwrap().text, "hello");
    assert_eq!(read(std::slice::from_ref(&said)), Err(GenerationFailure::Invalid));
    assert_eq!(read(&[said, b"data:\n\n".to_vec(), done()]).unwrap().text, "hello");
    assert_eq!(read(&[done()]), Err(GenerationFailure::Invalid));
    assert_eq!(read(&[]), Err(GenerationFailure::Invalid));
}

#[test]
fn nothing_counts_after_done() {
    let pieces = [
        delta(&json!({"content": "said"}), Some("stop")),
        done(),
        delta(&json!({"content": " and more"}), None),
    ];
    assert_eq!(read(&pieces).unwrap().text, "said");
}

fn piece(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
}

#[test]
fn tool_calls_are_put_together_by_index() {
    let pieces = [
        delta(&json!({"tool_calls": [piece(0, Some("a"), Some("look"), "{\"x\"")]}), None),
        delta(&json!({"tool_calls": [piece(1, Some("b"), Some("listen"), "")]}), None),
        delta(
            &json!({"tool_calls": [piece(0, None, None, ":1}"), piece(1, None, None, "{}")]}),
            None,
        ),
        delta(&json!({}), Some("tool_calls")),
        done(),
    ];
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let candidate = read(&pieces).unwrap();
    assert_eq!(candidate.tool_calls, [call("a", "look", "{\"x\":1}"), call("b", "listen", "{}")]);
    assert_eq!(candidate.finish, FinishReason::ToolCalls);
}

#[test]
fn tool_calls_without_an_index_are_told_apart_by_id() {
    let call =
        |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let pieces = [
        delta(&json!({"tool_calls": [call("a", "look")]}), None),
        delta(&json!({"tool_calls": [call("b", "listen")]}), Some("tool_calls")),
    ];
    let names: Vec<String> =
        read(&pieces).unwrap().tool_calls.into_iter().map(|call| call.name).collect();
    assert_eq!(names, ["look", "listen"]);
}

#[test]
fn too_many_tool_calls_are_no_reply() {
    let mut accumulator = Box::<Accumulator>::default();
    let fault = (0..).find_map(|index| {
        let call = delta(&json!({"tool_calls": [piece(index, None, Some("look"), "")]}), None);
        accumulator.feed(&call).err()
    });
    assert_eq!(fault.unwrap().failure, GenerationFailure::Invalid);
    assert_eq!(accumulator.calls.len(), CALLS_MAX);
}

#[test]
fn a_refusal_in_pieces_is_the_text() {
    let pieces = [
        delta(&json!({"refusal": "I cannot "}), None),
        delta(&json!({"refusal": "do that."}), Some("stop")),
    ];
    assert_eq!(read(&pieces).unwrap().text, "I cannot do that.");
}

#[test]
fn other_choices_and_hidden_reasoning_are_dropped() {
    let pieces = [
        event(&json!({"choices": [
            {"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"},
        ]})),
        delta(&json!({"reasoning_content": "hidden"}), None),
        delta(&json!({"content": "this"}), Some("stop")),
    ];
    assert_eq!(read(&pieces).unwrap().text, "this");
}

#[test]
fn errors_and_garbage_in_a_stream_fail_it() {
    let said = delta(&json!({"content": "hello"}), Some("stop"));
    let error = event(&json!({"error": {"message": "overloaded"}}));
    assert_eq!(read(&[said.clone(), error]), Err(GenerationFailure::Refused));
    for garbage in [&b"data: {\n\n"[..], b"data: \xff\xfe\n\n", b"data: 7\n\n"] {
        let pieces = [said.clone(), garbage.to_vec()];
        assert_eq!(read(&pieces), Err(GenerationFailure::Invalid));
    }
}

#[test]
fn half_a_letter_in_an_event_does_not_end_the_stream() {
    let half = br#"data: {"choices":[{"index":0,"delta":{"content":"well \ud83d"}}]}"#;
    let pieces = [
        half.to_vec(),
        b"\n\n".to_vec(),
        delta(&json!({"content": " done"}), Some("stop")),
        done(),
    ];
    assert_eq!(read(&pieces).unwrap().text, "well \u{fffd} done");
    assert_eq!(read(&[b"data: {\"choices\": [\n\n".to_vec()]), Err(GenerationFailure::Invalid));
}

#[test]
fn a_refusal_in_pieces_stays_one() {
    let pieces = [
        delta(&json!({"refusal": "I can"}), None),
        delta(&json!({"refusal": "not."}), Some("stop")),
        done(),
    ];
    let candidate = read(&pieces).unwrap();
    assert_eq!((candidate.text.as_str(), candidate.is_refusal), ("I cannot.", true));
}
