//! A person disagrees: who may rule, what they are told, what is counted, and what nobody can do.

use crate::hand_out::{Log, Open};
use crate::house::{Counting, Office, caller, office, tenant};
use conclave_core::{AuditId, TenantId};
use conclave_govern::{
    AppealAnswer, AppealConcern, AppealOutcome, ReviewRefusal, ReviewStatus, Ruling, Said,
};
use conclave_ledger::{Body, Draft, Kind, Value, tenant_number};
use conclave_people::{
    AppealFilter, AppealRecord, AppealStanding, Appeals, CorrectedReply, GuardedHandOut, NewAppeal,
    NoAppeal, People, PeopleError, ReviewResult, Staff, StaffMember, explain,
};
use conclave_ports::{Archive, Caller, GovernError, KeyRole, KeyedSubjects, Stamp, StoredDecision};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::Arc;

const VETOED: &str = "Nobody would miss you.";
const CORRECTED: &str = "元気です。<b>あなた</b>は？";

/// These people, each with an account.
struct Hired(&'static [&'static str]);

impl Staff for Hired {
    fn reviewers<'a>(&'a self, _: &'a TenantId) -> BoxFuture<'a, Result<Vec<String>, GovernError>> {
        ready(Ok(self.0.iter().map(|name| format!("person:{name}")).collect())).boxed()
    }

    fn deciders<'a>(
        &'a self,
        _: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<StaffMember>, GovernError>> {
        let member = |name: &&str| StaffMember {
            holder: format!("person:{name}"),
            person: Some((*name).to_owned()),
        };
        ready(Ok(self.0.iter().map(member).collect())).boxed()
    }

    fn has_reviewers<'a>(&'a self, _: &'a TenantId) -> BoxFuture<'a, Result<bool, GovernError>> {
        ready(Ok(!self.0.is_empty())).boxed()
    }
}

struct Desk {
    office: Office,
    log: Arc<Log>,
    appeals: Appeals,
}

fn desk(hired: &'static [&'static str], staffed: bool) -> Desk {
    let office = office();
    let people = People::new(
        office.records.clone(),
        Arc::new(KeyedSubjects([9; 32])),
        office.clock.clone(),
        Arc::new(Counting::default()),
        [9; 32],
    );
    let people = Arc::new(people.with_staff(Arc::new(Hired(hired))));
    let office = Office { people: people.clone(), ..office };
    let log = Arc::new(Log::default());
    let hand_out = GuardedHandOut {
        people: people.clone(),
        governance: people.clone(),
        archive: log.clone(),
        ledger: log.clone(),
        policies: Arc::new(Open),
        clock: office.clock.clone(),
        stamp: Stamp::default(),
        pseudonym_key: [9; 32],
    };
    let appeals = Appeals { people, hand_out: Arc::new(hand_out), staffed };
    Desk { office, log, appeals }
}

/// Somebody who reviews, with an account.
fn reviewer(name: &str) -> Caller {
    let holder = format!("person:{name}");
    Caller { person: Some(name.to_owned()), ..caller(&holder, KeyRole::Reviewer) }
}

impl Desk {
    /// A turn whose only reply a check vetoed, or which was sent.
    async fn decided(&self, number: u64, outcome: &'static str) -> StoredDecision {
        let audit = AuditId::from_parts(number, [1; 10]);
        let vote = |name: &str, vote: &str, sure: u64| {
            Value::Array(vec![
                name.into(),
                vote.into(),
                Value::Uint(sure),
                Value::Uint(1),
                Value::Uint(3),
                Value::Bool(true),
                Value::Bool(false),
                Value::Uint(1),
            ])
        };
        let panel = Value::map([(
            "ballots",
            Value::Array(vec![vote("crisis", "harmful", 99), vote("wisdom", "safe", 80)]),
        )]);
        let attempt = Value::map([("failure", Value::Null), ("panels", Value::Array(vec![panel]))]);
        let choice = Value::map([
            ("attempts", Value::Array(vec![attempt])),
            ("outcome", Value::from(outcome)),
        ]);
        let draft = Draft {
            audit: Some(audit.0.into_bytes()),
            subject: Some([3; 16]),
            public: Value::map([
                ("outcome", Value::from(outcome)),
                ("attempts", Value::Uint(1)),
                ("choices", Value::Array(vec![choice])),
            ]),
            ..Draft::new(Kind::Decision, tenant_number("t"))
        };
        let mut body = Body::empty();
        for (name, value) in [
            ("who", json!({"context": {"language": "ja"}})),
            ("candidate.0.0", json!({"text": VETOED})),
            ("delivered.0", json!({"text": "お答えできません。"})),
            (
                "votes.0.0",
                json!([{"verifier": "crisis", "panel": 0, "reasons": ["encourages_harm"]}]),
            ),
        ] {
            body.push(name, [1; 32], value.to_string());
        }
        self.log.take(draft, &body);
        let found = self.log.find(tenant_number("t"), audit).await.unwrap();
        StoredDecision::from_entries(found).unwrap().unwrap()
    }

