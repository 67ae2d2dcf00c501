//! Chat requests as they are read, and choices as they are worded.

use super::*;
use crate::error::Envelope;
use conclave_engine::Delivered;

fn parse(value: Value) -> Result<ChatRequest, ApiError> {
    ChatRequest::parse(value)
}

#[test]
fn a_request_is_taken_whole_and_what_is_ours_goes_no_further() {
    let request = parse(json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "n": 2,
        "messages": [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"},
                {"type": "image_url", "image_url": {"url": "data:"}}]},
            {"role": "assistant", "content": null, "tool_calls": []},
        ],
        "metadata": {"conclave_mode": "normal", "team": "blue"},
        "seed": 7, "unheard_of": {"kept": true},
    }))
    .unwrap();
    assert!(request.include_usage);
    let request = request.inquiry;
    assert_eq!((request.model.as_str(), request.choices), ("m", 2));
    assert!(request.stream && !request.structured);
    assert_eq!(request.conversation[1].content.as_text(), "Hello");
    assert_eq!(request.body["metadata"], json!({"team": "blue"}));
    assert_eq!(request.body["unheard_of"], json!({"kept": true}));
    assert_eq!(request.metadata.unwrap()["conclave_mode"], "normal");
}

#[test]
fn every_wrong_shape_names_its_place() {
    let message = |m: Value| json!({"model": "m", "messages": [m]});
    let part = |part: Value| message(json!({"role": "user", "content": [part]}));
    let cases = [
        (json!([]), ""),
        (json!({"messages": [{"role": "user", "content": "x"}]}), "model"),
        (json!({"model": 3, "messages": [{"role": "user", "content": "x"}]}), "model"),
        (json!({"model": "m"}), "messages"),
        (json!({"model": "m", "messages": []}), "messages"),
        (json!({"model": "m", "messages": "hello"}), "messages"),
        (message(json!("hello")), "messages[0]"),
        (message(json!({"content": "x"})), "messages[0].role"),
        (message(json!({"role": "robot", "content": "x"})), "messages[0].role"),
        (message(json!({"role": "user"})), "messages[0].content"),
        (message(json!({"role": "user", "content": {"a": 1}})), "messages[0].content"),
        (message(json!({"role": "user", "content": ["x"]})), "messages[0].content[0]"),
        (part(json!({"type": "thinking", "thinking": "x"})), "messages[0].content[0]"),
        (part(json!({"type": "document", "text": "x"})), "messages[0].content[0]"),
        (part(json!({"type": "Text", "text": "x"})), "messages[0].content[0]"),
        (
            part(json!({"type": "image_url", "image_url": {"url": "data:"}, "text": "x"})),
            "messages[0].content[0]",
        ),
        (
            json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
            "stream": "true"}),
            "stream",
        ),
        (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 0}), "n"),
        (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 1.5}), "n"),
    ];
    for (body, place) in cases {
        let error = parse(body.clone()).unwrap_err().body(Envelope::OpenAi);
        assert_eq!(error["error"]["param"].as_str().unwrap_or(""), place, "{body}");
    }
}

fn choice(outcome: Outcome, text: &str) -> Choice {
    let delivered = Delivered { text: text.to_owned(), ..Delivered::default() };
    Choice::undeliberated(outcome, delivered)
}

#[test]
fn a_choice_that_no_model_gave_does_not_look_like_an_empty_one() {
    let failed = choice(Outcome::Failed, "");
    let said = reply_message(&failed, false);
    assert_eq!((&said["content"], &said["refusal"]), (&Value::Null, &json!(UNANSWERED)));
    assert_eq!(finish_reason(&failed), "content_filter");
    let given = choice(Outcome::Delivered, "Yes.");
    assert_eq!(reply_message(&given, false)["content"], "Yes.");
    assert_eq!(finish_reason(&given), given.delivered.finish.as_str());
    let streamed = ChatDialect::default().unsent_delta(&failed, 0);
    assert_eq!(streamed["refusal"], UNANSWERED);
}
