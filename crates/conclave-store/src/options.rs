//! How a store is opened.
//!
//! **Invariant:** the defaults are right for production; everything else is there for tests and
//! unusual machines.

use crate::postgres::DatabaseUrl;
use crate::publish::Anchor;
use crate::spool::{Disk, FileDisk, KeptLimits};
use crate::vault::RootKey;
use crate::watch::{Steady, machine};
use conclave_engine::{Clock, Entropy, Stamp};
use conclave_ledger::{Draft, Kind};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The largest spool segment, and so the largest entry there can be.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// The smallest that still holds an entry.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 4 << 10;

/// The stamp of entries that the store itself writes; changes when the policy does.
#[derive(Debug, Default)]
pub(crate) struct Stamps(RwLock<Stamp>);

impl Stamps {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self(RwLock::new(stamp))
    }

    pub(crate) fn set(&self, stamp: Stamp) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = stamp;
    }

    /// A draft of the system's own: no tenant, no person.
    pub(crate) fn draft(&self, kind: Kind) -> Draft {
        let Stamp { policy, directives, build } =
            self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Draft { policy, directives, build, ..Draft::new(kind, 0) }
    }
}

/// Where a store lives and what it is given.
#[derive(Clone)]
pub struct StoreOptions {
    /// The data directory; made if it is not there.
    pub dir: PathBuf,
    /// The PostgreSQL database behind the spool; SQLite in the data directory if absent.
    pub database: Option<DatabaseUrl>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The time that has passed, by which the clock is judged before words are deleted by it.
    pub steady: Steady,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// What the store's own entries say about the program.
    pub stamp: Stamp,
    /// A root key that is kept elsewhere; without one, `root.key` in the directory is made and used.
    pub root_key: Option<RootKey>,
    /// What segments are made of.
    pub disk: Arc<dyn Disk>,
    /// A second spool directory, best on another disk, for when the first cannot be written.
    pub spool_fallback: Option<PathBuf>,
    /// How much the whole spool may take; at least three segments.
    pub spool_bytes_max: u64,
    /// How much of what the database has taken is kept, for a database that comes back older.
    pub kept: KeptLimits,
    /// An operator accepts a database that was put back, and gives up what it lost.
    pub accept_restore: bool,
    /// The size of a spool segment, from 4 KiB to 64 MiB.
    pub segment_bytes: u64,
    /// How much may wait for the writer.
    pub queue_bytes: usize,
    /// How long an entry nobody waits for may wait for company.
    pub soon: Duration,
    /// How long the drainer waits for company.
    pub drain_linger: Duration,
    /// How many entries one transaction takes at most.
    pub drain_entries_max: usize,
    /// How long a reader waits for the newest entries.
    pub read_patience: Duration,
    /// How many readers of each kind work at once.
    pub readers: usize,
    /// The name of the log in its checkpoints, for when its key is made; without one it is made of
    /// the replica's.
    pub origin: Option<String>,
    /// Gets a copy of every published checkpoint.
    pub anchor: Option<Arc<dyn Anchor>>,
}

impl StoreOptions {
    /// The defaults.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            dir: dir.into(),
            database: None,
            clock,
            steady: machine(),
            entropy,
            stamp: Stamp::default(),
            root_key: None,
            disk: Arc::new(FileDisk),
            spool_fallback: None,
            spool_bytes_max: 10 << 30,
            kept: KeptLimits::default(),
            accept_restore: false,
            segment_bytes: SEGMENT_BYTES_MAX,
            queue_bytes: 64 << 20,
            soon: Duration::from_millis(50),
            drain_linger: Duration::from_millis(50),
            drain_entries_max: 2_000,
            read_patience: Duration::from_secs(5),
            readers: 2,
            origin: None,
            anchor: None,
        }
    }
}