    async fn standing(&self, stored: &StoredDecision) -> AppealStanding {
        self.appeals.standing(&tenant("t"), stored).await.unwrap()
    }

    async fn file(&self, stored: &StoredDecision) -> Result<AppealRecord, PeopleError> {
        self.appeals.file(&tenant("t"), stored, appeal("返事がほしかったです。")).await
    }

    async fn rule(&self, who: &Caller, review: &str, said: Said) -> Result<(), PeopleError> {
        let people = &self.office.people;
        let token = people.claim_review(who, review).await?.review.fence;
        people.decide_review(who, review, token, &said).await.map(drop)
    }
}

fn appeal(words: &str) -> NewAppeal {
    let concern = AppealConcern::ShouldHaveAnswered;
    NewAppeal { concern, words: words.to_owned(), filed_by: None }
}

fn answer(ruling: Ruling, outcome: AppealOutcome) -> Said {
    let words = "申し訳ありません。".to_owned();
    let answer = Some(AppealAnswer { outcome, words });
    Said { ruling, notes: String::new(), conditions: vec![], pii_missed: None, answer }
}

fn corrected() -> Said {
    answer(Ruling::EditAndApprove { text: CORRECTED.into() }, AppealOutcome::Upheld)
}

#[tokio::test]
async fn an_appeal_is_upheld_with_other_words_and_everybody_is_told() {
    let desk = desk(&["Mia"], true);
    let stored = desk.decided(1, "exhausted").await;
    assert_eq!(desk.standing(&stored).await, AppealStanding::Open);
    let filed = desk.file(&stored).await.unwrap();
    assert_eq!(desk.file(&stored).await.unwrap_err(), NoAppeal::Filed.into());
    let review = filed.appeal.review_id.clone();
    desk.rule(&reviewer("Mia"), &review, corrected()).await.unwrap();
    let standing = desk.standing(&stored).await;
    let AppealStanding::Filed(record) = &standing else { panic!("{standing:?}") };
    let told = explain(&stored, conclave_people::ReviewStanding::Unasked, &standing);
    assert!(!told.user_can_appeal, "it was ruled on");
    assert!(told.story.iter().any(|line| line.contains("判断は間違っていた")), "{told:?}");
    let view = told.appeal.unwrap();
    assert_eq!((view.status, view.language.as_str()), ("upheld", "ja"));
    let before = desk.log.count();
    for _ in 0..2 {
        let AppealStanding::Filed(record) = desk.standing(&stored).await else { panic!() };
        let shown = desk.appeals.show_corrected(&tenant("t"), &stored, &record).await.unwrap();
        assert_eq!(shown, CorrectedReply::Shown(CORRECTED.to_owned()));
    }
    assert_eq!(desk.log.count(), before + 1, "that it left is recorded once");
    let audit = AuditId::from_parts(1, [1; 10]);
    for fetched in [
        desk.appeals.hand_out.fetch_reply(&tenant("t"), audit, "app").await.unwrap(),
        desk.appeals.hand_out.fetch_appealed(&tenant("t"), audit, "app").await.unwrap(),
    ] {
        let ReviewResult::Approved { text, edited, .. } = fetched else { panic!("{fetched:?}") };
        assert_eq!((text.as_deref(), edited), (Some(CORRECTED), true));
    }
    let correction = record.appeal.correction().unwrap();
    assert_eq!(correction.original_response, VETOED);
    assert_eq!(correction.safety_concerns, ["encourages_harm"]);
    let estimates = desk.appeals.estimates(&tenant("t")).await.unwrap();
    assert_eq!((estimates.false_alarms.wrong, estimates.false_alarms.ruled), (1, 1));
    assert!(estimates.false_alarms.share.unwrap().low < 0.3, "one ruling says little");
    assert_eq!(estimates.misses.share, None);
    assert_eq!(desk.office.entries(&Kind::AppealChange), 2, "filed and ruled");
}

