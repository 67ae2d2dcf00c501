//! How an appeal is taken in.
//!
//! **Invariant:** the appeal, the review it opens and what the ledger tells of both become durable together, or
//! nothing of it does.

use super::{
    AppealRecord, AppealStanding, Appeals, FILED, NoAppeal, appeal_id, appealed_reply, audit_of,
    deciders_of,
};
use crate::explain::{concerns, language_of, last_ballots};
use crate::people::{People, PeopleError};
use crate::records::{key, query, recorded};
use crate::reviews::{held_text_of, unavailable};
use conclave_core::{Ballot, TenantId};
use conclave_govern::{
    Appeal, AppealConcern, AppealedReply, Issue, NewReview, Review, ReviewKind, ReviewPriority,
    appeal_words,
};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Record, RecordKind, RecordQuery, RecordsError, StoredDecision};

/// So many appeals of one person may wait.
const OF_PERSON_MAX: u32 = 5;
/// So many appeals of one tenant may wait.
const OF_TENANT_MAX: u32 = 1_000;
/// The longest text of before that is kept beside an appeal, in bytes.
const ORIGINAL_BYTES_MAX: usize = 64 << 10;

/// What a person says against a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAppeal {
    /// What they think was wrong.
    pub concern: AppealConcern,
    /// What they say about it.
    pub words: String,
    /// The key that files it for them; absent where they do so themselves.
    pub filed_by: Option<String>,
}

