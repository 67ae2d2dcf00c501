//! The committed log in PostgreSQL, read within one snapshot.

use super::batch::decode_edge;
use super::link::{Conn, Connector, LinkError, Param};
use super::log::LEAF_OF_A;
use super::schema;
use super::url::DatabaseUrl;
use crate::error::StoreError;
use crate::publish::{Handover, Published};
use crate::reader::LedgerRow;
use crate::snapshot::{Snapshot, Snapshots, TakeCheckpoint, TakeLeaf, TakeRow, Work};
use conclave_core::AuditId;
use conclave_ledger::{Hash, TileId, decode_hashes};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The lock under which checkpoints are stored: "conclave" as a number, and one.
const CHECKPOINT_LOCK: i64 = 0x636f_6e63_6c61_7666;
/// How many connections are kept for the next question.
const IDLE_MAX: usize = 4;
/// How many rows with bodies are read together.
const ROWS: u64 = 64;

/// Snapshots of one database.
pub(crate) struct PgSnapshots {
    connector: Connector,
    idle: Mutex<Vec<Conn>>,
}

impl PgSnapshots {
    /// Connects when it is first asked.
    pub(crate) fn later(connector: Connector) -> Self {
        Self { connector, idle: Mutex::default() }
    }

    /// Connects, and checks that there is a ledger this program can read.
    ///
    /// # Errors
    /// When the server cannot be reached, or the ledger is of another version.
    pub(crate) fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
        let connector = Connector::new(url)?;
        let named = |error: LinkError| connector.named(&error);
        let conn = connector.connect(PATIENCE).map_err(named)?;
        let (found, known) = (schema::version(&conn).map_err(named)?, schema::known_version());
        if found == 0 {
            return Err(StoreError::Key(format!("there is no ledger in {url}")));
        }
        if found > known {
            return Err(StoreError::Newer { path: connector.shown(), found, known });
        }
        Ok(Self::later(connector))
    }

    fn connection(&self) -> Result<Conn, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle.filter(|conn| !conn.is_closed()) {
            Some(conn) => Ok(conn),
            None => self.connector.connect(PATIENCE).map_err(|error| self.connector.named(&error)),
        }
    }

    fn give_back(&self, conn: Conn) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(conn);
        }
    }
}

impl Snapshots for PgSnapshots {
    fn with(&self, work: &mut Work<'_>) -> Result<(), StoreError> {
        let named = |error: LinkError| self.connector.named(&error);
        let conn = self.connection()?;
        conn.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").map_err(named)?;
        work(&mut PgSnapshot(&conn))?;
        conn.run("ROLLBACK").map_err(named)?;
        self.give_back(conn);
        Ok(())
    }

    fn keep(&self, new: &Published) -> Result<Published, StoreError> {
        let named = |error: LinkError| self.connector.named(&error);
        let conn = self.connection()?;
        let kept = conn.change(|conn| keep_in_order(conn, new)).map_err(named)?;
        self.give_back(conn);
        Ok(kept)
    }

    fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Stores a checkpoint behind all others. Replicas sign side by side and their clocks differ; sizes
/// and times rise together all the same, and one that comes late is not needed any more.
fn keep_in_order(conn: &Conn, new: &Published) -> Result<Published, LinkError> {
    conn.query("SELECT pg_advisory_xact_lock($1)", &[(&CHECKPOINT_LOCK, Type::INT8)])?;
    let sql = "SELECT size, note, at_ms FROM log_checkpoint ORDER BY size DESC LIMIT 1";
    let last = conn.row(sql, &[])?.map(|row| published(&row)).transpose();
    let last = last.map_err(|error| LinkError::Told(error.to_string()))?;
    if let Some(last) = last.clone().filter(|last| last.size >= new.size) {
        return Ok(last);
    }
    let at_ms = new.at_ms.max(last.map_or(0, |last| last.at_ms));
    let (size, time) = (new.size.cast_signed(), at_ms.cast_signed());
    let values: [Param<'_>; 3] =
        [(&size, Type::INT8), (&new.note, Type::TEXT), (&time, Type::INT8)];
    conn.execute("INSERT INTO log_checkpoint VALUES ($1, $2, $3)", &values)?;
    Ok(Published { at_ms, ..new.clone() })
}

fn odd() -> StoreError {
    StoreError::Key("a stored row has a value of a wrong type".to_owned())
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|_| odd())
}

fn published(row: &Row) -> Result<Published, StoreError> {
    let (size, at_ms): (i64, i64) = (get(row, 0)?, get(row, 2)?);
    let (size, at_ms) = (size.cast_unsigned(), at_ms.cast_unsigned());
    Ok(Published { size, note: get(row, 1)?, at_ms })
}

/// The log as a connection's transaction sees it.
pub(super) struct PgSnapshot<'a>(pub(super) &'a Conn);

impl PgSnapshot<'_> {
    fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, StoreError> {
        self.0.query(sql, params).map_err(|error| self.0.connector().named(&error))
    }

    /// The hashes of the last tile of a level, if that is the one asked for.
    fn edge_tile(&self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        let rows = self.query("SELECT size, edge FROM log_head", &[])?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let size = get::<i64>(row, 0)?.cast_unsigned();
        let edge = decode_edge(get(row, 1)?, size).ok_or_else(odd)?;
        let last = size.checked_shr(u32::from(id.level) * 8).unwrap_or(0) / 256;
        let hashes = edge.level(id.level.into());
        Ok(if last == id.index { hashes.to_vec() } else { Vec::new() })
    }
}

