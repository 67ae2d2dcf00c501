//! The reference example and the properties of the consensus.

use super::*;
use crate::{Abstention, Confidence, Priority, Scrutiny};
use proptest::prelude::*;

fn ballot(name: &str, priority: u8, vote: Vote, hundredths: u8) -> Ballot {
    let seat = Seat::new(name, Priority::from_number(priority).unwrap());
    let confidence = Confidence::from_hundredths(hundredths).unwrap();
    Ballot::bare(seat, Cast::Voted { vote, confidence })
}

#[test]
fn reference_example() {
    let bars = Scrutiny::Normal.bars();
    let first = [
        ballot("crisis", 3, Vote::Harmful, 100),
        ballot("higher_self", 2, Vote::Concern, 90),
        ballot("lower_self", 1, Vote::Safe, 60),
    ];
    let verdict = decide(&first, bars, false);
    assert!(!verdict.delivers());
    assert_eq!(verdict.vetoes, ["crisis"]);
    assert_eq!((verdict.safe_mass, verdict.dissent_mass, verdict.seated_weight), (60, 480, 6));
    assert_eq!(verdict.safety_score_e4(), 1111);

    let second = [
        ballot("crisis", 3, Vote::Safe, 90),
        ballot("higher_self", 2, Vote::Safe, 80),
        ballot("lower_self", 1, Vote::Safe, 60),
    ];
    assert!(decide(&second, bars, false).delivers());
}

#[test]
fn nobody_is_safe_by_absence() {
    for ballots in [
        vec![],
        vec![Ballot::bare(Seat::new("crisis", Priority::High), Cast::Abstained(Abstention::Late))],
    ] {
        let verdict = decide(&ballots, Scrutiny::Normal.bars(), false);
        assert!(!verdict.delivers() && !verdict.stood());
        assert_eq!(verdict.safety_score_e4(), 0);
        assert!(verdict.is_mostly_dissent());
    }
}

#[test]
fn a_crisis_concern_stops_a_reply_only_in_a_crisis() {
    let mut ballots: Vec<_> =
        ["a", "b", "c", "d", "e", "f", "g"].map(|n| ballot(n, 3, Vote::Safe, 100)).into();
    ballots.push(ballot("crisis", 3, Vote::Concern, 50));
    let bars = Scrutiny::Strict.bars();
    assert!(decide(&ballots, bars, false).delivers());
    assert_eq!(decide(&ballots, bars, true).shortfalls, [Shortfall::CrisisConcern]);
}

#[test]
fn whoever_votes_twice_has_not_voted() {
    let ballots = [
        ballot("crisis", 3, Vote::Safe, 100),
        ballot("crisis", 3, Vote::Safe, 100),
        ballot("a", 2, Vote::Safe, 100),
        ballot("b", 2, Vote::Safe, 100),
        ballot("c", 2, Vote::Safe, 100),
    ];
    let verdict = decide(&ballots, Scrutiny::Normal.bars(), false);
    assert_eq!(verdict.votes_cast, 3);
    assert!(verdict.shortfalls.contains(&Shortfall::RequiredMissing));
}

#[test]
fn an_excused_verifier_counts_for_nothing_and_a_required_one_is_never_excused() {
    let mut ballots: Vec<_> =
        ["crisis", "a", "b"].map(|name| ballot(name, 3, Vote::Safe, 100)).into();
    let without = decide(&ballots, Scrutiny::Normal.bars(), false);
    let seat = Seat { weight: 9, ..Seat::new("judge", Priority::Middle) };
    let failed = Ballot::bare(seat, Cast::Abstained(Abstention::Failed));
    ballots.push(failed.clone().excused());
    assert_eq!(decide(&ballots, Scrutiny::Normal.bars(), false), without);
    assert!(without.delivers());
    let seat = Seat { required: true, ..failed.seat.clone() };
    let required = Ballot { seat, ..failed };
    assert_eq!(required.clone().excused(), required);
    *ballots.last_mut().unwrap() = required;
    assert!(!decide(&ballots, Scrutiny::Normal.bars(), false).delivers());
    let voted = ballot("judge", 2, Vote::Concern, 80);
    assert_eq!(voted.clone().excused(), voted, "a vote that was cast is not taken back");
}

