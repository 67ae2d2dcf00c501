//! A figure and how sure it is.
//!
//! **Invariant:** what cannot be measured is `None`, never a NaN and never a zero that looks measured.

use serde::{Deserialize, Serialize};

/// 95 % of a normal distribution lie within so many standard deviations.
const Z: f64 = 1.959_963_984_540_054;

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

impl Estimate {
    /// A share with Wilson's interval; `None` of nothing.
    #[must_use]
    pub fn share(hits: usize, of: usize) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let (n, value) = (count(of), count(hits) / count(of));
        let width = Z * Z / n;
        let middle = (value + width / 2.0) / (1.0 + width);
        let half = Z * (value * (1.0 - value) / n + width / (4.0 * n)).sqrt() / (1.0 + width);
        Some(Self {
            value,
            low: (middle - half).clamp(0.0, value),
            high: (middle + half).clamp(value, 1.0),
        })
    }

    /// A figure with the interval its variance gives, kept within 0 and 1.
    #[must_use]
    pub fn normal(value: f64, variance: f64) -> Self {
        let half = Z * variance.max(0.0).sqrt();
        Self { value, low: (value - half).max(0.0), high: (value + half).min(1.0) }
    }

    /// The figure and its interval, each sent through the same rising function.
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// The interval of this figure less another, by Newcombe's square-and-add of both intervals.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let value = self.value - other.value;
        let down = (self.value - self.low).hypot(other.high - other.value);
        let up = (self.high - self.value).hypot(other.value - other.low);
        Self { value, low: value - down, high: value + up }
    }
}

/// A count as a number to reckon with; counts here are far below 2^52.
pub(crate) const fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    #[test]
    fn shares_have_wilsons_interval() {
        // Reckoned by hand: 8 of 10, and the two ends.
        let eight = Estimate::share(8, 10).unwrap();
        assert!(near(eight.value, 0.8) && near(eight.low, 0.4902) && near(eight.high, 0.9433));
        let none = Estimate::share(0, 10).unwrap();
        assert!(none.low == 0.0 && near(none.high, 0.2775), "{none:?}");
        let all = Estimate::share(10, 10).unwrap();
        assert!(all.high == 1.0 && near(all.low, 0.7225), "{all:?}");
        assert_eq!(Estimate::share(0, 0), None);
    }

    #[test]
    fn differences_carry_both_intervals() {
        let (a, b) = (Estimate::share(80, 100).unwrap(), Estimate::share(50, 100).unwrap());
        let apart = a.less(b);
        assert!(near(apart.value, 0.3) && apart.low > 0.0, "{apart:?}");
        let same = a.less(a);
        assert!(same.value == 0.0 && same.low < 0.0 && same.high > 0.0);
    }

    #[test]
    fn intervals_stay_within_bounds() {
        let sure = Estimate::normal(0.99, 0.01);
        assert_eq!(sure.high, 1.0);
        assert_eq!(Estimate::normal(0.5, -1.0).low, 0.5);
    }
}
