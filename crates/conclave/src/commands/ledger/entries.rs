//! `conclave ledger entries`: a tenant's own entries, each checked before it is printed.

use super::super::Answer;
use super::super::gateway::ask_gateway;
use super::parse_vkey;
use super::tiled::{TiledLog, UrlLog};
use crate::cli::ledger::LedgerEntriesArgs;
use crate::output;
use anyhow::{Context, bail};
use conclave_ledger::Receipt;

/// Entries that are asked for at once.
const PAGE: u32 = 200;

/// Prints one receipt a line; the first that does not hold ends it.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub(super) fn run(args: &LedgerEntriesArgs) -> anyhow::Result<Answer> {
    let keys = match &args.vkey {
        Some(vkey) => vec![parse_vkey(vkey)?],
        None => UrlLog::open(&args.gateway)?.vkeys()?,
    };
    let mut from = args.from;
    loop {
        let path = format!("v1/ledger/entries?from={from}&limit={PAGE}");
        let page = ask_gateway(&args.gateway, "GET", &path, None)?;
        let entries = page["data"].as_array().context("the answer has no entries")?;
        for entry in entries {
            let text = entry.to_string();
            let held = Receipt::from_json(&text).and_then(|receipt| receipt.verify(&keys));
            if let Err(error) = held {
                let index = entry["index"].as_u64().unwrap_or(from);
                output::note(&format!("entry {index} is not proved: {error}"));
                return Ok(Answer::No);
            }
            output::line(&text);
        }
        match page["next_from"].as_u64() {
            Some(next) if next > from => from = next,
            Some(_) => bail!("the gateway names the same page again"),
            None => break,
        }
    }
    Ok(Answer::Yes)
}
