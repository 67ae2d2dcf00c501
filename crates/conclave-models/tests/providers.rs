//! Azure, Anthropic, several keys, and models that stand in for others, over real sockets.

use ask::{Outcome, ask, config, request};
use conclave_core::{FinishReason, GenerationFailure, MicroUsd, Usage};
use conclave_engine::Model;
use conclave_models::{
    ApiKey, BreakerLimits, Chain, HostedModel, PricedModel, Provider, ProviderConfig,
    ProviderProtocol,
};
use conclave_testkit::{Behaviour, MockModel, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

mod ask;

fn message(text: &str) -> Value {
    json!({
        "id": "msg", "type": "message", "role": "assistant", "model": "claude-mock",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 11, "output_tokens": 4},
    })
}

async fn always(behaviour: Behaviour) -> Outcome<MockModel> {
    Ok(MockModel::scripted(Script::always(behaviour)).await?)
}

fn anthropic(mock: &MockModel) -> Outcome<HostedModel> {
    let (protocol, response_bytes_max) = (ProviderProtocol::Anthropic, 256 * 1024);
    Ok(HostedModel::new(ProviderConfig { protocol, response_bytes_max, ..config(mock) })?)
}

#[tokio::test]
async fn anthropic_is_asked_and_understood() -> Outcome<()> {
    let mock = always(Behaviour::Json(message("hello there"))).await?;
    let candidate = ask(&anthropic(&mock)?, "hello").await?;
    assert_eq!((candidate.text.as_str(), candidate.finish), ("hello there", FinishReason::Stop));
    assert_eq!(candidate.usage, Usage { input_tokens: 11, output_tokens: 4 });
    assert_eq!(candidate.model, "claude-mock");
    let seen = mock.seen().pop().ok_or("nothing seen")?;
    assert_eq!(seen.path, "/v1/messages");
    assert_eq!(seen.header("x-api-key"), Some("sk-test-0123456789"));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.body["model"], "upstream");
    assert_eq!(seen.body["max_tokens"], 4096);
    Ok(())
}

