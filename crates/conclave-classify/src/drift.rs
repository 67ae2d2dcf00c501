//! How strongly a text shows each slow movement, by the first tier alone: the second was tried and made it
//! worse, because few rows teach it and many dimensions fit them.

use conclave_core::Score;
use conclave_detect::DriftMarks;

/// How steeply a mark follows its logit. One message says little for certain, so that faint ones count as well: a drift is
/// seen in many half-clear messages rather than in three clear ones.
const STEEPNESS: f32 = 0.4;
/// What is added to it, so that a message between the two is worth noting.
const LEANING: f32 = 0.5;

/// The marks of a text, from the logits in the order of [`conclave_detect::DriftKind::ALL`].
pub(crate) fn marks(logits: &[f32]) -> DriftMarks {
    std::array::from_fn(|kind| {
        let logit = logits.get(kind).copied().unwrap_or(f32::NEG_INFINITY);
        Score::new(1.0 / (1.0 + (-STEEPNESS * logit - LEANING).exp()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_follow_the_logits_and_what_is_missing_is_nothing() {
        let marks = marks(&[0.0, 3.0, -3.0]).map(Score::hundredths);
        assert_eq!(marks, [62, 85, 33, 0]);
    }
}
