//! What waits for a person: given, claimed, decided, reminded of.

use crate::house::{Counting, caller, office, tenant};
use crate::webhooks::Place;
use conclave_core::{AuditId, TenantId};
use conclave_govern::{
    LEASE_MS, NewReview, ReviewKind, ReviewPriority, ReviewRefusal, ReviewStatus, Ruling, Said,
};
use conclave_ledger::Kind;
use conclave_people::{People, PeopleError, ReviewFilter, Staff, StaffMember};
use conclave_ports::{Caller, GovernError, Governance, KeyRole, KeyedSubjects};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
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
        priority: ReviewPriority::High,
        audit_id: Some(AuditId::from_parts(audit, [1; 10])),
        author: Some("app".into()),
        subject: None,
        four_eyes: community.is_some(),
    }
}

fn say(ruling: Ruling) -> Said {
    Said { ruling, notes: String::new(), conditions: vec![], pii_missed: None, answer: None }
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
        let held = office.people.review(&caller("o", KeyRole::Owner), &id).await.unwrap().record;
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

    fn deciders<'a>(
        &'a self,
        _: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<StaffMember>, GovernError>> {
        let member = |name: &&str| StaffMember { holder: (*name).to_owned(), person: None };
        std::future::ready(Ok(self.0.iter().map(member).collect())).boxed()
    }

    fn has_reviewers<'a>(&'a self, _: &'a TenantId) -> BoxFuture<'a, Result<bool, GovernError>> {
        std::future::ready(Ok(!self.0.is_empty())).boxed()
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
        let held = people.review(&owner, &id).await.unwrap().record;
        given.push(held.review.assigned_to.unwrap());
    }
    assert_eq!(given, ["person:Mia", "r1", "person:Mia", "r1"], "never to its author");
    let elsewhere =
        NewReview { tenant: tenant("other"), ..review(ReviewKind::Escalation, None, 9) };
    let id = people.submit(elsewhere).await.unwrap();
    let owner = Caller { tenant: tenant("other"), ..owner };
    let held = people.review(&owner, &id).await.unwrap().record;
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
