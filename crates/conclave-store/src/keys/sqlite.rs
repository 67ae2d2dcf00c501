//! Keys, people and notes in SQLite, the operational database of a data directory.

use super::book::{BookTables, KeyRow, KeyUse, Note, Succession};
use super::ring::{KeySource, Listed};
use crate::db::{OPS, open_writer};
use crate::durable::make_dir;
use crate::error::StoreError;
use crate::people::{PersonRecord, person};
use conclave_engine::KeyRecord;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};

/// One connection to the operational database.
pub(crate) struct SqliteBooks {
    conn: Connection,
    path: PathBuf,
    version: Option<i64>,
}

impl SqliteBooks {
    /// Opens `ops.db` of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_file(dir, "ops.db")
    }

    /// Opens a file of that form under another name.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn open_file(dir: &Path, name: &str) -> Result<Self, StoreError> {
        make_dir(dir)?;
        let path = dir.join(name);
        Ok(Self { conn: open_writer(&path, OPS)?, path, version: None })
    }

    /// Puts these keys and people in the place of all that are there.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn replace(
        &mut self,
        keys: &[([u8; 32], KeyUse)],
        people: &[PersonRecord],
    ) -> Result<(), StoreError> {
        self.change(|tx| {
            tx.execute_batch("DELETE FROM api_key; DELETE FROM person")?;
            for (digest, key) in keys {
                insert_key(tx, &key.record, digest)?;
            }
            people.iter().try_for_each(|person| insert_person(tx, person))
        })
    }

    fn change<T>(
        &mut self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let changed = (|| {
            let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let made = make(&tx)?;
            tx.commit()?;
            Ok(made)
        })();
        changed.map_err(StoreError::database(&self.path))
    }
}

impl BookTables for SqliteBooks {
    fn enter_key(
        &mut self,
        record: &KeyRecord,
        digest: &[u8; 32],
        note: &Note,
        only_first: bool,
    ) -> Result<bool, StoreError> {
        self.change(|tx| {
            if only_first && tx.prepare("SELECT 1 FROM api_key")?.exists([])? {
                return Ok(false);
            }
            insert_key(tx, record, digest)?;
            leave_note(tx, note).map(|()| true)
        })
    }

    fn keys(&mut self) -> Result<Vec<([u8; 32], KeyUse)>, StoreError> {
        read_keys(&self.conn).map_err(StoreError::database(&self.path))
    }

    fn revoke_key(
        &mut self,
        id: &str,
        now_ms: u64,
        note: &dyn Fn(&KeyRecord) -> Note,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.change(|tx| {
            let sql = format!("SELECT {COLUMNS} FROM api_key WHERE id = ?1");
            let found = tx.query_row(&sql, [id], key_row).optional()?;
            let found = found.and_then(KeyRow::into_key);
            let Some((_, KeyUse { mut record, .. })) = found else { return Ok(None) };
            if record.revoked_ms.is_none() {
                record.revoked_ms = Some(now_ms);
                let sql = "UPDATE api_key SET revoked_ms = ?2 WHERE id = ?1";
                tx.execute(sql, params![id, now_ms.cast_signed()])?;
                leave_note(tx, &note(&record))?;
            }
            Ok(Some(record))
        })
    }

    fn succeed_key(&mut self, succession: &Succession<'_>) -> Result<bool, StoreError> {
        self.change(|tx| {
            let sql = "UPDATE api_key SET expires_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL
                       AND (expires_ms IS NULL OR expires_ms > ?3)";
            let (ends, now) = (succession.ends_ms.cast_signed(), succession.now_ms.cast_signed());
            if tx.execute(sql, params![succession.old, ends, now])? == 0 {
                return Ok(false);
            }
            insert_key(tx, succession.record, succession.digest)?;
            succession.notes.iter().try_for_each(|note| leave_note(tx, note)).map(|()| true)
        })
    }

    fn put_person(&mut self, person: &PersonRecord, only_first: bool) -> Result<bool, StoreError> {
        self.change(|tx| {
            if only_first && tx.prepare("SELECT 1 FROM person")?.exists([])? {
                return Ok(false);
            }
            insert_person(tx, person).map(|()| true)
        })
    }

