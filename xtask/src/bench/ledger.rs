//! `cargo xtask bench ledger`: the ledger on both databases, one line a figure.

use crate::house::conclave;
use crate::process::{cargo, run};
use crate::setup;
use anyhow::Context;
use conclave_testkit::Cluster;
use std::path::PathBuf;
use std::process::Command;

/// What to measure it with.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Entries of each measurement.
    #[arg(long, default_value_t = 100_000)]
    entries: u64,
    /// Where data directories are made; the disk is what is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Measures with a PostgreSQL made for the run.
pub fn measure(args: &Args) -> anyhow::Result<()> {
    let build = ["build", "--release", "--quiet", "-p", "conclave", "--bin", "conclave"];
    run("building", cargo().args(build))?;
    setup::postgres()?;
    let cluster = Cluster::start().context("PostgreSQL")?;
    let url = cluster.fresh().context("PostgreSQL")?;
    let entries = args.entries.to_string();
    let mut bench = Command::new(conclave());
    bench.args(["bench", "ledger", "--entries", &entries, "--database", &url, "--dir"]);
    run("measuring", bench.arg(&args.dir))
}
