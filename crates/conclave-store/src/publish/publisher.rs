//! Signs what the log has come to, once a second if it grew.
//!
//! **Invariant:** only what was read back from the committed database is signed: the leaves since
//! the last checkpoint are hashed again, and the root they lead to must be that of the head and
//! that of the stored tiles.
//!
//! **Invariant:** no size ever gets two different notes, and no log is signed that does not begin
//! with what was signed before.

use super::checkpoints::{self, Published};
use super::keyfile::KeyFile;
use crate::db::{self, SqlTiles, TileTrouble};
use crate::durable;
use crate::error::StoreError;
use conclave_engine::Clock;
use conclave_ledger::{
    Checkpoint, CompactRange, ProofError, SignedNote, leaf_hash, range_of, root_at,
};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The last note, beside the database, so that a database that was put back is noticed.
pub(super) const LAST_FILE: &str = "checkpoint";

/// Why nothing was signed.
#[derive(Debug, Error)]
pub(crate) enum PublishError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the ledger's database cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    #[error(
        "{0}; nothing is signed until the right database is back: run `conclave ledger verify`"
    )]
    Refused(String),
}

impl From<ProofError<TileTrouble>> for PublishError {
    fn from(error: ProofError<TileTrouble>) -> Self {
        match error {
            ProofError::Source(TileTrouble::Database(error)) => Self::Database(error),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Signs checkpoints of one data directory.
pub(crate) struct Publisher {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    conn: Option<Connection>,
    /// What was signed last.
    range: Option<CompactRange>,
    signed: u64,
}

impl Publisher {
    pub(crate) fn new(dir: &Path, clock: Arc<dyn Clock>) -> Self {
        Self { dir: dir.to_owned(), clock, conn: None, range: None, signed: 0 }
    }

    /// Signs the log as it is, if it grew since the last time.
    pub(crate) fn publish(&mut self) -> Result<Option<Published>, PublishError> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => db::open_writer(&self.dir.join("ledger.db"), db::LEDGER)?,
        };
        // A connection that failed is not used again, nor is what was known before.
        let outcome = self.publish_through(&mut conn);
        match outcome {
            Ok(_) => self.conn = Some(conn),
            Err(_) => self.range = None,
        }
        outcome
    }

    fn publish_through(
        &mut self,
        conn: &mut Connection,
    ) -> Result<Option<Published>, PublishError> {
        let read = conn.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let range = match self.range.take() {
            Some(range) => range,
            None => self.recall(&read)?,
        };
        let Some((size, root)) = head(&read)? else {
            return self.unchanged(range);
        };
        if size < range.size() {
            return Err(PublishError::Refused(format!(
                "the ledger went back: a checkpoint over {} entries was signed, there are {size}",
                range.size()
            )));
        }
        if size == range.size() {
            let same = root == range.root();
            return if same { self.unchanged(range) } else { Err(changed(size)) };
        }
        let range = read_back(&read, range, size)?;
        let root_of_tiles = root_at(&mut SqlTiles(&read), size)?;
        if range.root() != root || root_of_tiles != root {
            return Err(changed(size));
        }
        let keys = KeyFile::load(&self.dir)?;
        let signers = keys.signers(&checkpoints::handovers(&read, size)?)?;
        let before = checkpoints::latest(&read)?.map_or(0, |last| last.at_ms);
        read.commit()?;
        let note = Checkpoint::new(keys.origin(), size, root).sign(&signers);
        let at_ms = self.clock.now_ms().max(before);
        let published = self.keep(conn, &Published { size, note, at_ms })?;
        (self.range, self.signed) = (Some(range), size);
        Ok(Some(published))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the answer of every branch that signs nothing")]
    fn unchanged(&mut self, range: CompactRange) -> Result<Option<Published>, PublishError> {
        self.range = Some(range);
        Ok(None)
    }

    /// The note is on disk beside the database before anybody can see it.
    fn keep(&self, conn: &Connection, new: &Published) -> Result<Published, PublishError> {
        let path = self.dir.join(LAST_FILE);
        let stored = checkpoints::latest(conn)?.filter(|stored| stored.size == new.size);
        if stored.is_none() {
            let written = durable::replace(&path, new.note.as_bytes());
            written.map_err(StoreError::file("write", &path))?;
        }
        Ok(checkpoints::store(conn, new)?)
    }

    /// What was signed last, by the file or the database, whichever is further; the log must still
    /// begin with it.
    fn recall(&self, conn: &Connection) -> Result<CompactRange, PublishError> {
        let path = self.dir.join(LAST_FILE);
        let file = match std::fs::read_to_string(&path) {
            Ok(note) => Some(read_note(&note).ok_or_else(|| {
                StoreError::damaged(&path, "it should hold a signed checkpoint; restore it")
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::file("read", &path)(error).into()),
        };
        let stored = checkpoints::latest(conn)?;
        let stored = stored.and_then(|stored| read_note(&stored.note));
        let last = [file, stored].into_iter().flatten().max_by_key(|checkpoint| checkpoint.size);
        let Some(last) = last else { return Ok(CompactRange::new()) };
        let there = head(conn)?.map_or(0, |(size, _)| size);
        if there < last.size {
            return Err(PublishError::Refused(format!(
                "the ledger went back: a checkpoint over {} entries was signed, there are {there}",
                last.size
            )));
        }
        let range = range_of(&mut SqlTiles(conn), last.size)?;
        if range.root() == last.root { Ok(range) } else { Err(changed(last.size)) }
    }
}

fn changed(size: u64) -> PublishError {
    let what = format!("the first {size} entries do not lead to the root that belongs to them");
    PublishError::Refused(what)
}

fn read_note(note: &str) -> Option<Checkpoint> {
    Checkpoint::parse(SignedNote::parse(note).ok()?.text()).ok()
}

fn head(conn: &Connection) -> rusqlite::Result<Option<(u64, [u8; 32])>> {
    let mut rows = conn.prepare_cached("SELECT size, root FROM log_head")?;
    let head = rows.query_row([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)));
    head.optional()
}

/// Hashes the leaves behind the range again.
fn read_back(
    conn: &Connection,
    mut range: CompactRange,
    size: u64,
) -> Result<CompactRange, PublishError> {
    let sql = "SELECT seq, leaf FROM log_entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
    let mut rows = conn.prepare_cached(sql)?;
    let mut rows = rows.query([range.size().cast_signed(), size.cast_signed()])?;
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        if seq != range.size() {
            return Err(PublishError::Refused(format!("entry {} is missing", range.size())));
        }
        range.append(leaf_hash(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?));
    }
    if range.size() == size { Ok(range) } else { Err(changed(size)) }
}
