//! `conclave eval`: the judgement against labelled rows.

use super::rows::{judge_with_votes, work};
use super::{Answer, checker, processor_time};
use crate::cli::EvalArgs;
use crate::output;
use anyhow::{Context, anyhow};
use conclave_core::Mode;
use conclave_eval::{BadLine, Outcome, Report, Setting, all_cores};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bad lines that are printed; all are counted.
const BAD_SHOWN_MAX: usize = 10;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, or has nothing to measure.
pub fn run(args: &EvalArgs, as_json: bool) -> anyhow::Result<Answer> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let checker = checker::build(&args.reading, true)?;
    let jobs = args.jobs.unwrap_or_else(all_cores);
    let start = Instant::now();
    let processor_start = processor_time::seconds_of_process();
    let worked = work(&args.files, args.mode, jobs, |labelled| {
        let (judged, votes) = judge_with_votes(&checker, &labelled.question);
        Outcome { row: labelled.row, judged, votes }
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let processor_end = processor_time::seconds_of_process();
    let cpu_seconds = processor_start.zip(processor_end).map(|(start, end)| end - start);
    let setting = setting(&args.files, args.mode, jobs);
    let report = Report::of(setting, &worked.results, seconds)
        .with_cpu_seconds(cpu_seconds)
        .with_bad(worked.bad_lines, worked.bad);
    let report = match &baseline {
        Some(baseline) => report.against(baseline),
        None => report,
    };
    if let Some(path) = &args.report {
        write_page(path, &report.to_html()?)?;
    }
    if as_json {
        output::json(&report);
    } else {
        output::line(report.to_text().trim_end());
    }
    Ok(answer(report.bad_lines, &report.bad))
}

/// What is measured, and with what.
pub fn setting(files: &[PathBuf], mode: Option<Mode>, jobs: NonZeroUsize) -> Setting {
    Setting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        files: files.iter().map(|file| file.display().to_string()).collect(),
        mode: mode.map(|mode| mode.as_str().to_owned()),
        threads: jobs.get(),
    }
}

/// Names the lines that could not be measured; with any of them the answer is no.
pub fn answer(bad_lines: usize, bad: &[BadLine]) -> Answer {
    bad.iter().take(BAD_SHOWN_MAX).for_each(|line| output::note(&line.to_string()));
    if bad_lines == 0 {
        return Answer::Yes;
    }
    output::note(&format!("{bad_lines} lines could not be measured"));
    Answer::No
}

/// Writes a page where it was asked for.
///
/// # Errors
/// When the file cannot be written.
pub fn write_page(path: &Path, page: &str) -> anyhow::Result<()> {
    std::fs::write(path, page).with_context(|| path.display().to_string())
}

fn read_baseline(path: &Path) -> anyhow::Result<Report> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Report::from_json(&bytes).map_err(|why| anyhow!("{}: {why}", path.display()))
}
