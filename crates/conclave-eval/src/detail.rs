//! What stands behind the figures of one scope: curves, calibration, and the rows that went worst.

use crate::calibration::Calibration;
use crate::chance::hash;
use crate::outcome::{Outcome, Sample};
use crate::ranking::{Point, Ranking};
use crate::row::{Label, Task};
use serde::{Deserialize, Serialize};

/// Points of a curve.
const POINTS_MAX: usize = 200;
/// Rows that went worst, of each sort.
const WORST_MAX: usize = 20;

/// One scope in detail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// `prompt+text`, or a task.
    pub scope: String,
    /// (false alarms, recall) of every threshold, thinned; empty with one class.
    pub roc: Vec<[f64; 2]>,
    /// (recall, precision) of every threshold, thinned; empty with one class.
    pub pr: Vec<[f64; 2]>,
    /// Whether scores mean what they say.
    pub calibration: Calibration,
    /// Harmful rows that were not flagged, the lowest scores first.
    pub worst_misses: Vec<Example>,
    /// Safe rows that were flagged, the highest scores first.
    pub worst_false_alarms: Vec<Example>,
}

/// A row, to be looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// ISO 639-1, or `und`.
    pub language: String,
    /// Its facets.
    pub categories: Vec<String>,
    /// As its task scores it.
    pub score: f32,
    /// The beginning of its text: hostile, to be escaped wherever it is shown.
    pub excerpt: String,
}

/// The scopes in the order of reports.
#[must_use]
pub(crate) fn scopes() -> Vec<&'static str> {
    let mut scopes: Vec<_> = Task::ALL.iter().map(|task| task.scope()).collect();
    scopes.dedup();
    scopes
}

/// The details of every scope that has rows.
#[must_use]
pub fn details(outcomes: &[Outcome]) -> Vec<Detail> {
    scopes().into_iter().filter_map(|scope| detail(scope, outcomes)).collect()
}

fn detail(scope: &str, outcomes: &[Outcome]) -> Option<Detail> {
    let held: Vec<_> = outcomes.iter().filter(|one| one.row.task.scope() == scope).collect();
    if held.is_empty() {
        return None;
    }
    let samples: Vec<Sample> = held.iter().map(|one| one.sample(one.row.task)).collect();
    let ranking = Ranking::of(&samples);
    let points = ranking.map(|ranking| ranking.points(POINTS_MAX)).unwrap_or_default();
    let (roc, pr) = (|p: &Point| [p.fpr, p.recall], |p: &Point| [p.recall, p.precision]);
    Some(Detail {
        scope: scope.to_owned(),
        roc: points.iter().map(roc).collect(),
        pr: points.iter().map(pr).collect(),
        calibration: Calibration::of(&samples),
        worst_misses: worst(&held, Label::Harmful),
        worst_false_alarms: worst(&held, Label::Safe),
    })
}

/// The rows whose score is farthest from their label, among those on the wrong side.
fn worst(outcomes: &[&Outcome], label: Label) -> Vec<Example> {
    let score = |one: &Outcome| one.judged.score(one.row.task);
    let wrong = |one: &&&Outcome| {
        one.row.label == label && one.judged.flagged(one.row.task) == (label == Label::Safe)
    };
    let mut found: Vec<&Outcome> = outcomes.iter().filter(wrong).copied().collect();
    // Rows with one score come from all over the files, and the same ones every time.
    found.sort_by_cached_key(|one| hash(&one.row.id));
    match label {
        Label::Harmful => found.sort_by(|a, b| score(a).total_cmp(&score(b))),
        Label::Safe => found.sort_by(|a, b| score(b).total_cmp(&score(a))),
    }
    found.truncate(WORST_MAX);
    let example = |one: &Outcome| Example {
        id: one.row.id.clone(),
        source: one.row.source.clone(),
        language: one.row.language.clone(),
        categories: one.row.categories.clone(),
        score: score(one),
        excerpt: one.row.excerpt.clone(),
    };
    found.into_iter().map(example).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Judged;
    use crate::row::Row;

    fn outcome(id: usize, label: Label, harm: f32) -> Outcome {
        let row =
            Row { id: id.to_string(), excerpt: "<b>".into(), ..Row::made_up(label, Task::Prompt) };
        let judged = Judged { harm, blocked: harm >= 0.3, ..Judged::default() };
        Outcome { row, judged, votes: vec![] }
    }

    #[test]
    fn the_worst_come_first_and_only_wrong_ones_are_shown() {
        let rows = [
            outcome(0, Label::Harmful, 0.2),
            outcome(1, Label::Harmful, 0.1),
            outcome(2, Label::Harmful, 0.9),
            outcome(3, Label::Safe, 0.4),
            outcome(4, Label::Safe, 0.8),
            outcome(5, Label::Safe, 0.0),
        ];
        let details = details(&rows);
        assert_eq!(details.len(), 1);
        let ids = |examples: &[Example]| -> Vec<_> {
            examples.iter().map(|example| example.id.clone()).collect()
        };
        assert_eq!(ids(&details[0].worst_misses), ["1", "0"]);
        assert_eq!(ids(&details[0].worst_false_alarms), ["4", "3"]);
        assert_eq!(details[0].roc.first(), Some(&[0.0, 0.0]));
        assert_eq!(details[0].pr.last(), Some(&[1.0, 0.5]));
    }

    #[test]
    fn at_most_twenty_are_shown() {
        let rows: Vec<_> = (0..50).map(|at| outcome(at, Label::Harmful, 0.0)).collect();
        let details = details(&rows);
        assert_eq!(details[0].worst_misses.len(), WORST_MAX);
        assert!(details[0].roc.is_empty(), "one class has no curve");
    }

    #[test]
    fn prompts_and_texts_are_one_scope() {
        assert_eq!(scopes()[..2], ["prompt+text", "response"]);
        assert_eq!(scopes().len(), 6);
    }
}
