//! Appeals: filed here and in [`filing`], ruled on by the review each of them opens ([`ruling`]), counted in
//! [`estimates`].
//!
//! **Invariant:** whether a person may appeal is asked in one place ([`Appeals::standing`]), and said only where
//! somebody can rule: nobody is told that somebody will look who is not there.
//! **Invariant:** what a person wrote, and what they are answered, is sealed with their key like their other
//! words, and gone with it. What is counted holds no words, and stays.

mod estimates;
mod filing;
mod ruling;
mod view;

pub use estimates::{AppealEstimates, ErrorRate};
pub use filing::NewAppeal;
pub use ruling::CorrectedReply;
pub use view::{AppealFilter, AppealView, FiledAppeals, RulingView};

use crate::explain::StoryKind;
use crate::people::{People, PeopleError};
use crate::records::{key, read};
use crate::reviews::{GuardedHandOut, ReviewStanding};
use conclave_core::{AuditId, Outcome, TenantId};
use conclave_govern::{Appeal, AppealedReply, Review};
use conclave_ports::{Record, RecordKind, Records, StoredDecision};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// An appeal with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppealRecord {
    /// Its id.
    pub id: String,
    /// The appeal.
    pub appeal: Appeal,
}

/// Why a decision cannot be appealed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoAppeal {
    /// Its words are gone.
    #[error("the words of this decision were erased, so nobody could look at it again")]
    Erased,
    /// Nothing was judged that could be judged otherwise.
    #[error("there is no reply here that could be looked at again")]
    NothingToReview,
    /// People have not decided the first time.
    #[error("people have not decided about this yet; it can be appealed once they have")]
    StillWaiting,
    /// Nobody could rule.
    #[error("there is nobody here who could look at this again")]
    NobodyThere,
    /// One was filed already.
    #[error("this decision was appealed already; there is one appeal for each")]
    Filed,
}

/// Where a decision stands that a person may disagree with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppealStanding {
    /// The person may appeal.
    Open,
    /// They may not.
    Closed(NoAppeal),
    /// They have, and it waits or was ruled on.
    Filed(Box<AppealRecord>),
}

/// Appeals under the configuration of one reload.
#[derive(Clone)]
pub struct Appeals {
    /// Keeps them.
    pub people: Arc<People>,
    /// Hands out corrected replies, and has the words of decisions.
    pub hand_out: Arc<GuardedHandOut>,
    /// Whether anybody looks at what waits for a person.
    pub staffed: bool,
}

impl Appeals {
    /// Whether the person of a decision may appeal it, or has.
    ///
    /// # Errors
    /// When the records do not answer: then nothing may be offered.
    pub async fn standing(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
    ) -> Result<AppealStanding, PeopleError> {
        if stored.is_erased() {
            return Ok(AppealStanding::Closed(NoAppeal::Erased));
        }
        let Some(audit) = audit_of(stored) else {
            return Ok(AppealStanding::Closed(NoAppeal::NothingToReview));
        };
        if let Some(record) = self.people.appeal_of(tenant, audit).await? {
            return Ok(AppealStanding::Filed(Box::new(record)));
        }
        if appealed_reply(stored).is_none() {
            return Ok(AppealStanding::Closed(NoAppeal::NothingToReview));
        }
        if self.people.review_standing(tenant, stored).await? == ReviewStanding::Waiting {
            return Ok(AppealStanding::Closed(NoAppeal::StillWaiting));
        }
        let before = self.people.review_of(tenant, audit).await?.map(|record| record.review);
        let able = self.can_somebody_rule(tenant, before.as_ref(), None).await?;
        Ok(if able { AppealStanding::Open } else { AppealStanding::Closed(NoAppeal::NobodyThere) })
    }

    /// Whether there are enough people for a second look who did not decide the first time, and whose own it
    /// is not.
    async fn can_somebody_rule(
        &self,
        tenant: &TenantId,
        before: Option<&Review>,
        author: Option<&str>,
    ) -> Result<bool, PeopleError> {
        let excluded = deciders_of(before);
        let is_free = |holder: &str, person: &str| {
            let is = |one: &str| one == holder || one == person;
            !excluded.iter().any(|one| is(one)) && !author.is_some_and(is)
        };
        let communities: Vec<&String> =
            before.into_iter().flat_map(|one| one.community.iter().chain(&one.others)).collect();
        if communities.is_empty() {
            return self.is_any_reviewer_free(tenant, &excluded, is_free).await;
        }
        let mut able = BTreeSet::new();
        for community in communities {
            let elders = self.people.elders(tenant, community).await?;
            let free = elders.into_iter().filter(|elder| is_free(&elder.holder, &elder.person));
            let free: BTreeSet<_> = free.map(|elder| elder.person).collect();
            if free.is_empty() {
                return Ok(false);
            }
            able.extend(free);
        }
        let needed = before.map_or(1, |review| if review.four_eyes { 2 } else { 1 });
        Ok(able.len() >= needed)
    }

