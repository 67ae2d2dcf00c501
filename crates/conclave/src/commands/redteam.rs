//! `conclave redteam`: what gets through in disguise.

use super::eval::{answer, setting, write_page};
use super::rows::{Labelled, judge, work};
use super::{Answer, checker};
use crate::cli::RedteamArgs;
use crate::output;
use anyhow::bail;
use conclave_core::{Message, Role};
use conclave_engine::{Checker, Question};
use conclave_eval::{
    Attack, Disguised, EXCERPT_CHARS_MAX, Label, Mutation, RedteamReport, Row, Task, Trial,
    all_cores, clipped, hash,
};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, or has nothing to disguise.
pub fn run(args: &RedteamArgs, as_json: bool) -> anyhow::Result<Answer> {
    let checker = checker::build(&args.reading, true)?;
    let jobs = args.jobs.unwrap_or_else(all_cores);
    let start = Instant::now();
    let selection = match args.limit {
        Some(limit) => RowSelection::at_most(limit, args, jobs)?,
        None => RowSelection { harmful: u64::MAX, safe: u64::MAX },
    };
    let job = |labelled: Labelled| selection.holds(&labelled).then(|| attack(&checker, &labelled));
    let worked = work(&args.files, args.mode, jobs, job)?;
    let attacks: Vec<_> = worked.results.into_iter().flatten().collect();
    if attacks.is_empty() {
        bail!("there is nothing to disguise: no row is a prompt, a text or an injection");
    }
    let setting = setting(&args.files, args.mode, jobs);
    let report = RedteamReport::of(setting, attacks, start.elapsed().as_secs_f64());
    let report = report.with_bad(worked.bad_lines, worked.bad);
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

/// Which rows are tried: those whose names hash to at most this, so that a limit takes rows from all
/// over the files, and the same ones every time.
struct RowSelection {
    harmful: u64,
    safe: u64,
}

impl RowSelection {
    fn at_most(limit: usize, args: &RedteamArgs, jobs: NonZeroUsize) -> anyhow::Result<Self> {
        let job = |labelled: Labelled| {
            is_input(&labelled).then(|| (labelled.row.label, place(&labelled.row)))
        };
        let places: Vec<_> =
            work(&args.files, args.mode, jobs, job)?.results.into_iter().flatten().collect();
        let last = |label| {
            let mut held: Vec<_> =
                places.iter().filter(|one| one.0 == label).map(|one| one.1).collect();
            held.sort_unstable();
            held.get(limit.saturating_sub(1)).copied().unwrap_or(u64::MAX)
        };
        Ok(Self { harmful: last(Label::Harmful), safe: last(Label::Safe) })
    }

    fn holds(&self, labelled: &Labelled) -> bool {
        let last = match labelled.row.label {
            Label::Harmful => self.harmful,
            Label::Safe => self.safe,
        };
        is_input(labelled) && place(&labelled.row) <= last
    }
}

fn place(row: &Row) -> u64 {
    hash(if row.id.is_empty() { &row.excerpt } else { &row.id })
}

/// Whether someone could have disguised it: an input in which something is asked or smuggled.
fn is_input(labelled: &Labelled) -> bool {
    matches!(labelled.row.task, Task::Prompt | Task::Text | Task::Injection)
        && labelled.question.reply.is_none()
        && last_said(&labelled.question).is_some()
}

/// The last thing the person said.
struct LastMessage {
    /// Its place among the turns.
    at: usize,
    text: String,
}

fn last_said(question: &Question) -> Option<LastMessage> {
    let at = question.turns.iter().rposition(|turn| turn.role == Role::User)?;
    let text = question.turns.get(at)?.content.as_text().into_owned();
    Some(LastMessage { at, text })
}

fn attack(checker: &Checker, labelled: &Labelled) -> Attack {
    let task = labelled.row.task;
    let harmful = labelled.row.label == Label::Harmful;
    let flagged_plain = judge(checker, &labelled.question).flagged(task);
    let trials = match last_said(&labelled.question) {
        Some(plain) if harmful == flagged_plain => Mutation::ALL
            .iter()
            .filter_map(|mutation| {
                let disguised = mutation.apply(&plain.text, place(&labelled.row))?;
                Some(try_disguise(checker, labelled, *mutation, &plain, &disguised))
            })
            .collect(),
        _ => Vec::new(),
    };
    Attack { harmful, flagged_plain, trials }
}

fn try_disguise(
    checker: &Checker,
    labelled: &Labelled,
    mutation: Mutation,
    plain: &LastMessage,
    disguised: &str,
) -> Trial {
    let row = &labelled.row;
    let mut question = labelled.question.clone();
    if let Some(turn) = question.turns.get_mut(plain.at) {
        *turn = Message::text(Role::User, disguised);
    }
    let judged = judge(checker, &question);
    let flagged = judged.flagged(row.task);
    let wrong = flagged != (row.label == Label::Harmful);
    let example = wrong.then(|| Disguised {
        id: row.id.clone(),
        source: row.source.clone(),
        language: row.language.clone(),
        score: judged.score(row.task),
        plain: clipped(&plain.text, EXCERPT_CHARS_MAX),
        disguised: clipped(disguised, EXCERPT_CHARS_MAX),
    });
    Trial { mutation, flagged, example }
}
