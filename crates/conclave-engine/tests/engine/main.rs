//! The engine with every port in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what they expect")]

mod care;
mod directives;
mod doubt;
mod explaining;
mod fakes;
mod floor;
mod held_runs;
mod history;
mod holding;
mod keepers;
mod money;
mod new_guard;
mod office;
mod panel;
mod patience;
mod permission;
mod recipes;
mod run_money;
mod time;
mod turns;
mod unasked;
mod vectors;
mod verdicts;
mod windows;
