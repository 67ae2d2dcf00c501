//! The committed log in SQLite, read within one transaction.

use super::{LEDGER, SqlTiles, open_reader, open_to_check, reopen_writer};
use crate::error::StoreError;
use crate::publish::{Handover, Published};
use crate::reader::LedgerRow;
use crate::snapshot::{Snapshot, Snapshots, TakeCheckpoint, TakeLeaf, TakeRow, Work};
use conclave_core::AuditId;
use conclave_ledger::{Hash, TileId, TileSource};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The largest note that is read.
const NOTE_BYTES_MAX: i64 = 64 << 10;
/// How many connections are kept for the next question.
const IDLE_MAX: usize = 4;

/// Snapshots of one file.
pub(crate) struct SqliteSnapshots {
    path: PathBuf,
    open: fn(&Path) -> rusqlite::Result<Connection>,
    idle: Mutex<Vec<Connection>>,
}

impl SqliteSnapshots {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: open_reader, idle: Mutex::default() }
    }

    /// Of a file that may stand where nothing can be written.
    pub(crate) fn to_check(path: &Path) -> Self {
        Self { open: open_to_check, ..Self::new(path) }
    }
}

impl Snapshots for SqliteSnapshots {
    fn with(&self, work: &mut Work<'_>) -> Result<(), StoreError> {
        let failed = StoreError::database(&self.path);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => (self.open)(&self.path).map_err(&failed)?,
        };
        {
            let read = conn.unchecked_transaction().map_err(&failed)?;
            work(&mut SqliteSnapshot { conn: &read, path: &self.path })?;
            read.rollback().map_err(&failed)?;
        }
        // A connection that failed is not used again: the file may have been replaced.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(conn);
        }
        Ok(())
    }

    fn keep(&self, new: &Published) -> Result<Published, StoreError> {
        let failed = StoreError::database(&self.path);
        let conn = reopen_writer(&self.path, LEDGER)?;
        let insert = "INSERT INTO log_checkpoint VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let (size, at_ms) = (new.size.cast_signed(), new.at_ms.cast_signed());
        conn.execute(insert, params![size, new.note, at_ms]).map_err(&failed)?;
        let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE size = ?1";
        conn.query_row(sql, [size], published).map_err(&failed)
    }

    fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The last to leave must be a writer: a reader cannot move the write-ahead log into the file.
        if let Err(error) = reopen_writer(&self.path, LEDGER) {
            tracing::warn!(%error, "the write-ahead log stays beside the ledger");
        }
    }
}

/// A checkpoint's row.
pub(crate) fn published(row: &Row<'_>) -> rusqlite::Result<Published> {
    let (size, at_ms): (i64, i64) = (row.get(0)?, row.get(2)?);
    let (size, at_ms) = (size.cast_unsigned(), at_ms.cast_unsigned());
    Ok(Published { size, note: row.get(1)?, at_ms })
}

struct SqliteSnapshot<'a> {
    conn: &'a Connection,
    path: &'a Path,
}

impl SqliteSnapshot<'_> {
    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        StoreError::database(self.path)
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn head(&mut self) -> Result<Option<(u64, Hash)>, StoreError> {
        let head = self.conn.query_row("SELECT size, root FROM log_head", [], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        });
        head.optional().map_err(self.failed())
    }

    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        let tile = SqlTiles(self.conn).tile(id);
        tile.map_err(|error| StoreError::Key(error.to_string()))
    }

    fn leaves(&mut self, first: u64, end: u64, take: &mut TakeLeaf<'_>) -> Result<(), StoreError> {
        let failed = self.failed();
        let sql = "SELECT seq, leaf FROM log_entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
        let mut rows = self.conn.prepare_cached(sql).map_err(&failed)?;
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        let mut rows = rows.query(params![first.cast_signed(), end]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let seq = row.get::<_, i64>(0).map_err(&failed)?.cast_unsigned();
            take(seq, row.get_ref(1).map_err(&failed)?.as_blob().map_err(|_| odd())?)?;
        }
        Ok(())
    }

    fn rows(&mut self, end: u64, take: &mut TakeRow<'_>) -> Result<(), StoreError> {
        let failed = self.failed();
        let sql = "SELECT e.seq, e.leaf, b.body FROM log_entry e LEFT JOIN log_body b
                   ON b.seq = e.seq WHERE e.seq < ?1 ORDER BY e.seq";
        let mut rows = self.conn.prepare(sql).map_err(&failed)?;
        let mut rows = rows.query([end.cast_signed()]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let seq = row.get::<_, i64>(0).map_err(&failed)?.cast_unsigned();
            let leaf = row.get_ref(1).map_err(&failed)?.as_blob().map_err(|_| odd())?;
            let body = row.get_ref(2).map_err(&failed)?.as_blob_or_null().map_err(|_| odd())?;
            take(LedgerRow { seq, leaf, body })?;
        }
        Ok(())
    }

    fn latest(&mut self) -> Result<Option<Published>, StoreError> {
        let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE octet_length(note) <= ?1
                   ORDER BY size DESC LIMIT 1";
        let mut rows = self.conn.prepare_cached(sql).map_err(self.failed())?;
        rows.query_row([NOTE_BYTES_MAX], published).optional().map_err(self.failed())
    }

    fn checkpoints(&mut self, take: &mut TakeCheckpoint<'_>) -> Result<(), StoreError> {
        let failed = self.failed();
        let sql = "SELECT size, note, at_ms FROM log_checkpoint ORDER BY size";
        let mut rows = self.conn.prepare(sql).map_err(&failed)?;
        for row in rows.query_map([], published).map_err(&failed)? {
            take(row.map_err(&failed)?)?;
        }
        Ok(())
    }

    fn handovers(&mut self, size: u64) -> Result<Vec<Handover>, StoreError> {
        let read = crate::publish::handovers(self.conn, size);
        read.map_err(self.failed())
    }

    fn decision(
        &mut self,
        tenant: Option<u64>,
        id: AuditId,
    ) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let sql = "SELECT r.seq, e.leaf FROM response_audit_log r JOIN log_entry e ON e.seq = r.seq
                   WHERE r.id = ?1 AND (?2 IS NULL OR r.tenant = ?2)";
        let mut rows = self.conn.prepare_cached(sql).map_err(self.failed())?;
        let values = params![id.0.as_bytes(), tenant.map(u64::cast_signed)];
        let found =
            rows.query_row(values, |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)));
        found.optional().map_err(self.failed())
    }
}

fn odd() -> StoreError {
    StoreError::Key("a stored row has a value of a wrong type".to_owned())
}
