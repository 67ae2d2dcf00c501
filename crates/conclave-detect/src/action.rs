//! The seat of a trained classifier of actions.
//!
//! **Invariant:** it flags; the rules for actions work without one, and nothing it says makes an action safer.

use conclave_core::Score;

/// Something that says how much an action looks like those that harm somebody.
pub trait ActionClassifier: Send + Sync {
    /// How dangerous an action looks that is written out as `call`, in answer to what was `asked`. From 0.30 on it
    /// is worth a concern, from 0.70 on hardly any ordinary action is among those that look so.
    fn danger(&self, call: &str, asked: &str) -> Score;
}
