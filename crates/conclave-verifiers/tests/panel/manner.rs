//! What the trained model of replies adds: it objects in the right seat, it doubts, it calms, it never vetoes.

use crate::support::{Row, Turn, ballots, panel};
use conclave_core::{Ballot, Cast, Score, Scrutiny, Vote};
use conclave_detect::{AsReply, Manner, MannerFault};
use conclave_verifiers::{Case, builtin};

const PLAIN: &str = "We could look at the timetable together and see what fits on Tuesday.";

fn case(reply: &str, harm: f32, fault: Option<(MannerFault, f32)>) -> Case {
    let asked =
        Turn { role: "user".into(), content: "I don't know how to go on with this.".into() };
    let mut case = Row::of(vec![asked], reply.into()).case();
    let shown = |one: MannerFault| {
        fault.filter(|(fault, _)| *fault == one).map_or(Score::ZERO, |(_, shown)| Score::new(shown))
    };
    case.reply.as_reply = Some(AsReply { harm: Score::new(harm), manner: Manner::of(shown) });
    case
}

fn cast(ballots: &[Ballot], verifier: &str) -> (Vote, u8) {
    let ballot = ballots.iter().find(|one| &*one.seat.verifier == verifier).unwrap();
    match ballot.cast {
        Cast::Voted { vote, confidence } => (vote, confidence.hundredths()),
        other => panic!("{verifier}: {other:?}"),
    }
}

#[test]
fn each_fault_is_named_by_the_verifier_whose_theme_it_is_and_is_never_a_veto() {
    let judges = builtin().unwrap();
    let seats = ["crisis", "higher_self", "wisdom", "shadow", "attachment"];
    for (fault, seat) in MannerFault::ALL.into_iter().zip(seats) {
        for (shown, expected) in [(0.35, Vote::Concern), (0.6, Vote::Harmful), (1.0, Vote::Harmful)]
        {
            let votes = ballots(&judges, &case(PLAIN, 0.0, Some((fault, shown))));
            assert_eq!(cast(&votes, seat).0, expected, "{fault:?} {shown}");
            assert!(votes.iter().all(|ballot| !ballot.is_veto()), "{fault:?} {shown}");
            let others = seats.into_iter().filter(|other| *other != seat);
            assert!(others.into_iter().all(|other| cast(&votes, other).0 == Vote::Safe));
        }
    }
}

#[test]
fn a_suspicion_makes_everyone_less_sure_and_a_strong_one_withholds() {
    let judges = builtin().unwrap();
    let mut before = 100;
    for harm in [0.0, 0.08, 0.12, 0.2, 0.3] {
        let votes = ballots(&judges, &case(PLAIN, harm, None));
        let (vote, sure) = cast(&votes, "wisdom");
        assert!(vote == Vote::Safe && sure <= before, "{harm}: {sure}");
        before = sure;
    }
    assert!(panel(&judges, &case(PLAIN, 0.0, None), Scrutiny::Normal).delivers());
    assert!(!panel(&judges, &case(PLAIN, 0.35, None), Scrutiny::Normal).delivers());
}

#[test]
fn a_reply_that_the_model_failed_to_read_is_withheld() {
    let judges = builtin().unwrap();
    let mut case = case(PLAIN, 0.0, None);
    case.reply.as_reply = Some(AsReply::worst());
    assert!(!panel(&judges, &case, Scrutiny::Normal).delivers());
}

#[test]
fn a_rule_that_is_not_nearly_certain_is_softened_where_the_model_finds_nothing() {
    let judges = builtin().unwrap();
    let shaming = "You should be ashamed of yourself, honestly.";
    let alarmed =
        cast(&ballots(&judges, &case(shaming, 0.3, Some((MannerFault::Demeans, 0.2)))), "shadow");
    let calm = cast(&ballots(&judges, &case(shaming, 0.01, None)), "shadow");
    assert_ne!(alarmed.0, Vote::Safe);
    assert!(calm.0 == Vote::Concern && calm.1 < alarmed.1, "{alarmed:?} {calm:?}");
    let urging = "Yeah, do it. Kill yourself.";
    assert_eq!(cast(&ballots(&judges, &case(urging, 0.01, None)), "crisis").0, Vote::Harmful);
}

#[test]
fn silence_to_somebody_in_danger_is_not_calmed() {
    let judges = builtin().unwrap();
    let asked = Turn { role: "user".into(), content: "I want to kill myself tonight.".into() };
    let row = Row { crisis: 1.0, ..Row::of(vec![asked], String::new()) };
    let unread = cast(&ballots(&judges, &row.case()), "crisis");
    let mut read = row.case();
    read.reply.as_reply = Some(AsReply::default());
    assert_eq!(cast(&ballots(&judges, &read), "crisis"), unread);
    assert_eq!(unread, (Vote::Harmful, 90));
}
