//! The read side of the ledger, from PostgreSQL.
//!
//! **Invariant:** a read sees everything that was appended on this replica before it; what another
//! replica still has in its spool is seen when that one has drained it.
//!
//! **Invariant:** what belongs to a tenant is only found under that tenant; the condition stands in
//! the query.

use super::link::{Connector, LinkError, Param};
use super::log::LEAF_OF_A;
use crate::archive::{ReadSide, add_to_tally, opened};
use crate::spool::{Intake, Progress};
use crate::vault::Vault;
use conclave_core::AuditId;
use conclave_engine::{
    Archive, ArchiveError, DecisionFilter, DecisionRow, StoredEntry, Tally, Whose,
};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// How long a turn that recalls something waits before it goes on without.
const RECALL_PATIENCE: Duration = Duration::from_millis(250);
/// How often a server that did not answer is asked whether it does again.
const PROBE_PAUSE: Duration = Duration::from_secs(1);
/// The longest page of decisions.
const PAGE_MAX: u32 = 1_000;
const HOUR_MS: i64 = 3_600_000;

/// Reads through a few connections of its own.
pub(crate) struct PgArchive {
    connector: Connector,
    idle: Mutex<Vec<Client>>,
    /// For reads that wait for the newest entries.
    patient: Semaphore,
    /// For reads that do not, so that they never queue behind those that do.
    quick: Semaphore,
    intake: Arc<Intake>,
    progress: Arc<Progress>,
    vault: Arc<Vault>,
    patience: Duration,
    /// Set while the server does not answer, so that turns do not each find out for themselves.
    away: Arc<AtomicBool>,
}

type Answer<T> = Result<T, ArchiveError>;

fn broken(error: &impl ToString) -> ArchiveError {
    ArchiveError(error.to_string())
}

impl PgArchive {
    pub(crate) fn new(
        connector: Connector,
        intake: Arc<Intake>,
        progress: Arc<Progress>,
        vault: Arc<Vault>,
        (readers, patience): (usize, Duration),
    ) -> Self {
        let lane = || Semaphore::new(readers.max(1));
        let (patient, quick) = (lane(), lane());
        let (idle, away) = (Mutex::default(), Arc::default());
        Self { connector, idle, patient, quick, intake, progress, vault, patience, away }
    }

