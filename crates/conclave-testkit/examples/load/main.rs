//! A lean load generator: keep-alive connections that ask one after the other and time the answers.
//!
//! Loopback only, bounded in time, prints one JSON object. No request is like another: what was judged before would be
//! known.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

mod exchange;
mod options;
mod tally;

use exchange::{Connection, LoadAnswer};
use options::Options;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tally::LoadTally;

/// How long a client waits before it tries again to connect.
const RECONNECT: Duration = Duration::from_millis(5);
/// A client that could not connect so often gives up.
const FAILURES_MAX: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Arc::new(Options::parse(std::env::args().skip(1))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tally, elapsed) = runtime.block_on(load(&options));
    if let Some(path) = &options.ids {
        let mut file = std::fs::File::create(path)?;
        tally.ids.iter().try_for_each(|id| writeln!(file, "{id}"))?;
    }
    println!("{}", tally.into_json(elapsed));
    Ok(())
}

async fn load(options: &Arc<Options>) -> (LoadTally, Duration) {
    let started = Instant::now();
    let turns = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..options.concurrency)
        .map(|number| {
            let addr = options.addrs[number % options.addrs.len()];
            tokio::spawn(client(options.clone(), addr, turns.clone(), started))
        })
        .collect();
    let mut tally = LoadTally::default();
    for client in clients {
        match client.await {
            Ok(mine) => tally.take(mine),
            Err(_) => tally.failed += 1,
        }
    }
    (tally, started.elapsed())
}

/// One client: asks until time is over, at its own pace or at the common one.
async fn client(
    options: Arc<Options>,
    addr: SocketAddr,
    turns: Arc<AtomicU64>,
    started: Instant,
) -> LoadTally {
    let mut tally = LoadTally::default();
    let mut request = options.request(addr);
    let mut connection = None;
    while tally.failed < FAILURES_MAX {
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        let asked = options.due(turn).map_or_else(Instant::now, |after| started + after);
        if asked.saturating_duration_since(started) >= options.duration
            || started.elapsed() >= options.duration
        {
            break;
        }
        tokio::time::sleep_until(asked.into()).await;
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => match Connection::open(addr).await {
                Ok(stream) => stream,
                Err(_) => {
                    tally.failed += 1;
                    tokio::time::sleep(RECONNECT).await;
                    continue;
                }
            },
        };
        options::number(&mut request, turn);
        let patience = options.patience;
        match tokio::time::timeout(patience, stream.ask(&request, options.watch())).await {
            Ok(Ok(answer)) => {
                let keep = answer.keep_alive;
                tally.note(asked, &answer, started, options.ids.is_some());
                connection = keep.then_some(stream);
            }
            Ok(Err(_)) | Err(_) => tally.failed += 1,
        }
        if tally.refused > 0 && !options.backoff.is_zero() {
            pause_after(&tally, options.backoff).await;
        }
    }
    tally
}

/// A client that was refused waits a little, as polite ones do.
async fn pause_after(tally: &LoadTally, backoff: Duration) {
    if tally.last_was_refused {
        tokio::time::sleep(backoff).await;
    }
}

/// What an answer was, for the tally.
fn is_ok(answer: &LoadAnswer) -> bool {
    answer.status == 200
}
