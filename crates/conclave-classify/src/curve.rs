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

    /// The same curve with some of its points, named by their scores, not before these logits; what follows moves
    /// along.
    #[must_use]
    pub fn raised(&self, least: &[(f32, f32)]) -> Self {
        let mut moved = 0.0_f32;
        let mut last = f32::NEG_INFINITY;
        let raise = |&(logit, score): &(f32, f32)| {
            let wanted = least.iter().find(|(_, named)| (named - score).abs() < 1e-6);
            let raised = wanted.map_or(logit + moved, |(at, _)| at.max(logit)).max(last + 1e-3);
            moved = raised - logit;
            last = raised;
            ((raised * 1e4).round() / 1e4, score)
        };
        Self(self.0.iter().map(raise).collect())
    }

    fn rises(&self) -> bool {
        let finite = self.0.iter().all(|(at, score)| at.is_finite() && (0.0..=1.0).contains(score));
        finite && self.0.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1)
    }
}

/// What each tier says of one question about one text, as logits; a slower tier only where it was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierLogits {
    /// The n-grams.
    pub ngrams: f32,
    /// The multilingual encoder.
    pub encoder: Option<f32>,
    /// The transformer that reads English in depth.
    pub depth: Option<f32>,
}

/// What a unit of each tier's logit counts; none counts against the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierWeights {
    /// Of the n-grams.
    pub ngrams: f32,
    /// Of the encoder.
    #[serde(default)]
    pub encoder: f32,
    /// Of the transformer.
    #[serde(default)]
    pub depth: f32,
}

impl Default for TierWeights {
    fn default() -> Self {
        Self { ngrams: 1.0, encoder: 1.0, depth: 1.0 }
    }
}

impl TierWeights {
    /// The sum that is looked up in the curves. What a tier was not asked does not count.
    #[must_use]
    pub fn sum(&self, logits: &TierLogits) -> f32 {
        let slower = |weight: f32, logit: Option<f32>| logit.map_or(0.0, |logit| weight * logit);
        self.ngrams * logits.ngrams
            + slower(self.encoder, logits.encoder)
            + slower(self.depth, logits.depth)
    }

    fn is_monotone(&self) -> bool {
        [self.ngrams, self.encoder, self.depth]
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0)
    }
}

/// How the tiers that were asked are joined to one score, by language and length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// What each tier counts, by language.
    #[serde(default)]
    pub weights: BTreeMap<String, TierWeights>,
    /// From the sum to a score, by group.
    pub curves: BTreeMap<String, Curve>,
}

impl Joint {
    /// What each tier counts in this group.
    #[must_use]
    pub fn weights_of(&self, group: &str) -> TierWeights {
        of_group(&self.weights, group).copied().unwrap_or_default()
    }

    fn score(&self, group: &str, logits: &TierLogits) -> f32 {
        let curve = of_group(&self.curves, group);
        curve.map_or(f32::NAN, |curve| curve.of(self.weights_of(group).sum(logits)))
    }
}

/// What stands under the group's name, its language's, or under `any`.
fn of_group<'a, T>(values: &'a BTreeMap<String, T>, group: &str) -> Option<&'a T> {
    let language = group.split('/').next().unwrap_or_default();
    values.get(group).or_else(|| values.get(language)).or_else(|| values.get("any"))
}

/// How one question is answered, by how many tiers were asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// From this score of the quicker tiers on, the transformer is asked.
    pub open_from: f32,
    /// By the n-grams alone.
    pub one: Joint,
    /// With the encoder.
    pub two: Joint,
    /// With the transformer as well.
    pub three: Joint,
}

impl Question {
    /// The score of what the tiers said. A tier that is needed and has no curve is a failure: not a number,
    /// which every score takes for the worst.
    #[must_use]
    pub fn score(&self, group: &str, logits: &TierLogits) -> f32 {
        self.joint(logits).score(group, logits)
    }

    /// How the tiers that were asked are joined.
    #[must_use]
    pub const fn joint(&self, logits: &TierLogits) -> &Joint {
        match (logits.encoder, logits.depth) {
            (None, None) => &self.one,
            (_, None) => &self.two,
            _ => &self.three,
        }
    }

    /// Whether the quicker tiers leave the answer open.
    #[must_use]
    pub fn is_open(&self, score: f32) -> bool {
        // What is surely over every line needs no third opinion.
        (self.open_from..=OPEN_TO).contains(&score)
    }

