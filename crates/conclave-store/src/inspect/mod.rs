//! Checks a data directory without changing anything in it, also while a server works in it.
//!
//! **Invariant:** nothing stored is trusted, not even its type; whatever is wrong becomes a finding
//! with a place and never a panic, and no value is read that is larger than an entry can be.
//!
//! **Invariant:** "it is bad" and "it could not be looked at" are different answers.

mod derived;
mod log;
mod pending;
mod words;

use crate::db::{LEDGER, claims, open_reader, user_version};
use crate::vault::RootKey;
use conclave_ledger::{Auditor, ExtraCheck, Report};
use derived::Derived;
use rusqlite::{Connection, ErrorCode};
use std::cell::RefCell;
use std::path::Path;
use thiserror::Error;

/// Why a data directory could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CannotCheck(pub String);

/// What else to do during a check.
#[derive(Default)]
pub struct Inspection<'a> {
    /// Is told from time to time how many of how many entries were checked.
    pub progress: Option<Box<dyn FnMut(u64, u64) + 'a>>,
    /// A further check of every entry.
    pub check: Option<ExtraCheck<'a>>,
    /// Opens sealed words where the root key is kept elsewhere.
    pub root_key: Option<RootKey>,
}

/// Something went wrong while reading: a finding, or no answer at all.
enum Trouble {
    Damage(String),
    Cannot(CannotCheck),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        let damage = match &error {
            // A query that was right when the schema was written means the schema was changed.
            rusqlite::Error::SqliteFailure(failure, _) => matches!(
                failure.code,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown
            ),
            rusqlite::Error::SqlInputError { .. } => true,
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..) => true,
            _ => false,
        };
        if damage {
            Self::Damage(format!("the database is damaged: {error}"))
        } else {
            Self::Cannot(CannotCheck(format!("the database cannot be read: {error}")))
        }
    }
}

/// Checks everything: entries, bodies, tree, head, query tables, and what still waits in the spool.
///
/// # Errors
/// When there is nothing to check, or it cannot be read.
pub fn inspect(dir: &Path, inspection: Inspection<'_>) -> Result<Report, CannotCheck> {
    let database = dir.join("ledger.db");
    if !database.is_file() {
        return Err(CannotCheck(format!("there is no ledger in {}", dir.display())));
    }
    // Opened before the database is read: what is drained meanwhile is then seen here or there.
    let segments = pending::hold_segments(&dir.join("spool"))?;
    let conn = match open(&database) {
        Ok(conn) => conn,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    let derived = RefCell::new(Derived::new(&conn));
    let Inspection { mut progress, mut check, root_key } = inspection;
    let forgotten = match claims(&conn).map_err(Trouble::from) {
        Ok(forgotten) => forgotten,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    let mut words = words::Opener::of(dir, root_key);
    let opened = words.opened();
    let mut auditor = Auditor::with_check(Box::new(|seq, leaf, body| {
        check.as_mut().map_or(Ok(()), |check| check(seq, leaf, body))?;
        words.check(leaf, body)?;
        derived.borrow_mut().compare(seq, leaf)
    }))
    .knowing(forgotten);
    let mut told = |done, total| {
        if let Some(tell) = &mut progress {
            tell(done, total);
        }
    };
    let head = match log::feed_log(&conn, &mut auditor, &mut told) {
        Ok(head) => head,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => {
            auditor.note(auditor.entries(), None, problem);
            None
        }
    };
    let taken = derived.borrow_mut().end_of_log();
    // Behind everything: what is wrong with the log itself is worth more.
    let end = head.as_ref().map_or(0, |head| head.head.size).max(auditor.entries());
    for problem in derived.borrow().findings(head.as_ref()) {
        auditor.note(end, None, problem);
    }
    pending::feed_pending(segments, &taken, &mut auditor)?;
    let report = auditor.finish(head.as_ref().map(|head| &head.head));
    Ok(Report { opened: opened.get(), ..report })
}

fn open(database: &Path) -> Result<Connection, Trouble> {
    let conn = open_reader(database)?;
    let (found, known) = (user_version(&conn)?, i64::try_from(LEDGER.len()).unwrap_or(i64::MAX));
    if found == 0 {
        return Err(Trouble::Cannot(CannotCheck("the ledger is still being made".to_owned())));
    }
    if found > known {
        let sentence = format!("the ledger has schema {found}, this program knows {known}");
        return Err(Trouble::Cannot(CannotCheck(sentence)));
    }
    // One read transaction: a server that goes on writing changes nothing of what is seen.
    conn.execute_batch("BEGIN")?;
    Ok(conn)
}

fn unreadable(problem: String) -> Report {
    let mut auditor = Auditor::new();
    auditor.note(0, None, problem);
    auditor.finish(None)
}
