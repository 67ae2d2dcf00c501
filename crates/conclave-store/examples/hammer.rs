//! Measures what a machine gives: raw syncs, entries through the spool, entries into the database,
//! and the speed of a check. Run it in release mode: `cargo run -p conclave-store --example hammer
//! --release`.
//!
//! Arguments: producers (64), turns per producer (2,000), bytes of text per decision (1,500).
#![expect(clippy::print_stdout, reason = "a program for people")]

use conclave_core::AuditId;
use conclave_engine::{Clock, Entropy, Ledger, ReceiptState};
use conclave_ledger::{Body, Draft, Kind, Leaf, Value, tenant_number};
use conclave_store::{Inspection, LedgerReader, Store, StoreOptions, inspect};
use std::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Time since the program began: enough to measure with.
struct Ticking(Instant);

impl Clock for Ticking {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Different every time, which is all that is needed here.
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let next = self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chunk.copy_from_slice(&next.to_be_bytes()[..chunk.len()]);
        }
    }
}

fn argument(at: usize, default: u64) -> u64 {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn per_second(count: u64, time: Duration) -> u128 {
    u128::from(count) * 1_000_000 / time.as_micros().max(1)
}

/// Processor time of the whole process so far, from the kernel's own account (in ticks of 10 ms).
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|tick| tick.parse::<u64>().ok()).sum::<u64>() * 10
}

fn main() -> Outcome<()> {
    let (producers, turns) = (argument(1, 64), argument(2, 2_000));
    let text_bytes = usize::try_from(argument(3, 1_500))?;
    let dir = tempfile::tempdir_in(".")?;
    println!("fdatasync alone: {}/s", sync_rate(dir.path())?);
    let runtime = tokio::runtime::Runtime::new()?;
    let store = Arc::new(open(&dir.path().join("data"))?);
    let (began, cpu) = (Instant::now(), cpu_ms());
    let waits = runtime.block_on(produce(&store, producers, turns, text_bytes))?;
    let (accepted, entries) = (began.elapsed(), producers * turns * 2);
    report_spool(&store, entries, accepted, &waits);
    store.settle(Duration::from_secs(600))?;
    let drained = began.elapsed();
    let cpu_us = (cpu_ms() - cpu) * 1_000 / entries.max(1);
    println!("spool and drain together: {} entries/s", per_second(entries, drained));
    println!("processor time: {cpu_us} us an entry, producers and hashing included");
    drop(store);
    paced(&dir.path().join("paced"), text_bytes, &runtime)?;
    drain_alone(&dir.path().join("second"), text_bytes, &runtime)?;
    let (began, cpu) = (Instant::now(), cpu_ms());
    let report = inspect(&dir.path().join("data"), Inspection::default())?;
    let rate = per_second(report.entries, began.elapsed());
    let cpu_us = (cpu_ms() - cpu) * 1_000 / report.entries.max(1);
    println!("check: {} entries, sound: {}, {rate} entries/s", report.entries, report.ok);
    println!("check: {cpu_us} us of processor time an entry, {} checkpoints", report.checkpoints);
    proofs(&dir.path().join("data"))
}

/// How long a log takes to open, and a proof in it to make.
fn proofs(data: &Path) -> Outcome<()> {
    const PROOFS: u32 = 1_000;
    let began = Instant::now();
    drop(open(data)?);
    println!("open and close again: {} ms", began.elapsed().as_millis());
    let reader = LedgerReader::open(data)?;
    let mut ids = Vec::new();
    reader.rows(|row| -> Outcome<()> {
        let audit = Leaf::decode(row.leaf)?.draft.audit;
        ids.extend(audit.filter(|_| row.seq.is_multiple_of(97)).map(AuditId::from_bytes));
        Ok(())
    })?;
    let began = Instant::now();
    for id in ids.iter().cycle().take(usize::try_from(PROOFS)?) {
        let ReceiptState::Ready(_) = reader.receipt(*id)? else {
            return Err("a decision has no receipt".into());
        };
    }
    println!("receipt: {} us each", (began.elapsed() / PROOFS).as_micros());
    Ok(())
}

fn open(dir: &Path) -> Outcome<Store> {
    let clock = Arc::new(Ticking(Instant::now()));
    let entropy = Arc::new(Counting(AtomicU64::new(1)));
    Ok(Store::open(StoreOptions::new(dir, clock, entropy))?)
}

fn sync_rate(dir: &Path) -> Outcome<u128> {
    let file = std::fs::File::create(dir.join("sync"))?;
    file.set_len(16 << 20)?;
    file.sync_all()?;
    let (began, rounds) = (Instant::now(), 300);
    for round in 0..rounds {
        file.write_all_at(&[7; 2_048], round * 4_096)?;
        file.sync_data()?;
    }
    Ok(per_second(rounds, began.elapsed()))
}

