//! `cargo xtask bench gateway --against FILE`: this build beside another one.
//!
//! **Invariant:** both run at the same time and are loaded in turns, so that a machine which becomes slower is
//! slower for both.

use super::gateway::{ASKED_AT, Args, loaded, options, setup};
use crate::house::{self, GatewayProcess, Mock, Setup};
use crate::process::print;
use std::path::Path;

/// How often each of the two is loaded.
const ROUNDS: usize = 5;

/// What one build gave in every round.
#[derive(Default)]
struct Rounds {
    per_second: Vec<f64>,
    cpu_ms: Vec<f64>,
}

/// Loads both builds in turns and prints the medians and how they compare.
pub(super) fn run(args: &Args, other: &Path, mock: &Mock) -> anyhow::Result<()> {
    print(&format!(
        "\nbeside {}: medians of {ROUNDS} turns each, {ASKED_AT} clients",
        other.display()
    ));
    let homes = [house::scratch(args.dir.as_deref())?, house::scratch(args.dir.as_deref())?];
    let this = GatewayProcess::start(&setup(args, homes[0].path(), mock))?;
    let program = other.to_owned();
    let other = GatewayProcess::start(&Setup { program, ..setup(args, homes[1].path(), mock) })?;
    for is_stream in [false, true] {
        let warm_up = options(ASKED_AT, 1, is_stream);
        loaded(&this.addr, &this.key, &warm_up)?;
        loaded(&other.addr, &other.key, &warm_up)?;
        let mut of_this = Rounds::default();
        let mut of_other = Rounds::default();
        for _ in 0..ROUNDS {
            of_other.add(args, &other, is_stream)?;
            of_this.add(args, &this, is_stream)?;
        }
        let reply = if is_stream { "stream" } else { "whole" };
        let per_second = [median(&mut of_other.per_second), median(&mut of_this.per_second)];
        let cpu_ms = [median(&mut of_other.cpu_ms), median(&mut of_this.cpu_ms)];
        print(&format!(
            "{reply:<7} requests/s {:.0} there, {:.0} here ({:.2} times); CPU-ms a request {:.3} there, \
             {:.3} here ({:.2} times)",
            per_second[0],
            per_second[1],
            per_second[1] / per_second[0].max(0.001),
            cpu_ms[0],
            cpu_ms[1],
            cpu_ms[1] / cpu_ms[0].max(0.001),
        ));
    }
    this.stop()?;
    other.stop()?;
    Ok(())
}

impl Rounds {
    fn add(&mut self, args: &Args, gateway: &GatewayProcess, stream: bool) -> anyhow::Result<()> {
        let before = gateway.cpu_ms()?;
        let load = loaded(&gateway.addr, &gateway.key, &options(ASKED_AT, args.seconds, stream))?;
        let spent = gateway.cpu_ms()? - before;
        self.per_second.push(load.figure("per_second"));
        self.cpu_ms.push(spent / load.figure("requests").max(1.0));
        Ok(())
    }
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