    async fn is_any_reviewer_free(
        &self,
        tenant: &TenantId,
        excluded: &[String],
        is_free: impl Fn(&str, &str) -> bool,
    ) -> Result<bool, PeopleError> {
        if !self.staffed {
            return Ok(false);
        }
        // Nobody keeps a list: whoever configured reviewers is believed.
        let Some(staff) = &self.people.staff else { return Ok(true) };
        let listed = staff.deciders(tenant).await;
        let listed = listed.map_err(|error| PeopleError::Unavailable(error.to_string()))?;
        Ok(listed.iter().any(|one| match &one.person {
            Some(person) => is_free(&one.holder, person),
            // A key that does not say whose it is could be that of whoever decided before.
            None => excluded.is_empty() && is_free(&one.holder, &one.holder),
        }))
    }
}

impl People {
    /// The appeal against a decision.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn appeal_of(
        &self,
        tenant: &TenantId,
        audit: AuditId,
    ) -> Result<Option<AppealRecord>, PeopleError> {
        stored_appeal(&*self.records, tenant, audit).await
    }

    pub(super) async fn find_appeal(
        &self,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<StoredAppeal>, PeopleError> {
        let place = key(RecordKind::Appeal, tenant, id);
        let Some(stored) = self.records.get(place).await?.filter(|one| one.state != TALLY) else {
            return Ok(None);
        };
        let record = AppealRecord { id: id.to_owned(), appeal: read(&stored)? };
        Ok(Some(StoredAppeal { stored, record }))
    }
}

/// The appeal against a decision, from the records of a house that need not run.
pub(crate) async fn stored_appeal(
    records: &dyn Records,
    tenant: &TenantId,
    audit: AuditId,
) -> Result<Option<AppealRecord>, PeopleError> {
    let id = appeal_id(audit);
    let found = records.get(key(RecordKind::Appeal, tenant, &id)).await?;
    found.map(|stored| Ok(AppealRecord { appeal: read(&stored)?, id })).transpose()
}

/// An appeal with the record it was read from.
pub(super) struct StoredAppeal {
    stored: Record,
    record: AppealRecord,
}

/// The id, and the state, of what is counted of a tenant's appeals.
const TALLY: &str = "tally";
/// The state of an appeal that waits; of others it is their outcome.
const FILED: &str = "filed";

/// The id of the appeal against a decision. It follows from the decision, so that there is one.
fn appeal_id(audit: AuditId) -> String {
    format!("apl_{}", audit.0.simple())
}

/// The decision that an appeal of this id is against.
fn audit_of_appeal(id: &str) -> Option<AuditId> {
    id.strip_prefix("apl_").and_then(AuditId::parse)
}

fn audit_of(stored: &StoredDecision) -> Option<AuditId> {
    stored.leaf.draft.audit.map(AuditId::from_bytes)
}

/// What had become of the reply; `None` where nothing was judged that could be judged otherwise: vectors,
/// readings, replies that an application only asked about, and what failed on the way.
fn appealed_reply(stored: &StoredDecision) -> Option<AppealedReply> {
    if !matches!(StoryKind::read_from(stored), StoryKind::Conversation | StoryKind::RecipeRun) {
        return None;
    }
    match Outcome::parse(stored.text("outcome"))? {
        Outcome::Failed | Outcome::GuardUnavailable => None,
        outcome if outcome.is_verified() => Some(AppealedReply::Sent),
        _ => Some(AppealedReply::Withheld),
    }
}

/// Who decided the first time.
fn deciders_of(before: Option<&Review>) -> Vec<String> {
    let mut deciders: Vec<String> = Vec::new();
    for given in before.into_iter().flat_map(|review| &review.rulings) {
        if !deciders.contains(&given.by) {
            deciders.push(given.by.clone());
        }
    }
    deciders
}
