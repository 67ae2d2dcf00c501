//! Sums of what was used, by PostgreSQL.

use super::session::Session;
use crate::error::StoreError;
use crate::usage::Sum;
use tokio_postgres::types::Type;

/// What a tenant used within a time, by day, model and outcome.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub(crate) fn pg_usage(
    session: &mut Session,
    tenant: i64,
    from_ms: i64,
    to_ms: i64,
) -> Result<Vec<Sum>, StoreError> {
    let sql = "SELECT timestamp_ms / 86400000, model, outcome, count(*),
                      sum(regeneration_attempts)::bigint, sum(cost_microusd)::bigint
               FROM response_audit_log
               WHERE tenant = $1 AND timestamp_ms >= $2 AND timestamp_ms < $3
               GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    let values =
        [(&tenant as _, Type::INT8), (&from_ms as _, Type::INT8), (&to_ms as _, Type::INT8)];
    session.with(|conn| {
        let rows = conn.query(sql, &values)?;
        let sums = rows.iter().map(|row| {
            let (day, model, outcome) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok((day, model, outcome, row.try_get(3)?, row.try_get(4)?, row.try_get(5)?))
        });
        sums.collect()
    })
}
