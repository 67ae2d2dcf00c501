//! One file a command.

pub mod accounts;
pub mod appeals;
pub mod bench;
mod bench_guards;
mod bench_ledger;
mod bench_path;
mod bench_reader;
pub mod check;
pub mod checker;
pub mod config;
pub mod consents;
mod data_directory;
pub mod directives;
pub mod eval;
pub mod explain;
mod gateway;
pub mod keys;
pub mod ledger;
mod lines;
pub mod migrate;
mod plain;
mod processor_time;
pub mod protocols;
pub mod recipes;
pub mod redteam;
pub mod reviews;
mod rows;
pub mod serve;
pub mod subject;
pub mod tenants;
pub mod usage;
pub mod webhooks;

use gateway::GatewayRefusal;

/// What a command came to, where it could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, or done.
    Yes,
    /// The answer is no.
    No,
}

/// The exit code of a command. No other place knows one: 0 yes or done, 1 the answer is no, also
/// where a gateway says it, 2 it could not be done.
#[must_use]
pub fn exit_code(result: &anyhow::Result<Answer>) -> u8 {
    match result {
        Ok(Answer::Yes) => 0,
        Ok(Answer::No) => 1,
        Err(error) if error.is::<GatewayRefusal>() => 1,
        Err(_) => 2,
    }
}
