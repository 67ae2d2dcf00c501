//! Requests of the responses interface in chat form, and what is refused.

use super::*;
use crate::error::Envelope;
use conclave_core::{Role, ToolCall};

fn inquire(document: Value, earlier: Option<EarlierResponse>) -> Result<Inquiry, ApiError> {
    Ok(ResponsesRequest::parse(document)?.inquire(earlier)?.inquiry)
}

#[test]
fn items_become_chat_form_and_what_is_judged_is_what_is_passed() {
    let inquiry = inquire(
        json!({
            "model": "m", "instructions": "Be kind.", "max_output_tokens": 50, "unheard_of": 1,
            "reasoning": {"effort": "low"}, "safety_identifier": "ana",
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "tools": [{"type": "function", "name": "look", "parameters": {}, "strict": true}],
            "tool_choice": {"type": "function", "name": "look"},
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Hello"},
                    {"type": "input_image", "image_url": "data:x"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "a cat"},
            ],
        }),
        None,
    )
    .unwrap();
    let body = &inquiry.body;
    assert!(inquiry.structured && inquiry.kept.is_some());
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Be kind."}));
    assert_eq!(body["messages"][1]["content"][1]["image_url"]["url"], "data:x");
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["name"], "look");
    assert_eq!(body["messages"][3]["content"], "a cat");
    assert_eq!(body["tools"][0]["function"]["strict"], true);
    assert_eq!(body["tool_choice"]["function"]["name"], "look");
    assert_eq!(body["response_format"]["json_schema"]["name"], "n");
    assert_eq!((&body["max_completion_tokens"], &body["unheard_of"]), (&json!(50), &json!(1)));
    assert_eq!(body["reasoning_effort"], "low");
    assert!(!body.contains_key("input") && !body.contains_key("text"));
    let roles: Vec<_> = inquiry.conversation.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
    let kept = inquiry.kept.unwrap();
    assert_eq!(kept["messages"].as_array().unwrap().len(), 3, "instructions are not carried on");
}

#[test]
fn a_conversation_goes_on_with_what_was_delivered() {
    let call = ToolCall { id: "c".into(), name: "look".into(), arguments: "{}".into() };
    let earlier = EarlierResponse {
        messages: vec![json!({"role": "user", "content": "First"})],
        delivered: Delivered {
            text: "Answer".into(),
            tool_calls: vec![call],
            ..Delivered::default()
        },
        session: Some(SessionId::new("s").unwrap()),
    };
    let inquiry = inquire(json!({"model": "m", "input": "Second"}), Some(earlier)).unwrap();
    let said: Vec<_> = inquiry.conversation.iter().map(|m| m.content.as_text()).collect();
    assert_eq!(said, ["First", "Answer", "Second"]);
    assert_eq!(inquiry.body["messages"][1]["tool_calls"][0]["id"], "c");
    assert_eq!(inquiry.session.unwrap().as_str(), "s");
    let forgotten = inquire(json!({"model": "m", "input": "x", "store": false}), None).unwrap();
    assert_eq!(forgotten.kept, None);
}

#[test]
fn every_wrong_shape_names_its_place() {
    let with = |name: &str, value: Value| json!({"model": "m", "input": "x", name: value});
    for (body, place) in [
        (json!({"input": "x"}), "model"),
        (json!({"model": "m"}), "input"),
        (json!({"model": "m", "input": []}), "input"),
        (with("input", json!(7)), "input"),
        (with("input", json!([{"content": "x"}])), "input[0].role"),
        (with("input", json!([{"role": "robot", "content": "x"}])), "messages[0].role"),
        (with("input", json!([{"role": "user"}])), "input[0].content"),
        (with("input", json!([{"type": "item_reference", "id": "x"}])), "input[0]"),
        (
            with("input", json!([{"role": "user", "content": [{"type": "x"}]}])),
            "input[0].content[0]",
        ),
        (
            with("input", json!([{"type": "function_call_output", "call_id": "c"}])),
            "input[0].output",
        ),
        (with("tools", json!([{"type": "mcp", "server_url": "http://x"}])), "tools[0]"),
        (with("background", json!(true)), "background"),
        (with("prompt", json!({"id": "p"})), "prompt"),
        (with("stream", json!("true")), "stream"),
        (with("instructions", json!(7)), "instructions"),
        (with("conversation", json!({})), "conversation"),
        (with("previous_response_id", json!(7)), "previous_response_id"),
    ] {
        let error = inquire(body.clone(), None).unwrap_err().body(Envelope::OpenAi);
        assert_eq!(error["error"]["param"], place, "{body}");
    }
}
