//! API keys: their text, where their digests are kept, and the ring that opens doors with them.
//!
//! **Invariant:** a key's secret is never stored, logged or put into the ledger; only a keyed hash
//! of the whole key is kept.

mod book;
mod desk;
mod outbox;
mod ring;
mod sqlite;
mod text;

pub use book::{KeyBook, KeyUse, NewKey};
pub use text::{KeyText, Pepper};

pub(crate) use book::{BookTables, KeyRow, Note, Succession, open_tables};
pub(crate) use desk::BookDesk;
pub(crate) use outbox::{NoteTable, Outbox, OutboxSink, SqliteNotes, Waiting};
pub(crate) use ring::{BookRing, KeySource, Listed};
pub(crate) use sqlite::{SqliteBooks, leave_note};
