//! Checks a log in PostgreSQL without changing anything, also while replicas write to it.
//!
//! **Invariant:** nothing stored is trusted, not even its type; whatever is wrong becomes a finding
//! with a place. Memory does not grow with the log: entries come by pages of a bounded size, and a
//! value that is larger than an entry can be is not read.

mod ahead;
mod bodies;
mod walk;

pub(super) use bodies::{Bodies, body_page};

use super::link::{Conn, Connector, LinkError};
use super::schema;
use super::url::DatabaseUrl;
use super::vault::{PgVault, WaitingKeys};
use super::words::claims;
use crate::inspect::{
    AHEAD, CannotCheck, CheckpointCheck, HeldSegment, Inspection, KeyChain, Noted, Opened, Opener,
    Trouble, beside, feed_pending, hold_segments, note_cut, note_files, noted, send_beside,
};
use crate::options::SEGMENT_BYTES_MAX;
use crate::publish::{Handover, Published};
use crate::spool::spool_dirs;
use crate::vault::{Book, RootKey};
use ahead::Ahead;
use conclave_ledger::{Auditor, Report, VerifierKey};
use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use walk::{Seen, Walk};

/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many bytes of leaves, and of bodies, are read together.
const PAGE_BYTES: i64 = 8 << 20;
const VALUE_BYTES_MAX: i64 = SEGMENT_BYTES_MAX.cast_signed();

