//! `cargo xtask load`: the real program under load. Each run prints its figures and fails where it must not.
//!
//! **Invariant:** loopback only, and every run ends by itself.

mod fairness;
mod memory;
mod overload;
mod replicas;
mod steady;
mod stop;
mod streams;

use crate::house;
use crate::process::{print, say};
use anyhow::bail;
use clap::ValueEnum;
use std::path::PathBuf;

/// Which runs, and how long.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which run; all of them one after the other unless given.
    #[arg(value_enum)]
    which: Option<Which>,
    /// Seconds of each run, instead of what it takes to mean something.
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..=900))]
    seconds: Option<u32>,
    /// Where data directories are made.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// 1,000 streams at once: no error, flat memory. 120 seconds.
    Streams,
    /// 200 requests a second: no error, flat memory. 600 seconds.
    Steady,
    /// Ten times what it can take: it goes on giving what it can, and refuses the rest at once. 30 seconds.
    Overload,
    /// Asked to stop under load: nothing that was acknowledged is lost. 20 seconds.
    Stop,
    /// Eight clients of one key with texts of 2 MB beside short requests of another: those are not kept waiting. 30
    /// seconds.
    Fairness,
    /// Three replicas on PostgreSQL, one killed every 20 seconds: nothing is lost, budgets hold. 120 seconds.
    Replicas,
}

/// How a run is done.
pub struct LoadRun<'a> {
    /// For how many seconds.
    pub seconds: u32,
    /// Where data directories are made.
    pub dir: Option<&'a std::path::Path>,
}

/// What a run found wrong; nothing where it holds.
pub type Violations = Vec<String>;

/// Runs; every violation is told before it ends.
pub fn run(args: &Args) -> anyhow::Result<()> {
    house::build()?;
    let chosen = args.which.map_or_else(|| Which::value_variants().to_vec(), |one| vec![one]);
    let mut violations = Vec::new();
    for which in chosen {
        let usual = match which {
            Which::Streams | Which::Replicas => 120,
            Which::Steady => 600,
            Which::Overload | Which::Fairness => 30,
            Which::Stop => 20,
        };
        let run = LoadRun { seconds: args.seconds.unwrap_or(usual), dir: args.dir.as_deref() };
        say(&format!("==> {which:?}, {} s", run.seconds));
        let found = match which {
            Which::Streams => streams::run(&run),
            Which::Steady => steady::run(&run),
            Which::Overload => overload::run(&run),
            Which::Stop => stop::run(&run),
            Which::Fairness => fairness::run(&run),
            Which::Replicas => replicas::run(&run),
        };
        let found = found.unwrap_or_else(|error| vec![format!("could not be run: {error:#}")]);
        let verdict = if found.is_empty() { "holds" } else { "DOES NOT HOLD" };
        print(&format!("{which:?}: {verdict}"));
        found.iter().for_each(|what| print(&format!("  {what}")));
        violations.extend(found);
    }
    if !violations.is_empty() {
        bail!("{} of the promises did not hold", violations.len());
    }
    Ok(())
}

/// Notes a sentence where something does not hold.
fn demand(violations: &mut Violations, holds: bool, otherwise: impl FnOnce() -> String) {
    if !holds {
        violations.push(otherwise());
    }
}