async fn produce(
    store: &Arc<Store>,
    producers: u64,
    turns: u64,
    text_bytes: usize,
) -> Outcome<Vec<Duration>> {
    let tasks: Vec<_> = (0..producers)
        .map(|producer| {
            let ledger = store.ledger();
            tokio::spawn(async move {
                let mut waits = Vec::new();
                for turn in 0..turns {
                    waits.push(one_turn(&*ledger, producer * turns + turn, text_bytes).await?);
                }
                Outcome::Ok(waits)
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await??);
    }
    waits.sort();
    Ok(waits)
}

/// A decision that is waited for and a delivery that is not; returns the wait.
async fn one_turn(ledger: &dyn Ledger, n: u64, text_bytes: usize) -> Outcome<Duration> {
    let (draft, body) = decision(n, text_bytes);
    let mut delivery = Draft { kind: Kind::Delivery, ..draft.clone() };
    delivery.public = Value::map([("status", "sent".into()), ("bytes", 900_u64.into())]);
    let began = Instant::now();
    let appended = ledger.append(draft, body).await?;
    let wait = began.elapsed();
    delivery.parent = Some(appended.id);
    ledger.append_soon(delivery, Body::empty());
    Ok(wait)
}

/// About what a real decision looks like: seven votes, three texts.
fn decision(n: u64, text_bytes: usize) -> (Draft, Body) {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&n.to_be_bytes());
    let mut draft = Draft::new(Kind::Decision, tenant_number("hammer"));
    draft.audit = Some(AuditId::from_parts(n / 100, random).0.into_bytes());
    draft.subject = Some([u8::try_from(n % 251).unwrap_or(0); 16]);
    draft.session = Some([9; 16]);
    draft.build = "hammer".to_owned();
    let vote = |seat: u64| {
        Value::map([
            ("seat", seat.into()),
            ("vote", "safe".into()),
            ("confidence", 90_u64.into()),
            ("weight", 2_u64.into()),
        ])
    };
    draft.public = Value::map([
        ("outcome", "delivered".into()),
        ("action", "deliver".into()),
        ("score", 9_300_u64.into()),
        ("attempts", 1_u64.into()),
        ("crisis", false.into()),
        ("scrutiny", "normal".into()),
        ("model", "builtin".into()),
        ("latency_ms", 12_u64.into()),
        ("cost", 40_u64.into()),
        ("votes", Value::Array((0..7).map(vote).collect())),
    ]);
    let mut body = Body::empty();
    body.push("request", [1; 32], vec![b'q'; text_bytes / 2]);
    body.push("candidate.0", [2; 32], vec![b'a'; text_bytes / 3]);
    body.push("votes", [3; 32], vec![b'v'; text_bytes / 6]);
    (draft, body)
}

fn report_spool(store: &Store, entries: u64, time: Duration, waits: &[Duration]) {
    let at = |percent: usize| waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
    let stats = store.stats();
    println!(
        "spool: {} entries/s, {} entries in {} syncs, wait p50 {:?} p99 {:?}, dropped {}",
        per_second(entries, time),
        stats.entries,
        stats.syncs,
        at(50),
        at(99),
        store.ledger().dropped(),
    );
}

/// What an entry costs at a steady rate, when batches are small.
fn paced(dir: &Path, text_bytes: usize, runtime: &tokio::runtime::Runtime) -> Outcome<()> {
    let store = open(dir)?;
    let (turns, cpu) = (2_500_u64, cpu_ms());
    runtime.block_on(async {
        let mut tick = tokio::time::interval(Duration::from_millis(2));
        let mut tasks = Vec::new();
        for n in 0..turns {
            tick.tick().await;
            let ledger = store.ledger();
            tasks.push(tokio::spawn(async move { one_turn(&*ledger, n, text_bytes).await }));
        }
        for task in tasks {
            task.await??;
        }
        Outcome::Ok(())
    })?;
    store.settle(Duration::from_secs(60))?;
    let (stats, cpu_us) = (store.stats(), (cpu_ms() - cpu) * 1_000 / (turns * 2));
    println!("500 turns/s: {cpu_us} us an entry, {} syncs, {} batches", stats.syncs, stats.batches);
    Ok(())
}

/// How fast the database takes a backlog, with nobody else on the machine.
fn drain_alone(dir: &Path, text_bytes: usize, runtime: &tokio::runtime::Runtime) -> Outcome<()> {
    let clock = Arc::new(Ticking(Instant::now()));
    let mut options = StoreOptions::new(dir, clock, Arc::new(Counting(AtomicU64::new(9))));
    options.drain_linger = Duration::from_secs(3_600);
    options.drain_entries_max = 20_000;
    let store = Arc::new(Store::open(options)?);
    let turns = 150;
    runtime.block_on(produce(&store, 64, turns, text_bytes))?;
    let before = store.stats().drained;
    let (began, cpu) = (Instant::now(), cpu_ms());
    store.settle(Duration::from_secs(600))?;
    let drained = store.stats().drained - before;
    let (time, cpu) = (began.elapsed(), (cpu_ms() - cpu) * 1_000 / drained.max(1));
    println!("drain alone: {} entries/s, {cpu} us an entry", per_second(drained, time));
    Ok(())
}
