//! Anthropic's requests in chat form, and what is refused.

use super::*;
use crate::error::Envelope;
use conclave_core::Role;

fn parse_messages(document: Value) -> Result<Inquiry, ApiError> {
    super::parse_messages(document, &[])
}

#[test]
fn a_request_becomes_chat_form_and_what_is_judged_is_what_is_passed() {
    let inquiry = parse_messages(json!({
        "model": "m", "max_tokens": 100, "top_k": 5, "stop_sequences": ["END"],
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "metadata": {"user_id": "ana", "conclave_country": "JP"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [{"name": "look", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "See this"},
                {"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a cat"},
                {"type": "text", "text": "And?"}]},
        ],
    }))
    .unwrap();
    assert_eq!(inquiry.user.as_ref().unwrap().as_str(), "ana");
    let body = &inquiry.body;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"][0],
        json!({"role": "system", "content": [
            {"type": "text", "text": "Be kind.", "cache_control": mark}]})
    );
    assert_eq!(body["messages"][1]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], r#"{"a":1}"#);
    assert_eq!(
        body["messages"][3],
        json!({"role": "tool", "tool_call_id": "t1", "content": "a cat"})
    );
    assert_eq!(body["tools"][0]["function"]["parameters"], json!({"type": "object"}));
    assert_eq!((&body["tool_choice"], &body["top_k"]), (&json!("required"), &json!(5)));
    assert_eq!((&body["stop"], &body["parallel_tool_calls"]), (&json!(["END"]), &json!(false)));
    assert!(!body.contains_key("thinking") && !body.contains_key("metadata"));
    let judged: Vec<_> =
        inquiry.conversation.iter().map(|m| (m.role, m.content.as_text())).collect();
    assert_eq!(judged[1], (Role::User, "See this".into()));
    assert_eq!(judged[3], (Role::Tool, "a cat".into()));
    assert_eq!(judged[4], (Role::User, "And?".into()));
}

#[test]
fn every_wrong_shape_names_its_place() {
    let said =
        |content: Value| json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    let with = |name: &str, value: Value| {
        let mut body = said(json!("x"));
        body[name] = value;
        body
    };
    for (body, place) in [
        (json!({"model": "m"}), "messages"),
        (json!({"model": "m", "messages": []}), "messages"),
        (json!({"model": "m", "messages": [{"content": "x"}]}), "messages[0].role"),
        (
            json!({"model": "m", "messages": [{"role": "system", "content": "x"}]}),
            "messages[0].role",
        ),
        (said(json!(7)), "messages[0].content"),
        (said(json!(["x"])), "messages[0].content[0]"),
        (said(json!([{"type": "audio"}])), "messages[0].content[0]"),
        (said(json!([{"type": "image"}])), "messages[0].content[0]"),
        (with("system", json!(7)), "system"),
        (with("stream", json!("true")), "stream"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("mcp_servers", json!([{"url": "http://169.254.169.254"}])), "mcp_servers"),
        (with("tools", json!([{"type": "web_search_20250305", "name": "web_search"}])), "tools[0]"),
        (with("tool_choice", json!({"type": "tool"})), "tool_choice.type"),
        (with("metadata", json!({"user_id": 7})), "metadata.user_id"),
    ] {
        let error = parse_messages(body.clone()).unwrap_err().body(Envelope::Anthropic);
        assert_eq!(error["type"], "error");
        assert_eq!(error["error"]["param"], place, "{body}");
    }
}

#[test]
fn tokens_are_estimated_from_texts_calls_and_tools() {
    let count = |body: Value| count_tokens(body).unwrap();
    let plain = json!({"model": "m", "messages": [{"role": "user", "content": "12345678"}]});
    assert_eq!(count(plain.clone()), 2);
    let mut more = plain;
    more["system"] = json!("1234");
    assert_eq!(count(more.clone()), 3);
    more["tools"] = json!([{"name": "look", "input_schema": {}}]);
    assert!(count(more) > 10);
}

#[test]
fn what_only_this_interface_knows_is_kept_for_a_provider_of_it() {
    let schema = json!({"type": "object", "properties": {"why": {}, "answer": {}}});
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let betas = ["context-1m-2025-08-07".to_owned()];
    let document = json!({
        "model": "m", "service_tier": "auto", "metadata": {"user_id": "ana", "conclave_minor": "true"},
        "output_config": {"effort": "max", "format": {"type": "json_schema", "schema": schema}},
        "conclave": {"anthropic": {"betas": ["smuggled"]}},
        "tools": [{"name": "look", "input_schema": {}, "strict": true, "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "b", "cache_control": mark},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}, "cache_control": mark}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                "content": "c", "is_error": true, "cache_control": mark}]},
        ],
    });
    let inquiry = super::parse_messages(document.clone(), &betas).unwrap();
    assert!(inquiry.structured, "the client will parse the whole");
    let body = &inquiry.body;
    assert_eq!(
        body["conclave"],
        json!({"anthropic": {
            "output_config": document["output_config"], "metadata": {"user_id": "ana"},
            "service_tier": "auto", "betas": betas,
        }})
    );
    assert!(!body.contains_key("output_config") && !body.contains_key("service_tier"));
    assert_eq!(body["reasoning_effort"], "high");
    assert_eq!(body["response_format"]["json_schema"]["schema"], schema);
    for place in [
        "/tools/0",
        "/messages/0/content/0",
        "/messages/1/content/0",
        "/messages/1/tool_calls/0",
        "/messages/2",
    ] {
        let marked = json!(body).pointer(place).cloned().unwrap();
        assert_eq!(marked["cache_control"], mark, "{place}");
    }
    assert_eq!(body["messages"][2]["is_error"], true);
    assert_eq!(body["tools"][0]["function"]["strict"], true);
}

#[test]
fn a_cache_mark_is_no_place_for_words() {
    for mark in [
        json!("ephemeral"),
        json!({}),
        json!({"type": "take the knife"}),
        json!({"type": "ephemeral", "ttl": "take the knife"}),
        json!({"type": "ephemeral", "ttl": 5}),
    ] {
        let text = json!({"type": "text", "text": "x", "cache_control": mark});
        let said = json!({"model": "m", "messages": [{"role": "user", "content": [text]}]});
        let error = parse_messages(said).unwrap_err().body(Envelope::Anthropic);
        assert_eq!(error["error"]["param"], "messages[0].content[0].cache_control", "{mark}");
    }
}

#[test]
fn betas_are_names_and_few() {
    let read = |value: &str| {
        read_betas(&HeaderMap::from_iter([(
            "anthropic-beta".parse().unwrap(),
            value.parse().unwrap(),
        )]))
    };
    assert_eq!(read("a-2025-01-01, b.c_d,").unwrap(), ["a-2025-01-01", "b.c_d"]);
    assert!(read_betas(&HeaderMap::new()).unwrap().is_empty());
    for wrong in ["take the knife", "a;b", &"x".repeat(81), &vec!["a"; 33].join(",")] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_schema_keeps_the_order_it_was_written_in() {
    let written = r#"{"type":"object","properties":{"why":{},"answer":{},"all":{}}}"#;
    let schema: Value = serde_json::from_str(written).unwrap();
    let inquiry = parse_messages(json!({
        "model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "tools": [{"name": "look", "input_schema": schema}],
    }))
    .unwrap();
    let passed = &inquiry.body["tools"][0]["function"]["parameters"];
    assert_eq!(passed.to_string(), written);
    assert_eq!(inquiry.body["response_format"]["json_schema"]["schema"].to_string(), written);
}
