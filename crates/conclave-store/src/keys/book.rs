//! The book of keys, and what it needs of a database.
//!
//! **Invariant:** a change of a key and the note that becomes its ledger entry are written in one
//! transaction, by whichever process makes the change; the serving process turns notes into
//! entries.

use super::sqlite::SqliteBooks;
use super::text::{KeyText, Pepper};
use crate::error::StoreError;
use crate::people::PersonRecord;
use crate::postgres::DatabaseUrl;
use conclave_core::{KeyId, TenantId};
use conclave_engine::{Entropy, KeyRecord, KeyRole};
use conclave_govern::tenant_name_fault;
use conclave_ledger::{Kind, Value, cbor, tenant_number};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a new key shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// A word in the key's text, such as `live`.
    pub environment: String,
    /// Whose.
    pub tenant: TenantId,
    /// What it may do.
    pub role: KeyRole,
    /// A word for people.
    pub label: String,
    /// Whose hands it is in.
    pub person: Option<String>,
    /// When it ends.
    pub expires_ms: Option<u64>,
}

/// A key and when it was last used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub record: KeyRecord,
    /// To the minute; absent if never.
    pub last_used_ms: Option<u64>,
}

/// What the books need of a database; each change is one transaction.
pub(crate) trait BookTables: Send {
    /// Enters a key and leaves its note; `only_first` does nothing if there are keys already. Says
    /// whether it did.
    ///
    /// # Errors
    /// When the id or the digest is there already, or the database refuses.
    fn enter_key(
        &mut self,
        record: &KeyRecord,
        digest: &[u8; 32],
        note: &Note,
        only_first: bool,
    ) -> Result<bool, StoreError>;

    /// All keys with their digests, oldest first.
    ///
    /// # Errors
    /// When the database refuses.
    fn keys(&mut self) -> Result<Vec<([u8; 32], KeyUse)>, StoreError>;

    /// Withdraws a key and leaves its note, unless it is withdrawn already; absent if there is none.
    ///
    /// # Errors
    /// When the database refuses.
    fn revoke_key(
        &mut self,
        id: &str,
        now_ms: u64,
        note: &dyn Fn(&KeyRecord) -> Note,
    ) -> Result<Option<KeyRecord>, StoreError>;

    /// Enters the successor of a key and lets that one end; leaves a note of each. Says `false` and does
    /// nothing if the key is withdrawn or ends before.
    ///
    /// # Errors
    /// When there is no such key, or the database refuses.
    fn succeed_key(&mut self, succession: &Succession<'_>) -> Result<bool, StoreError>;

    /// Enters a person or changes a known one; `only_first` does nothing if there are people
    /// already. Says whether it did.
    ///
    /// # Errors
    /// When the database refuses.
    fn put_person(&mut self, person: &PersonRecord, only_first: bool) -> Result<bool, StoreError>;

    /// Enters a person or changes a known one, and leaves the note.
    ///
    /// # Errors
    /// When the database refuses.
    fn enter_person(&mut self, person: &PersonRecord, note: &Note) -> Result<(), StoreError>;

    /// Removes a person and leaves the note; says whether there was one.
    ///
    /// # Errors
    /// When the database refuses.
    fn remove_person(&mut self, name: &str, note: &Note) -> Result<bool, StoreError>;

    /// Everyone, by name.
    ///
    /// # Errors
    /// When the database refuses.
    fn people(&mut self) -> Result<Vec<PersonRecord>, StoreError>;
}

/// One key takes the place of another.
pub(crate) struct Succession<'a> {
    /// The key that ends.
    pub(crate) old: &'a str,
    /// When it ends.
    pub(crate) ends_ms: u64,
    /// Now.
    pub(crate) now_ms: u64,
    /// Its successor.
    pub(crate) record: &'a KeyRecord,
    /// The successor's digest.
    pub(crate) digest: &'a [u8; 32],
    /// What becomes entries.
    pub(crate) notes: [Note; 2],
}

/// Makes, lists and withdraws keys; any process may, while a server runs.
pub struct KeyBook {
    tables: Mutex<Box<dyn BookTables>>,
    pepper: Pepper,
}

impl std::fmt::Debug for KeyBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyBook").finish_non_exhaustive()
    }
}

impl KeyBook {
    /// Opens the book of a data directory, or of the database it belongs to.
    ///
    /// # Errors
    /// When the database cannot be opened, or has another pepper.
    pub fn open(
        dir: &Path,
        database: Option<&DatabaseUrl>,
        pepper: Pepper,
    ) -> Result<Self, StoreError> {
        Ok(Self::over(open_tables(dir, database, &pepper)?, pepper))
    }

