//! What people have agreed to.

use crate::house::{office, tenant};
use conclave_govern::{ConsentAsk, ConsentEvidence, ConsentRecord, ConsentState, EvidenceKind};
use conclave_ledger::Kind;
use conclave_people::PeopleError;
use conclave_ports::{Governance, RecordChange, RecordKey, RecordKind, Records};

fn evidence() -> ConsentEvidence {
    ConsentEvidence { kind: EvidenceKind::Written, reference: "form 7".into() }
}

fn consent(subject: &str) -> ConsentRecord {
    ConsentRecord {
        subject: subject.into(),
        scopes: vec!["research".into()],
        purposes: vec!["study".into()],
        parties: vec![],
        given_ms: 1,
        expires_ms: None,
        evidence: evidence(),
        withdrawn: None,
    }
}

fn ask(subject: &str) -> ConsentAsk {
    ConsentAsk {
        subject: subject.into(),
        scopes: vec!["research".into()],
        purpose: "study".into(),
        party: None,
        now_ms: 1_800_000_000_000,
    }
}

#[tokio::test]
async fn a_withdrawal_is_in_force_with_the_next_question_and_provable() {
    let office = office();
    let t = tenant("t");
    assert!(office.people.consent(&t, "none").await.is_err());
    let id = office.people.give_consent(&t, "app", consent("ana")).await.unwrap();
    let asked = || Governance::consent(&*office.people, &t, ask("ana"));
    assert_eq!(asked().await.unwrap(), ConsentState::Granted { record: id.clone() });
    let other = tenant("other");
    let elsewhere = Governance::consent(&*office.people, &other, ask("ana")).await.unwrap();
    assert_eq!(elsewhere, ConsentState::Missing, "another tenant's consent is nobody's");
    let stolen = office.people.withdraw_consent(&other, "x", &id, evidence()).await;
    assert!(matches!(stolen, Err(PeopleError::NotFound(_))));
    office.people.withdraw_consent(&t, "app", &id, evidence()).await.unwrap();
    assert!(matches!(asked().await.unwrap(), ConsentState::Withdrawn { .. }));
    office.people.withdraw_consent(&t, "app", &id, evidence()).await.unwrap();
    assert_eq!(office.entries(&Kind::ConsentChange), 2, "given, and taken back once");
    let told = format!("{:?}", office.records.entries());
    assert!(!told.contains("ana") && !told.contains("form 7"), "no words in the log: {told}");
}

#[tokio::test]
async fn a_consent_that_cannot_be_read_is_an_error_that_names_it() {
    let office = office();
    let t = tenant("t");
    let id = office.people.give_consent(&t, "app", consent("ana")).await.unwrap();
    let key = RecordKey { kind: RecordKind::Consent, tenant: t.clone(), id: id.clone() };
    let mut record = office.records.get(key).await.unwrap().unwrap();
    record.data["withdrawn"] = serde_json::json!("of a later version");
    office.records.put(vec![RecordChange { record, entry: None }]).await.unwrap();
    let asked = Governance::consent(&*office.people, &t, ask("ana")).await;
    let why = asked.expect_err("it may be a withdrawal").0;
    assert!(why.contains(&id), "{why}");
}