    fn is_sound(&self) -> bool {
        let joints = [&self.one, &self.two, &self.three];
        joints.iter().all(|joint| {
            joint.curves.values().all(Curve::rises)
                && joint.weights.values().all(TierWeights::is_monotone)
        })
    }
}

/// Above this score the transformer is not asked.
const OPEN_TO: f32 = 0.66;

/// Everything that was calibrated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Harm of a text.
    pub request: Question,
    /// A person who needs help.
    pub crisis: Question,
    /// Overriding instructions.
    pub injection: Question,
    /// A frame that is to make a model forget its rules, as harm.
    pub frame: Question,
    /// Harm of a reply.
    pub reply: Question,
    /// Each fault of a reply, by its name.
    #[serde(default)]
    pub manner: BTreeMap<String, Question>,
}

impl Calibration {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is not TOML of this shape, a curve falls, or a tier counts against the others.
    pub fn parse(text: &str) -> Result<Self, ClassifyError> {
        let read: Self =
            toml::from_str(text).map_err(|error| ClassifyError::Description(error.to_string()))?;
        let is_sound = read.questions().all(Question::is_sound);
        if is_sound {
            Ok(read)
        } else {
            Err(ClassifyError::Description("a curve falls or a weight is negative".into()))
        }
    }

    fn questions(&self) -> impl Iterator<Item = &Question> {
        let Self { request, crisis, injection, frame, reply, manner } = self;
        [request, crisis, injection, frame, reply].into_iter().chain(manner.values())
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
    fn points_are_raised_and_what_follows_moves_along() {
        let curve = Curve::through(vec![(0.0, 0.0), (1.0, 0.25), (2.0, 0.5), (8.0, 0.6)]);
        let raised = curve.raised(&[(3.0, 0.25), (1.5, 0.5)]);
        assert_eq!(raised.0, [(0.0, 0.0), (3.0, 0.25), (3.001, 0.5), (9.001, 0.6)]);
        assert!(raised.rises());
        assert_eq!(curve.raised(&[(-5.0, 0.5)]), curve);
    }

    #[test]
    fn a_falling_curve_and_a_negative_weight_are_refused() {
        let file = |points: &str, weight: &str| {
            let joint = |name: &str, stage: &str| {
                format!(
                    "[{name}.{stage}.weights.any]\nngrams = {weight}\n[{name}.{stage}.curves]\nany = {points}\n"
                )
            };
            let question = |name: &str| {
                let joints: String =
                    ["one", "two", "three"].map(|stage| joint(name, stage)).concat();
                format!("[{name}]\nopen_from = 0.1\n{joints}")
            };
            ["request", "crisis", "injection", "frame", "reply"].map(question).concat()
        };
        assert!(Calibration::parse(&file("[[-1.0, 0.1], [1.0, 0.5]]", "1.0")).is_ok());
        assert!(Calibration::parse(&file("[[-1.0, 0.6], [1.0, 0.5]]", "1.0")).is_err());
        assert!(Calibration::parse(&file("[[-1.0, 0.6], [1.0, 1.5]]", "1.0")).is_err());
        assert!(Calibration::parse(&file("[[-1.0, 0.1], [1.0, 0.5]]", "-0.1")).is_err());
        assert!(Calibration::parse("nothing").is_err());
    }

    #[test]
    fn groups_fall_back_to_their_language_and_to_all() {
        let curve = |score: f32, name: &str| (name.to_owned(), Curve::through(vec![(0.0, score)]));
        let joint =
            Joint { curves: [curve(0.1, "any"), curve(0.2, "en")].into(), ..Joint::default() };
        let question = Question { one: joint, ..Question::default() };
        let logits = TierLogits::default();
        assert!((question.score("en/short", &logits) - 0.2).abs() < 1e-6);
        assert!((question.score("ja/short", &logits) - 0.1).abs() < 1e-6);
        assert_eq!(group("en", "hi"), "en/short");
        assert_eq!(group("fr", &"x".repeat(9999)), "other/long");
    }

    #[test]
    fn a_tier_without_a_curve_is_a_failure_and_no_clean_text() {
        let logits = TierLogits { encoder: Some(0.0), ..TierLogits::default() };
        assert!(Question::default().score("en", &logits).is_nan());
    }
}
