//! Turns notes that any process left in the operational database into ledger entries.
//!
//! **Invariant:** each note becomes one entry. A note that an earlier run may have turned into an
//! entry without getting to remove it is looked up in the log first.

use crate::db::{OPS, open_writer};
use crate::error::StoreError;
use conclave_ledger::{Kind, Value, cbor};
use rusqlite::{Connection, params};
use std::collections::HashSet;
use std::path::Path;
use thiserror::Error;

/// How many notes are read together.
const PAGE: u32 = 100;

/// Where notes go.
pub(crate) trait OutboxSink {
    /// Whether the log has the entry of this note.
    fn has(&self, id: [u8; 16]) -> Result<bool, String>;
    /// Makes the entry durable.
    fn append(&self, kind: Kind, tenant: u64, public: Value) -> Result<(), String>;
}

/// Why notes could not be turned into entries now.
#[derive(Debug, Error)]
pub(crate) enum OutboxError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("{0}")]
    Sink(String),
}

/// The notes of the operational database.
pub(crate) struct Outbox {
    conn: Connection,
    /// Notes up to this one were there before this run.
    old_until: i64,
    /// Entries of this run whose notes could not be removed.
    appended: HashSet<[u8; 16]>,
}

struct Note {
    n: i64,
    id: [u8; 16],
    kind: String,
    tenant: i64,
    public: Vec<u8>,
}

impl Outbox {
    /// Opens the notes of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("ops.db");
        let conn = open_writer(&path, OPS)?;
        let last = conn.query_row("SELECT max(n) FROM outbox_entry", [], |row| row.get(0));
        let last: Option<i64> = last.map_err(StoreError::database(&path))?;
        Ok(Self { conn, old_until: last.unwrap_or(0), appended: HashSet::new() })
    }

    /// Turns all notes into entries; says how many entries were made.
    ///
    /// # Errors
    /// When the database or the ledger refuses; what was done stays done.
    pub(crate) fn pump(&mut self, sink: &dyn OutboxSink) -> Result<usize, OutboxError> {
        let mut made = 0;
        loop {
            let notes = self.read()?;
            if notes.is_empty() {
                return Ok(made);
            }
            for note in &notes {
                made += usize::from(self.settle(note, sink)?);
            }
        }
    }

    fn read(&self) -> rusqlite::Result<Vec<Note>> {
        let sql = "SELECT n, id, kind, tenant, public FROM outbox_entry ORDER BY n LIMIT ?1";
        let mut rows = self.conn.prepare_cached(sql)?;
        let notes = rows.query_map([PAGE], |row| {
            let (n, id, kind) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Note { n, id, kind, tenant: row.get(3)?, public: row.get(4)? })
        })?;
        notes.collect()
    }

    /// Makes the entry of a note unless it was made, and removes the note.
    fn settle(&mut self, note: &Note, sink: &dyn OutboxSink) -> Result<bool, OutboxError> {
        let old = note.n <= self.old_until;
        let done = self.appended.contains(&note.id)
            || (old && sink.has(note.id).map_err(OutboxError::Sink)?);
        if !done {
            let public = cbor::decode(&note.public).unwrap_or_else(|error| {
                tracing::error!(%error, "a note for the ledger cannot be read");
                Value::map([("outbox", note.id.to_vec().into()), ("unreadable", true.into())])
            });
            let tenant = note.tenant.cast_unsigned();
            sink.append(Kind::parse(&note.kind), tenant, public).map_err(OutboxError::Sink)?;
            self.appended.insert(note.id);
        }
        self.conn
            .prepare_cached("DELETE FROM outbox_entry WHERE n = ?1")?
            .execute(params![note.n])?;
        self.appended.remove(&note.id);
        Ok(!done)
    }
}
