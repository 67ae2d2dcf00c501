//! The seat of a trained classifier.
//!
//! **Invariant:** the detector works without one; a classifier alone never exceeds
//! [`CLASSIFIER_CAP`], so that it cannot reach the floor of the directives by itself.

use conclave_core::{Category, Score};

/// The most a classifier can say alone, in hundredths.
pub const CLASSIFIER_CAP: u8 = 69;

/// What a classifier says about one text: calibrated scores of the categories it knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Calibrated scores; categories it says nothing about are absent.
    pub categories: Vec<(Category, Score)>,
}

/// A trained model that reads a folded text.
pub trait TextClassifier: Send + Sync {
    /// A short stable name, e.g. `tier1`; it stands in the source of its signals.
    fn name(&self) -> &str;
    /// Scores one folded text; `language` is ISO 639-1 or `und`.
    fn score(&self, folded: &str, language: &str) -> Estimate;
}
