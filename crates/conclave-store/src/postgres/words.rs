//! The words of people in PostgreSQL: deleted in the transaction that brings the entry which says
//! so, and looked at by who forgets them.
//!
//! **Invariant:** which words go depends on the log alone, so that tables made again from it come
//! out the same.

use super::idle;
use super::link::{Conn, Connector, LinkError, Param, id_in};
use super::log::LEAF_OF_A;
use super::session::Session;
use crate::error::StoreError;
use crate::forget::{Due, Purging, SESSIONS_MAX, WordTables};
use crate::vault::{Intent, KeyId};
use conclave_ledger::{Forgotten, Hash, Kind, Leaf, Purge, leaf_hash};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::types::Type;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The lock under which one replica purges: "conclavp" as a number.
const PURGE_LOCK: i64 = 0x636f_6e63_6c61_7670;
/// How many decisions are read together when it is looked what is due.
const DUE_PAGE: i64 = 10_000;

/// Deletes what an entry speaks of, and notes that it does. Within a transaction, after the rows of
/// the entries before it were written.
pub(super) fn forget_words(conn: &Conn, seq: i64, leaf: &Leaf) -> Result<(), LinkError> {
    let noted = "INSERT INTO log_forgotten VALUES ($1) ON CONFLICT DO NOTHING";
    conn.execute(noted, &[(&seq, Type::INT8)])?;
    let tenant = leaf.draft.tenant.cast_signed();
    match (&leaf.draft.kind, leaf.draft.subject) {
        (Kind::SubjectErase, Some(subject)) => {
            let sql = "WITH gone AS (UPDATE response_audit_log SET anonymized = true
                           WHERE subject = $1 AND tenant = $2 AND seq < $3 AND NOT anonymized
                           RETURNING seq)
                       DELETE FROM log_body b USING gone WHERE b.seq = gone.seq";
            let values: [Param<'_>; 3] =
                [(&subject.as_slice(), Type::BYTEA), (&tenant, Type::INT8), (&seq, Type::INT8)];
            conn.execute(sql, &values).map(|_| ())
        }
        (Kind::RetentionPurge, _) => {
            let Some(purge) = Purge::from_public(&leaf.draft.public) else { return Ok(()) };
            purge_words(conn, (tenant, seq), &purge)
        }
        _ => Ok(()),
    }
}

fn purge_words(conn: &Conn, (tenant, seq): (i64, i64), purge: &Purge) -> Result<(), LinkError> {
    let time = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let (from, until) = (time(purge.from_ms), time(purge.until_ms));
    let held: Vec<&[u8]> = purge.held.iter().map(<[u8; 16]>::as_slice).collect();
    let sql = "WITH gone AS (UPDATE response_audit_log SET anonymized = true
                   WHERE tenant = $1 AND timestamp_ms BETWEEN $2 AND $3 AND seq < $4
                   AND NOT anonymized AND (subject IS NULL OR subject <> ALL($5::bytea[]))
                   RETURNING seq)
               DELETE FROM log_body b USING gone WHERE b.seq = gone.seq";
    let values: [Param<'_>; 5] = [
        (&tenant, Type::INT8),
        (&from, Type::INT8),
        (&until, Type::INT8),
        (&seq, Type::INT8),
        (&held, Type::BYTEA_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// What the log claims to have forgotten.
pub(super) fn claims(conn: &Conn) -> Result<Forgotten, LinkError> {
    let mut forgotten = Forgotten::default();
    let sql = format!("SELECT a.seq, {LEAF_OF_A} FROM log_forgotten a ORDER BY a.seq");
    for row in conn.query(&sql, &[])? {
        let leaf: Option<Vec<u8>> = row.try_get(1)?;
        let seq: i64 = row.try_get(0)?;
        forgotten.claim(seq.cast_unsigned(), &leaf.unwrap_or_default());
    }
    Ok(forgotten)
}

/// The words in one database.
pub(crate) struct PgWords {
    connector: Connector,
    session: Mutex<Session>,
}

impl PgWords {
    /// Connects when it is first used.
    pub(crate) fn later(connector: Connector) -> Self {
        Self { session: Mutex::new(Session::new(connector.clone(), PATIENCE)), connector }
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Conn) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).with(question)
    }
}

fn of(intent: &Intent) -> (&[u8], i64) {
    (intent.subject.as_slice(), intent.tenant.cast_signed())
}

impl WordTables for PgWords {
    fn entry_of(&self, request: [u8; 16]) -> Result<Option<(Leaf, Hash)>, StoreError> {
        let sql = format!("SELECT {LEAF_OF_A} FROM log_change a WHERE a.id = $1");
        let leaf = self.ask(|conn| {
            let row = conn.row(&sql, &[(&request.as_slice(), Type::BYTEA)])?;
            Ok(row.map(|row| row.try_get::<_, Option<Vec<u8>>>(0)).transpose()?.flatten())
        })?;
        Ok(leaf.and_then(|leaf| Some((Leaf::decode(&leaf).ok()?, leaf_hash(&leaf)))))
    }

    fn counts(&self, intent: Intent) -> Result<(u64, u64), StoreError> {
        let sql = "SELECT count(*), count(b.seq) FROM response_audit_log r
                   LEFT JOIN log_body b ON b.seq = r.seq WHERE r.subject = $1 AND r.tenant = $2";
        let (subject, tenant) = of(&intent);
        self.ask(|conn| {
            let row = conn.row(sql, &[(&subject, Type::BYTEA), (&tenant, Type::INT8)])?;
            let Some(row) = row else { return Ok((0, 0)) };
            let (decisions, bodies): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok((decisions.cast_unsigned(), bodies.cast_unsigned()))
        })
    }

