//! Reads a ledger in place, also while a server works in it: for the command line.
//!
//! **Invariant:** only what the last checkpoint covers is read; it never changes any more.

use crate::db::{LEDGER, SqliteSnapshots, TILES_SINCE, open_to_check, user_version};
use crate::error::StoreError;
use crate::postgres::{DatabaseUrl, PgSnapshots};
use crate::proofs::receipt_of;
use crate::publish::{Cosigned, KeyFile, Published};
use crate::snapshot::{Snapshots, ask, bundle_of};
use conclave_core::AuditId;
use conclave_engine::ReceiptState;
use conclave_ledger::{Hash, TileId, VerifierKey};
use std::path::{Path, PathBuf};

/// A ledger as far as its last checkpoint went when it was opened.
pub struct LedgerReader {
    snapshots: Box<dyn Snapshots>,
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
        let found =
            open_to_check(&database).and_then(|conn| user_version(&conn)).map_err(failed)?;
        let known = i64::try_from(LEDGER.len()).unwrap_or(i64::MAX);
        if found > known {
            return Err(StoreError::Newer { path: database, found, known });
        }
        if found < TILES_SINCE {
            let message = "it has no checkpoints yet; start the gateway on it once".to_owned();
            return Err(StoreError::Database { path: database, message });
        }
        Self::over(Box::new(SqliteSnapshots::to_check(&database)), dir)
    }

    /// Opens the ledger in a PostgreSQL database; the key file is that of a replica's directory.
    ///
    /// # Errors
    /// When the server cannot be reached, or the ledger is of another version.
    pub fn open_database(url: &DatabaseUrl, dir: &Path) -> Result<Self, StoreError> {
        Self::over(Box::new(PgSnapshots::open(url)?), dir)
    }

    fn over(snapshots: Box<dyn Snapshots>, dir: &Path) -> Result<Self, StoreError> {
        let last = ask(&*snapshots, |log| log.latest())?;
        Ok(Self { snapshots, dir: dir.to_owned(), last })
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
        let handovers = ask(&*self.snapshots, |log| log.handovers(u64::MAX >> 1))?;
        Ok(KeyFile::load(&self.dir)?.verifiers(&handovers))
    }

    /// The receipt of a decision, whoever's it is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn receipt(&self, id: AuditId) -> Result<ReceiptState, StoreError> {
        ask(&*self.snapshots, |log| match log.decision(None, id)? {
            Some((seq, leaf)) => {
                receipt_of((&self.dir, Some(&Cosigned::open(&self.dir))), log, seq, leaf)
            }
            None => Ok(ReceiptState::Unknown),
        })
    }

    /// The hashes of a tile.
    ///
    /// # Errors
    /// When it is not there.
    pub fn tile(&self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        ask(&*self.snapshots, |log| log.tile(id))
    }

    /// The bytes of an entry bundle.
    ///
    /// # Errors
    /// When entries are missing or one is too long.
    pub fn bundle(&self, index: u64, width: u16) -> Result<Vec<u8>, StoreError> {
        let bundle = ask(&*self.snapshots, |log| bundle_of(log, index, width))?;
        bundle.ok_or_else(|| StoreError::Key(format!("entries of bundle {index} are missing")))
    }

    /// Hands over every row the checkpoint covers, in order.
    ///
    /// # Errors
    /// When a row cannot be read, or `take` refuses one.
    pub fn rows<E: From<StoreError>>(
        &self,
        mut take: impl FnMut(LedgerRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (size, mut refused) = (self.size(), None);
        let read = self.snapshots.with(&mut |log| {
            log.rows(size, &mut |row| {
                take(row).map_err(|error| {
                    refused = Some(error);
                    StoreError::Key("refused".to_owned())
                })
            })
        });
        refused.map_or_else(|| read.map_err(E::from), Err)
    }

    /// Hands over every stored checkpoint: size, note and time.
    ///
    /// # Errors
    /// When one cannot be read, or `take` refuses it.
    pub fn checkpoints<E: From<StoreError>>(
        &self,
        mut take: impl FnMut(u64, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut refused = None;
        let read = self.snapshots.with(&mut |log| {
            log.checkpoints(&mut |Published { size, note, at_ms }| {
                take(size, &note, at_ms).map_err(|error| {
                    refused = Some(error);
                    StoreError::Key("refused".to_owned())
                })
            })
        });
        refused.map_or_else(|| read.map_err(E::from), Err)
    }
}
