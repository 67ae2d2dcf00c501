//! `conclave eval`: the judgement against labelled rows.

use super::rows::{judge, threads, work};
use super::{Answer, checker};
use crate::cli::EvalArgs;
use crate::output;
use anyhow::{Context, anyhow};
use conclave_eval::{BadLine, Outcome, Report, Setting};
use std::path::Path;
use std::time::Instant;

/// Bad lines that are printed; all are counted.
const BAD_SHOWN_MAX: usize = 10;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, or has nothing to measure.
pub fn run(args: &EvalArgs, as_json: bool) -> anyhow::Result<Answer> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let checker = checker::build()?;
    let start = Instant::now();
    let worked = work(&args.files, args.mode, |labelled| Outcome {
        judged: judge(&checker, &labelled.question),
        row: labelled.row,
    })?;
    let setting = Setting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        files: args.files.iter().map(|file| file.display().to_string()).collect(),
        mode: args.mode.map(|mode| mode.as_str().to_owned()),
        threads: threads(),
    };
    let report = Report::of(setting, &worked.results, start.elapsed().as_secs_f64());
    let report = report.with_bad(worked.bad_lines, worked.bad);
    let report = match &baseline {
        Some(baseline) => report.against(baseline),
        None => report,
    };
    if as_json {
        output::json(&report);
    } else {
        output::line(report.to_text().trim_end());
    }
    Ok(answer(report.bad_lines, &report.bad))
}

/// Names the lines that could not be measured; with any of them the answer is no.
pub fn answer(bad_lines: usize, bad: &[BadLine]) -> Answer {
    for BadLine { file, line, message } in bad.iter().take(BAD_SHOWN_MAX) {
        output::note(&format!("{file}:{line}: {message}"));
    }
    if bad_lines == 0 {
        return Answer::Yes;
    }
    output::note(&format!("{bad_lines} lines could not be measured"));
    Answer::No
}

fn read_baseline(path: &Path) -> anyhow::Result<Report> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Report::from_json(&bytes).map_err(|why| anyhow!("{}: {why}", path.display()))
}
