//! The store from outside: what is promised to whoever appends, reads, crashes or tampers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
mod crash;
mod disks;
mod forget;
mod keys;
mod lock;
mod proofs;
mod spool;
mod support;
mod tamper;
