//! Answers about proofs from the database.
//!
//! **Invariant:** every proof is for the size of a checkpoint that was signed and stored; nothing
//! beyond the last one is shown.

use crate::archive::SqliteArchive;
use crate::db::{SqlTiles, bundle_of};
use crate::publish::{Desk, KeyFile, handovers, latest};
use conclave_core::AuditId;
use conclave_engine::{ArchiveError, Consistency, Proofs, ReceiptState};
use conclave_ledger::{
    Receipt, TileId, TileSource, encode_hashes, prove_consistency, prove_inclusion, root_at,
};
use futures_util::future::{BoxFuture, FutureExt};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Answer<'a, T> = BoxFuture<'a, Result<T, ArchiveError>>;
type Found<T> = Result<T, ArchiveError>;

/// The public side of one data directory.
pub(crate) struct SqliteProofs {
    pub(crate) archive: Arc<SqliteArchive>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) dir: PathBuf,
}

fn broken(error: &impl ToString) -> ArchiveError {
    ArchiveError(error.to_string())
}

impl SqliteProofs {
    fn ask<T: Send + 'static>(
        &self,
        newest: bool,
        query: impl FnOnce(&Connection) -> Found<T> + Send + 'static,
    ) -> Answer<'_, T> {
        let asked = self.archive.ask(newest, move |conn| {
            // One snapshot: checkpoint, tiles and leaf belong together.
            let read = conn.unchecked_transaction()?;
            let found = query(&read);
            read.rollback().map(|()| found)
        });
        async move { asked.await? }.boxed()
    }
}

impl Proofs for SqliteProofs {
    fn checkpoint(&self) -> Answer<'_, Option<String>> {
        self.ask(false, |conn| Ok(last(conn)?.map(|(_, note)| note)))
    }

    fn vkeys(&self) -> Answer<'_, Vec<String>> {
        let dir = self.dir.clone();
        self.ask(false, move |conn| vkeys(&dir, conn))
    }

    fn tile(&self, id: TileId) -> Answer<'_, Option<Vec<u8>>> {
        self.ask(false, move |conn| {
            let reaches = |size| TileId::in_tree(id.level, id.index, size);
            let there = last(conn)?.and_then(|(size, _)| reaches(size));
            if there.is_none_or(|there| there.width < id.width) {
                return Ok(None);
            }
            let hashes = SqlTiles(conn).tile(id).map_err(|error| broken(&error))?;
            Ok(Some(encode_hashes(&hashes)))
        })
    }

    fn bundle(&self, index: u64, width: u16) -> Answer<'_, Option<Vec<u8>>> {
        self.ask(false, move |conn| {
            let there = last(conn)?.and_then(|(size, _)| TileId::in_tree(0, index, size));
            if there.is_none_or(|there| there.width < width) {
                return Ok(None);
            }
            let bundle = bundle_of(conn, index, width).map_err(|error| broken(&error))?;
            bundle.transpose().map_err(|error| broken(&error))
        })
    }

    fn receipt(&self, tenant: u64, id: AuditId) -> Answer<'_, ReceiptState> {
        let dir = self.dir.clone();
        self.ask(true, move |conn| {
            let sql = "SELECT r.seq, e.leaf FROM response_audit_log r
                       JOIN log_entry e ON e.seq = r.seq WHERE r.id = ?1 AND r.tenant = ?2";
            let mut rows = conn.prepare_cached(sql).map_err(|error| broken(&error))?;
            let found = rows.query_row(params![id.0.as_bytes(), tenant.cast_signed()], |row| {
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
            });
            match found.optional().map_err(|error| broken(&error))? {
                Some((seq, leaf)) => receipt_of(&dir, conn, seq, leaf),
                None => Ok(ReceiptState::Unknown),
            }
        })
    }

    fn consistency(&self, from: u64, to: u64) -> Answer<'_, Option<Consistency>> {
        self.ask(false, move |conn| {
            if from > to || last(conn)?.is_none_or(|(size, _)| to > size) {
                return Ok(None);
            }
            let mut tiles = SqlTiles(conn);
            let mut root = |size| root_at(&mut tiles, size).map_err(|error| broken(&error));
            let (from_root, to_root) = (root(from)?, root(to)?);
            let proof = prove_consistency(&mut tiles, from, to).map_err(|error| broken(&error))?;
            Ok(Some(Consistency { from_root, to_root, proof }))
        })
    }

    fn health(&self) -> Result<(), String> {
        self.desk.trouble().map_or(Ok(()), Err)
    }
}

fn last(conn: &Connection) -> Found<Option<(u64, String)>> {
    let last = latest(conn).map_err(|error| broken(&error))?;
    Ok(last.map(|published| (published.size, published.note)))
}

fn vkeys(dir: &Path, conn: &Connection) -> Found<Vec<String>> {
    let handovers = handovers(conn, u64::MAX >> 1).map_err(|error| broken(&error))?;
    let keys = KeyFile::load(dir).map_err(|error| broken(&error))?;
    Ok(keys.verifiers(&handovers).iter().map(ToString::to_string).collect())
}

/// The receipt of the entry at this place, if a checkpoint covers it.
pub(crate) fn receipt_of(
    dir: &Path,
    conn: &Connection,
    seq: u64,
    leaf: Vec<u8>,
) -> Found<ReceiptState> {
    let Some((size, checkpoint)) = last(conn)?.filter(|(size, _)| seq < *size) else {
        return Ok(ReceiptState::Pending);
    };
    let proof = prove_inclusion(&mut SqlTiles(conn), seq, size).map_err(|error| broken(&error))?;
    let vkey = vkeys(dir, conn)?.into_iter().next().unwrap_or_default();
    let receipt = Receipt { leaf, index: seq, proof, checkpoint, vkey };
    Ok(ReceiptState::Ready(Box::new(receipt)))
}
