//! What is asked of the generator.

use crate::exchange::Watch;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "load ADDR[,ADDR...] KEY [--concurrency N] [--seconds S] [--rate PER_SECOND] [--stream yes] \
    [--sentence yes] [--user NAME] [--ids FILE] [--patience-ms N] [--backoff-ms N] \
    [--bytes N]";
/// Longer than this it never runs.
const SECONDS_MAX: f64 = 900.0;
/// Where the number of the request stands in the body.
const PLACE: &str = "00000000";
/// Longer texts are not asked for.
const BYTES_MAX: usize = 64 << 20;
/// What long texts are made of.
const FILLER: &str =
    "The meeting went on until the evening and nobody asked what I thought of the plan. ";

/// What to do.
pub struct Options {
    /// Whom to ask; clients are dealt out among them.
    pub addrs: Vec<SocketAddr>,
    key: String,
    /// Clients at once.
    pub concurrency: usize,
    /// For how long.
    pub duration: Duration,
    /// Requests a second of all clients together; none asks as fast as answers come.
    rate: Option<f64>,
    /// How long the person's text is, about.
    bytes: usize,
    stream: bool,
    sentence: bool,
    user: Option<String>,
    /// Where the ids of acknowledged decisions are written.
    pub ids: Option<PathBuf>,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long a refused client waits.
    pub backoff: Duration,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When it says something else than the usage.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let (addrs, key) = (arguments.next().ok_or(USAGE)?, arguments.next().ok_or(USAGE)?);
        let addrs = addrs.split(',').map(str::parse).collect::<Result<Vec<SocketAddr>, _>>()?;
        if !addrs.iter().all(|addr| addr.ip().is_loopback()) {
            return Err("only loopback addresses are loaded".into());
        }
        let mut options = Self {
            addrs,
            key,
            concurrency: 16,
            duration: Duration::from_secs(5),
            rate: None,
            bytes: 0,
            stream: false,
            sentence: false,
            user: None,
            ids: None,
            patience: Duration::from_secs(60),
            backoff: Duration::ZERO,
        };
        while let Some(name) = arguments.next() {
            options.set(&name, arguments.next().ok_or(USAGE)?)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Box<dyn Error>> {
        match name {
            "--concurrency" => self.concurrency = value.parse()?,
            "--seconds" => {
                let seconds: f64 = value.parse()?;
                self.duration = Duration::from_secs_f64(seconds.clamp(0.1, SECONDS_MAX));
            }
            "--rate" => self.rate = Some(value.parse()?),
            "--bytes" => self.bytes = value.parse::<usize>()?.min(BYTES_MAX),
            "--stream" => self.stream = value == "yes",
            "--sentence" => self.sentence = value == "yes",
            "--user" => self.user = Some(value),
            "--ids" => self.ids = Some(value.into()),
            "--patience-ms" => self.patience = Duration::from_millis(value.parse()?),
            "--backoff-ms" => self.backoff = Duration::from_millis(value.parse()?),
            _ => return Err(USAGE.into()),
        }
        Ok(())
    }

    /// When a request is due, counted from the beginning; `None` when it is as soon as can be.
    pub fn due(&self, turn: u64) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "some million requests at most")]
        self.rate.map(|rate| Duration::from_secs_f64(turn as f64 / rate))
    }

    /// What to look for in answers.
    pub const fn watch(&self) -> Watch {
        Watch { events: self.stream, sentence: self.sentence }
    }

    /// The bytes of a request, with a place for its number.
    pub fn request(&self, addr: SocketAddr) -> Vec<u8> {
        let user = self.user.as_ref().map_or(String::new(), |user| format!(r#","user":"{user}""#));
        let stream = if self.stream { r#","stream":true"# } else { "" };
        let filler = match self.bytes {
            0 => String::new(),
            bytes => format!(" {}Visit {PLACE}.", FILLER.repeat(bytes / FILLER.len())),
        };
        let body = format!(
            r#"{{"model":"mock"{stream}{user},"messages":[{{"role":"system","content":"You are a kind listener. Visit {PLACE}."}},{{"role":"user","content":"My day was long and my boss was unfair to me in front of everyone. I keep thinking about it and cannot settle down this evening.{filler}"}}]}}"#
        );
        let (key, length) = (&self.key, body.len());
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// Writes its number into a request.
pub fn number(request: &mut [u8], turn: u64) {
    let visit = format!("{:08}", turn % 100_000_000);
    if let Some(at) = request.windows(8).rposition(|bytes| bytes.iter().all(u8::is_ascii_digit)) {
        request[at..at + 8].copy_from_slice(visit.as_bytes());
    }
}