impl From<LinkError> for Trouble {
    fn from(error: LinkError) -> Self {
        // A statement that was right when the schema was written means the schema was changed.
        if error.is_about_content() {
            Self::Damage(format!("the database is damaged: {error}"))
        } else {
            Self::Cannot(CannotCheck(format!("the database cannot be read: {error}")))
        }
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Trouble> {
    let got = row.try_get(at);
    got.map_err(|_| Trouble::Damage("a column of the log has another type".to_owned()))
}

/// Checks everything: entries, bodies, tree, head, query tables; and what waits in the spool of a
/// data directory, if one is given.
///
/// # Errors
/// When there is nothing to check, or it cannot be read.
pub fn inspect_database(
    url: &DatabaseUrl,
    dir: Option<&Path>,
    inspection: Inspection<'_>,
) -> Result<Report, CannotCheck> {
    // Read before the database is: what is drained or signed meanwhile is then seen here or there.
    let kept = dir.map(beside).transpose()?.flatten();
    let noted = dir.map(noted).transpose()?.unwrap_or_default();
    let segments = match dir {
        Some(dir) if dir.join("spool").is_dir() => {
            let spools = spool_dirs(dir).map_err(|error| CannotCheck(error.to_string()))?;
            hold_segments(&spools)?
        }
        _ => Vec::new(),
    };
    let conn = open(url)?;
    std::thread::scope(|scope| {
        let pinned = inspection.vkey.as_ref();
        let chain = match key_chain(&conn, pinned, kept.is_some()) {
            Err(Trouble::Cannot(cannot)) => return Err(cannot),
            Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
            Ok(chain) => chain,
        };
        let checkpoints = match chain {
            Chain::Unsigned => CheckpointCheck::default(),
            Chain::Broken(problem) => CheckpointCheck::failed(problem),
            Chain::Of(chain) => {
                let (to, from) = sync_channel(AHEAD);
                scope.spawn(move || send_checkpoints(url, kept.as_deref(), &chain, &to));
                match CheckpointCheck::new(from) {
                    Err(Trouble::Cannot(cannot)) => return Err(cannot),
                    Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
                    Ok(check) => check,
                }
            }
        };
        let snapshot = match ahead::snapshot(&conn) {
            Err(Trouble::Cannot(cannot)) => return Err(cannot),
            Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
            Ok(snapshot) => snapshot,
        };
        let (to, from) = sync_channel(1);
        scope.spawn(move || ahead::send_pages(url, &snapshot, &to));
        let opener = opener(url, dir, inspection.root_key.clone());
        let local = Local { segments, noted, dir };
        walk((&conn, &Ahead(from)), local, (checkpoints, opener), inspection)
    })
}

/// What a data directory holds of a log that stands elsewhere.
struct Local<'a> {
    segments: Vec<HeldSegment>,
    noted: Noted,
    dir: Option<&'a Path>,
}

fn unreadable(problem: String) -> Report {
    let mut auditor = Auditor::new();
    auditor.note(0, None, problem);
    auditor.finish(None)
}

/// Who signed a log.
enum Chain {
    /// Nobody yet.
    Unsigned,
    /// Somebody who had no right to.
    Broken(String),
    /// These keys.
    Of(Box<KeyChain>),
}

fn key_chain(conn: &Conn, pinned: Option<&VerifierKey>, is_signed: bool) -> Result<Chain, Trouble> {
    let sql = "SELECT seq, old_vkey, new_vkey FROM log_rotation
               WHERE octet_length(old_vkey) + octet_length(new_vkey) <= 2048
               ORDER BY seq LIMIT 10001";
    let rows = conn.query(sql, &[])?;
    if rows.len() > 10_000 {
        return Err(Trouble::Damage("the key was handed over too often to be true".to_owned()));
    }
    let handovers = rows.iter().map(|row| {
        let seq: i64 = get(row, 0)?;
        Ok(Handover { seq: seq.cast_unsigned(), old: get(row, 1)?, new: get(row, 2)? })
    });
    let handovers = handovers.collect::<Result<Vec<_>, Trouble>>()?;
    let own = super::shared::first_key(conn)?;
    let own = || own.and_then(|key| VerifierKey::parse(&key).ok());
    match KeyChain::with_own(own, handovers, pinned) {
        Ok(Some(chain)) => Ok(Chain::Of(Box::new(chain))),
        Ok(None) if !is_signed && last_checkpoint(conn)? == 0 => Ok(Chain::Unsigned),
        Ok(None) => {
            let sentence = "nobody says which key signed; give it with --vkey";
            Err(Trouble::Cannot(CannotCheck(sentence.to_owned())))
        }
        Err(problem) => Ok(Chain::Broken(problem)),
    }
}

fn last_checkpoint(conn: &Conn) -> Result<u64, Trouble> {
    let row = conn.row("SELECT coalesce(max(size), 0) FROM log_checkpoint", &[])?;
    Ok(row.map_or(Ok(0), |row| get::<i64>(&row, 0))?.cast_unsigned())
}

/// Opens the checkpoints in order, on a connection of its own, ahead of the entries.
fn send_checkpoints(
    url: &DatabaseUrl,
    beside: Option<&str>,
    chain: &KeyChain,
    to: &SyncSender<Result<Opened, CannotCheck>>,
) {
    if let Err(error) = stream_checkpoints(url, beside, chain, to) {
        // Whoever is gone needs no answer.
        let _ = to.send(Err(error));
    }
}

fn stream_checkpoints(
    url: &DatabaseUrl,
    beside: Option<&str>,
    chain: &KeyChain,
    to: &SyncSender<Result<Opened, CannotCheck>>,
) -> Result<(), CannotCheck> {
    let cannot = |error: LinkError| CannotCheck(format!("the checkpoints cannot be read: {error}"));
    let conn = open(url)?;
    let mut last = 0_i64;
    loop {
        let sql = "SELECT size, CASE WHEN octet_length(note) <= 65536 THEN note ELSE '' END, at_ms
                   FROM log_checkpoint WHERE size > $1 ORDER BY size LIMIT 512";
        let rows = conn.query(sql, &[(&last, Type::INT8)]).map_err(cannot)?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let read = || -> Result<Published, tokio_postgres::Error> {
                let (size, at_ms): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
                let (size, at_ms) = (size.cast_unsigned(), at_ms.cast_unsigned());
                Ok(Published { size, note: row.try_get(1)?, at_ms })
            };
            let stored = read().map_err(|error| cannot(error.into()))?;
            last = stored.size.cast_signed();
            if to.send(Ok(chain.opened(&stored))).is_err() {
                return Ok(());
            }
        }
    }
    send_beside(last.cast_unsigned(), beside, chain, to);
    Ok(())
}

