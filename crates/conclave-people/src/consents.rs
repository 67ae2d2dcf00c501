//! What people have agreed to: given, read, taken back.
//!
//! **Invariant:** a question is answered from the records, never from memory, so that a withdrawal is in
//! force with the next question.

use crate::people::{People, PeopleError, place, read, told, written};
use conclave_core::TenantId;
use conclave_govern::{
    ConsentAsk, ConsentRecord, ConsentState, Evidence, Withdrawal, check_consent,
};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::pseudonym;
use conclave_ports::{Record, RecordChange, RecordKind, RecordQuery};

/// So many records of one person.
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
        let subject = self.subject(tenant, &consent.subject).await?;
        let record = Record {
            key: place(RecordKind::Consent, tenant, &id),
            version: 0,
            state: "given".to_owned(),
            owner: self.consent_owner(tenant, &consent.subject),
            rank: 0,
            due_ms: consent.expires_ms,
            changed_ms: self.clock.now_ms(),
            subject,
            data: written(&consent),
        };
        let entry = self.consent_entry(tenant, by, &id, "given", &consent, &consent.evidence);
        self.put(vec![RecordChange { record, entry }]).await?;
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
        evidence: Evidence,
    ) -> Result<ConsentRecord, PeopleError> {
        evidence.check()?;
        let found = self.get(place(RecordKind::Consent, tenant, id)).await?;
        let mut record = found.ok_or(NONE)?;
        let mut consent: ConsentRecord = read(&record).ok_or(NONE)?;
        if consent.withdrawn.is_some() {
            return Ok(consent);
        }
        let at_ms = self.clock.now_ms();
        let entry = self.consent_entry(tenant, by, id, "withdrawn", &consent, &evidence);
        consent.withdrawn = Some(Withdrawal { at_ms, evidence });
        record.state = "withdrawn".to_owned();
        record.changed_ms = at_ms;
        record.data = written(&consent);
        self.put(vec![RecordChange { record, entry }]).await?;
        Ok(consent)
    }

    /// One record of consent.
    ///
    /// # Errors
    /// When there is none.
    pub async fn consent(&self, tenant: &TenantId, id: &str) -> Result<ConsentRecord, PeopleError> {
        let found = self.get(place(RecordKind::Consent, tenant, id)).await?;
        found.as_ref().and_then(read).ok_or(NONE)
    }

    /// Every record of consent of a person.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn consents_of(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(String, ConsentRecord)>, PeopleError> {
        let query = RecordQuery {
            kind: RecordKind::Consent,
            tenant: Some(tenant.clone()),
            states: Vec::new(),
            owner: Some(self.consent_owner(tenant, subject)),
            due_before_ms: None,
            offset: 0,
            limit: RECORDS_MAX,
        };
        let records = self.list(query).await?;
        // What was erased with its person cannot be read, and grants nothing.
        let readable = records.iter().filter_map(|one| Some((one.key.id.clone(), read(one)?)));
        Ok(readable.collect())
    }

    pub(crate) async fn check_consent(
        &self,
        tenant: &TenantId,
        ask: &ConsentAsk,
    ) -> Result<ConsentState, PeopleError> {
        let records = self.consents_of(tenant, &ask.subject).await?;
        Ok(check_consent(&records, ask))
    }

    /// A person's own records are found by a pseudonym: the column is not sealed.
    fn consent_owner(&self, tenant: &TenantId, subject: &str) -> String {
        hex::encode(pseudonym(&self.key, b"consent", tenant.as_str(), subject))
    }

    fn consent_entry(
        &self,
        tenant: &TenantId,
        by: &str,
        id: &str,
        what: &str,
        consent: &ConsentRecord,
        evidence: &Evidence,
    ) -> Option<(Kind, Public)> {
        let expires = consent.expires_ms.map_or(Public::Null, Public::Uint);
        let public = Public::map([
            ("what", Public::from(what)),
            ("record", Public::from(id)),
            ("scopes", Public::Uint(consent.scopes.len() as u64)),
            ("purposes", Public::Uint(consent.purposes.len() as u64)),
            ("given_ms", Public::Uint(consent.given_ms)),
            ("expires_ms", expires),
            ("evidence_kind", Public::from(evidence.kind.as_str())),
            ("evidence", self.digest(b"evidence", tenant, &evidence.reference)),
            ("by", self.digest(b"reader", tenant, by)),
        ]);
        told(Kind::ConsentChange, public)
    }
}
