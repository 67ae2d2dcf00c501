//! When consent covers an ask.

use super::*;
use proptest::prelude::*;

fn record(given_ms: u64) -> ConsentRecord {
    ConsentRecord {
        subject: "ana".into(),
        scopes: vec!["research".into(), "publication".into()],
        purposes: vec!["housing study".into()],
        parties: vec!["University".into()],
        given_ms,
        expires_ms: None,
        evidence: ConsentEvidence { kind: EvidenceKind::Written, reference: "form 7".into() },
        withdrawn: None,
    }
}

fn ask(now_ms: u64) -> ConsentAsk {
    ConsentAsk {
        subject: "ana".into(),
        scopes: vec!["research".into()],
        purpose: "Housing study".into(),
        party: None,
        now_ms,
    }
}

fn withdrawn(mut record: ConsentRecord, at_ms: u64) -> ConsentRecord {
    let evidence = record.evidence.clone();
    record.withdrawn = Some(Withdrawal { at_ms, evidence });
    record
}

fn state(records: Vec<ConsentRecord>, ask: &ConsentAsk) -> ConsentState {
    let ids = ["a", "b", "c"].map(str::to_owned);
    check(&ids.into_iter().zip(records).collect::<Vec<_>>(), ask)
}

#[test]
fn consent_is_checked_for_its_purpose_and_not_for_its_presence() {
    assert_eq!(state(vec![], &ask(5)), ConsentState::Missing);
    assert_eq!(state(vec![record(1)], &ask(5)), ConsentState::Granted { record: "a".into() });
    let other = ConsentAsk { purpose: "advertising".into(), ..ask(5) };
    let missing = vec!["the purpose `advertising`".to_owned()];
    assert_eq!(state(vec![record(1)], &other), ConsentState::NotCovered { missing });
    let wide = ConsentAsk { scopes: vec!["research".into(), "training".into()], ..ask(5) };
    let missing = vec!["the scope `training`".to_owned()];
    assert_eq!(state(vec![record(1)], &wide), ConsentState::NotCovered { missing });
    let given_away = ConsentAsk { party: Some("Newspaper".into()), ..ask(5) };
    assert!(!state(vec![record(1)], &given_away).is_granted());
    let permitted = ConsentAsk { party: Some("university".into()), ..ask(5) };
    assert!(state(vec![record(1)], &permitted).is_granted());
    let somebody_else = ConsentAsk { subject: "ben".into(), ..ask(5) };
    assert_eq!(state(vec![record(1)], &somebody_else), ConsentState::Missing);
    let everything = ConsentAsk { scopes: vec![], ..ask(5) };
    assert!(!state(vec![record(1)], &everything).is_granted());
}

#[test]
fn time_begins_and_ends_it() {
    assert_eq!(state(vec![record(9)], &ask(5)), ConsentState::Missing, "not yet given");
    let mut brief = record(1);
    brief.expires_ms = Some(5);
    assert!(state(vec![brief.clone()], &ask(4)).is_granted());
    let over = ConsentState::Expired { record: "a".into(), at_ms: 5 };
    assert_eq!(state(vec![brief], &ask(5)), over);
}

#[test]
fn what_was_taken_back_is_not_covered_by_an_older_copy_but_by_a_later_yes() {
    let back = ConsentState::Withdrawn { record: "a".into(), at_ms: 5 };
    assert_eq!(state(vec![withdrawn(record(1), 5)], &ask(5)), back);
    assert_eq!(state(vec![withdrawn(record(1), 5), record(2)], &ask(6)), back);
    let again = ConsentState::Granted { record: "b".into() };
    assert_eq!(state(vec![withdrawn(record(1), 5), record(6)], &ask(7)), again);
}

#[test]
fn records_have_limits_and_say_which() {
    assert_eq!(record(1).check(), Ok(()));
    let mut empty = record(1);
    empty.purposes.clear();
    assert_eq!(empty.check().unwrap_err().to_string(), "purposes must have 1 to 16 entries");
    let mut backwards = record(9);
    backwards.expires_ms = Some(9);
    assert!(backwards.check().is_err());
    let mut odd = record(1);
    odd.evidence.reference = "a\u{7}".into();
    assert!(odd.check().is_err());
}

proptest! {
    /// Whatever else is on record: after a withdrawal nothing given before it is a yes.
    #[test]
    fn no_order_of_records_outlives_a_withdrawal(given in proptest::collection::vec(0u64..50, 1..3),
                                                 at in 50u64..60) {
        let mut records: Vec<_> = given.iter().map(|at| record(*at)).collect();
        records[0] = withdrawn(records[0].clone(), at);
        for now_ms in at..70 {
            prop_assert!(!state(records.clone(), &ask(now_ms)).is_granted());
        }
    }

    /// Withdrawing never grants anything.
    #[test]
    fn withdrawing_only_takes_away(given in 0u64..10, at in 0u64..20, now in 0u64..30) {
        let before = state(vec![record(given)], &ask(now)).is_granted();
        let after = state(vec![withdrawn(record(given), at)], &ask(now)).is_granted();
        prop_assert!(before || !after);
    }
}
