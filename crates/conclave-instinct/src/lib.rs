//! The frozen, signed directives and the floor under every threshold.
//!
//! **Invariant:** an [`Instinct`] exists only after its bytes were checked against a signature
//! under the pinned key, so that whoever holds one need not ask where it came from.
//!
//! **Invariant:** nothing here reads a file, a clock or the environment of the running process. The
//! key and the shipped set are compiled in; what an operator loads from disk is handed in as bytes.
//!
//! What the signature defends against is tampering without recompiling. Whoever can rebuild the
//! program can pin another key; the digest in every ledger entry then shows that the set has
//! changed.

mod basis;
mod check;
mod directive;
mod error;
#[cfg(test)]
mod floor_tests;
mod instinct;
mod signature;

#[cfg(test)]
mod content_tests;
#[cfg(test)]
mod tamper_tests;

pub use directive::{Core, Directive, Duty, Topic};
pub use error::InstinctError;
pub use instinct::{COUNT, FILE_BYTES_MAX, Instinct};
pub use signature::{PinnedKey, Signed, read_seed, sign};
