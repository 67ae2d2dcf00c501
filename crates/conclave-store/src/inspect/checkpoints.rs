//! Compares every stored checkpoint with the log: its signature, its root, its place in time.
//!
//! **Invariant:** signatures are checked on a thread of their own, ahead of the entries; only so
//! many wait between the two.

use super::{CannotCheck, Trouble};
use crate::db::{open_to_check, published};
use crate::publish::{Handover, KeyFile, Published, handovers};
use conclave_ledger::{Auditor, Checkpoint, VerifierKey};
use rusqlite::Connection;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender};

/// How many checked notes may wait for the entries.
pub(crate) const AHEAD: usize = 1_024;
/// The largest note that is read.
const NOTE_BYTES_MAX: i64 = 64 << 10;
/// More hand-overs than any operator makes; a hostile log must not fill the memory.
const HANDOVERS_MAX: i64 = 10_000;

/// A stored note, opened as far as it could be.
pub(crate) struct Opened {
    size: u64,
    at_ms: u64,
    /// Beside the database rather than in it.
    beside: bool,
    checkpoint: Result<Checkpoint, String>,
}

/// The keys of a log and when each of them came into force.
pub(crate) struct KeyChain {
    first: VerifierKey,
    handovers: Vec<Handover>,
}

impl KeyChain {
    /// The chain of a data directory; `None` when nobody knows a key. A pinned key must be in it.
    pub(super) fn of(
        dir: &Path,
        handovers: Vec<Handover>,
        pinned: Option<&VerifierKey>,
    ) -> Result<Option<Self>, String> {
        let own = || KeyFile::load(dir).ok()?.verifiers(&[]).into_iter().next();
        Self::with_own(own, handovers, pinned)
    }

    /// The chain of a log whose own word about its key is `own`.
    pub(crate) fn with_own(
        own: impl FnOnce() -> Option<VerifierKey>,
        handovers: Vec<Handover>,
        pinned: Option<&VerifierKey>,
    ) -> Result<Option<Self>, String> {
        let told = handovers.first().map(|first| VerifierKey::parse(&first.old));
        let told = told.transpose().map_err(|error| format!("a stored rotation: {error}"))?;
        // A pinned key is believed before one that lies beside what it is to check.
        let Some(first) = told.or_else(|| pinned.cloned()).or_else(own) else { return Ok(None) };
        let chain = Self { first, handovers };
        let broken = chain.handovers.windows(2).find(|pair| pair[0].new != pair[1].old);
        if let Some([_, stranger]) = broken {
            let seq = stranger.seq;
            return Err(format!("entry {seq} hands over a key that was not in force"));
        }
        let known = |pinned: &VerifierKey| chain.keys().any(|key| key == pinned.to_string());
        match pinned {
            Some(pinned) if !known(pinned) => {
                Err(format!("the log is not signed by the key that was given, {pinned}"))
            }
            _ => Ok(Some(chain)),
        }
    }

    fn keys(&self) -> impl Iterator<Item = String> {
        let news = self.handovers.iter().map(|handover| handover.new.clone());
        std::iter::once(self.first.to_string()).chain(news)
    }

    /// The key that must have signed a checkpoint of this size.
    fn in_force(&self, size: u64) -> Result<VerifierKey, String> {
        let last = self.handovers.iter().rfind(|handover| handover.seq < size);
        match last {
            None => Ok(self.first.clone()),
            Some(handover) => VerifierKey::parse(&handover.new).map_err(|error| error.to_string()),
        }
    }

    /// Opens a stored checkpoint.
    pub(crate) fn opened(&self, stored: &Published) -> Opened {
        let Published { size, at_ms, .. } = *stored;
        Opened { size, at_ms, beside: false, checkpoint: self.open(stored) }
    }

    fn open(&self, stored: &Published) -> Result<Checkpoint, String> {
        let key = self.in_force(stored.size)?;
        let opened = Checkpoint::open(&stored.note, std::slice::from_ref(&key));
        let checkpoint = opened.map_err(|error| error.to_string())?;
        if checkpoint.size == stored.size {
            Ok(checkpoint)
        } else {
            Err(format!("it is stored for another size than it says, {}", checkpoint.size))
        }
    }
}

/// Opens the notes of a database in order and hands them over, the one beside it last.
pub(super) fn open_all(
    database: &Path,
    beside: Option<&str>,
    chain: &KeyChain,
    to: &SyncSender<Result<Opened, CannotCheck>>,
) {
    if let Err(error) = stream(database, beside, chain, to) {
        let message = format!("the checkpoints cannot be read: {error}");
        // Whoever is gone needs no answer.
        let _ = to.send(Err(CannotCheck(message)));
    }
}

fn stream(
    database: &Path,
    beside: Option<&str>,
    chain: &KeyChain,
    to: &SyncSender<Result<Opened, CannotCheck>>,
) -> rusqlite::Result<()> {
    let conn = open_to_check(database)?;
    let sql = "SELECT size, CASE WHEN octet_length(note) <= ?1 THEN note
               ELSE '' END, at_ms FROM log_checkpoint ORDER BY size";
    let mut rows = conn.prepare(sql)?;
    let mut last = 0;
    for stored in rows.query_map([NOTE_BYTES_MAX], published)? {
        let stored = stored?;
        last = stored.size;
        if to.send(Ok(chain.opened(&stored))).is_err() {
            return Ok(());
        }
    }
    send_beside(last, beside, chain, to);
    Ok(())
}

