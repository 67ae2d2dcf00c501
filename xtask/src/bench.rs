//! `cargo xtask bench gateway`: what the gateway adds to a model, and what the disk allows.

use crate::process::{Running, cargo, print, root, run};
use crate::setup;
use anyhow::{Context, bail};
use conclave_testkit::Cluster;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// Bytes of a typical ledger entry.
const ENTRY_BYTES: usize = 2048;
const REPLY: &str = "That sounds like a hard evening after an unfair day. What part of it stays \
    with you the most?";

/// Measures and prints a table.
pub fn gateway(seconds: u32, dir: Option<&Path>, second_tier: &str) -> anyhow::Result<()> {
    build()?;
    let data = match dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir_in(root().join("target"))?,
    };
    let (_mock, mock_addr) = start_mock()?;
    let gateway = start_gateway(data.path(), &mock_addr, second_tier)?;
    print(&format!(
        "{:<11} {:<8} {:>9} {:>9} {:>9} {:>11} {:>8} {:>7}",
        "concurrency", "path", "req/s", "p50 ms", "p99 ms", "CPU-ms/req", "RSS MB", "errors"
    ));
    // Warm-up, so that the first line is not about page faults.
    load(&gateway.addr, &gateway.key, 16, 1.0)?;
    for concurrency in CONCURRENCIES {
        measure(&gateway, &mock_addr, concurrency, seconds, data.path())?;
    }
    Ok(())
}

/// Measures the ledger on both databases and prints one line a figure.
pub fn ledger(entries: u64, dir: &Path) -> anyhow::Result<()> {
    let args = ["build", "--release", "--quiet", "-p", "conclave", "--bin", "conclave"];
    run("building", cargo().args(args))?;
    setup::postgres()?;
    let cluster = Cluster::start().context("PostgreSQL")?;
    let url = cluster.fresh().context("PostgreSQL")?;
    let entries = entries.to_string();
    let mut bench = Command::new(root().join("target/release/conclave"));
    bench.args(["bench", "ledger", "--entries", &entries, "--database", &url, "--dir"]).arg(dir);
    run("measuring", &mut bench)
}

fn build() -> anyhow::Result<()> {
    let args = ["build", "--release", "--quiet", "-p", "conclave", "--bin", "conclave"];
    run("building", cargo().args(args))?;
    let args = ["build", "--release", "--quiet", "-p", "conclave-testkit", "--examples"];
    run("building the mock model and the load generator", cargo().args(args))
}

struct Gateway {
    process: Running,
    addr: String,
    key: String,
}

fn measure(
    gateway: &Gateway,
    mock: &str,
    concurrency: usize,
    seconds: u32,
    data: &Path,
) -> anyhow::Result<()> {
    let direct = load(mock, "none", concurrency, f64::from(seconds))?;
    let fsync = fsync_time(data)?;
    let before = cpu_ms(&gateway.process)?;
    let through = load(&gateway.addr, &gateway.key, concurrency, f64::from(seconds))?;
    let cpu = (cpu_ms(&gateway.process)? - before) / through.requests.max(1.0);
    let rss = rss_mb(&gateway.process)?;
    row(concurrency, "direct", &direct, "", "");
    row(concurrency, "conclave", &through, &format!("{cpu:.3}"), &format!("{rss:.0}"));
    #[expect(clippy::cast_precision_loss, reason = "at most 64")]
    let bound = concurrency as f64 / (1.5 * fsync.as_secs_f64() + 0.0008);
    print(&format!(
        "{:>11} added p50 {:.2} ms, p99 {:.2} ms; fsync {:.2} ms ({:.0}/s); {:.0} % of the bound of {bound:.0} req/s",
        "",
        through.p50_ms - direct.p50_ms,
        through.p99_ms - direct.p99_ms,
        fsync.as_secs_f64() * 1e3,
        1.0 / fsync.as_secs_f64(),
        100.0 * through.per_second / bound,
    ));
    Ok(())
}

fn row(concurrency: usize, path: &str, load: &Load, cpu: &str, rss: &str) {
    print(&format!(
        "{concurrency:<11} {path:<8} {:>9.0} {:>9.2} {:>9.2} {cpu:>11} {rss:>8} {:>7}",
        load.per_second, load.p50_ms, load.p99_ms, load.errors
    ));
}

