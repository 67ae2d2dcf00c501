//! Governed records, whichever database holds them.
//!
//! **Invariant:** what a record of a person says is sealed with that person's key; once the key is
//! gone, the record is not there any more.
//! **Invariant:** what people laid down, are named for or wrote into a review that is about nobody is
//! sealed with the key of their tenant.

mod sqlite;

pub(crate) use sqlite::SqliteRecords;

use crate::error::StoreError;
use crate::keys::Note;
use crate::vault::Vault;
use conclave_engine::{
    Entropy, Record, RecordChange, RecordKey, RecordKind, RecordQuery, Records, RecordsError,
};
use conclave_ledger::{Kind, Value, cbor, tenant_number};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many records are changed together.
const CHANGES_MAX: usize = 64;
/// How many records are listed together.
const LIST_MAX: u32 = 10_000;

/// A record as it stands in a table.
#[derive(Clone, Debug)]
pub(crate) struct RecordRow {
    pub(crate) kind: String,
    pub(crate) tenant: String,
    pub(crate) id: String,
    pub(crate) version: i64,
    pub(crate) state: String,
    pub(crate) owner: String,
    pub(crate) rank: i64,
    pub(crate) due_ms: Option<i64>,
    pub(crate) changed_ms: i64,
    pub(crate) subject: Option<Vec<u8>>,
    pub(crate) data: Vec<u8>,
}

/// What records need of a database; each change is one transaction.
pub(crate) trait RecordTables: Send {
    /// The record at a place.
    ///
    /// # Errors
    /// When the database refuses.
    fn get(&mut self, key: &RecordKey) -> Result<Option<RecordRow>, StoreError>;

    /// Puts records in the place of those with the version before theirs and leaves their notes; says
    /// `false` and does nothing if one of them has another version.
    ///
    /// # Errors
    /// When the database refuses.
    fn put(&mut self, changes: &[(RecordRow, Option<Note>)]) -> Result<bool, StoreError>;

    /// A page of records, in their order.
    ///
    /// # Errors
    /// When the database refuses.
    fn list(&mut self, query: &RecordQuery) -> Result<Vec<RecordRow>, StoreError>;

    /// Removes a record if it has this version; says whether none with another is left.
    ///
    /// # Errors
    /// When the database refuses.
    fn remove(&mut self, key: &RecordKey, version: i64) -> Result<bool, StoreError>;
}

/// The records of one installation.
#[derive(Clone)]
pub(crate) struct RecordBook {
    inner: Arc<Inner>,
}

struct Inner {
    tables: Mutex<Box<dyn RecordTables>>,
    vault: Arc<Vault>,
    entropy: Arc<dyn Entropy>,
}

impl RecordBook {
    pub(crate) fn over(
        tables: Box<dyn RecordTables>,
        vault: Arc<Vault>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self { inner: Arc::new(Inner { tables: Mutex::new(tables), vault, entropy }) }
    }

    /// Seals a copy of records that is kept beside the database.
    pub(crate) fn seal_copy(&self, name: &str, text: &[u8]) -> Vec<u8> {
        self.inner.vault.seal_copy(name, text, &*self.inner.entropy)
    }

    /// The copy again; `None` where it is not what was sealed.
    pub(crate) fn open_copy(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.inner.vault.open_copy(name, sealed).map(|text| text.to_vec())
    }

    fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, RecordsError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, RecordsError>> {
        let inner = Arc::clone(&self.inner);
        async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.map_err(|error| RecordsError::Unavailable(error.to_string()))?
        }
        .boxed()
    }
}

