//! What goes to a provider and what comes back when all is well.

use ask::{Outcome, ask, config, request};
use conclave_core::{FinishReason, ToolCall, Usage};
use conclave_engine::Model;
use conclave_models::{ApiKey, HostedModel, ProviderConfig, TemperaturePolicy};
use conclave_testkit::{
    Behaviour, MockModel, Script, TOOL_CALL_ID, completion_sse, last_user_message,
};
use serde_json::json;
use std::time::Duration;

mod ask;

async fn replying(text: &str) -> Outcome<MockModel> {
    Ok(MockModel::scripted(Script::always(Behaviour::Reply(text.into()))).await?)
}

fn streaming(mock: &MockModel) -> Outcome<HostedModel> {
    Ok(HostedModel::new(ProviderConfig { stream_upstream: true, ..config(mock) })?)
}

#[tokio::test]
async fn a_reply_comes_back_with_what_it_cost() -> Outcome<()> {
    let mock = replying("hello there").await?;
    for model in [HostedModel::new(config(&mock))?, streaming(&mock)?] {
        let candidate = ask(&model, "hello").await?;
        assert_eq!(candidate.text, "hello there");
        assert_eq!(candidate.model, "mock-model");
        assert_eq!(candidate.finish, FinishReason::Stop);
        let expected = Usage { input_tokens: 10, output_tokens: 3 };
        assert_eq!(candidate.usage, expected);
        assert_eq!(model.usage_estimates(), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_is_handed_on_while_it_is_written() -> Outcome<()> {
    let text = "Something rather longer than one event.";
    let mock = replying(text).await?;
    let model = HostedModel::new(config(&mock))?;
    let (sender, mut pieces) = tokio::sync::mpsc::channel(64);
    let candidate = model.generate_in_pieces(request("hello"), sender).await?;
    let mut joined = Vec::new();
    while let Some(piece) = pieces.recv().await {
        joined.push(piece);
    }
    assert!(joined.len() > 1, "{joined:?}");
    assert_eq!((joined.concat().as_str(), candidate.text.as_str()), (text, text));
    assert_eq!(mock.bodies()[0]["stream"], true);
    Ok(())
}

#[tokio::test]
async fn a_tool_call_comes_back_the_same_either_way() -> Outcome<()> {
    let arguments = json!({"city": "München", "days": [1, 2]});
    let mock = MockModel::scripted(Script::always(Behaviour::ToolCall {
        name: "forecast".into(),
        arguments: arguments.clone(),
    }))
    .await?;
    for model in [HostedModel::new(config(&mock))?, streaming(&mock)?] {
        let candidate = ask(&model, "hello").await?;
        let expected = ToolCall {
            id: TOOL_CALL_ID.into(),
            name: "forecast".into(),
            arguments: arguments.to_string(),
        };
        assert_eq!(candidate.tool_calls, [expected]);
        assert_eq!(candidate.finish, FinishReason::ToolCalls);
        assert_eq!(candidate.text, "");
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_may_be_cut_anywhere() -> Outcome<()> {
    let text = "ゆっくり休んでください 🌱 take care";
    for size in [1, 7] {
        let bytes = completion_sse(text).concat();
        let pieces = bytes.chunks(size).map(<[u8]>::to_vec).collect();
        let mock = MockModel::scripted(Script::always(Behaviour::Sse(pieces))).await?;
        assert_eq!(ask(&streaming(&mock)?, "hello").await?.text, text);
    }
    Ok(())
}

#[tokio::test]
async fn a_provider_that_does_not_stream_is_understood_too() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::MissingUsage("whole".into()))).await?;
    assert_eq!(ask(&streaming(&mock)?, "hello").await?.text, "whole");
    Ok(())
}

async fn connections_for_twenty(model: &HostedModel, mock: &MockModel) -> Outcome<u64> {
    let before = mock.connections();
    for _ in 0..20 {
        ask(model, "hello").await?;
    }
    Ok(mock.connections() - before)
}

#[tokio::test]
async fn connections_are_used_again() -> Outcome<()> {
    let mock = replying("again").await?;
    let whole = HostedModel::new(config(&mock))?;
    assert_eq!(connections_for_twenty(&whole, &mock).await?, 1);
    // The end of a stream is read in the background, while the next request may open another.
    let events = streaming(&mock)?;
    assert!(connections_for_twenty(&events, &mock).await? <= 5);
    Ok(())
}

#[tokio::test]
async fn models_of_one_provider_share_its_connections() -> Outcome<()> {
    let mock = replying("shared").await?;
    let large = HostedModel::new(config(&mock))?;
    let small = large.with_model("small");
    ask(&large, "hello").await?;
    ask(&small, "hello").await?;
    assert_eq!(mock.connections(), 1);
    let models: Vec<_> = mock.bodies().into_iter().map(|body| body["model"].clone()).collect();
    assert_eq!(models, ["upstream", "small"]);
    Ok(())
}

#[tokio::test]
async fn the_request_carries_the_key_and_our_headers() -> Outcome<()> {
    let mock = replying("seen").await?;
    let model = HostedModel::new(ProviderConfig {
        headers: vec![("X-Title".into(), "our name".into())],
        ..config(&mock)
    })?;
    ask(&model, "hello").await?;
    let seen = mock.seen().pop().ok_or("nothing seen")?;
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-test-0123456789"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("x-title"), Some("our name"));
    assert_eq!(seen.header("accept-encoding"), None);
    assert_eq!(last_user_message(&seen.body), "hello");
    Ok(())
}

#[tokio::test]
async fn the_field_shapes_the_first_attempt_and_another_differs() -> Outcome<()> {
    let mock = replying("again").await?;
    let model = HostedModel::new(config(&mock))?;
    let sparing = HostedModel::new(ProviderConfig {
        temperature: TemperaturePolicy::Retries,
        ..config(&mock)
    })?;
    for (model, attempt) in [(&model, 0), (&model, 1), (&sparing, 0), (&sparing, 1)] {
        let mut request = request("hello");
        request.temperature = Some(0.5);
        request.guidance = Some("offer no advice yet".into());
        request.attempt = attempt;
        model.generate(request).await?;
    }
    let bodies = mock.bodies();
    let temperatures: Vec<_> = bodies.iter().map(|body| body["temperature"].clone()).collect();
    assert_eq!(temperatures, [json!(0.5), json!(0.5), json!(null), json!(0.5)]);
    assert_eq!(bodies[1]["messages"][0]["content"], "offer no advice yet");
    Ok(())
}

#[tokio::test]
async fn the_shorter_of_both_times_counts() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::Hang)).await?;
    let model =
        HostedModel::new(ProviderConfig { timeout: Duration::from_millis(50), ..config(&mock) })?;
    let start = std::time::Instant::now();
    assert!(ask(&model, "hello").await.is_err());
    assert!(start.elapsed() < Duration::from_secs(3));
    Ok(())
}

