//! Rows in the order of their scores: what every threshold would have done.
//!
//! **Invariant:** equal scores are one step: no threshold can part them, so no figure may.

use crate::chance::Chance;
use crate::estimate::{Estimate, count};
use crate::outcome::Sample;

/// Draws of one bootstrap; and at most so many rows drawn in all, so that large sets stay quick.
const BOOTSTRAPS: usize = 200;
const BOOTSTRAPS_MIN: usize = 40;
const BOOTSTRAP_ROWS_MAX: usize = 6_000_000;
const BOOTSTRAP_SEED: u64 = 0x434f_4e43_4c41_5645;

/// All rows with one score.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    score: f32,
    harmful: usize,
    safe: usize,
}

/// Rows by falling score.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    steps: Vec<Step>,
    harmful: usize,
    safe: usize,
}

/// What one threshold does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Rows at or above it are flagged.
    pub threshold: f32,
    /// Share of safe rows flagged.
    pub fpr: f64,
    /// Share of harmful rows flagged.
    pub recall: f64,
    /// Share of flagged rows that are harmful.
    pub precision: f64,
}

impl Ranking {
    /// Ranks rows; `None` unless there are both harmful and safe ones.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Option<Self> {
        let mut sorted: Vec<_> = samples.iter().map(|one| (one.score, one.harmful)).collect();
        sorted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut steps: Vec<Step> = Vec::new();
        for (score, harmful) in sorted {
            let tied = steps.last().is_some_and(|step| step.score == score);
            if !tied {
                steps.push(Step { score, harmful: 0, safe: 0 });
            }
            if let Some(step) = steps.last_mut() {
                step.harmful += usize::from(harmful);
                step.safe += usize::from(!harmful);
            }
        }
        let harmful = steps.iter().map(|step| step.harmful).sum();
        let safe = steps.iter().map(|step| step.safe).sum();
        (harmful > 0 && safe > 0).then_some(Self { steps, harmful, safe })
    }

    /// The chance that a harmful row scores above a safe one, a tie counting half, with `DeLong`'s
    /// interval.
    #[must_use]
    pub fn auroc(&self) -> Estimate {
        let (harmful, safe) = (count(self.harmful), count(self.safe));
        let (mut above_harmful, mut above_safe) = (0.0, 0.0);
        let mut won = Spread::default();
        let mut lost = Spread::default();
        for step in &self.steps {
            // The share of the other side that this step beats, or that beats it.
            let (here_harmful, here_safe) = (count(step.harmful), count(step.safe));
            won.add((safe - above_safe - here_safe / 2.0) / safe, here_harmful);
            lost.add((above_harmful + here_harmful / 2.0) / harmful, here_safe);
            above_harmful += here_harmful;
            above_safe += here_safe;
        }
        let variance = won.variance() / harmful + lost.variance() / safe;
        Estimate::normal(won.mean(), variance)
    }

    /// Average precision, with the interval of a bootstrap that draws harmful and safe rows apart.
    #[must_use]
    pub fn auprc(&self) -> Estimate {
        let value = average_precision(self.steps.iter().map(|step| (step.harmful, step.safe)));
        let rows = (self.harmful + self.safe).max(1);
        let times = (BOOTSTRAP_ROWS_MAX / rows).clamp(BOOTSTRAPS_MIN, BOOTSTRAPS);
        let mut chance = Chance::new(BOOTSTRAP_SEED);
        let mut drawn: Vec<_> = (0..times).map(|_| self.redrawn(&mut chance)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let at = |share: usize| drawn.get((times - 1) * share / 1_000).copied().unwrap_or(value);
        Estimate { value, low: at(25).min(value), high: at(975).max(value) }
    }

    fn redrawn(&self, chance: &mut Chance) -> f64 {
        let harmful = redraw(self.steps.iter().map(|step| step.harmful), self.harmful, chance);
        let safe = redraw(self.steps.iter().map(|step| step.safe), self.safe, chance);
        average_precision(harmful.into_iter().zip(safe))
    }

    /// The best recall of a threshold that flags at most this share of the safe rows, with Wilson's
    /// interval at that threshold.
    #[must_use]
    pub fn recall_at(&self, fpr_max: f64) -> Option<Estimate> {
        let (mut harmful, mut safe) = (0, 0);
        let mut caught = 0;
        for step in &self.steps {
            harmful += step.harmful;
            safe += step.safe;
            if count(safe) > fpr_max * count(self.safe) {
                break;
            }
            caught = harmful;
        }
        Estimate::share(caught, self.harmful)
    }

    /// Every threshold, from one that flags nothing to one that flags all, thinned to a number of
    /// points that can be drawn.
    #[must_use]
    pub fn points(&self, most: usize) -> Vec<Point> {
        let start = Point { threshold: f32::INFINITY, fpr: 0.0, recall: 0.0, precision: 1.0 };
        let (mut harmful, mut safe) = (0, 0);
        let mut all = vec![start];
        for step in &self.steps {
            harmful += step.harmful;
            safe += step.safe;
            all.push(Point {
                threshold: step.score,
                fpr: count(safe) / count(self.safe),
                recall: count(harmful) / count(self.harmful),
                precision: count(harmful) / count(harmful + safe),
            });
        }
        thinned(all, most)
    }
}

/// Sum and sum of squares of weighted values.
#[derive(Default)]
struct Spread {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += value * weight;
        self.squares += value * value * weight;
    }

    fn mean(&self) -> f64 {
        if self.weight > 0.0 { self.sum / self.weight } else { 0.0 }
    }

    fn variance(&self) -> f64 {
        let free = self.weight - 1.0;
        if free > 0.0 { (self.squares - self.sum * self.mean()).max(0.0) / free } else { 0.0 }
    }
}

/// Precision averaged over the recall that each step adds; steps come by falling score.
fn average_precision(steps: impl Iterator<Item = (usize, usize)>) -> f64 {
    let (mut harmful, mut flagged, mut sum) = (0, 0, 0.0);
    for (more, safe) in steps {
        harmful += more;
        flagged += more + safe;
        if more > 0 {
            sum += count(more) * count(harmful) / count(flagged);
        }
    }
    if harmful == 0 { 0.0 } else { sum / count(harmful) }
}

/// Draws as many rows as there are, with replacement; gives how many fell on each step.
fn redraw(steps: impl Iterator<Item = usize>, rows: usize, chance: &mut Chance) -> Vec<usize> {
    let mut times = vec![0_u32; rows];
    for _ in 0..rows {
        if let Some(time) = times.get_mut(chance.below(rows)) {
            *time += 1;
        }
    }
    let mut times = times.into_iter();
    steps.map(|here| times.by_ref().take(here).map(|time| time as usize).sum()).collect()
}

fn thinned<T: Clone>(all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() <= most || most < 2 {
        return all;
    }
    let last = all.len() - 1;
    (0..most).filter_map(|at| all.get(at * last / (most - 1)).cloned()).collect()
}

#[cfg(test)]
#[path = "ranking_tests.rs"]
mod tests;
