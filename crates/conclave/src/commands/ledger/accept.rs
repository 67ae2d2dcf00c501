//! `conclave ledger accept-restore`: go on with a database that came back older than it was.

use super::super::Answer;
use super::super::data_directory::open_restored_store;
use crate::cli::OpenArgs;
use crate::output;
use serde_json::json;
use std::time::Duration;

/// How long handing over what is still here may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the command.
///
/// # Errors
/// When a gateway runs on the directory, or the database cannot be used.
pub(super) fn run(args: &OpenArgs, as_json: bool) -> anyhow::Result<Answer> {
    let store = open_restored_store(args, "stop it, and start it again afterwards")?;
    store.settle(PATIENCE)?;
    let Some(accepted) = store.accepted_restore() else {
        if as_json {
            output::json(&json!({"accepted": false}));
        } else {
            output::line(
                "the database holds everything that was seen of it; there is nothing to accept",
            );
        }
        return Ok(Answer::No);
    };
    store.publish()?;
    let old = accepted.old_root.map(hex::encode);
    let new = hex::encode(accepted.new_root);
    if as_json {
        output::json(&json!({
            "accepted": true,
            "old_size": accepted.old_size,
            "old_root": old,
            "new_size": accepted.new_size,
            "new_root": new,
        }));
    } else {
        let old = old.as_deref().unwrap_or("known only to a replica that is lost");
        output::line(&format!("accepted: the log had {} entries, root {old}", accepted.old_size));
        output::line(&format!("it goes on from      {} entries, root {new}", accepted.new_size));
        output::note(
            "The log says so in an entry `restore`. Receipts of entries in between prove what was, \
             and not what is.",
        );
    }
    Ok(Answer::Yes)
}
