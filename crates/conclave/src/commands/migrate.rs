//! `conclave migrate`: a ledger from one database to another.

use super::Answer;
use super::data_directory::require_data;
use crate::cli::{MigrateArgs, MigrateCommand};
use crate::output;
use crate::system::SystemEntropy;
use anyhow::{Context, anyhow};
use conclave_engine::replay;
use conclave_store::{Inspection, inspect_database, move_to_postgres};
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// When it could not be done; then nothing was moved.
pub fn run(command: &MigrateCommand, as_json: bool) -> anyhow::Result<Answer> {
    let MigrateCommand::SqliteToPostgres(args) = command;
    sqlite_to_postgres(args, as_json)
}

fn sqlite_to_postgres(args: &MigrateArgs, as_json: bool) -> anyhow::Result<Answer> {
    let url = args.database.url()?.ok_or_else(|| anyhow!("say where to with --database URL"))?;
    require_data(&args.data)?;
    let moved = move_to_postgres(&args.data, &url, &SystemEntropy, &mut |_, _| {})?;
    let inspection = Inspection {
        check: Some(Box::new(|_, leaf, _| replay(leaf).map_err(|error| error.to_string()))),
        ..Inspection::default()
    };
    let report = inspect_database(&url, Some(&args.data), inspection)
        .context("everything was moved, but it could not be checked afterwards")?;
    let same = report.root == hex::encode(moved.root) && report.ok;
    if as_json {
        output::json(&json!({
            "entries": moved.entries, "root": hex::encode(moved.root), "verified": same,
            "was_there": moved.was_there, "database": url.to_string(),
        }));
    } else if same {
        let verb = if moved.was_there { "were there already" } else { "were moved" };
        output::line(&format!("{} entries {verb} to {url}", moved.entries));
        output::line(&format!("  the root is what it was, {}, and everything holds", report.root));
        output::note(
            "Start the gateway with --database from now on. `ledger.db` and `ops.db` are not used \
             any more; keep them as a backup.",
        );
    } else {
        let problem = report.first_bad.map(|bad| format!("entry {}: {}", bad.seq, bad.problem));
        output::line(&format!(
            "the ledger in {url} does not hold: {}",
            problem.unwrap_or_else(|| "its root is another".to_owned())
        ));
    }
    Ok(if same { Answer::Yes } else { Answer::No })
}
