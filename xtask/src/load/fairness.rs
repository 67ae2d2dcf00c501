//! Long texts of one key beside short requests of another.

use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Load, Mock, Setup, finish_load, load, start_load};
use crate::process::print;
use anyhow::Context;
use serde_json::json;

/// Clients of the loud key at once, and how long each of their texts is.
const LOUD: &str = "8";
const LONG_BYTES: &str = "2000000";
/// Short requests of the quiet key a second, and from how many clients.
const PER_SECOND: &str = "50";
const QUIET: &str = "16";
/// The quiet key's requests may take so many times as long as alone; all but one in twenty.
const SLOWER_MAX: f64 = 3.0;

/// Measures the quiet key alone, then beside the loud one.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    for second_tier in ["never", "unsure"] {
        violations.extend(measure(run, second_tier)?);
    }
    Ok(violations)
}

fn measure(run: &LoadRun<'_>, second_tier: &str) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let (mock, home) = (Mock::start(&["--delay-ms", "20"])?, house::scratch(run.dir)?);
    let gateway = GatewayProcess::start(&Setup {
        home: home.path(),
        program: house::conclave(),
        mock: &mock.addr,
        tables: "",
        second_tier,
    })?;
    let made = gateway.post("/v1/keys", &json!({"role": "app", "label": "quiet"}))?;
    let quiet = made["key"].as_str().context("the quiet key")?.to_owned();
    let seconds = (run.seconds / 3).max(4).to_string();
    let short = ["--concurrency", QUIET, "--rate", PER_SECOND, "--seconds", &seconds];
    // What is made at the first request is made before anything is measured.
    load(&gateway.addr, &quiet, &["--concurrency", QUIET, "--seconds", "1"])?;
    let alone = load(&gateway.addr, &quiet, &short)?;
    let long = ["--concurrency", LOUD, "--bytes", LONG_BYTES, "--seconds", &seconds];
    let loud = start_load(&gateway.addr, &gateway.key, &long)?;
    let beside = load(&gateway.addr, &quiet, &short)?;
    let loud = finish_load(loud)?;
    let figures = |load: &Load| {
        let (half, most) = (load.figure("p50_ms"), load.figure("p95_ms"));
        format!("p50 {half:.1} ms, p95 {most:.1} ms, {:.0} answered", load.figure("requests"))
    };
    let ratio = beside.figure("p95_ms") / alone.figure("p95_ms").max(0.1);
    print(&format!(
        "second tier {second_tier}: short requests alone {}; beside long texts {}: {ratio:.1} times; long texts {}, {:.0} refused",
        figures(&alone),
        figures(&beside),
        figures(&loud),
        loud.figure("refused"),
    ));
    demand(&mut violations, ratio <= SLOWER_MAX, || {
        format!("short requests take {ratio:.1} times as long beside long texts of another key")
    });
    let errors = alone.figure("errors") + beside.figure("errors");
    demand(&mut violations, errors == 0.0, || format!("{errors} short requests failed"));
    let lost = loud.figure("failed") + loud.figure("other");
    demand(&mut violations, lost == 0.0, || format!("{lost} long texts got no proper answer"));
    demand(&mut violations, loud.figure("requests") > 0.0, || "no long text was read".to_owned());
    demand(&mut violations, gateway.stop()?, || "it did not end well".to_owned());
    Ok(violations)
}
