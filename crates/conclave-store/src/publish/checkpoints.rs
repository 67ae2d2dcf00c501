//! Checkpoints and hand-overs as the database has them.

use super::keyfile::Handover;
use rusqlite::Connection;

/// A checkpoint that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) size: u64,
    pub(crate) note: String,
    pub(crate) at_ms: u64,
}

/// Whether any checkpoint is stored.
pub(crate) fn was_signed(conn: &Connection) -> rusqlite::Result<bool> {
    conn.prepare("SELECT 1 FROM log_checkpoint LIMIT 1")?.exists([])
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
