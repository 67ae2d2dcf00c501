//! `conclave ledger verify`

use super::super::Answer;
use super::audit::audit;
use super::entry_lines::{LineCheck, check_entry_lines};
use super::second::{self, Equivocation};
use super::tiled::TiledLog;
use super::{LedgerPlace, find_ledger, open_reader, parse_vkey};
use crate::cli::ledger::{LedgerSource, LedgerVerifyArgs};
use crate::output;
use anyhow::{Context, anyhow, bail};
use conclave_engine::replay;
use conclave_ledger::{Bad, Report, VerifierKey};
use conclave_store::{DatabaseUrl, Inspection, inspect, inspect_database};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The largest checkpoint that is read from a file.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// What a check of a ledger came to.
struct Findings {
    report: Report,
    /// Whether the leaves were to be had, or only their hashes.
    with_leaves: bool,
    /// Of an export: whether there is a file for people, which then says what the leaves say.
    lines_checked: Option<bool>,
    /// What contradicts the second checkpoint that was given.
    equivocation: Option<Equivocation>,
}

impl Findings {
    fn holds(&self) -> bool {
        self.report.ok && self.equivocation.is_none()
    }
}

/// Runs the command.
///
/// # Errors
/// When the ledger could not be checked at all.
pub(super) fn run(args: &LedgerVerifyArgs, as_json: bool) -> anyhow::Result<Answer> {
    let vkey = args.vkey.as_deref().map(parse_vkey).transpose()?;
    let findings = match find_ledger(&args.source)? {
        LedgerPlace::Data { dir, database } => {
            verify_data(&dir, database.as_deref(), vkey.as_ref(), args)?
        }
        // Exit 1 is kept for a log that does not hold, so a gateway that refuses to show it must
        // not end as a refusal does.
        LedgerPlace::Tiled(log) => verify_tiled(&*log, vkey.as_ref(), args)
            .and_then(|findings| with_lines(findings, &*log, args))
            .map_err(|error| anyhow!("the log could not be checked: {error:#}"))?,
    };
    if as_json {
        output::json(&as_value(&findings, vkey.is_some()));
    } else {
        print(&findings, vkey.is_some());
    }
    Ok(if findings.holds() { Answer::Yes } else { Answer::No })
}

fn verify_data(
    dir: &Path,
    database: Option<&DatabaseUrl>,
    vkey: Option<&VerifierKey>,
    args: &LedgerVerifyArgs,
) -> anyhow::Result<Findings> {
    if args.since.is_some() {
        bail!("--since goes with --export or --url; a data directory keeps its checkpoints");
    }
    let second = args.checkpoint.as_deref().map(second::read).transpose()?;
    let mut bar = Progress::new();
    let inspection = Inspection {
        progress: Some(Box::new(|done, all| bar.show(done, all))),
        check: Some(Box::new(|_, leaf, _| replay(leaf).map_err(|error| error.to_string()))),
        vkey: vkey.cloned(),
        root_key: None,
    };
    let report = match database {
        Some(url) => inspect_database(url, Some(dir), inspection)?,
        None => inspect(dir, inspection)?,
    };
    let equivocation = match second {
        Some(theirs) => second::against_ledger(&open_reader(dir, database)?, vkey, theirs)?,
        None => None,
    };
    bar.clear();
    Ok(Findings { report, with_leaves: true, lines_checked: None, equivocation })
}

fn verify_tiled(
    log: &dyn TiledLog,
    vkey: Option<&VerifierKey>,
    args: &LedgerVerifyArgs,
) -> anyhow::Result<Findings> {
    let second = args.checkpoint.as_deref().map(second::read).transpose()?;
    let keys = match vkey {
        Some(key) => vec![key.clone()],
        None => log.vkeys()?,
    };
    let since = args.since.as_deref();
    let before = since.map(read_last_checkpoint).transpose()?.flatten();
    let mut bar = Progress::new();
    let audit = audit(log, &keys, before.as_deref(), &mut |done, all| bar.show(done, all))?;
    if let Some(file) = since.filter(|_| audit.report.ok) {
        std::fs::write(file, &audit.note).with_context(|| file.display().to_string())?;
    }
    // A log that does not hold by itself needs no second witness against it.
    let equivocation = match second.filter(|_| audit.report.ok) {
        Some(theirs) => second::against_tiles(log, &keys, theirs)?,
        None => None,
    };
    bar.clear();
    let (report, with_leaves) = (audit.report, audit.with_leaves);
    Ok(Findings { report, with_leaves, lines_checked: None, equivocation })
}

/// Compares the file that people read of an export with its leaves. Where these do not hold, that is said
/// and nothing is compared with them.
fn with_lines(
    mut findings: Findings,
    log: &dyn TiledLog,
    args: &LedgerVerifyArgs,
) -> anyhow::Result<Findings> {
    let LedgerSource::Export(dir) = &args.source else { return Ok(findings) };
    if !findings.report.ok {
        return Ok(findings);
    }
    match check_entry_lines(dir, log, findings.report.entries)? {
        LineCheck::Absent => findings.lines_checked = Some(false),
        LineCheck::Agree => findings.lines_checked = Some(true),
        LineCheck::Differ { seq, problem } => {
            findings.report.ok = false;
            findings.report.first_bad = Some(Bad { seq, id: None, problem });
        }
    }
    Ok(findings)
}

/// The checkpoint of last time; `None` at the first time.
fn read_last_checkpoint(file: &Path) -> anyhow::Result<Option<String>> {
    if !file.exists() {
        return Ok(None);
    }
    let known = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    if known.len() > NOTE_BYTES_MAX {
        bail!("{} is too large to be a checkpoint", file.display());
    }
    Ok(Some(std::fs::read_to_string(file).with_context(|| file.display().to_string())?))
}

fn as_value(findings: &Findings, pinned: bool) -> serde_json::Value {
    let report = &findings.report;
    json!({
        "ok": findings.holds(),
        "entries": report.entries,
        "pending": report.pending,
        "root": report.root,
        "bodies": report.bodies,
        "opened": report.opened,
        "forgotten": report.forgotten,
        "checkpoints": report.checkpoints,
        "signed": report.signed,
        "key_given": pinned,
        "leaves_checked": findings.with_leaves,
        "lines_checked": findings.lines_checked,
        "kinds": report.kinds,
        "outcomes": report.outcomes,
        "refused": report.refused,
        "first_bad": report.first_bad.as_ref().map(|bad| json!({
            "seq": bad.seq,
            "id": bad.id.map(|id| id.to_string()),
            "problem": bad.problem.to_string(),
        })),
        "equivocation": findings.equivocation.as_ref().map(Equivocation::as_value),
    })
}

fn print(findings: &Findings, pinned: bool) {
    let report = &findings.report;
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
    match findings.lines_checked {
        Some(true) => output::line("  entries.jsonl says what the entries say"),
        Some(false) => output::line("  there is no entries.jsonl to compare with the entries"),
        None => {}
    }
    if !findings.with_leaves {
        output::line("  only hashes were looked at; entries need an auditor's key: --key");
    }
    if let Some(equivocation) = &findings.equivocation {
        output::line(&equivocation.lines());
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
