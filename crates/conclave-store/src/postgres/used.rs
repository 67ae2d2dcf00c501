//! Sums of what was used, by PostgreSQL.

use super::link::Param;
use super::session::Session;
use crate::error::StoreError;
use crate::usage::{SUMS, Spoken, Summed};
use conclave_engine::UsageAsk;
use tokio_postgres::types::Type;

/// What a tenant used within a time.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub(crate) fn pg_usage(session: &mut Session, ask: &UsageAsk) -> Result<Vec<Summed>, StoreError> {
    let sql = Spoken::Postgres.question(&ask.by);
    let [tenant, from_ms, to_ms] = [ask.tenant, ask.from_ms, ask.to_ms].map(u64::cast_signed);
    let (limit, offset) = (i64::from(ask.limit), i64::from(ask.offset));
    let subject = ask.subject.as_ref().map(<[u8; 16]>::as_slice);
    let values: [Param<'_>; 6] = [
        (&tenant, Type::INT8),
        (&from_ms, Type::INT8),
        (&to_ms, Type::INT8),
        (&subject, Type::BYTEA),
        (&limit, Type::INT8),
        (&offset, Type::INT8),
    ];
    session.with(|conn| {
        let rows = conn.query(&sql, &values)?;
        let sums = rows.iter().map(|row| {
            let of = (0..ask.by.len()).map(|at| row.try_get(at)).collect::<Result<_, _>>()?;
            let mut sums = [None; SUMS];
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = row.try_get(ask.by.len() + at)?;
            }
            Ok((of, sums))
        });
        sums.collect()
    })
}
