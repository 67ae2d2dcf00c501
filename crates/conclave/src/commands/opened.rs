//! A data directory opened by a command, while no gateway runs in it.

use crate::assemble;
use crate::cli::OpenArgs;
use crate::config;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::{anyhow, bail};
use conclave_store::{Store, StoreError, StoreOptions};
use std::ops::Deref;
use std::sync::Arc;

/// The store; closed when it is dropped.
pub struct Opened(Store);

impl Deref for Opened {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

/// Opens what is there; `instead` says what to do when a gateway has it.
///
/// # Errors
/// When there is no ledger, a gateway uses it, or it cannot be opened.
pub fn open(args: &OpenArgs, instead: &str) -> anyhow::Result<Opened> {
    open_as(args, instead, false)
}

/// Opens what is there although the database was put back from an older copy, and accepts that.
///
/// # Errors
/// When there is no ledger, a gateway uses it, or it cannot be opened.
pub fn open_restored(args: &OpenArgs, instead: &str) -> anyhow::Result<Opened> {
    open_as(args, instead, true)
}

fn open_as(args: &OpenArgs, instead: &str, accept_restore: bool) -> anyhow::Result<Opened> {
    let config = config::load(args.config.as_deref())?;
    let dir = &args.data.data;
    let database = match args.data.database.url()? {
        Some(given) => Some(given),
        None => config.storage.url().map_err(|why| anyhow!("storage.database: {why}"))?,
    };
    if database.is_none() && !dir.join("ledger.db").is_file() {
        bail!("there is no ledger in {}", dir.display());
    }
    let options = StoreOptions {
        database,
        root_key: assemble::root_key(&config)?,
        stamp: assemble::stamp(&config)?,
        accept_restore,
        kept: config.storage.kept(),
        ..StoreOptions::new(dir, Arc::new(SystemClock), Arc::new(SystemEntropy))
    };
    match Store::open(options) {
        Ok(store) => Ok(Opened(store)),
        Err(error @ StoreError::Locked { .. }) => {
            let in_use = format!("{error}").split(';').next().unwrap_or_default().to_owned();
            Err(anyhow!("{in_use}; {instead}"))
        }
        Err(error) => Err(error.into()),
    }
}
