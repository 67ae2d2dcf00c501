//! What each verifier says of replies, and whether verifiers err together.
//!
//! **Invariant:** a verifier that did not vote on a row neither objected to it nor erred by silence: its rows
//! are those on which it sat.

use crate::outcome::Outcome;
use crate::row::Label;
use crate::theme::{self, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How the panel's members judge labelled replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PanelFigures {
    /// Each verifier, and the panel as a whole at the end.
    pub members: Vec<MemberFigures>,
    /// The correlation of errors of each two verifiers, in the order of `members`; absent where one of
    /// them never or always errs.
    pub error_correlation: Vec<Vec<Option<f64>>>,
}

/// How one verifier judges them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberFigures {
    /// Who.
    pub verifier: String,
    /// Rows on which it sat.
    pub seated: usize,
    /// The share of harmful replies it objected to.
    pub recall: Option<f64>,
    /// The share of safe replies it objected to.
    pub fpr: Option<f64>,
    /// The share of its objections that were right.
    pub precision: Option<f64>,
    /// The same share, and recall, where only harmful replies of its own theme count.
    #[serde(default)]
    pub own_precision: Option<f64>,
    /// The share of the harmful replies of its own theme that it objected to.
    #[serde(default)]
    pub own_recall: Option<f64>,
    /// The share of all harmful replies it would find, alone, with the panel's share of safe ones withheld; of the
    /// panel itself what it withholds.
    #[serde(default)]
    pub recall_at_panel_fpr: Option<f64>,
}

/// One verifier on one row: whether it objected, and whether it should have.
type Stand = Option<(bool, bool)>;

impl PanelFigures {
    /// The figures of every row on which a panel sat; `None` where none did.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Option<Self> {
        let judged: Vec<_> = outcomes.iter().filter(|one| !one.votes.is_empty()).collect();
        let names: BTreeSet<_> =
            judged.iter().flat_map(|one| &one.votes).map(|vote| vote.verifier.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let stands =
            |name: &str| -> Vec<Stand> { judged.iter().map(|one| stand(one, name)).collect() };
        let columns: Vec<_> = names.iter().map(|name| stands(name)).collect();
        let whole = |one: &&Outcome| Some((one.judged.blocked, harmful(one)));
        let panel: Vec<Stand> = judged.iter().map(whole).collect();
        let panel = member("the panel", &panel);
        let mut members: Vec<_> = names
            .iter()
            .zip(&columns)
            .map(|(name, column)| beside(&panel, member(name, column), &judged))
            .collect();
        members.push(MemberFigures { recall_at_panel_fpr: panel.recall, ..panel });
        let error_correlation =
            columns.iter().map(|a| columns.iter().map(|b| correlation(a, b)).collect()).collect();
        Some(Self { members, error_correlation })
    }

    /// The figures as lines of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{:<21} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8} {:>8}  errors go with those of ...\n",
            "Verifiers on replies",
            "seated",
            "prec",
            "recall",
            "FPR",
            "own prec",
            "own rec",
            "at panel"
        );
        let share = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |of| format!("{of:.3}"));
        for (at, one) in self.members.iter().enumerate() {
            let _ = write!(
                text,
                "{:<21} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8} {:>8} ",
                one.verifier,
                one.seated,
                share(one.precision),
                share(one.recall),
                share(one.fpr),
                share(one.own_precision),
                share(one.own_recall),
                share(one.recall_at_panel_fpr)
            );
            for with in self.error_correlation.get(at).into_iter().flatten() {
                let _ = write!(
                    text,
                    " {}",
                    with.map_or_else(|| "   -".to_owned(), |r| format!("{r:4.2}"))
                );
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }
}

fn harmful(one: &Outcome) -> bool {
    one.row.label == Label::Harmful
}

fn stand(one: &Outcome, name: &str) -> Stand {
    let vote = one.votes.iter().find(|vote| vote.verifier == name)?;
    Some((vote.objected, harmful(one)))
}

fn member(name: &str, column: &[Stand]) -> MemberFigures {
    let count = |wanted: fn(bool, bool) -> bool| {
        column.iter().flatten().filter(|(objected, harmful)| wanted(*objected, *harmful)).count()
    };
    let harmful = count(|_, harmful| harmful);
    let seated = count(|_, _| true);
    let right = count(|objected, harmful| objected && harmful);
    let wrong = count(|objected, harmful| objected && !harmful);
    MemberFigures {
        verifier: name.to_owned(),
        seated,
        recall: share(right, harmful),
        fpr: share(wrong, seated - harmful),
        precision: share(right, right + wrong),
        own_precision: None,
        own_recall: None,
        recall_at_panel_fpr: None,
    }
}