/// The mock model's process and address.
fn start_mock() -> anyhow::Result<(Running, String)> {
    let addr = free_addr()?;
    let mut command = Command::new(example("mock-model"));
    command.args(["--listen", &addr, "--text", REPLY]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let running = Running(child);
    wait_for(&addr)?;
    Ok((running, addr))
}

fn start_gateway(data: &Path, mock: &str, second_tier: &str) -> anyhow::Result<Gateway> {
    let config = data.join("conclave.toml");
    fs::write(
        &config,
        format!(
            "[detection]\nsecond_tier = \"{second_tier}\"\n\n[[providers]]\nname = \"mock\"\nbase_url = \"http://{mock}/v1\"\n\n\
             [[models]]\nname = \"mock\"\nprovider = \"mock\"\n"
        ),
    )?;
    let mut command = Command::new(root().join("target/release/conclave"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
    command.arg("--data").arg(data.join("data")).stderr(Stdio::piped());
    let mut running = Running(command.spawn().context("starting the gateway")?);
    let stderr = running.0.stderr.take().context("the gateway's stderr")?;
    let (mut addr, mut key) = (None, None);
    let mut lines = BufReader::new(stderr).lines();
    while addr.is_none() || key.is_none() {
        let Some(line) = lines.next() else { bail!("the gateway ended before it was ready") };
        let line = line?;
        let words = || line.split([' ', '"', '=']);
        key = key.or(words().find(|word| word.starts_with("ck_")).map(str::to_owned));
        let url = words().find_map(|word| word.strip_prefix("http://127.0.0.1:"));
        if let Some(port) = url {
            let port: String = port.chars().take_while(char::is_ascii_digit).collect();
            addr = addr.or(Some(format!("127.0.0.1:{port}")));
        }
    }
    // Keep reading, so that a full pipe never blocks the gateway.
    std::thread::spawn(move || lines.for_each(drop));
    let (addr, key) = (addr.unwrap_or_default(), key.unwrap_or_default());
    Ok(Gateway { process: running, addr, key })
}

struct Load {
    requests: f64,
    errors: f64,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn load(addr: &str, key: &str, concurrency: usize, seconds: f64) -> anyhow::Result<Load> {
    let output = Command::new(example("load"))
        .args([addr, key, &concurrency.to_string(), &seconds.to_string()])
        .output()?;
    if !output.status.success() {
        bail!("the load generator failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| json[name].as_f64().unwrap_or_default();
    Ok(Load {
        requests: number("requests"),
        errors: number("errors"),
        per_second: number("per_second"),
        p50_ms: number("p50_ms"),
        p99_ms: number("p99_ms"),
    })
}

/// How long one small write and `fdatasync` take on the disk in question.
fn fsync_time(dir: &Path) -> anyhow::Result<Duration> {
    let mut file = File::create(dir.join("fsync-probe"))?;
    file.write_all(&vec![0; 1 << 20])?;
    file.sync_all()?;
    let (started, mut rounds) = (Instant::now(), 0);
    use std::os::unix::fs::FileExt;
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&[7; ENTRY_BYTES], u64::from(rounds % 400) * 2048)?;
        file.sync_data()?;
        rounds += 1;
    }
    Ok(started.elapsed() / rounds.max(1))
}

/// User and system time of a process so far.
fn cpu_ms(process: &Running) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.0.id()))?;
    let after_name = stat.rsplit_once(')').context("a stat line")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    // Linux counts these in hundredths of a second.
    Ok((ticks(11) + ticks(12)) * 10.0)
}

fn rss_mb(process: &Running) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context("VmRSS")? / 1024.0)
}

fn example(name: &str) -> PathBuf {
    root().join("target/release/examples").join(name)
}

fn free_addr() -> anyhow::Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn wait_for(addr: &str) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if std::net::TcpStream::connect(addr).is_ok() {
            return Ok(());
        }
        std::thread::yield_now();
    }
    bail!("nothing listens on {addr}")
}
