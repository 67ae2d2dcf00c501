//! Scores and confidences: numbers that cannot leave their range.

use serde::{Deserialize, Serialize};

/// A probability-like score, always within `0.0..=1.0`; not-a-number becomes `1`, because
/// whoever measured it failed, and a failure must not pass for innocence.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Score(f32);

impl Score {
    /// Nothing seen.
    pub const ZERO: Self = Self(0.0);
    /// Certain.
    pub const ONE: Self = Self(1.0);
    /// From where on crisis and injection are acted on, in hundredths.
    pub const DECISION_POINT: u8 = 50;

    /// Clamps `value` into range.
    #[must_use]
    pub fn new(value: f32) -> Self {
        if value.is_nan() { Self::ONE } else { Self(value.clamp(0.0, 1.0)) }
    }

    /// From hundredths; anything above 100 is 1.
    #[must_use]
    pub fn from_hundredths(hundredths: u8) -> Self {
        Self::new(f32::from(hundredths) / 100.0)
    }

    /// The value within `0.0..=1.0`.
    #[must_use]
    pub const fn get(self) -> f32 {
        self.0
    }

    /// Rounded to whole hundredths: how a score enters the ledger and every integer comparison.
    #[must_use]
    pub fn hundredths(self) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "within 0..=100 by construction")]
        #[expect(clippy::cast_sign_loss, reason = "never negative by construction")]
        let rounded = (f64::from(self.0) * 100.0).round() as u8;
        rounded
    }

    /// Whether a score of crisis means that the person needs help now.
    #[must_use]
    pub fn is_crisis(self) -> bool {
        self.reaches(Self::DECISION_POINT)
    }

    /// Whether a score of injection means that somebody tries to override instructions.
    #[must_use]
    pub fn is_injection(self) -> bool {
        self.reaches(Self::DECISION_POINT)
    }

    fn reaches(self, hundredths: u8) -> bool {
        self.hundredths() >= hundredths
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if other.0 < self.0 { other } else { self }
    }

    /// The larger of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f32::deserialize(deserializer).map(Self::new)
    }
}

/// How sure a verifier is, in whole hundredths `0..=100`.
///
/// **Invariant:** consensus arithmetic only ever sees this integer, so that a replay of stored ballots
/// is equal bit for bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confidence(u8);

impl Confidence {
    /// Certain.
    pub const FULL: Self = Self(100);

    /// From hundredths; `None` above 100.
    #[must_use]
    pub const fn from_hundredths(hundredths: u8) -> Option<Self> {
        if hundredths <= 100 { Some(Self(hundredths)) } else { None }
    }

    /// Quantises a raw confidence; `None` when it is not a number within `0.0..=1.0`.
    #[must_use]
    pub fn quantise(raw: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&raw) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "within 0..=100 by the range check")]
        #[expect(clippy::cast_sign_loss, reason = "never negative by the range check")]
        let hundredths = (raw * 100.0).round() as u8;
        Some(Self(hundredths))
    }

    /// Whole hundredths.
    #[must_use]
    pub const fn hundredths(self) -> u8 {
        self.0
    }
}

impl Serialize for Confidence {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = f64::deserialize(deserializer)?;
        Self::quantise(raw)
            .ok_or_else(|| serde::de::Error::custom(format!("confidence {raw} is outside 0..=1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_stay_in_range() {
        for (given, kept) in [(-1.0, 0.0), (0.25, 0.25), (7.0, 1.0), (f32::NAN, 1.0)] {
            assert!((Score::new(given).get() - kept).abs() < f32::EPSILON, "{given}");
        }
        assert_eq!(Score::new(0.6951).hundredths(), 70);
    }

    #[test]
    fn confidences_are_quantised_or_refused() {
        for (raw, kept) in [(0.0, Some(0)), (0.994, Some(99)), (0.996, Some(100)), (1.0, Some(100))]
        {
            assert_eq!(Confidence::quantise(raw).map(Confidence::hundredths), kept, "{raw}");
        }
        for raw in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::quantise(raw), None, "{raw}");
        }
    }
}
