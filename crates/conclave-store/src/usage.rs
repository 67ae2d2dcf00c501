//! Daily aggregates of what was used, added up from the decisions.

use crate::db::open_reader;
use crate::postgres::{Session, pg_usage};
use crate::spool::{Intake, Progress};
use conclave_engine::{ArchiveError, UsageBook, UsageRow};
use futures_util::future::{BoxFuture, FutureExt};
use rusqlite::params;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One sum of the query: day, model, outcome, requests, attempts, cost.
pub(crate) type Sum = (i64, String, String, i64, i64, i64);

/// Where the decisions are.
pub(crate) enum UsageSource {
    /// In this file.
    File(PathBuf),
    /// In PostgreSQL.
    Server(Mutex<Session>),
}

/// Adds up decisions.
pub(crate) struct DailyUsage {
    pub(crate) source: Arc<UsageSource>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) patience: Duration,
}

impl UsageSource {
    fn sums(&self, tenant: i64, from_ms: i64, to_ms: i64) -> Result<Vec<Sum>, String> {
        match self {
            Self::File(path) => {
                sqlite_sums(path, tenant, from_ms, to_ms).map_err(|error| error.to_string())
            }
            Self::Server(session) => {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                pg_usage(&mut session, tenant, from_ms, to_ms).map_err(|error| error.to_string())
            }
        }
    }
}

fn sqlite_sums(
    path: &std::path::Path,
    tenant: i64,
    from_ms: i64,
    to_ms: i64,
) -> rusqlite::Result<Vec<Sum>> {
    let conn = open_reader(path)?;
    let mut ask = conn.prepare(
        "SELECT timestamp_ms / 86400000, model, outcome, count(*), sum(regeneration_attempts),
                sum(cost_microusd) FROM response_audit_log
         WHERE tenant = ?1 AND timestamp_ms >= ?2 AND timestamp_ms < ?3
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    )?;
    let rows = ask.query_map(params![tenant, from_ms, to_ms], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    })?;
    rows.collect()
}

/// Sums by outcome become one row for each day and model.
fn rows(sums: Vec<Sum>) -> Vec<UsageRow> {
    let mut days: BTreeMap<(u32, String), UsageRow> = BTreeMap::new();
    for (day, model, outcome, requests, attempts, cost) in sums {
        let day = u32::try_from(day).unwrap_or(u32::MAX);
        let row = days.entry((day, model.clone())).or_insert_with(|| UsageRow {
            day,
            model,
            ..UsageRow::default()
        });
        let requests = requests.cast_unsigned();
        row.requests += requests;
        row.attempts += attempts.cast_unsigned();
        row.cost_microusd = row.cost_microusd.saturating_add(cost.cast_unsigned());
        match outcome.as_str() {
            "delivered" | "redacted" => row.delivered += requests,
            "blocked" => row.blocked += requests,
            "failed" => row.failed += requests,
            _ => {}
        }
    }
    days.into_values().collect()
}

impl UsageBook for DailyUsage {
    fn daily(
        &self,
        tenant: u64,
        from_ms: u64,
        to_ms: u64,
    ) -> BoxFuture<'_, Result<Vec<UsageRow>, ArchiveError>> {
        let (source, progress) = (Arc::clone(&self.source), Arc::clone(&self.progress));
        let (pushed, patience) = (self.intake.hurry(), self.patience);
        let add_up = move || {
            progress.wait_drained(pushed, patience)?;
            let (from, to) = (from_ms.cast_signed(), to_ms.cast_signed());
            source.sums(tenant.cast_signed(), from, to).map(rows)
        };
        async move {
            let added = tokio::task::spawn_blocking(add_up).await;
            let added = added.unwrap_or_else(|error| Err(error.to_string()));
            added.map_err(ArchiveError)
        }
        .boxed()
    }
}
