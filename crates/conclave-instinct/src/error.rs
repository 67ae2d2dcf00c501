//! Why a set of directives is not accepted.
//!
//! **Invariant:** each error is one sentence an operator can act on. All of them are for whoever
//! installs or signs the set; none goes away by trying again, so a program that meets one must not
//! serve.

use crate::directive::{Core, Topic};
use conclave_core::{DirectiveId, Reason};
use thiserror::Error;

/// Why a set of directives is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InstinctError {
    /// The pinned key is no usable key.
    #[error(
        "the pinned key of the directives must be an Ed25519 public key in 64 lower-case hex digits"
    )]
    KeyMalformed,
    /// The signature cannot be read.
    #[error(
        "the signature of the directives must be 128 lower-case hex digits and an end of line; \
         it was changed or cut"
    )]
    SignatureMalformed,
    /// The signature is not one of these bytes under the pinned key.
    #[error(
        "the directives do not match their signature: a byte of the file (SHA-256 {digest}) or of \
         the signature was changed, or it was signed with another key than the pinned {key}"
    )]
    Mismatch {
        /// SHA-256 of the file, in hex.
        digest: String,
        /// The pinned key, in hex.
        key: String,
    },
    /// The set is intact, but another key is pinned than the one it was signed with.
    #[error(
        "the directives are signed with the project's own key, but this program pins {key}: \
         install the set that was signed with that key"
    )]
    OtherKeyPinned {
        /// The pinned key, in hex.
        key: String,
    },
    /// The file is larger than any set needs.
    #[error("the directives file has {found} bytes, more than the {max} a set may have")]
    TooLarge {
        /// Its size in bytes.
        found: usize,
        /// The largest size accepted, in bytes.
        max: usize,
    },
    /// The file is not text, not TOML or not of this shape.
    #[error("the directives file is malformed at line {line}: {message}")]
    Malformed {
        /// Where, counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// There are not as many as there must be.
    #[error("the directives file holds {found} directives instead of {expected}")]
    WrongCount {
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: u16,
    },
    /// The numbers do not run from 1 upwards.
    #[error("the directives are misnumbered: {found} stands where {expected} belongs")]
    WrongNumber {
        /// The number that stands there.
        found: DirectiveId,
        /// The number that belongs there.
        expected: DirectiveId,
    },
    /// A directive stands under a core where it does not belong.
    #[error("directive {id} ({topic}) may not stand under the core {core}")]
    WrongCore {
        /// Which directive.
        id: DirectiveId,
        /// What it is about.
        topic: Topic,
        /// The core it names.
        core: Core,
    },
    /// A text is missing.
    #[error("directive {id} has no text in `{language}`")]
    EmptyText {
        /// Which directive.
        id: DirectiveId,
        /// Which language, as the file's key.
        language: &'static str,
    },
    /// Two directives say the same.
    #[error("directives {first} and {second} say the same in `{language}`")]
    Duplicate {
        /// The one that came first.
        first: DirectiveId,
        /// The one that repeats it.
        second: DirectiveId,
        /// In which language, as the file's key.
        language: &'static str,
    },
    /// A block of this topic would have nothing to rest on.
    #[error("no directive is the basis for `{topic}`")]
    NoBasis {
        /// What lacks a basis.
        topic: Topic,
    },
    /// A directive claims to be the basis of something it is not about.
    #[error("directive {id} cannot be the basis for `{topic}`, which it is not about")]
    WrongBasis {
        /// Which directive.
        id: DirectiveId,
        /// What it claims.
        topic: Topic,
    },
    /// Two directives claim to be the basis of the same.
    #[error("directives {first} and {second} both claim to be the basis for `{topic}`")]
    TwoBases {
        /// What is claimed twice.
        topic: Topic,
        /// The one that came first.
        first: DirectiveId,
        /// The one that claims it again.
        second: DirectiveId,
    },
    /// Two directives claim the same objection.
    #[error("directives {first} and {second} both claim the objection `{}`", .reason.code())]
    TwoObjections {
        /// What is claimed twice.
        reason: Reason,
        /// The one that came first.
        first: DirectiveId,
        /// The one that claims it again.
        second: DirectiveId,
    },
}
