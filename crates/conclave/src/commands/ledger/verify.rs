//! `conclave ledger verify`

use super::super::Answer;
use super::audit::audit;
use super::second::{self, Equivocation};
use super::tiled::TiledLog;
use super::{Place, parse_vkey, place, reader};
use crate::cli::ledger::LedgerVerifyArgs;
use crate::output;
use anyhow::{Context, bail};
use conclave_engine::replay;
use conclave_ledger::Report;
use conclave_store::{Inspection, inspect, inspect_database};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The largest checkpoint that is read from a file.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// Runs the command.
///
/// # Errors
/// When the ledger could not be checked at all.
pub(super) fn run(args: &LedgerVerifyArgs, as_json: bool) -> anyhow::Result<Answer> {
    let vkey = args.vkey.as_deref().map(parse_vkey).transpose()?;
    let second = args.checkpoint.as_deref().map(second::read).transpose()?;
    let mut bar = Progress::new();
    let mut against = None;
    let (report, with_leaves) = match place(&args.source, args.key.key.as_deref())? {
        Place::Data(dir, url) => {
            if args.since.is_some() {
                bail!(
                    "--since goes with --export or --url; a data directory keeps its checkpoints"
                );
            }
            let inspection = Inspection {
                progress: Some(Box::new(|done, all| bar.show(done, all))),
                check: Some(Box::new(|_, leaf, _| replay(leaf).map_err(|error| error.to_string()))),
                vkey: vkey.clone(),
                root_key: None,
            };
            let report = match &url {
                Some(url) => inspect_database(url, Some(&dir), inspection)?,
                None => inspect(&dir, inspection)?,
            };
            if let Some(theirs) = second {
                let reader = reader(&dir, url.as_deref())?;
                against = second::against_ledger(&reader, vkey.as_ref(), theirs)?;
            }
            (report, true)
        }
        Place::Tiled(log) => {
            let keys = match &vkey {
                Some(key) => vec![key.clone()],
                None => log.vkeys()?,
            };
            let verified = verify_tiled(&*log, &keys, args.since.as_deref(), &mut bar)?;
            if let Some(theirs) = second.filter(|_| verified.0.ok) {
                against = second::against_tiles(&*log, &keys, theirs)?;
            }
            verified
        }
    };
    bar.clear();
    if as_json {
        let mut value = as_value(&report, vkey.is_some(), with_leaves);
        value["ok"] = (report.ok && against.is_none()).into();
        value["equivocation"] = against.as_ref().map_or(json!(null), Equivocation::as_value);
        output::json(&value);
    } else {
        print(&report, vkey.is_some());
        if !with_leaves {
            output::line("  only hashes were looked at; entries need an auditor's key: --key");
        }
    }
    if let Some(found) = against.as_ref().filter(|_| !as_json) {
        output::line(&found.lines());
    }
    Ok(if report.ok && against.is_none() { Answer::Yes } else { Answer::No })
}

fn verify_tiled(
    log: &dyn TiledLog,
    keys: &[conclave_ledger::VerifierKey],
    since: Option<&Path>,
    bar: &mut Progress,
) -> anyhow::Result<(Report, bool)> {
    let before = since.map(kept).transpose()?.flatten();
    let mut tell = |done, all| bar.show(done, all);
    let audited = audit(log, keys, before.as_deref(), &mut tell)?;
    if let Some(file) = since.filter(|_| audited.report.ok) {
        std::fs::write(file, &audited.note).with_context(|| file.display().to_string())?;
    }
    Ok((audited.report, audited.with_leaves))
}

/// The checkpoint of last time; `None` at the first time.
fn kept(file: &Path) -> anyhow::Result<Option<String>> {
    if !file.exists() {
        return Ok(None);
    }
    let known = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    if known.len() > NOTE_BYTES_MAX {
        bail!("{} is too large to be a checkpoint", file.display());
    }
    Ok(Some(std::fs::read_to_string(file).with_context(|| file.display().to_string())?))
}

fn as_value(report: &Report, pinned: bool, with_leaves: bool) -> serde_json::Value {
    json!({
        "ok": report.ok,
        "entries": report.entries,
        "pending": report.pending,
        "root": report.root,
        "bodies": report.bodies,
        "opened": report.opened,
        "forgotten": report.forgotten,
        "checkpoints": report.checkpoints,
        "signed": report.signed,
        "key_given": pinned,
        "leaves_checked": with_leaves,
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

fn print(report: &Report, pinned: bool) {
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
    if report.ok && report.checkpoints > 0 {
        let trust = if pinned { "the key you gave" } else { "its own key; give one with --vkey" };
        output::line(&format!(
            "  {} checkpoints hold, the last over {} entries, signed by {trust}",
            report.checkpoints, report.signed
        ));
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
