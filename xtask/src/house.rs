//! The real programs on loopback: a mock model, a gateway before it, a load generator, and what the kernel says of
//! them.
//!
//! **Invariant:** everything that is started here ends with us, and listens on loopback alone.

use crate::process::{Running, cargo, root, run};
use anyhow::{Context, bail};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the mock model says: two sentences, the first with a full stop.
const REPLY: &str = "That sounds like a hard evening after an unfair day. What part of it stays \
    with you the most?";
/// How long a program may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A place for data directories: the disk in question, or the one that is built on.
pub fn scratch(dir: Option<&Path>) -> anyhow::Result<tempfile::TempDir> {
    Ok(tempfile::tempdir_in(dir.map_or_else(target, PathBuf::from))?)
}

/// The gateway as it is shipped.
pub fn conclave() -> PathBuf {
    target().join("release/conclave")
}

/// Builds the gateway and what loads it.
pub fn build() -> anyhow::Result<()> {
    let args = ["build", "--release", "--quiet", "-p", "conclave", "--bin", "conclave"];
    run("building", cargo().args(args))?;
    let args = ["build", "--release", "--quiet", "-p", "conclave-testkit", "--examples"];
    run("building the mock model and the load generator", cargo().args(args))
}

/// A program of the test kit.
pub fn example(name: &str) -> PathBuf {
    target().join("release/examples").join(name)
}

/// An address nobody listens on.
pub fn free_addr() -> anyhow::Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Waits until somebody listens.
pub fn wait_for(addr: &str) -> anyhow::Result<()> {
    let end = Instant::now() + READY_WITHIN;
    while Instant::now() < end {
        if TcpStream::connect(addr).is_ok() {
            return Ok(());
        }
        pause(Duration::from_millis(2));
    }
    bail!("nothing listens on {addr}")
}

/// Waits a while, as a person who measures does.
pub fn pause(time: Duration) {
    // Nobody sends anything: the time runs out.
    let (never, wait) = std::sync::mpsc::channel::<()>();
    let _ = wait.recv_timeout(time);
    drop(never);
}

/// A mock model.
pub struct Mock {
    _process: Running,
    pub addr: String,
}

impl Mock {
    /// Starts one; `options` are those of the program.
    pub fn start(options: &[&str]) -> anyhow::Result<Self> {
        let addr = free_addr()?;
        let mut command = Command::new(example("mock-model"));
        command.args(["--listen", &addr, "--text", REPLY]).args(options);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let process = Running(child);
        wait_for(&addr)?;
        Ok(Self { _process: process, addr })
    }
}

/// How a gateway is set up.
pub struct Setup<'a> {
    /// Where its configuration and data are kept.
    pub home: &'a Path,
    /// The program.
    pub program: PathBuf,
    /// Where the mock model is.
    pub mock: &'a str,
    /// Further lines of its configuration: of the model, then tables.
    pub tables: &'a str,
    /// When the slower trained model is asked.
    pub second_tier: &'a str,
}

/// A running gateway.
pub struct GatewayProcess {
    pub process: Running,
    pub addr: String,
    pub key: String,
    /// From its start until it said that it is ready.
    pub ready_after: Duration,
}