    fn enter_person(&mut self, person: &PersonRecord, note: &Note) -> Result<(), StoreError> {
        self.change(|tx| {
            insert_person(tx, person)?;
            leave_note(tx, note)
        })
    }

    fn remove_person(&mut self, name: &str, note: &Note) -> Result<bool, StoreError> {
        self.change(|tx| {
            let removed = tx.execute("DELETE FROM person WHERE name = ?1", [name])? == 1;
            if removed {
                leave_note(tx, note)?;
            }
            Ok(removed)
        })
    }

    fn people(&mut self) -> Result<Vec<PersonRecord>, StoreError> {
        let read = || {
            let sql = "SELECT name, tenant, role, password_hash, created_ms FROM person ORDER BY 1";
            let mut rows = self.conn.prepare_cached(sql)?;
            let people = rows.query_map([], |row| {
                let (name, tenant, role): (_, _, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(person(name, tenant, &role, row.get(3)?, row.get(4)?))
            })?;
            people.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::database(&self.path))
    }
}

impl KeySource for SqliteBooks {
    fn news(&mut self) -> Result<Option<Listed>, StoreError> {
        let database = StoreError::database(&self.path);
        let version = self.conn.pragma_query_value(None, "data_version", |row| row.get(0));
        let version: i64 = version.map_err(&database)?;
        if self.version == Some(version) {
            return Ok(None);
        }
        let listed = read_keys(&self.conn).map_err(&database)?;
        self.version = Some(version);
        Ok(Some(listed))
    }

    fn write_uses(&mut self, uses: &[([u8; 32], u64)]) -> Result<(), StoreError> {
        self.change(|tx| {
            let sql = "UPDATE api_key SET last_used_ms = ?2 WHERE digest = ?1";
            let mut update = tx.prepare_cached(sql)?;
            uses.iter().try_for_each(|(digest, used_ms)| {
                update.execute(params![digest, used_ms.cast_signed()]).map(|_| ())
            })
        })
    }
}

const COLUMNS: &str =
    "digest, id, tenant, role, label, created_ms, expires_ms, revoked_ms, last_used_ms, person";

/// All keys with their digests.
fn read_keys(conn: &Connection) -> rusqlite::Result<Listed> {
    let sql = format!("SELECT {COLUMNS} FROM api_key ORDER BY created_ms, id");
    let mut rows = conn.prepare_cached(&sql)?;
    let keys = rows.query_map([], key_row)?;
    keys.filter_map(|row| row.map(KeyRow::into_key).transpose()).collect()
}

fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        digest: row.get(0)?,
        id: row.get(1)?,
        tenant: row.get(2)?,
        role: row.get(3)?,
        label: row.get(4)?,
        times: [row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?],
        person: row.get(9)?,
    })
}

fn insert_key(tx: &Transaction<'_>, record: &KeyRecord, digest: &[u8; 32]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO api_key (id, digest, tenant, role, label, created_ms, expires_ms,
               revoked_ms, person) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let values = params![
        record.id.as_str(),
        digest,
        record.tenant.as_str(),
        record.role.as_str(),
        record.label,
        record.created_ms.cast_signed(),
        record.expires_ms.map(u64::cast_signed),
        record.revoked_ms.map(u64::cast_signed),
        record.person,
    ];
    tx.execute(sql, values).map(|_| ())
}

fn insert_person(tx: &Transaction<'_>, person: &PersonRecord) -> rusqlite::Result<()> {
    let sql = "INSERT INTO person (name, tenant, role, password_hash, created_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (name) DO UPDATE SET tenant = ?2, role = ?3, password_hash = ?4";
    let values = params![
        person.name,
        person.tenant.as_str(),
        person.role.as_str(),
        person.password_hash,
        person.created_ms.cast_signed(),
    ];
    tx.execute(sql, values).map(|_| ())
}

/// Leaves the note that becomes an entry.
pub(crate) fn leave_note(tx: &Transaction<'_>, note: &Note) -> rusqlite::Result<()> {
    let sql = "INSERT INTO outbox_entry (id, kind, tenant, public, created_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![
        note.id,
        note.kind.as_str(),
        note.tenant.cast_signed(),
        note.public,
        note.created_ms.cast_signed()
    ];
    tx.execute(sql, values).map(|_| ())
}
