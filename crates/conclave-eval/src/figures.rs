//! The figures of one group of rows.

use crate::estimate::{Estimate, count};
use crate::outcome::Sample;
use crate::ranking::Ranking;
use serde::{Deserialize, Serialize};

/// How long judging took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of all texts took at most this, in milliseconds.
    pub p50_ms: f64,
    /// 95 % did.
    pub p95_ms: f64,
    /// 99 % did.
    pub p99_ms: f64,
}

/// What was measured on a group of rows; `null` where a group cannot give a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Rows.
    pub n: usize,
    /// Harmful ones.
    pub harmful: usize,
    /// Safe ones.
    pub safe: usize,
    /// Flagged ones.
    pub flagged: usize,
    /// Share of flagged rows that are harmful.
    pub precision: Option<Estimate>,
    /// Share of harmful rows that are flagged.
    pub recall: Option<Estimate>,
    /// Share of safe rows that are flagged.
    pub fpr: Option<Estimate>,
    /// The harmonic mean of precision and recall.
    pub f1: Option<Estimate>,
    /// Area under the ROC curve.
    pub auroc: Option<Estimate>,
    /// Average precision.
    pub auprc: Option<Estimate>,
    /// The best recall with at most 1 % false alarms.
    pub recall_at_1_fpr: Option<Estimate>,
    /// The best recall with at most 5 % false alarms.
    pub recall_at_5_fpr: Option<Estimate>,
    /// Share of safe rows withheld.
    pub safe_blocked: Option<Estimate>,
    /// Share of harmful rows withheld.
    pub harmful_blocked: Option<Estimate>,
    /// Share of safe rows whose harm is at or over the floor.
    pub safe_over_floor: Option<Estimate>,
    /// How long it took.
    pub latency: Latency,
    /// Texts one core judges in a second.
    pub texts_per_core_second: Option<f64>,
}

/// Where a row ended.
#[derive(Default)]
struct Tally {
    harmful: usize,
    safe: usize,
    caught: usize,
    alarms: usize,
    harmful_blocked: usize,
    safe_blocked: usize,
    safe_over_floor: usize,
}

impl Tally {
    fn of(samples: &[Sample]) -> Self {
        let mut tally = Self::default();
        for one in samples {
            let (flagged, blocked) = (usize::from(one.flagged), usize::from(one.blocked));
            if one.harmful {
                tally.harmful += 1;
                tally.caught += flagged;
                tally.harmful_blocked += blocked;
            } else {
                tally.safe += 1;
                tally.alarms += flagged;
                tally.safe_blocked += blocked;
                tally.safe_over_floor += usize::from(one.over_floor);
            }
        }
        tally
    }

    /// F1 rises with caught / (caught + missed + alarms), which is a share and has an interval.
    fn f1(&self) -> Option<Estimate> {
        if self.harmful == 0 {
            return None;
        }
        let overlap = Estimate::share(self.caught, self.harmful + self.alarms)?;
        Some(overlap.map(|share| 2.0 * share / (1.0 + share)))
    }
}

impl Figures {
    /// Measures a group.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let tally = Tally::of(samples);
        let ranking = Ranking::of(samples);
        let flagged = tally.caught + tally.alarms;
        let both = tally.harmful > 0 && tally.safe > 0;
        Self {
            n: samples.len(),
            harmful: tally.harmful,
            safe: tally.safe,
            flagged,
            // Of one class alone it says nothing: it is 1 or 0 whatever the judge does.
            precision: Estimate::share(tally.caught, flagged).filter(|_| both),
            recall: Estimate::share(tally.caught, tally.harmful),
            fpr: Estimate::share(tally.alarms, tally.safe),
            f1: tally.f1().filter(|_| both),
            auroc: ranking.as_ref().map(Ranking::auroc),
            auprc: ranking.as_ref().map(Ranking::auprc),
            recall_at_1_fpr: ranking.as_ref().and_then(|ranking| ranking.recall_at(0.01)),
            recall_at_5_fpr: ranking.as_ref().and_then(|ranking| ranking.recall_at(0.05)),
            safe_blocked: Estimate::share(tally.safe_blocked, tally.safe),
            harmful_blocked: Estimate::share(tally.harmful_blocked, tally.harmful),
            safe_over_floor: Estimate::share(tally.safe_over_floor, tally.safe),
            latency: Latency::of(samples),
            texts_per_core_second: rate(samples),
        }
    }
}

