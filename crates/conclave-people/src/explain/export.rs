//! Everything that is kept of a person, for the person.
//!
//! **Invariant:** memory does not grow with what is exported: it comes page by page.

use super::view::decision_view;
use crate::appeals::{AppealView, stored_appeal};
use crate::people::People;
use crate::reviews::{DecisionReader, review_standing};
use conclave_core::{AuditId, TenantId};
use conclave_ledger::{Body, Draft, Kind, Value, tenant_number};
use conclave_ports::{
    Archive, ArchiveError, DecisionFilter, Ledger, Records, Stamp, StoredDecision, pseudonym,
};
use serde_json::{Value as Json, json};

/// How many decisions are read together.
const PAGE: u32 = 50;

/// The decisions of a person, newest first, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportPage {
    /// Each with its words, as far as they are there.
    pub decisions: Vec<Json>,
    /// The last one, if there may be more.
    pub before: Option<AuditId>,
}

impl People {
    /// Reads a page of what is kept of a person.
    ///
    /// # Errors
    /// When the archive or the records do not answer, or a decision cannot be read.
    pub async fn export_page(
        &self,
        archive: &dyn Archive,
        tenant: &TenantId,
        subject: [u8; 16],
        before: Option<AuditId>,
    ) -> Result<ExportPage, ArchiveError> {
        export_page(archive, &*self.records, tenant, subject, before).await
    }
}

/// The same, from the records of a house that does not run.
///
/// # Errors
/// When the archive or the records do not answer, or a decision cannot be read.
pub async fn export_page(
    archive: &dyn Archive,
    records: &dyn Records,
    tenant: &TenantId,
    subject: [u8; 16],
    before: Option<AuditId>,
) -> Result<ExportPage, ArchiveError> {
    let number = tenant_number(tenant.as_str());
    let filter = DecisionFilter {
        tenant: Some(number),
        subject: Some(subject),
        before,
        limit: PAGE,
        ..DecisionFilter::default()
    };
    let rows = archive.list(filter).await?;
    let mut page = ExportPage::default();
    if rows.len() == PAGE as usize {
        page.before = rows.last().map(|row| row.id);
    }
    for row in rows {
        let entries = archive.find(number, row.id).await?;
        let stored = StoredDecision::from_entries(entries);
        let stored = stored.map_err(|error| ArchiveError(error.to_string()))?;
        let Some(stored) = stored else { continue };
        let standing = review_standing(records, tenant, &stored).await;
        let standing = standing.map_err(|error| ArchiveError(error.to_string()))?;
        let mut view = decision_view(&stored, DecisionReader::Words, standing);
        let appeal = stored_appeal(records, tenant, row.id).await;
        let appeal = appeal.map_err(|error| ArchiveError(error.to_string()))?;
        if let Some(filed) = appeal {
            // What the person wrote and was answered, the corrected reply among it.
            view["appeal"] = json!(AppealView::for_person(&filed));
            view["appeal"]["corrected_reply"] =
                json!(filed.appeal.ruling.and_then(|ruling| ruling.corrected));
        }
        page.decisions.push(view);
    }
    Ok(page)
}

/// Notes that somebody was given everything that is kept of a person.
pub fn note_subject_export(
    ledger: &dyn Ledger,
    stamp: &Stamp,
    pseudonym_key: &[u8; 32],
    tenant: &TenantId,
    reader: &str,
    subject: [u8; 16],
) {
    let reader = pseudonym(pseudonym_key, b"reader", tenant.as_str(), reader);
    let draft = Draft {
        subject: Some(subject),
        public: Value::map([
            ("what", Value::from("subject.export")),
            ("reader", Value::Bytes(reader.to_vec())),
        ]),
        ..stamp.draft(Kind::AdminAction, tenant)
    };
    ledger.append_soon(draft, Body::empty());
}