    /// Asks on behalf of a turn, which must not be held up by a server that is away or slow.
    async fn recall(&self, sql: &str, params: &[Param<'_>]) -> Answer<Vec<Row>> {
        if self.away.load(Ordering::Relaxed) {
            return Err(ArchiveError("the database does not answer at present".to_owned()));
        }
        let _turn = self.quick.acquire().await.map_err(|error| broken(&error))?;
        let answer = self.connector.in_time(RECALL_PATIENCE, self.rows(sql, params)).await;
        answer.map_err(|error| {
            self.note_away();
            broken(&error)
        })
    }

    /// From now on nobody asks, until somebody who does nothing else has got an answer.
    fn note_away(&self) {
        if self.away.swap(true, Ordering::Relaxed) {
            return;
        }
        let (connector, away) = (self.connector.clone(), Arc::clone(&self.away));
        self.connector.spawn(async move {
            // The archive has let go of its half when it is gone.
            while Arc::strong_count(&away) > 1 {
                tokio::time::sleep(PROBE_PAUSE).await;
                let asked = async {
                    connector
                        .open()
                        .await?
                        .query_typed("SELECT 1", &[])
                        .await
                        .map_err(LinkError::from)
                };
                if connector.in_time(PROBE_PAUSE, asked).await.is_ok() {
                    away.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
    }

    /// Asks for rows; `newest` says whether everything appended before must be seen.
    async fn ask(&self, newest: bool, sql: &str, params: &[Param<'_>]) -> Answer<Vec<Row>> {
        let lane = if newest { &self.patient } else { &self.quick };
        let _turn = lane.acquire().await.map_err(|error| broken(&error))?;
        if newest {
            self.wait_for_newest().await?;
            self.refuse_while_others_mend().await?;
        }
        let answer = self.connector.in_time(self.patience, self.rows(sql, params)).await;
        answer.map_err(|error| broken(&error))
    }

    /// Another replica may know that the database came back older, with keys of people who were erased
    /// since, while this one was away and does not.
    async fn refuse_while_others_mend(&self) -> Answer<()> {
        let sql = "SELECT 1 FROM restore_wait w, log_head h WHERE w.size > h.size LIMIT 1";
        let asked = self.connector.in_time(self.patience, self.rows(sql, &[])).await;
        if asked.map_err(|error| broken(&error))?.is_empty() {
            return Ok(());
        }
        let why = "the database was put back; another replica hands over again what it lost, and who \
                   was erased is forgotten first";
        Err(ArchiveError(why.to_owned()))
    }

    async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, LinkError> {
        // A connection that was idle while the server went away only says so when it is used.
        if let Some(client) = self.pop() {
            match client.query_typed(sql, params).await {
                Ok(rows) => {
                    self.push(client);
                    return Ok(rows);
                }
                Err(error) if error.code().is_some() && !client.is_closed() => {
                    return Err(error.into());
                }
                Err(_) => self.close_idle(),
            }
        }
        let client = self.connector.open().await?;
        let rows = client.query_typed(sql, params).await?;
        self.push(client);
        Ok(rows)
    }

    fn pop(&self) -> Option<Client> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn push(&self, client: Client) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
    }

    async fn wait_for_newest(&self) -> Answer<()> {
        let (intake, progress) = (Arc::clone(&self.intake), Arc::clone(&self.progress));
        let patience = self.patience;
        let waited = tokio::task::spawn_blocking(move || {
            let pushed = intake.hurry();
            progress.wait_readable(pushed, patience)
        });
        waited.await.map_err(|error| broken(&error))?.map_err(ArchiveError)
    }

    async fn count(&self, tenant: Option<u64>, since_ms: u64) -> Answer<Tally> {
        let since = i64::try_from(since_ms).unwrap_or(i64::MAX);
        let tenant = tenant.map(u64::cast_signed);
        let sql = "SELECT outcome, timestamp_ms / $3, count(*) FROM response_audit_log
                   WHERE timestamp_ms >= $2 AND ($1::bigint IS NULL OR tenant = $1)
                   GROUP BY 1, 2 ORDER BY 2, 1";
        let values =
            [(&tenant as _, Type::INT8), (&since as _, Type::INT8), (&HOUR_MS as _, Type::INT8)];
        let rows = self.ask(true, sql, &values).await?;
        let mut tally = Tally::default();
        for row in &rows {
            let (outcome, hour): (String, i64) = (get(row, 0)?, get(row, 1)?);
            let count: i64 = get(row, 2)?;
            add_to_tally(
                &mut tally,
                (outcome, (hour * HOUR_MS).cast_unsigned(), count.cast_unsigned()),
            );
        }
        tally.outcomes.sort();
        let head = self.ask(false, "SELECT size, root FROM log_head", &[]).await?;
        let head = head.first().ok_or_else(|| ArchiveError("the log has no head".to_owned()))?;
        let root: Vec<u8> = get(head, 1)?;
        let wrong = || ArchiveError("the head of the log is damaged".to_owned());
        tally.root = root.try_into().map_err(|_| wrong())?;
        tally.entries = get::<i64>(head, 0)?.cast_unsigned();
        Ok(tally)
    }
}

impl ReadSide for PgArchive {
    fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Answer<T> {
    row.try_get(at).map_err(|error| broken(&error))
}

fn stored_entry(row: &Row) -> Answer<StoredEntry> {
    let seq = get::<i64>(row, 0)?.cast_unsigned();
    let leaf: Option<Vec<u8>> = get(row, 1)?;
    let leaf = leaf.ok_or_else(|| ArchiveError(format!("entry {seq} is missing in the log")))?;
    Ok(StoredEntry { seq, leaf, body: get(row, 2)? })
}

impl Archive for PgArchive {
    fn find(&self, tenant: u64, id: AuditId) -> BoxFuture<'_, Answer<Vec<StoredEntry>>> {
        async move {
            let sql = format!(
                "SELECT a.seq, {LEAF_OF_A}, (SELECT body FROM log_body WHERE seq = a.seq)
                 FROM (SELECT unnest(ARRAY[seq, delivery_seq]) AS seq FROM response_audit_log
                       WHERE id = $1 AND tenant = $2) a
                 WHERE a.seq IS NOT NULL ORDER BY a.seq"
            );
            let tenant = tenant.cast_signed();
            let values = [(&id.0 as _, Type::UUID), (&tenant as _, Type::INT8)];
            let rows = self.ask(true, &sql, &values).await?;
            let found = rows.iter().map(stored_entry).collect::<Answer<_>>()?;
            opened(&self.vault, found).await
        }
        .boxed()
    }

    fn list(&self, filter: DecisionFilter) -> BoxFuture<'_, Answer<Vec<DecisionRow>>> {
        async move {
            let (sql, values) = page_of(&filter);
            let values: Vec<Param<'_>> = values
                .iter()
                .map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()))
                .collect();
            self.ask(true, &sql, &values).await?.iter().map(decision_row).collect()
        }
        .boxed()
    }

    fn latest(
        &self,
        tenant: u64,
        whose: Whose,
        before: Option<u64>,
    ) -> BoxFuture<'_, Answer<Option<StoredEntry>>> {
        async move {
            let (column, key) = match whose {
                Whose::Session(key) => ("session", key),
                Whose::Subject(key) => ("subject", key),
            };
            let sql = format!(
                "SELECT a.seq, {LEAF_OF_A}, (SELECT body FROM log_body WHERE seq = a.seq)
                 FROM (SELECT seq FROM response_audit_log WHERE {column} = $1 AND tenant = $2
                       AND seq < $3 ORDER BY seq DESC LIMIT 1) a"
            );
            let tenant = tenant.cast_signed();
            let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
            let values = [
                (&key.as_slice() as _, Type::BYTEA),
                (&tenant as _, Type::INT8),
                (&before as _, Type::INT8),
            ];
            let found = self.recall(&sql, &values).await?;
            let found = found.iter().map(stored_entry).collect::<Answer<_>>()?;
            Ok(opened(&self.vault, found).await?.pop())
        }
        .boxed()
    }

    fn tally(&self, tenant: Option<u64>, since_ms: u64) -> BoxFuture<'_, Answer<Tally>> {
        self.count(tenant, since_ms).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Answer<()>> {
        async move {
            if let Some(trouble) = self.progress.store_trouble() {
                return Err(ArchiveError(trouble));
            }
            self.ask(false, "SELECT size FROM log_head", &[]).await.map(|_| ())
        }
        .boxed()
    }
}

type Owned = Box<dyn ToSql + Sync + Send>;

fn page_of(filter: &DecisionFilter) -> (String, Vec<(Owned, Type)>) {
    let mut sql = "SELECT id, seq, timestamp_ms, outcome, action, safety_score_e4,
                   regeneration_attempts, crisis, scrutiny, model, latency_ms, tenant
                   FROM response_audit_log WHERE true"
        .to_owned();
    let mut values: Vec<(Owned, Type)> = Vec::new();
    let mut narrow = |condition: &str, value: Owned, kind: Type| {
        values.push((value, kind));
        sql.push_str(&condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(tenant) = filter.tenant {
        narrow(" AND tenant = ?", Box::new(tenant.cast_signed()), Type::INT8);
    }
    if let Some(outcome) = &filter.outcome {
        narrow(" AND outcome = ?", Box::new(super::log::clean(outcome)), Type::TEXT);
    }
    if let Some(action) = &filter.action {
        narrow(" AND action = ?", Box::new(super::log::clean(action)), Type::TEXT);
    }
    if let Some(subject) = filter.subject {
        narrow(" AND subject = ?", Box::new(subject.to_vec()), Type::BYTEA);
    }
    if let Some(before) = filter.before {
        let older = " AND seq < (SELECT seq FROM response_audit_log WHERE id = ?)";
        narrow(older, Box::new(before.0), Type::UUID);
    }
    let limit = i64::from(filter.limit.min(PAGE_MAX));
    narrow(" ORDER BY seq DESC LIMIT ?", Box::new(limit), Type::INT8);
    (sql, values)
}

fn decision_row(row: &Row) -> Answer<DecisionRow> {
    let number = |at| get::<i64>(row, at).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let score: Option<i64> = get(row, 5)?;
    let score = score.map(|score| i32::try_from(score).unwrap_or(i32::MAX));
    Ok(DecisionRow {
        id: AuditId(get::<Uuid>(row, 0)?),
        seq: get::<i64>(row, 1)?.cast_unsigned(),
        timestamp_ms: get::<i64>(row, 2)?.cast_unsigned(),
        outcome: get(row, 3)?,
        action: get(row, 4)?,
        safety_score: score.map(|score| f64::from(score) / 10_000.0),
        attempts: number(6)?,
        crisis: get(row, 7)?,
        scrutiny: get(row, 8)?,
        model: get(row, 9)?,
        latency_ms: number(10)?,
        tenant: get::<i64>(row, 11)?.cast_unsigned(),
    })
}
