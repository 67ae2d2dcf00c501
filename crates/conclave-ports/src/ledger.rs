//! The write side of the ledger.

use conclave_ledger::{Body, Draft, EntryId};
use futures_util::future::BoxFuture;
use serde::Serialize;
use thiserror::Error;

/// Where an entry came to stand once it was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its id within the replica.
    pub id: EntryId,
    /// The RFC 6962 hash of its leaf.
    pub leaf_hash: [u8; 32],
}

/// Why an entry could not be made durable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// It cannot be an entry, or the ledger is closed or somebody else's: trying again does not help.
    #[error("the ledger could not take the entry: {0}")]
    Refused(String),
    /// No disk took it. Its number stays used, and a later entry states that it is missing.
    #[error("the ledger could not take the entry: {0}")]
    Unwritable(String),
}

/// Something about the ledger that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerAlert {
    /// One of a closed list; see the reference of `/health`.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
}

/// How the ledger's way to the disk is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerState {
    /// Bytes that are durable and wait for the database.
    pub waiting_bytes: u64,
    /// How many there may be.
    pub waiting_bytes_max: u64,
    /// How long the oldest entry has waited.
    pub oldest_waiting_ms: u64,
    /// Files given up because a write or sync failed, since start.
    pub failed_segments: u64,
    /// Numbers whose entries could not be written anywhere, since start.
    pub lost_entries: u64,
    /// Entries written while the clock stood behind the entry before, since start.
    pub clock_behind: u64,
    /// Questions to witnesses that brought no cosignature, since start.
    pub witness_failures: u64,
    /// How many entries the last cosigned checkpoint covers, of those since start.
    pub witnessed_size: u64,
    /// What a person should know now, gravest first.
    pub alerts: Vec<LedgerAlert>,
}

/// The write side of the ledger.
pub trait Ledger: Send + Sync {
    /// Makes an entry durable; resolves only after it is on disk.
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>>;
    /// Hands over an entry that nobody waits for; it is durable soon after. Never blocks; an entry that
    /// finds the queue full is counted and reported, see [`Ledger::dropped`].
    fn append_soon(&self, draft: Draft, body: Body);
    /// How many entries [`Ledger::append_soon`] had to drop since start.
    fn dropped(&self) -> u64;
    /// Whether entries can be taken; the sentence says what is wrong.
    ///
    /// # Errors
    /// When the last entry could not be made durable, or the next soon cannot.
    fn health(&self) -> Result<(), AppendError>;
    /// How the way to the disk is doing.
    fn state(&self) -> LedgerState {
        LedgerState::default()
    }
}
