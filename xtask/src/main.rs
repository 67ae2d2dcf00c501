//! What people would otherwise do by hand: the whole test run, the fault suite and the benchmarks.

mod bench;
mod faults;
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
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The gateway before a mock model on loopback, beside direct calls and the disk's own pace.
    Gateway {
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
        /// Where the data directory is made; the disk is what is measured.
        #[arg(long, value_name = "DIR")]
        dir: Option<std::path::PathBuf>,
        /// When the slower trained model is asked: never, unsure or always.
        #[arg(long, default_value = "never")]
        second_tier: String,
    },
    /// The ledger: spool, SQLite, a PostgreSQL made for the run, proofs and verification, beside what the
    /// disk and the processor give.
    Ledger {
        /// Entries of each measurement.
        #[arg(long, default_value_t = 100_000)]
        entries: u64,
        /// Where data directories are made; the disk is what is measured.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: std::path::PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().chore {
        Chore::Test => test::run(),
        Chore::Faults(args) => faults::run(&args),
        Chore::Train(args) => train::run(&args),
        Chore::Bench(Bench::Gateway { seconds, dir, second_tier }) => {
            bench::gateway(seconds, dir.as_deref(), &second_tier)
        }
        Chore::Bench(Bench::Ledger { entries, dir }) => bench::ledger(entries, &dir),
    }
}