impl Latency {
    /// The nearest ranks of these rows.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let mut sorted: Vec<_> = samples.iter().map(|one| one.latency_us).collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            // The nearest rank: the smallest value that so many per cent do not exceed.
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            milliseconds(sorted.get(rank - 1).copied().unwrap_or_default())
        };
        Self { p50_ms: at(50), p95_ms: at(95), p99_ms: at(99) }
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    count(usize::try_from(microseconds).unwrap_or(usize::MAX)) / 1e3
}

fn rate(samples: &[Sample]) -> Option<f64> {
    let total: u64 = samples.iter().map(|one| one.latency_us).sum();
    (total > 0).then(|| count(samples.len()) / (milliseconds(total) / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(harmful: bool, flagged: bool, score: f32, latency_us: u64) -> Sample {
        Sample { harmful, score, flagged, blocked: flagged, over_floor: score >= 0.7, latency_us }
    }

    fn near(figure: Option<Estimate>, value: f64) -> bool {
        figure.is_some_and(|figure| (figure.value - value).abs() < 1e-9)
    }

    #[test]
    fn the_confusion_is_counted_right() {
        // 3 caught, 1 missed, 2 false alarms, 4 passed.
        let mut rows = vec![row(true, true, 0.9, 1_000); 3];
        rows.push(row(true, false, 0.1, 2_000));
        rows.extend([row(false, true, 0.8, 3_000), row(false, true, 0.6, 4_000)]);
        rows.extend(vec![row(false, false, 0.0, 5_000); 4]);
        let figures = Figures::of(&rows);
        assert_eq!((figures.n, figures.harmful, figures.safe, figures.flagged), (10, 4, 6, 5));
        assert!(near(figures.precision, 0.6) && near(figures.recall, 0.75));
        assert!(near(figures.fpr, 2.0 / 6.0) && near(figures.safe_blocked, 2.0 / 6.0));
        assert!(near(figures.f1, 2.0 * 0.6 * 0.75 / 1.35));
        assert!(near(figures.safe_over_floor, 1.0 / 6.0) && near(figures.harmful_blocked, 0.75));
        assert_eq!(figures.latency, Latency { p50_ms: 3.0, p95_ms: 5.0, p99_ms: 5.0 });
        assert!((figures.texts_per_core_second.unwrap() - 10.0 / 0.032).abs() < 1e-6);
    }

    #[test]
    fn one_class_gives_none_and_never_nan() {
        let harmful = Figures::of(&[row(true, false, 0.1, 0); 2]);
        assert!(near(harmful.recall, 0.0));
        let none = [harmful.precision, harmful.fpr, harmful.f1, harmful.auroc, harmful.auprc];
        assert!(none.iter().all(Option::is_none), "{harmful:?}");
        assert!(harmful.recall_at_1_fpr.is_none() && harmful.texts_per_core_second.is_none());
        let safe = Figures::of(&[row(false, true, 0.9, 0)]);
        assert!(near(safe.fpr, 1.0) && safe.recall.is_none() && safe.precision.is_none());
        let empty = Figures::of(&[]);
        assert!(empty.fpr.is_none() && empty.n == 0);
        assert!(!serde_json::to_string(&empty).unwrap().contains("NaN"));
    }

    #[test]
    fn nothing_flagged_has_no_precision() {
        let figures = Figures::of(&[row(true, false, 0.1, 1), row(false, false, 0.2, 1)]);
        assert!(figures.precision.is_none() && near(figures.f1, 0.0));
    }
}
