//! `conclave ledger`: check the log, prove what is in it, write it out, change its key.

mod accept;
mod audit;
mod entries;
mod entry_lines;
mod export;
mod handover;
mod paper;
mod rotate;
mod second;
mod tiled;
mod verify;

use super::Answer;
use super::data_directory::require_data;
use crate::cli::DataArgs;
use crate::cli::ledger::{LedgerCommand, LedgerSource};
use crate::output;
use anyhow::Context;
use conclave_ledger::VerifierKey;
use conclave_store::{DatabaseUrl, LedgerReader, rebuild_database};
use serde_json::json;
use std::path::{Path, PathBuf};
use tiled::{DirLog, TiledLog, UrlLog};

/// Runs the command.
///
/// # Errors
/// When it could not be done at all.
pub fn run(command: &LedgerCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        LedgerCommand::Verify(args) => verify::run(args, as_json),
        LedgerCommand::Prove(args) => paper::prove(args, as_json),
        LedgerCommand::Receipt(args) => paper::receipt(args, as_json),
        LedgerCommand::Entries(args) => entries::run(args),
        LedgerCommand::Export(args) => export::run(args, as_json),
        LedgerCommand::Checkpoint(source) => paper::checkpoint(source, as_json),
        LedgerCommand::Vkey(source) => paper::vkey(source, as_json),
        LedgerCommand::RotateKey(args) => rotate::run(args, as_json),
        LedgerCommand::Rebuild(args) => rebuild(args, as_json),
        LedgerCommand::AcceptRestore(args) => accept::run(args, as_json),
    }
}

/// A ledger, wherever it is.
enum LedgerPlace {
    /// A data directory, with SQLite in it or PostgreSQL behind it.
    Data { dir: PathBuf, database: Option<Box<DatabaseUrl>> },
    /// An export or a gateway.
    Tiled(Box<dyn TiledLog>),
}

fn find_ledger(source: &LedgerSource) -> anyhow::Result<LedgerPlace> {
    Ok(match source {
        LedgerSource::Export(dir) => LedgerPlace::Tiled(Box::new(DirLog::open(dir)?)),
        LedgerSource::Gateway(gateway) => LedgerPlace::Tiled(Box::new(UrlLog::open(gateway)?)),
        LedgerSource::Data { args, is_named } => {
            let database = args.database.url()?.map(Box::new);
            // A log in PostgreSQL can be read without any directory, so the default one may be missing.
            if *is_named || database.is_none() {
                require_data(&args.data)?;
            }
            LedgerPlace::Data { dir: args.data.clone(), database }
        }
    })
}

fn open_reader(dir: &Path, database: Option<&DatabaseUrl>) -> anyhow::Result<LedgerReader> {
    Ok(match database {
        Some(url) => LedgerReader::open_database(url, dir)?,
        None => LedgerReader::open(dir)?,
    })
}

/// `conclave ledger rebuild`
fn rebuild(args: &DataArgs, as_json: bool) -> anyhow::Result<Answer> {
    let entries = match args.database.url()? {
        Some(url) => rebuild_database(&url)?,
        None => {
            require_data(&args.data)?;
            conclave_store::rebuild(&args.data)?
        }
    };
    if as_json {
        output::json(&json!({"entries": entries}));
    } else {
        output::line(&format!("the query tables were derived again from {entries} entries"));
    }
    Ok(Answer::Yes)
}

fn parse_vkey(text: &str) -> anyhow::Result<VerifierKey> {
    VerifierKey::parse(text).with_context(|| format!("--vkey `{text}`"))
}
