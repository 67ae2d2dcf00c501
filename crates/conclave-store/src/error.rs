//! What can go wrong with the data directory, in sentences that say what to do.
//!
//! **Invariant:** no message holds a secret, a transcript or a key.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is wrong with an id whose length no id of ours has. The row is named and left alone: a made-up
/// id would be settled or entered in the place of whatever the row was about.
pub(crate) fn malformed_id(row: impl Display, id: &[u8], bytes: usize) -> String {
    let (shown, length) = (hex::encode(id), id.len());
    format!("{row}: the id {shown} has {length} bytes instead of {bytes}; repair or remove the row")
}

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Somebody else has it.
    #[error(
        "another conclave (pid {pid}) is using {}; stop it or choose another --data directory",
        .dir.display()
    )]
    Locked {
        /// Who, as far as the lock file says.
        pid: String,
        /// The data directory.
        dir: PathBuf,
    },
    /// The file system refuses.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A database refuses.
    #[error("the database {} cannot be used: {message}", .path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why not.
        message: String,
    },
    /// A database does not answer.
    #[error("the database {} cannot be reached: {message}", .path.display())]
    Unreachable {
        /// Which.
        path: PathBuf,
        /// Why not.
        message: String,
    },
    /// A database of a later version.
    #[error(
        "the database {} has schema {found}, this program knows {known}; \
         use the program that wrote it, or a newer one",
        .path.display()
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Something stored does not make sense.
    #[error("{} is damaged: {message}", .path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// A file is gone that nothing can stand in for.
    #[error("{} is missing: {advice}", .path.display())]
    Missing {
        /// Which.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// An address of a database that cannot be used.
    #[error("{0}")]
    Address(String),
    /// The data directory and the database do not belong together.
    #[error("{0}")]
    Foreign(String),
    /// Entries stand in a second spool directory that is no longer configured.
    #[error(
        "entries still stand in {}; start once with `spool_fallback` set to it, \
         so that they are taken, and change it then",
        .dir.display()
    )]
    SpoolElsewhere {
        /// The directory.
        dir: PathBuf,
    },
    /// A second spool directory that somebody else uses.
    #[error(
        "the spool directory {} belongs to another installation; \
         choose a directory of its own for this one",
        .dir.display()
    )]
    SpoolOfOther {
        /// The directory.
        dir: PathBuf,
    },
    /// A second spool directory that cannot be read.
    #[error(
        "the second spool directory {} may hold entries and cannot be read ({source}): \
         is its disk mounted? If it is lost for good, remove {} and what it held is stated as missing",
        .dir.display(),
        .note.display()
    )]
    SpoolUnreadable {
        /// The directory.
        dir: PathBuf,
        /// The file that names it.
        note: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A key that cannot be made or found.
    #[error("{0}")]
    Key(String),
    /// Somebody else writes under our name now.
    #[error("{0}")]
    Overtaken(String),
    /// Another replica replaced the keys that wrap others at the same moment.
    #[error("another replica has just replaced the keys that wrap those of people")]
    Replaced,
    /// The database has not taken everything yet.
    #[error("not everything is in the database yet: {0}")]
    Unsettled(String),
    /// A thread could not be started.
    #[error("cannot start the {name} thread: {source}")]
    Thread {
        /// Which.
        name: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

impl StoreError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Database { path: path.clone(), message: error.to_string() }
    }

    pub(crate) fn damaged(path: &Path, message: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), message: message.into() }
    }
}
