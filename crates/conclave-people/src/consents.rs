//! What people have agreed to: given, read, taken back.
//!
//! **Invariant:** a question is answered from the records, never from memory, so that a withdrawal is in
//! force with the next question.
//! **Invariant:** a consent that cannot be read is an error: it may be a withdrawal.

use crate::people::{People, PeopleError};
use crate::records::{key, query, read, recorded};
use conclave_core::TenantId;
use conclave_govern::{
    ConsentAsk, ConsentEvidence, ConsentRecord, ConsentState, Withdrawal, check_consent,
};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Record, RecordKind, RecordQuery, pseudonym};
use std::collections::BTreeMap;

/// The most records of consent of one person.
const RECORDS_MAX: u32 = 200;
const NONE: PeopleError = PeopleError::NotFound("There is no consent with this id.");

impl People {
    /// Keeps what somebody agreed to; returns its id.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub async fn give_consent(
        &self,
        tenant: &TenantId,
        by: &str,
        consent: ConsentRecord,
    ) -> Result<String, PeopleError> {
        consent.check()?;
        let known = self.consents_of(tenant, &consent.subject).await?;
        if known.len() >= RECORDS_MAX as usize {
            let sentence = format!("a person has at most {RECORDS_MAX} records of consent");
            return Err(PeopleError::Full(sentence));
        }
        let id = self.new_id("con");
        let place = key(RecordKind::Consent, tenant, &id);
        let owner = self.consent_owner(tenant, &consent.subject);
        let mut record = Record {
            due_ms: consent.expires_ms,
            subject: self.subject(tenant, &consent.subject).await?,
            ..self.new_record(place, "given", &owner)
        };
        self.rewrite(&mut record, &consent)?;
        let public = self.consent_entry(&record, by, &consent, &consent.evidence);
        self.records.put(vec![recorded(record, Kind::ConsentChange, public)]).await?;
        Ok(id)
    }

    /// Takes consent back; a second time changes nothing.
    ///
    /// # Errors
    /// When there is no such record, or it cannot be changed.
    pub async fn withdraw_consent(
        &self,
        tenant: &TenantId,
        by: &str,
        id: &str,
        evidence: ConsentEvidence,
    ) -> Result<ConsentRecord, PeopleError> {
        evidence.check()?;
        let found = self.records.get(key(RecordKind::Consent, tenant, id)).await?;
        let mut record = found.ok_or(NONE)?;
        let mut consent: ConsentRecord = read(&record)?;
        if consent.withdrawn.is_some() {
            return Ok(consent);
        }
        record.state = "withdrawn".to_owned();
        let public = self.consent_entry(&record, by, &consent, &evidence);
        consent.withdrawn = Some(Withdrawal { at_ms: self.clock.now_ms(), evidence });
        self.rewrite(&mut record, &consent)?;
        self.records.put(vec![recorded(record, Kind::ConsentChange, public)]).await?;
        Ok(consent)
    }

    /// One record of consent.
    ///
    /// # Errors
    /// When there is none.
    pub async fn consent(&self, tenant: &TenantId, id: &str) -> Result<ConsentRecord, PeopleError> {
        let found = self.records.get(key(RecordKind::Consent, tenant, id)).await?;
        read(&found.ok_or(NONE)?)
    }

    /// Every record of consent of a person, by id. What was erased with its person is not there.
    ///
    /// # Errors
    /// When the records do not answer, or one cannot be read.
    pub async fn consents_of(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<BTreeMap<String, ConsentRecord>, PeopleError> {
        let owner = Some(self.consent_owner(tenant, subject));
        let all = query(RecordKind::Consent, Some(tenant), RECORDS_MAX);
        let records = self.records.list(RecordQuery { owner, ..all }).await?;
        records.iter().map(|record| Ok((record.key.id.clone(), read(record)?))).collect()
    }

    pub(crate) async fn check_consent(
        &self,
        tenant: &TenantId,
        ask: &ConsentAsk,
    ) -> Result<ConsentState, PeopleError> {
        let records: Vec<_> = self.consents_of(tenant, &ask.subject).await?.into_iter().collect();
        Ok(check_consent(&records, ask))
    }

    /// A person's own records are found by a pseudonym: the column is not sealed.
    fn consent_owner(&self, tenant: &TenantId, subject: &str) -> String {
        hex::encode(pseudonym(&self.key, b"consent", tenant.as_str(), subject))
    }

    fn consent_entry(
        &self,
        record: &Record,
        by: &str,
        consent: &ConsentRecord,
        evidence: &ConsentEvidence,
    ) -> Public {
        let tenant = &record.key.tenant;
        Public::map([
            ("what", Public::from(record.state.as_str())),
            ("record", Public::from(record.key.id.as_str())),
            ("scopes", Public::Uint(consent.scopes.len() as u64)),
            ("purposes", Public::Uint(consent.purposes.len() as u64)),
            ("given_ms", Public::Uint(consent.given_ms)),
            ("expires_ms", consent.expires_ms.map_or(Public::Null, Public::Uint)),
            ("evidence_kind", Public::from(evidence.kind.as_str())),
            ("evidence", self.digest(b"evidence", tenant, &evidence.reference)),
            ("by", self.digest(b"reader", tenant, by)),
        ])
    }
}