    pub(crate) fn over(tables: Box<dyn BookTables>, pepper: Pepper) -> Self {
        Self { tables: Mutex::new(tables), pepper }
    }

    /// The keyed hash of a key.
    #[must_use]
    pub fn digest(&self, key: &str) -> [u8; 32] {
        self.pepper.digest(key)
    }

    /// Draws a key and enters it; its text is shown nowhere else.
    ///
    /// # Errors
    /// When the environment is no word or the database refuses.
    pub fn issue(
        &self,
        new: NewKey,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<(KeyRecord, KeyText), StoreError> {
        if let Some(fault) = tenant_name_fault(new.tenant.as_str()) {
            return Err(StoreError::Key(fault));
        }
        let (record, text) = draw(new, now_ms, entropy)?;
        self.create(&record, &self.digest(text.reveal()), entropy)?;
        Ok((record, text))
    }

    /// Draws a key and enters it if there is no other: of several processes that begin at once, one
    /// makes the first key.
    ///
    /// # Errors
    /// When the environment is no word or the database refuses.
    pub fn issue_first(
        &self,
        new: NewKey,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<Option<(KeyRecord, KeyText)>, StoreError> {
        let (record, text) = draw(new, now_ms, entropy)?;
        let digest = self.digest(text.reveal());
        let note = Note::of_key("created", &record, now_ms, entropy);
        let made = self.lock().enter_key(&record, &digest, &note, true)?;
        Ok(made.then_some((record, text)))
    }

    /// Enters a key by the digest of its text.
    ///
    /// # Errors
    /// When the id or the digest is there already, or the database refuses.
    pub fn create(
        &self,
        record: &KeyRecord,
        digest: &[u8; 32],
        entropy: &dyn Entropy,
    ) -> Result<(), StoreError> {
        let note = Note::of_key("created", record, record.created_ms, entropy);
        self.lock().enter_key(record, digest, &note, false).map(|_| ())
    }

    /// All keys, oldest first.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn list(&self) -> Result<Vec<KeyUse>, StoreError> {
        Ok(self.lock().keys()?.into_iter().map(|(_, key)| key).collect())
    }

    /// Withdraws a key; one that is withdrawn already stays as it is.
    ///
    /// # Errors
    /// When there is no such key, or the database refuses.
    pub fn revoke(
        &self,
        id: &str,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<KeyRecord, StoreError> {
        let note = |record: &KeyRecord| Note::of_key("revoked", record, now_ms, entropy);
        let found = self.lock().revoke_key(id, now_ms, &note)?;
        found.ok_or_else(|| StoreError::Key(format!("there is no key `{id}`")))
    }

    /// Makes the successor of a key, with its tenant, role, label and person, and for as long as that one was made
    /// for; the key itself goes on for `overlap_ms` at most.
    ///
    /// # Errors
    /// When there is no such key, it is withdrawn or over, or the database refuses.
    pub fn rotate(
        &self,
        id: &str,
        overlap_ms: u64,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<(KeyRecord, KeyText), StoreError> {
        let known = self.list()?.into_iter().map(|key| key.record);
        let old = known.into_iter().find(|record| record.id.as_str() == id);
        let old = old.ok_or_else(|| StoreError::Key(format!("there is no key `{id}`")))?;
        let over =
            || StoreError::Key(format!("the key `{id}` is withdrawn or over: make a new one"));
        if !old.is_valid_at(now_ms) {
            return Err(over());
        }
        let ends_ms = now_ms.saturating_add(overlap_ms);
        let ends_ms = old.expires_ms.map_or(ends_ms, |end| end.min(ends_ms));
        let lasts = old.expires_ms.map(|end| end.saturating_sub(old.created_ms));
        let new = NewKey {
            environment: "live".into(),
            tenant: old.tenant.clone(),
            role: old.role,
            label: old.label.clone(),
            person: old.person.clone(),
            expires_ms: lasts.map(|ms| now_ms.saturating_add(ms)),
        };
        let (record, text) = draw(new, now_ms, entropy)?;
        let ending = KeyRecord { expires_ms: Some(ends_ms), ..old };
        let notes = [
            Note::of_key("created", &record, now_ms, entropy),
            Note::of_key("succeeded", &ending, now_ms, entropy),
        ];
        let digest = self.digest(text.reveal());
        let (record_ref, digest_ref) = (&record, &digest);
        let succession =
            Succession { old: id, ends_ms, now_ms, record: record_ref, digest: digest_ref, notes };
        if self.lock().succeed_key(&succession)? { Ok((record, text)) } else { Err(over()) }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn BookTables>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn draw(
    new: NewKey,
    now_ms: u64,
    entropy: &dyn Entropy,
) -> Result<(KeyRecord, KeyText), StoreError> {
    let text = KeyText::draw(&new.environment, entropy)?;
    let id = KeyId::new(text.id()).map_err(|error| StoreError::Key(error.to_string()))?;
    let NewKey { tenant, role, label, person, expires_ms, .. } = new;
    // A name with a space behind it is nobody else's.
    let person = person.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let (created_ms, revoked_ms) = (now_ms, None);
    let record = KeyRecord { id, tenant, role, label, person, created_ms, expires_ms, revoked_ms };
    Ok((record, text))
}

/// The books' tables of a data directory, or of the database it belongs to.
///
/// # Errors
/// When the database cannot be opened, or has another pepper.
pub(crate) fn open_tables(
    dir: &Path,
    database: Option<&DatabaseUrl>,
    pepper: &Pepper,
) -> Result<Box<dyn BookTables>, StoreError> {
    Ok(match database {
        Some(url) => Box::new(crate::postgres::PgBooks::open(url, pepper)?),
        None => Box::new(SqliteBooks::open(dir)?),
    })
}

/// A note that becomes a ledger entry.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) id: [u8; 16],
    pub(crate) kind: Kind,
    pub(crate) tenant: u64,
    pub(crate) public: Vec<u8>,
    pub(crate) created_ms: u64,
}

impl Note {
    /// The note of an entry about a request whose money was set aside and that never came to a decision;
    /// it is charged at its most. Its own id keeps it from becoming two.
    pub(crate) fn of_abandoned(request: [u8; 16], tenant: u64, most: u64, made_ms: u64) -> Self {
        let public = Value::map([
            ("outbox", request.to_vec().into()),
            ("cost", most.into()),
            ("began_ms", made_ms.into()),
        ]);
        let (kind, public) = (Kind::RequestAbandoned, cbor::encode(&public));
        Self { id: request, kind, tenant, public, created_ms: made_ms }
    }

    /// The note of an entry about an account. The name is a person's and stays out.
    pub(crate) fn of_person(
        what: &str,
        person: &PersonRecord,
        created_ms: u64,
        entropy: &dyn Entropy,
    ) -> Self {
        let mut id = [0; 16];
        entropy.fill(&mut id);
        let public = Value::map([
            ("what", what.into()),
            ("role", person.role.as_str().into()),
            ("outbox", id.to_vec().into()),
        ]);
        let tenant = tenant_number(person.tenant.as_str());
        Self { id, kind: Kind::AdminAction, tenant, public: cbor::encode(&public), created_ms }
    }

    /// The note of a `key.change` entry. The label and the name of its person stay out.
    fn of_key(change: &str, record: &KeyRecord, created_ms: u64, entropy: &dyn Entropy) -> Self {
        let mut id = [0; 16];
        entropy.fill(&mut id);
        let public = Value::map([
            ("change", change.into()),
            ("key", record.id.as_str().into()),
            ("role", record.role.as_str().into()),
            ("expires_ms", record.expires_ms.into()),
            ("outbox", id.to_vec().into()),
        ]);
        let tenant = tenant_number(record.tenant.as_str());
        Self { id, kind: Kind::KeyChange, tenant, public: cbor::encode(&public), created_ms }
    }
}

/// The parts of a key as they stand in a table.
pub(crate) struct KeyRow {
    pub(crate) digest: [u8; 32],
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) role: String,
    pub(crate) label: String,
    pub(crate) person: Option<String>,
    pub(crate) times: [Option<i64>; 4],
}

impl KeyRow {
    /// A row that makes no sense opens nothing and stops nobody else.
    pub(crate) fn into_key(self) -> Option<([u8; 32], KeyUse)> {
        let names = (KeyId::new(self.id), TenantId::new(self.tenant), KeyRole::parse(&self.role));
        let (Ok(id), Ok(tenant), Some(role)) = names else {
            tracing::warn!("an API key with an unknown role or an invalid name is ignored");
            return None;
        };
        let [created_ms, expires_ms, revoked_ms, last_used_ms] =
            self.times.map(|time| time.map(i64::cast_unsigned));
        let (created_ms, label, person) = (created_ms.unwrap_or(0), self.label, self.person);
        let record =
            KeyRecord { id, tenant, role, label, person, created_ms, expires_ms, revoked_ms };
        Some((self.digest, KeyUse { record, last_used_ms }))
    }
}
