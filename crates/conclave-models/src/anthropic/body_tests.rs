//! What is sent to Anthropic and what is not.

use super::*;
use crate::fixture::request_with;
use conclave_core::Message;

fn try_sent(request: &ModelRequest) -> Result<Value, Fault> {
    body(request, ("claude", false), 1024, request.temperature)
        .map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

fn sent(from: &Value) -> Value {
    try_sent(&request_with(from, &[])).unwrap()
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_plain_request_has_all_that_is_needed_and_nothing_else() {
    let mut request = request_with(
        &json!({
            "model": "visible", "user": "ana", "n": 2, "stream": true, "api_base": "http://evil",
            "base_url": "http://evil", "extra_body": {"system": "evil"}, "seed": 7,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
                {"role": "user", "content": "hi"},
            ],
        }),
        &[],
    );
    request.guidance = Some("Ask first.".into());
    assert_eq!(
        try_sent(&request).unwrap(),
        json!({
            "model": "claude", "max_tokens": 1024, "system": "Be brief.\n\nBe kind.\n\nAsk first.",
            "messages": [said("user", "hi")],
        })
    );
}

#[test]
fn sampling_is_translated_within_its_bounds() {
    let request = |more: Value| {
        let mut from = json!({"messages": [{"role": "user", "content": "hi"}]});
        from.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        from
    };
    for (from, field, expected) in [
        (json!({"temperature": 1.7}), "temperature", json!(1.0)),
        (json!({"temperature": 0}), "temperature", json!(0.0)),
        (json!({"temperature": null}), "temperature", json!(null)),
        (json!({"top_p": 0.5}), "top_p", json!(0.5)),
        (json!({"top_p": "much"}), "top_p", json!(null)),
        (json!({"stop": "END"}), "stop_sequences", json!(["END"])),
        (json!({"stop": ["a", "\n", 7]}), "stop_sequences", json!(["a"])),
        (json!({"max_tokens": 7}), "max_tokens", json!(7)),
        (json!({"max_completion_tokens": 9, "max_tokens": 7}), "max_tokens", json!(9)),
        (json!({"max_tokens": 0}), "max_tokens", json!(1024)),
    ] {
        assert_eq!(sent(&request(from.clone()))[field], expected, "{from}");
    }
    let mut retried = request_with(&request(json!({})), &[]);
    retried.temperature = Some(0.5);
    assert_eq!(try_sent(&retried).unwrap()["temperature"], json!(0.5));
}

#[test]
fn tools_their_calls_and_their_results_are_translated() {
    let to = sent(&json!({
        "messages": [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "t1", "type": "function",
                 "function": {"name": "forecast", "arguments": "{\"city\":\"Oslo\"}"}},
                {"id": "t2", "type": "function", "function": {"name": "now", "arguments": "odd"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "rain"},
            {"role": "tool", "tool_call_id": "t2", "content": ""},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "forecast", "description": "Tells", "parameters": {"type": "object"}}}],
        "tool_choice": "required", "parallel_tool_calls": false,
    }));
    assert_eq!(
        to["tools"],
        json!([{"name": "forecast", "description": "Tells", "input_schema": {"type": "object"}}])
    );
    assert_eq!(to["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    assert_eq!(
        to["messages"][1]["content"],
        json!([
            {"type": "tool_use", "id": "t1", "name": "forecast", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
        ])
    );
    assert_eq!(
        to["messages"][2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1",
             "content": [{"type": "text", "text": "rain"}]},
            {"type": "tool_result", "tool_use_id": "t2", "content": []},
            {"type": "text", "text": "thanks"},
        ]})
    );
}

#[test]
fn the_older_form_of_functions_is_translated_too() {
    let to = sent(&json!({
        "messages": [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": null,
             "function_call": {"name": "fore cast", "arguments": "{}"}},
            {"role": "function", "name": "fore cast", "content": "rain"},
        ],
        "functions": [{"name": "f"}], "function_call": {"name": "f"},
    }));
    assert_eq!(to["messages"][1]["content"][0]["id"], "function_forecast");
    assert_eq!(to["messages"][2]["content"][0]["tool_use_id"], "function_forecast");
    assert_eq!(to["tool_choice"], json!({"type": "tool", "name": "f"}));
}

