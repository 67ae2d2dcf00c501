//! Reviews: what waits for a person. Opened in [`open`], claimed and decided in [`decide`]; [`missing`] finds
//! those that were never opened, and [`hand_out`] lets out what was approved and [`held_text`] says who reads
//! it. What a ruling means is decided in `conclave-govern`.
//!
//! **Invariant:** whoever may not decide a review, and is neither its author nor an overseer of the
//! tenant, is not told that it exists.

mod decide;
mod hand_out;
mod held_text;
mod missing;
mod open;

pub use hand_out::{GuardedHandOut, HeldWords, ReviewResult, held_words};
pub(crate) use hand_out::{held_text_of, unavailable};
pub use held_text::{DecisionReader, HeldText, ReviewStanding, standing_without_review};
pub(crate) use held_text::{is_withheld_choice, review_standing};
pub use missing::MissingReviews;

use crate::people::{People, PeopleError};
use crate::records::{key, query, read, read_or_report};
use conclave_core::{AuditId, TenantId};
use conclave_govern::{Decider, Review, ReviewStatus, community_id};
use conclave_ports::{Caller, KeyRole, Record, RecordKind, RecordQuery, review_id};
use std::cmp::Reverse;

/// How many reviews of several communities are read to find a caller's own among them.
const SHARED_READ_MAX: u32 = 1_000;
/// Whose queue a review of several communities stands in: no community has this id.
const SHARED: &str = "*";
const OPEN: [ReviewStatus; 3] =
    [ReviewStatus::Pending, ReviewStatus::InReview, ReviewStatus::NeedsConsultation];
const NONE: PeopleError = PeopleError::NotFound("There is no review with this id.");

/// A review with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRecord {
    /// Its id.
    pub id: String,
    /// The review.
    pub review: Review,
}

/// A review that a caller may know of, and what they may decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleReview {
    /// The review.
    pub record: ReviewRecord,
    /// The caller, as somebody who decides.
    pub decider: Decider,
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
    /// What somebody may decide.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn decider(&self, caller: &Caller) -> Result<Decider, PeopleError> {
        let mut decider = Decider {
            person: caller.person.clone().unwrap_or_else(|| caller.holder.clone()),
            named: caller.person.is_some(),
            holder: caller.holder.clone(),
            reviewer: matches!(caller.role, KeyRole::Reviewer | KeyRole::Owner),
            elder_of: Vec::new(),
        };
        for seat in self.elder_seats(caller).await? {
            decider.person = seat.person;
            decider.named = true;
            decider.elder_of.push(seat.community);
        }
        Ok(decider)
    }

    /// The open reviews a caller may know of, most urgent first.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn reviews(
        &self,
        caller: &Caller,
        filter: &ReviewFilter,
    ) -> Result<Vec<ReviewRecord>, PeopleError> {
        let decider = self.decider(caller).await?;
        let wanted = filter.community.as_deref().map(community_id);
        let mut found = Vec::new();
        for owner in queues(caller.role, &decider, wanted.as_ref()) {
            // Pages of several communities are put together, so each is read from its beginning.
            let limit = filter.offset.saturating_add(filter.limit);
            let mut query = RecordQuery { owner, ..open_reviews(Some(&caller.tenant), limit) };
            if let Some(status) = filter.status {
                query.states = vec![status.as_str().to_owned()];
            }
            let shared = query.owner.as_deref() == Some(SHARED);
            if shared {
                query.limit = SHARED_READ_MAX;
            }
            let mut listed = self.records.list(query).await?;
            listed.retain(|one| !shared || is_theirs(one, caller.role, &decider, wanted.as_ref()));
            found.extend(listed);
        }
        found.sort_by_key(|one| {
            (Reverse(one.rank), one.due_ms.unwrap_or(u64::MAX), one.key.id.clone())
        });
        let page = found.into_iter().skip(filter.offset as usize).take(filter.limit as usize);
        let readable = page
            .filter_map(|one| Some(ReviewRecord { review: read_or_report(&one)?, id: one.key.id }));
        Ok(readable.collect())
    }

    /// One review, if the caller may know of it, and what they may decide.
    ///
    /// # Errors
    /// When there is none, or none for them.
    pub async fn review(&self, caller: &Caller, id: &str) -> Result<VisibleReview, PeopleError> {
        let StoredReview { review, decider, .. } = self.find_review(caller, id).await?;
        Ok(VisibleReview { record: ReviewRecord { id: id.to_owned(), review }, decider })
    }

    async fn find_review(&self, caller: &Caller, id: &str) -> Result<StoredReview, PeopleError> {
        let found = self.records.get(key(RecordKind::Review, &caller.tenant, id)).await?;
        let record = found.ok_or(NONE)?;
        let review: Review = read(&record)?;
        let decider = self.decider(caller).await?;
        let is_author = review.author.as_deref() == Some(caller.holder.as_str());
        if is_author || oversees(caller.role) || review.admits(&decider).is_ok() {
            return Ok(StoredReview { record, review, decider });
        }
        Err(NONE)
    }

    /// The review of a decision, whoever may know of it.
    pub(crate) async fn review_of(
        &self,
        tenant: &TenantId,
        audit: AuditId,
    ) -> Result<Option<ReviewRecord>, PeopleError> {
        let id = review_id(audit);
        let Some(record) = self.records.get(key(RecordKind::Review, tenant, &id)).await? else {
            return Ok(None);
        };
        Ok(Some(ReviewRecord { id, review: read(&record)? }))
    }
}

/// A review with the record it was read from, before somebody who may know of it.
struct StoredReview {
    record: Record,
    review: Review,
    decider: Decider,
}

const fn oversees(role: KeyRole) -> bool {
    matches!(role, KeyRole::Owner | KeyRole::Admin | KeyRole::Auditor)
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
    let Some(review) = read_or_report::<Review>(record) else { return false };
    let own = || review.communities().any(|id| decider.elder_of.contains(&id));
    let is_wanted = wanted.is_none_or(|wanted| review.communities().any(|id| id == *wanted));
    is_wanted && (role != KeyRole::Elder || own())
}

fn open_reviews(tenant: Option<&TenantId>, limit: u32) -> RecordQuery {
    let states = OPEN.iter().map(|status| status.as_str().to_owned()).collect();
    RecordQuery { states, ..query(RecordKind::Review, tenant, limit) }
}
