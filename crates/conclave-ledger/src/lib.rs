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
mod checkpoint;
mod cosignature;
mod coverage;
mod forget;
mod leaf;
mod note;
mod proofs;
mod receipt;
mod rotation;
mod seal;
mod tile;
mod tree;
mod verify;
mod windows;

pub use body::{Body, BodyError, Field, StoredBody};
pub use cbor::Value;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use cosignature::{Cosignature, WitnessKey, WitnessSigner, witness_request};
pub use coverage::Gap;
pub use forget::{Erasure, Forgotten, Purge};
pub use leaf::{
    Commitment, Draft, EntryId, Kind, LEAF_BYTES_MAX, Leaf, LeafError, leaf_hash, sha256,
    tenant_number,
};
pub use note::{NoteError, NoteSigner, SignedNote, VerifierKey, VerifierKeyError};
pub use proofs::{ProofError, TileSource, prove_consistency, prove_inclusion, range_of, root_at};
pub use receipt::{Receipt, ReceiptError};
pub use rotation::Rotation;
pub use seal::{LaidOut, SealError, SealingKey};
pub use tile::{
    BundleError, TILE_WIDTH, TileEdge, TileId, TilePathError, bundle_path, decode_hashes,
    encode_hashes, parse_bundle_path, read_bundle, tiles_of, write_bundle,
};
pub use tree::{
    CompactRange, Hash, consistency_proof, empty_root, inclusion_proof, node_hash, root_of,
    verify_consistency, verify_inclusion,
};
pub use verify::{Auditor, Bad, Entry, ExtraCheck, Head, Report};
