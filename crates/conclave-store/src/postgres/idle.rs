//! Deleting keys of people of whom nothing is left, where several replicas may hold them.
//!
//! **Invariant:** a key is marked first. It is deleted no sooner than ten minutes later, when every
//! replica that may have it has let go of it, has handed over what it sealed with it, and has said so;
//! and only if nobody has asked for it since. Whoever asks for a marked key takes the mark away before
//! it is read.

use super::epoch::key_id;
use super::link::{Conn, LinkError, Param};
use crate::vault::KeyId;
use tokio_postgres::types::Type;

/// How many keys are marked, or deleted, at one look.
const KEYS_MAX: i64 = 1_000;
/// So long a key stays marked before it is deleted.
const WAIT_MS: u64 = 10 * 60 * 1000;
/// A replica that was not seen for so long is not waited for.
const REPLICA_DAYS: i32 = 30;

/// Marks keys that were made up to a time and open nothing any more.
pub(super) fn mark(
    conn: &Conn,
    tenant: i64,
    (until_ms, now_ms): (u64, u64),
) -> Result<u64, LinkError> {
    let sql = "INSERT INTO idle_key (id, tenant, marked_ms)
               SELECT k.id, k.tenant, $3 FROM subject_key k
               WHERE k.tenant = $1 AND k.created_ms <= $2 AND k.day IS NULL
               AND NOT EXISTS (SELECT 1 FROM idle_key i WHERE i.id = k.id)
               AND NOT EXISTS (SELECT 1 FROM response_audit_log r JOIN log_body b ON b.seq = r.seq
                               WHERE r.subject = k.id AND r.tenant = k.tenant)
               ORDER BY k.id LIMIT $4 ON CONFLICT DO NOTHING";
    let time = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let (until, now) = (time(until_ms), time(now_ms));
    let values: [Param<'_>; 4] =
        [(&tenant, Type::INT8), (&until, Type::INT8), (&now, Type::INT8), (&KEYS_MAX, Type::INT8)];
    conn.execute(sql, &values)
}

/// Deletes keys that were marked long enough ago; says which.
pub(super) fn delete(conn: &Conn, tenant: i64, now_ms: u64) -> Result<Vec<KeyId>, LinkError> {
    let before = i64::try_from(now_ms.saturating_sub(WAIT_MS)).unwrap_or(i64::MAX);
    let sql = "WITH due AS (
                   DELETE FROM idle_key WHERE id IN (
                       SELECT i.id FROM idle_key i
                       WHERE i.tenant = $1 AND i.marked_ms <= $2
                       AND i.n <= (SELECT min(idle_seen) FROM replica_lease
                                   WHERE until > clock_timestamp() - make_interval(days => $4))
                       ORDER BY i.n LIMIT $3)
                   RETURNING id)
               DELETE FROM subject_key k USING due WHERE k.id = due.id
               AND NOT EXISTS (SELECT 1 FROM response_audit_log r JOIN log_body b ON b.seq = r.seq
                               WHERE r.subject = k.id AND r.tenant = k.tenant)
               RETURNING k.id";
    let values: [Param<'_>; 4] = [
        (&tenant, Type::INT8),
        (&before, Type::INT8),
        (&KEYS_MAX, Type::INT8),
        (&REPLICA_DAYS, Type::INT4),
    ];
    conn.query(sql, &values)?.iter().map(|row| key_id(row, 0)).collect()
}

/// Takes the mark away from a key that somebody asks for.
pub(super) fn unmark(conn: &Conn, id: KeyId) -> Result<(), LinkError> {
    let sql = "DELETE FROM idle_key WHERE id = $1";
    conn.execute(sql, &[(&id.as_slice(), Type::BYTEA)]).map(|_| ())
}

/// The keys that were marked since a number, and the number of the last.
pub(super) fn since(conn: &Conn, seen: i64) -> Result<(Vec<KeyId>, i64), LinkError> {
    let sql = "SELECT id, n FROM idle_key WHERE n > $1 ORDER BY n LIMIT 10000";
    let rows = conn.query(sql, &[(&seen, Type::INT8)])?;
    let last = rows.last().map_or(Ok(seen), |row| row.try_get(1))?;
    let ids = rows.iter().map(|row| key_id(row, 0)).collect::<Result<_, _>>()?;
    Ok((ids, last))
}

/// Notes that a replica has let go of what was marked up to a number.
pub(super) fn acknowledge(conn: &Conn, replica: [u8; 8], seen: i64) -> Result<(), LinkError> {
    let sql = "UPDATE replica_lease SET idle_seen = $2 WHERE replica = $1 AND idle_seen < $2";
    let values: [Param<'_>; 2] = [(&replica.as_slice(), Type::BYTEA), (&seen, Type::INT8)];
    conn.execute(sql, &values).map(|_| ())
}
