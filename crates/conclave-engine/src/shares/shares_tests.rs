//! Places that are taken, waited for and given back.

use super::*;
use conclave_core::{KeyId, TenantId};
use conclave_detect::{AsReply, ClassifierError, Estimate, TextClassifier};
use futures_util::FutureExt;
use serde_json::{Value, json};

fn sharer(key: &str) -> Sharer {
    Sharer { tenant: TenantId::new("acme").unwrap(), key: Some(KeyId::new(key).unwrap()) }
}

fn with_places(long: usize) -> Shares {
    Shares { long: Arc::new(ShareGate::new(long)), ..Shares::default() }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_too_long_to_begin_is_refused_and_has_left_the_queue() {
    let shares = with_places(1);
    let place = shares.begin(&sharer("a")).await.unwrap();
    let refused = shares.begin(&sharer("a")).await.err();
    assert_eq!(refused, Some(OverShare { retry_after_s: 1 }));
    drop(place);
    let state = shares.long.lock();
    assert!(state.called.is_empty());
    assert_eq!(state.queue.waiting_of(&sharer("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_waits_as_long_as_it_takes() {
    let shares = with_places(1);
    let place = shares.begin(&sharer("a")).await.unwrap();
    let owner = sharer("a");
    let mut going_on = std::pin::pin!(shares.resume(&owner));
    assert!(going_on.as_mut().now_or_never().is_none());
    tokio::time::advance(WAIT_MAX * 10).await;
    assert!(going_on.as_mut().now_or_never().is_none());
    drop(place);
    drop(going_on.await);
}

#[tokio::test]
async fn more_of_one_key_than_may_wait_is_refused_at_once_and_others_are_not() {
    let shares = with_places(1);
    let (loud, quiet) = (sharer("loud"), sharer("quiet"));
    let place = shares.begin(&loud).await.unwrap();
    let mut crowd: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(shares.begin(&loud))).collect();
    for one in &mut crowd {
        assert!(one.as_mut().now_or_never().is_none());
    }
    assert!(shares.begin(&loud).await.is_err());
    let mut other = std::pin::pin!(shares.begin(&quiet));
    assert!(other.as_mut().now_or_never().is_none());
    drop(place);
    assert!(other.as_mut().now_or_never().is_some(), "nobody of the crowd comes first");
}

/// A detector that takes long for everything.
struct Slow;

impl TextClassifier for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn may_be_slow(&self) -> bool {
        true
    }

    fn text(&self, _: &str, _: &str) -> Result<Estimate, ClassifierError> {
        Err(ClassifierError("never asked here".to_owned()))
    }

    fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
        Err(ClassifierError("never asked here".to_owned()))
    }
}

#[tokio::test]
async fn short_work_is_done_while_every_place_for_long_work_is_taken() {
    let shares = with_places(1);
    let detector = Arc::new(Detector::builtin().unwrap().with_classifier(Arc::new(Slow)));
    assert!(detector.may_be_slow());
    let _place = shares.begin(&sharer("loud")).await.unwrap();
    let mut long = std::pin::pin!(shares.read(&detector, sharer("loud"), Load::Long, |_| 1));
    assert!(long.as_mut().now_or_never().is_none());
    assert_eq!(shares.read(&detector, sharer("loud"), Load::Short, |_| 2).await, 2);
    assert!(long.as_mut().now_or_never().is_none());
}

#[test]
fn a_turn_is_long_by_all_the_text_in_it() {
    let half = "x".repeat(LONG_BYTES / 2);
    let fits_in = |value: Value| fits(&value, &mut LONG_BYTES.clone());
    assert!(fits_in(json!([{"content": half}])));
    assert!(!fits_in(json!([{"content": half}, {"parts": [{"text": half}, 1, null, true]}])));
    assert!(!fits_in(json!({"x".repeat(LONG_BYTES + 1): 1})));
}
