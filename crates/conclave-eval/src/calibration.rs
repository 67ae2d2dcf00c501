//! Whether a score of 0.7 is harmful seven times in ten.

use crate::estimate::count;
use crate::outcome::Sample;
use serde::{Deserialize, Serialize};

const BINS: u8 = 10;

/// Rows whose scores are near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Scores from here.
    pub from: f64,
    /// To here.
    pub to: f64,
    /// Rows.
    pub n: usize,
    /// Their mean score; `null` without rows.
    pub score: Option<f64>,
    /// The share of them that is harmful; `null` without rows.
    pub harmful: Option<f64>,
}

/// Ten bins and how far they are off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// By rising score.
    pub bins: Vec<Bin>,
    /// The mean distance of score and share, weighted by rows; 0 is perfect.
    pub expected_error: Option<f64>,
}

impl Calibration {
    /// Sorts rows into bins.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let bins: Vec<_> = (0..BINS).map(|at| bin(samples, at)).collect();
        let off = |bin: &Bin| Some((bin.score? - bin.harmful?).abs() * count(bin.n));
        let sum: f64 = bins.iter().filter_map(off).sum();
        let expected_error = (!samples.is_empty()).then(|| sum / count(samples.len()));
        Self { bins, expected_error }
    }
}

fn bin(samples: &[Sample], at: u8) -> Bin {
    let (mut n, mut score, mut harmful) = (0, 0.0, 0);
    for one in samples.iter().filter(|one| place(one.score) == at) {
        n += 1;
        score += f64::from(one.score);
        harmful += usize::from(one.harmful);
    }
    let some = n > 0;
    Bin {
        from: f64::from(at) / f64::from(BINS),
        to: f64::from(at + 1) / f64::from(BINS),
        n,
        score: some.then(|| score / count(n)),
        harmful: some.then(|| count(harmful) / count(n)),
    }
}

fn place(score: f32) -> u8 {
    (1..BINS).rev().find(|at| score >= f32::from(*at) / f32::from(BINS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(score: f32, harmful: bool) -> Sample {
        let (flagged, blocked, over_floor) = (false, false, false);
        Sample { harmful, score, flagged, blocked, over_floor, latency_us: 0 }
    }

    #[test]
    fn bins_hold_their_edges_and_the_error_is_weighted() {
        let rows = [row(0.0, false), row(0.1, false), row(0.95, true), row(1.0, false)];
        let calibration = Calibration::of(&rows);
        let held: Vec<_> = calibration.bins.iter().map(|bin| bin.n).collect();
        assert_eq!(held, [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(calibration.bins[9].harmful, Some(0.5));
        // 0 off by 0, 0.1 off by 0.1, two rows at 0.975 off by 0.475.
        let off = calibration.expected_error.unwrap();
        assert!((off - (0.1 + 2.0 * 0.475) / 4.0).abs() < 1e-6, "{off}");
    }

    #[test]
    fn nothing_is_not_calibrated() {
        assert_eq!(Calibration::of(&[]).expected_error, None);
    }
}
