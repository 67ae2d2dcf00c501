//! `cargo xtask bench`: figures of this machine.

mod against;
mod disk;
mod gateway;
mod instructions;
mod ledger;
mod nginx;
mod readings;

use clap::Subcommand;

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The gateway before a mock model on loopback, beside direct calls and the disk's own pace.
    Gateway(gateway::Args),
    /// Instructions of each part of a turn, compared with those on record; needs valgrind.
    Instructions(instructions::Args),
    /// The ledger: spool, SQLite, a PostgreSQL made for the run, proofs and verification, beside what the
    /// disk and the processor give.
    Ledger(ledger::Args),
    /// Whether every text of the corpus is read as another build reads it, to the last digit.
    Readings(readings::Args),
}

/// Measures.
pub fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Gateway(args) => gateway::run(args),
        Bench::Instructions(args) => instructions::run(args),
        Bench::Ledger(args) => ledger::measure(args),
        Bench::Readings(args) => readings::run(args),
    }
}
