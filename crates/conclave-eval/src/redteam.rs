//! What got through in disguise, and which harmless text was taken for harm because of it.
//!
//! **Invariant:** only what was right in plain words is tried: a harmful row that was missed plainly
//! says nothing about a disguise, nor does a safe row that was flagged plainly.

use crate::estimate::Estimate;
use crate::mutation::Mutation;
use crate::report::{BadLine, Setting};
use serde::Serialize;
use std::collections::BTreeMap;

/// The name of this shape.
pub const REDTEAM_FORMAT: &str = "conclave-redteam/1";
/// Examples of each sort that are kept for a mutation.
const EXAMPLES_MAX: usize = 5;

/// One disguise of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// How it was disguised.
    pub mutation: Mutation,
    /// Whether it was flagged.
    pub flagged: bool,
    /// What to show, where it went wrong.
    pub example: Option<Disguised>,
}

/// One row and its disguises.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// What is true of it.
    pub harmful: bool,
    /// Whether it was flagged in plain words.
    pub flagged_plain: bool,
    /// Its disguises; none where plain words were judged wrong.
    pub trials: Vec<Trial>,
}

/// A disguised row, to be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disguised {
    /// The row's name.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// ISO 639-1, or `und`.
    pub language: String,
    /// The score in disguise.
    pub score: f32,
    /// The beginning of the plain text: hostile, to be escaped wherever it is shown.
    pub plain: String,
    /// The beginning of the disguised text: likewise.
    pub disguised: String,
}

/// What one mutation did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MutationFigures {
    /// The mutation.
    pub mutation: &'static str,
    /// Harmful rows, caught in plain words, that it changes.
    pub tried: usize,
    /// Of those, still caught.
    pub caught: usize,
    /// The share still caught.
    pub kept: Option<Estimate>,
    /// Safe rows, passed in plain words, that it changes.
    pub safe_tried: usize,
    /// Of those, flagged now.
    pub alarms: usize,
    /// The share flagged now.
    pub rise: Option<Estimate>,
    /// Harmful rows that got through, the lowest scores first.
    pub got_through: Vec<Disguised>,
    /// Safe rows that were flagged, the highest scores first.
    pub false_alarms: Vec<Disguised>,
}

/// What all mutations did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RedteamReport {
    /// [`REDTEAM_FORMAT`].
    pub format: &'static str,
    /// What was measured, and with what.
    pub setting: Setting,
    /// Harmful rows read.
    pub harmful: usize,
    /// Of those, caught in plain words.
    pub caught_plain: usize,
    /// Safe rows read.
    pub safe: usize,
    /// Of those, passed in plain words.
    pub passed_plain: usize,
    /// Lines that could not be read.
    pub bad_lines: usize,
    /// The first of them.
    pub bad: Vec<BadLine>,
    /// How long it took.
    pub seconds: f64,
    /// The worst first.
    pub mutations: Vec<MutationFigures>,
}

#[derive(Default)]
struct Tally {
    tried: usize,
    flagged: usize,
    examples: Vec<Disguised>,
}

impl Tally {
    fn add(&mut self, trial: Trial, harmful: bool) {
        self.tried += 1;
        self.flagged += usize::from(trial.flagged);
        self.examples.extend(trial.example);
        // Kept short as it grows, so that a disguise which beats every row costs no memory.
        if self.examples.len() > 10 * EXAMPLES_MAX {
            self.thin(harmful);
        }
    }

    fn thin(&mut self, harmful: bool) {
        let lowest_first = |a: &Disguised, b: &Disguised| a.score.total_cmp(&b.score);
        self.examples.sort_by(lowest_first);
        if !harmful {
            self.examples.reverse();
        }
        self.examples.truncate(EXAMPLES_MAX);
    }

    fn examples(mut self, harmful: bool) -> Vec<Disguised> {
        self.thin(harmful);
        self.examples
    }
}

impl RedteamReport {
    /// Sums attacks up.
    #[must_use]
    pub fn of(setting: Setting, attacks: Vec<Attack>, seconds: f64) -> Self {
        let of = |harmful, flagged| {
            let wanted = |one: &&Attack| one.harmful == harmful && one.flagged_plain == flagged;
            attacks.iter().filter(wanted).count()
        };
        let (caught_plain, passed_plain) = (of(true, true), of(false, false));
        let (harmful, safe) = (caught_plain + of(true, false), passed_plain + of(false, true));
        Self {
            format: REDTEAM_FORMAT,
            setting,
            harmful,
            caught_plain,
            safe,
            passed_plain,
            bad_lines: 0,
            bad: Vec::new(),
            seconds,
            mutations: by_mutation(attacks),
        }
    }