/// Hands over the note beside a database whose last one is over `last` entries, if it says more.
pub(crate) fn send_beside(
    last: u64,
    beside: Option<&str>,
    chain: &KeyChain,
    to: &SyncSender<Result<Opened, CannotCheck>>,
) {
    if let Some(note) = beside {
        let size = unchecked_size(note).unwrap_or(last);
        let stored = Published { size, note: note.to_owned(), at_ms: u64::MAX };
        if size > last || unchecked_size(note).is_none() {
            let checkpoint = chain.open(&stored);
            let opened = Opened { size, at_ms: u64::MAX, beside: true, checkpoint };
            let _ = to.send(Ok(opened));
        }
    }
}

fn unchecked_size(note: &str) -> Option<u64> {
    let note = conclave_ledger::SignedNote::parse(note).ok()?;
    Some(Checkpoint::parse(note.text()).ok()?.size)
}

/// Meets the checkpoints while the entries go by.
#[derive(Default)]
pub(crate) struct CheckpointCheck {
    from: Option<Receiver<Result<Opened, CannotCheck>>>,
    next: Option<Opened>,
    sound_until: u64,
    last_at_ms: u64,
    finding: Option<(u64, String)>,
}

impl CheckpointCheck {
    pub(crate) fn new(from: Receiver<Result<Opened, CannotCheck>>) -> Result<Self, Trouble> {
        let mut check = Self { from: Some(from), ..Self::default() };
        check.advance()?;
        Ok(check)
    }

    /// A check that has something to say from the start.
    pub(crate) fn failed(problem: String) -> Self {
        Self { finding: Some((0, problem)), ..Self::default() }
    }

    fn advance(&mut self) -> Result<(), Trouble> {
        let next = self.from.as_ref().and_then(|from| from.recv().ok()).transpose();
        self.next = next.map_err(Trouble::Cannot)?;
        Ok(())
    }

    /// Compares those that end at the entries taken so far.
    pub(crate) fn pass(&mut self, auditor: &mut Auditor<'_>) -> Result<(), Trouble> {
        while self.next.as_ref().is_some_and(|next| next.size <= auditor.entries()) {
            if let Some(opened) = self.next.take() {
                self.compare(&opened, auditor);
            }
            self.advance()?;
        }
        Ok(())
    }

    fn compare(&mut self, opened: &Opened, auditor: &mut Auditor<'_>) {
        let size = opened.size;
        let problem = match &opened.checkpoint {
            Err(error) => Some(error.clone()),
            Ok(_) if opened.at_ms < self.last_at_ms => {
                Some("it is older than the one before".into())
            }
            Ok(checkpoint) if size != auditor.entries() || checkpoint.root != auditor.root() => {
                let from = self.sound_until;
                Some(format!("the log is not the one it was signed for, from entry {from} on"))
            }
            Ok(_) => None,
        };
        self.last_at_ms = opened.at_ms;
        match problem {
            None => {
                self.sound_until = size;
                auditor.note_checkpoint();
            }
            Some(problem) => self.note(size, &problem),
        }
    }

    fn note(&mut self, size: u64, problem: &str) {
        let sentence = format!("the checkpoint over {size} entries: {problem}");
        self.finding.get_or_insert((self.sound_until, sentence));
    }

    /// What is left speaks of entries that are not there. Those stored after the log was opened,
    /// beyond `last`, are of a server that goes on meanwhile.
    pub(crate) fn finish(mut self, entries: u64, last: u64) -> Option<(u64, String)> {
        let left = self.next.take().filter(|next| next.beside || next.size <= last);
        if let Some(next) = left {
            let problem = if next.beside {
                format!(
                    "restored_database: the log has {entries}, its end was cut off or it was put back \
                     from an older copy"
                )
            } else {
                format!("the log has {entries}, its end was cut off")
            };
            self.sound_until = entries;
            self.note(next.size, &problem);
        }
        self.finding
    }
}

/// The hand-overs a database tells of, and the size of its last checkpoint.
pub(super) fn stored(conn: &Connection) -> Result<(Vec<Handover>, u64), Trouble> {
    let last = "SELECT max(size) FROM log_checkpoint";
    let last: Option<i64> = conn.query_row(last, [], |row| row.get(0))?;
    let count: i64 = conn.query_row("SELECT count(*) FROM log_rotation", [], |row| row.get(0))?;
    if count > HANDOVERS_MAX {
        return Err(Trouble::Damage(format!("the key was handed over {count} times")));
    }
    Ok((handovers(conn, u64::MAX >> 1)?, last.unwrap_or(0).cast_unsigned()))
}

/// The note beside the database; `None` when there is none.
pub(crate) fn beside(dir: &Path) -> Result<Option<String>, CannotCheck> {
    let path = dir.join("checkpoint");
    let read = std::fs::File::open(&path).and_then(|file| {
        let mut note = Vec::new();
        file.take(NOTE_BYTES_MAX.cast_unsigned()).read_to_end(&mut note)?;
        Ok(String::from_utf8_lossy(&note).into_owned())
    });
    match read {
        Ok(note) => Ok(Some(note)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CannotCheck(format!("{} cannot be read: {error}", path.display()))),
    }
}
