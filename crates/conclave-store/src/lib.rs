//! Durable storage: the spool every entry goes through, and the SQLite databases behind it.
//!
//! **Invariant:** this crate decides nothing about turns; it keeps what it is given, in order,
//! exactly once, and says so only when it is true.
//!
//! A data directory holds `lock`, `replica` (who this installation is), `pepper` (the secret of the
//! API keys), `root.key` (opens the keys of people, unless it is kept elsewhere), `keys.db` (the keys of
//! people), `ledger.key` (the seed that signs checkpoints), `checkpoint` (the last one), `spool/`,
//! `ledger.db` (the log and what is derived from it), `ops.db` (API keys and notes)
//! and, after damage, `quarantine/`.

mod archive;
mod db;
mod drain;
mod durable;
mod error;
mod forget;
mod inspect;
mod keys;
mod ledger;
mod lock;
mod options;
mod people;
mod proofs;
mod publish;
mod reader;
mod replica;
mod scrub;
mod spool;
mod store;
mod vault;

pub use error::StoreError;
pub use forget::{RetentionRules, TenantRetention};
pub use inspect::{CannotCheck, Inspection, inspect};
pub use keys::{KeyBook, KeyText, KeyUse, NewKey, Pepper};
pub use options::{Stamp, StoreOptions};
pub use people::{PeopleBook, PersonRecord};
pub use publish::Anchor;
pub use reader::{LedgerReader, LedgerRow};
pub use replica::Identity;
pub use spool::{Disk, FileDisk, SegmentSink, SpoolStats};
pub use store::Store;
pub use vault::RootKey;
