//! Asked to stop under load.

use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Mock, Setup, finish_load, pause, start_load};
use crate::process::print;
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Stops in the middle of it, verifies the ledger, and looks every acknowledged decision up.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let (mock, home) = (Mock::start(&["--delay-ms", "30"])?, house::scratch(run.dir)?);
    let setup = Setup {
        home: home.path(),
        program: house::conclave(),
        mock: &mock.addr,
        tables: "",
        second_tier: "never",
    };
    let gateway = GatewayProcess::start(&setup)?;
    let (ids, seconds) = (home.path().join("ids"), run.seconds.to_string());
    let written = ids.display().to_string();
    let options = ["--concurrency", "64", "--seconds", &seconds, "--ids", &written];
    let load = start_load(&gateway.addr, &gateway.key, &options)?;
    pause(Duration::from_secs(u64::from(run.seconds / 2)));
    let asked = Instant::now();
    demand(&mut violations, gateway.stop()?, || "it did not end well".to_owned());
    let stopped_after = asked.elapsed();
    let load = finish_load(load)?;
    let acknowledged = acknowledged(&ids)?;
    let verified = verify(home.path())?;
    demand(&mut violations, verified, || "the ledger does not verify".to_owned());
    let gateway = GatewayProcess::start(&setup)?;
    let found = decisions(&gateway)?;
    let lost = acknowledged.difference(&found).count();
    gateway.stop()?;
    print(&format!(
        "stopped {:.1} s after it was asked; {} replies acknowledged, {} decisions on record, lost {lost}; cut off {:.0} of 64 \
         clients at the end",
        stopped_after.as_secs_f64(),
        acknowledged.len(),
        found.len(),
        load.figure("failed").min(64.0),
    ));
    demand(&mut violations, !acknowledged.is_empty(), || "nothing was acknowledged".to_owned());
    demand(&mut violations, lost == 0, || format!("{lost} acknowledged decisions are lost"));
    Ok(violations)
}

/// The ids that clients were told.
pub fn acknowledged(file: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(file).context("the acknowledged ids")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The id of every decision that a gateway knows.
pub fn decisions(gateway: &GatewayProcess) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut page = "/v1/decisions?limit=500".to_owned();
    loop {
        let list = gateway.get(&page)?;
        let rows = list["data"].as_array().context("a list of decisions")?;
        found.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
        let Some(next) = list["next_before"].as_str() else { return Ok(found) };
        page = format!("/v1/decisions?limit=500&before={next}");
    }
}

fn verify(home: &Path) -> anyhow::Result<bool> {
    let mut command = Command::new(house::conclave());
    command.args(["--json", "ledger", "verify", "--data"]).arg(home.join("data"));
    Ok(command.output()?.status.success())
}
