//! What a person is told about a decision is what happened.

use crate::fakes::{Juror, Scripted, opinion};
use crate::turns::{KIND, house, jury, turn};
use conclave_core::{GenerationFailure, Opinion, Outcome, Priority, Reason, Seat, Vote};
use conclave_engine::{Engine, StoredDecision, Verifier, VerifierError};
use conclave_people::{Explanation, ReviewStanding, corrections, explain};
use conclave_verifiers::Case;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Objects to everything, and is only watched.
struct Watched(Seat);

impl Verifier for Watched {
    fn seat(&self) -> &Seat {
        &self.0
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(400)
    }

    fn judge(&self, _: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>> {
        std::future::ready(Ok(opinion(Vote::Harmful, 1.0, &[Reason::Shames]))).boxed()
    }
}

fn watched() -> Arc<dyn Verifier> {
    Arc::new(Watched(Seat { monitor: true, ..Seat::new("trial", Priority::High) }))
}

async fn asked(engine: &Engine, text: &str) -> (Outcome, StoredDecision, Explanation) {
    let decision = engine.deliver(turn(text)).await.unwrap().decision;
    let entries = engine.archive.find(0, decision.id).await.unwrap();
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    let told = explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open);
    (decision.outcome, stored, told)
}

#[tokio::test]
async fn doubts_and_missing_checks_are_counted_and_named() {
    let now = Duration::ZERO;
    let mut jury = jury();
    jury[3] = Juror::seated("shadow", 1, now, |_| Err(VerifierError("down".into())));
    jury[4] = Juror::seated("attachment", 1, now, |_| {
        Ok(opinion(Vote::Concern, 0.3, &[Reason::PrematureIntimacy]))
    });
    let house = house(Scripted::saying(&[Ok(KIND)]), jury);
    let (outcome, _, told) = asked(&house.engine, "My day was long.").await;
    assert_eq!(outcome, Outcome::Delivered);
    let by = &told.safety_verification.reviewed_by;
    assert_eq!(by.len(), 5, "{by:?}");
    assert!(!by.contains(&"shadow".to_owned()));
    let story = told.story.join(" ");
    assert!(story.contains("One check could not be made"), "{story}");
    assert!(story.contains("shadow"), "{story}");
    assert!(story.contains("4 of them found it safe"), "{story}");
    assert!(!story.contains("agreed that it was safe"), "{story}");
}

#[tokio::test]
async fn whoever_only_watches_is_no_part_of_what_a_person_is_told() {
    let mut jury = jury();
    jury.push(watched());
    let house = house(Scripted::saying(&[Ok("Yeah, do it."), Ok(KIND)]), jury);
    let (outcome, stored, told) = asked(&house.engine, "I am angry.").await;
    assert_eq!(outcome, Outcome::Delivered);
    let concerns = &told.safety_verification.concerns_raised;
    assert_eq!(concerns, &[Reason::EncouragesHarm.plain()]);
    let [correction] = &corrections(&stored, ReviewStanding::Unasked)[..] else {
        panic!("one reply was mended")
    };
    assert!(correction.concerns.iter().all(|concern| concern.verifier == "crisis"));
    assert!(told.story.join(" ").contains("agreed that it was safe"));
}

#[tokio::test]
async fn a_model_that_is_down_is_not_said_to_have_written_a_reply() {
    let down = Scripted::saying(&[Err(GenerationFailure::Unreachable)]);
    let house = house(down, jury());
    for (text, expected) in [
        ("My day was long.", Outcome::Failed),
        ("I feel so alone, I want to die.", Outcome::SafeCompletion),
    ] {
        let (outcome, _, told) = asked(&house.engine, text).await;
        assert_eq!(outcome, expected, "{text}");
        let story = told.story.join(" ");
        assert!(story.contains("no usable answer came back"), "{story}");
        assert!(!story.contains("written for you"), "{story}");
    }
}

#[tokio::test]
async fn doubts_alone_are_not_called_harm() {
    let now = Duration::ZERO;
    let doubt = |_: &str| Ok(opinion(Vote::Concern, 0.9, &[Reason::Cold]));
    let jury = ["crisis", "higher_self", "wisdom", "classifier"]
        .map(|name| Juror::seated(name, 2, now, doubt));
    let house = house(Scripted::saying(&[Ok(KIND)]), jury.into());
    let (outcome, _, told) = asked(&house.engine, "My day was long.").await;
    assert_eq!(outcome, Outcome::Escalated);
    let story = told.story.join(" ");
    assert!(story.contains("more doubts") && !story.contains("harmful"), "{story}");
}
