//! Decisions that wait for a person whom nobody has asked: found, and asked about again.
//!
//! Between a decision and its review a process can die, and records can be away. What the review shall
//! be stands sealed in the decision, so that whoever comes after can open it.
//!
//! **Invariant:** a decision has one review, however often it is asked for: the review's id follows from
//! the decision's.

use super::hand_out::read_words;
use crate::people::{People, PeopleError};
use conclave_core::AuditId;
use conclave_govern::NewReview;
use conclave_ports::{Archive, Clock, DecisionFilter, DecisionRow, REVIEW_WORDS, StoredDecision};
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whoever has just decided is still asking by themselves.
const GRACE_MS: u64 = 5_000;
/// How many of the latest are looked at when a house begins, and again after trouble.
const ALL_MAX: usize = 10_000;
/// How many from then on.
const LATEST_MAX: usize = 500;
const PAGE: u32 = 100;
/// How many are remembered as looked at.
const SETTLED_MAX: usize = 2 * ALL_MAX;

/// Looks for decisions whose review was never opened.
pub struct MissingReviews {
    archive: Arc<dyn Archive>,
    people: Arc<People>,
    clock: Arc<dyn Clock>,
    settled: Mutex<HashSet<AuditId>>,
    /// Whether everything was looked at once without trouble.
    is_caught_up: AtomicBool,
}

impl MissingReviews {
    /// Over what was decided and who is asked.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>, people: Arc<People>, clock: Arc<dyn Clock>) -> Self {
        let is_caught_up = AtomicBool::new(false);
        Self { archive, people, clock, settled: Mutex::default(), is_caught_up }
    }

    /// Opens the reviews that are missing; says how many.
    ///
    /// # Errors
    /// When the archive or the records do not answer; the next time looks at everything again.
    pub async fn open_missing(&self) -> Result<u32, PeopleError> {
        let most =
            if self.is_caught_up.swap(false, Ordering::Relaxed) { LATEST_MAX } else { ALL_MAX };
        let held = DecisionFilter { outcome: Some("held".to_owned()), ..DecisionFilter::default() };
        let escalated =
            DecisionFilter { action: Some("escalate".to_owned()), ..DecisionFilter::default() };
        let mut opened = 0;
        for filter in [held, escalated] {
            opened += self.look_through(filter, most).await?;
        }
        self.is_caught_up.store(true, Ordering::Relaxed);
        Ok(opened)
    }

    async fn look_through(
        &self,
        mut filter: DecisionFilter,
        most: usize,
    ) -> Result<u32, PeopleError> {
        let mut seen = 0;
        let mut opened = 0;
        filter.limit = PAGE;
        while seen < most {
            let page = self.archive.list(filter.clone()).await.map_err(unavailable)?;
            let Some(last) = page.last() else { break };
            filter.before = Some(last.id);
            seen += page.len();
            for row in page {
                opened += u32::from(self.open_if_missing(&row).await?);
            }
        }
        Ok(opened)
    }

    /// Whether a review had to be opened.
    async fn open_if_missing(&self, row: &DecisionRow) -> Result<bool, PeopleError> {
        let fresh = row.timestamp_ms.saturating_add(GRACE_MS) > self.clock.now_ms();
        if fresh || self.settled().contains(&row.id) {
            return Ok(false);
        }
        let mut is_missing = false;
        if let Some(review) = self.needed_review(row).await? {
            is_missing = self.people.review_of(&review.tenant, row.id).await?.is_none();
            if is_missing {
                let id = self.people.open_review(review).await?;
                tracing::warn!(audit_id = %row.id, review = id, "a review was missing: it is opened");
            }
        }
        let mut settled = self.settled();
        if settled.len() >= SETTLED_MAX {
            settled.clear();
        }
        settled.insert(row.id);
        Ok(is_missing)
    }

    /// The review that a decision needs; none where it needs none, or its words are gone.
    async fn needed_review(&self, row: &DecisionRow) -> Result<Option<NewReview>, PeopleError> {
        let entries = self.archive.find(row.tenant, row.id).await.map_err(unavailable)?;
        let stored = StoredDecision::from_entries(entries).map_err(unavailable)?;
        let Some(stored) = stored else { return Ok(None) };
        // One that cannot be read must not keep the others from being asked about.
        Ok(read_words(&stored, REVIEW_WORDS).unwrap_or_else(|error| {
            tracing::error!(%error, audit_id = %row.id, "nobody can be asked about a decision");
            None
        }))
    }

    fn settled(&self) -> MutexGuard<'_, HashSet<AuditId>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(error: impl Display) -> PeopleError {
    PeopleError::Unavailable(error.to_string())
}
