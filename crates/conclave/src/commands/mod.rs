//! One file a command.

pub mod accounts;
pub mod bench;
mod bench_guards;
mod bench_ledger;
mod bench_path;
pub mod check;
pub mod checker;
pub mod config;
pub mod directives;
pub mod eval;
pub mod explain;
pub mod keys;
pub mod ledger;
mod lines;
pub mod migrate;
mod opened;
pub mod people;
pub mod recipes;
pub mod redteam;
mod rows;
pub mod serve;
pub mod subject;
pub mod tenants;
pub mod usage;

/// What a command came to; becomes the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, or done: 0.
    Yes,
    /// The answer is no: 1.
    No,
}
