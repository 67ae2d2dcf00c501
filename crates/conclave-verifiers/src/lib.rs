//! The built-in verifiers: a reply judged in the light of its conversation.
//!
//! **Invariant:** pure: the same case gives the same opinion.

mod acts;
mod case;

pub use case::Case;

use conclave_core::{Opinion, Seat};

/// A verifier that needs nothing but the case.
pub trait Judge: Send + Sync {
    /// Its place on the panel.
    fn seat(&self) -> Seat;
    /// Its opinion, or `None` when there is nothing in its field to judge.
    fn judge(&self, case: &Case) -> Option<Opinion>;
}
