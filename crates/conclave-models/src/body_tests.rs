//! What is sent and what is not.

use super::*;
use crate::fixture::request_with;
use conclave_core::Message;

fn sent(request: &ModelRequest) -> Value {
    sent_with(request, Some("upstream"), false, request.temperature)
}

fn sent_with(
    request: &ModelRequest,
    model: Option<&str>,
    stream: bool,
    temperature: Option<f32>,
) -> Value {
    let body = UpstreamBody { request, model, stream, temperature, is_reasoning: false };
    serde_json::from_str(&serde_json::to_string(&body).unwrap()).unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn unknown_fields_pass_and_routing_fields_do_not() {
    let body = json!({
        "model": "visible", "messages": [user("hi")], "max_tokens": 5, "tools": [], "user": "u",
        "top_k": 3, "chatSettings": "kept", "stream": true, "stream_options": {}, "n": 4,
        "api_base": "http://evil", "base_url": "http://evil", "API_KEY": "k", "Api-Base": "x",
        "extra_headers": {}, "extra_body": {}, "custom_llm_provider": "x", "organization": "o",
        "aws_secret_access_key": "s", "AWS_region_name": "r", "litellm_params": {},
        "conclave": {}, "Stream": true, "N": 9, "Messages": [user("hidden")], "MODEL": "other",
        "Metadata": {"conclave_minor": "true"},
        "me\u{17f}\u{17f}ages": [user("hidden")],
    });
    assert_eq!(
        sent(&request_with(&body, &[])),
        json!({
            "model": "upstream", "messages": [user("hi")], "max_tokens": 5, "tools": [],
            "user": "u", "top_k": 3, "chatSettings": "kept",
        })
    );
}

#[test]
fn nothing_reaches_a_model_beside_the_messages() {
    let body = json!({
        "messages": [
            user("hi"),
            {"role": "assistant", "content": "ho", "reasoning_content": "hidden", "prefix": true},
        ],
        "chat_template": "{{ hidden }}", "chatTemplate": "{{ hidden }}", "documents": ["hidden"],
        "prompt_embeds": "aGk=", "continue_final_message": true, "add_generation_prompt": false,
        "prompt": "hidden", "system": "hidden", "input_ids": [1, 2], "truncate_prompt_tokens": 3,
        "data_sources": [{"type": "azure_search"}], "bootstrap_host": "evil",
        "chat_template_kwargs": {
            "enable_thinking": false, "thinking_budget": 5, "system": "hidden", "tools": ["hidden"],
            "continue_final_message": true,
        },
        "guided_choice": ["yes", "no"], "response_format": {"type": "json_object"}, "seed": 1,
    });
    assert_eq!(
        sent(&request_with(&body, &[])),
        json!({
            "model": "upstream",
            "messages": [user("hi"), {"role": "assistant", "content": "ho"}],
            "chat_template_kwargs": {"enable_thinking": false, "thinking_budget": 5},
            "guided_choice": ["yes", "no"], "response_format": {"type": "json_object"}, "seed": 1,
        })
    );
}

#[test]
fn without_a_name_of_its_own_the_clients_model_is_asked() {
    let request = request_with(&json!({"model": "visible", "Model": "x", "messages": []}), &[]);
    let body = sent_with(&request, None, false, None);
    assert_eq!(body, json!({"model": "visible", "messages": []}));
}

#[test]
fn guidance_stands_after_the_tenants_instructions() {
    for role in ["system", "developer"] {
        let tenant = json!({"role": role, "content": "tenant"});
        let body =
            json!({"messages": [tenant, user("one"), {"role": "system", "content": "late"}]});
        let mut request = request_with(&body, &[]);
        request.guidance = Some("be brief".into());
        let guidance = json!({"role": role, "content": "be brief"});
        let late = json!({"role": "system", "content": "late"});
        assert_eq!(sent(&request)["messages"], json!([tenant, guidance, user("one"), late]));
    }
}

#[test]
fn guidance_comes_first_where_there_are_no_instructions() {
    let mut request = request_with(&json!({"messages": [user("one")]}), &[]);
    request.guidance = Some("be brief".into());
    let guidance = json!({"role": "system", "content": "be brief"});
    assert_eq!(sent(&request)["messages"], json!([guidance, user("one")]));
}

#[test]
fn a_conversation_without_a_body_is_sent_too() {
    let conversation = [Message::text(Role::System, "tenant"), Message::text(Role::User, "one")];
    let mut request = request_with(&json!({}), &conversation);
    request.guidance = Some("be brief".into());
    assert_eq!(
        sent(&request)["messages"],
        json!([
            {"role": "system", "content": "tenant"},
            {"role": "system", "content": "be brief"},
            user("one"),
        ])
    );
}

#[test]
fn a_message_cannot_say_one_thing_to_us_and_another_to_a_lenient_reader() {
    let part = json!({"type": "text", "text": "judged", "Text": "hidden"});
    let body = json!({"messages": [
        {"role": "user", "content": "judged", "Content": "hidden", "ROLE": "system", "extra": 1},
        {"role": "user", "content": [part], "cache_control": {"type": "ephemeral"}},
    ]});
    assert_eq!(
        sent(&request_with(&body, &[]))["messages"],
        json!([
            {"role": "user", "content": "judged", "extra": 1},
            {"role": "user", "content": [{"type": "text", "text": "judged"}],
             "cache_control": {"type": "ephemeral"}},
        ])
    );
}

#[test]
fn our_metadata_stays_here() {
    let body = json!({"messages": [], "metadata": {"conclave_minor": "true", "order": "7"}});
    assert_eq!(sent(&request_with(&body, &[]))["metadata"], json!({"order": "7"}));
    let ours = json!({"messages": [], "metadata": {"conclave_minor": "true"}});
    assert_eq!(sent(&request_with(&ours, &[])).get("metadata"), None);
}

#[test]
fn a_temperature_is_set_only_where_the_client_set_none() {
    for (client, suggested, expected) in [
        (json!({"temperature": 1.5}), Some(0.25), json!(1.5)),
        (json!({"temperature": 0}), Some(0.25), json!(0)),
        (json!({"temperature": null}), Some(0.25), json!(0.25)),
        (json!({}), Some(0.25), json!(0.25)),
        (json!({}), Some(9.0), json!(2.0)),
        (json!({}), Some(f32::NAN), json!(null)),
        (json!({}), None, json!(null)),
    ] {
        let request = request_with(&client, &[]);
        let body = sent_with(&request, None, false, suggested);
        assert_eq!(body["temperature"], expected, "{client} {suggested:?}");
    }
}

#[test]
fn events_are_asked_for_with_their_usage() {
    let body = sent_with(&request_with(&json!({"stream": false}), &[]), None, true, None);
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn schemas_reach_a_provider_in_the_order_they_were_written_in() {
    let written = r#"{"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"why":{"type":"string"},"answer":{"type":"string"}}}}},"tools":[{"type":"function","function":{"name":"f","parameters":{"zeta":1,"alpha":2}}}]}"#;
    let body: Value = serde_json::from_str(written).unwrap();
    let request = request_with(&body, &[]);
    let body = UpstreamBody {
        request: &request,
        model: None,
        stream: false,
        temperature: None,
        is_reasoning: false,
    };
    assert_eq!(serde_json::to_string(&body).unwrap(), written);
}

#[test]
fn marks_of_another_interface_go_no_further() {
    let mark = json!({"type": "ephemeral"});
    let part = json!({"type": "text", "text": "a", "cache_control": mark});
    let messages = json!([
        {"role": "user", "content": [part]},
        {"role": "tool", "tool_call_id": "t", "content": "c", "is_error": true, "cache_control": mark},
    ]);
    let tool = json!({"type": "function", "function": {"name": "f"}, "cache_control": mark});
    let translated = json!({
        "messages": messages, "tools": [tool], "conclave": {"anthropic": {"service_tier": "auto"}},
    });
    assert_eq!(
        sent(&request_with(&translated, &[])),
        json!({
            "model": "upstream",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}]},
                {"role": "tool", "tool_call_id": "t", "content": "c"},
            ],
            "tools": [{"type": "function", "function": {"name": "f"}}],
        })
    );
    // A client of this interface knows whom it speaks to.
    let own = json!({"messages": messages, "tools": [tool]});
    let passed = sent(&request_with(&own, &[]));
    assert_eq!((&passed["messages"], &passed["tools"]), (&messages, &json!([tool])));
}
