//! `cargo xtask bench gateway`: what the gateway adds to a model, and what the disk allows.

use super::{against, disk, nginx};
use crate::house::{self, GatewayProcess, Load, Mock, Setup, load};
use crate::process::{cargo, print, run as run_program};
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// The number of clients that the asks below speak of.
pub(super) const ASKED_AT: usize = 16;
/// Starts of which the median counts.
const STARTS: usize = 5;
/// How long after another a token of the paced mock model leaves.
const EVENT_MS: &str = "5";
/// The builds without something, by their features.
const BARE: [(&str, &str); 3] = [
    ("no audit", "bare-ledger"),
    ("no checks", "bare-checks"),
    ("neither", "bare-checks,bare-ledger"),
];

/// What is measured, and how long.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(super) seconds: u32,
    /// Where the data directory is made; the disk is what is measured.
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// When the slower trained model is asked: never, unsure or always.
    #[arg(long, default_value = "never")]
    second_tier: String,
    /// Also measure builds without checks, without audit and without either, and nginx as a plain proxy: three
    /// more builds. `--bare neither` makes the last one alone, which is what nginx is compared with.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "all")]
    bare: Option<Bare>,
    /// Another build of the program, to be measured beside this one in turns; nothing else is measured then.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bare", "gate"])]
    against: Option<PathBuf>,
    /// Fail when what is asked of 16 clients is not reached.
    #[arg(long)]
    gate: bool,
}

/// Measures and prints tables.
pub fn run(args: &Args) -> anyhow::Result<()> {
    house::build()?;
    let mock = Mock::start(&[])?;
    if let Some(other) = &args.against {
        return against::run(args, other, &mock);
    }
    let home = house::scratch(args.dir.as_deref())?;
    let measured = main_table(args, home.path(), &mock)?;
    let streamed = streams(args)?;
    let started = starts(args, &mock)?;
    let proxied = match args.bare {
        Some(which) => bare(args, which, &mock)?,
        None => None,
    };
    let asks = asks(&measured, started).into_iter().chain(stream_asks(&streamed));
    judge(&asks.chain(proxied.map(proxy_ask)).collect::<Vec<_>>(), args.gate)
}

/// Which builds without something are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Bare {
    All,
    Neither,
}

/// What is asked, what it gave, and whether that is enough.
struct Ask {
    figure: String,
    asked: &'static str,
    holds: bool,
}

/// A stream of a paced model, one way or the other.
struct Streamed {
    name: &'static str,
    /// How many times as long as direct.
    times: f64,
    /// How long after its last byte from the model the first sentence comes.
    sentence_ms: f64,
}

/// What was measured with as many clients as the asks speak of.
struct Measured {
    per_second: f64,
    bound: f64,
    cpu_ms: f64,
    rss_mb: f64,
    /// Streams of a model that writes at once in which nothing came for 40 ms.
    stalls: f64,
}

pub(super) fn setup<'a>(args: &'a Args, home: &'a Path, mock: &'a Mock) -> Setup<'a> {
    Setup {
        home,
        program: house::conclave(),
        mock: &mock.addr,
        tables: "",
        second_tier: &args.second_tier,
    }
}

fn main_table(args: &Args, home: &Path, mock: &Mock) -> anyhow::Result<Measured> {
    let gateway = GatewayProcess::start(&setup(args, home, mock))?;
    heading();
    // Warm-up, so that the first line is not about page faults.
    load(&gateway.addr, &gateway.key, &["--concurrency", "16", "--seconds", "1"])?;
    let (mut asked, mut stalls) = (None, 0.0);
    for concurrency in CONCURRENCIES {
        for stream in [false, true] {
            let measured = compare(args, &gateway, mock, concurrency, stream, home)?;
            match (concurrency, stream) {
                (ASKED_AT, false) => asked = Some(measured),
                (ASKED_AT, true) => stalls = measured.stalls,
                _ => {}
            }
        }
    }
    let rss_mb = gateway.rss_mb()?;
    gateway.stop()?;
    match asked {
        Some(asked) => Ok(Measured { rss_mb, stalls, ..asked }),
        None => bail!("nothing was measured with {ASKED_AT} clients"),
    }
}

fn heading() {
    print(&format!(
        "{:<11} {:<7} {:<9} {:>8} {:>8} {:>8} {:>10} {:>7} {:>7}",
        "concurrency",
        "reply",
        "path",
        "req/s",
        "p50 ms",
        "p99 ms",
        "CPU-ms/req",
        "RSS MB",
        "errors"
    ));
}

fn row(concurrency: usize, stream: bool, path: &str, load: &Load, of_gateway: Option<(f64, f64)>) {
    let reply = if stream { "stream" } else { "whole" };
    let (cpu, rss) = of_gateway
        .map_or_else(Default::default, |(cpu, rss)| (format!("{cpu:.3}"), format!("{rss:.0}")));
    print(&format!(
        "{concurrency:<11} {reply:<7} {path:<9} {:>8.0} {:>8.2} {:>8.2} {cpu:>10} {rss:>7} {:>7.0}",
        load.figure("per_second"),
        load.figure("p50_ms"),
        load.figure("p99_ms"),
        load.figure("errors"),
    ));
}

