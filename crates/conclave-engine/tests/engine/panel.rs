//! The panel: parallel, blind, and never safe by absence.

use crate::fakes::{Juror, opinion};
use conclave_core::{
    Abstention, Candidate, Cast, MicroUsd, Mode, Opinion, Priority, Scrutiny, Seat, TurnContext,
    Vote, decide,
};
use conclave_detect::Reading;
use conclave_engine::{Panel, Verifier, VerifierError};
use conclave_verifiers::Case;
use futures_util::future::BoxFuture;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;

const BUDGET: Duration = Duration::from_millis(500);

fn case(text: &str) -> Arc<Case> {
    let candidate = Candidate { text: text.into(), ..Candidate::default() };
    let empty = || Reading::empty(Mode::Normal);
    Arc::new(Case::new([].into(), candidate, TurnContext::default(), Arc::new(empty()), empty()))
}

#[tokio::test]
async fn five_verifiers_that_take_100_ms_each_take_under_150_together() {
    let tenth = Duration::from_millis(100);
    let names = ["crisis", "a", "b", "c", "d"];
    let jurors =
        names.map(|name| Juror::seated(name, 3, tenth, |_| Ok(opinion(Vote::Safe, 0.9, &[]))));
    let started = Instant::now();
    let ballots = Panel::new(jurors.into()).judge(case("x"), BUDGET, false).await;
    let took = started.elapsed();
    assert!(took < Duration::from_millis(150), "took {took:?}");
    assert!(decide(&ballots, Scrutiny::Strict.bars(), false).delivers());
}

#[tokio::test(start_paused = true)]
async fn whoever_fails_is_late_panics_or_talks_nonsense_has_abstained() {
    let now = Duration::ZERO;
    let jurors = vec![
        Juror::seated("crisis", 3, now, |_| Ok(opinion(Vote::Safe, 1.0, &[]))),
        Juror::seated("late", 3, Duration::from_secs(60), |_| Ok(opinion(Vote::Safe, 1.0, &[]))),
        Juror::seated("panics", 3, now, |_| panic!("a verifier's own bug")),
        Juror::seated("fails", 3, now, |_| Err(VerifierError("connection refused".into()))),
        Juror::seated("nonsense", 3, now, |_| Ok(opinion(Vote::Safe, 7.0, &[]))),
        Juror::seated("idle", 3, now, |_| Ok(None)),
    ];
    let started = Instant::now();
    let ballots = Panel::new(jurors).judge(case("x"), BUDGET, false).await;
    assert!(started.elapsed() <= BUDGET);
    let casts: Vec<_> = ballots.iter().skip(1).map(|ballot| ballot.cast).collect();
    assert_eq!(
        casts,
        [
            Cast::Abstained(Abstention::Late),
            Cast::Abstained(Abstention::Panicked),
            Cast::Abstained(Abstention::Failed),
            Cast::Abstained(Abstention::Invalid),
            Cast::NotApplicable,
        ]
    );
    let verdict = decide(&ballots, Scrutiny::Normal.bars(), false);
    assert!(!verdict.delivers());
    assert_eq!(verdict.votes_cast, 1);
    assert_eq!(ballots.len(), 6, "the decision says who was missing");
    assert!(matches!(ballots.first().unwrap().cast, Cast::Voted { .. }));
}

/// Takes longer than it may, and costs something.
struct Dear;

impl Verifier for Dear {
    fn seat(&self) -> &Seat {
        static SEAT: LazyLock<Seat> = LazyLock::new(|| Seat::new("dear", Priority::Middle));
        &SEAT
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn judge(&self, _: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>> {
        Box::pin(std::future::pending())
    }

    fn most(&self, case: &Case) -> MicroUsd {
        MicroUsd(case.candidate.text.len() as u64)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_end_nobody_saw_is_charged_with_the_most() {
    let ballots = Panel::new(vec![Arc::new(Dear)]).judge(case("seven77"), BUDGET, false).await;
    assert_eq!(ballots[0].cast, Cast::Abstained(Abstention::Late));
    assert_eq!(ballots[0].cost, MicroUsd(7));
}

/// A built-in judge that never ends on long texts.
struct Endless;

impl conclave_verifiers::Judge for Endless {
    fn seat(&self) -> Seat {
        Seat::new("endless", Priority::High)
    }

    fn judge(&self, case: &Case) -> Option<Opinion> {
        if case.candidate.text.len() > 100_000 {
            let (_never, answer) = std::sync::mpsc::channel::<()>();
            let _ = answer.recv_timeout(Duration::from_secs(2));
        }
        opinion(Vote::Safe, 1.0, &[])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_built_in_judge_runs_out_of_time_on_a_long_text_too() {
    let panel = Panel::new(vec![Arc::new(conclave_engine::BuiltIn::new(Box::new(Endless)))]);
    for (text, cast) in [
        ("short".to_owned(), None),
        ("long ".repeat(40_000), Some(Cast::Abstained(Abstention::Late))),
    ] {
        let started = Instant::now();
        let ballots = panel.judge(case(&text), BUDGET, false).await;
        assert!(started.elapsed() < 2 * BUDGET, "{:?}", started.elapsed());
        let voted = matches!(ballots[0].cast, Cast::Voted { .. });
        assert!(cast.map_or(voted, |cast| ballots[0].cast == cast), "{:?}", ballots[0].cast);
    }
}
