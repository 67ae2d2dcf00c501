//! The keys of people in SQLite, a file of their own in the data directory.

use super::book::{BY_ROOT, Intent, KeyId};
use super::kept;
use super::rotate::Rotation;
use super::tables::{By, KeyTables, NewStoredKey, StoredKey};
use super::wrap::Secret;
use crate::db::{KEYS, open_to_check, open_writer, truncate_wal};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// One connection to `keys.db`.
pub(crate) struct SqliteKeys {
    conn: Connection,
    path: PathBuf,
}

impl SqliteKeys {
    /// Opens the keys of a data directory.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("keys.db");
        Ok(Self { conn: open_writer(&path, KEYS)?, path })
    }

    /// Opens them to look only; `None` when they are not there.
    pub(crate) fn open_to_read(dir: &Path) -> Option<Self> {
        let path = dir.join("keys.db");
        let conn = path.is_file().then(|| open_to_check(&path).ok())??;
        Some(Self { conn, path })
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        question(&self.conn).map_err(StoreError::database(&self.path))
    }

    fn change<T>(
        &mut self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let conn = &mut self.conn;
        let changed = (|| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let made = make(&tx)?;
            tx.commit()?;
            Ok(made)
        })();
        changed.map_err(StoreError::database(&self.path))
    }

    /// Moves everything out of the write-ahead log, so that no deleted key stays in it.
    fn truncate(&self) -> Result<(), StoreError> {
        self.ask(truncate_wal)
    }

    /// Which rotation of a shared database the keys here belong to; `None` before the first contact.
    pub(crate) fn generation(&self) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT generation FROM vault";
        self.ask(|conn| conn.query_row(sql, [], |row| row.get(0)).optional())
    }

    /// Goes over to what a shared database says about its vault: what waits here is wrapped by the new
    /// root key, and the copies of what the old one wrapped are given up, in one transaction.
    pub(crate) fn go_over(
        &mut self,
        next: &Rotation<'_>,
        old: &Secret,
        (lookup, generation, legacy): (&[u8], i64, bool),
    ) -> Result<(), StoreError> {
        self.change(|tx| {
            let tenants: HashMap<u64, (i64, Vec<u8>)> =
                read_tenants(tx)?.into_iter().map(|(id, epoch, key)| (id, (epoch, key))).collect();
            let mut after = Vec::new();
            loop {
                let page = read_page(tx, KeyTable::Own, &after)?;
                let Some(last) = page.last() else { break };
                after = last.key.id.to_vec();
                for NewStoredKey { key, name, .. } in &page {
                    let tenant = tenants.get(&key.tenant).map(|(epoch, key)| (*epoch, &key[..]));
                    let changed = next.waiting(old, tenant, key, name.as_deref());
                    let changed = changed.map_err(refusal)?;
                    let sql = "UPDATE subject_key SET epoch = ?2, wrapped = ?3, lookup = ?4
                               WHERE id = ?1";
                    let values = params![key.id, BY_ROOT, changed.wrapped, changed.lookup];
                    tx.prepare_cached(sql)?.execute(values)?;
                }
            }
            kept::go_over(tx, next, old, &tenants)?;
            tx.execute("DELETE FROM tenant_key", [])?;
            let sql = "INSERT INTO vault (id, lookup, rotated_ms, legacy, generation)
                       VALUES (1, ?1, 0, ?2, ?3)
                       ON CONFLICT (id) DO UPDATE SET lookup = ?1, legacy = ?2, generation = ?3";
            tx.execute(sql, params![lookup, legacy, generation]).map(|_| ())
        })?;
        self.truncate()
    }

    /// A page of all keys with what leads to them, in order of their names.
    pub(crate) fn page(&self, after: &[u8]) -> Result<Vec<NewStoredKey>, StoreError> {
        self.ask(|conn| read_page(conn, KeyTable::Own, after))
    }

    /// A page of the copies of keys that a shared database was given lately.
    pub(crate) fn kept_page(&self, after: &[u8]) -> Result<Vec<NewStoredKey>, StoreError> {
        self.ask(|conn| read_page(conn, KeyTable::Kept, after))
    }

    /// Keeps copies of keys that a shared database has.
    pub(crate) fn keep_copies(&mut self, keys: &[NewStoredKey]) -> Result<(), StoreError> {
        self.change(|tx| kept::keep(tx, keys))
    }

    /// Makes copies of keys that waited for a shared database and are there now.
    pub(crate) fn put_away(&mut self, ids: &[KeyId]) -> Result<(), StoreError> {
        self.change(|tx| kept::put_away(tx, ids))
    }

    /// Looks for a copy.
    pub(crate) fn find_copy(&self, by: By) -> Result<Option<StoredKey>, StoreError> {
        self.ask(|conn| kept::find(conn, by))
    }

    /// Deletes the copies that were kept before a time.
    pub(crate) fn prune_copies(&mut self, now_ms: u64, before_ms: u64) -> Result<(), StoreError> {
        if self.change(|tx| kept::prune(tx, (now_ms, before_ms)))? > 0 {
            self.truncate()?;
        }
        Ok(())
    }

    /// Every tenant's key.
    pub(crate) fn tenants(&self) -> Result<Vec<(u64, i64, Vec<u8>)>, StoreError> {
        self.ask(read_tenants)
    }
}

