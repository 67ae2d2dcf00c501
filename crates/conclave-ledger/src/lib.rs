//! The tamper-evident log: its bytes, its tree and its offline verification.
//!
//! **Invariant:** nothing here does IO, reads a clock, draws randomness or awaits. Ids, times and
//! salts are given by the caller, so that the same entry has the same bytes for ever.
//!
//! **Invariant:** decoding accepts exactly what encoding produces, and nothing else: every entry
//! has one form, so a byte that was changed cannot hide behind a second spelling of the same
//! meaning.

pub mod cbor;

mod body;
mod coverage;
mod forget;
mod leaf;
mod seal;
mod tree;
mod verify;

pub use body::{Body, BodyError, Field, StoredBody};
pub use cbor::Value;
pub use coverage::Gap;
pub use forget::{Erasure, Forgotten, Purge};
pub use leaf::{
    Commitment, Draft, EntryId, Kind, Leaf, LeafError, leaf_hash, sha256, tenant_number,
};
pub use seal::{LaidOut, SealError, SealingKey};
pub use tree::{
    CompactRange, Hash, consistency_proof, empty_root, inclusion_proof, node_hash, root_of,
    verify_consistency, verify_inclusion,
};
pub use verify::{Auditor, Bad, Entry, ExtraCheck, Head, Report};
