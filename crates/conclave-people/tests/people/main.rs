//! What people decide and are told, over records in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what they expect")]

mod appeals;
mod communities;
mod consents;
mod explaining;
mod hand_out;
mod house;
mod reviews;
mod webhooks;
