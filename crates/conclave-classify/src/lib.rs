//! Trained text classifiers: hashed n-grams, a multilingual encoder, and a transformer that reads English in
//! depth.
//!
//! **Invariant:** pure and deterministic: the same text gives the same scores on every machine, within
//! the rounding of its arithmetic.

mod action;
mod curve;
mod drift;
mod encoder;
mod ensemble;
mod error;
mod features;
mod linear;
mod norm;
mod product;
mod sentences;
mod transformer;
mod weights;

pub use action::{ActionModel, action_features, action_score};
pub use curve::{Calibration, Curve, Joint, Question, TierLogits, TierWeights, group};
pub use encoder::SentenceEncoder;
pub use ensemble::{Ensemble, ReplyLogits, SlowTiers, TextLogits};
pub use error::ClassifyError;
pub use features::{FEATURES_MAX, Features, Voice};
pub use linear::{Linear, bucket, pack, share};
pub use transformer::Transformer;