#[tokio::test]
async fn whoever_decided_first_does_not_rule_and_without_another_nothing_is_offered() {
    for (hired, offered) in [(&["Mia"][..], false), (&["Mia", "Bo"][..], true)] {
        let desk = desk(hired, true);
        let stored = desk.decided(1, "escalated").await;
        let new = conclave_govern::NewReview {
            kind: conclave_govern::ReviewKind::Escalation,
            tenant: tenant("t"),
            content_type: "chat".into(),
            community: None,
            others: vec![],
            issues: vec![],
            priority: conclave_govern::ReviewPriority::High,
            audit_id: Some(AuditId::from_parts(1, [1; 10])),
            author: Some("app".into()),
            subject: None,
            four_eyes: false,
        };
        let people = desk.office.people.clone();
        let first = conclave_ports::Governance::submit(&*people, new).await.unwrap();
        let waiting = AppealStanding::Closed(NoAppeal::StillWaiting);
        assert_eq!(desk.standing(&stored).await, waiting, "people decide the first time first");
        let reject = Said { answer: None, ..answer(Ruling::Reject, AppealOutcome::Denied) };
        desk.rule(&reviewer("Mia"), &first, reject).await.unwrap();
        let nobody = AppealStanding::Closed(NoAppeal::NobodyThere);
        let standing = desk.standing(&stored).await;
        assert_eq!(standing, if offered { AppealStanding::Open } else { nobody });
        if !offered {
            assert_eq!(desk.file(&stored).await.unwrap_err(), NoAppeal::NobodyThere.into());
            continue;
        }
        let review = desk.file(&stored).await.unwrap().appeal.review_id;
        let seen = people.review(&reviewer("Mia"), &review).await.unwrap().record.review;
        assert_eq!(seen.assigned_to.as_deref(), Some("person:Bo"), "never to who decided first");
        let refused = desk.rule(&reviewer("Mia"), &review, corrected()).await;
        assert_eq!(refused, Err(ReviewRefusal::DecidedBefore.into()));
        let unnamed = caller("k7", KeyRole::Reviewer);
        let refused = desk.rule(&unnamed, &review, corrected()).await;
        assert_eq!(refused, Err(ReviewRefusal::UnknownPerson.into()));
        desk.rule(&reviewer("Bo"), &review, corrected()).await.unwrap();
        let again = desk.rule(&reviewer("Bo"), &review, corrected()).await;
        assert_eq!(again, Err(ReviewRefusal::Decided.into()));
    }
}

#[tokio::test]
async fn nothing_is_offered_where_nobody_is_on_duty_or_nothing_was_judged() {
    let unstaffed = desk(&["Mia"], false);
    let stored = unstaffed.decided(1, "exhausted").await;
    let nobody = AppealStanding::Closed(NoAppeal::NobodyThere);
    assert_eq!(unstaffed.standing(&stored).await, nobody);
    let empty = desk(&[], true);
    let stored = empty.decided(1, "exhausted").await;
    assert_eq!(empty.standing(&stored).await, nobody);
    let staffed = desk(&["Mia"], true);
    for outcome in ["failed", "guard_unavailable"] {
        let stored = staffed.decided(2, outcome).await;
        let nothing = AppealStanding::Closed(NoAppeal::NothingToReview);
        assert_eq!(staffed.standing(&stored).await, nothing, "{outcome}");
    }
}

