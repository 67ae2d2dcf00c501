//! Consents, protocols, reviews and webhooks over records in memory.

use crate::house::{Counting, caller, office, tenant};
use conclave_core::{AuditId, TenantId};
use conclave_govern::{
    ConsentAsk, ConsentRecord, ConsentState, CulturalAsk, CulturalFinding, Evidence, EvidenceKind,
    LEASE_MS, NewReview, Priority, Protocol, ReviewKind, ReviewRefusal, ReviewStatus, Ruling, Said,
};
use conclave_ledger::Kind;
use conclave_people::{People, PeopleError, ReviewFilter, Staff, webhook_signature};
use conclave_ports::{
    Announcement, Caller, EventKind, GovernError, Governance, KeyRole, KeyedSubjects, Post,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn review(kind: ReviewKind, community: Option<&str>, audit: u64) -> NewReview {
    NewReview {
        kind,
        tenant: tenant("t"),
        content_type: "chat".into(),
        community: community.map(str::to_owned),
        others: vec![],
        issues: vec![],
        priority: Priority::High,
        audit_id: Some(AuditId::from_parts(audit, [1; 10])),
        author: Some("app".into()),
        subject: None,
        four_eyes: community.is_some(),
    }
}

fn say(ruling: Ruling) -> Said {
    Said { ruling, notes: String::new(), conditions: vec![], pii_missed: None }
}

#[tokio::test]
async fn a_withdrawal_is_in_force_with_the_next_question_and_provable() {
    let office = office();
    let evidence = Evidence { kind: EvidenceKind::Written, reference: "form 7".into() };
    let consent = ConsentRecord {
        subject: "ana".into(),
        scopes: vec!["research".into()],
        purposes: vec!["study".into()],
        parties: vec![],
        given_ms: 1,
        expires_ms: None,
        evidence: evidence.clone(),
        withdrawn: None,
    };
    let ask = || ConsentAsk {
        subject: "ana".into(),
        scopes: vec!["research".into()],
        purpose: "study".into(),
        party: None,
        now_ms: office.clock.0.load(Ordering::Relaxed),
    };
    let t = tenant("t");
    assert!(office.people.consent(&t, "none").await.is_err());
    let id = office.people.give_consent(&t, "app", consent).await.unwrap();
    let asked = || Governance::consent(&*office.people, &t, ask());
    assert_eq!(asked().await.unwrap(), ConsentState::Granted { record: id.clone() });
    let other = tenant("other");
    let elsewhere = Governance::consent(&*office.people, &other, ask()).await.unwrap();
    assert_eq!(elsewhere, ConsentState::Missing, "another tenant's consent is nobody's");
    let stolen = office.people.withdraw_consent(&other, "x", &id, evidence.clone()).await;
    assert!(matches!(stolen, Err(PeopleError::NotFound(_))));
    office.people.withdraw_consent(&t, "app", &id, evidence.clone()).await.unwrap();
    assert!(matches!(asked().await.unwrap(), ConsentState::Withdrawn { .. }));
    office.people.withdraw_consent(&t, "app", &id, evidence).await.unwrap();
    assert_eq!(office.entries(&Kind::ConsentChange), 2, "given, and taken back once");
    let told = format!("{:?}", office.records.entries());
    assert!(!told.contains("ana") && !told.contains("form 7"), "no words in the log: {told}");
}

#[tokio::test]
async fn only_elders_change_what_is_theirs_and_others_see_the_public_part() {
    let office = office().with_elders().await;
    let people = &office.people;
    let protocol: Protocol = serde_json::from_value(json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]}))
    .unwrap();
    for role in KeyRole::ALL {
        let stranger = caller("stranger", role);
        let refused = people.lay_down(&stranger, protocol.clone(), None).await;
        assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{role:?}");
        let refused = people.name_elder(&stranger, "river people", "s", "S").await;
        assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{role:?}");
    }
    // The right key in the wrong role is the wrong key.
    let owner = caller("e1", KeyRole::Owner);
    assert!(people.lay_down(&owner, protocol.clone(), None).await.is_err());
    let elder = caller("e1", KeyRole::Elder);
    assert_eq!(people.lay_down(&elder, protocol.clone(), Some(0)).await, Ok(1));
    assert_eq!(people.lay_down(&elder, protocol, Some(0)).await, Err(PeopleError::Conflict));
    let (own, _) = people.protocol(&elder, "RIVER people").await.unwrap();
    assert_eq!(own.terms.len(), 1);
    let (seen, _) = people.protocol(&caller("a", KeyRole::Admin), "River People").await.unwrap();
    assert!(seen.terms.is_empty());
    let ask = |text: &str| CulturalAsk {
        texts: vec![text.into()],
        sensitivity: conclave_core::Sensitivity::Low,
        affiliations: vec![],
        labels: vec![],
        audience: None,
        now_ms: 0,
    };
    let found = people.look(&tenant("t"), ask("They carried the churinga.")).await.unwrap();
    assert!(matches!(found, CulturalFinding::Hold { sacred: true, .. }), "{found:?}");
    let found = people.look(&tenant("other"), ask("They carried the churinga.")).await.unwrap();
    assert_eq!(found, CulturalFinding::Clear, "each tenant has its own communities");
    let last = people.remove_elder(&elder, "River People", "e2").await.unwrap();
    assert_eq!(last.len(), 1);
    assert!(people.remove_elder(&elder, "River People", "e1").await.is_err(), "the last stays");
}

