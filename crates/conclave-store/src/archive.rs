//! The read side of the ledger.
//!
//! **Invariant:** a read sees everything that was appended before it: it waits until the spool has
//! been drained that far, and fails rather than answer with less.
//!
//! **Invariant:** what belongs to a tenant is only found under that tenant; the condition stands in
//! the query.

use crate::db::open_reader;
use crate::spool::{Intake, LivingKeys, Progress};
use crate::vault::Vault;
use conclave_core::AuditId;
use conclave_engine::{
    Archive, ArchiveError, DecisionFilter, DecisionRow, StoredEntry, Tally, Whose,
};
use conclave_ledger::{Leaf, SealError, StoredBody};
use futures_util::future::{BoxFuture, FutureExt};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// The longest page of decisions.
const PAGE_MAX: u32 = 1_000;
const HOUR_MS: i64 = 3_600_000;

/// An archive that can be told to let go of its connections.
pub(crate) trait ReadSide: Archive {
    /// Closes the connections that are not in use.
    fn close_idle(&self);
}

/// Reads through a few connections of its own.
pub(crate) struct SqliteArchive {
    shared: Arc<Shared>,
    /// For reads that wait for the newest entries.
    patient: Arc<Semaphore>,
    /// For reads that do not, so that they never queue behind those that do.
    quick: Arc<Semaphore>,
}

struct Shared {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
    intake: Arc<Intake>,
    progress: Arc<Progress>,
    vault: Arc<Vault>,
    patience: Duration,
}

type Answer<T> = Result<T, ArchiveError>;

fn broken(error: &impl ToString) -> ArchiveError {
    ArchiveError(error.to_string())
}

impl SqliteArchive {
    pub(crate) fn new(
        database: PathBuf,
        intake: Arc<Intake>,
        progress: Arc<Progress>,
        vault: Arc<Vault>,
        (readers, patience): (usize, Duration),
    ) -> Self {
        let idle = Mutex::default();
        let shared = Arc::new(Shared { database, idle, intake, progress, vault, patience });
        let lane = || Arc::new(Semaphore::new(readers.max(1)));
        Self { shared, patient: lane(), quick: lane() }
    }

    /// Runs a query on a thread that may block; `newest` says whether it must see everything.
    fn ask<T: Send + 'static>(
        &self,
        newest: bool,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Answer<T>> {
        let lane = if newest { &self.patient } else { &self.quick };
        let (shared, lane) = (Arc::clone(&self.shared), Arc::clone(lane));
        async move {
            let turn = lane.acquire_owned().await.map_err(|error| broken(&error))?;
            let task = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                if newest {
                    shared.wait_for_newest()?;
                }
                shared.query(query)
            });
            task.await.map_err(|error| broken(&error))?
        }
        .boxed()
    }
}

/// The one door through which words are read: every body is opened here, or found to be erased.
pub(crate) async fn opened(
    vault: &Arc<Vault>,
    mut entries: Vec<StoredEntry>,
) -> Answer<Vec<StoredEntry>> {
    if entries.iter().any(|entry| entry.body.is_some()) {
        let vault = Arc::clone(vault);
        let task = tokio::task::spawn_blocking(move || {
            for entry in &mut entries {
                open_words(&vault, entry)?;
            }
            Ok(entries)
        });
        entries = task.await.map_err(|error| broken(&error))??;
    }
    Ok(entries)
}

/// Opens the body of an entry; one whose key is gone counts as erased.
fn open_words(vault: &Vault, entry: &mut StoredEntry) -> Answer<()> {
    let Some(bytes) = entry.body.take() else { return Ok(()) };
    let leaf = Leaf::decode(&entry.leaf).map_err(|error| broken(&error))?;
    if leaf.draft.subject.is_some_and(|subject| !vault.is_alive(subject)) {
        // Also where the words were never sealed and are still being deleted.
        return Ok(());
    }
    let stored = StoredBody::decode(&bytes).map_err(|error| broken(&error))?;
    // A key that cannot be looked for is not a key that is gone.
    let mut unread = None;
    let found = stored.unseal(&leaf, |id| {
        vault.find(id).unwrap_or_else(|error| {
            unread = Some(broken(&error));
            None
        })
    });
    match (found, unread) {
        (Ok(body), _) => entry.body = Some(body.encode()),
        (Err(_), Some(error)) => return Err(error),
        (Err(SealError::KeyGone(_)), None) => {}
        (Err(error), None) => return Err(broken(&error)),
    }
    Ok(())
}

impl Shared {
    fn wait_for_newest(&self) -> Answer<()> {
        let pushed = self.intake.hurry();
        self.progress.wait_readable(pushed, self.patience).map_err(ArchiveError)
    }

