//! The tamper-evident log: bytes, tree, proofs, offline verification, pure.
