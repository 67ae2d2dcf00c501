//! Trained text classifiers: hashed n-grams, and a small transformer.
//!
//! **Invariant:** pure and deterministic: the same text gives the same scores on every machine, within
//! the rounding of its arithmetic.

mod curve;
mod drift;
mod ensemble;
mod error;
mod features;
mod linear;
mod sentences;
mod transformer;

pub use curve::{Calibration, Curve, Meeting, group};
pub use ensemble::{Ensemble, Logits, Pair, ReplyLogits, Second};
pub use error::ClassifyError;
pub use features::{FEATURES_MAX, Features, Voice};
pub use linear::{Linear, bucket, pack, share};
pub use transformer::Transformer;
