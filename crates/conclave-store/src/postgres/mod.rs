//! PostgreSQL behind the spool: the log, the archive, keys and people of many replicas.
//!
//! The SQL is PostgreSQL's own. What it has in common with SQLite is what the two are asked for: the
//! traits of the drainer, the archive and the books.

mod accounts;
mod archive;
mod batch;
mod books;
mod epoch;
mod idle;
mod import;
mod inspect;
mod lease;
mod link;
mod log;
mod records;
mod restore;
mod schema;
mod session;
mod shared;
mod snapshot;
mod stored;
mod tls;
mod url;
mod usage;
mod used;
mod vault;
mod words;

pub use import::{Moved, move_to_postgres, rebuild_database};
pub use inspect::inspect_database;
pub use url::DatabaseUrl;

pub(crate) use accounts::PgAccounts;
pub(crate) use archive::PgArchive;
pub(crate) use books::{PgBooks, PgKeys, PgNotes, has_change};
pub(crate) use lease::{Heart, Lease};
pub(crate) use link::Connector;
pub(crate) use log::PgSource;
pub(crate) use records::PgRecords;
pub(crate) use session::Session;
pub(crate) use shared::is_bound;
pub(crate) use snapshot::PgSnapshots;
pub(crate) use stored::PgStored;
pub(crate) use used::pg_usage;
pub(crate) use vault::{PgVault, WaitingKeys};
pub(crate) use words::PgWords;