#[test]
fn the_floor_is_outvoted_by_nobody_and_voided_by_no_second_ballot() {
    let safe = ["crisis", "a", "b", "c", "d"].map(|name| ballot(name, 3, Vote::Safe, 100));
    let bars = Scrutiny::Normal.bars();
    assert!(decide(&safe, bars, false).delivers());
    let floor = ballot(Seat::FLOOR, 3, Vote::Harmful, 70);
    let watched = Ballot { seat: Seat { monitor: true, ..floor.seat.clone() }, ..floor.clone() };
    let twin = ballot(Seat::FLOOR, 3, Vote::Safe, 100);
    for extra in [vec![floor.clone()], vec![floor, twin], vec![watched]] {
        let ballots: Vec<_> = safe.iter().cloned().chain(extra).collect();
        let verdict = decide(&ballots, bars, false);
        assert!(verdict.shortfalls.contains(&Shortfall::Floor) && !verdict.delivers());
        assert_eq!(verdict.vetoes, [Seat::FLOOR]);
    }
}

#[test]
fn an_action_without_words_is_judged_by_those_who_judge_actions() {
    let absent = |name: &str| Ballot::bare(Seat::new(name, Priority::High), Cast::NotApplicable);
    let judged =
        [ballot(Seat::COUNTERFACTUAL, 3, Vote::Safe, 95), ballot("classifier", 2, Vote::Safe, 95)];
    let wordless = |judged: &[Ballot]| [&[absent(Seat::CRISIS), absent("wisdom")], judged].concat();
    for scrutiny in [Scrutiny::Normal, Scrutiny::Raised, Scrutiny::Strict] {
        assert!(decide(&wordless(&judged), scrutiny.bars(), true).delivers(), "{scrutiny:?}");
        // Without the verifier of actions nothing says that the reply is an action.
        let verdict = decide(&wordless(&judged[1..]), scrutiny.bars(), false);
        assert!(verdict.shortfalls.contains(&Shortfall::RequiredMissing));
        // Everybody who is seated has to vote.
        let mut failed = judged.clone();
        failed[1].cast = Cast::Abstained(Abstention::Late);
        let verdict = decide(&wordless(&failed), scrutiny.bars(), false);
        assert!(verdict.shortfalls.contains(&Shortfall::Quorum) && !verdict.stood());
        failed[0].cast = Cast::Abstained(Abstention::Panicked);
        assert!(!decide(&wordless(&failed), scrutiny.bars(), false).stood());
    }
    let mut watched = judged.clone();
    watched[0].seat.monitor = true;
    watched[0].cast = ballot("", 3, Vote::Harmful, 99).cast;
    assert!(decide(&wordless(&watched), Scrutiny::Strict.bars(), false).delivers());
    // A panel without a seat for Crisis is none, and words are judged by a whole quorum.
    assert!(!decide(&judged, Scrutiny::Normal.bars(), false).delivers());
    let spoken = [&[ballot(Seat::CRISIS, 3, Vote::Safe, 99)], &judged[..]].concat();
    assert!(decide(&spoken, Scrutiny::Normal.bars(), false).delivers());
    assert!(!decide(&spoken, Scrutiny::Raised.bars(), false).delivers());
}

const NAMES: [&str; 7] =
    ["crisis", "higher_self", "wisdom", "shadow", "attachment", "counterfactual", "classifier"];

fn any_cast() -> impl Strategy<Value = Cast> {
    let vote =
        prop_oneof![4 => Just(Vote::Safe), 1 => Just(Vote::Concern), 1 => Just(Vote::Harmful)];
    prop_oneof![
        8 => (vote, prop_oneof![Just(100u8), 0u8..=100]).prop_map(|(vote, c)| Cast::Voted {
            vote,
            confidence: Confidence::from_hundredths(c).unwrap_or_default(),
        }),
        1 => Just(Cast::Abstained(Abstention::Late)),
        1 => Just(Cast::Excused(Abstention::Late)),
        1 => Just(Cast::NotApplicable),
    ]
}

