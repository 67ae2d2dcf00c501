//! Records in PostgreSQL.

use super::books::leave_note;
use super::link::{Conn, Connector, LinkError, Param};
use super::session::Session;
use crate::error::StoreError;
use crate::keys::Note;
use crate::records::{RecordRow, RecordTables};
use conclave_core::TenantId;
use conclave_engine::{RecordKey, RecordQuery};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long a question or a change may take.
const PATIENCE: Duration = Duration::from_secs(10);

const COLUMNS: &str =
    "kind, tenant, id, version, state, owner, rank, due_ms, changed_ms, subject, data";

const INSERT: &str =
    "INSERT INTO record (kind, tenant, id, version, state, owner, rank, due_ms, changed_ms,
     subject, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";

/// The records' table.
pub(crate) struct PgRecords(Session);

impl PgRecords {
    /// Connects when it is first used.
    pub(crate) const fn later(connector: Connector) -> Self {
        Self(Session::new(connector, PATIENCE))
    }
}

impl RecordTables for PgRecords {
    fn get(&mut self, key: &RecordKey) -> Result<Option<RecordRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM record WHERE kind = $1 AND tenant = $2 AND id = $3");
        let (kind, tenant) = (key.kind.as_str(), key.tenant.as_str());
        self.0.with(|conn| {
            let found = conn.row(&sql, &place(&kind, &tenant, &key.id))?;
            Ok(found.as_ref().map(record_row).transpose()?)
        })
    }

    fn put(&mut self, changes: &[(RecordRow, Option<Note>)]) -> Result<bool, StoreError> {
        self.0.with(|conn| {
            conn.begin()?;
            let put = put_all(conn, changes);
            // Nothing stays of changes of which one could not be made.
            let end = if matches!(put, Ok(true)) { conn.commit() } else { conn.run("ROLLBACK") };
            let put = put?;
            end.map(|()| put)
        })
    }

    fn list(&mut self, query: &RecordQuery) -> Result<Vec<RecordRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE kind = $1 AND ($2::text IS NULL OR tenant = $2)
             AND (cardinality($3::text[]) = 0 OR state = ANY($3))
             AND ($4::text IS NULL OR owner = $4) AND ($5::bigint IS NULL OR due_ms < $5)
             ORDER BY rank DESC, due_ms NULLS LAST, id COLLATE \"C\", tenant COLLATE \"C\"
             LIMIT $6 OFFSET $7"
        );
        let (kind, due_ms) = (query.kind.as_str(), query.due_before_ms.map(u64::cast_signed));
        let tenant = query.tenant.as_ref().map(TenantId::as_str);
        let (limit, offset) = (i64::from(query.limit), i64::from(query.offset));
        let values: [Param<'_>; 7] = [
            (&kind, Type::TEXT),
            (&tenant, Type::TEXT),
            (&query.states, Type::TEXT_ARRAY),
            (&query.owner, Type::TEXT),
            (&due_ms, Type::INT8),
            (&limit, Type::INT8),
            (&offset, Type::INT8),
        ];
        self.0.with(|conn| {
            let rows = conn.query(&sql, &values)?;
            Ok(rows.iter().map(record_row).collect::<Result<_, _>>()?)
        })
    }

    fn remove(&mut self, key: &RecordKey, version: i64) -> Result<bool, StoreError> {
        let (kind, tenant) = (key.kind.as_str(), key.tenant.as_str());
        let sql = "DELETE FROM record WHERE kind = $1 AND tenant = $2 AND id = $3 AND version = $4";
        let left = "SELECT 1 FROM record WHERE kind = $1 AND tenant = $2 AND id = $3";
        self.0.with(|conn| {
            conn.change(|conn| {
                let [a, b, c] = place(&kind, &tenant, &key.id);
                conn.execute(sql, &[a, b, c, (&version, Type::INT8)])?;
                Ok(conn.row(left, &place(&kind, &tenant, &key.id))?.is_none())
            })
        })
    }
}

fn place<'a>(kind: &'a &str, tenant: &'a &str, id: &'a String) -> [Param<'a>; 3] {
    [(kind, Type::TEXT), (tenant, Type::TEXT), (id, Type::TEXT)]
}

fn put_all(conn: &Conn, changes: &[(RecordRow, Option<Note>)]) -> Result<bool, LinkError> {
    for (row, note) in changes {
        if !put_one(conn, row)? {
            return Ok(false);
        }
        if let Some(note) = note {
            leave_note(conn, note)?;
        }
    }
    Ok(true)
}

/// A record of version 1 is new; another takes the place of the version before.
fn put_one(conn: &Conn, row: &RecordRow) -> Result<bool, LinkError> {
    let sql = if row.version == 1 {
        INSERT
    } else {
        "UPDATE record SET version = $4, state = $5, owner = $6, rank = $7, due_ms = $8,
         changed_ms = $9, subject = $10, data = $11
         WHERE kind = $1 AND tenant = $2 AND id = $3 AND version = $4 - 1"
    };
    write(conn, sql, row)
}

/// Enters a record of any version, within a transaction.
pub(super) fn insert_record(conn: &Conn, row: &RecordRow) -> Result<(), LinkError> {
    write(conn, INSERT, row).map(|_| ())
}

fn write(conn: &Conn, sql: &str, row: &RecordRow) -> Result<bool, LinkError> {
    let values: [Param<'_>; 11] = [
        (&row.kind, Type::TEXT),
        (&row.tenant, Type::TEXT),
        (&row.id, Type::TEXT),
        (&row.version, Type::INT8),
        (&row.state, Type::TEXT),
        (&row.owner, Type::TEXT),
        (&row.rank, Type::INT8),
        (&row.due_ms, Type::INT8),
        (&row.changed_ms, Type::INT8),
        (&row.subject, Type::BYTEA),
        (&row.data, Type::BYTEA),
    ];
    Ok(conn.execute(sql, &values)? == 1)
}

fn record_row(row: &Row) -> Result<RecordRow, tokio_postgres::Error> {
    Ok(RecordRow {
        kind: row.try_get(0)?,
        tenant: row.try_get(1)?,
        id: row.try_get(2)?,
        version: row.try_get(3)?,
        state: row.try_get(4)?,
        owner: row.try_get(5)?,
        rank: row.try_get(6)?,
        due_ms: row.try_get(7)?,
        changed_ms: row.try_get(8)?,
        subject: row.try_get(9)?,
        data: row.try_get(10)?,
    })
}
