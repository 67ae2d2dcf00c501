//! Ten times what it can take.
//!
//! A model that takes its time and a limit of turns make a capacity that is known; ten times as much is offered, at a
//! pace that does not wait for answers.

use super::{LoadRun, Violations, demand};
use crate::house::{self, GatewayProcess, Mock, Setup, load};
use crate::process::print;

/// Turns at once.
const TURNS: u32 = 32;
/// How long the model takes.
const DELAY_MS: &str = "100";
/// How many times the peak is offered.
const TIMES: f64 = 10.0;
/// The share of the peak that must still be given.
const GOODPUT_MIN: f64 = 0.9;
/// Refusals may take so long, in milliseconds; all but one in a hundred.
const REFUSED_MS_MAX: f64 = 50.0;

/// Turns that are answered may take so many times as long as at the peak; all but one in a hundred.
const SLOWER_MAX: f64 = 3.0;

/// Finds the peak, then offers ten times as much.
pub fn run(run: &LoadRun<'_>) -> anyhow::Result<Violations> {
    let mut violations = Violations::new();
    let (mock, home) = (Mock::start(&["--delay-ms", DELAY_MS])?, house::scratch(run.dir)?);
    let gateway = GatewayProcess::start(&Setup {
        home: home.path(),
        program: house::conclave(),
        mock: &mock.addr,
        tables: &format!("[limits]\nturns_max = {TURNS}\n"),
        second_tier: "never",
    })?;
    let (addr, key) = (&gateway.addr, &gateway.key);
    let short = (run.seconds / 3).max(2).to_string();
    let at_once = TURNS.to_string();
    let peak = load(addr, key, &["--concurrency", &at_once, "--seconds", &short])?;
    let calm_p99 = peak.figure("p99_ms");
    let peak = peak.figure("per_second");
    let (rate, long) = ((peak * TIMES).to_string(), run.seconds.to_string());
    let offered = load(addr, key, &["--concurrency", "400", "--rate", &rate, "--seconds", &long])?;
    let (goodput, refused_p99) = (offered.figure("per_second"), offered.figure("refused_p99_ms"));
    let p99 = offered.figure("p99_ms");
    print(&format!(
        "peak {peak:.0}/s; offered {:.0}/s: {goodput:.0}/s answered ({:.0} % of the peak), {:.0} refused in p50 {:.1} ms, p99 \
         {refused_p99:.1} ms, without an answer {:.0}, other answers {:.0}; answered in p99 {p99:.0} ms, at the peak {calm_p99:.0} ms",
        peak * TIMES,
        100.0 * goodput / peak.max(1.0),
        offered.figure("refused"),
        offered.figure("refused_p50_ms"),
        offered.figure("failed"),
        offered.figure("other"),
    ));
    let enough = goodput >= GOODPUT_MIN * peak;
    demand(&mut violations, enough, || format!("only {goodput:.0}/s of {peak:.0}/s"));
    let overloaded = offered.figure("refused") > offered.figure("requests");
    demand(&mut violations, overloaded, || "it was not overloaded".to_owned());
    let at_once = refused_p99 < REFUSED_MS_MAX;
    demand(&mut violations, at_once, || format!("refusals take {refused_p99:.0} ms"));
    let slow = p99 > SLOWER_MAX * calm_p99;
    demand(&mut violations, !slow, || format!("answers take {p99:.0} ms, not {calm_p99:.0} ms"));
    let lost = offered.figure("failed") + offered.figure("other");
    demand(&mut violations, lost == 0.0, || format!("{lost} requests got no proper answer"));
    demand(&mut violations, gateway.stop()?, || "it did not end well".to_owned());
    Ok(violations)
}