type TenantRow = (u64, i64, Vec<u8>);

fn read_tenants(conn: &Connection) -> rusqlite::Result<Vec<TenantRow>> {
    let mut rows = conn.prepare("SELECT tenant, epoch, wrapped FROM tenant_key")?;
    let tenants = rows.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?, row.get(2)?))
    })?;
    tenants.collect()
}

/// Which of the two tables with keys of people.
#[derive(Clone, Copy)]
pub(super) enum KeyTable {
    /// The keys there are, or those that wait for a shared database.
    Own,
    /// Copies of keys that a shared database was given.
    Kept,
}

pub(super) fn read_page(
    conn: &Connection,
    table: KeyTable,
    after: &[u8],
) -> rusqlite::Result<Vec<NewStoredKey>> {
    let table = match table {
        KeyTable::Own => "subject_key",
        KeyTable::Kept => "kept_key",
    };
    let sql = format!(
        "SELECT id, tenant, epoch, wrapped, name, lookup, day, created_ms
         FROM {table} WHERE id > ?1 ORDER BY id LIMIT 1000"
    );
    let mut rows = conn.prepare_cached(&sql)?;
    let keys = rows.query_map([after], |row| {
        Ok(NewStoredKey {
            key: stored(row)?,
            name: row.get(4)?,
            lookup: row.get(5)?,
            day: row.get(6)?,
            created_ms: row.get::<_, i64>(7)?.cast_unsigned(),
        })
    })?;
    keys.collect()
}

/// An error rolls a transaction back; this one says why.
fn refusal(why: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(why.into())
}

/// Wraps every key anew, within a transaction; says how many.
fn rewrap_all(
    tx: &Transaction<'_>,
    next: &Rotation<'_>,
    old: &Secret,
    now_ms: u64,
) -> rusqlite::Result<u64> {
    let mut tenants = HashMap::new();
    for (tenant, epoch, wrapped) in read_tenants(tx)? {
        let change = next.tenant(old, tenant, Some((epoch, &wrapped))).map_err(refusal)?;
        let sql = "UPDATE tenant_key SET epoch = ?2, wrapped = ?3 WHERE tenant = ?1";
        tx.execute(sql, params![tenant.cast_signed(), change.epoch, change.wrapped])?;
        tenants.insert(tenant, change);
    }
    let (mut after, mut rewrapped) = (Vec::new(), 0);
    loop {
        let page = read_page(tx, KeyTable::Own, &after)?;
        let Some(last) = page.last() else { break };
        after = last.key.id.to_vec();
        for NewStoredKey { key, name, .. } in &page {
            let unknown = || refusal("the key of a tenant is missing".to_owned());
            let tenant = tenants.get(&key.tenant).ok_or_else(unknown)?;
            let changed = next.person(old, tenant, key, name.as_deref()).map_err(refusal)?;
            let sql = "UPDATE subject_key SET epoch = ?2, wrapped = ?3, lookup = ?4 WHERE id = ?1";
            let values = params![key.id, tenant.epoch, changed.wrapped, changed.lookup];
            tx.prepare_cached(sql)?.execute(values)?;
            rewrapped += 1;
        }
    }
    let sql = "UPDATE vault SET lookup = ?1, rotated_ms = ?2, erased_ms = NULL";
    tx.execute(sql, params![next.wrapped_lookup(), now_ms.cast_signed()])?;
    Ok(rewrapped)
}

pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    let tenant = row.get::<_, i64>(1)?.cast_unsigned();
    Ok(StoredKey { id: row.get(0)?, tenant, epoch: row.get(2)?, wrapped: row.get(3)? })
}

fn find(conn: &Connection, by: By) -> rusqlite::Result<Option<StoredKey>> {
    let (column, value) = match &by {
        By::Id(id) => ("id", id.as_slice()),
        By::Lookup(hash) => ("lookup", hash.as_slice()),
    };
    let sql = format!("SELECT id, tenant, epoch, wrapped FROM subject_key WHERE {column} = ?1");
    conn.prepare_cached(&sql)?.query_row([value], stored).optional()
}

fn insert(conn: &Connection, new: &NewStoredKey) -> rusqlite::Result<()> {
    let sql = "INSERT INTO subject_key (id, tenant, epoch, wrapped, name, lookup, day, created_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
    let NewStoredKey { key, name, lookup, day, created_ms } = new;
    let (tenant, created) = (key.tenant.cast_signed(), created_ms.cast_signed());
    let values = params![key.id, tenant, key.epoch, key.wrapped, name, lookup, day, created];
    conn.prepare_cached(sql)?.execute(values).map(|_| ())
}

impl KeyTables for SqliteKeys {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn wrong_root(&self) -> StoreError {
        let message = "the root key that was given does not open keys.db; \
                       give the one it was made or last rotated with";
        StoreError::Key(message.to_owned())
    }

    fn lookup(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask(|conn| conn.query_row("SELECT lookup FROM vault", [], |row| row.get(0)).optional())
    }

    fn begin(&mut self, wrapped: &[u8], legacy: bool) -> Result<(), StoreError> {
        let sql = "INSERT INTO vault (id, lookup, rotated_ms, legacy) VALUES (1, ?1, 0, ?2)
                   ON CONFLICT DO NOTHING";
        self.ask(|conn| conn.execute(sql, params![wrapped, legacy]).map(|_| ()))
    }

    fn is_legacy(&mut self) -> Result<bool, StoreError> {
        self.ask(|conn| conn.query_row("SELECT legacy FROM vault", [], |row| row.get(0)))
    }

