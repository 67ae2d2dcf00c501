//! Working through files of labelled rows with every core.
//!
//! **Invariant:** what comes out stands in the order of the files, whoever finished first; only a fixed
//! number of lines is held at a time.

use super::lines::{LineReader, NumberedLine};
use anyhow::{Context, bail};
use conclave_core::Mode;
use conclave_engine::{Checker, Question, VoteLine};
use conclave_eval::{BadLine, CastVote, Judged, Row, map_in_order};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bad lines that are named; the others are counted.
const BAD_NAMED_MAX: usize = 100;

/// One labelled row and what is to be judged of it.
pub struct Labelled {
    /// What is true.
    pub row: Row,
    /// What is to be judged.
    pub question: Question,
}

impl Labelled {
    /// Reads a line.
    fn read(line: &[u8], mode: Option<Mode>) -> Result<Self, String> {
        let fields: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))?;
        let row = Row::from_line(&fields).map_err(|error| error.to_string())?;
        let mut question = Question::from_line(&fields).map_err(|error| error.to_string())?;
        question.mode = mode.unwrap_or(question.mode);
        Ok(Self { row, question })
    }
}

/// What came of all rows.
pub struct Worked<T> {
    /// In the order of the files.
    pub results: Vec<T>,
    /// Lines that could not be worked on.
    pub bad_lines: usize,
    /// The first of them.
    pub bad: Vec<BadLine>,
}

/// Does something with every labelled row of the files, on so many threads.
///
/// # Errors
/// When a file cannot be read, or none of them has a row.
pub fn work<T: Send>(
    files: &[PathBuf],
    mode: Option<Mode>,
    jobs: NonZeroUsize,
    job: impl Fn(Labelled) -> T + Sync,
) -> anyhow::Result<Worked<T>> {
    let source = Source::open(files)?;
    let progress = source.progress.clone();
    let judge = |line: anyhow::Result<RawLine>| -> anyhow::Result<WorkedLine<T>> {
        let RawLine { file, line } = line?;
        let result = line.bytes.and_then(|bytes| Labelled::read(&bytes, mode)).and_then(|row| {
            // A row that makes the judge panic is a finding, and must not hide the others.
            catch_unwind(AssertUnwindSafe(|| job(row))).map_err(|_| "judging it panicked".into())
        });
        Ok(WorkedLine { file, number: line.number, result })
    };
    let mut worked = Worked { results: Vec::new(), bad_lines: 0, bad: Vec::new() };
    map_in_order(jobs, source, judge, |line| line.map(|line| worked.add(files, line)))?;
    progress.finish_and_clear();
    worked.require_results(files)
}

struct WorkedLine<T> {
    /// Its place among the files.
    file: usize,
    number: u64,
    result: Result<T, String>,
}

impl<T> Worked<T> {
    fn add(&mut self, files: &[PathBuf], line: WorkedLine<T>) {
        match line.result {
            Ok(result) => self.results.push(result),
            Err(message) => {
                self.bad_lines += 1;
                if self.bad.len() < BAD_NAMED_MAX {
                    let file = files.get(line.file).map(|file| file.display().to_string());
                    let file = file.unwrap_or_default();
                    self.bad.push(BadLine { file, line: line.number, message });
                }
            }
        }
    }

    fn require_results(self, files: &[PathBuf]) -> anyhow::Result<Self> {
        if let (true, Some(first)) = (self.results.is_empty(), self.bad.first()) {
            bail!("no line could be measured; the first is {first}");
        }
        if self.results.is_empty() {
            let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            bail!("there is nothing to measure: {} has no rows", names.join(", "));
        }
        Ok(self)
    }
}

/// A line as it stands in its file.
struct RawLine {
    /// Its place among the files.
    file: usize,
    line: NumberedLine,
}

/// The lines of all files, one after the other.
struct Source {
    files: Vec<PathBuf>,
    /// The file that is being read, counted from 1; 0 before the first.
    at: usize,
    lines: LineReader<Box<dyn BufRead + Send>>,
    progress: ProgressBar,
}

impl Source {
    fn open(files: &[PathBuf]) -> anyhow::Result<Self> {
        let mut bytes = 0;
        for file in files {
            // All are opened before any is read, so that a slip in the last name costs no minutes.
            let opened = File::open(file).with_context(|| file.display().to_string())?;
            let known = opened.metadata().with_context(|| file.display().to_string())?;
            if known.is_dir() {
                bail!("{} is a directory", file.display());
            }
            bytes += known.len();
        }
        let lines = LineReader::new(Box::new(io::empty()) as Box<dyn BufRead + Send>);
        Ok(Self { files: files.to_vec(), at: 0, lines, progress: progress(bytes) })
    }

