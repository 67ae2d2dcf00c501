//! How strongly one message shows each slow movement.

use conclave_core::Score;
use conclave_detect::DriftMarks;

/// What the outputs of the second tier are called, in the order of the first tier's.
const SECOND: [&str; 4] = ["isolation", "escalation", "manipulation_drift", "dependency"];
/// What a unit of the first tier's logit counts where it stands alone, and where it does not.
const FIRST_ALONE: f32 = 1.0;
const FIRST_WEIGHT: f32 = 0.5;
/// What a unit of the second tier's logit counts.
const SECOND_WEIGHT: f32 = 0.8;
/// From this logit of the first tier on the second is worth asking.
const UNSURE_FROM: f32 = -2.0;

/// Whether the second tier should be asked.
pub(crate) fn unsure(first: &[f32]) -> bool {
    first.iter().any(|logit| *logit > UNSURE_FROM)
}

/// The marks of a message: what the first tier says, and the second where it was asked.
pub(crate) fn marks(first: &[f32], second: impl Fn(&str) -> Option<f32>) -> DriftMarks {
    std::array::from_fn(|kind| {
        let first = first.get(kind).copied().unwrap_or(f32::NEG_INFINITY);
        let logit = match second(SECOND[kind]) {
            Some(second) => FIRST_WEIGHT * first + SECOND_WEIGHT * second,
            None => FIRST_ALONE * first,
        };
        Score::new(1.0 / (1.0 + (-logit).exp()))
    })
}