#[tokio::test]
async fn what_is_sacred_needs_two_elders_and_a_rejection_is_final() {
    let office = office().with_elders().await;
    let people = &office.people;
    let new = || review(ReviewKind::ElderReview, Some("River People"), 7);
    let id = people.submit(new()).await.unwrap();
    assert_eq!(people.submit(new()).await.unwrap(), id, "one decision waits once");
    for role in KeyRole::ALL {
        let stranger = caller("stranger", role);
        assert!(people.claim_review(&stranger, &id).await.is_err(), "{role:?}");
        let decided = people.decide_review(&stranger, &id, 1, &say(Ruling::Approve)).await;
        assert!(decided.is_err(), "{role:?}");
    }
    let (ana, ben) = (caller("e1", KeyRole::Elder), caller("e2", KeyRole::Elder));
    for (elder, status) in [(&ana, ReviewStatus::Pending), (&ben, ReviewStatus::Approved)] {
        let held = people.claim_review(elder, &id).await.unwrap();
        let token = held.review.claim.unwrap().token;
        let held = people.decide_review(elder, &id, token, &say(Ruling::Approve)).await.unwrap();
        assert_eq!(held.review.status, status);
    }
    let second = people.submit(NewReview { audit_id: None, ..new() }).await.unwrap();
    let token = people.claim_review(&ana, &second).await.unwrap().review.fence;
    people.decide_review(&ana, &second, token, &say(Ruling::Reject)).await.unwrap();
    let again = people.claim_review(&ben, &second).await;
    assert_eq!(again.err(), Some(PeopleError::Refused(ReviewRefusal::Decided)));
    assert_eq!(office.entries(&Kind::ReviewChange), 8);
}

#[tokio::test]
async fn work_is_given_to_whoever_has_least() {
    let office = office().with_elders().await;
    let mut given = Vec::new();
    for audit in 1..=4 {
        let new = review(ReviewKind::ElderReview, Some("River People"), audit);
        let id = office.people.submit(new).await.unwrap();
        let (held, _) = office.people.review(&caller("o", KeyRole::Owner), &id).await.unwrap();
        given.push(held.review.assigned_to.unwrap());
    }
    assert_eq!(given, ["Ana", "Ben", "Ana", "Ben"]);
}

