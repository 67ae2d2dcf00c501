//! Copies of keys that a shared database was given lately, in `keys.db`.
//!
//! A database that comes back from a backup does not have them, while words that were sealed with them are
//! handed over to it again.
//!
//! **Invariant:** a copy goes where its key goes: with an erasure, and under the new root key with a rotation.
//! One that does not open any more is given up.

use super::book::{BY_ROOT, KeyId};
use super::rotate::Rotation;
use super::sqlite::{KeyTable, read_page, stored};
use super::tables::{By, NewStoredKey, StoredKey};
use super::wrap::Secret;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::collections::HashMap;

/// Keeps copies of keys; since when is noted when it is next looked at their age.
pub(super) fn keep(tx: &Transaction<'_>, keys: &[NewStoredKey]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO kept_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)";
    let mut insert = tx.prepare_cached(sql)?;
    for NewStoredKey { key, name, lookup, day, created_ms } in keys {
        let (tenant, created) = (key.tenant.cast_signed(), created_ms.cast_signed());
        insert.execute(params![
            key.id,
            tenant,
            key.epoch,
            key.wrapped,
            name,
            lookup,
            day,
            created
        ])?;
    }
    Ok(())
}

/// Makes copies of keys that waited and were handed over.
pub(super) fn put_away(tx: &Transaction<'_>, ids: &[KeyId]) -> rusqlite::Result<()> {
    let copy = "INSERT OR REPLACE INTO kept_key
                SELECT id, tenant, epoch, wrapped, name, lookup, day, created_ms, 0
                FROM subject_key WHERE id = ?1";
    for id in ids {
        tx.prepare_cached(copy)?.execute([id])?;
        tx.prepare_cached("DELETE FROM subject_key WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

/// Looks for a copy.
pub(super) fn find(conn: &Connection, by: By) -> rusqlite::Result<Option<StoredKey>> {
    let (column, value) = match &by {
        By::Id(id) => ("id", id.as_slice()),
        By::Lookup(hash) => ("lookup", hash.as_slice()),
    };
    let sql = format!(
        "SELECT id, tenant, epoch, wrapped FROM kept_key WHERE {column} = ?1
         ORDER BY created_ms, id LIMIT 1"
    );
    conn.prepare_cached(&sql)?.query_row([value], stored).optional()
}

/// Deletes copies; says how many there were.
pub(super) fn drop_copies(tx: &Transaction<'_>, ids: &[KeyId]) -> rusqlite::Result<usize> {
    let mut delete = tx.prepare_cached("DELETE FROM kept_key WHERE id = ?1")?;
    ids.iter().try_fold(0, |dropped, id| Ok(dropped + delete.execute([id])?))
}

/// Deletes what was kept before a time; says how many.
pub(super) fn prune(
    tx: &Transaction<'_>,
    (now_ms, before_ms): (u64, u64),
) -> rusqlite::Result<usize> {
    let now = now_ms.max(1).cast_signed();
    tx.execute("UPDATE kept_key SET kept_ms = ?1 WHERE kept_ms = 0", [now])?;
    tx.execute("DELETE FROM kept_key WHERE kept_ms < ?1", [before_ms.cast_signed()])
}

/// Wraps copies by a new root key.
pub(super) fn go_over(
    tx: &Transaction<'_>,
    next: &Rotation<'_>,
    old: &Secret,
    tenants: &HashMap<u64, (i64, Vec<u8>)>,
) -> rusqlite::Result<()> {
    let mut after = Vec::new();
    loop {
        let page = read_page(tx, KeyTable::Kept, &after)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.key.id.to_vec();
        for NewStoredKey { key, name, .. } in &page {
            let tenant = tenants.get(&key.tenant).map(|(epoch, key)| (*epoch, &key[..]));
            let Ok(changed) = next.waiting(old, tenant, key, name.as_deref()) else {
                tx.prepare_cached("DELETE FROM kept_key WHERE id = ?1")?.execute([key.id])?;
                continue;
            };
            let sql = "UPDATE kept_key SET epoch = ?2, wrapped = ?3, lookup = ?4 WHERE id = ?1";
            let values = params![key.id, BY_ROOT, changed.wrapped, changed.lookup];
            tx.prepare_cached(sql)?.execute(values)?;
        }
    }
}
