//! A lean load generator: keep-alive connections that ask one after the other and time the answers.
//!
//! Loopback only, bounded in time, prints one JSON object. No request is like another: what was judged before would be
//! known.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY: &str = r#"{"model":"mock","messages":[{"role":"system","content":"You are a kind listener. Visit 00000000."},{"role":"user","content":"My day was long and my boss was unfair to me in front of everyone. I keep thinking about it and cannot settle down this evening."}]}"#;

/// `load ADDR KEY CONCURRENCY SECONDS`
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [addr, key, concurrency, seconds] = args.as_slice() else {
        return Err("usage: load ADDR KEY CONCURRENCY SECONDS".into());
    };
    let addr: SocketAddr = addr.parse()?;
    if !addr.ip().is_loopback() {
        return Err("only loopback addresses are loaded".into());
    }
    let (concurrency, seconds): (usize, f64) = (concurrency.parse()?, seconds.parse()?);
    let request = Arc::new(request(addr, key));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut times, errors, elapsed) = runtime.block_on(load(
        addr,
        request,
        concurrency,
        Duration::from_secs_f64(seconds.min(600.0)),
    ));
    times.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index within the list"
        )]
        let index = ((times.len() as f64 - 1.0).max(0.0) * share) as usize;
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = times.len() as f64 / elapsed.as_secs_f64();
    println!(
        "{{\"requests\":{},\"errors\":{errors},\"per_second\":{rate:.1},\"p50_ms\":{:.3},\"p99_ms\":{:.3}}}",
        times.len(),
        at(0.50),
        at(0.99),
    );
    Ok(())
}

fn request(addr: SocketAddr, key: &str) -> Vec<u8> {
    let length = BODY.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}"
    )
    .into_bytes()
}

async fn load(
    addr: SocketAddr,
    request: Arc<Vec<u8>>,
    concurrency: usize,
    duration: Duration,
) -> (Vec<Duration>, u64, Duration) {
    let started = Instant::now();
    let end = started + duration;
    let tasks: Vec<_> =
        (0..concurrency).map(|_| tokio::spawn(client(addr, request.to_vec(), end))).collect();
    let (mut times, mut errors) = (Vec::new(), 0);
    for task in tasks {
        match task.await {
            Ok((mine, failed)) => {
                times.extend(mine);
                errors += failed;
            }
            Err(_) => errors += 1,
        }
    }
    (times, errors, started.elapsed())
}

/// Writes the next number into a request.
fn number(request: &mut [u8]) {
    static VISITS: AtomicU32 = AtomicU32::new(1);
    let visit = format!("{:08}", VISITS.fetch_add(1, Ordering::Relaxed));
    if let Some(at) = request.windows(8).rposition(|bytes| bytes.iter().all(u8::is_ascii_digit)) {
        request[at..at + 8].copy_from_slice(visit.as_bytes());
    }
}

async fn client(addr: SocketAddr, mut request: Vec<u8>, end: Instant) -> (Vec<Duration>, u64) {
    let (mut times, mut errors) = (Vec::new(), 0);
    let mut connection = None;
    let mut buffer = Vec::with_capacity(16 * 1024);
    while Instant::now() < end && errors < 1_000 {
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(addr).await {
                Ok(stream) if stream.set_nodelay(true).is_ok() => stream,
                _ => {
                    errors += 1;
                    continue;
                }
            },
        };
        number(&mut request);
        let asked = Instant::now();
        match exchange(&mut stream, &request, &mut buffer).await {
            Ok(true) => {
                times.push(asked.elapsed());
                connection = Some(stream);
            }
            Ok(false) | Err(_) => errors += 1,
        }
    }
    (times, errors)
}

/// Whether the answer was 200.
async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> std::io::Result<bool> {
    stream.write_all(request).await?;
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(head) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            continue;
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok())
            .unwrap_or(0);
        while buffer.len() < head + 4 + length {
            if stream.read_buf(buffer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        return Ok(text.starts_with("http/1.1 200"));
    }
}