/// Takes the whole log, page by page.
fn walk(
    (conn, ahead): (&Conn, &Ahead),
    local: Local<'_>,
    (checkpoints, mut words): (CheckpointCheck, Opener),
    inspection: Inspection<'_>,
) -> Result<Report, CannotCheck> {
    let Inspection { progress, mut check, vkey, .. } = inspection;
    let forgotten = match claims(conn).map_err(Trouble::from) {
        Ok(forgotten) => forgotten,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    let opened = words.opened();
    let seen = RefCell::new(Seen::knowing(forgotten.clone()));
    let auditor = Auditor::with_check(Box::new(|seq, leaf, body| {
        seen.borrow_mut().note(seq, leaf);
        words.check(leaf, body)?;
        check.as_mut().map_or(Ok(()), |check| check(seq, leaf, body))
    }))
    .knowing(forgotten);
    // Asked first: after damage the transaction gives no answers any more.
    let last = match last_checkpoint(conn) {
        Ok(last) => last,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => return Ok(unreadable(problem)),
    };
    let mut walk = Walk::new(conn, auditor, &seen, progress, checkpoints);
    let head = match walk.whole_log(ahead) {
        Ok(head) => head,
        Err(Trouble::Cannot(cannot)) => return Err(cannot),
        Err(Trouble::Damage(problem)) => {
            let at = walk.auditor.entries();
            walk.auditor.note(at, None, problem);
            None
        }
    };
    let mut auditor = walk.finish(last, vkey.is_some());
    let Local { segments, noted, dir } = local;
    let taken = seen.borrow_mut().end();
    let reached = feed_pending(segments, &taken, &mut auditor)?;
    let end = head.as_ref().map_or(0, |head| head.size).max(auditor.entries());
    note_cut(&noted, &reached, end, &mut auditor);
    if let Some(dir) = dir {
        note_files(dir, end, &mut auditor);
    }
    let report = auditor.finish(head.as_ref());
    Ok(Report { opened: opened.get(), ..report })
}

/// Opens words with the root key of a replica's directory, or the one that is given.
fn opener(url: &DatabaseUrl, dir: Option<&Path>, root_key: Option<RootKey>) -> Opener {
    let book = || {
        let dir = dir?;
        let waiting = WaitingKeys::beside(dir)?;
        let tables = PgVault::later(Connector::new(url).ok()?, dir, waiting, None);
        Book::over_to_read(dir, Box::new(tables), root_key)
    };
    Opener::over(book())
}

fn open(url: &DatabaseUrl) -> Result<Conn, CannotCheck> {
    let cannot = |error: &dyn std::fmt::Display| CannotCheck(error.to_string());
    let connector = Connector::new(url).map_err(|error| cannot(&error))?;
    let conn = connector.connect(PATIENCE);
    let conn = conn.map_err(|error| cannot(&connector.named(&error)))?;
    // One snapshot: replicas that go on writing change nothing of what is seen.
    let begun = conn.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    begun.map_err(|error| cannot(&connector.named(&error)))?;
    let found = schema::version(&conn).map_err(|error| cannot(&connector.named(&error)))?;
    let known = schema::known_version();
    if found == 0 {
        return Err(CannotCheck(format!("there is no ledger in {url}")));
    }
    if found > known {
        let sentence = format!("the ledger has schema {found}, this program knows {known}");
        return Err(CannotCheck(sentence));
    }
    if found < known {
        let sentence = format!(
            "the ledger has schema {found}, this program makes {known} of it: start a gateway of \
             this version on it once, or check it with the program that wrote it"
        );
        return Err(CannotCheck(sentence));
    }
    Ok(conn)
}