#[tokio::test]
async fn an_absurd_time_is_no_trouble() -> Outcome<()> {
    let mock = replying("in time").await?;
    let model = HostedModel::new(ProviderConfig { timeout: Duration::MAX, ..config(&mock) })?;
    let mut request = request("hello");
    request.timeout = Duration::MAX;
    assert_eq!(model.generate(request).await?.text, "in time");
    Ok(())
}

#[test]
fn a_bad_configuration_is_refused_without_its_secrets() {
    let mut bad_header = ProviderConfig::new("p", "https://api.example.com/v1");
    bad_header.headers = vec![("x-token".into(), "two\nlines hunter2222".into())];
    let mut reserved_header = ProviderConfig::new("p", "https://api.example.com/v1");
    reserved_header.headers = vec![("Host".into(), "elsewhere.example".into())];
    let mut bad_key = ProviderConfig::new("p", "https://api.example.com/v1");
    bad_key.api_keys = vec![ApiKey::new("hunter2222\r\nx-evil: 1")];
    for config in [
        ProviderConfig::new("p", "https://user:hunter2222@api.example.com/v1"),
        ProviderConfig::new("p", "http://169.254.169.254/v1"),
        ProviderConfig::new("p", "http://10.0.0.1/v1"),
        reserved_header,
        bad_header,
        bad_key,
    ] {
        let error = HostedModel::new(config.clone()).err();
        let shown = format!("{error:?} {config:?}");
        assert!(error.is_some(), "{shown}");
        assert!(!shown.contains("hunter2222"), "{shown}");
    }
}

#[test]
fn an_encrypted_provider_can_be_configured() {
    let config = ProviderConfig::new("p", "https://api.example.com/v1");
    assert!(HostedModel::new(config).is_ok());
}
