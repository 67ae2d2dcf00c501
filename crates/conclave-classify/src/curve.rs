//! From a logit to a score that means the same everywhere.
//!
//! **Invariant:** a curve never falls: what the model finds worse is never scored better.

use crate::ClassifyError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Straight lines between points of (logit, score), both ascending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve(Vec<(f32, f32)>);

impl Curve {
    /// A curve through these points.
    #[must_use]
    pub fn through(points: Vec<(f32, f32)>) -> Self {
        Self(points)
    }

    /// The score of a logit; beyond the last points it stays where they are. What is not a number stays
    /// so, because the lowest score would let a failure pass for a clean text.
    #[must_use]
    pub fn of(&self, logit: f32) -> f32 {
        if logit.is_nan() {
            return logit;
        }
        let after = self.0.partition_point(|(at, _)| *at <= logit);
        match (after.checked_sub(1).and_then(|at| self.0.get(at)), self.0.get(after)) {
            (Some(&(left, low)), Some(&(right, high))) => {
                low + (high - low) * (logit - left) / (right - left).max(f32::EPSILON)
            }
            (None, Some(&(_, score))) | (Some(&(_, score)), None) => score,
            (None, None) => 0.0,
        }
    }

    fn rises(&self) -> bool {
        let finite = self.0.iter().all(|(at, score)| at.is_finite() && (0.0..=1.0).contains(score));
        finite && self.0.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1)
    }
}

/// How the two tiers meet for one question: the sum that is looked up, and the curves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meeting {
    /// What a unit of the first tier's logit counts beside the second's.
    pub first_weight: f32,
    /// What a unit of the second tier's logit counts.
    pub second_weight: f32,
    /// Score of the first tier alone, by group.
    pub first: BTreeMap<String, Curve>,
    /// Score of both, by group.
    pub both: BTreeMap<String, Curve>,
}

impl Meeting {
    /// The score of the first tier's logit, and of the second's where it was asked.
    #[must_use]
    pub fn score(&self, group: &str, first: f32, second: Option<f32>) -> f32 {
        let (curves, logit) = match second {
            None => (&self.first, first),
            Some(second) => (&self.both, self.sum(first, second)),
        };
        let language = group.split('/').next().unwrap_or_default();
        let curve =
            curves.get(group).or_else(|| curves.get(language)).or_else(|| curves.get("any"));
        curve.map_or(0.0, |curve| curve.of(logit))
    }

    /// The sum that is looked up in the curves of both.
    #[must_use]
    pub fn sum(&self, first: f32, second: f32) -> f32 {
        self.first_weight * first + self.second_weight * second
    }
}

/// Everything that was calibrated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// From and to this score of the first tier, the second is asked.
    pub unsure: (f32, f32),
    /// Harm of a text.
    pub request: Meeting,
    /// A person who needs help.
    pub crisis: Meeting,
    /// Overriding instructions.
    pub injection: Meeting,
    /// A frame that is to make a model forget its rules, as harm.
    pub frame: Meeting,
    /// Harm of a reply.
    pub reply: Meeting,
    /// Each fault of a reply, by its name.
    #[serde(default)]
    pub manner: BTreeMap<String, Meeting>,
}

impl Calibration {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is not TOML of this shape, or a curve falls.
    pub fn parse(text: &str) -> Result<Self, ClassifyError> {
        let read: Self =
            toml::from_str(text).map_err(|error| ClassifyError::Description(error.to_string()))?;
        let Self { request, crisis, injection, frame, reply, manner, .. } = &read;
        let meetings =
            [request, crisis, injection, frame, reply].into_iter().chain(manner.values());
        let rising =
            meetings.flat_map(|one| one.first.values().chain(one.both.values())).all(Curve::rises);
        if rising { Ok(read) } else { Err(ClassifyError::Description("a curve falls".into())) }
    }
}

/// The group a text is calibrated in: its language, and how long it is.
#[must_use]
pub fn group(language: &str, folded: &str) -> &'static str {
    let letters = folded.chars().take(LONG_FROM).count();
    let unspaced = matches!(language, "ja" | "zh" | "ko");
    let (short, long) =
        if unspaced { (SHORT_TO / 2, LONG_FROM / 2) } else { (SHORT_TO, LONG_FROM) };
    match (language, letters) {
        ("en", n) if n < short => "en/short",
        ("en", n) if n >= long => "en/long",
        ("en", _) => "en/middle",
        ("ja", n) if n < short => "ja/short",
        ("ja", n) if n >= long => "ja/long",
        ("ja", _) => "ja/middle",
        (_, n) if n < short => "other/short",
        (_, n) if n >= long => "other/long",
        _ => "other/middle",
    }
}

const SHORT_TO: usize = 50;
const LONG_FROM: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_straight_between_its_points_and_flat_beyond() {
        let curve = Curve::through(vec![(-1.0, 0.1), (1.0, 0.5)]);
        for (logit, score) in [(-9.0, 0.1), (-1.0, 0.1), (0.0, 0.3), (1.0, 0.5), (9.0, 0.5)] {
            assert!((curve.of(logit) - score).abs() < 1e-6, "{logit}");
        }
        assert!(Curve::default().of(1.0).abs() < 1e-6);
        assert_eq!(conclave_core::Score::new(curve.of(f32::NAN)), conclave_core::Score::ONE);
    }

    #[test]
    fn a_falling_curve_is_refused() {
        let file = |points: &str| {
            let meeting = |name: &str| {
                format!(
                    "[{name}]\nfirst_weight = 1.0\nsecond_weight = 1.0\nfirst.any = {points}\nboth.any = {points}\n"
                )
            };
            let all: String =
                ["request", "crisis", "injection", "frame", "reply"].map(meeting).concat();
            format!("unsure = [0.1, 0.6]\n{all}")
        };
        assert!(Calibration::parse(&file("[[-1.0, 0.1], [1.0, 0.5]]")).is_ok());
        assert!(Calibration::parse(&file("[[-1.0, 0.6], [1.0, 0.5]]")).is_err());
        assert!(Calibration::parse(&file("[[-1.0, 0.6], [1.0, 1.5]]")).is_err());
        assert!(Calibration::parse("nothing").is_err());
    }

    #[test]
    fn groups_fall_back_to_their_language_and_to_all() {
        let curves = |score: f32, name: &str| (name.to_owned(), Curve::through(vec![(0.0, score)]));
        let meeting =
            Meeting { first: [curves(0.1, "any"), curves(0.2, "en")].into(), ..Meeting::default() };
        assert!((meeting.score("en/short", 0.0, None) - 0.2).abs() < 1e-6);
        assert!((meeting.score("ja/short", 0.0, None) - 0.1).abs() < 1e-6);
        assert_eq!(group("en", "hi"), "en/short");
        assert_eq!(group("fr", &"x".repeat(9999)), "other/long");
    }
}
