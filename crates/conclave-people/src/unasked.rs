//! Decisions that wait for a person whom nobody has asked: found, and asked about again.
//!
//! Between a decision and its review a process can die, and records can be away. What the review shall
//! be stands sealed in the decision, so that whoever comes after can open it.
//!
//! **Invariant:** a decision has one review, however often it is asked for: the review's id follows from
//! the decision's.

use crate::people::{People, PeopleError};
use conclave_core::AuditId;
use conclave_govern::NewReview;
use conclave_ports::{
    Archive, Clock, DecisionFilter, DecisionRow, Governance, REVIEW_WORDS, StoredDecision,
};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whoever has just decided is still asking by themselves.
const GRACE_MS: u64 = 5_000;
/// So many of the latest are looked at when a house begins, and again after trouble.
const ALL_MAX: usize = 10_000;
/// So many from then on.
const LATEST_MAX: usize = 500;
const PAGE: u32 = 100;
/// So many are remembered as asked about.
const ASKED_MAX: usize = 2 * ALL_MAX;

/// Looks for decisions that nobody was asked about.
pub struct Unasked {
    archive: Arc<dyn Archive>,
    people: Arc<People>,
    clock: Arc<dyn Clock>,
    asked: Mutex<HashSet<AuditId>>,
    /// Whether everything was looked at once without trouble.
    is_settled: AtomicBool,
}

impl Unasked {
    /// Over what was decided and who is asked.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>, people: Arc<People>, clock: Arc<dyn Clock>) -> Self {
        let (asked, is_settled) = (Mutex::default(), AtomicBool::new(false));
        Self { archive, people, clock, asked, is_settled }
    }

    /// Opens the reviews that are missing; says how many.
    ///
    /// # Errors
    /// When the archive or the records do not answer; the next time looks at everything again.
    pub async fn ask_again(&self) -> Result<u32, PeopleError> {
        let most =
            if self.is_settled.swap(false, Ordering::Relaxed) { LATEST_MAX } else { ALL_MAX };
        let held = DecisionFilter { outcome: Some("held".to_owned()), ..DecisionFilter::default() };
        let escalated =
            DecisionFilter { action: Some("escalate".to_owned()), ..DecisionFilter::default() };
        let mut opened = 0;
        for filter in [held, escalated] {
            opened += self.look_through(filter, most).await?;
        }
        self.is_settled.store(true, Ordering::Relaxed);
        Ok(opened)
    }

    async fn look_through(
        &self,
        mut filter: DecisionFilter,
        most: usize,
    ) -> Result<u32, PeopleError> {
        let (mut seen, mut opened) = (0, 0);
        filter.limit = PAGE;
        while seen < most {
            let page = self.archive.list(filter.clone()).await;
            let page = page.map_err(|error| PeopleError::Unavailable(error.to_string()))?;
            let Some(last) = page.last() else { break };
            filter.before = Some(last.id);
            seen += page.len();
            for row in page {
                opened += u32::from(self.look_at(&row).await?);
            }
        }
        Ok(opened)
    }

    /// Whether a review had to be opened.
    async fn look_at(&self, row: &DecisionRow) -> Result<bool, PeopleError> {
        let fresh = row.timestamp_ms.saturating_add(GRACE_MS) > self.clock.now_ms();
        if fresh || self.asked().contains(&row.id) {
            return Ok(false);
        }
        let wanted = self.wanted(row).await?;
        let opened = match wanted {
            None => false,
            Some(review) => {
                let known = self.people.review_of(&review.tenant, row.id).await?.is_some();
                if !known {
                    let submitted = self.people.submit(review).await;
                    let id = submitted.map_err(|error| PeopleError::Unavailable(error.0))?;
                    tracing::warn!(audit_id = %row.id, review = id, "a review was missing: it is opened");
                }
                !known
            }
        };
        let mut asked = self.asked();
        if asked.len() >= ASKED_MAX {
            asked.clear();
        }
        asked.insert(row.id);
        Ok(opened)
    }

    /// The review that a decision needs; none where it needs none, or its words are gone.
    async fn wanted(&self, row: &DecisionRow) -> Result<Option<NewReview>, PeopleError> {
        let trouble = |why: String| PeopleError::Unavailable(why);
        let entries = self.archive.find(row.tenant, row.id).await;
        let entries = entries.map_err(|error| trouble(error.to_string()))?;
        let stored = StoredDecision::from_entries(entries);
        let stored = stored.map_err(|error| trouble(error.to_string()))?;
        let words = stored.as_ref().and_then(|stored| stored.words(REVIEW_WORDS));
        Ok(words.and_then(|words| serde_json::from_value(words).ok()))
    }

    fn asked(&self) -> MutexGuard<'_, HashSet<AuditId>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
