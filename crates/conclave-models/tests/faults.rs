//! Every way a provider can fail, against the real adapter over a real socket: which failure it is
//! counted as, that it ends in time, and that it is not asked twice where it must not be.

use ask::{Outcome, ask, config, request};
use conclave_core::{Candidate, GenerationFailure, Usage};
use conclave_engine::{Model, ModelError};
use conclave_models::{BreakerLimits, HostedModel, ProviderConfig};
use conclave_testkit::{Behaviour, MockModel, Script};
use serde_json::json;
use std::time::{Duration, Instant};

mod ask;

/// What the slow ones are given.
const SHORT: Duration = Duration::from_millis(250);
/// The most any of them may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most that is read in these tests.
const BYTES_MAX: usize = 256 * 1024;
/// More than anybody should read.
const GIBIBYTE: u64 = 1 << 30;

async fn meet(behaviour: Behaviour, stream: bool) -> Outcome<(Result<Candidate, ModelError>, u64)> {
    let mock = MockModel::scripted(Script::always(behaviour)).await?;
    let model = HostedModel::new(ProviderConfig {
        response_bytes_max: BYTES_MAX,
        stream_upstream: stream,
        ..config(&mock)
    })?;
    let mut request = request("hello");
    request.timeout = SHORT;
    let start = Instant::now();
    let result = model.generate(request).await;
    assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
    Ok((result, mock.requests()))
}

fn slow() -> Behaviour {
    Behaviour::Slow { text: "dripping".into(), bytes: 1, every: Duration::from_millis(20) }
}