impl Appeals {
    /// Takes an appeal in, which opens a review.
    ///
    /// # Errors
    /// When the decision cannot be appealed, too many appeals wait, or the words cannot be kept.
    pub async fn file(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        new: NewAppeal,
    ) -> Result<AppealRecord, PeopleError> {
        let words = appeal_words(&new.words)?;
        match self.standing(tenant, stored).await? {
            AppealStanding::Open => {}
            AppealStanding::Closed(why) => return Err(why.into()),
            AppealStanding::Filed(_) => return Err(NoAppeal::Filed.into()),
        }
        let (Some(audit), Some(about)) = (audit_of(stored), appealed_reply(stored)) else {
            return Err(NoAppeal::NothingToReview.into());
        };
        let before = self.people.review_of(tenant, audit).await?.map(|record| record.review);
        let author = new.filed_by.as_deref();
        if author.is_some() && !self.can_somebody_rule(tenant, before.as_ref(), author).await? {
            return Err(NoAppeal::NobodyThere.into());
        }
        let people = &self.people;
        let owner = owner_of(stored);
        people.check_room(tenant, &owner).await?;
        let subject = match stored.leaf.draft.subject {
            Some(subject) => subject,
            // Words of people without an id are sealed like the rest of what they said.
            None => people.subjects.nobody(tenant).await.map_err(unavailable)?,
        };
        let id = appeal_id(audit);
        let review_id = format!("rev_{id}");
        let review = self.review_to_open(tenant, stored, &new, before.as_ref());
        let now_ms = people.clock.now_ms();
        let objections = concerns(stored).iter().map(|reason| reason.code().to_owned()).collect();
        let appeal = Appeal {
            audit_id: audit.to_string(),
            review_id: review_id.clone(),
            about,
            concern: new.concern,
            words,
            language: language_of(stored).as_str().to_owned(),
            filed_by: new.filed_by,
            filed_ms: now_ms,
            due_ms: now_ms.saturating_add(review.priority.due_in_ms()),
            original: original_text(stored, about),
            objections,
            ruling: None,
            shown_ms: None,
        };
        let place = key(RecordKind::Appeal, tenant, &id);
        let mut record =
            Record { subject: Some(subject), ..people.new_record(place, FILED, &owner) };
        record.due_ms = Some(appeal.due_ms);
        people.rewrite(&mut record, &appeal)?;
        let public = people.appeal_entry(tenant, &id, &appeal, FILED, appeal.filed_by.as_deref());
        let mut changes = vec![recorded(record, Kind::AppealChange, public)];
        let review = NewReview { subject: Some(subject), ..review };
        let opened = Review {
            excluded: deciders_of(before.as_ref()),
            vetoed: vetoed_text(stored, about),
            ..Review::open(&review, now_ms)
        };
        changes.extend(people.opening_changes_of(&review_id, &review, opened).await?);
        match people.records.put(changes).await {
            Ok(_) => Ok(AppealRecord { id, appeal }),
            // Somebody else has filed the same one at this moment.
            Err(RecordsError::Conflict) => Err(NoAppeal::Filed.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn review_to_open(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        new: &NewAppeal,
        before: Option<&Review>,
    ) -> NewReview {
        let is_crisis = stored.public("crisis").and_then(Public::as_bool) == Some(true);
        let is_run = stored.public("recipe").is_some();
        NewReview {
            kind: ReviewKind::Appeal,
            tenant: tenant.clone(),
            content_type: if is_run { "run".to_owned() } else { "chat".to_owned() },
            community: before.and_then(|review| review.community.clone()),
            others: before.map(|review| review.others.clone()).unwrap_or_default(),
            issues: vec![Issue {
                code: format!("appeal_{}", new.concern.as_str()),
                detail: concern_detail(new.concern).to_owned(),
            }],
            priority: if is_crisis { ReviewPriority::Urgent } else { ReviewPriority::Medium },
            audit_id: audit_of(stored),
            author: new.filed_by.clone(),
            subject: None,
            four_eyes: before.is_some_and(|review| review.four_eyes),
        }
    }
}

impl People {
    /// Refuses one more appeal where too many wait already.
    async fn check_room(&self, tenant: &TenantId, owner: &str) -> Result<(), PeopleError> {
        let waiting = |owner: Option<&str>, limit| RecordQuery {
            owner: owner.map(str::to_owned),
            states: vec![FILED.to_owned()],
            ..query(RecordKind::Appeal, Some(tenant), limit)
        };
        let own = self.records.list(waiting(Some(owner), OF_PERSON_MAX)).await?;
        if own.len() >= OF_PERSON_MAX as usize {
            let why =
                "this person has five appeals waiting; they can file more when those are decided";
            return Err(PeopleError::TooMany(why));
        }
        // One record tells whether there are as many as there may be.
        let last = RecordQuery { offset: OF_TENANT_MAX - 1, ..waiting(None, 1) };
        if !self.records.list(last).await?.is_empty() {
            let why =
                "this tenant has a thousand appeals waiting; file it again when some are decided";
            return Err(PeopleError::TooMany(why));
        }
        Ok(())
    }

    /// What the ledger tells of an appeal: no word of anybody.
    pub(super) fn appeal_entry(
        &self,
        tenant: &TenantId,
        id: &str,
        appeal: &Appeal,
        what: &str,
        by: Option<&str>,
    ) -> Public {
        let decision = conclave_core::AuditId::parse(&appeal.audit_id);
        let decision = decision.map(|id| Public::Bytes(id.0.into_bytes().to_vec()));
        let by = by.map(|by| self.digest(b"reader", tenant, by));
        let corrected = appeal.ruling.as_ref().is_some_and(|ruling| ruling.corrected.is_some());
        Public::map([
            ("what", Public::from(what)),
            ("appeal", Public::from(id)),
            ("review", Public::from(appeal.review_id.as_str())),
            ("decision", decision.unwrap_or(Public::Null)),
            ("about", Public::from(appeal.about.as_str())),
            ("concern", Public::from(appeal.concern.as_str())),
            ("corrected", Public::Bool(corrected)),
            ("by", by.unwrap_or(Public::Null)),
        ])
    }
}

/// Whose appeal it is: the person's, or the conversation's where the person has no id.
fn owner_of(stored: &StoredDecision) -> String {
    let draft = &stored.leaf.draft;
    draft.subject.or(draft.session).map(hex::encode).unwrap_or_default()
}

/// What reviewers read of why it waits.
const fn concern_detail(concern: AppealConcern) -> &'static str {
    match concern {
        AppealConcern::ShouldHaveAnswered => {
            "The person appeals: they think that they should have got an answer."
        }
        AppealConcern::HarmfulOrWrong => {
            "The person appeals: they think that the reply was harmful or wrong."
        }
        AppealConcern::Misunderstood => {
            "The person appeals: they think that they were misunderstood."
        }
        AppealConcern::Other => "The person appeals, for a reason in their own words.",
    }
}

/// What was sent, or what would have been.
fn original_text(stored: &StoredDecision, about: AppealedReply) -> Option<String> {
    let text = match about {
        AppealedReply::Sent => stored.words("delivered.0")?["text"].as_str()?.to_owned(),
        AppealedReply::Withheld => held_text_of(stored)?.to_be_kept().to_owned(),
    };
    let end = text.floor_char_boundary(ORIGINAL_BYTES_MAX);
    Some(text[..end].to_owned())
}

/// The text that a check vetoed, which no one person lets out as it is.
fn vetoed_text(stored: &StoredDecision, about: AppealedReply) -> Option<String> {
    if about == AppealedReply::Sent || !last_ballots(stored).iter().any(Ballot::is_veto) {
        return None;
    }
    original_text(stored, about)
}