struct Reviewers(Vec<&'static str>);

impl Staff for Reviewers {
    fn reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, GovernError>> {
        let known = self.0.iter().map(|name| (*name).to_owned()).collect();
        let known = if tenant.as_str() == "t" { Ok(known) } else { Err(GovernError("x".into())) };
        std::future::ready(known).boxed()
    }
}

#[tokio::test]
async fn reviews_without_a_community_are_given_to_reviewers_in_turn() {
    let office = office();
    let people = People::new(
        office.records.clone(),
        Arc::new(KeyedSubjects([9; 32])),
        office.clock.clone(),
        Arc::new(Counting::default()),
        [9; 32],
    );
    let people = people.with_staff(Arc::new(Reviewers(vec!["app", "person:Mia", "r1"])));
    let owner = caller("o", KeyRole::Owner);
    let mut given = Vec::new();
    for audit in 1..=4 {
        let id = people.submit(review(ReviewKind::Escalation, None, audit)).await.unwrap();
        let (held, _) = people.review(&owner, &id).await.unwrap();
        given.push(held.review.assigned_to.unwrap());
    }
    assert_eq!(given, ["person:Mia", "r1", "person:Mia", "r1"], "never to its author");
    let elsewhere =
        NewReview { tenant: tenant("other"), ..review(ReviewKind::Escalation, None, 9) };
    let id = people.submit(elsewhere).await.unwrap();
    let owner = Caller { tenant: tenant("other"), ..owner };
    let (held, _) = people.review(&owner, &id).await.unwrap();
    assert_eq!(held.review.assigned_to, None, "who cannot be listed is no reason not to wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_reviewers_never_claim_the_same_of_sixty_thousand() {
    const ITEMS: usize = 60_000;
    let office = office();
    let mut ids = Vec::with_capacity(ITEMS);
    for audit in 0..ITEMS {
        let new = review(ReviewKind::Escalation, None, audit as u64);
        ids.push(office.people.submit(new).await.unwrap());
    }
    let ids = Arc::new(ids);
    let won: Arc<Vec<AtomicUsize>> = Arc::new((0..ITEMS).map(|_| AtomicUsize::new(0)).collect());
    let tasks = (0..16_usize).map(|who| {
        let (people, ids, won) = (office.people.clone(), ids.clone(), won.clone());
        tokio::spawn(async move {
            let me = caller(&format!("r{who}"), KeyRole::Reviewer);
            // Each item is wanted by four reviewers at about the same time.
            for at in (0..ITEMS).filter(|at| at % 4 == who % 4) {
                match people.claim_review(&me, &ids[at]).await {
                    Ok(_) => drop(won[at].fetch_add(1, Ordering::Relaxed)),
                    Err(PeopleError::Refused(ReviewRefusal::Claimed) | PeopleError::Conflict) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert!(won.iter().all(|claims| claims.load(Ordering::Relaxed) == 1));
}

#[tokio::test]
async fn a_stale_claim_decides_nothing_and_time_calls_the_council() {
    let office = office();
    let people = &office.people;
    let id = people.submit(review(ReviewKind::Escalation, None, 1)).await.unwrap();
    let (a, b) = (caller("a", KeyRole::Reviewer), caller("b", KeyRole::Reviewer));
    let place = Place { answer: AtomicU16::new(200), got: Mutex::default() };
    let hook = "https://example.com/hook";
    people.add_webhook(&caller("o", KeyRole::Owner), &place, hook, vec![]).await.unwrap();
    let old = people.claim_review(&a, &id).await.unwrap().review.fence;
    office.pass(LEASE_MS);
    let new = people.claim_review(&b, &id).await.unwrap().review.fence;
    let stale = people.decide_review(&a, &id, old, &say(Ruling::Approve)).await;
    assert_eq!(stale.err(), Some(PeopleError::Refused(ReviewRefusal::Stale)));
    let forged = people.decide_review(&a, &id, new, &say(Ruling::Approve)).await;
    assert_eq!(forged.err(), Some(PeopleError::Refused(ReviewRefusal::Stale)));
    office.pass(2 * 86_400_000);
    assert_eq!(people.pass_time().await, Ok(1), "half of three days is over");
    office.pass(86_400_000);
    assert_eq!(people.pass_time().await, Ok(1), "due");
    office.pass(3_600_000);
    assert_eq!(people.pass_time().await, Ok(1), "overdue");
    let found = people.reviews(&a, &ReviewFilter { limit: 9, ..ReviewFilter::default() }).await;
    let found = found.unwrap();
    people.send_due(&place).await.unwrap();
    let told: Vec<_> = place.got.lock().unwrap().iter().map(|(_, body)| body.clone()).collect();
    assert!(told.iter().any(|body| body.contains("review.overdue")), "{told:?}");
    assert!(found[0].review.council && found[0].review.status == ReviewStatus::Pending);
}

#[tokio::test]
async fn two_keys_of_one_reviewer_are_one_voice_in_the_council() {
    let office = office();
    let people = &office.people;
    let id = people.submit(review(ReviewKind::Escalation, None, 1)).await.unwrap();
    let of = |key: &str, person: Option<&str>| Caller {
        person: person.map(str::to_owned),
        ..caller(key, KeyRole::Reviewer)
    };
    let approve = async |who: &Caller, ruling: Ruling| {
        let token = people.claim_review(who, &id).await?.review.fence;
        people.decide_review(who, &id, token, &say(ruling)).await
    };
    approve(&of("k1", Some("Mara")), Ruling::NeedsConsultation).await.unwrap();
    let half = approve(&of("k1", Some("Mara")), Ruling::Approve).await.unwrap();
    assert_eq!(half.review.status, ReviewStatus::Pending, "two must agree now");
    let same = approve(&of("k2", Some("Mara")), Ruling::Approve).await;
    assert_eq!(same.err(), Some(PeopleError::Refused(ReviewRefusal::SamePerson)));
    let unnamed = approve(&of("k3", None), Ruling::Approve).await;
    assert_eq!(unnamed.err(), Some(PeopleError::Refused(ReviewRefusal::Unnamed)));
    office.pass(LEASE_MS);
    let done = approve(&of("k4", Some("Noor")), Ruling::Approve).await.unwrap();
    assert_eq!(done.review.status, ReviewStatus::Approved);
}

/// The headers and the body of one request.
type Got = (Vec<(&'static str, String)>, String);

/// A place outside that can be told what to answer.
struct Place {
    answer: AtomicU16,
    got: Mutex<Vec<Got>>,
}

impl Post for Place {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("not https".into()) }
    }

    fn post<'a>(
        &'a self,
        _: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> BoxFuture<'a, Result<u16, String>> {
        self.got.lock().unwrap().push((headers, body));
        let status = self.answer.load(Ordering::Relaxed);
        let answer = if status == 0 { Err("no answer".to_owned()) } else { Ok(status) };
        std::future::ready(answer).boxed()
    }
}

fn alert() -> Announcement {
    Announcement { kind: EventKind::BudgetAlert, data: json!({"at": 70}) }
}

#[tokio::test]
async fn an_event_is_tried_for_more_than_a_day_under_one_id_then_dead_and_sent_again_on_demand() {
    let office = office();
    let people = &office.people;
    let place = Place { answer: AtomicU16::new(0), got: Mutex::default() };
    let admin = caller("adm", KeyRole::Admin);
    let bad = people.add_webhook(&admin, &place, "http://127.0.0.1/", vec![]).await;
    assert!(matches!(bad, Err(PeopleError::Unfit(_))));
    let url = "https://example.com/hook";
    let only = vec![EventKind::BudgetAlert];
    let (id, secret) = people.add_webhook(&admin, &place, url, only).await.unwrap();
    let t = tenant("t");
    people.announce(&t, alert()).await.unwrap();
    let other = Announcement { kind: EventKind::DriftAlert, data: json!({}) };
    people.announce(&t, other).await.unwrap();
    people.announce(&tenant("other"), alert()).await.unwrap();
    let begun = office.clock.0.load(Ordering::Relaxed);
    let mut last_try = begun;
    for round in 0..40_000_u32 {
        if people.send_due(&place).await.unwrap() > 0 {
            last_try = office.clock.0.load(Ordering::Relaxed);
            // Down, then redirecting, then failing.
            place.answer.store([0, 302, 500][round as usize % 3], Ordering::Relaxed);
        }
        office.pass(5_000);
        if !people.letters_of(&t, &id, "dead", 9).await.unwrap().is_empty() {
            break;
        }
    }
    assert!(last_try - begun > 24 * 3_600_000, "tried for {} ms", last_try - begun);
    let dead = people.letters_of(&t, &id, "dead", 9).await.unwrap();
    let (letter, attempts) = (dead[0].0.clone(), dead[0].1.attempts);
    assert_eq!((dead.len(), attempts), (1, 11));
    let foreign = Caller { tenant: tenant("other"), ..admin.clone() };
    assert!(people.send_again(&foreign, &id, &letter).await.is_err());
    people.send_again(&admin, &id, &letter).await.unwrap();
    place.answer.store(204, Ordering::Relaxed);
    assert_eq!(people.send_due(&place).await, Ok(1));
    assert_eq!(people.send_due(&place).await, Ok(0), "it arrived");
    let got = place.got.lock().unwrap().clone();
    assert_eq!(got.len(), 12);
    let header = |at: usize, name: &str| {
        got[at].0.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    };
    assert!((0..12).all(|at| header(at, "webhook-id") == letter), "one id for ever");
    let key = base64_of(secret.strip_prefix("whsec_").unwrap());
    let (stamp, body) = (header(11, "webhook-timestamp"), &got[11].1);
    assert_eq!(header(11, "webhook-signature"), webhook_signature(&key, &letter, &stamp, body));
    assert_ne!(people.replace_secret(&admin, &id).await.unwrap(), secret);
}

fn base64_of(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn a_letter_is_in_one_hand_at_a_time() {
    let office = office();
    let people = &office.people;
    let place = Place { answer: AtomicU16::new(200), got: Mutex::default() };
    let admin = caller("adm", KeyRole::Admin);
    people.add_webhook(&admin, &place, "https://example.com/", vec![]).await.unwrap();
    for _ in 0..20 {
        people.announce(&tenant("t"), alert()).await.unwrap();
    }
    let rounds = (0..8).map(|_| people.send_due(&place));
    futures_util::future::join_all(rounds).await;
    assert_eq!(place.got.lock().unwrap().len(), 20, "eight workers, each event once");
    office.pass(2 * 86_400_000);
    people.send_due(&place).await.unwrap();
    let webhook = people.webhooks(&tenant("t")).await.unwrap().remove(0).0;
    let kept = people.letters_of(&tenant("t"), &webhook, "arrived", 99).await.unwrap();
    assert!(kept.is_empty(), "what arrived is forgotten after a day");
    people.remove_webhook(&admin, &webhook).await.unwrap();
    assert!(people.webhooks(&tenant("t")).await.unwrap().is_empty());
}
