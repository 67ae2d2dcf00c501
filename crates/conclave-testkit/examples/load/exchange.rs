//! One request and its answer on a connection.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What to look for in an answer.
#[derive(Clone, Copy)]
pub struct Watch {
    /// Whether it comes as events.
    pub events: bool,
    /// Whether the end of the first sentence is looked for.
    pub sentence: bool,
}

/// An answer that came whole.
pub struct LoadAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
    /// The id of the decision, where the answer names one.
    pub id: Option<String>,
    /// When the end of the first sentence had come.
    pub sentence_at: Option<Instant>,
    /// When the last byte had come.
    pub ended: Instant,
    /// The longest time without a byte after the first.
    pub gap: Duration,
}

/// A connection that is kept.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// When the connection ends before the answer does.
    pub async fn ask(&mut self, request: &[u8], watch: Watch) -> io::Result<LoadAnswer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut gap = Duration::ZERO;
        let mut last: Option<Instant> = None;
        let mut head: Option<Head> = None;
        let mut sentence_at = None;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let now = Instant::now();
            gap = gap.max(last.map_or(Duration::ZERO, |last| now - last));
            last = Some(now);
            if head.is_none() {
                head = Head::read(&self.buffer);
            }
            let Some(head) = &head else { continue };
            let body = &self.buffer[head.end..];
            if watch.sentence && sentence_at.is_none() && has_sentence(body, watch.events) {
                sentence_at = Some(now);
            }
            if head.is_whole(body) {
                let (status, keep_alive) = (head.status, head.keep_alive);
                let id = head.id.clone();
                return Ok(LoadAnswer { status, keep_alive, id, sentence_at, ended: now, gap });
            }
        }
    }
}

struct Head {
    /// Where the body begins.
    end: usize,
    status: u16,
    keep_alive: bool,
    /// None where the body comes in chunks.
    length: Option<usize>,
    id: Option<String>,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&bytes[..end]);
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let header = |name: &str| {
            text.lines().find_map(|line| {
                let (given, value) = line.split_once(':')?;
                given.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let chunked = header("transfer-encoding").is_some();
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        Some(Self {
            end,
            status,
            keep_alive: header("connection") != Some("close"),
            length: (!chunked).then_some(length),
            id: header("x-conclave-audit-id").map(str::to_owned),
        })
    }

    fn is_whole(&self, body: &[u8]) -> bool {
        self.length.map_or_else(|| body.ends_with(b"0\r\n\r\n"), |length| body.len() >= length)
    }
}

/// Whether the text that came so far holds the end of a sentence.
fn has_sentence(body: &[u8], events: bool) -> bool {
    if !events {
        return !body.is_empty();
    }
    let text = String::from_utf8_lossy(body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let said: String = data
        .filter_map(|rest| serde_json::from_str::<serde_json::Value>(&format!("{{{rest}")).ok())
        .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect();
    said.contains(". ") || said.ends_with('.')
}
