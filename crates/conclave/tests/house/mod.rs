//! A running gateway as a child process, and a plain HTTP client to talk to it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The binary under test: the release build where the test command made one.
pub fn binary() -> PathBuf {
    std::env::var_os("CONCLAVE_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_conclave")), PathBuf::from)
}

/// Runs the binary to its end.
pub fn conclave(args: &[&str]) -> Output {
    Command::new(binary()).args(args).env_remove("RUST_LOG").output().unwrap()
}

/// The commands that have an option, `--url <URL>` for example, as their own help lists it.
pub fn commands_with(option: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut groups = vec![Vec::new()];
    while let Some(words) = groups.pop() {
        let words: Vec<String> = words;
        let help = Command::new(binary()).args(&words).arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
        let listed = listed.lines().take_while(|line| !line.is_empty());
        let named = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let below: Vec<_> = named.filter_map(|line| line.split_whitespace().next()).collect();
        if below.is_empty() && help.contains(option) {
            found.insert(words.join(" "));
        }
        let below = below.into_iter().filter(|name| *name != "help");
        groups.extend(below.map(|name| [&words[..], &[name.to_owned()]].concat()));
    }
    found
}

/// A running gateway; killed when dropped.
pub struct House {
    child: Child,
    pub addr: SocketAddr,
    pub key: String,
    /// The dashboard's password, at the first start only.
    pub password: Option<String>,
    pub data: PathBuf,
    log: Arc<Mutex<String>>,
}

/// A configuration with one model, `mock`, behind this base URL.
pub fn config_for(base_url: &str, extra: &str) -> String {
    format!(
        "{extra}\n[[providers]]\nname = \"mock\"\nbase_url = \"{base_url}\"\n\n\
         [[models]]\nname = \"mock\"\nprovider = \"mock\"\ninput_usd_per_million = 1.0\n\
         output_usd_per_million = 2.0\n"
    )
}

impl House {
    /// Starts with this configuration in this directory; the owner key is kept beside the data.
    pub fn start(dir: &Path, config: &str) -> Self {
        let started = Self::try_start(Command::new(binary()), dir, config);
        started.unwrap_or_else(|log| panic!("the gateway ended before it was ready: {log}"))
    }

    /// Starts this program likewise; gives back what it said if it ended before it was ready.
    pub fn try_start(mut program: Command, dir: &Path, config: &str) -> Result<Self, String> {
        let file = dir.join("conclave.toml");
        std::fs::write(&file, config).unwrap();
        let data = dir.join("data");
        let mut child = program
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(&data)
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let kept = dir.join("owner-key");
        let mut key = std::fs::read_to_string(&kept).ok();
        let (mut addr, mut password) = (None, None);
        while addr.is_none() {
            let Some(Ok(line)) = lines.next() else {
                child.wait().unwrap();
                return Err(log.lock().unwrap().clone());
            };
            log.lock().unwrap().push_str(&format!("{line}\n"));
            if let Some(shown) = line.trim().strip_prefix("ck_") {
                key = Some(format!("ck_{shown}"));
                // It is shown once, and whoever starts next needs it too.
                std::fs::write(&kept, format!("ck_{shown}")).unwrap();
            }
            let word = line.trim();
            if word.len() == 20 && word.bytes().all(|b| b.is_ascii_alphanumeric()) {
                password = Some(word.to_owned());
            }
            addr = line.split("http://").nth(1).and_then(|rest| {
                rest.split(['/', ' ', '"']).next().and_then(|addr| addr.parse().ok())
            });
        }
        let writer = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                writer.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let key = key.expect("an owner key at first start");
        Ok(Self { child, addr: addr.unwrap(), key, password, data, log })
    }

    /// Waits for the end of a gateway that ends by itself; the signal that ended it, if one did.
    pub fn wait(mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        self.child.wait().unwrap().signal()
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The most memory it ever held, in bytes.
    pub fn peak_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
        kibibytes * 1024
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and waits; returns whether it ended well.
    pub fn stop(mut self) -> bool {
        self.signal("TERM");
        self.child.wait().unwrap().success()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, b"").await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, body.to_string().as_bytes()).await.unwrap()
    }

    /// A chat request to the model `mock`.
    pub async fn chat(&self, text: &str) -> Reply {
        self.post("/v1/chat/completions", &chat_body(text)).await
    }

    pub async fn ask(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<Reply> {
        let auth = format!("authorization: Bearer {}\r\n", self.key);
        ask(self.addr, method, path, &auth, body).await
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn chat_body(text: &str) -> Value {
    serde_json::json!({"model": "mock", "messages": [{"role": "user", "content": text}]})
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
    }

    pub fn own(&self, field: &str) -> Value {
        self.json()["conclave"][field].clone()
    }

    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let prefix = format!("{name}:");
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&prefix))?;
        Some(line[prefix.len()..].trim().to_owned())
    }
}

/// One request on its own connection.
pub async fn ask(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> std::io::Result<Reply> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    raw(addr, &[head.as_bytes(), body].concat()).await
}

/// Sends bytes as they are and reads until the other side closes.
pub async fn raw(addr: SocketAddr, bytes: &[u8]) -> std::io::Result<Reply> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.write_all(bytes).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    parse(&answer).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

/// `None` unless the response is whole.
fn parse(answer: &[u8]) -> Option<Reply> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let reply = Reply { status, head, body: String::from_utf8_lossy(&answer[end + 4..]).into() };
    let declared = reply.header("content-length").and_then(|length| length.parse().ok());
    (declared.is_none() || declared == Some(answer.len() - end - 4)).then_some(reply)
}

/// `conclave ledger verify --json` on a data directory: exit code and report.
pub fn verify(data: &Path) -> (Option<i32>, Value) {
    let output = conclave(&["--json", "ledger", "verify", "--data", data.to_str().unwrap()]);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report)
}