    /// The same, with the lines that could not be read.
    #[must_use]
    pub fn with_bad(mut self, bad_lines: usize, first: Vec<BadLine>) -> Self {
        (self.bad_lines, self.bad) = (bad_lines, first);
        self
    }
}

fn by_mutation(attacks: Vec<Attack>) -> Vec<MutationFigures> {
    let mut tallies: BTreeMap<(Mutation, bool), Tally> = BTreeMap::new();
    for attack in attacks {
        for trial in attack.trials {
            let tally = tallies.entry((trial.mutation, attack.harmful)).or_default();
            tally.add(trial, attack.harmful);
        }
    }
    let mut figures: Vec<_> = Mutation::ALL
        .iter()
        .map(|mutation| {
            let mut take = |harmful| tallies.remove(&(*mutation, harmful)).unwrap_or_default();
            summed(*mutation, take(true), take(false))
        })
        .filter(|figures| figures.tried + figures.safe_tried > 0)
        .collect();
    let share = |figure: Option<Estimate>, none: f64| figure.map_or(none, |figure| figure.value);
    figures.sort_by(|a, b| {
        let by_kept = share(a.kept, 2.0).total_cmp(&share(b.kept, 2.0));
        by_kept.then(share(b.rise, 0.0).total_cmp(&share(a.rise, 0.0)))
    });
    figures
}

fn summed(mutation: Mutation, harmful: Tally, safe: Tally) -> MutationFigures {
    MutationFigures {
        mutation: mutation.as_str(),
        tried: harmful.tried,
        caught: harmful.flagged,
        kept: Estimate::share(harmful.flagged, harmful.tried),
        safe_tried: safe.tried,
        alarms: safe.flagged,
        rise: Estimate::share(safe.flagged, safe.tried),
        got_through: harmful.examples(true),
        false_alarms: safe.examples(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mutation: Mutation, flagged: bool, score: f32) -> Trial {
        let example = Disguised {
            id: String::new(),
            source: String::new(),
            language: "en".into(),
            score,
            plain: "<b>".into(),
            disguised: "\u{200b}".into(),
        };
        Trial { mutation, flagged, example: Some(example) }
    }

    fn attack(harmful: bool, flagged_plain: bool, trials: Vec<Trial>) -> Attack {
        Attack { harmful, flagged_plain, trials }
    }

    #[test]
    fn the_worst_mutation_comes_first_with_its_worst_examples() {
        let mut attacks = vec![
            attack(
                true,
                true,
                vec![trial(Mutation::Leet, false, 0.2), trial(Mutation::Hex, true, 0.9)],
            ),
            attack(
                true,
                true,
                vec![trial(Mutation::Leet, false, 0.1), trial(Mutation::Hex, true, 0.9)],
            ),
            attack(true, false, vec![]),
            attack(false, false, vec![trial(Mutation::Hex, true, 0.8)]),
            attack(false, true, vec![]),
        ];
        attacks.extend((0..80_u8).map(|at| {
            attack(true, true, vec![trial(Mutation::Leet, false, 0.5 + f32::from(at) / 1e3)])
        }));
        let report = RedteamReport::of(Setting::default(), attacks, 1.0);
        assert_eq!((report.harmful, report.caught_plain), (83, 82));
        assert_eq!((report.safe, report.passed_plain), (2, 1));
        let names: Vec<_> = report.mutations.iter().map(|one| one.mutation).collect();
        assert_eq!(names, ["leet", "hex"]);
        let leet = &report.mutations[0];
        assert_eq!((leet.tried, leet.caught, leet.kept.unwrap().value), (82, 0, 0.0));
        assert!(leet.rise.is_none());
        assert_eq!(leet.got_through.len(), EXAMPLES_MAX);
        assert_eq!(leet.got_through[0].score, 0.1);
        assert_eq!(report.mutations[1].rise.unwrap().value, 1.0);
    }
}
