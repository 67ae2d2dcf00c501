//! Work whose client goes away, what is told when nothing was decided, and how replies leave.

use super::*;
use crate::error::Envelope;
use conclave_core::MicroUsd;
use conclave_engine::{AppendError, OverShare};
use tokio::sync::oneshot;

#[tokio::test]
async fn what_is_dropped_half_way_is_finished_all_the_same() {
    let (go, gone) = oneshot::channel::<()>();
    let (tell, told) = oneshot::channel();
    let mut work = Box::pin(DetachedWork::new(async move {
        let _ = gone.await;
        let _ = tell.send(42);
    }));
    assert!(futures_util::poll!(work.as_mut()).is_pending());
    drop(work);
    let _ = go.send(());
    assert_eq!(told.await, Ok(42));
}

#[test]
fn each_reason_for_deciding_nothing_has_its_status_and_code() {
    let now_ms = 1_000_000;
    let running_away = BudgetRefusal::RunningAway { until_ms: now_ms + 90_500 };
    let dear = BudgetRefusal::RequestLimit { likely: MicroUsd(2), limit: MicroUsd(1) };
    let cases = [
        (DeliverError::UnknownModel("m".into()), 404, "model_not_found", None),
        (DeliverError::Forbidden("not this one".into()), 403, "forbidden", None),
        (OverShare { retry_after_s: 7 }.into(), 429, "rate_limit_exceeded", Some("7")),
        (
            DeliverError::Unpaid(running_away, Language::English),
            429,
            "insufficient_quota",
            Some("91"),
        ),
        (DeliverError::Unpaid(dear, Language::English), 429, "insufficient_quota", None),
        (
            DeliverError::Unpaid(BudgetRefusal::Unpriced { model: "m".into() }, Language::English),
            403,
            "forbidden",
            None,
        ),
        (
            DeliverError::Unpaid(BudgetRefusal::Unavailable, Language::English),
            503,
            "budget_unavailable",
            Some("5"),
        ),
        (
            DeliverError::AuditUnavailable(AppendError::Unwritable("full".into())),
            503,
            "audit_unavailable",
            Some("5"),
        ),
    ];
    for (error, status, code, retry_after) in cases {
        let error = deliver_error(error, now_ms);
        let shown = error.body(Envelope::OpenAi);
        assert_eq!((error.status().as_u16(), &shown["error"]["code"]), (status, &code.into()));
        let message = shown["error"]["message"].as_str().unwrap();
        assert!(message.ends_with('.') && message.starts_with(char::is_uppercase) || status == 404);
        let response = respond(Err(error));
        let told = response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap());
        assert_eq!(told, retry_after, "{code}");
    }
}

#[test]
fn a_wait_is_a_second_at_least_and_an_hour_at_most() {
    for (until_ms, seconds) in [(0, 1), (5_000, 1), (5_001, 1), (6_001, 2), (u64::MAX, 3_600)] {
        assert_eq!(wait_seconds(until_ms, 5_000), seconds, "{until_ms}");
    }
}

#[test]
fn a_reply_is_late_only_as_events() {
    for (streams, is_late, mode) in [
        (false, false, SendMode::Whole),
        (false, true, SendMode::Whole),
        (true, false, SendMode::Events),
        (true, true, SendMode::LateEvents),
    ] {
        assert_eq!(SendMode::new(streams, is_late), mode);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_decision_takes_long_begins_with_comments_and_an_early_error_keeps_its_status()
 {
    let is_late = IsLate::default();
    let early: Answering = Box::pin(async { Err(ApiError::overloaded()) });
    let refused = answer_as_events(early, &is_late).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!is_late.load(Ordering::Relaxed));
    let slow: Answering = Box::pin(async {
        tokio::time::sleep(KEEP_ALIVE + KEEP_ALIVE / 2).await;
        Ok(Response::new(Body::from("data: 1\n\n")))
    });
    let response = answer_as_events(slow, &is_late).await.unwrap();
    assert!(is_late.load(Ordering::Relaxed), "whatever goes wrong now is an event");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[header::CONTENT_TYPE], EVENT_STREAM);
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let sent = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
    assert_eq!(&sent[..], b": keep-alive\n\ndata: 1\n\n");
}