impl Records for RecordBook {
    fn get(&self, key: RecordKey) -> BoxFuture<'_, Result<Option<Record>, RecordsError>> {
        self.off_thread(move |inner| {
            let row = inner.lock().get(&key).map_err(unavailable)?;
            row.map_or(Ok(None), |row| inner.open(row))
        })
    }

    fn put(&self, changes: Vec<RecordChange>) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>> {
        self.off_thread(move |inner| inner.put(changes))
    }

    fn list(&self, query: RecordQuery) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>> {
        let query = RecordQuery { limit: query.limit.min(LIST_MAX), ..query };
        self.off_thread(move |inner| {
            let rows = inner.lock().list(&query).map_err(unavailable)?;
            rows.into_iter().filter_map(|row| inner.open(row).transpose()).collect()
        })
    }

    fn remove(&self, key: RecordKey, version: u64) -> BoxFuture<'_, Result<(), RecordsError>> {
        self.off_thread(move |inner| {
            let removed = inner.lock().remove(&key, version.cast_signed());
            if removed.map_err(unavailable)? { Ok(()) } else { Err(RecordsError::Conflict) }
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an error is turned into another")]
fn unavailable(error: StoreError) -> RecordsError {
    RecordsError::Unavailable(error.to_string())
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Box<dyn RecordTables>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, changes: Vec<RecordChange>) -> Result<Vec<Record>, RecordsError> {
        if changes.len() > CHANGES_MAX {
            let sentence = format!("more than {CHANGES_MAX} records are not changed together");
            return Err(RecordsError::Invalid(sentence));
        }
        let mut rows = Vec::with_capacity(changes.len());
        let mut records = Vec::with_capacity(changes.len());
        for RecordChange { mut record, entry } in changes {
            record.check()?;
            record.version += 1;
            let note = entry.map(|(kind, public)| self.note(&record, kind, public));
            rows.push((self.seal(&record)?, note));
            records.push(record);
        }
        let put = self.lock().put(&rows).map_err(unavailable)?;
        if put { Ok(records) } else { Err(RecordsError::Conflict) }
    }

    /// The note that becomes the entry; its id keeps it from becoming two.
    fn note(&self, record: &Record, kind: Kind, public: Value) -> Note {
        let mut id = [0; 16];
        self.entropy.fill(&mut id);
        let mut said = match public {
            Value::Map(said) => said,
            other => [("said".to_owned(), other)].into_iter().collect(),
        };
        said.insert("outbox", id.to_vec());
        let public = cbor::encode(&Value::Map(said));
        let tenant = tenant_number(record.key.tenant.as_str());
        Note { id, kind, tenant, public, created_ms: record.changed_ms }
    }

    fn seal(&self, record: &Record) -> Result<RecordRow, RecordsError> {
        let text = record.data.to_string().into_bytes();
        let data = match record.subject {
            None if is_of_people(record.key.kind) => self.sealed_for_house(&record.key, &text)?,
            None => text,
            Some(subject) => {
                let sealed = self.sealed(subject, &record.key, &text)?;
                let gone = || RecordsError::Invalid("this person was forgotten".to_owned());
                sealed.ok_or_else(gone)?
            }
        };
        Ok(RecordRow {
            kind: record.key.kind.as_str().to_owned(),
            tenant: record.key.tenant.as_str().to_owned(),
            id: record.key.id.clone(),
            version: record.version.cast_signed(),
            state: record.state.clone(),
            owner: record.owner.clone(),
            rank: record.rank.into(),
            due_ms: record.due_ms.map(u64::cast_signed),
            changed_ms: record.changed_ms.cast_signed(),
            subject: record.subject.map(|subject| subject.to_vec()),
            data,
        })
    }

    fn sealed_for_house(&self, key: &RecordKey, text: &[u8]) -> Result<Vec<u8>, RecordsError> {
        let sealed = self.vault.seal_for_house(&key.tenant, &purpose(key), text, &*self.entropy);
        Ok([SEALED, &sealed.map_err(unavailable)?].concat())
    }

    fn sealed(
        &self,
        subject: [u8; 16],
        key: &RecordKey,
        text: &[u8],
    ) -> Result<Option<Vec<u8>>, RecordsError> {
        let sealed = self.vault.seal_record(subject, &purpose(key), text, &*self.entropy);
        sealed.map_err(unavailable)
    }

    /// The record again; `None` when the key of its person is gone.
    fn open(&self, row: RecordRow) -> Result<Option<Record>, RecordsError> {
        let damaged = |what: &str| {
            RecordsError::Unavailable(format!("the record {}/{} has {what}", row.kind, row.id))
        };
        let kind = RecordKind::ALL.into_iter().find(|kind| kind.as_str() == row.kind);
        let kind = kind.ok_or_else(|| damaged("an unknown kind"))?;
        let tenant = conclave_core::TenantId::new(row.tenant.as_str());
        let tenant = tenant.map_err(|_| damaged("an impossible tenant"))?;
        let subject = row.subject.as_deref().map(TryInto::<[u8; 16]>::try_into).transpose();
        let subject = subject.map_err(|_| damaged("an impossible subject"))?;
        let key = RecordKey { kind, tenant, id: row.id.clone() };
        let data = match (subject, row.data.strip_prefix(SEALED)) {
            (None, Some(sealed)) => {
                let opened = self.vault.open_for_house(&key.tenant, &purpose(&key), sealed);
                let opened = opened.map_err(unavailable)?;
                let text = opened.ok_or_else(|| damaged("a content that does not open"))?;
                serde_json::from_slice(&text)
            }
            (None, None) => serde_json::from_slice(&row.data),
            (Some(subject), _) => {
                let opened = self.vault.open_record(subject, &purpose(&key), &row.data);
                let Some(text) = opened.map_err(unavailable)? else { return Ok(None) };
                serde_json::from_slice(&text)
            }
        };
        Ok(Some(Record {
            version: row.version.cast_unsigned(),
            rank: u32::try_from(row.rank).map_err(|_| damaged("an impossible rank"))?,
            due_ms: row.due_ms.map(i64::cast_unsigned),
            changed_ms: row.changed_ms.cast_unsigned(),
            data: data.map_err(|_| damaged("a content that is no JSON"))?,
            state: row.state,
            owner: row.owner,
            subject,
            key,
        }))
    }
}

/// What begins a content that is sealed with the tenant's key; JSON never begins so.
const SEALED: &[u8] = b"\0house1";

/// Whether a record has words of people in it, though it may be about none of them.
const fn is_of_people(kind: RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::Protocol | RecordKind::Standing | RecordKind::Review | RecordKind::Appeal
    )
}

/// What a record is sealed for, so that sealed contents cannot be exchanged.
fn purpose(key: &RecordKey) -> Vec<u8> {
    [key.kind.as_str(), "/", key.tenant.as_str(), "/", &key.id].concat().into_bytes()
}