    fn place(&self) -> usize {
        self.at.saturating_sub(1)
    }

    fn name(&self) -> String {
        let file = self.files.get(self.place());
        file.map(|file| file.display().to_string()).unwrap_or_default()
    }
}

impl Iterator for Source {
    type Item = anyhow::Result<RawLine>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(read) = self.lines.next() {
                let place = || format!("{}, after line {}", self.name(), self.lines.number);
                let read = read.with_context(place);
                return Some(read.map(|line| RawLine { file: self.place(), line }));
            }
            let path = self.files.get(self.at)?;
            let opened = reader(path, &self.progress).with_context(|| path.display().to_string());
            self.at += 1;
            match opened {
                Ok(input) => self.lines = LineReader::new(input),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Opens a file, compressed or not, as its first bytes say.
fn reader(path: &Path, progress: &ProgressBar) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::new(progress.wrap_read(File::open(path)?));
    let packed = starts_with(&mut file, &[0x1f, 0x8b])?;
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

fn starts_with(input: &mut BufReader<impl Read>, magic: &[u8]) -> io::Result<bool> {
    Ok(input.fill_buf()?.starts_with(magic))
}

/// A bar on stderr where a person looks, else nothing.
fn progress(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:40} {percent:>3} %  {elapsed_precise}  about {eta} left";
    let bar = ProgressBar::new(bytes);
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Judges a question and keeps what figures need.
pub fn judge(checker: &Checker, question: &Question) -> Judged {
    judge_with_votes(checker, question).0
}

/// The same, and who voted on a reply, and how.
pub fn judge_with_votes(checker: &Checker, question: &Question) -> (Judged, Vec<CastVote>) {
    let start = Instant::now();
    let judgement = checker.check(question);
    let latency_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    let votes = judgement.votes.iter().filter_map(cast_vote).collect();
    let judged = Judged {
        harm: judgement.harm,
        crisis: judgement.crisis,
        injection: judgement.injection,
        harmful: judgement.verdict == "harmful",
        blocked: judgement.is_withheld(),
        escalating: judgement.escalating,
        // What `check` lists is identifying: a place, an organisation or a date alone is not listed.
        identifying: !judgement.pii.is_empty(),
        latency_us,
    };
    (judged, votes)
}

/// How a verifier voted; `None` where it did not.
fn cast_vote(line: &VoteLine) -> Option<CastVote> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let sure = (line.confidence.clamp(0.0, 1.0) * 100.0).round() as u16;
    let (objected, gravity) = match line.vote {
        "safe" => (false, 100 - sure),
        "concern" => (true, 100 + sure),
        "harmful" => (true, 200 + sure),
        _ => return None,
    };
    Some(CastVote { verifier: line.verifier.clone(), objected, gravity })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path, rows: &[usize]) -> Vec<PathBuf> {
        let file = |(at, rows): (usize, &usize)| {
            let row = |id| format!("{{\"id\": {id}, \"text\": \"a\", \"label\": \"safe\"}}\n");
            let path = dir.join(at.to_string());
            std::fs::write(&path, (0..*rows).map(row).collect::<String>()).unwrap();
            path
        };
        rows.iter().enumerate().map(file).collect()
    }

    fn jobs(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_stand_in_the_order_of_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path(), &[700, 0, 300]);
        let worked = work(&files, None, jobs(8), |one| one.row.id).unwrap();
        let expected: Vec<_> = (0..700).chain(0..300).map(|id| id.to_string()).collect();
        assert_eq!(worked.results, expected);
        assert_eq!(worked.bad_lines, 0);
    }

    #[test]
    fn a_row_that_makes_the_judge_panic_is_named_and_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let job = |one: Labelled| assert_ne!(one.row.id, "41");
        let worked = work(&files(dir.path(), &[100]), None, jobs(2), job).unwrap();
        assert_eq!((worked.results.len(), worked.bad_lines), (99, 1));
        assert_eq!(
            (worked.bad[0].line, worked.bad[0].message.as_str()),
            (42, "judging it panicked")
        );
    }

    #[test]
    fn the_mode_given_wins_over_the_row() {
        let line = br#"{"text": "a", "label": "safe", "mode": "creative"}"#;
        assert_eq!(Labelled::read(line, None).unwrap().question.mode, Mode::Creative);
        let given = Labelled::read(line, Some(Mode::ChildSafe)).unwrap();
        assert_eq!(given.question.mode, Mode::ChildSafe);
    }
}
