//! Signs what the log has come to, once a second if it grew.
//!
//! **Invariant:** only what was read back from the committed database is signed: the leaves since
//! the last checkpoint are hashed again, and the root they lead to must be that of the head and
//! that of the stored tiles.
//!
//! **Invariant:** no size ever gets two different notes, and no log is signed that does not begin
//! with what was signed before.

use super::checkpoints::Published;
use super::keyfile::KeyFile;
use crate::durable;
use crate::error::StoreError;
use crate::snapshot::{Snapshot, Snapshots, Tiles, ask};
use conclave_engine::Clock;
use conclave_failpoint as failpoint;
use conclave_ledger::{
    Checkpoint, CompactRange, ProofError, SignedNote, leaf_hash, range_of, root_at,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The last note, beside the database, so that a database that was put back is noticed.
pub(crate) const LAST_FILE: &str = "checkpoint";

/// Why nothing was signed.
#[derive(Debug, Error)]
pub(crate) enum PublishError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "{0}; nothing is signed until the right database is back: run `conclave ledger verify`"
    )]
    Refused(String),
}

impl From<ProofError<StoreError>> for PublishError {
    fn from(error: ProofError<StoreError>) -> Self {
        match error {
            // A tile that is not there is a sentence of its own.
            ProofError::Source(StoreError::Key(missing)) => Self::Refused(missing),
            ProofError::Source(error) => Self::Store(error),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Signs checkpoints of one log.
pub(crate) struct Publisher {
    dir: PathBuf,
    snapshots: Arc<dyn Snapshots>,
    clock: Arc<dyn Clock>,
    /// What was signed last.
    range: Option<CompactRange>,
}

/// What a look at the log came to.
enum Look {
    /// Nothing to sign.
    Same(CompactRange),
    /// A note to keep, if nobody else has kept one of its size, and what it covers.
    Sign(Published, CompactRange, bool),
}

impl Publisher {
    pub(crate) fn new(dir: &Path, snapshots: Arc<dyn Snapshots>, clock: Arc<dyn Clock>) -> Self {
        Self { dir: dir.to_owned(), snapshots, clock, range: None }
    }

    /// Signs the log as it is, if it grew since the last time.
    pub(crate) fn publish(&mut self) -> Result<Option<Published>, PublishError> {
        // After a failure nothing that was known before is believed.
        let known = self.range.take();
        let snapshots = Arc::clone(&self.snapshots);
        let look = ask(&*snapshots, |snapshot| Ok(self.look(snapshot, known.clone())))?;
        match look? {
            Look::Same(range) => {
                self.range = Some(range);
                Ok(None)
            }
            Look::Sign(new, range, is_known) => {
                let path = self.dir.join(LAST_FILE);
                // The note is on disk beside the database before anybody can see it.
                if !is_known {
                    let written = durable::replace(&path, new.note.as_bytes());
                    written.map_err(StoreError::file("write", &path))?;
                }
                failpoint::reach("checkpoint.signed");
                let kept = self.snapshots.keep(&new)?;
                failpoint::reach("checkpoint.kept");
                // One that another replica signed is remembered too: a database that is put back must not
                // get past whoever has only read it.
                if is_known {
                    let written = durable::replace(&path, kept.note.as_bytes());
                    written.map_err(StoreError::file("write", &path))?;
                }
                self.range = Some(range);
                Ok(Some(kept))
            }
        }
    }

    /// How many entries were there at the last look that found nothing wrong.
    pub(crate) fn size(&self) -> Option<u64> {
        self.range.as_ref().map(CompactRange::size)
    }

    fn look(
        &self,
        log: &mut dyn Snapshot,
        known: Option<CompactRange>,
    ) -> Result<Look, PublishError> {
        let range = match known {
            Some(range) => range,
            None => self.recall(log)?,
        };
        let Some((size, root)) = log.head()?.filter(|(size, _)| *size > 0) else {
            return if range.size() == 0 { Ok(Look::Same(range)) } else { Err(back(&range, 0)) };
        };
        if size < range.size() {
            return Err(back(&range, size));
        }
        if size == range.size() {
            return if root == range.root() { Ok(Look::Same(range)) } else { Err(changed(size)) };
        }
        let range = read_back(log, range, size)?;
        if range.root() != root || root_at(&mut Tiles(log), size)? != root {
            return Err(changed(size));
        }
        let keys = KeyFile::load(&self.dir)?;
        let signers = keys.signers(&log.handovers(size)?)?;
        let last = log.latest()?;
        let note = Checkpoint::new(keys.origin(), size, root).sign(&signers);
        let at_ms = self.clock.now_ms().max(last.as_ref().map_or(0, |last| last.at_ms));
        let is_known = last.is_some_and(|last| last.size == size);
        Ok(Look::Sign(Published { size, note, at_ms }, range, is_known))
    }

    /// What was signed last, by the file or the database, whichever is further; the log must still
    /// begin with it.
    fn recall(&self, log: &mut dyn Snapshot) -> Result<CompactRange, PublishError> {
        let file = last_note(&self.dir)?;
        let stored = log.latest()?.and_then(|stored| read_note(&stored.note));
        let last = [file, stored].into_iter().flatten().max_by_key(|checkpoint| checkpoint.size);
        let Some(last) = last else { return Ok(CompactRange::new()) };
        let there = log.head()?.map_or(0, |(size, _)| size);
        if there < last.size {
            return Err(PublishError::Refused(format!(
                "the ledger went back: a checkpoint over {} entries was signed, there are {there}",
                last.size
            )));
        }
        let range = range_of(&mut Tiles(log), last.size)?;
        if range.root() == last.root { Ok(range) } else { Err(changed(last.size)) }
    }
}

/// The last checkpoint that this directory knows of.
///
/// # Errors
/// When the file cannot be read or does not hold one.
pub(crate) fn last_note(dir: &Path) -> Result<Option<Checkpoint>, StoreError> {
    let path = dir.join(LAST_FILE);
    match std::fs::read_to_string(&path) {
        Ok(note) => {
            let damaged = "it should hold a signed checkpoint; restore it";
            read_note(&note).map(Some).ok_or_else(|| StoreError::damaged(&path, damaged))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::file("read", &path)(error)),
    }
}

fn back(range: &CompactRange, there: u64) -> PublishError {
    PublishError::Refused(format!(
        "the ledger went back: a checkpoint over {} entries was signed, there are {there}",
        range.size()
    ))
}

fn changed(size: u64) -> PublishError {
    let what = format!("the first {size} entries do not lead to the root that belongs to them");
    PublishError::Refused(what)
}

fn read_note(note: &str) -> Option<Checkpoint> {
    Checkpoint::parse(SignedNote::parse(note).ok()?.text()).ok()
}

/// Hashes the leaves behind the range again.
fn read_back(
    log: &mut dyn Snapshot,
    mut range: CompactRange,
    size: u64,
) -> Result<CompactRange, PublishError> {
    let mut missing = None;
    log.leaves(range.size(), size, &mut |seq, leaf| {
        if seq == range.size() {
            range.append(leaf_hash(leaf));
        } else {
            missing.get_or_insert(range.size());
        }
        Ok(())
    })?;
    match missing {
        Some(seq) => Err(PublishError::Refused(format!("entry {seq} is missing"))),
        None if range.size() == size => Ok(range),
        None => Err(changed(size)),
    }
}