    fn query<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Answer<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open_reader(&self.database).map_err(|error| broken(&error))?,
        };
        // A connection that failed is not used again: the file may have been replaced.
        let answer = query(&conn).map_err(|error| broken(&error))?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        Ok(answer)
    }
}

impl ReadSide for SqliteArchive {
    fn close_idle(&self) {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Archive for SqliteArchive {
    fn find(&self, tenant: u64, id: AuditId) -> BoxFuture<'_, Answer<Vec<StoredEntry>>> {
        let found = self.ask(true, move |conn| find(conn, tenant, id));
        async move { opened(&self.shared.vault, found.await?).await }.boxed()
    }

    fn list(&self, filter: DecisionFilter) -> BoxFuture<'_, Answer<Vec<DecisionRow>>> {
        self.ask(true, move |conn| list(conn, &filter))
    }

    fn latest(
        &self,
        tenant: u64,
        whose: Whose,
        before: Option<u64>,
    ) -> BoxFuture<'_, Answer<Option<StoredEntry>>> {
        let found = self.ask(false, move |conn| {
            latest(conn, tenant, whose, before).map(|entry| entry.into_iter().collect())
        });
        async move { Ok(opened(&self.shared.vault, found.await?).await?.pop()) }.boxed()
    }

    fn tally(&self, tenant: Option<u64>, since_ms: u64) -> BoxFuture<'_, Answer<Tally>> {
        let since = i64::try_from(since_ms).unwrap_or(i64::MAX);
        self.ask(true, move |conn| tally(conn, tenant.map(u64::cast_signed), since))
    }

    fn health(&self) -> BoxFuture<'_, Answer<()>> {
        async move {
            if let Some(trouble) = self.shared.progress.store_trouble() {
                return Err(ArchiveError(trouble));
            }
            self.ask(false, |conn| {
                let sql = "SELECT size FROM log_head";
                conn.query_row(sql, [], |row| row.get::<_, i64>(0)).optional().map(|_| ())
            })
            .await
        }
        .boxed()
    }
}

fn latest(
    conn: &Connection,
    tenant: u64,
    whose: Whose,
    before: Option<u64>,
) -> rusqlite::Result<Option<StoredEntry>> {
    let (column, key) = match whose {
        Whose::Session(key) => ("session", key),
        Whose::Subject(key) => ("subject", key),
    };
    let sql = format!(
        "SELECT e.seq, e.leaf, b.body FROM response_audit_log r JOIN log_entry e ON e.seq = r.seq
         LEFT JOIN log_body b ON b.seq = r.seq
         WHERE r.{column} = ?1 AND r.tenant = ?2 AND r.seq < ?3 ORDER BY r.seq DESC LIMIT 1"
    );
    let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
    let mut entries = conn.prepare_cached(&sql)?;
    entries.query_row(params![key, tenant.cast_signed(), before], stored_entry).optional()
}

fn stored_entry(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    let seq = row.get::<_, i64>(0)?.cast_unsigned();
    Ok(StoredEntry { seq, leaf: row.get(1)?, body: row.get(2)? })
}

fn find(conn: &Connection, tenant: u64, id: AuditId) -> rusqlite::Result<Vec<StoredEntry>> {
    let sql = "SELECT seq, delivery_seq FROM response_audit_log WHERE id = ?1 AND tenant = ?2";
    let mut places = conn.prepare_cached(sql)?;
    let place = places
        .query_row(params![id.0.as_bytes(), tenant.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })
        .optional()?;
    let Some((decision, delivery)) = place else { return Ok(Vec::new()) };
    let sql = "SELECT e.seq, e.leaf, b.body FROM log_entry e LEFT JOIN log_body b ON b.seq = e.seq
               WHERE e.seq = ?1 OR e.seq = ?2 ORDER BY e.seq";
    let mut entries = conn.prepare_cached(sql)?;
    entries.query_map(params![decision, delivery], stored_entry)?.collect()
}

