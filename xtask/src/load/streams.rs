//! 1,000 streams at once.

use super::memory::Samples;
use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Mock, Setup, finish_load, start_load};
use crate::process::print;

const STREAMS: &str = "1000";
/// How long after another a token of the model leaves: a stream takes some two seconds.
const EVENT_MS: &str = "200";

/// Streams, buffered and by windows, each for half of the time.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let mock = Mock::start(&["--event-ms", EVENT_MS])?;
    for (name, tables) in [("buffered", ""), ("windowed", "[policy]\nstream = \"windowed\"\n")] {
        let home = house::scratch(run.dir)?;
        let gateway = GatewayProcess::start(&Setup {
            home: home.path(),
            program: house::conclave(),
            mock: &mock.addr,
            tables,
            second_tier: "never",
        })?;
        let seconds = (run.seconds / 2).max(3).to_string();
        let options = ["--concurrency", STREAMS, "--seconds", &seconds, "--stream", "yes"];
        let mut load = start_load(&gateway.addr, &gateway.key, &options)?;
        let samples = Samples::take(&gateway, &mut load)?;
        let load = finish_load(load)?;
        let (errors, rise) = (load.figure("errors"), samples.rise());
        print(&format!(
            "{name}: {:.0} streams, {:.0}/s, p50 {:.0} ms, p99 {:.0} ms, errors {errors:.0}; memory at most {:.0} MB, \
             rising by {rise:.1} MB",
            load.figure("requests"),
            load.figure("per_second"),
            load.figure("p50_ms"),
            load.figure("p99_ms"),
            samples.peak(),
        ));
        demand(&mut violations, errors == 0.0, || format!("{name}: {errors} streams failed"));
        demand(&mut violations, samples.are_flat(), || format!("{name}: memory rises"));
        demand(&mut violations, gateway.stop()?, || format!("{name}: it did not end well"));
    }
    Ok(violations)
}
