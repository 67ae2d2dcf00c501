//! What is promised of every store, run against each of them for real.
//!
//! The PostgreSQL half needs PostgreSQL; `cargo xtask test` installs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../it/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the spool")]
mod support;

mod faults;
mod forgetting;
mod place;
mod promises;
mod records;
