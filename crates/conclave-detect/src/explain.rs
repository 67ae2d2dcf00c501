//! Why a text was read as it was: for people, auditors and `explain`.

use crate::{Reading, Signal};
use serde::Serialize;

/// One step by which the line came to stand where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThresholdStep {
    /// Which rule moved it, e.g. `mode normal`, `frame fiction`.
    pub rule: String,
    /// By how much, in hundredths; the first step is the line itself.
    pub hundredths: i16,
}

/// What one signal gave to the score it counts in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// Which score: `harm`, `crisis` or `injection`.
    pub score: String,
    /// The signal.
    pub signal: Signal,
    /// The words that were seen, as they stand in the original.
    pub quote: String,
    /// By how much the score would be lower without it.
    pub part: f32,
}

/// A dangerous word that was read in a harmless way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replacement {
    /// How it was read instead: `technical`, `figurative`, `negated`, ...
    pub reading: String,
    /// Which rule said so.
    pub source: String,
    /// Where it starts in the original, in Unicode scalar values.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
    /// The words.
    pub quote: String,
}

/// Everything that led to a reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The reading itself.
    pub reading: Reading,
    /// `harmful` or `safe`.
    pub verdict: String,
    /// How the line in force came about.
    pub threshold: Vec<ThresholdStep>,
    /// Which signal gave which part.
    pub contributions: Vec<Contribution>,
    /// What was read harmlessly.
    pub replaced: Vec<Replacement>,
    /// The factor that asking how to do it put on the harm, in hundredths.
    pub amplified_by: u16,
    /// The disguises that were seen through: `zero-width`, `base64`, ...
    pub disguises: Vec<String>,
}