    fn sessions_of(&self, intent: Intent) -> Result<Vec<[u8; 16]>, StoreError> {
        let sql = "SELECT DISTINCT session FROM response_audit_log
                   WHERE subject = $1 AND tenant = $2 AND session IS NOT NULL LIMIT $3";
        let ((subject, tenant), most) = (of(&intent), i64::from(SESSIONS_MAX));
        let values: [Param<'_>; 3] =
            [(&subject, Type::BYTEA), (&tenant, Type::INT8), (&most, Type::INT8)];
        self.ask(|conn| {
            let rows = conn.query(sql, &values)?;
            rows.iter().map(|row| id_in(row, 0, "response_audit_log.session")).collect()
        })
    }

    fn erased_in_log(&self) -> Result<Vec<KeyId>, StoreError> {
        let sql = format!("SELECT {LEAF_OF_A} FROM log_forgotten a");
        self.ask(|conn| {
            let mut erased = Vec::new();
            for row in conn.query(&sql, &[])? {
                let leaf: Option<&[u8]> = row.try_get(0)?;
                let leaf = leaf.and_then(|leaf| Leaf::decode(leaf).ok());
                let leaf = leaf.filter(|leaf| leaf.draft.kind == Kind::SubjectErase);
                erased.extend(leaf.and_then(|leaf| leaf.draft.subject));
            }
            Ok(erased)
        })
    }

    fn has_words(&self, tenant: u64, subject: KeyId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM response_audit_log r JOIN log_body b ON b.seq = r.seq
                   WHERE r.subject = $1 AND r.tenant = $2 LIMIT 1";
        let (subject, tenant) = (subject.as_slice(), tenant.cast_signed());
        let values: [Param<'_>; 2] = [(&subject, Type::BYTEA), (&tenant, Type::INT8)];
        self.ask(|conn| Ok(conn.row(sql, &values)?.is_some()))
    }

    fn tenants(&self) -> Result<Vec<u64>, StoreError> {
        let sql = "WITH RECURSIVE seen(tenant) AS (
                       (SELECT tenant FROM response_audit_log ORDER BY tenant LIMIT 1)
                       UNION ALL
                       SELECT (SELECT a.tenant FROM response_audit_log a
                               WHERE a.tenant > seen.tenant ORDER BY a.tenant LIMIT 1)
                       FROM seen WHERE seen.tenant IS NOT NULL)
                   SELECT tenant FROM seen WHERE tenant IS NOT NULL";
        self.ask(|conn| {
            let rows = conn.query(sql, &[])?;
            let tenants = rows.iter().map(|row| Ok(row.try_get::<_, i64>(0)?.cast_unsigned()));
            tenants.collect()
        })
    }

    fn due(
        &self,
        tenant: u64,
        until_ms: u64,
        held: &BTreeSet<KeyId>,
    ) -> Result<Option<Due>, StoreError> {
        let (tenant, until) = (tenant.cast_signed(), i64::try_from(until_ms).unwrap_or(i64::MAX));
        let held: Vec<&[u8]> = held.iter().map(<[u8; 16]>::as_slice).collect();
        let sql = "SELECT r.timestamp_ms FROM response_audit_log r
                   JOIN log_body b ON b.seq = r.seq
                   WHERE r.tenant = $1 AND r.timestamp_ms <= $2
                   AND (r.subject IS NULL OR r.subject <> ALL($3::bytea[]))
                   ORDER BY r.timestamp_ms LIMIT $4";
        let values: [Param<'_>; 4] = [
            (&tenant, Type::INT8),
            (&until, Type::INT8),
            (&held, Type::BYTEA_ARRAY),
            (&DUE_PAGE, Type::INT8),
        ];
        self.ask(|conn| {
            let mut due = None;
            for row in conn.query(sql, &values)? {
                let at: i64 = row.try_get(0)?;
                let Some(more) = Due::take(due, at.cast_unsigned()) else { break };
                due = Some(more);
            }
            Ok(due)
        })
    }

    /// Deleted rows stand in the table until it is vacuumed, and in its write-ahead log until that
    /// is reused. Both are the server's; without the key they are only sealed words.
    fn scrub(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn alone(&self, purge: &mut Purging<'_>) -> Result<u64, StoreError> {
        let named = |error: LinkError| self.connector.named(&error);
        let conn = self.connector.connect(PATIENCE).map_err(named)?;
        conn.begin().map_err(named)?;
        conn.run("SET LOCAL idle_in_transaction_session_timeout = '1h'").map_err(named)?;
        let sql = "SELECT pg_try_advisory_xact_lock($1)";
        let row = conn.row(sql, &[(&PURGE_LOCK, Type::INT8)]).map_err(named)?;
        let ours = row.map_or(Ok(false), |row| row.try_get(0));
        let purged = if ours.map_err(|error| named(error.into()))? { purge()? } else { 0 };
        conn.run("ROLLBACK").map_err(named)?;
        Ok(purged)
    }

    fn drop_idle_shared(
        &self,
        tenant: u64,
        until_ms: u64,
        now_ms: u64,
    ) -> Result<Vec<KeyId>, StoreError> {
        let tenant = tenant.cast_signed();
        self.ask(|conn| {
            let deleted = idle::delete(conn, tenant, now_ms)?;
            idle::mark(conn, tenant, (until_ms, now_ms))?;
            Ok(deleted)
        })
    }

    fn is_shared(&self) -> bool {
        true
    }
}
