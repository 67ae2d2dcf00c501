//! The log in SQLite, as the drainer sees it.

use super::claim::{WriterClaim, overtaken};
use super::log::{Inserter, LogState, ensure_derived, load_state, open_deliveries};
use super::{LEDGER, open_writer, reopen_writer, tiles};
use crate::drain::{DrainError, LogDatabase, LogSource, Supply, Taken};
use crate::error::StoreError;
use crate::forget::Retention;
use crate::publish::was_signed;
use crate::replica::Identity;
use conclave_engine::Entropy;
use conclave_failpoint as failpoint;
use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database and what it holds.
pub(crate) struct SqliteLog {
    conn: Connection,
    pub(crate) state: LogState,
    retention: Arc<Retention>,
    claim: WriterClaim,
}

impl SqliteLog {
    /// Opens the ledger's database, makes it if need be, and takes the right to write to it.
    ///
    /// # Errors
    /// When it cannot be opened or does not fit together.
    pub(crate) fn open(
        path: &Path,
        retention: Arc<Retention>,
        entropy: &dyn Entropy,
    ) -> Result<Self, StoreError> {
        let conn = open_writer(path, LEDGER)?;
        let claim = WriterClaim::take(&conn, entropy).map_err(StoreError::database(path))?;
        Self::over(conn, path, retention, claim)
    }

    /// Checks that the head of a database fits.
    fn over(
        mut conn: Connection,
        path: &Path,
        retention: Arc<Retention>,
        claim: WriterClaim,
    ) -> Result<Self, StoreError> {
        tiles::ensure(&mut conn).map_err(StoreError::database(path))?;
        ensure_derived(&mut conn).map_err(StoreError::database(path))?;
        let state = load_state(&conn).map_err(StoreError::database(path))?;
        let advice = "; run `conclave ledger verify` and restore it from a backup";
        let state = state.map_err(|what| StoreError::damaged(path, what + advice))?;
        Ok(Self { conn, state, retention, claim })
    }

    /// Opens it again after a failure, under the same right.
    pub(crate) fn source(&self, path: &Path) -> SqliteSource {
        let (path, retention) = (path.to_owned(), Arc::clone(&self.retention));
        SqliteSource { path, retention, claim: self.claim }
    }

    /// Whether a checkpoint of this log was ever stored.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn was_signed(&self) -> rusqlite::Result<bool> {
        was_signed(&self.conn)
    }
}

impl LogDatabase for SqliteLog {
    fn size(&self) -> u64 {
        self.state.range.size()
    }

    fn append(&mut self, supply: &mut dyn Supply) -> Result<Taken, DrainError> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        failpoint::reach("drain.locked");
        if !self.claim.holds(&tx)? {
            return Err(DrainError::Overtaken(overtaken()));
        }
        supply.meet(&self.state, 0)?;
        let first = self.state.range.size();
        let mut inserter = Inserter::new(&tx, self.state.clone(), &self.retention)?;
        let read = supply.hand_over(&mut |id, leaf, body| Ok(inserter.insert(id, leaf, body)?))?;
        failpoint::reach("drain.inserted");
        for hole in inserter.holes().to_vec() {
            supply.state_gap(hole)?;
        }
        let (state, inserted) = inserter.finish()?;
        if inserted > 0 {
            supply.review(first, &state)?;
        }
        failpoint::reach("drain.before_commit");
        tx.commit()?;
        failpoint::reach("drain.committed");
        self.state = state;
        Ok(Taken { read, inserted, size: self.size() })
    }

    fn open_deliveries(
        &mut self,
        after: i64,
        at_most: u32,
    ) -> Result<Vec<(i64, Vec<u8>)>, DrainError> {
        Ok(open_deliveries(&self.conn, after, at_most)?)
    }

    fn taken(&self, identity: Identity) -> u64 {
        self.state.taken.get(&identity).copied().unwrap_or(0)
    }
}

/// The file the log is in.
pub(crate) struct SqliteSource {
    path: PathBuf,
    retention: Arc<Retention>,
    claim: WriterClaim,
}

impl LogSource for SqliteSource {
    fn open(&self) -> Result<Box<dyn LogDatabase>, StoreError> {
        let conn = reopen_writer(&self.path, LEDGER)?;
        let log = SqliteLog::over(conn, &self.path, Arc::clone(&self.retention), self.claim)?;
        Ok(Box::new(log))
    }
}
