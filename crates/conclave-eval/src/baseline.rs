//! This measurement against an earlier one.
//!
//! **Invariant:** a difference within the joint interval is shown, but never called better or worse.

use crate::estimate::Estimate;
use crate::figures::Figures;
use crate::group::{Group, Kind};
use crate::report::Report;
use serde::{Deserialize, Serialize};

/// What a difference amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureChange {
    /// Outside the joint interval, for the better.
    Better,
    /// Outside the joint interval, for the worse.
    Worse,
    /// Within it.
    Unclear,
}

/// One figure of one group, then and now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The group's kind.
    pub kind: Kind,
    /// The group's scope.
    pub scope: String,
    /// The group's name.
    pub name: String,
    /// The figure's field.
    pub figure: String,
    /// In the baseline.
    pub before: f64,
    /// Now.
    pub after: f64,
    /// Now less then, with the joint interval.
    pub difference: Estimate,
    /// What it amounts to.
    pub turn: FigureChange,
}

/// A figure that is compared: its field, whether more of it is better, and where it stands.
type Compared = (&'static str, bool, fn(&Figures) -> Option<Estimate>);

const COMPARED: [Compared; 10] = [
    ("precision", true, |figures| figures.precision),
    ("recall", true, |figures| figures.recall),
    ("fpr", false, |figures| figures.fpr),
    ("f1", true, |figures| figures.f1),
    ("auroc", true, |figures| figures.auroc),
    ("auprc", true, |figures| figures.auprc),
    ("recall_at_1_fpr", true, |figures| figures.recall_at_1_fpr),
    ("recall_at_5_fpr", true, |figures| figures.recall_at_5_fpr),
    ("safe_blocked", false, |figures| figures.safe_blocked),
    ("safe_over_floor", false, |figures| figures.safe_over_floor),
];

impl Report {
    /// The same, with its differences to a baseline.
    #[must_use]
    pub fn against(mut self, baseline: &Self) -> Self {
        self.changes = self.groups.iter().flat_map(|now| changes(now, baseline)).collect();
        self.baseline = Some(baseline.setting.clone());
        self
    }
}

fn changes(now: &Group, baseline: &Report) -> Vec<Change> {
    let same =
        |then: &&Group| (then.kind, &then.scope, &then.name) == (now.kind, &now.scope, &now.name);
    let Some(then) = baseline.groups.iter().find(same) else {
        return Vec::new();
    };
    COMPARED.iter().filter_map(|compared| change(now, then, *compared)).collect()
}

fn change(now: &Group, then: &Group, (figure, more_is_better, of): Compared) -> Option<Change> {
    let (after, before) = (of(&now.figures)?, of(&then.figures)?);
    let difference = after.less(before);
    let turn = if difference.low <= 0.0 && difference.high >= 0.0 {
        FigureChange::Unclear
    } else if (difference.value > 0.0) == more_is_better {
        FigureChange::Better
    } else {
        FigureChange::Worse
    };
    Some(Change {
        kind: now.kind,
        scope: now.scope.clone(),
        name: now.name.clone(),
        figure: figure.to_owned(),
        before: before.value,
        after: after.value,
        difference,
        turn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Judged, Outcome};
    use crate::report::Setting;
    use crate::row::{Label, Row, Task};

    /// A hundred harmful and a hundred safe prompts, of which so many are flagged.
    fn report(caught: u8, alarms: u8) -> Report {
        let outcome = |label, blocked| Outcome {
            row: Row::made_up(label, Task::Prompt),
            judged: Judged { blocked, harm: if blocked { 0.9 } else { 0.1 }, ..Judged::default() },
            votes: vec![],
        };
        let harmful = (0..100).map(|at| outcome(Label::Harmful, at < caught));
        let safe = (0..100).map(|at| outcome(Label::Safe, at < alarms));
        Report::of(Setting::default(), &harmful.chain(safe).collect::<Vec<_>>(), 1.0)
    }

    fn turn(report: &Report, figure: &str) -> FigureChange {
        let wanted = |change: &&Change| change.kind == Kind::Task && change.figure == figure;
        report.changes.iter().find(wanted).unwrap().turn
    }

    #[test]
    fn only_differences_outside_the_joint_interval_are_called_better_or_worse() {
        let after = report(90, 30).against(&report(50, 10));
        assert_eq!(turn(&after, "recall"), FigureChange::Better);
        assert_eq!(turn(&after, "fpr"), FigureChange::Worse);
        assert_eq!(turn(&after, "safe_over_floor"), FigureChange::Worse);
        let little = report(52, 10).against(&report(50, 10));
        assert_eq!(turn(&little, "recall"), FigureChange::Unclear);
        assert_eq!(turn(&little, "fpr"), FigureChange::Unclear);
        let recall = little.changes.iter().find(|change| change.figure == "recall").unwrap();
        assert!((recall.difference.value - 0.02).abs() < 1e-9);
    }

    #[test]
    fn a_report_survives_json_and_serves_as_baseline() {
        let before = report(50, 10);
        let json = serde_json::to_vec(&before).unwrap();
        let read = Report::from_json(&json).unwrap();
        assert_eq!(read.groups.len(), before.groups.len());
        let after = report(90, 10).against(&read);
        assert_eq!(turn(&after, "recall"), FigureChange::Better);
        assert!(after.baseline.is_some());
        assert!(Report::from_json(b"{}").unwrap_err().contains("not a report"));
        let other = String::from_utf8(json).unwrap().replace("conclave-eval/1", "conclave-eval/9");
        assert!(Report::from_json(other.as_bytes()).unwrap_err().contains("conclave-eval/9"));
    }
}
