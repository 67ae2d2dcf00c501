//! Three replicas on one PostgreSQL, one of them killed again and again.

use super::stop::{acknowledged, decisions};
use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Load, Mock, Setup, finish_load, pause, start_load};
use crate::process::{Running, print};
use crate::setup;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const REPLICAS: usize = 3;
/// How often one of them is killed; in a short run, a quarter of it.
const KILL_EVERY: Duration = Duration::from_secs(20);
/// Requests a second at all of them together.
const PER_SECOND: u32 = 60;
/// What one reply costs: 10 tokens in and 24 out, at a hundred dollars a million.
const REPLY_MICRO_USD: f64 = 3_400.0;
/// How long the database may take for what was produced.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills replicas under load; then counts what is on record and what was spent.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    setup::postgres()?;
    let (database, url) = Database::start()?;
    let (mock, home) = (Mock::start(&["--delay-ms", "20"])?, house::scratch(run.dir)?);
    // The budget is enough for two thirds of what will be asked.
    let budget_usd = f64::from(run.seconds * PER_SECOND) * REPLY_MICRO_USD / 1e6 * 2.0 / 3.0;
    // What a turn sets aside is many times what it costs, so that it is kept small: one attempt, few tokens.
    let tables = format!(
        "output_tokens_max = 40\n\n[deliberation]\nattempts_max = 1\n\n[storage]\ndatabase = \"{url}\"\n\n\
         [tenants.default.policy]\ndaily_budget_usd = {budget_usd:.2}\n"
    );
    let start = |number: usize| {
        let place = home.path().join(number.to_string());
        std::fs::create_dir_all(&place)?;
        if number > 0 {
            share_secrets(&home.path().join("0"), &place)?;
        }
        let (program, mock) = (house::conclave(), mock.addr.as_str());
        GatewayProcess::start(&Setup {
            home: &place,
            program,
            mock,
            tables: &tables,
            second_tier: "never",
        })
    };
    let mut replicas = (0..REPLICAS).map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let (loads, kills) = kill_under_load(run, home.path(), &mut replicas, &start)?;
    let mut violations = judge(&replicas, home.path(), &loads, kills, budget_usd)?;
    for replica in replicas {
        demand(&mut violations, replica.stop()?, || "a replica did not end well".to_owned());
    }
    drop(database);
    Ok(violations)
}

/// Each replica has clients of its own, who try again where it was killed.
fn kill_under_load(
    run: &LoadRun<'_>,
    home: &Path,
    replicas: &mut [GatewayProcess],
    start: &impl Fn(usize) -> anyhow::Result<GatewayProcess>,
) -> anyhow::Result<(Vec<Load>, u32)> {
    let end = Instant::now() + Duration::from_secs(u64::from(run.seconds));
    let every = KILL_EVERY.min(Duration::from_secs(u64::from(run.seconds)) / 4);
    let (mut kills, mut loads, mut round) = (0, Vec::new(), 0);
    while Instant::now() < end {
        // The generator is started anew after each kill, because the replica has another address.
        let left = end.saturating_duration_since(Instant::now()).min(every);
        let running = loads_for(home, replicas, left, round)?;
        pause(left.mul_f32(0.7));
        let victim = round % REPLICAS;
        let _ = replicas[victim].process.0.kill();
        let _ = replicas[victim].process.0.wait();
        kills += 1;
        replicas[victim] = start(victim)?;
        for load in running {
            loads.push(finish_load(load)?);
        }
        round += 1;
    }
    Ok((loads, kills))
}

fn loads_for(
    home: &Path,
    replicas: &[GatewayProcess],
    time: Duration,
    round: usize,
) -> anyhow::Result<Vec<Running>> {
    let rate = (PER_SECOND / u32::try_from(REPLICAS)?).to_string();
    let seconds = time.as_secs_f64().max(0.5).to_string();
    let each = replicas.iter().enumerate().map(|(number, replica)| {
        let ids = home.join(format!("ids-{round}-{number}")).display().to_string();
        let options =
            ["--concurrency", "10", "--rate", &rate, "--seconds", &seconds, "--ids", &ids];
        start_load(&replica.addr, &replica.key, &options)
    });
    each.collect()
}

fn judge(
    replicas: &[GatewayProcess],
    home: &Path,
    loads: &[Load],
    kills: u32,
    budget_usd: f64,
) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let mut told = BTreeSet::new();
    for entry in std::fs::read_dir(home)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ids-")) {
            told.extend(acknowledged(&path)?);
        }
    }
    let first = replicas.first().context("a replica")?;
    let end = Instant::now() + PATIENCE;
    let mut lost = usize::MAX;
    // Every replica hands its spool over when it is back; the database is asked until all is there.
    while lost > 0 && Instant::now() < end {
        lost = told.difference(&decisions(first)?).count();
        pause(Duration::from_millis(500));
    }
    let answered: f64 = loads.iter().map(|load| load.figure("requests")).sum();
    let refused: f64 = loads.iter().map(|load| load.figure("refused")).sum();
    let other: f64 = loads.iter().map(|load| load.figure("other")).sum();
    // Also what was paid for replies that a kill kept from their clients.
    let spent_usd = spent_usd(first)?;
    print(&format!(
        "{kills} kills; {answered:.0} replies, {refused:.0} refused for the budget, other answers {other:.0}; lost {lost}; spent {spent_usd:.2} \
         of {budget_usd:.2} USD"
    ));
    demand(&mut violations, kills > 0 && answered > 0.0, || "nothing happened".to_owned());
    demand(&mut violations, lost == 0, || format!("{lost} acknowledged decisions are lost"));
    demand(&mut violations, spent_usd <= budget_usd, || "the budget was overdrawn".to_owned());
    let paid_for = answered * REPLY_MICRO_USD / 1e6;
    let counted = spent_usd + 0.000_001 >= paid_for;
    demand(&mut violations, counted, || {
        format!("only {spent_usd:.2} of {paid_for:.2} USD counted")
    });
    demand(&mut violations, other == 0.0, || format!("{other} answers were neither"));
    Ok(violations)
}

/// What all turns on record cost.
fn spent_usd(replica: &GatewayProcess) -> anyhow::Result<f64> {
    let usage = replica.get("/v1/usage?by=")?;
    Ok(usage["cost_microusd"].as_f64().context("what was spent")? / 1e6)
}

/// A further replica has the secrets of the first.
fn share_secrets(first: &Path, other: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(other.join("data"))?;
    for file in ["data/pepper", "data/ledger.key", "data/root.key", "owner-key"] {
        if !other.join(file).exists() {
            std::fs::copy(first.join(file), other.join(file))
                .with_context(|| format!("the secret {file}"))?;
        }
    }
    Ok(())
}

/// A PostgreSQL of our own, which ends when its standard input is closed.
struct Database(Child);

impl Database {
    fn start() -> anyhow::Result<(Self, String)> {
        let mut command = Command::new(house::example("cluster"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the database's address")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        let database = Self(child);
        if url.trim().is_empty() {
            bail!("PostgreSQL did not start");
        }
        Ok((database, url.trim().to_owned()))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
