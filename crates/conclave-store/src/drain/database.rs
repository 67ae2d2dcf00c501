//! What the drainer needs of a database, and what it gives it.
//!
//! **Invariant:** a batch is one transaction: entries, bodies, tree, head, derived rows and the
//! numbers taken become part of the log together or not at all.

use crate::db::{Hole, LogState};
use crate::error::StoreError;
use crate::replica::Identity;
use conclave_engine::AppendError;
use conclave_ledger::EntryId;
use thiserror::Error;

/// Why entries could not be moved now.
#[derive(Debug, Error)]
pub(crate) enum DrainError {
    #[error(transparent)]
    Open(StoreError),
    #[error("{0}")]
    Database(String),
    #[error("cannot read the spool: {0}")]
    Spool(#[from] std::io::Error),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("the database went back from {from} to {to} entries")]
    WentBack { from: u64, to: u64 },
    /// Nothing may be appended until an operator has decided.
    #[error("{0}")]
    Restored(String),
    /// Somebody else writes to the log now.
    #[error("{0}")]
    Overtaken(String),
    /// Other replicas have to hand over something again first.
    #[error("{0}")]
    Waiting(String),
}

impl From<StoreError> for DrainError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overtaken(why) => Self::Overtaken(why),
            error => Self::Open(error),
        }
    }
}

impl From<rusqlite::Error> for DrainError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.to_string())
    }
}

/// Opens the log, at the start and again after a failure.
pub(crate) trait LogSource: Send {
    /// # Errors
    /// When it cannot be opened, or what it holds does not fit together.
    fn open(&self) -> Result<Box<dyn LogDatabase>, StoreError>;
}

/// A database that holds the log.
pub(crate) trait LogDatabase: Send {
    /// How many entries the log has, as far as is known here.
    fn size(&self) -> u64;

    /// Takes one batch in one transaction. The entries are asked for only when the log is ours to
    /// append to: the longer that takes, the larger the batch.
    ///
    /// # Errors
    /// When nothing was taken; the database must then be opened again.
    fn append(&mut self, supply: &mut dyn Supply) -> Result<Taken, DrainError>;

    /// Positions and leaves of decisions of this replica whose delivery nobody recorded, after a
    /// position.
    ///
    /// # Errors
    /// When the database refuses.
    fn open_deliveries(
        &mut self,
        after: i64,
        at_most: u32,
    ) -> Result<Vec<(i64, Vec<u8>)>, DrainError>;

    /// The largest number the log had of an identity when it was opened.
    fn taken(&self, identity: Identity) -> u64;

    /// Whether no other replica has entries in the log.
    ///
    /// # Errors
    /// When the database refuses.
    fn is_alone(&mut self) -> Result<bool, DrainError> {
        Ok(true)
    }

    /// Tells other replicas up to which size they must append nothing new; 0 takes it back.
    ///
    /// # Errors
    /// When the database refuses.
    fn ask_to_wait(&mut self, _size: u64) -> Result<(), DrainError> {
        Ok(())
    }

    /// The last acceptance of a restored database after number `above`.
    ///
    /// # Errors
    /// When the database refuses.
    fn accepted(&mut self, _above: u64) -> Result<Option<Acceptance>, DrainError> {
        Ok(None)
    }

    /// Up to which size some replica has asked the others to wait.
    ///
    /// # Errors
    /// When the database refuses.
    fn awaited(&mut self) -> Result<u64, DrainError> {
        Ok(0)
    }

    /// Tells other replicas that everything known beyond the log's size, up to `old_size`, is void; says
    /// the number of that, which is above `above`.
    ///
    /// # Errors
    /// When the database refuses.
    fn accept(&mut self, _old_size: u64, _above: u64) -> Result<u64, DrainError> {
        Ok(0)
    }
}

/// That an operator has accepted a restored database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// Orders them, also across databases that were put back.
    pub(crate) number: u64,
    /// Up to which size something had been known.
    pub(crate) old_size: u64,
}

/// What a batch came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Frames that were read.
    pub(crate) read: usize,
    /// Entries among them that were not in the log yet.
    pub(crate) inserted: u64,
    /// Entries in the log now.
    pub(crate) size: u64,
}

/// Takes one entry: its id, its leaf and its body.
pub(crate) type TakeEntry<'a> = dyn FnMut(EntryId, &[u8], &[u8]) -> Result<(), DrainError> + 'a;

/// The drainer's side of a batch.
pub(crate) trait Supply {
    /// Looks at the log as it is now that it is ours to append to; `awaited` is the size up to which other
    /// replicas have asked to wait.
    ///
    /// # Errors
    /// When nothing may be appended to it.
    fn meet(&mut self, log: &LogState, awaited: u64) -> Result<(), DrainError>;

    /// Looks at what the log would become, before that is committed; it was `first` entries long.
    ///
    /// # Errors
    /// When that must not be.
    fn review(&mut self, first: u64, log: &LogState) -> Result<(), DrainError>;

    /// Hands over the entries of the batch, in order; says how many.
    ///
    /// # Errors
    /// When the spool cannot be read, or an entry was not taken.
    fn hand_over(&mut self, take: &mut TakeEntry<'_>) -> Result<usize, DrainError>;

    /// States durably that numbers are missing, before the entries behind them are in the log.
    ///
    /// # Errors
    /// When the statement cannot be made durable.
    fn state_gap(&mut self, hole: Hole) -> Result<(), DrainError>;
}