#[tokio::test]
async fn a_ruling_needs_words_to_the_person_and_vetoed_words_stay_closed() {
    let desk = desk(&["Mia"], true);
    let stored = desk.decided(1, "exhausted").await;
    let review = desk.file(&stored).await.unwrap().appeal.review_id;
    let mia = reviewer("Mia");
    let vetoed = Ruling::EditAndApprove { text: format!("  {VETOED}\n") };
    let silent = Said { answer: None, ..corrected() };
    let contrary = answer(Ruling::Reject, AppealOutcome::Upheld);
    for (said, place) in [
        (answer(vetoed, AppealOutcome::Upheld), "text"),
        (silent, "words"),
        (contrary, "ruling"),
        (answer(Ruling::NeedsConsultation, AppealOutcome::Denied), "words"),
    ] {
        let refused = desk.rule(&mia, &review, said.clone()).await.unwrap_err();
        let PeopleError::Refused(ReviewRefusal::Unfit(unfit)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(unfit.place, place, "{said:?}");
    }
    desk.rule(&mia, &review, answer(Ruling::Reject, AppealOutcome::Denied)).await.unwrap();
    let audit = AuditId::from_parts(1, [1; 10]);
    let fetched = desk.appeals.hand_out.fetch_appealed(&tenant("t"), audit, "app").await.unwrap();
    assert!(matches!(fetched, ReviewResult::Rejected { .. }), "{fetched:?}");
    let estimates = desk.appeals.estimates(&tenant("t")).await.unwrap();
    assert_eq!((estimates.false_alarms.wrong, estimates.false_alarms.ruled), (0, 1));
}

#[tokio::test]
async fn the_council_agrees_to_the_same_words() {
    let desk = desk(&["Mia", "Bo"], true);
    let stored = desk.decided(1, "delivered").await;
    let review = desk.file(&stored).await.unwrap().appeal.review_id;
    let consult = Said { answer: None, ..answer(Ruling::NeedsConsultation, AppealOutcome::Denied) };
    desk.rule(&reviewer("Mia"), &review, consult).await.unwrap();
    desk.rule(&reviewer("Mia"), &review, corrected()).await.unwrap();
    let agree = Said { answer: None, ..answer(Ruling::Approve, AppealOutcome::Upheld) };
    desk.rule(&reviewer("Bo"), &review, agree).await.unwrap();
    let owner = caller("o", KeyRole::Owner);
    let closed = desk.office.people.review(&owner, &review).await.unwrap().record.review;
    assert_eq!(closed.status, ReviewStatus::Approved);
    let estimates = desk.appeals.estimates(&tenant("t")).await.unwrap();
    assert_eq!((estimates.misses.wrong, estimates.false_alarms.ruled), (1, 0));
}

#[tokio::test]
async fn one_person_cannot_fill_the_queue() {
    let desk = desk(&["Mia"], true);
    for number in 1..=5 {
        let stored = desk.decided(number, "exhausted").await;
        desk.file(&stored).await.unwrap();
    }
    let stored = desk.decided(6, "exhausted").await;
    assert!(matches!(desk.file(&stored).await, Err(PeopleError::TooMany(_))));
    let all = AppealFilter { limit: 100, ..AppealFilter::default() };
    let listed = desk.appeals.list(&tenant("t"), &all).await.unwrap();
    assert_eq!(listed.len(), 5);
    let review = listed[0].appeal.review_id.clone();
    desk.rule(&reviewer("Mia"), &review, corrected()).await.unwrap();
    desk.file(&stored).await.unwrap();
    let listed = desk.appeals.list(&tenant("t"), &all).await.unwrap();
    assert_eq!(listed.len(), 6, "what is counted of them is none of them");
}

#[tokio::test]
async fn words_of_any_script_are_kept_as_they_are_and_too_many_are_refused() {
    let desk = desk(&["Mia"], true);
    let stored = desk.decided(1, "exhausted").await;
    for words in ["", " \n", &"あ".repeat(4_001), &"x".repeat(1 << 20)] {
        let refused = desk.appeals.file(&tenant("t"), &stored, appeal(words)).await;
        assert!(matches!(refused, Err(PeopleError::Unfit(_))), "{} bytes", words.len());
    }
    let words = "<script>alert(1)</script> مرحبا 👩‍👧 \u{202e}x";
    let filed = desk.appeals.file(&tenant("t"), &stored, appeal(words)).await.unwrap();
    assert_eq!(filed.appeal.words, words);
}

#[tokio::test]
async fn a_link_opens_one_decision_until_its_time_is_over() {
    let office = office();
    let people = &office.people;
    let audit = AuditId::from_parts(7, [2; 10]);
    let token = people.write_why_token(&tenant("t"), audit).unwrap();
    let link = people.read_why_token(&token).unwrap();
    assert_eq!((link.audit, link.tenant), (audit, tenant("t")));
    for at in 0..token.len() {
        let mut slip = token.clone().into_bytes();
        slip[at] = if slip[at] == b'0' { b'1' } else { b'0' };
        let slip = String::from_utf8(slip).unwrap();
        assert!(people.read_why_token(&slip).is_err(), "at {at}");
    }
    for odd in ["", "_", "___", &"0".repeat(5_000), "é_é_é_é"] {
        assert!(people.read_why_token(odd).is_err(), "{odd}");
    }
    office.pass(30 * 86_400_000);
    let ended = people.read_why_token(&token).unwrap_err();
    assert_eq!(ended, conclave_people::WhyLinkError::Expired);
}
