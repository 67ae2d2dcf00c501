//! The book of keys, in the operational database.
//!
//! **Invariant:** a change of a key and the note that becomes its ledger entry are written in one
//! transaction, by whichever process makes the change; the serving process turns notes into
//! entries.

use super::text::{KeyText, Pepper};
use crate::db::{OPS, open_writer};
use crate::durable::make_dir;
use crate::error::StoreError;
use conclave_core::{KeyId, TenantId};
use conclave_engine::{Entropy, KeyRecord, KeyRole};
use conclave_ledger::{Kind, Value, cbor, tenant_number};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};
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

/// Makes, lists and withdraws keys; any process may, while a server runs.
#[derive(Debug)]
pub struct KeyBook {
    conn: Mutex<Connection>,
    pepper: Pepper,
    path: PathBuf,
}

impl KeyBook {
    /// Opens the book of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn open(dir: &Path, pepper: Pepper) -> Result<Self, StoreError> {
        make_dir(dir)?;
        let path = dir.join("ops.db");
        let conn = Mutex::new(open_writer(&path, OPS)?);
        Ok(Self { conn, pepper, path })
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
        let text = KeyText::draw(&new.environment, entropy)?;
        let id = KeyId::new(text.id()).map_err(|error| StoreError::Key(error.to_string()))?;
        let NewKey { tenant, role, label, expires_ms, .. } = new;
        let created_ms = now_ms;
        let record =
            KeyRecord { id, tenant, role, label, created_ms, expires_ms, revoked_ms: None };
        self.create(&record, &self.digest(text.reveal()), entropy)?;
        Ok((record, text))
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
        let sql = "INSERT INTO api_key (id, digest, tenant, role, label, created_ms, expires_ms,
                   revoked_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.change(|tx| {
            tx.execute(
                sql,
                params![
                    record.id.as_str(),
                    digest,
                    record.tenant.as_str(),
                    record.role.as_str(),
                    record.label,
                    record.created_ms.cast_signed(),
                    record.expires_ms.map(u64::cast_signed),
                    record.revoked_ms.map(u64::cast_signed),
                ],
            )?;
            note(tx, "created", record, record.created_ms, entropy)
        })
    }

    /// All keys, oldest first.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn list(&self) -> Result<Vec<KeyUse>, StoreError> {
        let listed = read_keys(&self.lock()).map_err(StoreError::database(&self.path))?;
        Ok(listed.into_iter().map(|(_, key)| key).collect())
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
        let found = self.change(|tx| {
            let sql = format!("SELECT {COLUMNS} FROM api_key WHERE id = ?1");
            let found = tx.query_row(&sql, [id], key_row).optional()?;
            let Some((_, KeyUse { mut record, .. })) = found.flatten() else { return Ok(None) };
            if record.revoked_ms.is_none() {
                record.revoked_ms = Some(now_ms);
                let sql = "UPDATE api_key SET revoked_ms = ?2 WHERE id = ?1";
                tx.execute(sql, params![id, now_ms.cast_signed()])?;
                note(tx, "revoked", &record, now_ms, entropy)?;
            }
            Ok(Some(record))
        })?;
        found.ok_or_else(|| StoreError::Key(format!("there is no key `{id}`")))
    }

    fn change<T>(
        &self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut conn = self.lock();
        let changed = (|| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let made = make(&tx)?;
            tx.commit()?;
            Ok(made)
        })();
        changed.map_err(StoreError::database(&self.path))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const COLUMNS: &str =
    "digest, id, tenant, role, label, created_ms, expires_ms, revoked_ms, last_used_ms";

/// All keys with their digests.
pub(super) fn read_keys(conn: &Connection) -> rusqlite::Result<Vec<([u8; 32], KeyUse)>> {
    let sql = format!("SELECT {COLUMNS} FROM api_key ORDER BY created_ms, id");
    let mut rows = conn.prepare_cached(&sql)?;
    let keys = rows.query_map([], key_row)?;
    keys.filter_map(Result::transpose).collect()
}

/// A row that makes no sense opens nothing and stops nobody else.
fn key_row(row: &Row<'_>) -> rusqlite::Result<Option<([u8; 32], KeyUse)>> {
    let time = |at| row.get::<_, Option<i64>>(at).map(|time| time.map(i64::cast_unsigned));
    let (id, tenant): (String, String) = (row.get(1)?, row.get(2)?);
    let role: String = row.get(3)?;
    let parsed = (KeyId::new(id), TenantId::new(tenant), KeyRole::parse(&role));
    let (Ok(id), Ok(tenant), Some(role)) = parsed else {
        tracing::warn!("an API key with an unknown role or an invalid name is ignored");
        return Ok(None);
    };
    let record = KeyRecord {
        id,
        tenant,
        role,
        label: row.get(4)?,
        created_ms: time(5)?.unwrap_or(0),
        expires_ms: time(6)?,
        revoked_ms: time(7)?,
    };
    Ok(Some((row.get(0)?, KeyUse { record, last_used_ms: time(8)? })))
}

/// Leaves the note that becomes a `key.change` entry. The label is free text and stays out.
fn note(
    tx: &Transaction<'_>,
    change: &str,
    record: &KeyRecord,
    now_ms: u64,
    entropy: &dyn Entropy,
) -> rusqlite::Result<()> {
    let mut id = [0; 16];
    entropy.fill(&mut id);
    let public = Value::map([
        ("change", change.into()),
        ("key", record.id.as_str().into()),
        ("role", record.role.as_str().into()),
        ("expires_ms", record.expires_ms.into()),
        ("outbox", id.to_vec().into()),
    ]);
    let tenant = tenant_number(record.tenant.as_str()).cast_signed();
    let sql = "INSERT INTO outbox_entry (id, kind, tenant, public, created_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let kind = Kind::KeyChange;
    let values = params![id, kind.as_str(), tenant, cbor::encode(&public), now_ms.cast_signed()];
    tx.execute(sql, values).map(|_| ())
}
