//! Durable storage: the spool every entry goes through, and SQLite or PostgreSQL behind it.
//!
//! **Invariant:** this crate decides nothing about turns; it keeps what it is given, in order,
//! exactly once, and says so only when it is true.
//!
//! A data directory holds `lock`, `replica` (who this installation is), `pepper` (the secret of the
//! API keys), `root.key` (opens the keys of people, unless it is kept elsewhere), `keys.db` (the keys of
//! people), `ledger.key` (the seed that signs checkpoints), `checkpoint` (the last one), `spool/`
//! with `kept/` (what the database has taken, for a while), `positions` (where it came to stand),
//! `ledger.db` (the log and what is derived from it), `ops.db` (API keys and notes), `acknowledged` (up to which number entries were), `clock` (the time that
//! was last believed) and, after damage, `quarantine/`. With PostgreSQL behind it, log, keys and notes are there; the
//! directory then has `database` (which one), `drained` (how far it has come), `cache.db` (API keys
//! and people as they last were) and a `keys.db` with the keys of people that wait for the database, and
//! copies of those it was given lately.

mod accounts;
mod archive;
mod backing;
mod db;
mod directory;
mod drain;
mod durable;
mod error;
mod forget;
mod inspect;
mod keeper;
mod keys;
mod ledger;
mod lock;
mod options;
mod pages;
mod people;
mod postgres;
mod proofs;
mod publish;
mod reader;
mod rebuild;
mod records;
mod replica;
mod scrub;
mod sentry;
mod snapshot;
mod spool;
mod store;
mod usage;
mod vault;
mod watch;

pub use conclave_engine::Stamp;
pub use directory::is_data_directory;
pub use drain::AcceptedRestore;
pub use durable::replace as put_private;
pub use error::StoreError;
pub use forget::{RetentionRules, TenantRetention};
pub use inspect::{CannotCheck, Inspection, inspect};
pub use keys::{KeyBook, KeyText, KeyUse, NewKey, Pepper};
pub use options::StoreOptions;
pub use people::{PeopleBook, PersonRecord};
pub use postgres::{DatabaseUrl, Moved, inspect_database, move_to_postgres, rebuild_database};
pub use publish::Anchor;
pub use reader::{LedgerReader, LedgerRow};
pub use rebuild::rebuild;
pub use replica::Identity;
pub use spool::{Disk, FileDisk, KeptLimits, SegmentSink, SpoolStats};
pub use store::Store;
pub use vault::RootKey;
pub use watch::Steady;
