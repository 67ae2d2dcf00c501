//! How a review is claimed, given back and decided, and what time does to it.
//!
//! **Invariant:** of two who claim at the same moment, one has it: records change by their version.

use super::open::ReviewEvent;
use super::{ReviewRecord, StoredReview, open_reviews};
use crate::people::{People, PeopleError};
use crate::records::read_or_report;
use conclave_govern::{Decider, Notice, Review, ReviewKind, ReviewRefusal, Said};
use conclave_ports::{Caller, EventKind, KeyRole, Record, RecordQuery, RecordsError};

/// How often a change is tried that somebody else made stale.
const TRIES: usize = 4;
/// How many reviews are read together when time is looked at.
const PAGE: u32 = 500;

impl People {
    /// Claims a review for a while.
    ///
    /// # Errors
    /// When it is not the caller's to decide, or somebody else has it.
    pub async fn claim_review(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<ReviewRecord, PeopleError> {
        self.change_review(caller, id, "claimed", |review, decider, now_ms| {
            review.claim(decider, now_ms).map(drop)
        })
        .await
    }

    /// Gives a claim back.
    ///
    /// # Errors
    /// When the claim is not the caller's any more.
    pub async fn unclaim_review(
        &self,
        caller: &Caller,
        id: &str,
        token: u64,
    ) -> Result<ReviewRecord, PeopleError> {
        self.change_review(caller, id, "released", |review, decider, now_ms| {
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
    ) -> Result<ReviewRecord, PeopleError> {
        self.change_review(caller, id, said.ruling.as_str(), |review, decider, now_ms| {
            review.decide(decider, token, said.clone(), now_ms)
        })
        .await
    }

    async fn change_review(
        &self,
        caller: &Caller,
        id: &str,
        what: &str,
        act: impl Fn(&mut Review, &Decider, u64) -> Result<(), ReviewRefusal>,
    ) -> Result<ReviewRecord, PeopleError> {
        for _ in 0..TRIES {
            let StoredReview { record, mut review, decider } = self.find_review(caller, id).await?;
            act(&mut review, &decider, self.clock.now_ms())?;
            let announced = review.status.is_final().then_some(EventKind::ReviewDecided);
            let event = ReviewEvent { what, by: Some(&decider.person), announced };
            let mut changes = self.review_changes(record, &review, event).await?;
            if review.kind == ReviewKind::Appeal && review.status.is_final() {
                let record = ReviewRecord { id: id.to_owned(), review: review.clone() };
                let by = &decider.person;
                changes.extend(self.ruling_changes(&caller.tenant, &record, by).await?);
            }
            if caller.role == KeyRole::Elder {
                changes.extend(self.handover_changes(caller, review.communities()).await?);
            }
            match self.records.put(changes).await {
                Ok(_) => return Ok(ReviewRecord { id: id.to_owned(), review }),
                Err(RecordsError::Conflict) => {}
                Err(error) => return Err(error.into()),
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
        let mut changed = 0;
        let mut offset: u32 = 0;
        loop {
            let query = RecordQuery { offset, ..open_reviews(None, PAGE) };
            let page = self.records.list(query).await?;
            // A page may be shorter than it could be: what was erased is not shown.
            if page.is_empty() {
                return Ok(changed);
            }
            for record in page {
                changed += usize::from(self.age_review(record).await?);
            }
            offset = offset.saturating_add(PAGE);
        }
    }

    async fn age_review(&self, record: Record) -> Result<bool, PeopleError> {
        let Some(mut review) = read_or_report::<Review>(&record) else { return Ok(false) };
        let before = review.clone();
        let notice = review.pass(self.clock.now_ms());
        if review == before {
            return Ok(false);
        }
        let (what, announced) = match notice {
            None => ("claim_ended", None),
            Some(Notice::Half | Notice::Due) => ("reminded", Some(EventKind::ReviewReminder)),
            Some(Notice::Overdue) => ("overdue", Some(EventKind::ReviewOverdue)),
        };
        let event = ReviewEvent { what, by: None, announced };
        match self.records.put(self.review_changes(record, &review, event).await?).await {
            Ok(_) => Ok(true),
            Err(RecordsError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
