//! 200 requests a second for a long time.

use super::memory::Samples;
use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Mock, Setup, finish_load, start_load};
use crate::process::print;

const PER_SECOND: &str = "200";

/// Asks at a steady pace, whatever the answers take.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let (mock, home) = (Mock::start(&["--delay-ms", "20"])?, house::scratch(run.dir)?);
    let gateway = GatewayProcess::start(&Setup {
        home: home.path(),
        program: house::conclave(),
        mock: &mock.addr,
        tables: "",
        second_tier: "never",
    })?;
    let seconds = run.seconds.to_string();
    let options = ["--concurrency", "64", "--rate", PER_SECOND, "--seconds", &seconds];
    let mut load = start_load(&gateway.addr, &gateway.key, &options)?;
    let samples = Samples::take(&gateway, &mut load)?;
    let load = finish_load(load)?;
    let (errors, rise, per_second) =
        (load.figure("errors"), samples.rise(), load.figure("per_second"));
    print(&format!(
        "{:.0} requests, {per_second:.0}/s, p50 {:.1} ms, p99 {:.1} ms, errors {errors:.0}; memory at most {:.0} MB, rising by \
         {rise:.1} MB",
        load.figure("requests"),
        load.figure("p50_ms"),
        load.figure("p99_ms"),
        samples.peak(),
    ));
    demand(&mut violations, errors == 0.0, || format!("{errors} requests failed"));
    demand(&mut violations, per_second >= 190.0, || format!("only {per_second:.0} a second"));
    demand(&mut violations, samples.are_flat(), || "memory rises".to_owned());
    demand(&mut violations, gateway.stop()?, || "it did not end well".to_owned());
    Ok(violations)
}