impl Snapshot for PgSnapshot<'_> {
    fn head(&mut self) -> Result<Option<(u64, Hash)>, StoreError> {
        let rows = self.query("SELECT size, root FROM log_head", &[])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let root = get::<&[u8]>(row, 1)?.try_into().map_err(|_| odd())?;
        Ok(Some((get::<i64>(row, 0)?.cast_unsigned(), root)))
    }

    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        let sql = "SELECT hashes FROM log_tile
                   WHERE level = $1 AND idx = $2 AND octet_length(hashes) <= 8192";
        let (level, index) = (i16::from(id.level), id.index.cast_signed());
        let rows = self.query(sql, &[(&level, Type::INT2), (&index, Type::INT8)])?;
        let mut hashes = match rows.first() {
            Some(row) => decode_hashes(get(row, 0)?).unwrap_or_default(),
            None => self.edge_tile(id)?,
        };
        let width = usize::from(id.width);
        if hashes.len() < width {
            return Err(StoreError::Key(format!("the tile {} is missing or cut off", id.path())));
        }
        hashes.truncate(width);
        Ok(hashes)
    }

    fn leaves(&mut self, first: u64, end: u64, take: &mut TakeLeaf<'_>) -> Result<(), StoreError> {
        let mut next = first;
        while next < end {
            let sql = "SELECT first, ends, leaves FROM log_bundle
                       WHERE first <= $1 AND first + n > $1 ORDER BY first DESC LIMIT 1";
            let rows = self.query(sql, &[(&next.cast_signed(), Type::INT8)])?;
            let Some(row) = rows.first() else { return Ok(()) };
            let begins = get::<i64>(row, 0)?.cast_unsigned();
            let (ends, leaves): (Vec<i32>, &[u8]) = (get(row, 1)?, get(row, 2)?);
            let mut start = 0;
            for (seq, stop) in (begins..).zip(&ends) {
                let stop = usize::try_from(*stop).unwrap_or(0);
                if seq >= next && seq < end {
                    take(seq, leaves.get(start..stop).ok_or_else(odd)?)?;
                    next = seq + 1;
                }
                start = stop;
            }
            if ends.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn rows(&mut self, end: u64, take: &mut TakeRow<'_>) -> Result<(), StoreError> {
        for first in (0..end).step_by(usize::try_from(ROWS).unwrap_or(64)) {
            let until = end.min(first + ROWS);
            let sql = "SELECT seq, body FROM log_body WHERE seq >= $1 AND seq < $2";
            let (from, to) = (first.cast_signed(), until.cast_signed());
            let rows = self.query(sql, &[(&from, Type::INT8), (&to, Type::INT8)])?;
            let mut bodies = std::collections::HashMap::new();
            for row in &rows {
                bodies.insert(get::<i64>(row, 0)?.cast_unsigned(), get::<&[u8]>(row, 1)?);
            }
            self.leaves(first, until, &mut |seq, leaf| {
                take(LedgerRow { seq, leaf, body: bodies.get(&seq).copied() })
            })?;
        }
        Ok(())
    }

    fn latest(&mut self) -> Result<Option<Published>, StoreError> {
        let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE octet_length(note) <= 65536
                   ORDER BY size DESC LIMIT 1";
        self.query(sql, &[])?.first().map(published).transpose()
    }

    fn checkpoints(&mut self, take: &mut TakeCheckpoint<'_>) -> Result<(), StoreError> {
        let mut last = 0;
        loop {
            let sql = "SELECT size, note, at_ms FROM log_checkpoint WHERE size > $1
                       ORDER BY size LIMIT 512";
            let rows = self.query(sql, &[(&last, Type::INT8)])?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in &rows {
                let published = published(row)?;
                last = published.size.cast_signed();
                take(published)?;
            }
        }
    }

    fn handovers(&mut self, size: u64) -> Result<Vec<Handover>, StoreError> {
        let sql = "SELECT seq, old_vkey, new_vkey FROM log_rotation WHERE seq < $1 ORDER BY seq";
        let rows = self.query(sql, &[(&size.cast_signed(), Type::INT8)])?;
        let handovers = rows.iter().map(|row| {
            let seq = get::<i64>(row, 0)?.cast_unsigned();
            Ok(Handover { seq, old: get(row, 1)?, new: get(row, 2)? })
        });
        handovers.collect()
    }

    fn decision(
        &mut self,
        tenant: Option<u64>,
        id: AuditId,
    ) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let sql = format!(
            "SELECT a.seq, {LEAF_OF_A} FROM response_audit_log a
             WHERE a.id = $1 AND ($2::bigint IS NULL OR a.tenant = $2)"
        );
        let tenant = tenant.map(u64::cast_signed);
        let rows = self.query(&sql, &[(&id.0, Type::UUID), (&tenant, Type::INT8)])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let leaf: Option<Vec<u8>> = get(row, 1)?;
        Ok(Some((get::<i64>(row, 0)?.cast_unsigned(), leaf.ok_or_else(odd)?)))
    }
}
