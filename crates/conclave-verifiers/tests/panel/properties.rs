//! What holds for every case, whatever is said.

use crate::support::{Row, Turn, ballots};
use conclave_core::{Cast, Message, Role, TurnContext};
use conclave_verifiers::{Case, Judge, builtin};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static JUDGES: LazyLock<Vec<Box<dyn Judge>>> = LazyLock::new(|| builtin().unwrap());

fn said() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "you",
        "are",
        "not",
        "stupid",
        "if",
        "I",
        "can't",
        "never",
        "kill",
        "yourself",
        "call",
        "someone",
        "only",
        "need",
        "me",
        ".",
        "?",
        "\"",
        "「",
        "」",
        "\n",
        "1.",
        "死",
        "ね",
        "ば",
        "あなた",
        "ません",
        ",",
        "```",
        "[A]",
        "B:",
        "don't",
        "tell",
        "your",
        "mother",
        "sure",
        "here",
        "is",
    ]);
    prop_oneof!["\\PC{0,80}", prop::collection::vec(words, 0..60).prop_map(|words| words.join(" ")),]
}

fn row(person: &str, reply: &str) -> Row {
    Row::of(vec![Turn { role: "user".into(), content: person.into() }], reply.into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_text_gets_the_same_valid_ballots_twice(person in said(), reply in said()) {
        let row = row(&person, &reply);
        let first = ballots(&JUDGES, &row.case());
        prop_assert_eq!(&first, &ballots(&JUDGES, &row.case()));
        for ballot in &first {
            prop_assert!(!matches!(ballot.cast, Cast::Abstained(_)));
        }
    }

    #[test]
    fn any_arguments_of_any_tool_are_weighed(name in "\\PC{0,20}", arguments in "\\PC{0,120}") {
        let mut row = row("do it", "");
        row.tool = Some(crate::support::Tool { name, arguments });
        let ballots = ballots(&JUDGES, &row.case());
        prop_assert!(ballots.iter().all(|ballot| !matches!(ballot.cast, Cast::Abstained(_))));
    }
}

#[test]
fn the_seats_are_those_of_the_specification() {
    let seats: Vec<_> = JUDGES
        .iter()
        .map(|judge| {
            let seat = judge.seat();
            (seat.verifier.to_string(), seat.priority.number(), seat.required)
        })
        .collect();
    let expected = [
        ("crisis", 3, true),
        ("higher_self", 2, false),
        ("wisdom", 2, false),
        ("shadow", 1, false),
        ("attachment", 1, false),
        ("counterfactual", 3, false),
        ("classifier", 2, false),
    ];
    assert_eq!(seats, expected.map(|(name, priority, must)| (name.to_owned(), priority, must)));
}

#[test]
fn a_clone_with_another_candidate_is_read_anew() {
    let case = row("Hello", "You only need me.").case();
    let attachment = JUDGES.iter().find(|judge| *judge.seat().verifier == *"attachment").unwrap();
    let first = attachment.judge(&case).unwrap();
    let mut other = case.clone();
    other.candidate.text = "Hello, what shall we cook?".into();
    let second = attachment.judge(&other).unwrap();
    assert_ne!(first.vote, second.vote);
}

#[test]
fn without_an_action_counterfactual_does_not_sit_and_text_beside_one_is_still_judged() {
    let mut row = row("Clean up.", "You are an idiot.");
    assert!(matches!(ballots(&JUDGES, &row.case())[5].cast, Cast::NotApplicable));
    row.tool = Some(crate::support::Tool { name: "get_weather".into(), arguments: "{}".into() });
    let seated = ballots(&JUDGES, &row.case());
    assert!(seated[3].dissents() && !seated[5].dissents());
}

#[test]
fn nobody_having_spoken_is_no_trouble() {
    let reading = conclave_detect::Reading::empty(conclave_core::Mode::Normal);
    let conversation: Arc<[Message]> = vec![Message::text(Role::System, "Be kind.")].into();
    let candidate = conclave_core::Candidate { text: "Hello!".into(), ..Default::default() };
    let case =
        Case::new(conversation, candidate, TurnContext::default(), reading.clone().into(), reading);
    assert!(ballots(&JUDGES, &case).iter().all(|ballot| !ballot.dissents()));
}