impl GatewayProcess {
    /// Starts one and waits until it is ready.
    pub fn start(setup: &Setup<'_>) -> anyhow::Result<Self> {
        let config = setup.home.join("conclave.toml");
        let Setup { mock, tables, second_tier, .. } = setup;
        fs::write(
            &config,
            format!(
                "[detection]\nsecond_tier = \"{second_tier}\"\n\n\
                 [[providers]]\nname = \"mock\"\nbase_url = \"http://{mock}/v1\"\n\n\
                 [[models]]\nname = \"mock\"\nprovider = \"mock\"\n\
                 input_usd_per_million = 100\noutput_usd_per_million = 100\n\n{tables}"
            ),
        )?;
        let mut command = Command::new(&setup.program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
        command.arg("--data").arg(setup.home.join("data")).stderr(Stdio::piped());
        let started = Instant::now();
        let mut process = Running(command.spawn().context("starting the gateway")?);
        let stderr = process.0.stderr.take().context("the gateway's stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let (addr, key) = announced(&mut lines)?;
        let ready_after = started.elapsed();
        // Keep reading, so that a full pipe never blocks the gateway.
        std::thread::spawn(move || lines.for_each(drop));
        let kept = setup.home.join("owner-key");
        let key = match key {
            Some(key) => {
                fs::write(&kept, &key)?;
                key
            }
            None => fs::read_to_string(&kept).context("the key of an earlier start")?,
        };
        Ok(Self { process, addr, key, ready_after })
    }

    /// User and system time so far.
    pub fn cpu_ms(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.0.id()))?;
        let after_name = stat.rsplit_once(')').context("a stat line")?.1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
        // Linux counts these in hundredths of a second.
        Ok((ticks(11) + ticks(12)) * 10.0)
    }

    /// Resident memory.
    pub fn rss_mb(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kilobytes.context("VmRSS")? / 1024.0)
    }

    /// Asks it to stop, and waits until it has; whether it ended well.
    pub fn stop(mut self) -> anyhow::Result<bool> {
        let pid = self.process.0.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().context("kill")?;
        Ok(self.process.0.wait()?.success())
    }

    /// The JSON at a path.
    pub fn get(&self, path: &str) -> anyhow::Result<serde_json::Value> {
        self.ask("GET", path, "")
    }

    /// What JSON that is sent to a path is answered with.
    pub fn post(&self, path: &str, body: &serde_json::Value) -> anyhow::Result<serde_json::Value> {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<serde_json::Value> {
        let mut stream = TcpStream::connect(&self.addr)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.addr,
            self.key,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        if !head.starts_with("HTTP/1.1 20") {
            bail!("{path}: {body}");
        }
        serde_json::from_str(body).with_context(|| path.to_owned())
    }
}

/// The address, and the key where it is the first start.
fn announced(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> anyhow::Result<(String, Option<String>)> {
    let (mut key, mut said) = (None, String::new());
    for line in lines {
        let line = line?;
        let words = || line.split([' ', '"', '=']);
        key = key.or(words().find(|word| word.starts_with("ck_")).map(str::to_owned));
        let url = words().find_map(|word| word.strip_prefix("http://127.0.0.1:"));
        if let Some(port) = url {
            let port: String = port.chars().take_while(char::is_ascii_digit).collect();
            return Ok((format!("127.0.0.1:{port}"), key));
        }
        said.push_str(&line);
        said.push('\n');
    }
    bail!("the gateway ended before it was ready:\n{said}")
}

/// What the load generator counted.
pub struct Load(serde_json::Value);

impl Load {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_default()
    }
}

/// Starts the load generator; `options` are those of the program.
pub fn start_load(addrs: &str, key: &str, options: &[&str]) -> anyhow::Result<Running> {
    let mut command = Command::new(example("load"));
    command.args([addrs, key]).args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(Running(command.spawn().context("starting the load generator")?))
}

/// Waits until the load generator has ended.
pub fn finish_load(mut running: Running) -> anyhow::Result<Load> {
    let (mut said, mut complained) = (String::new(), String::new());
    if let Some(mut stdout) = running.0.stdout.take() {
        stdout.read_to_string(&mut said)?;
    }
    if let Some(mut stderr) = running.0.stderr.take() {
        stderr.read_to_string(&mut complained)?;
    }
    if !running.0.wait()?.success() {
        bail!("the load generator failed: {complained}");
    }
    Ok(Load(serde_json::from_str(&said)?))
}

/// Loads somebody and waits for the figures.
pub fn load(addrs: &str, key: &str, options: &[&str]) -> anyhow::Result<Load> {
    finish_load(start_load(addrs, key, options)?)
}