pub(super) fn options(concurrency: usize, seconds: u32, stream: bool) -> [String; 6] {
    let yes = if stream { "yes" } else { "no" };
    ["--concurrency", &concurrency.to_string(), "--seconds", &seconds.to_string(), "--stream", yes]
        .map(str::to_owned)
}

pub(super) fn loaded(addr: &str, key: &str, options: &[String]) -> anyhow::Result<Load> {
    load(addr, key, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

fn compare(
    args: &Args,
    gateway: &GatewayProcess,
    mock: &Mock,
    concurrency: usize,
    stream: bool,
    disk: &Path,
) -> anyhow::Result<Measured> {
    let options = options(concurrency, args.seconds, stream);
    let direct = loaded(&mock.addr, "none", &options)?;
    let fsync = disk::fsync_time(disk)?;
    let before = gateway.cpu_ms()?;
    let through = loaded(&gateway.addr, &gateway.key, &options)?;
    let cpu_ms = (gateway.cpu_ms()? - before) / through.figure("requests").max(1.0);
    let rss_mb = gateway.rss_mb()?;
    row(concurrency, stream, "direct", &direct, None);
    row(concurrency, stream, "conclave", &through, Some((cpu_ms, rss_mb)));
    let (bound, per_second) = (disk::bound(concurrency, fsync), through.figure("per_second"));
    print(&format!(
        "{:>11} added p50 {:.2} ms, p99 {:.2} ms; fsync {:.2} ms; {:.0} % of the bound of {bound:.0} req/s; \
         stalls of 40 ms: {:.0}",
        "",
        through.figure("p50_ms") - direct.figure("p50_ms"),
        through.figure("p99_ms") - direct.figure("p99_ms"),
        fsync.as_secs_f64() * 1e3,
        100.0 * per_second / bound,
        through.figure("stalls"),
    ));
    Ok(Measured { per_second, bound, cpu_ms, rss_mb, stalls: through.figure("stalls") })
}

/// Streams from a model that writes at a pace: the whole stream, and the first sentence by windows.
fn streams(args: &Args) -> anyhow::Result<Vec<Streamed>> {
    let mut streamed = Vec::new();
    let mock = Mock::start(&["--event-ms", EVENT_MS])?;
    let seconds = args.seconds.to_string();
    let options =
        ["--concurrency", "4", "--seconds", &seconds, "--stream", "yes", "--sentence", "yes"];
    let direct = load(&mock.addr, "none", &options)?;
    print(&format!("\nstreams of a model that writes a token every {EVENT_MS} ms, 4 clients"));
    for (name, tables) in [("buffered", ""), ("windowed", "[policy]\nstream = \"windowed\"\n")] {
        let home = house::scratch(args.dir.as_deref())?;
        let gateway = GatewayProcess::start(&Setup { tables, ..setup(args, home.path(), &mock) })?;
        load(
            &gateway.addr,
            &gateway.key,
            &["--concurrency", "4", "--seconds", "1", "--stream", "yes"],
        )?;
        let through = load(&gateway.addr, &gateway.key, &options)?;
        gateway.stop()?;
        let times = through.figure("p50_ms") / direct.figure("p50_ms").max(0.001);
        let sentence = through.figure("sentence_p50_ms") - direct.figure("sentence_p50_ms");
        streamed.push(Streamed { name, times, sentence_ms: sentence });
        print(&format!(
            "{name}: the whole stream takes {times:.2} times as long as direct; the first sentence comes \
             {sentence:.2} ms (p50) after its last byte from the model; errors {:.0}",
            through.figure("errors"),
        ));
    }
    Ok(streamed)
}

/// From the start of the program until it is ready, on a directory that is there: the median.
fn starts(args: &Args, mock: &Mock) -> anyhow::Result<Duration> {
    let home = house::scratch(args.dir.as_deref())?;
    let first = GatewayProcess::start(&setup(args, home.path(), mock))?;
    let first_after = first.ready_after;
    let idle = first.rss_mb()?;
    first.stop()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let gateway = GatewayProcess::start(&setup(args, home.path(), mock))?;
        times.push(gateway.ready_after);
        gateway.stop()?;
    }
    times.sort_unstable();
    let median = times.get(STARTS / 2).copied().unwrap_or_default();
    print(&format!(
        "\nready {:.2} s after the very first start, {:.2} s after a later one (median of {STARTS}); \
         {idle:.0} MB before the first request",
        first_after.as_secs_f64(),
        median.as_secs_f64(),
    ));
    Ok(median)
}

/// Builds without something, and a plain proxy beside them: how many times as much the proxy gives as the
/// build with neither, where there is one.
fn bare(args: &Args, which: Bare, mock: &Mock) -> anyhow::Result<Option<f64>> {
    print("\nwhat checks and audit cost: builds for this purpose alone");
    heading();
    let options = options(ASKED_AT, args.seconds, false);
    let mut barest = 0.0;
    let skipped = if which == Bare::Neither { BARE.len() - 1 } else { 0 };
    for (name, features) in BARE.into_iter().skip(skipped) {
        let program = build_bare(features)?;
        let home = house::scratch(args.dir.as_deref())?;
        let gateway = GatewayProcess::start(&Setup { program, ..setup(args, home.path(), mock) })?;
        load(&gateway.addr, &gateway.key, &["--concurrency", "16", "--seconds", "1"])?;
        let before = gateway.cpu_ms()?;
        let through = loaded(&gateway.addr, &gateway.key, &options)?;
        let cpu_ms = (gateway.cpu_ms()? - before) / through.figure("requests").max(1.0);
        row(ASKED_AT, false, name, &through, Some((cpu_ms, gateway.rss_mb()?)));
        barest = through.figure("per_second");
        gateway.stop()?;
    }
    let Some(proxy) = nginx::start(&mock.addr, args.dir.as_deref())? else {
        print("nginx is not installed and could not be: skipped");
        return Ok(None);
    };
    let proxied = loaded(&proxy.addr, "none", &options)?;
    row(ASKED_AT, false, "nginx", &proxied, None);
    Ok(Some(proxied.figure("per_second") / barest.max(0.001)))
}

/// Builds the gateway with features, and puts it aside.
fn build_bare(features: &str) -> anyhow::Result<PathBuf> {
    let place = house::target().join("bare");
    let args = ["build", "--release", "--quiet", "-p", "conclave", "--bin", "conclave"];
    let mut command = cargo();
    command.args(args).args(["--features", features]).arg("--target-dir").arg(&place);
    run_program(&format!("building with {features}"), &mut command)?;
    Ok(place.join("release/conclave"))
}

/// What is asked of whole replies, memory and the start.
fn asks(measured: &Measured, started: Duration) -> Vec<Ask> {
    let share = 100.0 * measured.per_second / measured.bound;
    vec![
        Ask {
            figure: format!("{:.0} req/s, {share:.0} % of the bound", measured.per_second),
            asked: ">= 3,500 req/s or >= 65 % of the bound",
            holds: measured.per_second >= 3_500.0 || share >= 65.0,
        },
        Ask {
            figure: format!("{:.3} CPU-ms a request", measured.cpu_ms),
            asked: "<= 0.20",
            holds: measured.cpu_ms <= 0.20,
        },
        Ask {
            figure: format!("{:.0} MB resident after it all", measured.rss_mb),
            asked: "<= 60",
            holds: measured.rss_mb <= 60.0,
        },
        Ask {
            figure: format!("{:.0} stalls of 40 ms in streams", measured.stalls),
            asked: "none",
            holds: measured.stalls == 0.0,
        },
        Ask {
            figure: format!("{:.2} s to start", started.as_secs_f64()),
            asked: "<= 0.3",
            holds: started <= Duration::from_millis(300),
        },
    ]
}

/// What is asked of streams.
fn stream_asks(streamed: &[Streamed]) -> Vec<Ask> {
    let whole = streamed.iter().map(|one| Ask {
        figure: format!("{}: {:.2} times as long as direct", one.name, one.times),
        asked: "<= 1.5",
        holds: one.times <= 1.5,
    });
    // Buffered, a sentence waits for the whole reply; that is what it is for.
    let prompt = streamed.iter().filter(|one| one.name == "windowed").map(|one| Ask {
        figure: format!("{:.2} ms until the first sentence", one.sentence_ms),
        asked: "<= 2 ms after its last byte",
        holds: one.sentence_ms <= 2.0,
    });
    whole.chain(prompt).collect()
}

/// What is asked of a build that neither checks nor records.
fn proxy_ask(times: f64) -> Ask {
    Ask {
        figure: format!("nginx gives {times:.2} times as much as neither"),
        asked: "<= 4",
        holds: times <= 4.0,
    }
}

fn judge(asks: &[Ask], gate: bool) -> anyhow::Result<()> {
    print(&format!("\nasked of {ASKED_AT} clients, and of streams"));
    for Ask { figure, asked, holds } in asks {
        let holds = if *holds { "yes" } else { "NO" };
        print(&format!("{figure:<42} {asked:<40} {holds}"));
    }
    if gate && asks.iter().any(|ask| !ask.holds) {
        bail!("not everything that is asked was reached");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_drag_or_wait_are_not_enough() {
        let fine = || Streamed { name: "windowed", times: 1.1, sentence_ms: 1.0 };
        let holds = |one: Streamed| stream_asks(&[one]).iter().all(|ask| ask.holds);
        assert!(holds(fine()));
        assert!(!holds(Streamed { times: 1.6, ..fine() }));
        assert!(!holds(Streamed { sentence_ms: 2.1, ..fine() }));
        assert!(holds(Streamed { name: "buffered", sentence_ms: 200.0, ..fine() }));
        assert!(proxy_ask(3.9).holds && !proxy_ask(4.1).holds);
    }
}
