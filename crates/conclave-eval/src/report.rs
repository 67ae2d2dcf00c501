//! A whole measurement: what was read, what it gave, and how it differs from an earlier one.
//!
//! **Invariant:** the names of the fields are stable: an old report must stay readable as a baseline.

use crate::baseline::Change;
use crate::detail::{Detail, details};
use crate::estimate::count;
use crate::figures::Latency;
use crate::group::{Group, Kind, groups};
use crate::outcome::Outcome;
use crate::panel::PanelFigures;
use crate::scorecard::{ScorecardFigure, scorecard};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of this shape; changes only when a reader of the old one would be misled.
pub const EVAL_FORMAT: &str = "conclave-eval/1";

/// A line that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadLine {
    /// The file.
    pub file: String,
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// What was measured, and with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The program's version.
    pub version: String,
    /// The files, in order.
    pub files: Vec<String>,
    /// The mode every row was read in; `null` where each row chose its own.
    pub mode: Option<String>,
    /// Threads that judged.
    pub threads: usize,
}

/// A whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`EVAL_FORMAT`].
    pub format: String,
    /// What was measured, and with what.
    pub setting: Setting,
    /// Rows measured.
    pub rows: usize,
    /// Lines that could not be.
    pub bad_lines: usize,
    /// The first of them.
    pub bad: Vec<BadLine>,
    /// How long it took, reading included.
    pub seconds: f64,
    /// Texts judged in a second, by all threads together.
    pub texts_per_second: Option<f64>,
    /// Processor time of all threads together; `null` where the system does not tell.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// Rows judged in a second of processor time; `null` where the system does not tell.
    #[serde(default)]
    pub rows_per_cpu_second: Option<f64>,
    /// Of all rows.
    pub latency: Latency,
    /// Figures, by kind.
    pub groups: Vec<Group>,
    /// The figures by which versions are compared.
    #[serde(default)]
    pub scorecard: Vec<ScorecardFigure>,
    /// Curves, calibration and examples by scope.
    pub details: Vec<Detail>,
    /// What each verifier says of replies, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelFigures>,
    /// Differences to a baseline, where one was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The files of the baseline, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Setting>,
}

impl Report {
    /// Measures outcomes.
    #[must_use]
    pub fn of(setting: Setting, outcomes: &[Outcome], seconds: f64) -> Self {
        let all: Vec<_> = outcomes.iter().map(|one| one.sample(one.row.task)).collect();
        let rows = count(all.len());
        Self {
            format: EVAL_FORMAT.to_owned(),
            setting,
            rows: all.len(),
            bad_lines: 0,
            bad: Vec::new(),
            seconds,
            texts_per_second: (seconds > 0.0).then(|| rows / seconds),
            cpu_seconds: None,
            rows_per_cpu_second: None,
            latency: Latency::of(&all),
            groups: groups(outcomes),
            scorecard: scorecard(outcomes),
            details: details(outcomes),
            panel: PanelFigures::of(outcomes),
            changes: Vec::new(),
            baseline: None,
        }
    }

    /// The same, with the lines that could not be measured.
    #[must_use]
    pub fn with_bad(mut self, bad_lines: usize, first: Vec<BadLine>) -> Self {
        (self.bad_lines, self.bad) = (bad_lines, first);
        self
    }

    /// The same, with the processor time it took, where that is known.
    #[must_use]
    pub fn with_cpu_seconds(mut self, cpu_seconds: Option<f64>) -> Self {
        self.cpu_seconds = cpu_seconds;
        self.rows_per_cpu_second =
            cpu_seconds.filter(|spent| *spent > 0.0).map(|spent| count(self.rows) / spent);
        self
    }

    /// The groups of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |group| group.kind == kind)
    }

    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    /// When it is not one, in words for a person.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let report: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("not a report of `conclave eval --json`: {error}"))?;
        if report.format == EVAL_FORMAT {
            Ok(report)
        } else {
            Err(format!("is of the format `{}`, not `{EVAL_FORMAT}`", report.format))
        }
    }
}