#[tokio::test]
async fn anthropic_fails_as_others_do() -> Outcome<()> {
    use GenerationFailure::{Invalid, Refused, Timeout, TooLarge, Unreachable};
    let overloaded = json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "key sk-test-0123456789 is busy"}});
    for (behaviour, expected) in [
        (Behaviour::Status(529, overloaded.to_string()), Refused),
        (Behaviour::Json(overloaded), Refused),
        (Behaviour::Json(json!({"type": "message", "content": []})), Invalid),
        (Behaviour::Reply("in another protocol".into()), Invalid),
        (Behaviour::Html200, Invalid),
        (Behaviour::GzipBomb, Invalid),
        (Behaviour::EndlessSseLine, TooLarge),
        (Behaviour::Huge(1 << 30), TooLarge),
        (Behaviour::HangUp, Unreachable),
        (Behaviour::Hang, Timeout),
    ] {
        let mock = always(behaviour.clone()).await?;
        let mut request = request("hello");
        request.timeout = Duration::from_secs(1);
        let error = anthropic(&mock)?.generate(request).await.err().ok_or("it answered")?;
        assert_eq!(error.failure, expected, "{behaviour:?}");
        assert!(!error.message.contains("sk-test"), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn azure_has_a_path_for_each_deployment_and_a_header_of_its_own() -> Outcome<()> {
    let mock = always(Behaviour::Reply("hello".into())).await?;
    let provider = Provider::new(ProviderConfig {
        protocol: ProviderProtocol::Azure { api_version: "2024-10-21".into() },
        base_url: format!("http://{}", mock.address()),
        ..config(&mock)
    })?;
    assert_eq!(ask(&provider.model("our-gpt"), "hello").await?.text, "hello");
    let seen = mock.seen().pop().ok_or("nothing seen")?;
    assert_eq!(seen.path, "/openai/deployments/our-gpt/chat/completions");
    assert_eq!(seen.query, "api-version=2024-10-21");
    assert_eq!(seen.header("api-key"), Some("sk-test-0123456789"));
    assert_eq!(seen.header("authorization"), None);
    Ok(())
}

#[tokio::test]
async fn a_model_that_reasons_is_told_the_length_of_a_reply_in_its_own_words() -> Outcome<()> {
    let short = json!({"max_tokens": 100});
    let renamed = json!({"max_completion_tokens": 100});
    let both = json!({"max_tokens": 100, "max_completion_tokens": 70});
    for (visible, upstream, said, expected) in [
        ("openai/gpt-5-nano", None, &short, &renamed),
        ("small", Some("gpt-5-nano"), &short, &renamed),
        ("o3", None, &short, &renamed),
        ("o3", None, &renamed, &renamed),
        ("o3", None, &both, &json!({"max_completion_tokens": 70})),
        ("gpt-4o", None, &short, &short),
        ("gpt-4o", None, &renamed, &renamed),
        // What the client calls it says nothing about what the provider runs.
        ("gpt-5", Some("llama3.2"), &short, &short),
    ] {
        let mock = always(Behaviour::Reply("hello".into())).await?;
        let upstream_model = upstream.map(str::to_owned);
        let model = HostedModel::new(ProviderConfig { upstream_model, ..config(&mock) })?;
        let mut request = request("hello");
        let body = Arc::make_mut(&mut request.body);
        body.insert("model".into(), visible.into());
        body.extend(said.as_object().cloned().unwrap_or_default());
        model.generate(request).await?;
        let seen = mock.seen().pop().ok_or("nothing seen")?;
        for name in ["max_tokens", "max_completion_tokens"] {
            assert_eq!(seen.body[name], expected[name], "{visible}, {upstream:?}, {said}: {name}");
        }
    }
    Ok(())
}

/// Asks a mock that takes one key of two.
async fn with_two_keys(status: u16) -> Outcome<(MockModel, HostedModel)> {
    let bad = Behaviour::Status(status, String::new());
    let script = Script::sequence(vec![bad, Behaviour::Reply("taken".into())]);
    let mock = MockModel::scripted(script).await?;
    let keys = ["first-key", "second-key"].map(ApiKey::new);
    let model = HostedModel::new(ProviderConfig { api_keys: keys.into(), ..config(&mock) })?;
    Ok((mock, model))
}

#[tokio::test]
async fn a_key_that_is_refused_rests_while_another_works() -> Outcome<()> {
    for status in [401, 429] {
        let (mock, model) = with_two_keys(status).await?;
        for _ in 0..5 {
            assert_eq!(ask(&model, "hello").await?.text, "taken", "{status}");
        }
        let seen = mock.seen();
        let keys: Vec<_> = seen.iter().filter_map(|seen| seen.header("authorization")).collect();
        assert_eq!(keys[0], "Bearer first-key");
        assert_eq!(keys[1..], ["Bearer second-key"; 5]);
    }
    Ok(())
}

#[tokio::test]
async fn requests_are_shared_between_keys_by_weight() -> Outcome<()> {
    let mock = always(Behaviour::Reply("hello".into())).await?;
    let keys = [("large", 3), ("small", 1)];
    let keys = keys.map(|(secret, weight)| ApiKey { weight, ..ApiKey::new(secret) });
    let model = HostedModel::new(ProviderConfig { api_keys: keys.into(), ..config(&mock) })?;
    for _ in 0..20 {
        ask(&model, "hello").await?;
    }
    let large =
        mock.seen().iter().filter(|s| s.header("authorization") == Some("Bearer large")).count();
    assert_eq!(large, 15);
    Ok(())
}

fn priced(name: &str, model: HostedModel, price: u64) -> PricedModel {
    PricedModel {
        name: name.into(),
        model,
        input_price: MicroUsd(price),
        output_price: MicroUsd(price),
    }
}

#[tokio::test]
async fn another_model_stands_in_at_its_own_price_and_is_named() -> Outcome<()> {
    let down = always(Behaviour::Status(500, String::new())).await?;
    let up = always(Behaviour::Json(message("from the other"))).await?;
    let first = priced("large", HostedModel::new(config(&down))?, 100);
    let chain = Chain::new(first, vec![priced("small", anthropic(&up)?, 2_000_000)]);
    let candidate = chain.generate(request("hello")).await?;
    assert_eq!(candidate.text, "from the other");
    let stand_in = candidate.stand_in.ok_or("nobody is named")?;
    assert_eq!((stand_in.model.as_str(), stand_in.cost), ("small", MicroUsd(30)));
    Ok(())
}

#[tokio::test]
async fn whoever_was_asked_answers_where_they_can() -> Outcome<()> {
    let up = always(Behaviour::Reply("mine".into())).await?;
    let other = always(Behaviour::Reply("not asked".into())).await?;
    let first = priced("large", HostedModel::new(config(&up))?, 100);
    let others = vec![priced("small", HostedModel::new(config(&other))?, 1)];
    let candidate = Chain::new(first, others).generate(request("hello")).await?;
    assert_eq!((candidate.text.as_str(), candidate.stand_in), ("mine", None));
    assert_eq!(other.requests(), 0);
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_the_request_or_was_filtered_is_not_taken_elsewhere() -> Outcome<()> {
    let filtered = json!({"choices": [
        {"message": {"content": null}, "finish_reason": "content_filter"}]});
    for behaviour in [
        Behaviour::Status(400, json!({"error": {"code": "content_filter"}}).to_string()),
        Behaviour::Status(422, String::new()),
        Behaviour::Json(filtered),
    ] {
        let first = always(behaviour.clone()).await?;
        let other = always(Behaviour::Reply("laxer".into())).await?;
        let others = vec![priced("laxer", HostedModel::new(config(&other))?, 1)];
        let chain = Chain::new(priced("strict", HostedModel::new(config(&first))?, 1), others);
        assert!(chain.generate(request("hello")).await.is_err(), "{behaviour:?}");
        assert_eq!(other.requests(), 0, "{behaviour:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_model_that_hangs_leaves_time_for_the_next() -> Outcome<()> {
    let hanging = always(Behaviour::Hang).await?;
    let up = always(Behaviour::Reply("in time".into())).await?;
    let others = vec![priced("small", HostedModel::new(config(&up))?, 1)];
    let chain = Chain::new(priced("large", HostedModel::new(config(&hanging))?, 1), others);
    let mut request = request("hello");
    request.timeout = Duration::from_secs(2);
    assert_eq!(chain.generate(request).await?.text, "in time");
    Ok(())
}

#[tokio::test]
async fn a_provider_of_several_models_is_not_asked_more_often_for_it() -> Outcome<()> {
    let down = always(Behaviour::Status(503, String::new())).await?;
    let provider = Provider::new(ProviderConfig {
        breaker: BreakerLimits { failures: 0, ..BreakerLimits::default() },
        ..config(&down)
    })?;
    let others = ["b", "c"].map(|name| priced(name, provider.model(name), 1)).into();
    let chain = Arc::new(Chain::new(priced("a", provider.model("a"), 1), others));
    for _ in 0..200 {
        assert!(chain.generate(request("hello")).await.is_err());
    }
    assert!(down.requests() <= 240, "{} requests", down.requests());
    Ok(())
}