    fn tenant(&mut self, tenant: u64) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
        let sql = "SELECT epoch, wrapped FROM tenant_key WHERE tenant = ?1";
        self.ask(|conn| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            conn.prepare_cached(sql)?.query_row([tenant.cast_signed()], read).optional()
        })
    }

    fn add_tenant(&mut self, tenant: u64, epoch: i64, wrapped: &[u8]) -> Result<(), StoreError> {
        let sql = "INSERT INTO tenant_key (tenant, epoch, wrapped) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO NOTHING";
        let values = params![tenant.cast_signed(), epoch, wrapped];
        self.ask(|conn| conn.execute(sql, values).map(|_| ()))
    }

    fn find(&mut self, by: By) -> Result<Option<StoredKey>, StoreError> {
        self.ask(|conn| find(conn, by))
    }

    fn add(&mut self, keys: &[NewStoredKey]) -> Result<Vec<StoredKey>, StoreError> {
        let stored = self.change(|tx| {
            let mut stored = Vec::with_capacity(keys.len());
            for new in keys {
                insert(tx, new)?;
                stored.push(find(tx, new.lookup.map_or(By::Id(new.key.id), By::Lookup))?);
            }
            Ok(stored)
        })?;
        let lost = || StoreError::damaged(&self.path, "a key that was just made is not there");
        stored.into_iter().map(|key| key.ok_or_else(lost)).collect()
    }

    fn forget(&mut self, intent: Intent) -> Result<bool, StoreError> {
        let Intent { tenant, subject, request, requested_ms } = intent;
        self.change(|tx| {
            let sql = "DELETE FROM subject_key WHERE id = ?1 AND tenant = ?2";
            if tx.execute(sql, params![subject, tenant.cast_signed()])? == 0 {
                return Ok(false);
            }
            let sql = "INSERT INTO erasure (subject, tenant, request, requested_ms)
                       VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (subject) DO UPDATE
                       SET request = ?3, requested_ms = ?4, erased_ms = NULL";
            let (tenant, when) = (tenant.cast_signed(), requested_ms.cast_signed());
            tx.execute(sql, params![subject, tenant, request, when])?;
            Ok(true)
        })
    }

    fn settle(&mut self, request: [u8; 16], erased_ms: u64) -> Result<(), StoreError> {
        let erased = erased_ms.cast_signed();
        self.change(|tx| {
            let sql = "UPDATE erasure SET erased_ms = ?2 WHERE request = ?1";
            tx.execute(sql, params![request, erased])?;
            let sql = "UPDATE vault SET erased_ms = ?1 WHERE erased_ms IS NULL";
            tx.execute(sql, [erased]).map(|_| ())
        })?;
        self.truncate()
    }

    fn drop_keys(&mut self, ids: &[KeyId]) -> Result<usize, StoreError> {
        let dropped = self.change(|tx| {
            let mut delete = tx.prepare_cached("DELETE FROM subject_key WHERE id = ?1")?;
            let mut dropped = 0;
            for id in ids {
                dropped += delete.execute([id])?;
            }
            Ok((dropped, kept::drop_copies(tx, ids)?))
        })?;
        let (dropped, copies) = dropped;
        if dropped + copies > 0 {
            self.truncate()?;
        }
        Ok(dropped)
    }

    fn nobody_until(&mut self, tenant: u64, day: u64) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = ?1 AND day <= ?2";
        self.ask(|conn| {
            let mut rows = conn.prepare_cached(sql)?;
            let values = params![tenant.cast_signed(), day.cast_signed()];
            rows.query_map(values, |row| row.get(0))?.collect()
        })
    }

    fn made_until(
        &mut self,
        tenant: u64,
        until_ms: u64,
        after: Option<KeyId>,
    ) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = ?1 AND created_ms <= ?2 AND id > ?3
                   AND day IS NULL ORDER BY id LIMIT 1000";
        let after = after.map_or(Vec::new(), |id| id.to_vec());
        self.ask(|conn| {
            let mut rows = conn.prepare_cached(sql)?;
            let until = i64::try_from(until_ms).unwrap_or(i64::MAX);
            let values = params![tenant.cast_signed(), until, after];
            rows.query_map(values, |row| row.get(0))?.collect()
        })
    }

    fn intents(&mut self, unfinished: bool) -> Result<Vec<Intent>, StoreError> {
        let sql = "SELECT tenant, subject, request, requested_ms FROM erasure
                   WHERE NOT ?1 OR erased_ms IS NULL ORDER BY requested_ms";
        self.ask(|conn| {
            let mut rows = conn.prepare_cached(sql)?;
            let intents = rows.query_map([unfinished], |row| {
                let tenant = row.get::<_, i64>(0)?.cast_unsigned();
                let (subject, request) = (row.get(1)?, row.get(2)?);
                let requested_ms = row.get::<_, i64>(3)?.cast_unsigned();
                Ok(Intent { tenant, subject, request, requested_ms })
            })?;
            intents.collect()
        })
    }

    fn since_rotation(&mut self) -> Result<(Option<u64>, u64), StoreError> {
        let sql = "SELECT erased_ms, rotated_ms FROM vault";
        self.ask(|conn| {
            conn.query_row(sql, [], |row| {
                let (erased, rotated): (Option<i64>, i64) = (row.get(0)?, row.get(1)?);
                Ok((erased.map(i64::cast_unsigned), rotated.cast_unsigned()))
            })
        })
    }

    fn rotate(
        &mut self,
        next: &Rotation<'_>,
        old: &Secret,
        now_ms: u64,
    ) -> Result<u64, StoreError> {
        let rewrapped = self.change(|tx| rewrap_all(tx, next, old, now_ms))?;
        self.truncate()?;
        Ok(rewrapped)
    }
}
