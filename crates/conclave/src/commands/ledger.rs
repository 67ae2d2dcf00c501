//! `conclave ledger verify`

use super::Answer;
use crate::cli::LedgerCommand;
use crate::output;
use conclave_engine::replay;
use conclave_ledger::Report;
use conclave_store::{Inspection, inspect};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When the ledger could not be checked at all.
pub fn run(command: &LedgerCommand, as_json: bool) -> anyhow::Result<Answer> {
    let LedgerCommand::Verify(args) = command;
    verify(&args.data, as_json)
}

fn verify(data: &Path, as_json: bool) -> anyhow::Result<Answer> {
    let mut bar = Progress::new();
    let inspection = Inspection {
        progress: Some(Box::new(|done, all| bar.show(done, all))),
        root_key: None,
        check: Some(Box::new(|_, leaf, _| replay(leaf).map_err(|error| error.to_string()))),
    };
    let report = inspect(data, inspection)?;
    bar.clear();
    if as_json {
        output::json(&as_value(&report));
    } else {
        print(&report);
    }
    Ok(if report.ok { Answer::Yes } else { Answer::No })
}

fn as_value(report: &Report) -> serde_json::Value {
    json!({
        "ok": report.ok,
        "entries": report.entries,
        "pending": report.pending,
        "root": report.root,
        "bodies": report.bodies,
        "opened": report.opened,
        "forgotten": report.forgotten,
        "kinds": report.kinds,
        "outcomes": report.outcomes,
        "refused": report.refused,
        "first_bad": report.first_bad.as_ref().map(|bad| json!({
            "seq": bad.seq,
            "id": bad.id.map(|id| id.to_string()),
            "problem": bad.problem.to_string(),
        })),
    })
}

fn print(report: &Report) {
    match &report.first_bad {
        None => output::line(&format!(
            "{} {} entries, root {}",
            output::coloured("the ledger holds:", "32"),
            report.entries,
            report.root
        )),
        Some(bad) => output::line(&format!(
            "{} entry {}: {}",
            output::coloured("the ledger does not hold:", "31"),
            bad.seq,
            bad.problem
        )),
    }
    if report.pending > 0 {
        output::line(&format!("  {} more are durable in the spool", report.pending));
    }
    for (kind, count) in &report.kinds {
        output::line(&format!("  {kind:<20} {count}"));
    }
}

/// A bar on stderr, only where a person looks.
struct Progress {
    shown: bool,
    visible: bool,
}

impl Progress {
    fn new() -> Self {
        Self { shown: false, visible: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, done: u64, all: u64) {
        if self.visible && done.is_multiple_of(4096) {
            let percent = (done * 100).checked_div(all).unwrap_or(100);
            let _ = write!(std::io::stderr(), "\r{done}/{all} entries, {percent} %");
            self.shown = true;
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