fn any_panel() -> impl Strategy<Value = Vec<Ballot>> {
    prop::collection::vec((any_cast(), 1u8..=3, 1u16..=9, any::<bool>()), 3..=7).prop_map(|seats| {
        seats
            .into_iter()
            .zip(NAMES)
            .map(|((cast, priority, weight, required), name)| {
                let priority = Priority::from_number(priority).unwrap_or(Priority::Low);
                let seat = Seat::new(name, priority);
                let required = seat.required || required;
                Ballot::bare(Seat { weight, required, ..seat }, cast)
            })
            .collect()
    })
}

fn any_scrutiny() -> impl Strategy<Value = Scrutiny> {
    prop_oneof![Just(Scrutiny::Normal), Just(Scrutiny::Raised), Just(Scrutiny::Strict)]
}

/// Every way of making one ballot worse that must never help delivery.
fn worsened(cast: Cast) -> Vec<Cast> {
    let Cast::Voted { vote, confidence } = cast else {
        return Vec::new();
    };
    let lower = Confidence::from_hundredths(confidence.hundredths() / 2).unwrap_or_default();
    match vote {
        Vote::Safe => vec![
            Cast::Voted { vote: Vote::Concern, confidence },
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Voted { vote, confidence: lower },
            Cast::Abstained(Abstention::Failed),
        ],
        Vote::Concern => vec![
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Abstained(Abstention::Failed),
        ],
        Vote::Harmful => vec![],
    }
}

proptest! {
    #[test]
    fn worsening_a_ballot_never_moves_towards_deliver(
        panel in any_panel(), scrutiny in any_scrutiny(), crisis in any::<bool>(), at in 0usize..7,
    ) {
        let at = at % panel.len();
        let before = decide(&panel, scrutiny.bars(), crisis);
        for cast in worsened(panel[at].cast) {
            let mut worse = panel.clone();
            worse[at].cast = cast;
            let after = decide(&worse, scrutiny.bars(), crisis);
            prop_assert!(before.delivers() || !after.delivers());
            prop_assert!(after.safety_score_e4() <= before.safety_score_e4());
        }
    }

    #[test]
    fn order_changes_nothing(panel in any_panel(), scrutiny in any_scrutiny(), turn in 0usize..7) {
        let mut turned = panel.clone();
        turned.rotate_left(turn % panel.len());
        turned.reverse();
        prop_assert_eq!(
            decide(&panel, scrutiny.bars(), true),
            decide(&turned, scrutiny.bars(), true)
        );
    }

    #[test]
    fn scaling_all_weights_changes_nothing(panel in any_panel(), scrutiny in any_scrutiny(), k in 2u16..500) {
        let scaled: Vec<_> = panel.iter().cloned().map(|mut ballot| {
            ballot.seat.weight *= k;
            ballot
        }).collect();
        let (one, other) =
            (decide(&panel, scrutiny.bars(), false), decide(&scaled, scrutiny.bars(), false));
        prop_assert_eq!(one.shortfalls, other.shortfalls);
        prop_assert_eq!(one.safe_mass * u64::from(k), other.safe_mass);
    }

    #[test]
    fn raising_scrutiny_never_delivers_more(panel in any_panel(), crisis in any::<bool>()) {
        let delivered = [Scrutiny::Normal, Scrutiny::Raised, Scrutiny::Strict]
            .map(|scrutiny| decide(&panel, scrutiny.bars(), crisis).delivers());
        prop_assert!(delivered.is_sorted_by(|milder, stricter| milder >= stricter));
    }

    #[test]
    fn monitors_change_nothing(panel in any_panel(), cast in any_cast(), scrutiny in any_scrutiny()) {
        let mut watched = panel.clone();
        let seat = Seat { monitor: true, ..Seat::new("watcher", Priority::High) };
        watched.push(Ballot::bare(seat, cast));
        prop_assert_eq!(
            decide(&panel, scrutiny.bars(), true),
            decide(&watched, scrutiny.bars(), true)
        );
    }

    #[test]
    fn a_harmful_ballot_is_never_delivered(panel in any_panel(), scrutiny in any_scrutiny()) {
        let harmful = panel.iter().any(|b| matches!(b.cast, Cast::Voted { vote: Vote::Harmful, .. }));
        prop_assert!(!harmful || !decide(&panel, scrutiny.bars(), false).delivers());
    }
}
