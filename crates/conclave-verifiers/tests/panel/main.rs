//! The verifiers as a panel, on labelled cases, ordinary replies and real ones.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it found and stops where its premises fail"
)]

mod actions;
mod datasets;
mod doubt;
mod hidden;
mod latency;
mod manner;
mod ordinary;
mod properties;
mod spec;
mod support;
mod twins;