#[tokio::test]
async fn each_fault_has_its_kind_and_is_met_once() -> Outcome<()> {
    use GenerationFailure::{Invalid, Refused, Timeout, TooLarge, Unreachable};
    let error = r#"{"error":{"message":"no"}}"#;
    for (behaviour, expected) in [
        (Behaviour::Status(400, error.into()), Refused),
        (Behaviour::Status(401, String::new()), Refused),
        (Behaviour::Status(500, error.into()), Refused),
        (Behaviour::Status(204, String::new()), Invalid),
        (Behaviour::RetryAfter(503, 30), Refused),
        (Behaviour::RetryAfter(429, 1), Refused),
        (Behaviour::HugeStatus(500, GIBIBYTE), Refused),
        (Behaviour::Redirect("http://169.254.169.254/".into()), Refused),
        (Behaviour::Hang, Timeout),
        (slow(), Timeout),
        (Behaviour::HangUp, Unreachable),
        (Behaviour::HalfClose, Invalid),
        (Behaviour::ShortLength, Invalid),
        (Behaviour::Reset, Invalid),
        (Behaviour::Garbage(vec![0, 159, 146, 150]), Invalid),
        (Behaviour::Garbage(Vec::new()), Invalid),
        (Behaviour::InvalidUtf8, Invalid),
        (Behaviour::Html200, Invalid),
        (Behaviour::EmptyChoices, Invalid),
        (Behaviour::NullContent, Invalid),
        (Behaviour::GzipBomb, Invalid),
        (Behaviour::Huge(GIBIBYTE), TooLarge),
        (Behaviour::HugeChunked(GIBIBYTE), TooLarge),
        (Behaviour::EndlessSseLine, TooLarge),
    ] {
        for stream in [false, true] {
            let (result, requests) = meet(behaviour.clone(), stream).await?;
            let failure = result.err().map(|error| error.failure);
            assert_eq!(failure, Some(expected), "{behaviour:?}, streaming {stream}");
            assert_eq!(requests, 1, "{behaviour:?}, streaming {stream}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn nobody_listening_is_unreachable() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::Hang)).await?;
    let config = config(&mock);
    mock.stop().await;
    let error = ask(&HostedModel::new(config)?, "hello").await.err();
    let failure = error.map(|error| error.failure);
    assert_eq!(failure, Some(GenerationFailure::Unreachable));
    Ok(())
}

#[tokio::test]
async fn a_provider_that_cannot_speak_tls_is_unreachable() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::Reply("plain".into()))).await?;
    let model = HostedModel::new(ProviderConfig {
        base_url: mock.base_url().replace("http:", "https:"),
        ..config(&mock)
    })?;
    let failure = ask(&model, "hello").await.err().map(|error| error.failure);
    assert_eq!(failure, Some(GenerationFailure::Unreachable));
    assert_eq!(mock.requests(), 0);
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_not_followed() -> Outcome<()> {
    let target = MockModel::scripted(Script::always(Behaviour::Reply("there".into()))).await?;
    let url = format!("{}/chat/completions", target.base_url());
    let (result, _) = meet(Behaviour::Redirect(url), false).await?;
    assert!(result.is_err());
    assert_eq!(target.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn an_error_says_its_status_and_no_secret() -> Outcome<()> {
    let body = json!({"error": {"message":
        "Incorrect API key sk-test-0123456789 or token hunter2222 \
         for 'the words of the person'\u{1b}[2J"
    }});
    let mock =
        MockModel::scripted(Script::always(Behaviour::Status(401, body.to_string()))).await?;
    let model = HostedModel::new(ProviderConfig {
        headers: vec![("x-token".into(), "hunter2222".into())],
        ..config(&mock)
    })?;
    let error = ask(&model, "the words of the person").await.err().ok_or("it answered")?;
    assert!(error.message.contains("401"), "{error}");
    assert!(error.message.contains("Incorrect API key"), "{error}");
    for secret in ["sk-test", "0123456789", "hunter2222", "of the person", "\u{1b}"] {
        assert!(!error.message.contains(secret), "{secret}: {error}");
    }
    let shown = format!("{model:?} {error:?} {:?}", config(&mock));
    assert!(!shown.contains("sk-test"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn usage_that_is_not_believable_is_counted_here() -> Outcome<()> {
    for behaviour in [
        Behaviour::MissingUsage("eight by".into()),
        Behaviour::NegativeUsage("eight by".into()),
        Behaviour::NanUsage("eight by".into()),
    ] {
        let mock = MockModel::scripted(Script::always(behaviour)).await?;
        let model = HostedModel::new(config(&mock))?;
        let expected = Usage { input_tokens: 3, output_tokens: 2 };
        assert_eq!(ask(&model, "nine byte").await?.usage, expected);
        assert_eq!(model.usage_estimates(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_busy_provider_is_asked_once_more() -> Outcome<()> {
    for status in [429, 503] {
        let mock = MockModel::scripted(Script::sequence(vec![
            Behaviour::RetryAfter(status, 0),
            Behaviour::Reply("now".into()),
        ]))
        .await?;
        let model = HostedModel::new(config(&mock))?;
        assert_eq!(ask(&model, "hello").await?.text, "now");
        assert_eq!(mock.requests(), 2);
    }
    let busy = MockModel::scripted(Script::always(Behaviour::RetryAfter(503, 0))).await?;
    let model = HostedModel::new(config(&busy))?;
    assert!(ask(&model, "hello").await.is_err());
    assert_eq!(busy.requests(), 2);
    Ok(())
}

#[tokio::test]
async fn a_request_that_was_seen_is_not_sent_again_on_a_used_connection() -> Outcome<()> {
    let mock = MockModel::scripted(Script::sequence(vec![
        Behaviour::Reply("first".into()),
        Behaviour::HangUp,
        Behaviour::Reply("never asked for".into()),
    ]))
    .await?;
    let model = HostedModel::new(config(&mock))?;
    ask(&model, "hello").await?;
    let failure = ask(&model, "hello").await.err().map(|error| error.failure);
    assert_eq!(failure, Some(GenerationFailure::Unreachable));
    assert_eq!(mock.requests(), 2);
    Ok(())
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_goes_unnoticed() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::Reply("before".into()))).await?;
    let model = HostedModel::new(config(&mock))?;
    assert_eq!(ask(&model, "hello").await?.text, "before");
    let address = mock.address();
    mock.stop().await;
    let mock = MockModel::start_at(address, |_| Behaviour::Reply("after".into())).await?;
    assert_eq!(ask(&model, "hello").await?.text, "after");
    assert_eq!(mock.requests(), 1);
    Ok(())
}

#[tokio::test]
async fn a_retry_storm_adds_little() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::RetryAfter(503, 0))).await?;
    let model = HostedModel::new(ProviderConfig {
        breaker: BreakerLimits { failures: 0, ..BreakerLimits::default() },
        ..config(&mock)
    })?;
    for _ in 0..200 {
        assert!(ask(&model, "hello").await.is_err());
    }
    assert!(mock.requests() <= 240, "{} requests", mock.requests());
    Ok(())
}

async fn down(pause: Duration) -> Outcome<(MockModel, HostedModel)> {
    let mock = MockModel::scripted(Script::always(Behaviour::Status(500, String::new()))).await?;
    let model = HostedModel::new(ProviderConfig {
        breaker: BreakerLimits { failures: 5, pause },
        ..config(&mock)
    })?;
    for _ in 0..5 {
        ask(&model, "hello").await.err().ok_or("it answered")?;
    }
    Ok((mock, model))
}

#[tokio::test]
async fn a_provider_that_is_down_is_left_alone() -> Outcome<()> {
    let (mock, model) = down(Duration::from_secs(60)).await?;
    let error = ask(&model, "hello").await.err().ok_or("it answered")?;
    assert_eq!(error.failure, GenerationFailure::Unreachable);
    assert_eq!(mock.requests(), 5);
    Ok(())
}

#[tokio::test]
async fn after_the_pause_one_request_probes() -> Outcome<()> {
    let (mock, model) = down(Duration::ZERO).await?;
    let both = [ask(&model, "hello"), ask(&model, "hello")];
    let results = futures_util::future::join_all(both).await;
    assert!(results.iter().all(Result::is_err));
    assert_eq!(mock.requests(), 6);
    Ok(())
}

/// F-16: everything answers 503, five hundred requests in a second or less.
#[tokio::test]
async fn a_storm_of_503_opens_the_breaker_at_once_and_one_request_probes() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::RetryAfter(503, 0))).await?;
    let pause = Duration::from_secs(60);
    let breaker = BreakerLimits { pause, ..BreakerLimits::default() };
    let model = HostedModel::new(ProviderConfig { breaker, ..config(&mock) })?;
    let start = Instant::now();
    for _ in 0..10 {
        let burst = (0..50).map(|_| ask(&model, "hello"));
        let results = futures_util::future::join_all(burst).await;
        assert!(results.iter().all(Result::is_err));
    }
    // The first burst is under way before the first answer; then nobody is sent any more.
    assert!(mock.requests() <= 75, "{} requests", mock.requests());
    let refused = ask(&model, "hello").await.err().ok_or("it answered")?;
    assert!(refused.message.contains("left alone"), "{refused}");
    assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());

    let (mock, model) = down(Duration::ZERO).await?;
    let before = mock.requests();
    let probes = (0..50).map(|_| ask(&model, "hello"));
    let results = futures_util::future::join_all(probes).await;
    assert!(results.iter().all(Result::is_err));
    let sent = mock.requests() - before;
    assert_eq!(sent, 1, "one probe, and the pause begins anew for whoever comes with it");
    Ok(())
}

#[tokio::test]
async fn a_clients_mistakes_do_not_shut_the_provider_out() -> Outcome<()> {
    let mock = MockModel::scripted(Script::always(Behaviour::Status(400, String::new()))).await?;
    let model = HostedModel::new(config(&mock))?;
    for _ in 0..30 {
        let error = ask(&model, "hello").await.err().ok_or("it answered")?;
        assert_eq!(error.failure, GenerationFailure::Refused);
    }
    assert_eq!(mock.requests(), 30);
    Ok(())
}