fn list(conn: &Connection, filter: &DecisionFilter) -> rusqlite::Result<Vec<DecisionRow>> {
    let mut sql = "SELECT id, seq, timestamp_ms, outcome, action, safety_score_e4,
                   regeneration_attempts, crisis, scrutiny, model, latency_ms, tenant
                   FROM response_audit_log WHERE 1"
        .to_owned();
    let mut values: Vec<Sql> = Vec::new();
    let mut narrow = |condition: &str, value: Sql| {
        sql.push_str(condition);
        values.push(value);
    };
    if let Some(tenant) = filter.tenant {
        narrow(" AND tenant = ?", tenant.cast_signed().into());
    }
    if let Some(outcome) = &filter.outcome {
        narrow(" AND outcome = ?", outcome.clone().into());
    }
    if let Some(action) = &filter.action {
        narrow(" AND action = ?", action.clone().into());
    }
    if let Some(subject) = filter.subject {
        narrow(" AND subject = ?", subject.to_vec().into());
    }
    if let Some(before) = filter.before {
        // The time lets an index find the place; the position decides within a millisecond.
        for (column, than) in [("seq", "<"), ("timestamp_ms", "<=")] {
            let of = "FROM response_audit_log WHERE id = ?";
            let older = format!(" AND {column} {than} (SELECT {column} {of})");
            narrow(&older, before.0.as_bytes().to_vec().into());
        }
    }
    // Times never go back, so both orders are the same; each suits the index that will be used.
    let indexed = filter.tenant.is_some() || filter.outcome.is_some();
    let order = if indexed { "timestamp_ms DESC, seq DESC" } else { "seq DESC" };
    narrow(&format!(" ORDER BY {order} LIMIT ?"), filter.limit.min(PAGE_MAX).into());
    let mut rows = conn.prepare_cached(&sql)?;
    rows.query_map(params_from_iter(values), decision_row)?.collect()
}

fn decision_row(row: &Row<'_>) -> rusqlite::Result<DecisionRow> {
    let number = |at| row.get::<_, i64>(at).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let score: Option<i32> = row.get(5)?;
    Ok(DecisionRow {
        id: AuditId(Uuid::from_bytes(row.get(0)?)),
        seq: row.get::<_, i64>(1)?.cast_unsigned(),
        timestamp_ms: row.get::<_, i64>(2)?.cast_unsigned(),
        outcome: row.get(3)?,
        action: row.get(4)?,
        safety_score: score.map(|score| f64::from(score) / 10_000.0),
        attempts: number(6)?,
        crisis: row.get(7)?,
        scrutiny: row.get(8)?,
        model: row.get(9)?,
        latency_ms: number(10)?,
        tenant: row.get::<_, i64>(11)?.cast_unsigned(),
    })
}

fn tally(conn: &Connection, tenant: Option<i64>, since_ms: i64) -> rusqlite::Result<Tally> {
    // Both forms are answered from an index alone; without a tenant, outcome by outcome.
    let sql = match tenant {
        Some(_) => {
            "SELECT outcome, timestamp_ms / ?3, count(*) FROM response_audit_log
             WHERE tenant = ?1 AND timestamp_ms >= ?2 GROUP BY 1, 2 ORDER BY 2, 1"
        }
        None => {
            "WITH RECURSIVE names(outcome) AS (
                 SELECT min(outcome) FROM response_audit_log
                 UNION ALL
                 SELECT (SELECT min(outcome) FROM response_audit_log WHERE outcome > names.outcome)
                 FROM names WHERE names.outcome IS NOT NULL)
             SELECT a.outcome, a.timestamp_ms / ?3, count(*) FROM names
             JOIN response_audit_log a ON a.outcome = names.outcome AND a.timestamp_ms >= ?2
             WHERE ?1 IS NULL GROUP BY 1, 2 ORDER BY 2, 1"
        }
    };
    let mut rows = conn.prepare_cached(sql)?;
    let counted = rows.query_map(params![tenant, since_ms, HOUR_MS], |row| {
        let (outcome, hour, count): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((outcome, (hour * HOUR_MS).cast_unsigned(), count.cast_unsigned()))
    })?;
    let mut tally = Tally::default();
    for row in counted {
        add_to_tally(&mut tally, row?);
    }
    tally.outcomes.sort();
    let head = conn.query_row("SELECT size, root FROM log_head", [], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, [u8; 32]>(1)?))
    });
    (tally.entries, tally.root) = head.optional()?.unwrap_or((0, conclave_ledger::empty_root()));
    Ok(tally)
}

/// Adds what one outcome came to in one hour.
pub(crate) fn add_to_tally(tally: &mut Tally, (outcome, hour, count): (String, u64, u64)) {
    let parsed = conclave_core::Outcome::parse(&outcome);
    let delivered = parsed.is_some_and(conclave_core::Outcome::is_verified);
    if tally.hours.last().is_none_or(|(last, _, _)| *last != hour) {
        tally.hours.push((hour, 0, 0));
    }
    if let Some((_, passed, withheld)) = tally.hours.last_mut() {
        *(if delivered { passed } else { withheld }) += count;
    }
    match tally.outcomes.iter_mut().find(|(name, _)| *name == outcome) {
        Some((_, total)) => *total += count,
        None => tally.outcomes.push((outcome, count)),
    }
}
