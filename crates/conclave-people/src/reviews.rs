//! The review queue: opened, claimed, decided, reminded of.
//!
//! **Invariant:** whoever may not decide a review, and is neither its author nor an overseer of the
//! tenant, is not told that it exists.
//! **Invariant:** of two who claim at the same moment, one has it: records change by their version.

use crate::people::{People, PeopleError, place, read, told, written};
use conclave_core::{AuditId, TenantId};
use conclave_govern::{
    Decider, NewReview, Notice, Review, ReviewKind, ReviewStatus, Said, community_id,
};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{
    Announcement, Caller, EventKind, KeyRole, Record, RecordChange, RecordKind, RecordQuery,
    review_id,
};
use serde_json::json;
use std::collections::HashMap;

/// So many reviews of a community are counted to find who has least to do.
const LOAD_COUNTED_MAX: u32 = 1_000;
/// So often a change is tried again that somebody else made stale.
const TRIES: usize = 4;
/// So many reviews of several communities are read to find a caller's own among them.
const SHARED_READ_MAX: u32 = 1_000;
/// So many reviews are read together when time is looked at.
const PAGE: u32 = 500;
/// Whose queue a review of several communities stands in: no community has this id.
const SHARED: &str = "*";
/// So many issues are kept of one review.
const ISSUES_MAX: usize = 32;
const OPEN: [ReviewStatus; 3] =
    [ReviewStatus::Pending, ReviewStatus::InReview, ReviewStatus::NeedsConsultation];
const NONE: PeopleError = PeopleError::NotFound("There is no review with this id.");

/// A review with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub id: String,
    /// The review.
    pub review: Review,
}

/// Which reviews to list.
#[derive(Clone, Debug, Default)]
pub struct ReviewFilter {
    /// Only in this status; the open ones where absent.
    pub status: Option<ReviewStatus>,
    /// Only of this community.
    pub community: Option<String>,
    /// Leaves out so many.
    pub offset: u32,
    /// At most this many.
    pub limit: u32,
}

impl People {
    /// Has something wait; the same decision waits once, however often this is asked.
    pub(crate) async fn open_review(&self, mut new: NewReview) -> Result<String, PeopleError> {
        new.issues.truncate(ISSUES_MAX);
        let id = match (new.kind, new.audit_id) {
            (ReviewKind::Escalation | ReviewKind::ElderReview | ReviewKind::Draft, Some(audit)) => {
                review_id(audit)
            }
            _ => self.new_id("rev"),
        };
        let key = place(RecordKind::Review, &new.tenant, &id);
        if self.get(key.clone()).await?.is_some() {
            return Ok(id);
        }
        let now_ms = self.clock.now_ms();
        let mut review = Review::open(&new, now_ms);
        review.assigned_to = self.least_busy(&new).await?;
        let record = Record {
            key,
            version: 0,
            state: String::new(),
            owner: queue_of(&new),
            rank: 0,
            due_ms: None,
            changed_ms: now_ms,
            subject: new.subject,
            data: serde_json::Value::Null,
        };
        let kept =
            self.keep(record, &review, "created", None, Some(EventKind::ReviewCreated)).await;
        match kept {
            // Somebody else has had the same decision wait.
            Ok(()) | Err(PeopleError::Conflict) => Ok(id),
            Err(error) => Err(error),
        }
    }

    /// Who of those that may decide has least to do: elders of the community, else reviewers.
    async fn least_busy(&self, new: &NewReview) -> Result<Option<String>, PeopleError> {
        let able = match &new.community {
            Some(community) => {
                let elders = self.elders(&new.tenant, community).await?;
                elders.into_iter().map(|elder| elder.person).collect()
            }
            None => self.reviewers(new).await,
        };
        if able.is_empty() {
            return Ok(None);
        }
        let query = RecordQuery {
            owner: Some(queue_of(new)),
            ..open_reviews(Some(new.tenant.clone()), 0, LOAD_COUNTED_MAX)
        };
        let mut load: HashMap<String, usize> = HashMap::new();
        for review in self.list(query).await?.iter().filter_map(read::<Review>) {
            if let Some(person) = review.assigned_to {
                *load.entry(person).or_default() += 1;
            }
        }
        let least = able
            .into_iter()
            .min_by_key(|one| (load.get(one).copied().unwrap_or_default(), one.clone()));
        Ok(least)
    }

