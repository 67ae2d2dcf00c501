//! The data directory that a command works in.
//!
//! **Invariant:** a command that reads or changes what is there begins no data directory. A name that
//! was mistyped would otherwise pass for an installation in which nothing has happened yet.

use crate::assemble;
use crate::cli::OpenArgs;
use crate::config::{self, Config};
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::{anyhow, bail};
use conclave_store::{Store, StoreError, StoreOptions, is_data_directory};
use std::path::Path;
use std::sync::Arc;

/// Refuses a directory in which nothing was ever kept.
///
/// # Errors
/// When it is not there, or is no data directory.
pub fn require_data(dir: &Path) -> anyhow::Result<()> {
    if is_data_directory(dir) {
        return Ok(());
    }
    let absent = if dir.exists() { "nothing was ever kept in it" } else { "it does not exist" };
    bail!(
        "{} is not a Conclave data directory: {absent}; choose another with --data",
        dir.display()
    )
}

/// Says that a directory becomes a data directory, so that a mistyped one is noticed.
pub fn announce_new_data(dir: &Path) {
    if !is_data_directory(dir) {
        let dir = dir.display();
        output::note(&format!(
            "{dir} was not a data directory; it is one now. A gateway uses it with --data {dir}."
        ));
    }
}

/// What a command does with the store it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Work with the ledger that is there.
    Use,
    /// The same, although the database was put back from an older copy; accepts that.
    AcceptRestore,
    /// Work with the ledger, or begin one.
    Begin,
}

/// Opens the store of a data directory; `instead` says what to do when a gateway has it.
///
/// # Errors
/// When there is no ledger, a gateway uses it, or it cannot be opened.
pub fn open_store(args: &OpenArgs, instead: &str) -> anyhow::Result<Store> {
    open_for(Purpose::Use, args, &config::load(args.config.as_deref())?, instead)
}

/// Opens the store although the database was put back from an older copy, and accepts that.
///
/// # Errors
/// When there is no ledger, a gateway uses it, or it cannot be opened.
pub fn open_restored_store(args: &OpenArgs, instead: &str) -> anyhow::Result<Store> {
    open_for(Purpose::AcceptRestore, args, &config::load(args.config.as_deref())?, instead)
}

/// Opens the store, or begins one where there is none.
///
/// # Errors
/// When a gateway uses it, or it cannot be opened.
pub fn open_or_begin_store(
    args: &OpenArgs,
    config: &Config,
    instead: &str,
) -> anyhow::Result<Store> {
    open_for(Purpose::Begin, args, config, instead)
}

fn open_for(
    purpose: Purpose,
    args: &OpenArgs,
    config: &Config,
    instead: &str,
) -> anyhow::Result<Store> {
    let dir = &args.data.data;
    let database = match args.data.database.url()? {
        Some(given) => Some(given),
        None => config.storage.url().map_err(|why| anyhow!("storage.database: {why}"))?,
    };
    if purpose == Purpose::Begin {
        announce_new_data(dir);
    } else {
        require_data(dir)?;
        if database.is_none() && !dir.join("ledger.db").is_file() {
            bail!("there is no ledger in {}", dir.display());
        }
    }
    let options = StoreOptions {
        database,
        root_key: assemble::root_key(config)?,
        stamp: assemble::stamp(config)?,
        accept_restore: purpose == Purpose::AcceptRestore,
        kept: config.storage.kept(),
        ..StoreOptions::new(dir, Arc::new(SystemClock), Arc::new(SystemEntropy))
    };
    Store::open(options).map_err(|error| match error {
        StoreError::Locked { pid, dir } => {
            anyhow!("another conclave (pid {pid}) is using {}; {instead}", dir.display())
        }
        error => error.into(),
    })
}
