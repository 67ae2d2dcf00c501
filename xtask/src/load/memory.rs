//! Memory over time: samples while something else runs, and how steeply they rise.

use crate::house::{GatewayProcess, pause};
use crate::process::Running;
use std::time::{Duration, Instant};

/// How often memory is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// The first so many hundredths of a run fill caches and are not counted.
const WARM_UP: usize = 40;
/// Memory may rise by so many megabytes from the first half of what is counted to the second,
const RISE_MAX_MB: f64 = 4.0;
/// or by this share of the highest, where that is more.
const RISE_MAX_SHARE: f64 = 0.05;

/// Samples of a run.
pub struct Samples(Vec<f64>);

impl Samples {
    /// Looks at a gateway's memory until a load generator has ended.
    pub fn take(gateway: &GatewayProcess, load: &mut Running) -> anyhow::Result<Self> {
        let mut samples = Vec::new();
        let mut due = Instant::now();
        while load.0.try_wait()?.is_none() {
            samples.push(gateway.rss_mb()?);
            due += EVERY;
            pause(due.saturating_duration_since(Instant::now()));
        }
        Ok(Self(samples))
    }

    /// The highest.
    pub fn peak(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// Whether it does not rise.
    pub fn are_flat(&self) -> bool {
        self.rise() <= RISE_MAX_MB.max(RISE_MAX_SHARE * self.peak())
    }

    /// By how many megabytes the second half of what is counted lies above the first, on average.
    pub fn rise(&self) -> f64 {
        let counted = &self.0[self.0.len() * WARM_UP / 100..];
        let (first, second) = counted.split_at(counted.len() / 2);
        mean(second) - mean(first)
    }
}

fn mean(samples: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "some thousand samples")]
    let count = samples.len().max(1) as f64;
    samples.iter().sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_told_from_a_warm_up() {
        let warmed: Vec<f64> = (0..100).map(|n| f64::from(n).min(30.0) + 50.0).collect();
        assert!(Samples(warmed).are_flat());
        let leaking: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(!Samples(leaking).are_flat());
        assert!(Samples(vec![]).are_flat());
    }
}