    /// The reviewers who may decide this; nobody decides what came from their own key. Whom it is given
    /// to is a help: where nobody can say, any of them may claim it.
    async fn reviewers(&self, new: &NewReview) -> Vec<String> {
        let Some(staff) = &self.staff else { return Vec::new() };
        let mut known = staff.reviewers(&new.tenant).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "reviewers could not be listed: a review is given to nobody");
            Vec::new()
        });
        known.retain(|holder| new.author.as_deref() != Some(holder.as_str()));
        known
    }

    /// Makes a change durable with its entry and what webhooks are told of it.
    async fn keep(
        &self,
        mut record: Record,
        review: &Review,
        what: &str,
        by: Option<&str>,
        event: Option<EventKind>,
    ) -> Result<(), PeopleError> {
        let (tenant, id) = (record.key.tenant.clone(), record.key.id.clone());
        record.state = review.status.as_str().to_owned();
        record.rank = review.priority.rank() + if review.council { 4 } else { 0 };
        record.due_ms = Some(review.due_ms);
        record.changed_ms = self.clock.now_ms();
        record.data = written(review);
        let entry = told(Kind::ReviewChange, self.public_of(&tenant, &id, review, what, by));
        let mut changes = vec![RecordChange { record, entry }];
        if let Some(kind) = event {
            let data = announced(&id, review);
            changes.extend(self.letters(&tenant, &Announcement { kind, data }).await?);
        }
        self.put(changes).await?;
        Ok(())
    }

    fn public_of(
        &self,
        tenant: &TenantId,
        id: &str,
        review: &Review,
        what: &str,
        by: Option<&str>,
    ) -> Public {
        let audit = review.audit_id.as_deref().and_then(AuditId::parse);
        let community = review.community.as_deref().map(community_id);
        Public::map([
            ("what", Public::from(what)),
            ("review", Public::from(id)),
            ("kind", Public::from(review.kind.as_str())),
            ("status", Public::from(review.status.as_str())),
            ("priority", Public::from(review.priority.as_str())),
            ("four_eyes", Public::Bool(review.four_eyes)),
            ("council", Public::Bool(review.council)),
            ("approvals", Public::Uint(review.approvals.len() as u64)),
            ("token", Public::Uint(review.fence)),
            (
                "decision",
                audit.map_or(Public::Null, |id| Public::Bytes(id.0.into_bytes().to_vec())),
            ),
            (
                "community",
                community.map_or(Public::Null, |id| self.digest(b"community", tenant, &id)),
            ),
            ("communities", Public::Uint(review.communities().count() as u64)),
            ("by", by.map_or(Public::Null, |by| self.digest(b"reader", tenant, by))),
        ])
    }

    /// The open reviews a caller may know of, most urgent first.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn reviews(
        &self,
        caller: &Caller,
        filter: &ReviewFilter,
    ) -> Result<Vec<Held>, PeopleError> {
        let decider = self.decider(caller).await?;
        let wanted = filter.community.as_deref().map(community_id);
        let mut found = Vec::new();
        let owners = queues(caller.role, &decider, wanted.as_ref());
        for owner in owners {
            // Pages of several communities are put together, so each is read from its beginning.
            let limit = filter.offset.saturating_add(filter.limit);
            let mut query =
                RecordQuery { owner, ..open_reviews(Some(caller.tenant.clone()), 0, limit) };
            if let Some(status) = filter.status {
                query.states = vec![status.as_str().to_owned()];
            }
            let shared = query.owner.as_deref() == Some(SHARED);
            if shared {
                query.limit = SHARED_READ_MAX;
            }
            let listed = self.list(query).await?.into_iter();
            found.extend(
                listed.filter(|one| {
                    !shared || is_theirs(one, caller.role, &decider, wanted.as_ref())
                }),
            );
        }
        found.sort_by_key(|one| {
            (std::cmp::Reverse(one.rank), one.due_ms.unwrap_or(u64::MAX), one.key.id.clone())
        });
        let page = found.iter().skip(filter.offset as usize).take(filter.limit as usize);
        Ok(page
            .filter_map(|one| Some(Held { id: one.key.id.clone(), review: read(one)? }))
            .collect())
    }

    /// One review, if the caller may know of it, and what they may decide.
    ///
    /// # Errors
    /// When there is none, or none for them.
    pub async fn review(&self, caller: &Caller, id: &str) -> Result<(Held, Decider), PeopleError> {
        let (_, review, decider) = self.found(caller, id).await?;
        Ok((Held { id: id.to_owned(), review }, decider))
    }

    async fn found(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(Record, Review, Decider), PeopleError> {
        let record = self.get(place(RecordKind::Review, &caller.tenant, id)).await?.ok_or(NONE)?;
        let review: Review = read(&record).ok_or(NONE)?;
        let decider = self.decider(caller).await?;
        let author = review.author.as_deref() == Some(caller.holder.as_str());
        let overseer = matches!(caller.role, KeyRole::Owner | KeyRole::Admin | KeyRole::Auditor);
        if author || overseer || review.admits(&decider).is_ok() {
            return Ok((record, review, decider));
        }
        Err(NONE)
    }

    /// The review of a decision, for the engine itself.
    pub(crate) async fn review_of(
        &self,
        tenant: &TenantId,
        audit: AuditId,
    ) -> Result<Option<Held>, PeopleError> {
        let id = review_id(audit);
        let found = self.get(place(RecordKind::Review, tenant, &id)).await?;
        let Some(record) = found else { return Ok(None) };
        let unreadable = PeopleError::Unavailable("the review cannot be read".to_owned());
        Ok(Some(Held { id, review: read(&record).ok_or(unreadable)? }))
    }

    /// Claims a review for a while.
    ///
    /// # Errors
    /// When it is not the caller's to decide, or somebody else has it.
    pub async fn claim_review(&self, caller: &Caller, id: &str) -> Result<Held, PeopleError> {
        self.step(caller, id, "claimed", |review, decider, now_ms| {
            review.claim(decider, now_ms).map(|_| ())
        })
        .await
    }

    /// Gives a review back.
    ///
    /// # Errors
    /// When the claim is not the caller's any more.
    pub async fn release_review(
        &self,
        caller: &Caller,
        id: &str,
        token: u64,
    ) -> Result<Held, PeopleError> {
        self.step(caller, id, "released", |review, decider, now_ms| {
            review.release(decider, token, now_ms)
        })
        .await
    }

    /// Takes a ruling in.
    ///
    /// # Errors
    /// When it is not the caller's to decide, or the token is not the latest.
    pub async fn decide_review(
        &self,
        caller: &Caller,
        id: &str,
        token: u64,
        said: &Said,
    ) -> Result<Held, PeopleError> {
        let what = said.ruling.as_str();
        self.step(caller, id, what, |review, decider, now_ms| {
            review.decide(decider, token, said.clone(), now_ms)
        })
        .await
    }

    async fn step(
        &self,
        caller: &Caller,
        id: &str,
        what: &str,
        act: impl Fn(&mut Review, &Decider, u64) -> Result<(), conclave_govern::ReviewRefusal>,
    ) -> Result<Held, PeopleError> {
        for _ in 0..TRIES {
            let (record, mut review, decider) = self.found(caller, id).await?;
            act(&mut review, &decider, self.clock.now_ms())?;
            let event = review.status.is_final().then_some(EventKind::ReviewDecided);
            match self.keep(record, &review, what, Some(&decider.person), event).await {
                Ok(()) => return Ok(Held { id: id.to_owned(), review }),
                Err(PeopleError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Err(PeopleError::Conflict)
    }

    /// Lets time go by for every open review: ends claims, reminds, calls councils. Returns how many
    /// were changed. What somebody else changes meanwhile is left to the next time.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn pass_time(&self) -> Result<usize, PeopleError> {
        let (mut offset, mut changed) = (0, 0);
        loop {
            let page = self.list(open_reviews(None, offset, PAGE)).await?;
            // A page may be shorter than it could be: what was erased is not shown.
            if page.is_empty() {
                return Ok(changed);
            }
            for record in page {
                changed += usize::from(self.pass_one(record).await?);
            }
            offset = offset.saturating_add(PAGE);
        }
    }

    async fn pass_one(&self, record: Record) -> Result<bool, PeopleError> {
        let Some(mut review) = read::<Review>(&record) else { return Ok(false) };
        let before = review.clone();
        let notice = review.pass(self.clock.now_ms());
        if review == before {
            return Ok(false);
        }
        let (what, event) = match notice {
            None => ("claim_ended", None),
            Some(Notice::Half | Notice::Due) => ("reminded", Some(EventKind::ReviewReminder)),
            Some(Notice::Overdue) => ("overdue", Some(EventKind::ReviewOverdue)),
        };
        match self.keep(record, &review, what, None, event).await {
            Ok(()) => Ok(true),
            Err(PeopleError::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whose queue a new review stands in.
fn queue_of(new: &NewReview) -> String {
    if new.others.is_empty() {
        return new.community.as_deref().map(community_id).unwrap_or_default();
    }
    SHARED.to_owned()
}

/// The queues somebody may look into; `None` is all of them.
fn queues(role: KeyRole, decider: &Decider, wanted: Option<&String>) -> Vec<Option<String>> {
    let shared = || Some(SHARED.to_owned());
    match (role, wanted) {
        (KeyRole::Owner | KeyRole::Admin | KeyRole::Auditor, None) => vec![None],
        (KeyRole::Owner | KeyRole::Admin | KeyRole::Auditor, Some(wanted)) => {
            vec![Some(wanted.clone()), shared()]
        }
        (KeyRole::Elder, wanted) => {
            let own = decider.elder_of.iter().filter(|id| wanted.is_none_or(|w| w == *id));
            own.cloned().map(Some).chain([shared()]).collect()
        }
        (KeyRole::Reviewer, None) => vec![Some(String::new())],
        (KeyRole::Reviewer | KeyRole::App, _) => Vec::new(),
    }
}

/// Whether a review of several communities is one of those that were asked for: an elder sees what is of a
/// community of theirs, whoever oversees the house all.
fn is_theirs(record: &Record, role: KeyRole, decider: &Decider, wanted: Option<&String>) -> bool {
    let Some(review) = read::<Review>(record) else { return false };
    let own = || review.communities().any(|id| decider.elder_of.contains(&id));
    let is_wanted = wanted.is_none_or(|wanted| review.communities().any(|id| id == *wanted));
    is_wanted && (role != KeyRole::Elder || own())
}

fn open_reviews(tenant: Option<TenantId>, offset: u32, limit: u32) -> RecordQuery {
    RecordQuery {
        kind: RecordKind::Review,
        tenant,
        states: OPEN.iter().map(|status| status.as_str().to_owned()).collect(),
        owner: None,
        due_before_ms: None,
        offset,
        limit,
    }
}

/// What webhooks are told of a review: nothing that anybody said.
fn announced(id: &str, review: &Review) -> serde_json::Value {
    let issues: Vec<_> = review.issues.iter().map(|issue| &issue.code).collect();
    json!({
        "review_id": id,
        "kind": review.kind,
        "status": review.status,
        "priority": review.priority,
        "content_type": review.content_type,
        "community": review.community,
        "others": review.others,
        "council": review.council,
        "four_eyes": review.four_eyes,
        "issues": issues,
        "assigned_to": review.assigned_to,
        "author": review.author,
        "audit_id": review.audit_id,
        "due_ms": review.due_ms,
        "status_url": format!("/v1/reviews/{id}"),
    })
}
