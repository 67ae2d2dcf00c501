//! What a ruling on an appeal changes: the person's answer, the corrected reply, and what is counted.

use super::{AppealRecord, Appeals, StoredAppeal, TALLY, audit_of_appeal};
use crate::people::{People, PeopleError};
use crate::records::{key, read, recorded, unrecorded};
use crate::reviews::{ReviewRecord, unavailable};
use conclave_core::TenantId;
use conclave_govern::{AppealOutcome, AppealRuling, AppealTally, Review};
use conclave_ledger::Kind;
use conclave_ports::{
    Announcement, EventKind, HandOut, HandOutError, RecordChange, RecordKind, RecordsError,
    StoredDecision,
};
use serde_json::json;

/// Who reads a corrected reply on the page, as the ledger has it.
const PAGE_READER: &str = "the person's page";
/// How the id of the review of an appeal begins; the rest is the appeal's own.
const REVIEW_START: &str = "rev_";

impl People {
    /// What else becomes durable with the ruling that closes the review of an appeal.
    pub(crate) async fn ruling_changes(
        &self,
        tenant: &TenantId,
        record: &ReviewRecord,
        by: &str,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        let ReviewRecord { id, review } = record;
        let id = id.strip_prefix(REVIEW_START).unwrap_or_default();
        let missing = PeopleError::NotFound("There is no appeal with this id.");
        let StoredAppeal { stored: mut kept, record: filed } =
            self.find_appeal(tenant, id).await?.ok_or(missing)?;
        let mut appeal = filed.appeal;
        let ruling = ruling_of(review, self.clock.now_ms());
        let outcome = ruling.outcome;
        let is_corrected = ruling.corrected.is_some();
        appeal.ruling = Some(ruling);
        self.rewrite(&mut kept, &appeal)?;
        outcome.as_str().clone_into(&mut kept.state);
        kept.due_ms = None;
        let public = self.appeal_entry(tenant, id, &appeal, outcome.as_str(), Some(by));
        let mut changes = vec![recorded(kept, Kind::AppealChange, public)];
        let place = key(RecordKind::Appeal, tenant, TALLY);
        let mut counted = match self.records.get(place.clone()).await? {
            Some(counted) => counted,
            None => self.new_record(place, TALLY, ""),
        };
        let mut tally: AppealTally =
            if counted.version == 0 { AppealTally::default() } else { read(&counted)? };
        tally.count(appeal.about, outcome);
        self.rewrite(&mut counted, &tally)?;
        changes.push(unrecorded(counted));
        let data = json!({
            "appeal_id": id,
            "audit_id": appeal.audit_id,
            "review_id": appeal.review_id,
            "outcome": outcome,
            "about": appeal.about,
            "corrected": is_corrected,
            "status_url": format!("/v1/appeals/{id}"),
        });
        let told = Announcement { kind: EventKind::AppealDecided, data };
        changes.extend(self.event_changes(tenant, &told).await?);
        Ok(changes)
    }

    /// How the appeals of a tenant were ruled so far.
    pub(super) async fn appeal_tally(&self, tenant: &TenantId) -> Result<AppealTally, PeopleError> {
        let counted = self.records.get(key(RecordKind::Appeal, tenant, TALLY)).await?;
        counted.as_ref().map_or(Ok(AppealTally::default()), read)
    }

    /// Notes that the corrected reply was shown on the page of the person.
    pub(super) async fn note_shown(&self, tenant: &TenantId, id: &str) -> Result<(), PeopleError> {
        let Some(StoredAppeal { mut stored, mut record }) = self.find_appeal(tenant, id).await?
        else {
            return Ok(());
        };
        record.appeal.shown_ms = Some(self.clock.now_ms());
        self.rewrite(&mut stored, &record.appeal)?;
        match self.records.put(vec![unrecorded(stored)]).await {
            // Somebody else has noted it at the same moment.
            Ok(_) | Err(RecordsError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The appeal that a review rules on.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn appeal_in_review(
        &self,
        tenant: &TenantId,
        review_id: &str,
    ) -> Result<Option<AppealRecord>, PeopleError> {
        let Some(id) = review_id.strip_prefix(REVIEW_START) else { return Ok(None) };
        if audit_of_appeal(id).is_none() {
            return Ok(None);
        }
        Ok(self.find_appeal(tenant, id).await?.map(|found| found.record))
    }
}

/// What the person may read of the corrected reply on their page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorrectedReply {
    /// There is none.
    Absent,
    /// This.
    Shown(String),
    /// There is one, and it may not be shown now.
    Withheld,
}

impl Appeals {
    /// The corrected reply for the page of the person. That it leaves is recorded when it is first shown; on
    /// later visits it is only asked again whether it may be.
    ///
    /// # Errors
    /// When the records or the archive do not answer, or it cannot be recorded.
    pub async fn show_corrected(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        record: &AppealRecord,
    ) -> Result<CorrectedReply, PeopleError> {
        let ruling = record.appeal.ruling.as_ref();
        let Some(text) = ruling.and_then(|ruling| ruling.corrected.clone()) else {
            return Ok(CorrectedReply::Absent);
        };
        let is_shown_before = record.appeal.shown_ms.is_some();
        let words = vec![text.clone()];
        let hindrance = if is_shown_before {
            self.hand_out.hindrance(tenant, stored, words).await.map_err(HandOutError::from)
        } else {
            self.hand_out.hand_out(tenant, stored, words, PAGE_READER).await
        };
        if hindrance.map_err(unavailable)?.is_some() {
            return Ok(CorrectedReply::Withheld);
        }
        if !is_shown_before {
            self.people.note_shown(tenant, &record.id).await?;
        }
        Ok(CorrectedReply::Shown(text))
    }
}

/// A review that closes without an answer has been checked to be impossible; the person is told at least how
/// it ended.
fn ruling_of(review: &Review, now_ms: u64) -> AppealRuling {
    let answer = review.answer.clone();
    let outcome = answer.as_ref().map_or(AppealOutcome::Denied, |answer| answer.outcome);
    AppealRuling {
        outcome,
        words: answer.map(|answer| answer.words).unwrap_or_default(),
        corrected: review.edited.clone().filter(|_| outcome.is_for_person()),
        conditions: review.conditions.clone(),
        decided_ms: now_ms,
    }
}
