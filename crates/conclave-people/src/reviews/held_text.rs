//! Text that waits for people, and the only ways to read it.
//!
//! **Invariant:** before a review is decided, its text opens to whoever has claimed it and to nobody else;
//! after an approval to whoever may read the words of the decision; after a rejection, or where it was
//! approved in other words, to auditors.
//! **Invariant:** what is withheld and has no readable review counts as waiting.

use super::OPEN;
use crate::people::{People, PeopleError};
use crate::records::{key, read};
use conclave_core::{AuditId, Outcome, TenantId};
use conclave_govern::{Decider, Review, ReviewStatus};
use conclave_ledger::Value as Public;
use conclave_ports::{REVIEW_WORDS, RecordKind, Records, StoredDecision, review_id};
use serde::Serialize;
use std::fmt;

/// Where the review of what a decision withholds stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewStanding {
    /// Nobody is to decide about it.
    Unasked,
    /// Nobody has decided yet.
    Waiting,
    /// It may go out as it is.
    Approved,
    /// Other words may go out in its place.
    Edited,
    /// It may not go out.
    Rejected,
}

/// Who reads a decision, by what they may see of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionReader {
    /// Votes and scores.
    Public,
    /// What people and models said too.
    Words,
    /// Votes and scores, and what people have rejected.
    Auditor,
}

impl ReviewStanding {
    /// Where a review stands.
    #[must_use]
    pub fn of_review(review: &Review) -> Self {
        match review.status {
            ReviewStatus::Approved if review.edited.is_some() => Self::Edited,
            ReviewStatus::Approved => Self::Approved,
            ReviewStatus::Rejected => Self::Rejected,
            _ => Self::Waiting,
        }
    }

    /// Whether what is withheld stays closed to those who may read words.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Waiting | Self::Edited | Self::Rejected)
    }

    const fn opens_to(self, reader: DecisionReader) -> bool {
        match reader {
            DecisionReader::Public => false,
            DecisionReader::Words => matches!(self, Self::Approved),
            DecisionReader::Auditor => matches!(self, Self::Edited | Self::Rejected),
        }
    }
}

/// Text that waits, or waited, for people. It shows itself to nobody, not even in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldText(String);

impl fmt::Debug for HeldText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldText(..)")
    }
}

impl HeldText {
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text as it is kept, sealed, beside an appeal: to be compared with what somebody would send in its
    /// place, and to be the beginning of a correction.
    pub(crate) fn to_be_kept(&self) -> &str {
        &self.0
    }

    /// The text, for whoever has claimed its review and has not decided yet.
    #[must_use]
    pub fn open_for_claimant(&self, review: &Review, who: &Decider, now_ms: u64) -> Option<&str> {
        let is_theirs = OPEN.contains(&review.status) && review.is_claimed_by(who, now_ms);
        is_theirs.then_some(self.0.as_str())
    }

    /// The text, where the decision about it lets this reader see it.
    #[must_use]
    pub fn open_decided(&self, standing: ReviewStanding, reader: DecisionReader) -> Option<&str> {
        standing.opens_to(reader).then_some(self.0.as_str())
    }
}

impl People {
    /// Where the review of what a decision withholds stands.
    ///
    /// # Errors
    /// When the records do not answer: then nothing of it may be shown.
    pub async fn review_standing(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
    ) -> Result<ReviewStanding, PeopleError> {
        review_standing(&*self.records, tenant, stored).await
    }
}

/// The same, where there are records and nobody who decides.
pub(crate) async fn review_standing(
    records: &dyn Records,
    tenant: &TenantId,
    stored: &StoredDecision,
) -> Result<ReviewStanding, PeopleError> {
    if !withholds_anything(stored) {
        return Ok(ReviewStanding::Unasked);
    }
    if let Some(audit) = stored.leaf.draft.audit {
        let id = review_id(AuditId(uuid::Uuid::from_bytes(audit)));
        if let Some(record) = records.get(key(RecordKind::Review, tenant, &id)).await? {
            return Ok(ReviewStanding::of_review(&read(&record)?));
        }
    }
    Ok(standing_without_review(stored))
}

/// Where a decision stands whose review cannot be found, or was never looked for.
#[must_use]
pub fn standing_without_review(stored: &StoredDecision) -> ReviewStanding {
    let is_held = stored.text("outcome") == Outcome::Held.as_str();
    // A review that a decision needs is opened as soon as somebody notices that it is missing.
    if is_held || stored.words(REVIEW_WORDS).is_some() {
        return ReviewStanding::Waiting;
    }
    ReviewStanding::Unasked
}

fn withholds_anything(stored: &StoredDecision) -> bool {
    is_withheld(stored.public("outcome")) || stored.choices().iter().any(is_withheld_choice)
}

/// Whether a reply did not pass: only then can people be asked about it.
pub(crate) fn is_withheld_choice(choice: &Public) -> bool {
    is_withheld(choice.get("outcome"))
}

fn is_withheld(outcome: Option<&Public>) -> bool {
    let outcome = outcome.and_then(Public::as_str).and_then(Outcome::parse);
    !outcome.is_some_and(Outcome::is_verified)
}
