//! `cargo xtask faults`: killed processes, failing disks and lost power, more of them than the ordinary
//! test run has time for.

use crate::process::{self, cargo, print, say};
use crate::setup;
use std::time::Instant;

/// What a line with a figure has in front of it.
const FIGURE: &str = "figure: ";

/// How much of it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Random kills of the real program under load.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    kills: u32,
    /// Histories of simulated disks that lose power.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    seeds: u32,
    /// For how many seconds PostgreSQL is stopped under load.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    outage: u32,
    /// Which random kills; the same number gives the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs everything; the first failure ends it.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let simulated = ["test", "-p", "conclave-store", "--lib", "power_tests"];
    process::run(
        "simulated disks that lose power",
        cargo().args(simulated).env("CONCLAVE_FAULT_SEEDS", args.seeds.to_string()),
    )?;
    let stored = ["test", "-p", "conclave-store", "--test", "it"];
    process::run("failing disks, damaged files, altered logs", cargo().args(stored))?;
    let mut figures = Vec::new();
    setup::tracer()?;
    let killed =
        ["test", "-p", "conclave", "--test", "faults", "--test", "calls", "--", "--nocapture"];
    figures.extend(process::run_for(
        "the real program, killed",
        FIGURE,
        cargo()
            .args(killed)
            .env_remove("CONCLAVE_BIN")
            .env("CONCLAVE_FAULT_KILLS", args.kills.to_string())
            .env("CONCLAVE_FAULT_SEED", args.seed.to_string()),
    )?);
    let replicas = ["test", "-p", "conclave", "--test", "replicas", "--", "--nocapture"];
    setup::postgres()?;
    let restored = ["test", "-p", "conclave-store", "--test", "contract", "restore::"];
    process::run("databases that come back older", cargo().args(restored))?;
    figures.extend(process::run_for(
        "replicas on one database, killed, and the database stopped under them",
        FIGURE,
        cargo()
            .args(replicas)
            .env_remove("CONCLAVE_BIN")
            .env("CONCLAVE_FAULT_KILLS", args.kills.to_string())
            .env("CONCLAVE_FAULT_OUTAGE", args.outage.to_string()),
    )?);
    figures.iter().for_each(|figure| print(figure));
    let (kills, seeds, seconds) = (args.kills, args.seeds, started.elapsed().as_secs());
    say(&format!("{kills} random kills and {seeds} lost powers: nothing was lost, in {seconds} s"));
    Ok(())
}
