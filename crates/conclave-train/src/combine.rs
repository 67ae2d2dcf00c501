//! What each tier counts beside the others: logistic regression on rows that trained none of them.
//!
//! **Invariant:** no weight is negative: what a tier finds worse is never scored better.

use conclave_classify::{TierLogits, TierWeights};
use std::collections::BTreeMap;

/// A language with fewer rows takes the weights of all.
const ENOUGH: usize = 150;
/// Steps of the descent; it has settled long before.
const STEPS: usize = 2000;
/// The size of a step.
const RATE: f64 = 0.1;
/// A smaller spread is none.
const SPREAD_MIN: f64 = 1e-6;
/// How strongly weights are drawn to zero.
const DECAY: f64 = 1e-4;

/// One row: what the tiers say of it, and what is true.
#[derive(Clone, Copy)]
pub struct Answer {
    /// Its language and length.
    pub group: &'static str,
    /// What each tier says.
    pub logits: TierLogits,
    /// What is true.
    pub harmful: bool,
    /// What the row counts.
    pub weight: f32,
}

/// The weights of the tiers for each language that has rows enough, and for all.
pub fn fit_weights(answers: &[Answer]) -> BTreeMap<String, TierWeights> {
    let mut groups: BTreeMap<&str, Vec<&Answer>> = BTreeMap::new();
    for answer in answers {
        let language = answer.group.split('/').next().unwrap_or_default();
        groups.entry("any").or_default().push(answer);
        groups.entry(language).or_default().push(answer);
    }
    groups.retain(|name, rows| *name == "any" || rows.len() >= ENOUGH);
    groups.into_iter().map(|(name, rows)| (name.to_owned(), fit(&rows))).collect()
}

fn fit(answers: &[&Answer]) -> TierWeights {
    let rows: Vec<[f64; 3]> = answers.iter().map(|answer| features(&answer.logits)).collect();
    // Each tier is brought to the same spread, so that one step suits all.
    let spreads: [f64; 3] = std::array::from_fn(|at| {
        let sum: f64 = rows.iter().map(|row| row[at] * row[at]).sum();
        (sum / count(rows.len())).sqrt().max(SPREAD_MIN)
    });
    let mass = |harmful: bool| {
        let same = answers.iter().filter(|answer| answer.harmful == harmful);
        same.map(|answer| f64::from(answer.weight)).sum::<f64>().max(1e-9)
    };
    let (harmful_mass, safe_mass) = (mass(true), mass(false));
    let mut weights = [0.5_f64; 3];
    let mut bias = 0.0;
    for _ in 0..STEPS {
        let mut slope = [0.0; 3];
        let mut bias_slope = 0.0;
        for (row, answer) in rows.iter().zip(answers) {
            let sum: f64 = (0..3).map(|at| weights[at] * row[at] / spreads[at]).sum::<f64>() + bias;
            let truth = if answer.harmful { 1.0 } else { 0.0 };
            // Both labels count the same, however many rows each has.
            let share = f64::from(answer.weight)
                / if answer.harmful { harmful_mass } else { safe_mass }
                / 2.0;
            let error = (1.0 / (1.0 + (-sum).exp()) - truth) * share;
            for (slope, (value, spread)) in slope.iter_mut().zip(row.iter().zip(&spreads)) {
                *slope += error * value / spread;
            }
            bias_slope += error;
        }
        for (weight, slope) in weights.iter_mut().zip(slope) {
            *weight = (*weight - RATE * (slope + DECAY * *weight)).max(0.0);
        }
        bias -= RATE * bias_slope;
    }
    let [ngrams, encoder, depth] = std::array::from_fn(|at| {
        // A tier that was never asked has no spread, and counts nothing.
        let weight = if spreads[at] > SPREAD_MIN { weights[at] / spreads[at] } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "a weight of a few digits")]
        let rounded = ((weight * 1e4).round() / 1e4) as f32;
        rounded
    });
    TierWeights { ngrams, encoder, depth }
}

fn features(logits: &TierLogits) -> [f64; 3] {
    let slower = |logit: Option<f32>| logit.map_or(0.0, f64::from);
    [f64::from(logits.ngrams), slower(logits.encoder), slower(logits.depth)]
}

#[expect(clippy::cast_precision_loss, reason = "some thousand rows")]
fn count(rows: usize) -> f64 {
    rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows whose truth the encoder knows and the n-grams have backwards.
    fn answers() -> Vec<Answer> {
        (0..400_u16)
            .map(|at| {
                let harmful = at % 2 == 0;
                let sure = f32::from(at % 7) / 3.0 + 0.2;
                let says = if harmful { sure } else { -sure };
                let logits = TierLogits { ngrams: -says / 2.0, encoder: Some(says), depth: None };
                Answer { group: "en/short", logits, harmful, weight: 1.0 }
            })
            .collect()
    }

    #[test]
    fn who_is_right_counts_and_who_is_wrong_does_not() {
        let weights = fit_weights(&answers());
        assert_eq!(weights.keys().collect::<Vec<_>>(), ["any", "en"]);
        let all = weights["any"];
        assert!(all.encoder > 0.5, "{all:?}");
        assert!(all.ngrams.abs() < 1e-6, "{all:?}");
    }
}
