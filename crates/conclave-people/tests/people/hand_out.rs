//! What was held and approved leaves only when that is recorded, and only while it may.

use crate::house::{Office, caller, office, tenant};
use conclave_core::AuditId;
use conclave_govern::{Issue, NewReview, ReviewKind, ReviewPriority, Ruling, Said};
use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, Value, leaf_hash, tenant_number};
use conclave_people::{GuardedHandOut, PeopleError, ReviewResult};
use conclave_ports::{
    AppendError, Appended, Archive, ArchiveError, DecisionFilter, DecisionRow, Governance, KeyRole,
    Ledger, PolicyInForce, PolicySource, REVIEW_WORDS, Stamp, StoredEntry, Tally, Whose, review_id,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const TOLD: &str = "And then they carried the churinga to the cave.";

/// A log in memory that can be told to take nothing.
#[derive(Default)]
pub struct Log {
    entries: Mutex<Vec<StoredEntry>>,
    is_full: AtomicBool,
}

impl Log {
    pub fn take(&self, draft: Draft, body: &Body) -> Appended {
        let mut entries = self.entries.lock().unwrap();
        let seq = entries.len() as u64;
        let id = EntryId { replica: [7; 8], epoch: 1, n: seq + 1 };
        let leaf = Leaf { id, ts_ms: 1, draft, commitments: body.commitments() }.encode();
        let hash = leaf_hash(&leaf);
        entries.push(StoredEntry { seq, leaf, body: Some(body.encode()) });
        Appended { id, leaf_hash: hash }
    }

    pub fn count(&self) -> usize {
        self.entries.lock().unwrap().len()
    }
}

impl Ledger for Log {
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>> {
        let full = self.is_full.load(Ordering::Relaxed);
        let no = || AppendError::Unwritable("the disk is full".into());
        ready(if full { Err(no()) } else { Ok(self.take(draft, &body)) }).boxed()
    }

    fn append_soon(&self, draft: Draft, body: Body) {
        self.take(draft, &body);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn health(&self) -> Result<(), AppendError> {
        Ok(())
    }
}

impl Archive for Log {
    fn find(&self, _: u64, id: AuditId) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>> {
        let mut found = self.entries.lock().unwrap().clone();
        found.retain(|entry| {
            Leaf::decode(&entry.leaf).unwrap().draft.audit == Some(id.0.into_bytes())
        });
        ready(Ok(found)).boxed()
    }

    fn list(&self, _: DecisionFilter) -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn latest(
        &self,
        _: u64,
        _: Whose,
        _: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>> {
        ready(Ok(None)).boxed()
    }

    fn tally(&self, _: Option<u64>, _: u64) -> BoxFuture<'_, Result<Tally, ArchiveError>> {
        ready(Ok(Tally::default())).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>> {
        ready(Ok(())).boxed()
    }
}

/// Nobody has set a policy.
pub struct Open;

impl PolicySource for Open {
    fn in_force(&self, _: &conclave_core::TenantId) -> PolicyInForce {
        PolicyInForce::default()
    }
}

/// Holds a reply that nobody could look at, and has a reviewer approve it.
async fn approve(office: &Office, log: &Log, words: serde_json::Value) -> AuditId {
    let audit = AuditId::from_parts(1, [1; 10]);
    let new = NewReview {
        kind: ReviewKind::Escalation,
        tenant: tenant("t"),
        content_type: "chat".into(),
        community: None,
        others: vec![],
        issues: vec![Issue { code: "guard_failed".into(), detail: "Nobody looked.".into() }],
        priority: ReviewPriority::High,
        audit_id: Some(audit),
        author: Some("app".into()),
        subject: None,
        four_eyes: false,
    };
    let mut body = Body::empty();
    for (name, value) in [
        ("candidate.0.0", json!({"text": TOLD})),
        (REVIEW_WORDS, serde_json::to_value(&new).unwrap()),
        ("who", words),
    ] {
        body.push(name, [1; 32], value.to_string());
    }
    let attempts = Value::Array(vec![Value::map([("failure", Value::Null)])]);
    let choice = Value::map([("attempts", attempts), ("outcome", Value::from("held"))]);
    let draft = Draft {
        audit: Some(audit.0.into_bytes()),
        public: Value::map([("choices", Value::Array(vec![choice]))]),
        ..Draft::new(Kind::Decision, tenant_number("t"))
    };
    log.take(draft, &body);
    office.people.submit(new).await.unwrap();
    let reviewer = caller("r", KeyRole::Reviewer);
    let claimed = office.people.claim_review(&reviewer, &review_id(audit)).await.unwrap();
    let said = Said {
        ruling: Ruling::Approve,
        notes: String::new(),
        conditions: vec![],
        pii_missed: None,
        answer: None,
    };
    let token = claimed.review.fence;
    office.people.decide_review(&reviewer, &claimed.id, token, &said).await.unwrap();
    audit
}

fn desk(office: &Office, log: &Arc<Log>) -> GuardedHandOut {
    GuardedHandOut {
        people: office.people.clone(),
        governance: office.people.clone(),
        archive: log.clone(),
        ledger: log.clone(),
        policies: Arc::new(Open),
        clock: office.clock.clone(),
        stamp: Stamp::default(),
        pseudonym_key: [9; 32],
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_leave() {
    let office = office();
    let log = Arc::new(Log::default());
    let audit = approve(&office, &log, json!({"context": {}})).await;
    let desk = desk(&office, &log);
    log.is_full.store(true, Ordering::Relaxed);
    let refused = desk.fetch_reply(&tenant("t"), audit, "app").await;
    assert!(matches!(refused, Err(PeopleError::Unavailable(_))), "{refused:?}");
    log.is_full.store(false, Ordering::Relaxed);
    let before = log.count();
    let fetched = desk.fetch_reply(&tenant("t"), audit, "app").await.unwrap();
    let ReviewResult::Approved { text, .. } = fetched else { panic!("{fetched:?}") };
    assert_eq!((text.as_deref(), log.count()), (Some(TOLD), before + 1));
}

#[tokio::test]
async fn circumstances_that_cannot_be_read_let_nothing_out() {
    let office = office();
    let log = Arc::new(Log::default());
    let audit = approve(&office, &log, json!({"context": {"sensitivity": "unheard of"}})).await;
    let refused = desk(&office, &log).fetch_reply(&tenant("t"), audit, "app").await;
    let Err(PeopleError::Unavailable(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("who"), "{why}");
}
