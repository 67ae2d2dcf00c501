//! What replicas tell each other about a database that was put back from an older copy.
//!
//! **Invariant:** whoever asks others to wait does so under the lock of the head: a batch that comes after
//! has read the question.

use super::link::{Conn, LinkError};
use crate::drain::Acceptance;
use tokio_postgres::types::Type;

/// Takes the lock under which entries are appended.
const LOCK: &str = "SELECT 1 FROM log_head WHERE id = 1 FOR UPDATE";

/// Up to which size somebody has asked to wait.
pub(super) fn awaited(conn: &Conn) -> Result<u64, LinkError> {
    let row = conn.row("SELECT coalesce(max(size), 0) FROM restore_wait", &[])?;
    Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(0).cast_unsigned())
}

/// Whether no other replica has entries in the log.
pub(super) fn is_alone(conn: &Conn, replica: [u8; 8]) -> Result<bool, LinkError> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM log_replica WHERE replica <> $1)";
    let row = conn.row(sql, &[(&replica.as_slice(), Type::BYTEA)])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
}

/// Asks others to wait, or takes that back.
pub(super) fn ask_to_wait(conn: &Conn, replica: [u8; 8], size: u64) -> Result<(), LinkError> {
    let (replica, size) = (replica.as_slice(), size.cast_signed());
    conn.change(|conn| {
        if size == 0 {
            let sql = "DELETE FROM restore_wait WHERE replica = $1";
            return conn.execute(sql, &[(&replica, Type::BYTEA)]).map(|_| ());
        }
        conn.row(LOCK, &[])?;
        let sql = "INSERT INTO restore_wait VALUES ($1, $2)
                   ON CONFLICT (replica) DO UPDATE SET size = excluded.size";
        conn.execute(sql, &[(&replica, Type::BYTEA), (&size, Type::INT8)]).map(|_| ())
    })
}

/// The last acceptance after number `above`.
pub(super) fn accepted(conn: &Conn, above: u64) -> Result<Option<Acceptance>, LinkError> {
    let sql = "SELECT number, old_size FROM restore_accepted WHERE number > $1
               ORDER BY number DESC LIMIT 1";
    let row = conn.row(sql, &[(&above.cast_signed(), Type::INT8)])?;
    let number = |row: &tokio_postgres::Row, at| {
        row.try_get::<_, i64>(at).map(i64::cast_unsigned).map_err(LinkError::from)
    };
    let read = |row: tokio_postgres::Row| {
        Ok(Acceptance { number: number(&row, 0)?, old_size: number(&row, 1)? })
    };
    row.map(read).transpose()
}

/// Accepts the log as it is; returns the number of that. Nobody need wait any more.
///
/// The number is a time: one that counted would be given again by a database that was put back from
/// before an acceptance, and whoever had followed that one would not follow the next.
pub(super) fn accept(
    conn: &Conn,
    (new_size, old_size): (u64, u64),
    above: u64,
) -> Result<u64, LinkError> {
    conn.change(|conn| {
        conn.row(LOCK, &[])?;
        conn.execute("DELETE FROM restore_wait", &[])?;
        let sql = "INSERT INTO restore_accepted (number, new_size, old_size)
                   OVERRIDING SYSTEM VALUE
                   SELECT greatest(coalesce(max(number), 0) + 1, $3 + 1,
                                   (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $1, $2
                   FROM restore_accepted
                   RETURNING number";
        let sizes = [
            (&new_size.cast_signed() as _, Type::INT8),
            (&old_size.cast_signed() as _, Type::INT8),
            (&above.cast_signed() as _, Type::INT8),
        ];
        let row = conn.row(sql, &sizes)?;
        Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(0).cast_unsigned())
    })
}
