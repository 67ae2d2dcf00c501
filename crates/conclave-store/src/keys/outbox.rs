//! Turns notes that any process left in the operational database into ledger entries.
//!
//! **Invariant:** each note becomes one entry. A note that an earlier run may have turned into an
//! entry without getting to remove it is looked up in the log first.

use super::book::Note;
use crate::db::{OPS, id_in, open_writer};
use crate::error::StoreError;
use conclave_ledger::{Kind, Value, cbor};
use rusqlite::{Connection, params};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How many notes are read together.
const PAGE: u32 = 100;

/// Where notes go.
pub(crate) trait OutboxSink {
    /// Whether the log has the entry of this note.
    fn has(&self, id: [u8; 16]) -> Result<bool, String>;
    /// Makes the entry durable.
    fn append(&self, kind: Kind, tenant: u64, public: Value) -> Result<(), String>;
}

/// Where notes wait.
pub(crate) trait NoteTable: Send {
    /// Some of the notes that are ours to turn into entries, oldest first.
    ///
    /// # Errors
    /// When the database refuses.
    fn waiting(&mut self, at_most: u32) -> Result<Vec<Waiting>, StoreError>;

    /// Removes a note whose entry is durable.
    ///
    /// # Errors
    /// When the database refuses.
    fn remove(&mut self, n: i64) -> Result<(), StoreError>;

    /// The last note that an earlier run may have turned into an entry.
    ///
    /// # Errors
    /// When the database refuses.
    fn last(&mut self) -> Result<i64, StoreError>;
}

/// A note that waits.
pub(crate) struct Waiting {
    pub(crate) n: i64,
    pub(crate) id: [u8; 16],
    pub(crate) kind: String,
    pub(crate) tenant: i64,
    pub(crate) public: Vec<u8>,
}

impl Waiting {
    /// The note as it was left.
    pub(crate) fn into_note(self) -> Note {
        let (kind, tenant) = (Kind::parse(&self.kind), self.tenant.cast_unsigned());
        Note { id: self.id, kind, tenant, public: self.public, created_ms: 0 }
    }
}

/// The notes of the operational database.
pub(crate) struct Outbox {
    table: Box<dyn NoteTable>,
    /// Notes up to this one were there before this run; absent until it could be asked.
    old_until: Option<i64>,
    /// Entries of this run whose notes could not be removed.
    appended: HashSet<[u8; 16]>,
}

impl Outbox {
    /// Over the notes of a table.
    pub(crate) fn over(table: Box<dyn NoteTable>) -> Self {
        Self { table, old_until: None, appended: HashSet::new() }
    }

    /// Turns all notes into entries; says how many entries were made.
    ///
    /// # Errors
    /// When the database or the ledger refuses; what was done stays done.
    pub(crate) fn pump(&mut self, sink: &dyn OutboxSink) -> Result<usize, String> {
        let said = |error: StoreError| error.to_string();
        let old_until = match self.old_until {
            Some(known) => known,
            None => *self.old_until.insert(self.table.last().map_err(said)?),
        };
        let mut made = 0;
        loop {
            let notes = self.table.waiting(PAGE).map_err(said)?;
            if notes.is_empty() {
                return Ok(made);
            }
            for note in &notes {
                made += usize::from(self.settle(note, note.n <= old_until, sink)?);
            }
        }
    }

    /// Makes the entry of a note unless it was made, and removes the note.
    fn settle(&mut self, note: &Waiting, old: bool, sink: &dyn OutboxSink) -> Result<bool, String> {
        let done = self.appended.contains(&note.id) || (old && sink.has(note.id)?);
        if !done {
            let public = cbor::decode(&note.public).unwrap_or_else(|error| {
                tracing::error!(%error, "a note for the ledger cannot be read");
                Value::map([("outbox", note.id.to_vec().into()), ("unreadable", true.into())])
            });
            sink.append(Kind::parse(&note.kind), note.tenant.cast_unsigned(), public)?;
            self.appended.insert(note.id);
        }
        self.table.remove(note.n).map_err(|error| error.to_string())?;
        self.appended.remove(&note.id);
        Ok(!done)
    }
}

/// Notes in the operational database of a data directory.
pub(crate) struct SqliteNotes {
    conn: Connection,
    path: PathBuf,
}

impl SqliteNotes {
    /// Opens the notes of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("ops.db");
        Ok(Self { conn: open_writer(&path, OPS)?, path })
    }

    fn read(&self, at_most: u32) -> rusqlite::Result<Vec<Waiting>> {
        let sql = "SELECT n, id, kind, tenant, public FROM outbox_entry ORDER BY n LIMIT ?1";
        let mut rows = self.conn.prepare_cached(sql)?;
        let notes = rows.query_map([at_most], |row| {
            let n: i64 = row.get(0)?;
            Ok(Waiting {
                n,
                id: id_in(row, 1, format_args!("outbox_entry {n}"))?,
                kind: row.get(2)?,
                tenant: row.get(3)?,
                public: row.get(4)?,
            })
        })?;
        notes.collect()
    }
}

impl NoteTable for SqliteNotes {
    fn waiting(&mut self, at_most: u32) -> Result<Vec<Waiting>, StoreError> {
        self.read(at_most).map_err(StoreError::database(&self.path))
    }

    fn remove(&mut self, n: i64) -> Result<(), StoreError> {
        let removed = self
            .conn
            .prepare_cached("DELETE FROM outbox_entry WHERE n = ?1")
            .and_then(|mut delete| delete.execute(params![n]));
        removed.map(|_| ()).map_err(StoreError::database(&self.path))
    }

    fn last(&mut self) -> Result<i64, StoreError> {
        let last = self.conn.query_row("SELECT max(n) FROM outbox_entry", [], |row| row.get(0));
        let last: Option<i64> = last.map_err(StoreError::database(&self.path))?;
        Ok(last.unwrap_or(0))
    }
}