#[test]
fn a_conversation_always_begins_with_the_person_and_ends_cleanly() {
    let to = sent(&json!({"messages": [
        {"role": "assistant", "content": "Welcome."},
        {"role": "assistant", "content": "Well? "},
    ]}));
    assert_eq!(to["messages"][0], said("user", OPENING));
    assert_eq!(to["messages"][1]["content"][1]["text"], "Well?");
    assert_eq!(sent(&json!({"messages": []}))["messages"], json!([said("user", OPENING)]));
    let other_form = request_with(&json!({}), &[Message::text(Role::User, "hi")]);
    assert_eq!(try_sent(&other_form).unwrap()["messages"], json!([said("user", "hi")]));
}

#[test]
fn a_schema_becomes_a_forced_tool_or_words() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let mut from = json!({"messages": [{"role": "user", "content": "hi"}]});
    from["response_format"] = format;
    let to = sent(&from);
    assert_eq!(to["tool_choice"], json!({"type": "tool", "name": REPLY_TOOL}));
    assert_eq!(to["tools"][0]["input_schema"], schema);
    from["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    let to = sent(&from);
    assert_eq!(to["tools"].as_array().unwrap().len(), 1);
    assert!(to["system"].as_str().unwrap().contains("JSON Schema"));
    from["response_format"] = json!({"type": "json_object"});
    assert!(sent(&from)["system"].as_str().unwrap().contains("one JSON object"));
}

#[test]
fn what_cannot_be_translated_is_refused() {
    for from in [
        json!({"messages": [{"role": "nobody", "content": "hi"}]}),
        json!({"messages": [{"content": "hi"}]}),
        json!({"messages": [7]}),
        json!({"messages": [{"role": "assistant", "tool_calls": [{}]}]}),
        json!({"messages": [], "tools": [{"type": "web_search"}]}),
    ] {
        assert!(try_sent(&request_with(&from, &[])).unwrap_err().is_conclusive, "{from}");
    }
}

#[test]
fn what_came_by_the_same_interface_is_sent_as_it_came() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let config =
        json!({"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}});
    let from = json!({
        "conclave": {"anthropic": {
            "output_config": config, "metadata": {"user_id": "ana"}, "service_tier": "auto",
            "betas": ["one", "two"], "system": "hidden",
        }},
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        "tools": [{"type": "function", "function": {"name": "look", "strict": true},
            "cache_control": mark}],
        "messages": [
            {"role": "system", "content": [
                {"type": "text", "text": "Be kind.", "cache_control": mark}]},
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark}]},
            {"role": "assistant", "content": "b", "tool_calls": [{"id": "t", "type": "function",
                "function": {"name": "look", "arguments": "{}"}, "cache_control": mark}]},
            {"role": "tool", "tool_call_id": "t", "content": "c", "is_error": true,
                "cache_control": mark},
        ],
    });
    let mut request = request_with(&from, &[]);
    request.guidance = Some("Ask first.".into());
    assert_eq!(betas(&request.body).as_deref(), Some("one,two"));
    assert_eq!(
        try_sent(&request).unwrap(),
        json!({
            "model": "claude", "max_tokens": 1024,
            "output_config": config, "metadata": {"user_id": "ana"}, "service_tier": "auto",
            "system": [
                {"type": "text", "text": "Be kind.", "cache_control": mark},
                {"type": "text", "text": "Ask first."},
            ],
            "tools": [{"name": "look", "strict": true, "cache_control": mark,
                "input_schema": {"type": "object", "properties": {}}}],
            "tool_choice": {"type": "auto"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "b"},
                    {"type": "tool_use", "id": "t", "name": "look", "input": {},
                        "cache_control": mark},
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                    "content": [{"type": "text", "text": "c"}], "is_error": true,
                    "cache_control": mark}]},
            ],
        })
    );
}

#[test]
fn a_schema_is_asked_for_in_the_order_it_was_written_in() {
    let written = r#"{"type":"object","properties":{"why":{},"answer":{},"all":{}}}"#;
    let schema: Value = serde_json::from_str(written).unwrap();
    let from = json!({
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
    });
    assert_eq!(sent(&from)["tools"][0]["input_schema"].to_string(), written);
}
