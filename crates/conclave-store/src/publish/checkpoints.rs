//! Checkpoints and hand-overs as the database has them.

use super::keyfile::Handover;
use rusqlite::{Connection, OptionalExtension, params};

/// The largest note that is read.
const NOTE_BYTES_MAX: i64 = 64 << 10;

/// A checkpoint that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) size: u64,
    pub(crate) note: String,
    pub(crate) at_ms: u64,
}

/// The checkpoint with the largest size.
pub(crate) fn latest(conn: &Connection) -> rusqlite::Result<Option<Published>> {
    let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE octet_length(note) <= ?1
               ORDER BY size DESC LIMIT 1";
    let mut rows = conn.prepare_cached(sql)?;
    rows.query_row([NOTE_BYTES_MAX], published).optional()
}

pub(crate) fn published(row: &rusqlite::Row<'_>) -> rusqlite::Result<Published> {
    let (size, at_ms): (i64, i64) = (row.get(0)?, row.get(2)?);
    let (size, at_ms) = (size.cast_unsigned(), at_ms.cast_unsigned());
    Ok(Published { size, note: row.get(1)?, at_ms })
}

/// Stores a checkpoint unless one of its size is there; returns the one that is.
pub(super) fn store(conn: &Connection, new: &Published) -> rusqlite::Result<Published> {
    let insert = "INSERT INTO log_checkpoint VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let size = new.size.cast_signed();
    conn.prepare_cached(insert)?.execute(params![size, new.note, new.at_ms.cast_signed()])?;
    let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE size = ?1";
    conn.prepare_cached(sql)?.query_row([size], published)
}

/// The hand-overs among the first `size` entries.
pub(crate) fn handovers(conn: &Connection, size: u64) -> rusqlite::Result<Vec<Handover>> {
    // No key is that long; what is longer was not written by us and shows when it is parsed.
    let sql = "SELECT seq, CASE WHEN octet_length(old_vkey) <= 1024 THEN old_vkey ELSE '' END,
                      CASE WHEN octet_length(new_vkey) <= 1024 THEN new_vkey ELSE '' END
               FROM log_rotation WHERE seq < ?1 ORDER BY seq";
    let mut rows = conn.prepare_cached(sql)?;
    let rows = rows.query_map([size.cast_signed()], |row| {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        Ok(Handover { seq, old: row.get(1)?, new: row.get(2)? })
    })?;
    rows.collect()
}
