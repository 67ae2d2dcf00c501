//! What people would otherwise do by hand: the whole test run, the fault suite, benchmarks and load runs.

mod bench;
mod faults;
mod house;
mod load;
mod process;
mod setup;
mod test;
mod train;

use clap::{Parser, Subcommand};

/// Chores of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Formatting, lints, every test, the docs: all that must hold, with its own set-up.
    Test,
    /// Kill the real program, fail its disks and take the power away: nothing may be lost.
    Faults(faults::Args),
    /// Train the classifiers from labelled rows, calibrate them and measure the result.
    Train(train::Args),
    /// Measure on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Put the real program under load for a while: streams, a steady pace, too much, a stop, kills.
    Load(load::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().chore {
        Chore::Test => test::run(),
        Chore::Faults(args) => faults::run(&args),
        Chore::Train(args) => train::run(&args),
        Chore::Bench(bench) => bench::run(&bench),
        Chore::Load(args) => load::run(&args),
    }
}
