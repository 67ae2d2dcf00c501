//! Records in SQLite, the operational database of a data directory.

use super::{RecordRow, RecordTables};
use crate::db::{OPS, open_writer};
use crate::error::StoreError;
use crate::keys::{Note, leave_note};
use conclave_core::TenantId;
use conclave_engine::{RecordKey, RecordQuery};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};

const COLUMNS: &str =
    "kind, tenant, id, version, state, owner, rank, due_ms, changed_ms, subject, data";

/// One connection to the operational database.
pub(crate) struct SqliteRecords {
    conn: Connection,
    path: PathBuf,
}

impl SqliteRecords {
    /// Opens `ops.db` of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("ops.db");
        Ok(Self { conn: open_writer(&path, OPS)?, path })
    }

    /// Hands over every record as it stands, to be moved elsewhere.
    ///
    /// # Errors
    /// When the database refuses, or a record is not taken.
    pub(crate) fn each(
        &self,
        take: &mut dyn FnMut(&RecordRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = StoreError::database(&self.path);
        let sql = format!("SELECT {COLUMNS} FROM record");
        let mut rows = self.conn.prepare(&sql).map_err(&failed)?;
        let mut rows = rows.query([]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            take(&record_row(row).map_err(&failed)?)?;
        }
        Ok(())
    }

    fn put_all(&mut self, changes: &[(RecordRow, Option<Note>)]) -> rusqlite::Result<bool> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (row, note) in changes {
            if !put_one(&tx, row)? {
                return Ok(false);
            }
            if let Some(note) = note {
                leave_note(&tx, note)?;
            }
        }
        tx.commit()?;
        Ok(true)
    }

    fn page(&self, query: &RecordQuery) -> rusqlite::Result<Vec<RecordRow>> {
        // Absent conditions are null and hold for everything; states come as one JSON array.
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE kind = ?1 AND (?2 IS NULL OR tenant = ?2)
             AND (?3 IS NULL OR state IN (SELECT value FROM json_each(?3)))
             AND (?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR due_ms < ?5)
             ORDER BY rank DESC, due_ms IS NULL, due_ms, id, tenant LIMIT ?6 OFFSET ?7"
        );
        let states =
            (!query.states.is_empty()).then(|| serde_json::json!(query.states).to_string());
        let values = params![
            query.kind.as_str(),
            query.tenant.as_ref().map(TenantId::as_str),
            states,
            query.owner,
            query.due_before_ms.map(u64::cast_signed),
            query.limit,
            query.offset
        ];
        let mut rows = self.conn.prepare_cached(&sql)?;
        rows.query_map(values, record_row)?.collect()
    }
}

impl RecordTables for SqliteRecords {
    fn get(&mut self, key: &RecordKey) -> Result<Option<RecordRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM record WHERE kind = ?1 AND tenant = ?2 AND id = ?3");
        let found = self
            .conn
            .prepare_cached(&sql)
            .and_then(|mut row| row.query_row(place(key), record_row).optional());
        found.map_err(StoreError::database(&self.path))
    }

    fn put(&mut self, changes: &[(RecordRow, Option<Note>)]) -> Result<bool, StoreError> {
        let put = self.put_all(changes);
        put.map_err(StoreError::database(&self.path))
    }

    fn list(&mut self, query: &RecordQuery) -> Result<Vec<RecordRow>, StoreError> {
        self.page(query).map_err(StoreError::database(&self.path))
    }

    fn remove(&mut self, key: &RecordKey, version: i64) -> Result<bool, StoreError> {
        let removed = (|| {
            let [kind, tenant, id] = place(key);
            let sql = "DELETE FROM record WHERE kind = ?1 AND tenant = ?2 AND id = ?3
                       AND version = ?4";
            self.conn.execute(sql, params![kind, tenant, id, version])?;
            let sql = "SELECT 1 FROM record WHERE kind = ?1 AND tenant = ?2 AND id = ?3";
            let left = self.conn.prepare_cached(sql)?.exists([kind, tenant, id])?;
            Ok(!left)
        })();
        removed.map_err(StoreError::database(&self.path))
    }
}

fn place(key: &RecordKey) -> [&str; 3] {
    [key.kind.as_str(), key.tenant.as_str(), &key.id]
}

/// A record of version 1 is new; another takes the place of the version before.
fn put_one(tx: &Transaction<'_>, row: &RecordRow) -> rusqlite::Result<bool> {
    let sql = if row.version == 1 {
        "INSERT INTO record (kind, tenant, id, version, state, owner, rank, due_ms, changed_ms,
         subject, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT DO NOTHING"
    } else {
        "UPDATE record SET version = ?4, state = ?5, owner = ?6, rank = ?7, due_ms = ?8,
         changed_ms = ?9, subject = ?10, data = ?11
         WHERE kind = ?1 AND tenant = ?2 AND id = ?3 AND version = ?4 - 1"
    };
    let RecordRow { kind, tenant, id, version, state, owner, rank, due_ms, .. } = row;
    let RecordRow { changed_ms, subject, data, .. } = row;
    let values =
        params![kind, tenant, id, version, state, owner, rank, due_ms, changed_ms, subject, data];
    Ok(tx.prepare_cached(sql)?.execute(values)? == 1)
}

fn record_row(row: &Row<'_>) -> rusqlite::Result<RecordRow> {
    Ok(RecordRow {
        kind: row.get(0)?,
        tenant: row.get(1)?,
        id: row.get(2)?,
        version: row.get(3)?,
        state: row.get(4)?,
        owner: row.get(5)?,
        rank: row.get(6)?,
        due_ms: row.get(7)?,
        changed_ms: row.get(8)?,
        subject: row.get(9)?,
        data: row.get(10)?,
    })
}
