//! Streams of Anthropic's, whole, cut anywhere, and wrong.

use super::*;
use conclave_core::{Candidate, FinishReason};
use serde_json::json;

fn events(events: &[Value]) -> Vec<u8> {
    let write = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or("x");
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(write).collect::<String>().into_bytes()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 25, "output_tokens": 1},
    }})
}

fn block(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn text(index: u64, text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn arguments(index: u64, json: &str) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": json});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
               "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn whole() -> Vec<Value> {
    let mut all = vec![
        start(),
        json!({"type": "ping"}),
        block(0, &json!({"type": "thinking", "thinking": ""})),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "thinking_delta", "thinking": "secret"}}),
        json!({"type": "content_block_stop", "index": 0}),
        block(1, &json!({"type": "text", "text": ""})),
        text(1, "Let me "),
        text(1, "lo\u{f6}k."),
        block(2, &json!({"type": "tool_use", "id": "t1", "name": "forecast", "input": {}})),
        arguments(2, ""),
        arguments(2, "{\"city\":"),
        arguments(2, "\"Oslo\"}"),
        json!({"type": "content_block_stop", "index": 2}),
    ];
    all.extend(end("tool_use"));
    all
}

/// What is handed on, and what comes out in the end.
fn read(bytes: &[u8], piece: usize) -> (String, Result<Candidate, Fault>) {
    let mut stream = Box::new(MessageStream::default());
    let mut handed = String::new();
    for piece in bytes.chunks(piece) {
        if let Err(fault) = stream.feed(piece) {
            return (handed, Err(fault));
        }
        handed.push_str(&stream.fresh_text().unwrap_or_default());
    }
    (handed, stream.finish().map(|proposal| proposal.candidate))
}

#[test]
fn wherever_it_is_cut_the_same_reply_comes_out() {
    let bytes = events(&whole());
    for piece in [1, 2, 3, 7, 64, 10_000] {
        let (handed, candidate) = read(&bytes, piece);
        let candidate = candidate.unwrap();
        assert_eq!(
            (handed.as_str(), candidate.text.as_str()),
            ("Let me lo\u{f6}k.", "Let me lo\u{f6}k.")
        );
        assert_eq!(
            (candidate.model.as_str(), candidate.finish),
            ("claude-x", FinishReason::ToolCalls)
        );
        let [call] = &candidate.tool_calls[..] else { panic!("one call") };
        assert_eq!((call.id.as_str(), call.arguments.as_str()), ("t1", r#"{"city":"Oslo"}"#));
    }
}

#[test]
fn what_is_counted_last_counts() {
    let mut stream = Box::new(MessageStream::default());
    assert!(stream.feed(&events(&whole())).unwrap());
    assert_eq!(stream.usage["input_tokens"], 25);
    assert_eq!(stream.usage["output_tokens"], 15);
}

#[test]
fn a_reply_that_had_to_fit_a_schema_is_text_and_is_not_handed_on() {
    let mut all = vec![
        start(),
        block(0, &json!({"type": "tool_use", "id": "t", "name": REPLY_TOOL, "input": {}})),
        arguments(0, "{\"a\":1}"),
        block(1, &json!({"type": "text", "text": ""})),
        text(1, " more"),
    ];
    all.extend(end("tool_use"));
    let (handed, candidate) = read(&events(&all), 9);
    assert_eq!((handed.as_str(), candidate.unwrap().text.as_str()), ("", "{\"a\":1} more"));
}

#[test]
fn half_a_reply_is_none() {
    let all = whole();
    for kept in 0..all.len() - 2 {
        let (_, candidate) = read(&events(&all[..kept]), 50);
        assert!(candidate.is_err(), "after {kept} events");
    }
    // A connection that breaks after the reason to stop takes nothing away.
    let (_, candidate) = read(&events(&all[..all.len() - 1]), 50);
    assert!(candidate.is_ok());
}

#[test]
fn what_is_not_understood_is_no_reply() {
    let said = || block(0, &json!({"type": "text", "text": "So"}));
    for odd in [
        vec![start(), json!({"type": "error", "error": {"type": "overloaded_error"}})],
        vec![start(), text(0, "to nothing")],
        vec![start(), said(), text(1, "to another")],
        vec![start(), said(), said()],
        vec![start(), json!({"type": "content_block_start", "index": 0})],
        vec![start(), block(0, &json!({"type": "server_tool_use", "id": "t", "name": "f"}))],
        vec![
            start(),
            block(0, &json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
            arguments(0, "{\"city\": "),
        ],
        vec![json!({"no": "type"})],
    ] {
        let mut all = odd;
        all.extend(end("end_turn"));
        let (_, candidate) = read(&events(&all), 40);
        assert!(candidate.is_err(), "{all:?}");
    }
    assert!(read(b"data: \xff\xfe\n\n", 5).1.is_err());
    let many: Vec<_> = (0..2_000).map(|at| block(at, &json!({"type": "text"}))).collect();
    assert!(read(&events(&many), 4_096).1.is_err());
}

#[test]
fn half_a_letter_in_an_event_does_not_end_the_stream() {
    let mut bytes = events(&[start(), block(0, &json!({"type": "text", "text": ""}))]);
    bytes.extend_from_slice(
        br#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
    );
    bytes.extend_from_slice(b"\n\n");
    bytes.extend(events(&end("end_turn")));
    let (handed, candidate) = read(&bytes, 10_000);
    assert_eq!((handed.as_str(), candidate.unwrap().text.as_str()), ("a\u{fffd}", "a\u{fffd}"));
}
