//! Reads a ledger in place, also while a server works in it: for the command line.
//!
//! **Invariant:** everything is read in one snapshot, and only what the last checkpoint covers.

use crate::db::{LEDGER, SqlTiles, TILES_SINCE, bundle_of, open_reader, user_version};
use crate::error::StoreError;
use crate::proofs::receipt_of;
use crate::publish::{KeyFile, Published, handovers, latest, published};
use conclave_core::AuditId;
use conclave_engine::ReceiptState;
use conclave_ledger::{Hash, TileId, TileSource, VerifierKey};
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};

/// A ledger as it was when it was opened.
pub struct LedgerReader {
    conn: Connection,
    dir: PathBuf,
    last: Option<Published>,
}

/// One row of a ledger.
pub struct LedgerRow<'a> {
    /// Its position.
    pub seq: u64,
    /// The exact bytes of the leaf.
    pub leaf: &'a [u8],
    /// The body beside it.
    pub body: Option<&'a [u8]>,
}

impl LedgerReader {
    /// Opens the ledger of a data directory.
    ///
    /// # Errors
    /// When there is none, or it is of another version.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let database = dir.join("ledger.db");
        if !database.is_file() {
            let message = format!("there is no ledger in {}", dir.display());
            return Err(StoreError::Key(message));
        }
        let failed = StoreError::database(&database);
        let conn = open_reader(&database).map_err(&failed)?;
        let found = user_version(&conn).map_err(&failed)?;
        let known = i64::try_from(LEDGER.len()).unwrap_or(i64::MAX);
        if found > known {
            return Err(StoreError::Newer { path: database, found, known });
        }
        if found < TILES_SINCE {
            let message = "it has no checkpoints yet; start the gateway on it once".to_owned();
            return Err(StoreError::Database { path: database, message });
        }
        conn.execute_batch("BEGIN").map_err(&failed)?;
        let last = latest(&conn).map_err(&failed)?;
        Ok(Self { conn, dir: dir.to_owned(), last })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        StoreError::database(&self.dir.join("ledger.db"))
    }

    /// The last checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.note.as_str())
    }

    /// How many entries the last checkpoint covers.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.size)
    }

    /// Every key that signed, the one in force first.
    ///
    /// # Errors
    /// When the key file cannot be read.
    pub fn vkeys(&self) -> Result<Vec<VerifierKey>, StoreError> {
        let handovers = handovers(&self.conn, u64::MAX >> 1).map_err(self.failed())?;
        Ok(KeyFile::load(&self.dir)?.verifiers(&handovers))
    }

    /// The receipt of a decision, whoever's it is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn receipt(&self, id: AuditId) -> Result<ReceiptState, StoreError> {
        let sql = "SELECT r.seq, e.leaf FROM response_audit_log r
                   JOIN log_entry e ON e.seq = r.seq WHERE r.id = ?1";
        let found = self.conn.query_row(sql, [id.0.as_bytes()], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        });
        match found.optional().map_err(self.failed())? {
            Some((seq, leaf)) => receipt_of(&self.dir, &self.conn, seq, leaf)
                .map_err(|error| StoreError::Key(error.to_string())),
            None => Ok(ReceiptState::Unknown),
        }
    }

    /// The hashes of a tile.
    ///
    /// # Errors
    /// When it is not there.
    pub fn tile(&self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        let tile = SqlTiles(&self.conn).tile(id);
        tile.map_err(|error| StoreError::Key(error.to_string()))
    }

    /// The bytes of an entry bundle.
    ///
    /// # Errors
    /// When entries are missing or one is too long.
    pub fn bundle(&self, index: u64, width: u16) -> Result<Vec<u8>, StoreError> {
        let bundle = bundle_of(&self.conn, index, width).map_err(self.failed())?;
        let missing = || StoreError::Key(format!("entries of bundle {index} are missing"));
        bundle.ok_or_else(missing)?.map_err(|error| StoreError::Key(error.to_string()))
    }

    /// Hands over every row the checkpoint covers, in order.
    ///
    /// # Errors
    /// When a row cannot be read, or `take` refuses one.
    pub fn rows<E: From<StoreError>>(
        &self,
        mut take: impl FnMut(LedgerRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = self.failed();
        let sql = "SELECT e.seq, e.leaf, b.body FROM log_entry e LEFT JOIN log_body b
                   ON b.seq = e.seq WHERE e.seq < ?1 ORDER BY e.seq";
        let mut rows = self.conn.prepare(sql).map_err(&failed)?;
        let mut rows = rows.query([self.size().cast_signed()]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let odd = || StoreError::Key("a stored row has a value of a wrong type".to_owned());
            let seq = row.get::<_, i64>(0).map_err(&failed)?.cast_unsigned();
            let leaf = row.get_ref(1).map_err(&failed)?.as_blob().map_err(|_| odd())?;
            let body = row.get_ref(2).map_err(&failed)?.as_blob_or_null().map_err(|_| odd())?;
            take(LedgerRow { seq, leaf, body })?;
        }
        Ok(())
    }

    /// Hands over every stored checkpoint: size, note and time.
    ///
    /// # Errors
    /// When one cannot be read, or `take` refuses it.
    pub fn checkpoints<E: From<StoreError>>(
        &self,
        mut take: impl FnMut(u64, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = self.failed();
        let sql = "SELECT size, note, at_ms FROM log_checkpoint ORDER BY size";
        let mut rows = self.conn.prepare(sql).map_err(&failed)?;
        for row in rows.query_map([], published).map_err(&failed)? {
            let Published { size, note, at_ms } = row.map_err(&failed)?;
            take(size, &note, at_ms)?;
        }
        Ok(())
    }
}
