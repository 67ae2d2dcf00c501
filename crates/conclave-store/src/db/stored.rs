//! The log in SQLite as it is read again, row by row, to see whether the disk forgot something.

use super::open_reader;
use crate::error::StoreError;
use crate::options::SEGMENT_BYTES_MAX;
use crate::scrub::{StoredLog, StoredRow, TakeStored};
use conclave_ledger::TileId;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::PathBuf;

/// The file of a log. Every question has a connection of its own, so that no transaction stays open.
pub(crate) struct SqliteStored(pub(crate) PathBuf);

impl SqliteStored {
    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let asked = open_reader(&self.0).and_then(|conn| question(&conn));
        asked.map_err(StoreError::database(&self.0))
    }
}

impl StoredLog for SqliteStored {
    fn size(&mut self) -> Result<u64, StoreError> {
        self.ask(|conn| {
            let size = conn.query_row("SELECT size FROM log_head", [], |row| row.get::<_, i64>(0));
            Ok(size.optional()?.map_or(0, i64::cast_unsigned))
        })
    }

    fn read(&mut self, at: u64, end: u64, take: &mut TakeStored<'_>) -> Result<(), StoreError> {
        let sql = "SELECT e.seq,
                          CASE WHEN typeof(e.leaf) = 'blob' AND length(e.leaf) <= ?3 THEN e.leaf END,
                          CASE WHEN typeof(e.leaf_hash) = 'blob' THEN e.leaf_hash END,
                          CASE WHEN typeof(b.body) = 'blob' AND length(b.body) <= ?3 THEN b.body END,
                          b.seq
                   FROM log_entry e LEFT JOIN log_body b ON b.seq = e.seq
                   WHERE e.seq >= ?1 AND e.seq < ?2 ORDER BY e.seq";
        self.ask(|conn| {
            let mut statement = conn.prepare(sql)?;
            let bounds = [at, end, SEGMENT_BYTES_MAX].map(u64::cast_signed);
            let mut rows = statement.query(params![bounds[0], bounds[1], bounds[2]])?;
            while let Some(row) = rows.next()? {
                if !take(stored(row)?) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn root_at(&mut self, size: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT root FROM log_batch WHERE size = ?1";
        self.ask(|conn| conn.query_row(sql, [size.cast_signed()], |row| row.get(0)).optional())
    }

    fn tile(&mut self, id: TileId) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT hashes FROM log_tile
                   WHERE level = ?1 AND idx = ?2 AND typeof(hashes) = 'blob'
                   AND length(hashes) <= 8192";
        let place = params![id.level, id.index.cast_signed()];
        self.ask(|conn| conn.query_row(sql, place, |row| row.get(0)).optional())
    }
}

fn stored<'a>(row: &'a Row<'_>) -> rusqlite::Result<StoredRow<'a>> {
    let blob = |column| row.get_ref(column).map(|value| value.as_blob().ok());
    let body = row.get::<_, Option<i64>>(4)?.map(|_| blob(3)).transpose()?;
    let seq = row.get::<_, i64>(0)?.cast_unsigned();
    Ok(StoredRow { seq, leaf: blob(1)?, hash: blob(2)?, body })
}
