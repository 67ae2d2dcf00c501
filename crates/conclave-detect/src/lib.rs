//! Text to signals: folding, patterns, scores.
//!
//! **Invariant:** pure: the same text gives the same reading, in linear time and bounded memory.

mod reading;

pub use reading::{Frame, Reading, Signal, SignalKind};
