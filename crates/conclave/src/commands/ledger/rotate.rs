//! `conclave ledger rotate-key`: hand the signing of checkpoints over to a new key.

use super::super::Answer;
use super::super::data_directory::require_data;
use crate::cli::ledger::LedgerRotateArgs;
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use conclave_store::{Stamp, Store, StoreOptions};
use serde_json::json;
use std::sync::Arc;

/// Runs the command.
///
/// # Errors
/// When a gateway runs on the directory, or the key cannot be changed.
pub(super) fn run(args: &LedgerRotateArgs, as_json: bool) -> anyhow::Result<Answer> {
    let dir = &args.data.data;
    require_data(dir)?;
    let database = args.data.database.url()?;
    if database.is_none() && !dir.join("ledger.db").is_file() {
        anyhow::bail!("there is no ledger in {}", dir.display());
    }
    let stamp = Stamp { build: env!("CARGO_PKG_VERSION").to_owned(), ..Stamp::default() };
    let options = StoreOptions::new(dir, Arc::new(SystemClock), Arc::new(SystemEntropy));
    let store = Store::open(StoreOptions { stamp, database, ..options })?;
    if args.end_overlap {
        let ended = store.end_key_overlap()?;
        if as_json {
            output::json(&json!({"overlap_ended": ended}));
        } else if ended {
            output::line("only the key in force signs from now on");
        } else {
            output::line("there is no old key that still signs");
        }
        return Ok(if ended { Answer::Yes } else { Answer::No });
    }
    let (old, new) = store.rotate_key(&SystemEntropy)?;
    if as_json {
        output::json(&json!({"old": old.to_string(), "new": new.to_string()}));
    } else {
        output::line(&new.to_string());
        output::note("Publish this key. The old one signs as well until `--end-overlap`.");
    }
    Ok(Answer::Yes)
}
