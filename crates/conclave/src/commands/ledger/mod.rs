//! `conclave ledger`: check the log, prove what is in it, write it out, change its key.

mod audit;
mod export;
mod paper;
mod rotate;
mod tiled;
mod verify;

use super::Answer;
use crate::cli::{LedgerCommand, LedgerSource};
use anyhow::Context;
use conclave_ledger::VerifierKey;
use std::path::PathBuf;
use tiled::{DirLog, TiledLog, UrlLog};

/// Where data is kept unless something else is said.
const DEFAULT_DATA: &str = "conclave-data";

/// Runs the command.
///
/// # Errors
/// When it could not be done at all.
pub fn run(command: &LedgerCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        LedgerCommand::Verify(args) => verify::run(args, as_json),
        LedgerCommand::Prove(args) => paper::prove(args, as_json),
        LedgerCommand::Receipt(args) => paper::receipt(args, as_json),
        LedgerCommand::Export(args) => export::run(args, as_json),
        LedgerCommand::Checkpoint(source) => paper::checkpoint(source, as_json),
        LedgerCommand::Vkey(source) => paper::vkey(source, as_json),
        LedgerCommand::RotateKey(args) => rotate::run(args, as_json),
    }
}

/// A ledger, wherever it is.
enum Place {
    /// A data directory.
    Data(PathBuf),
    /// An export or a gateway.
    Tiled(Box<dyn TiledLog>),
}

fn place(source: &LedgerSource, key: Option<&str>) -> anyhow::Result<Place> {
    Ok(match (&source.export, &source.url) {
        (Some(dir), _) => Place::Tiled(Box::new(DirLog::open(dir)?)),
        (None, Some(url)) => Place::Tiled(Box::new(UrlLog::open(url, key)?)),
        (None, None) => Place::Data(source.data.clone().unwrap_or_else(|| DEFAULT_DATA.into())),
    })
}

fn parse_vkey(text: &str) -> anyhow::Result<VerifierKey> {
    VerifierKey::parse(text).with_context(|| format!("--vkey `{text}`"))
}
