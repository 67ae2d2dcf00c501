//! What people decide and are told, over records in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what they expect")]

mod house;
mod reviews;
