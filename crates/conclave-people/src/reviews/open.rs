//! How a review is opened, and every change of it recorded.
//!
//! **Invariant:** a change of a review, its ledger entry and what webhooks are told of it become durable
//! together.

use super::{SHARED, open_reviews};
use crate::people::{People, PeopleError};
use crate::records::{key, read_or_report, recorded};
use conclave_core::AuditId;
use conclave_govern::{NewReview, Review, ReviewKind, community_id};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{
    Announcement, EventKind, GovernError, Record, RecordChange, RecordKind, RecordQuery,
    RecordsError, review_id,
};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// How many reviews of a queue are counted to find who has least to do.
const LOAD_COUNTED_MAX: u32 = 1_000;
/// The most issues that are kept of one review.
const ISSUES_MAX: usize = 32;
/// What is before the council stands before everything else.
const COUNCIL_RANK: u32 = 4;

/// What happened to a review.
pub(super) struct ReviewEvent<'a> {
    /// The word that the ledger has for it.
    pub what: &'a str,
    /// Who did it; time does things too.
    pub by: Option<&'a str>,
    /// What webhooks are told.
    pub announced: Option<EventKind>,
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
        if self.records.get(key(RecordKind::Review, &new.tenant, &id)).await?.is_some() {
            return Ok(id);
        }
        let changes = self.opening_changes(&id, &new).await?;
        match self.records.put(changes).await {
            // Somebody else has had the same decision wait.
            Ok(_) | Err(RecordsError::Conflict) => Ok(id),
            Err(error) => Err(error.into()),
        }
    }

    /// What opening a review changes.
    pub(crate) async fn opening_changes(
        &self,
        id: &str,
        new: &NewReview,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        let review = Review::open(new, self.clock.now_ms());
        self.opening_changes_of(id, new, review).await
    }

    /// The same of a review that says more than what it is opened for.
    pub(crate) async fn opening_changes_of(
        &self,
        id: &str,
        new: &NewReview,
        mut review: Review,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        review.assigned_to = self.least_busy(new, &review.excluded).await?;
        let place = key(RecordKind::Review, &new.tenant, id);
        let record = self.new_record(place, "", &queue_name(new));
        let event =
            ReviewEvent { what: "created", by: None, announced: Some(EventKind::ReviewCreated) };
        self.review_changes(Record { subject: new.subject, ..record }, &review, event).await
    }

    /// Who of those that may decide has least to do: elders of the community, else reviewers.
    async fn least_busy(
        &self,
        new: &NewReview,
        excluded: &[String],
    ) -> Result<Option<String>, PeopleError> {
        let able: Vec<String> = match &new.community {
            Some(community) => {
                let elders = self.elders(&new.tenant, community).await?;
                let able = elders.into_iter().map(|elder| elder.person);
                able.filter(|person| !excluded.contains(person)).collect()
            }
            None => self.able_reviewers(new, excluded).await,
        };
        if able.is_empty() {
            return Ok(None);
        }
        let owner = Some(queue_name(new));
        let all = open_reviews(Some(&new.tenant), LOAD_COUNTED_MAX);
        let waiting = self.records.list(RecordQuery { owner, ..all }).await?;
        let mut load: HashMap<String, usize> = HashMap::new();
        for review in waiting.iter().filter_map(read_or_report::<Review>) {
            if let Some(person) = review.assigned_to {
                *load.entry(person).or_default() += 1;
            }
        }
        Ok(able.into_iter().min_by_key(|one| (load.get(one).copied(), one.clone())))
    }

    /// The reviewers who may decide this; nobody decides what came from their own key. Whom it is given
    /// to is a help: where nobody can say, any of them may claim it.
    async fn able_reviewers(&self, new: &NewReview, excluded: &[String]) -> Vec<String> {
        let Some(staff) = &self.staff else { return Vec::new() };
        let listed = async {
            let mut known = staff.reviewers(&new.tenant).await?;
            if !excluded.is_empty() {
                // A key is known by its id here, and whose it is by its person's name.
                let deciders = staff.deciders(&new.tenant).await?;
                let free = deciders.into_iter().filter(|one| {
                    let is_named = one.person.as_ref().is_some_and(|name| !excluded.contains(name));
                    is_named && !excluded.contains(&one.holder)
                });
                let free: HashSet<_> = free.map(|one| one.holder).collect();
                known.retain(|holder| free.contains(holder));
            }
            known.retain(|holder| new.author.as_deref() != Some(holder.as_str()));
            Ok::<_, GovernError>(known)
        };
        listed.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "reviewers could not be listed: a review is given to nobody");
            Vec::new()
        })
    }

    /// A change of a review, and what webhooks are told of it.
    pub(super) async fn review_changes(
        &self,
        mut record: Record,
        review: &Review,
        event: ReviewEvent<'_>,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        record.state = review.status.as_str().to_owned();
        record.rank = review.priority.rank() + if review.council { COUNCIL_RANK } else { 0 };
        record.due_ms = Some(review.due_ms);
        self.rewrite(&mut record, review)?;
        let tenant = record.key.tenant.clone();
        let data = announcement_data(&record.key.id, review);
        let public = self.review_entry(&record, review, &event);
        let mut changes = vec![recorded(record, Kind::ReviewChange, public)];
        if let Some(kind) = event.announced {
            changes.extend(self.event_changes(&tenant, &Announcement { kind, data }).await?);
        }
        Ok(changes)
    }

    fn review_entry(&self, record: &Record, review: &Review, event: &ReviewEvent<'_>) -> Public {
        let tenant = &record.key.tenant;
        let audit = review.audit_id.as_deref().and_then(AuditId::parse);
        let decision = audit.map(|id| Public::Bytes(id.0.into_bytes().to_vec()));
        let community = review.community.as_deref().map(community_id);
        let community = community.map(|id| self.digest(b"community", tenant, &id));
        let by = event.by.map(|by| self.digest(b"reader", tenant, by));
        Public::map([
            ("what", Public::from(event.what)),
            ("review", Public::from(record.key.id.as_str())),
            ("kind", Public::from(review.kind.as_str())),
            ("status", Public::from(review.status.as_str())),
            ("priority", Public::from(review.priority.as_str())),
            ("four_eyes", Public::Bool(review.four_eyes)),
            ("council", Public::Bool(review.council)),
            ("approvals", Public::Uint(review.approvals.len() as u64)),
            ("token", Public::Uint(review.fence)),
            ("decision", decision.unwrap_or(Public::Null)),
            ("community", community.unwrap_or(Public::Null)),
            ("communities", Public::Uint(review.communities().count() as u64)),
            ("by", by.unwrap_or(Public::Null)),
        ])
    }
}

/// Whose queue a new review stands in.
fn queue_name(new: &NewReview) -> String {
    if new.others.is_empty() {
        return new.community.as_deref().map(community_id).unwrap_or_default();
    }
    SHARED.to_owned()
}

/// What webhooks are told of a review: nothing that anybody said.
fn announcement_data(id: &str, review: &Review) -> Value {
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