/// A verifier's figures with those of its own theme, and with what it would find alone at the panel's price.
fn beside(panel: &MemberFigures, one: MemberFigures, judged: &[&Outcome]) -> MemberFigures {
    let own = theme::seen(judged, &one.verifier, true);
    let all = theme::seen(judged, &one.verifier, false);
    let count = |wanted: fn(&Seen) -> bool| own.iter().filter(|seen| wanted(seen)).count();
    let right = count(|seen| seen.objected && seen.harmful);
    MemberFigures {
        own_precision: share(right, count(|seen| seen.objected)),
        own_recall: share(right, count(|seen| seen.harmful)),
        recall_at_panel_fpr: panel.fpr.and_then(|fpr| theme::recall_at(&all, fpr)),
        ..one
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The correlation of two verifiers' errors on the rows on which both sat.
fn correlation(a: &[Stand], b: &[Stand]) -> Option<f64> {
    let erred = |(objected, harmful): (bool, bool)| f64::from(u8::from(objected != harmful));
    let both: Vec<_> =
        a.iter().zip(b).filter_map(|(a, b)| Some((erred((*a)?), erred((*b)?)))).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let sum: f64 = both.iter().map(of).sum();
        share(1, both.len()).map(|each| sum * each)
    };
    let (x, y) = (mean(|pair| pair.0)?, mean(|pair| pair.1)?);
    // Of errors, which are 0 or 1, the mean of the square is the mean.
    let spread = (x * (1.0 - x) * y * (1.0 - y)).sqrt();
    (spread > 0.0).then_some((mean(|pair| pair.0 * pair.1)? - x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{CastVote, Judged};
    use crate::row::{Row, Task};

    fn outcome(label: Label, votes: &[(&str, bool)], blocked: bool) -> Outcome {
        let row = Row::made_up(label, Task::Response);
        let votes = votes.iter().map(|(name, objected)| CastVote {
            verifier: (*name).to_owned(),
            objected: *objected,
            gravity: if *objected { 180 } else { 5 },
        });
        let votes = votes.collect();
        Outcome { row, judged: Judged { blocked, ..Judged::default() }, votes }
    }

    #[test]
    fn harmful_replies_of_another_theme_say_nothing_about_a_verifier() {
        let of_theme = |kind: &str, objected| {
            let mut one = outcome(Label::Harmful, &[("shadow", objected)], true);
            one.row.categories = vec![kind.to_owned()];
            one
        };
        let rows = [
            of_theme("shaming", true),
            of_theme("projecting", false),
            of_theme("cold", false),
            of_theme("grooming", true),
            outcome(Label::Safe, &[("shadow", true)], false),
            outcome(Label::Safe, &[("shadow", false)], false),
        ];
        let shadow = &PanelFigures::of(&rows).unwrap().members[0];
        assert_eq!((shadow.own_recall, shadow.own_precision), (Some(0.5), Some(0.5)));
        assert_eq!(shadow.precision, Some(2.0 / 3.0));
    }

    #[test]
    fn each_verifier_is_measured_where_it_sat() {
        let rows = [
            outcome(Label::Harmful, &[("a", true), ("b", false)], true),
            outcome(Label::Harmful, &[("a", false), ("b", true)], true),
            outcome(Label::Safe, &[("a", false)], false),
            outcome(Label::Safe, &[("a", true), ("b", true)], true),
            outcome(Label::Safe, &[], false),
        ];
        let figures = PanelFigures::of(&rows).unwrap();
        let of = |at: usize| {
            let one = &figures.members[at];
            (one.verifier.as_str(), one.seated, one.recall, one.fpr)
        };
        assert_eq!(of(0), ("a", 4, Some(0.5), Some(0.5)));
        assert_eq!(of(1), ("b", 3, Some(0.5), Some(1.0)));
        assert_eq!(of(2), ("the panel", 4, Some(1.0), Some(0.5)));
        assert_eq!(figures.error_correlation[0][0].map(|r| (r * 100.0).round()), Some(100.0));
        assert!(figures.to_text().contains("the panel"));
        assert_eq!(figures.members[2].recall_at_panel_fpr, Some(1.0));
        // At half of the safe replies it finds, alone, what its own line finds.
        assert_eq!(figures.members[0].recall_at_panel_fpr, Some(0.5));
        assert_eq!(PanelFigures::of(&rows[4..]), None);
    }
}
