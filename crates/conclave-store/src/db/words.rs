//! The words of people in SQLite, for who forgets them.

use super::{LEDGER, open_reader, reopen_writer, truncate_wal};
use crate::error::StoreError;
use crate::forget::{Due, Purging, SESSIONS_MAX, WordTables};
use crate::vault::{Intent, KeyId};
use conclave_ledger::{Hash, Kind, Leaf};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The ledger's database.
pub(crate) struct SqliteWords(pub(crate) PathBuf);

impl SqliteWords {
    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        open_reader(&self.0).and_then(|conn| question(&conn)).map_err(StoreError::database(&self.0))
    }
}

impl WordTables for SqliteWords {
    fn entry_of(&self, request: [u8; 16]) -> Result<Option<(Leaf, Hash)>, StoreError> {
        let sql = "SELECT e.leaf, e.leaf_hash FROM log_change c JOIN log_entry e ON e.seq = c.seq
                   WHERE c.id = ?1";
        let read = |row: &Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?));
        let found = self.ask(|conn| conn.query_row(sql, [request], read).optional())?;
        Ok(found.and_then(|(leaf, hash)| Some((Leaf::decode(&leaf).ok()?, hash))))
    }

    fn counts(&self, intent: Intent) -> Result<(u64, u64), StoreError> {
        let sql = "SELECT count(*), count(b.seq) FROM response_audit_log r
                   LEFT JOIN log_body b ON b.seq = r.seq WHERE r.subject = ?1 AND r.tenant = ?2";
        self.ask(|conn| {
            conn.query_row(sql, params![intent.subject, intent.tenant.cast_signed()], |row| {
                let (decisions, bodies): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((decisions.cast_unsigned(), bodies.cast_unsigned()))
            })
        })
    }

    fn sessions_of(&self, intent: Intent) -> Result<Vec<[u8; 16]>, StoreError> {
        let sql = "SELECT DISTINCT session FROM response_audit_log
                   WHERE subject = ?1 AND tenant = ?2 AND session IS NOT NULL LIMIT ?3";
        self.ask(|conn| {
            let mut rows = conn.prepare(sql)?;
            let values = params![intent.subject, intent.tenant.cast_signed(), SESSIONS_MAX];
            rows.query_map(values, |row| row.get(0))?.collect()
        })
    }

    fn erased_in_log(&self) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT e.leaf FROM log_forgotten f JOIN log_entry e ON e.seq = f.seq";
        self.ask(|conn| {
            let mut rows = conn.prepare(sql)?;
            let leaves = rows.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            let mut erased = Vec::new();
            for leaf in leaves {
                let leaf = Leaf::decode(&leaf?).ok();
                let leaf = leaf.filter(|leaf| leaf.draft.kind == Kind::SubjectErase);
                erased.extend(leaf.and_then(|leaf| leaf.draft.subject));
            }
            Ok(erased)
        })
    }

    fn has_words(&self, tenant: u64, subject: KeyId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM response_audit_log r JOIN log_body b ON b.seq = r.seq
                   WHERE r.subject = ?1 AND r.tenant = ?2 LIMIT 1";
        let values = params![subject, tenant.cast_signed()];
        self.ask(|conn| Ok(conn.query_row(sql, values, |_| Ok(())).optional()?.is_some()))
    }

    fn tenants(&self) -> Result<Vec<u64>, StoreError> {
        // By steps through the index.
        let sql = "WITH RECURSIVE seen(tenant) AS (
                       SELECT min(tenant) FROM response_audit_log
                       UNION ALL
                       SELECT (SELECT min(tenant) FROM response_audit_log
                               WHERE tenant > seen.tenant)
                       FROM seen WHERE seen.tenant IS NOT NULL)
                   SELECT tenant FROM seen WHERE tenant IS NOT NULL";
        self.ask(|conn| {
            let mut rows = conn.prepare(sql)?;
            rows.query_map([], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?.collect()
        })
    }

    fn due(
        &self,
        tenant: u64,
        until_ms: u64,
        held: &BTreeSet<KeyId>,
    ) -> Result<Option<Due>, StoreError> {
        let sql = "SELECT r.timestamp_ms, r.subject FROM response_audit_log r
                   JOIN log_body b ON b.seq = r.seq
                   WHERE r.tenant = ?1 AND r.timestamp_ms <= ?2 ORDER BY r.timestamp_ms";
        self.ask(|conn| {
            let mut rows = conn.prepare_cached(sql)?;
            let until = i64::try_from(until_ms).unwrap_or(i64::MAX);
            let mut rows = rows.query(params![tenant.cast_signed(), until])?;
            let mut due: Option<Due> = None;
            while let Some(row) = rows.next()? {
                let at = row.get::<_, i64>(0)?.cast_unsigned();
                let subject: Option<KeyId> = row.get(1)?;
                if subject.is_some_and(|subject| held.contains(&subject)) {
                    continue;
                }
                let Some(more) = Due::take(due, at) else { break };
                due = Some(more);
            }
            Ok(due)
        })
    }

    /// Empties the write-ahead log of the ledger: deleted bodies still stand in it.
    fn scrub(&self) -> Result<(), StoreError> {
        let conn = reopen_writer(&self.0, LEDGER)?;
        truncate_wal(&conn).map_err(StoreError::database(&self.0))
    }

    fn alone(&self, purge: &mut Purging<'_>) -> Result<u64, StoreError> {
        purge()
    }

    fn is_shared(&self) -> bool {
        false
    }
}
