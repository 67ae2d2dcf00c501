//! The state machine driven by hand and by chance.

use super::*;
use crate::{Abstention, Cast, Confidence, Priority, Scrutiny, Seat, Vote};
use proptest::prelude::*;

fn limits() -> Limits {
    Limits { attempts_max: 3, bars: Scrutiny::Normal.bars(), crisis: false }
}

fn reply(text: &str) -> Result<Candidate, GenerationFailure> {
    Ok(Candidate { text: text.into(), ..Candidate::default() })
}

fn panel(votes: [(Vote, u8); 3], reasons: &[Reason]) -> Vec<Ballot> {
    [("crisis", Priority::High), ("higher_self", Priority::Middle), ("lower_self", Priority::Low)]
        .into_iter()
        .zip(votes)
        .map(|((name, priority), (vote, hundredths))| {
            let confidence = Confidence::from_hundredths(hundredths).unwrap();
            let ballot = Ballot::bare(Seat::new(name, priority), Cast::Voted { vote, confidence });
            Ballot { reasons: reasons.to_vec(), ..ballot }
        })
        .collect()
}

const GOOD: [(Vote, u8); 3] = [(Vote::Safe, 90), (Vote::Safe, 90), (Vote::Safe, 90)];
const VETO: [(Vote, u8); 3] = [(Vote::Harmful, 100), (Vote::Concern, 90), (Vote::Safe, 60)];
const MILD: [(Vote, u8); 3] = [(Vote::Safe, 90), (Vote::Concern, 90), (Vote::Safe, 90)];

fn silent_panel() -> Vec<Ballot> {
    ["crisis", "a", "b"]
        .map(|name| {
            Ballot::bare(Seat::new(name, Priority::High), Cast::Abstained(Abstention::Late))
        })
        .into()
}

/// Answers every step from the two scripts until the machine finishes.
fn run(
    limits: Limits,
    mut candidates: impl FnMut() -> Result<Candidate, GenerationFailure>,
    mut panels: impl FnMut() -> Vec<Ballot>,
) -> (Verdict, Deliberation) {
    let mut deliberation = Deliberation::new(limits);
    loop {
        match deliberation.next() {
            Step::Generate { .. } => deliberation.generated(candidates()),
            Step::Verify { .. } => deliberation.verified(panels()),
            Step::Finish(verdict) => return (verdict, deliberation),
        }
    }
}

#[test]
fn reference_example_regenerates_then_delivers() {
    let mut scripts = [panel(VETO, &[Reason::EncouragesHarm]), panel(GOOD, &[])].into_iter();
    let mut deliberation = Deliberation::new(limits());
    assert_eq!(deliberation.next(), Step::Generate { attempt: 0, reasons: vec![] });
    deliberation.generated(reply("Yeah, do it."));
    assert_eq!(deliberation.next(), Step::Verify { attempt: 0 });
    deliberation.verified(scripts.next().unwrap());
    let asked = Step::Generate { attempt: 1, reasons: vec![Reason::EncouragesHarm] };
    assert_eq!(deliberation.next(), asked);
    deliberation.generated(reply("I hear how angry you are."));
    deliberation.verified(scripts.next().unwrap());
    assert_eq!(deliberation.next(), Step::Finish(Verdict::Deliver { attempt: 1 }));
}

#[test]
fn endings() {
    let cases = [
        ("a veto calls a person", VETO, Withheld::Escalated),
        ("mild dissent exhausts", MILD, Withheld::Exhausted),
    ];
    for (what, votes, expected) in cases {
        let (verdict, run) = run(limits(), || reply("x"), || panel(votes, &[]));
        assert_eq!(verdict, Verdict::Withhold(expected), "{what}");
        assert_eq!(run.attempts().len(), 3, "{what}");
    }
}

#[test]
fn a_silent_panel_runs_once_more_on_the_same_candidate() {
    let (verdict, run) = run(limits(), || reply("x"), silent_panel);
    assert_eq!(verdict, Verdict::Withhold(Withheld::GuardUnavailable));
    assert!(run.attempts().iter().all(|attempt| attempt.panels.len() == 2));
}

#[test]
fn a_model_that_is_down_is_not_asked_again() {
    let (verdict, run) =
        run(limits(), || Err(GenerationFailure::Unreachable), || unreachable!("no candidate"));
    assert_eq!(verdict, Verdict::Withhold(Withheld::Failed(GenerationFailure::Unreachable)));
    assert_eq!(run.attempts().len(), 1);
}

#[test]
fn a_slow_round_counts_as_an_attempt() {
    let (verdict, run) =
        run(limits(), || Err(GenerationFailure::Timeout), || unreachable!("no candidate"));
    assert_eq!(verdict, Verdict::Withhold(Withheld::Failed(GenerationFailure::Timeout)));
    assert_eq!(run.attempts().len(), 3);
}

#[test]
fn nothing_is_delivered_after_time_but_what_had_passed() {
    let mut deliberation = Deliberation::new(limits());
    deliberation.generated(reply("x"));
    deliberation.expire();
    assert_eq!(deliberation.next(), Step::Finish(Verdict::Withhold(Withheld::GuardUnavailable)));
    let mut passed = Deliberation::new(limits());
    passed.generated(reply("x"));
    passed.verified(panel(GOOD, &[]));
    passed.expire();
    assert_eq!(passed.next(), Step::Finish(Verdict::Deliver { attempt: 0 }));
}

fn any_round() -> impl Strategy<Value = (u8, u8)> {
    (0u8..4, 0u8..4)
}

proptest! {
    #[test]
    fn it_ends_within_its_attempts_and_delivers_only_what_passed(
        rounds in prop::collection::vec(any_round(), 16), attempts_max in 1u8..=5, expire_at in 0usize..40,
    ) {
        let limits = Limits { attempts_max, ..limits() };
        let mut deliberation = Deliberation::new(limits);
        let (mut generated, mut verified) = (0usize, 0usize);
        let verdict = loop {
            if generated + verified == expire_at {
                deliberation.expire();
            }
            match deliberation.next() {
                Step::Generate { attempt, .. } => {
                    prop_assert_eq!(usize::from(attempt), generated);
                    let (kind, _) = rounds[generated % rounds.len()];
                    generated += 1;
                    deliberation.generated(match kind {
                        0 => Err(GenerationFailure::Timeout),
                        1 => Err(GenerationFailure::Refused),
                        _ => reply("x"),
                    });
                }
                Step::Verify { .. } => {
                    let (_, kind) = rounds[verified % rounds.len()];
                    verified += 1;
                    deliberation.verified(match kind {
                        0 => panel(GOOD, &[]),
                        1 => panel(VETO, &[]),
                        2 => panel(MILD, &[]),
                        _ => silent_panel(),
                    });
                }
                Step::Finish(verdict) => break verdict,
            }
            prop_assert!(generated <= usize::from(attempts_max));
            prop_assert!(verified <= 2 * usize::from(attempts_max));
        };
        if let Verdict::Deliver { attempt } = verdict {
            let chosen = &deliberation.attempts()[usize::from(attempt)];
            prop_assert!(chosen.panels.last().is_some_and(|panel| panel.consensus.delivers()));
        }
    }
}
