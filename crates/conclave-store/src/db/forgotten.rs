//! Deletes words from the tables, as erasures and purges of the log say.
//!
//! **Invariant:** which words go depends on the log alone, so that tables made again from it come out
//! the same.

use super::columns::column;
use conclave_ledger::{Forgotten, Kind, Leaf, Purge};
use rusqlite::{Connection, params};

/// Deletes what the entry at a position speaks of, and notes that it does.
pub(crate) fn forget_words(conn: &Connection, seq: i64, leaf: &Leaf) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO log_forgotten VALUES (?1)")?.execute([seq])?;
    let tenant = leaf.draft.tenant.cast_signed();
    match (&leaf.draft.kind, leaf.draft.subject) {
        (Kind::SubjectErase, Some(subject)) => {
            let sql = "SELECT seq FROM response_audit_log
                       WHERE subject = ?1 AND tenant = ?2 AND seq < ?3 AND NOT anonymized";
            let mut rows = conn.prepare_cached(sql)?;
            let rows = rows.query_map(params![subject, tenant, seq], |row| row.get(0))?;
            delete(conn, &rows.collect::<rusqlite::Result<Vec<_>>>()?)
        }
        (Kind::RetentionPurge, _) => {
            let Some(purge) = Purge::from_public(&leaf.draft.public) else { return Ok(()) };
            delete(conn, &due(conn, (tenant, seq), &purge)?)
        }
        _ => Ok(()),
    }
}

fn due(conn: &Connection, (tenant, seq): (i64, i64), purge: &Purge) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT seq, timestamp_ms, subject FROM response_audit_log
               WHERE tenant = ?1 AND timestamp_ms BETWEEN ?2 AND ?3 AND seq < ?4
               AND NOT anonymized";
    let mut rows = conn.prepare_cached(sql)?;
    let values = params![tenant, column(purge.from_ms), column(purge.until_ms), seq];
    let mut rows = rows.query(values)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let at = row.get::<_, i64>(1)?.cast_unsigned();
        if purge.takes(at, row.get(2)?) {
            due.push(row.get(0)?);
        }
    }
    Ok(due)
}

fn delete(conn: &Connection, positions: &[i64]) -> rusqlite::Result<()> {
    let mut body = conn.prepare_cached("DELETE FROM log_body WHERE seq = ?1")?;
    let sql = "UPDATE response_audit_log SET anonymized = 1 WHERE seq = ?1";
    let mut row = conn.prepare_cached(sql)?;
    for seq in positions {
        body.execute([seq])?;
        row.execute([seq])?;
    }
    Ok(())
}

/// What the log claims to have forgotten; a schema of an earlier version could forget nothing.
pub(crate) fn claims(conn: &Connection) -> rusqlite::Result<Forgotten> {
    let mut forgotten = Forgotten::default();
    if super::user_version(conn)? < super::FORGETS_SINCE {
        return Ok(forgotten);
    }
    let sql = "SELECT e.seq, e.leaf FROM log_forgotten f JOIN log_entry e ON e.seq = f.seq
               WHERE typeof(e.leaf) = 'blob' AND length(e.leaf) < 1000000 ORDER BY e.seq";
    let mut rows = conn.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let leaf: Vec<u8> = row.get(1)?;
        forgotten.claim(row.get::<_, i64>(0)?.cast_unsigned(), &leaf);
    }
    Ok(forgotten)
}
