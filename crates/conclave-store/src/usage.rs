//! Sums of what was used, from `ai_usage_events`.
//!
//! **Invariant:** both databases are asked the same question: one text of SQL, with the few words in
//! which they differ.

use crate::db::open_reader;
use crate::postgres::{Session, pg_usage};
use crate::spool::{Intake, Progress};
use conclave_engine::{ArchiveError, UsageAsk, UsageBook, UsageBy, UsagePage, UsageRow, UsageSums};
use futures_util::future::{BoxFuture, FutureExt};
use rusqlite::params;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One row as it comes from a database: what it is about, then [`SUMS`] numbers.
pub(crate) type Summed = (Vec<String>, [Option<i64>; SUMS]);

/// How many sums each row has.
pub(crate) const SUMS: usize = 10;

/// Where the events are.
pub(crate) enum UsageSource {
    /// In this file.
    File(PathBuf),
    /// In PostgreSQL.
    Server(Mutex<Session>),
}

/// Adds up events.
pub(crate) struct AddedUp {
    pub(crate) source: Arc<UsageSource>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) patience: Duration,
}

/// The words in which databases differ.
#[derive(Clone, Copy)]
pub(crate) enum Spoken {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's.
    Postgres,
}

impl Spoken {
    fn column(self, by: UsageBy) -> String {
        let pseudonym = |name: &str| match self {
            Self::Sqlite => format!("lower(hex({name}))"),
            Self::Postgres => format!("encode({name}, 'hex')"),
        };
        let text = match by {
            UsageBy::Day => "CAST(created_ms / 86400000 AS text)".to_owned(),
            UsageBy::Model => "model".to_owned(),
            UsageBy::User => pseudonym("subject"),
            UsageBy::Session => pseudonym("session"),
            UsageBy::Recipe => "agent_name".to_owned(),
            UsageBy::Key => "key_id".to_owned(),
            UsageBy::Provider => "provider".to_owned(),
            UsageBy::Outcome => "status".to_owned(),
        };
        format!("coalesce({text}, '')")
    }

    /// Names are compared byte by byte.
    const fn collation(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " COLLATE \"C\"",
        }
    }

    /// The question; its values are the tenant, two times, a person or none, how many and from where.
    pub(crate) fn question(self, by: &[UsageBy]) -> String {
        let named: Vec<_> = (0..by.len()).map(|at| format!("k{at}")).collect();
        let columns: Vec<_> = by
            .iter()
            .zip(&named)
            .map(|(by, name)| format!("{} AS {name}, ", self.column(*by)))
            .collect();
        let apart: String = named.iter().map(|name| format!("{name}, ")).collect();
        let group = if named.is_empty() {
            String::new()
        } else {
            let names = named.join(", ");
            let order: Vec<_> =
                named.iter().map(|name| format!("{name}{}", self.collation())).collect();
            format!("GROUP BY {names} ORDER BY {}", order.join(", "))
        };
        format!(
            "WITH event AS (
               SELECT {} requests, success, status, safety_status, attempts, input_tokens,
                      output_tokens, cost_microusd, duration_ms,
                      CASE WHEN status IN ('refused', 'abandoned') THEN 0 ELSE 1 END AS decided
               FROM ai_usage_events
               WHERE tenant = $1 AND created_ms >= $2 AND created_ms < $3
                 AND ($4 IS NULL OR subject = $4)
             ), placed AS (
               SELECT event.*, row_number() OVER (PARTITION BY {apart} decided ORDER BY duration_ms)
                      AS nth, count(*) OVER (PARTITION BY {apart} decided) AS n FROM event
             )
             SELECT {apart} {}, {}, {}, {}, {}, {}, {}, {}, {},
                    max(CASE WHEN decided = 1 AND nth <= (n * 95 + 99) / 100 THEN duration_ms END)
             FROM placed {group} LIMIT $5 OFFSET $6",
            columns.concat(),
            sum("requests"),
            sum("CASE WHEN status IN ('delivered', 'redacted') THEN requests ELSE 0 END"),
            sum("CASE WHEN status = 'blocked' THEN requests ELSE 0 END"),
            sum("CASE WHEN status = 'failed' THEN requests ELSE 0 END"),
            sum("CASE WHEN safety_status = 'flagged' THEN requests ELSE 0 END"),
            sum("attempts"),
            sum("input_tokens"),
            sum("output_tokens"),
            sum("cost_microusd"),
        )
    }
}

fn sum(what: &str) -> String {
    format!("CAST(sum({what}) AS bigint)")
}

impl UsageSource {
    fn ask(&self, ask: &UsageAsk) -> Result<Vec<Summed>, String> {
        match self {
            Self::File(path) => sqlite_usage(path, ask).map_err(|error| error.to_string()),
            Self::Server(session) => {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                pg_usage(&mut session, ask).map_err(|error| error.to_string())
            }
        }
    }

    fn page(&self, ask: &UsageAsk) -> Result<UsagePage, String> {
        let whole = UsageAsk { by: Vec::new(), offset: 0, limit: 1, ..ask.clone() };
        let total = self.ask(&whole)?.pop().map(|(_, sums)| sums_of(sums)).unwrap_or_default();
        let rows = if ask.by.is_empty() { Vec::new() } else { self.ask(ask)? };
        let rows = rows.into_iter().map(|(of, sums)| UsageRow { of, sums: sums_of(sums) });
        Ok(UsagePage { rows: rows.collect(), total })
    }
}

fn sqlite_usage(path: &std::path::Path, ask: &UsageAsk) -> rusqlite::Result<Vec<Summed>> {
    let conn = open_reader(path)?;
    let mut rows = conn.prepare(&Spoken::Sqlite.question(&ask.by))?;
    let values = params![
        ask.tenant.cast_signed(),
        ask.from_ms.cast_signed(),
        ask.to_ms.cast_signed(),
        ask.subject,
        ask.limit,
        ask.offset
    ];
    let found = rows.query_map(values, |row| {
        let of = (0..ask.by.len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        let mut sums = [None; SUMS];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = row.get(ask.by.len() + at)?;
        }
        Ok((of, sums))
    })?;
    found.collect()
}

fn sums_of(sums: [Option<i64>; SUMS]) -> UsageSums {
    let [requests, delivered, blocked, failed, flagged, attempts, read, written, cost, p95] =
        sums.map(|sum| sum.map(i64::cast_unsigned));
    UsageSums {
        requests: requests.unwrap_or(0),
        delivered: delivered.unwrap_or(0),
        blocked: blocked.unwrap_or(0),
        failed: failed.unwrap_or(0),
        flagged: flagged.unwrap_or(0),
        attempts: attempts.unwrap_or(0),
        input_tokens: read.unwrap_or(0),
        output_tokens: written.unwrap_or(0),
        cost_microusd: cost.unwrap_or(0),
        p95_ms: p95,
    }
}

impl UsageBook for AddedUp {
    fn sums(&self, ask: UsageAsk) -> BoxFuture<'_, Result<UsagePage, ArchiveError>> {
        let (source, progress) = (Arc::clone(&self.source), Arc::clone(&self.progress));
        let (pushed, patience) = (self.intake.hurry(), self.patience);
        let add_up = move || {
            progress.wait_drained(pushed, patience)?;
            source.page(&ask)
        };
        async move {
            let added = tokio::task::spawn_blocking(add_up).await;
            let added = added.unwrap_or_else(|error| Err(error.to_string()));
            added.map_err(ArchiveError)
        }
        .boxed()
    }
}
