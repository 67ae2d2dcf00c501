//! Checks a data directory without changing anything in it, also while a server works in it.
//!
//! **Invariant:** nothing stored is trusted, not even its type; whatever is wrong becomes a finding
//! with a place and never a panic, and no value is read that is larger than an entry can be.
//!
//! **Invariant:** "it is bad" and "it could not be looked at" are different answers.

mod checkpoints;
mod derived;
mod files;
mod log;
mod pending;
mod tiles;
mod words;

pub(crate) use checkpoints::{AHEAD, CheckpointCheck, KeyChain, Opened, beside, send_beside};
pub(crate) use derived::Taken;
pub(crate) use files::{note_cut, note_files};
pub(crate) use pending::{HeldSegment, feed_pending, hold_segments};
pub(crate) use words::Opener;

use crate::db::{LEDGER, TILES_SINCE, claims, open_to_check, user_version};
use crate::replica::Identity;
use crate::spool::{acknowledged, spool_dirs};
use crate::vault::RootKey;
use conclave_ledger::{Auditor, ExtraCheck, Report, VerifierKey};
use derived::Derived;
use rusqlite::{Connection, ErrorCode};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::Scope;
use thiserror::Error;
use tiles::TileCheck;

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
    /// The key that must have signed the checkpoints; without one, the key beside them is believed.
    pub vkey: Option<VerifierKey>,
    /// Opens sealed words where the root key is kept elsewhere.
    pub root_key: Option<RootKey>,
}

/// What goes along with the entries.
struct Along<'a> {
    tiles: TileCheck<'a>,
    checkpoints: CheckpointCheck,
    /// The size of the last checkpoint when the log was opened.
    last: u64,
}

/// Something went wrong while reading: a finding, or no answer at all.
pub(crate) enum Trouble {
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
    // Read before the database is opened: what it speaks of was committed before.
    let kept = beside(dir)?;
    let noted = noted(dir)?;
    // Opened before the database is read: what is drained meanwhile is then seen here or there.
    let spools = spool_dirs(dir).map_err(|error| CannotCheck(error.to_string()))?;
    let segments = hold_segments(&spools)?;
    let conn = match open(&database) {
        Ok(conn) => conn,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    std::thread::scope(|scope| {
        let along = match go_along(scope, dir, &conn, kept.as_deref(), inspection.vkey.as_ref()) {
            Ok(along) => along,
            Err(Trouble::Cannot(cannot)) => return Err(cannot),
            Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
        };
        walk(dir, &conn, Waiting { segments, noted }, inspection, along)
    })
}

/// What a directory holds apart from the log.
struct Waiting {
    segments: Vec<HeldSegment>,
    noted: Noted,
}

/// Up to which number entries were acknowledged, and whose.
pub(crate) type Noted = BTreeMap<Identity, u64>;

/// What a directory notes of that.
pub(crate) fn noted(dir: &Path) -> Result<Noted, CannotCheck> {
    acknowledged(dir).map_err(|error| CannotCheck(format!("acknowledged cannot be read: {error}")))
}

/// Starts what goes along with the entries: tiles, and checkpoints on a thread of their own.
fn go_along<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    dir: &'env Path,
    conn: &'env Connection,
    beside: Option<&'env str>,
    pinned: Option<&VerifierKey>,
) -> Result<Along<'env>, Trouble> {
    if user_version(conn)? < TILES_SINCE {
        let (tiles, checkpoints) = (TileCheck::new(None), CheckpointCheck::default());
        return Ok(Along { tiles, checkpoints, last: 0 });
    }
    let (handovers, last) = checkpoints::stored(conn)?;
    let tiles = TileCheck::new(Some(conn));
    let checkpoints = match KeyChain::of(dir, handovers, pinned) {
        Ok(Some(chain)) => {
            let (to, from) = sync_channel(AHEAD);
            scope.spawn(move || {
                checkpoints::open_all(&dir.join("ledger.db"), beside, &chain, &to);
            });
            CheckpointCheck::new(from)?
        }
        Ok(None) if last == 0 && beside.is_none() => CheckpointCheck::default(),
        Ok(None) => {
            let sentence = "there is no ledger.key beside the ledger; give its key with --vkey";
            return Err(Trouble::Cannot(CannotCheck(sentence.to_owned())));
        }
        Err(problem) => CheckpointCheck::failed(problem),
    };
    Ok(Along { tiles, checkpoints, last })
}

/// Takes the whole log, entry by entry.
fn walk(
    dir: &Path,
    conn: &Connection,
    waiting: Waiting,
    inspection: Inspection<'_>,
    mut along: Along<'_>,
) -> Result<Report, CannotCheck> {
    let Inspection { mut progress, mut check, vkey, root_key } = inspection;
    let forgotten = match claims(conn).map_err(Trouble::from) {
        Ok(forgotten) => forgotten,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    let derived = RefCell::new(Derived::new(conn, forgotten.clone()));
    let mut words = Opener::of(dir, root_key);
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
    let head = match log::feed_log(conn, &mut auditor, &mut along, &mut told) {
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
    note_late_findings(&mut auditor, along, vkey.is_some());
    let Waiting { segments, noted } = waiting;
    let reached = feed_pending(segments, &taken, &mut auditor)?;
    note_cut(&noted, &reached, end, &mut auditor);
    note_files(dir, end, &mut auditor);
    let report = auditor.finish(head.as_ref().map(|head| &head.head));
    Ok(Report { opened: opened.get(), ..report })
}

/// Tiles and checkpoints name a range of entries, so they only speak where no entry is known to be
/// bad.
fn note_late_findings(auditor: &mut Auditor<'_>, along: Along<'_>, pinned: bool) {
    let entries = auditor.entries();
    let unsigned = pinned && along.last == 0 && entries > 0;
    let unsigned = unsigned.then(|| (0, "no checkpoint is stored for this log".to_owned()));
    let signed = along.checkpoints.finish(entries, along.last).or(unsigned);
    let findings = [along.tiles.finish(), signed].into_iter().flatten();
    if let Some((seq, problem)) =
        findings.min_by_key(|(seq, _)| *seq).filter(|_| auditor.is_sound())
    {
        auditor.note(seq, None, problem);
    }
}

fn open(database: &Path) -> Result<Connection, Trouble> {
    let conn = open_to_check(database)?;
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
