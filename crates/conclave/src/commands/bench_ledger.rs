//! `conclave bench ledger`: what the disk and the database give, beside what the ledger makes of it.
//!
//! **Invariant:** nothing is measured without what bounds it: syncs of the disk and hashing alone stand
//! beside every figure that depends on them.

use super::Answer;
use crate::cli::BenchLedgerArgs;
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::{Context, anyhow, bail};
use conclave_core::AuditId;
use conclave_engine::{Clock, Ledger, ReceiptState};
use conclave_ledger::{Body, CompactRange, Draft, Kind, Value, leaf_hash, sha256, tenant_number};
use conclave_store::{
    DatabaseUrl, Inspection, LedgerReader, Store, StoreOptions, inspect, inspect_database,
};
use serde_json::json;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Producers that wait for their entries at once.
const PRODUCERS: u64 = 64;
/// Bytes of text of one decision; with its leaf it comes to about 2 KiB.
const TEXT_BYTES: usize = 1_300;
/// So many entries are read into memory before they are hashed.
const HASHED_TOGETHER: usize = 10_000;
/// How long the database may take for what was produced.
const PATIENCE: Duration = Duration::from_secs(600);
/// Decisions a second, and for how many seconds, when latency is measured.
const PACE: (u64, u64) = (200, 5);

/// What the design asks of a machine with two cores; `open_ms` of a ledger with a million entries.
const WANTED: &[(&str, Bound)] = &[
    ("spool", Bound::AtLeast(20_000.0)),
    ("sqlite", Bound::AtLeast(5_000.0)),
    ("open_ms", Bound::AtMost(2_000.0)),
    ("proof_ms", Bound::AtMost(10.0)),
    ("verify", Bound::AtLeast(50_000.0)),
    ("verify_hashing", Bound::AtLeast(100_000.0)),
    ("added_p50_ms", Bound::AtMost(5.0)),
    ("added_p99_ms", Bound::AtMost(50.0)),
    ("postgres_1", Bound::AtLeast(10_000.0)),
    ("postgres_2", Bound::AtLeast(10_000.0)),
    ("postgres_4", Bound::AtLeast(10_000.0)),
    ("postgres_verify", Bound::AtLeast(50_000.0)),
];

/// Where a figure should lie.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    /// What is wanted of a figure, if anything is, and whether it is so.
    fn said_of(key: &str, value: f64) -> String {
        let wanted = WANTED.iter().find(|(name, _)| *name == key).map(|(_, bound)| *bound);
        let (sign, bound, holds) = match wanted {
            Some(Self::AtLeast(bound)) => (">=", bound, value >= bound),
            Some(Self::AtMost(bound)) => ("<=", bound, value <= bound),
            None => return String::new(),
        };
        format!("  wanted {sign} {bound}: {}", if holds { "yes" } else { "no" })
    }
}

/// Runs the command.
///
/// # Errors
/// When the directory or the database cannot be used.
pub fn run(args: &BenchLedgerArgs, as_json: bool) -> anyhow::Result<Answer> {
    let root = args.dir.join(format!("conclave-bench-{}", std::process::id()));
    std::fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
    let measured = measure(args, &root);
    std::fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    let figures = measured?;
    if as_json {
        let fields = figures.iter().map(|figure| (figure.key.clone(), json!(figure.value)));
        output::json(&fields.collect::<serde_json::Map<_, _>>());
    } else {
        for Figure { key, said, value, unit } in &figures {
            let wanted = Bound::said_of(key, *value);
            let line = format!("{said:<52} {value:>12.1} {unit:<9}{wanted}");
            output::line(line.trim_end());
        }
    }
    Ok(Answer::Yes)
}

struct Figure {
    key: String,
    said: String,
    value: f64,
    unit: &'static str,
}

#[derive(Default)]
struct Figures(Vec<Figure>);

impl Figures {
    fn add(&mut self, key: &str, said: impl Into<String>, value: f64, unit: &'static str) {
        self.0.push(Figure { key: key.to_owned(), said: said.into(), value, unit });
    }
}

fn measure(args: &BenchLedgerArgs, root: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Figures::default();
    figures.add("syncs", "fdatasync alone", sync_rate(root)?, "/s");
    figures.add("sha256", "SHA-256 of 2 KiB, one core", hash_rate(), "/s");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let turns = (args.entries / 2 / PRODUCERS).max(1);
    sqlite(&mut figures, &runtime, &root.join("sqlite"), turns)?;
    latency(&mut figures, &runtime, &root.join("paced"))?;
    if let Some(url) = args.database.url()? {
        postgres(&mut figures, &runtime, root, turns, &url)?;
    }
    Ok(figures.0)
}

fn per_second(count: u64, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let count = count as f64;
    count / time.as_secs_f64().max(1e-9)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn sync_rate(dir: &Path) -> anyhow::Result<f64> {
    let file = std::fs::File::create(dir.join("sync"))?;
    file.set_len(4 << 20)?;
    file.sync_all()?;
    let (began, rounds) = (Instant::now(), 300);
    for round in 0..rounds {
        file.write_all_at(&[7; 2_048], round * 4_096)?;
        file.sync_data()?;
    }
    Ok(per_second(rounds, began.elapsed()))
}

fn hash_rate() -> f64 {
    let (began, rounds, mut block) = (Instant::now(), 100_000, [7; 2_048]);
    for _ in 0..rounds {
        let hash = sha256(&[&block]);
        block[..32].copy_from_slice(&hash);
    }
    per_second(rounds, began.elapsed())
}

fn options(dir: &Path, database: Option<DatabaseUrl>) -> StoreOptions {
    let options = StoreOptions::new(dir, Arc::new(SystemClock), Arc::new(SystemEntropy));
    StoreOptions { database, ..options }
}

fn sqlite(
    figures: &mut Figures,
    runtime: &tokio::runtime::Runtime,
    dir: &Path,
    turns: u64,
) -> anyhow::Result<()> {
    let store = Arc::new(Store::open(options(dir, None))?);
    let began = Instant::now();
    let first = runtime.block_on(produce(&store, turns))?;
    let entries = PRODUCERS * turns * 2;
    let said = "spool, 64 producers";
    figures.add("spool", said, per_second(entries, began.elapsed()), "entries/s");
    store.settle(PATIENCE)?;
    let said = "spool and SQLite together";
    figures.add("sqlite", said, per_second(entries, began.elapsed()), "entries/s");
    store.publish()?;
    drop(store);
    let began = Instant::now();
    let store = Store::open(options(dir, None))?;
    figures.add("open_ms", "open the ledger again", millis(began.elapsed()), "ms");
    drop(store);
    let reader = LedgerReader::open(dir)?;
    let began = Instant::now();
    if !matches!(reader.receipt(first)?, ReceiptState::Ready(_)) {
        bail!("the first decision has no receipt");
    }
    figures.add("proof_ms", "one receipt with its proof", millis(began.elapsed()), "ms");
    let began = Instant::now();
    let report = inspect(dir, Inspection::default())?;
    if !report.ok {
        bail!("the ledger does not hold: {:?}", report.first_bad);
    }
    let said = format!("verify {} entries in SQLite", report.entries);
    figures.add("verify", said, per_second(report.entries, began.elapsed()), "entries/s");
    let said = "hashing alone of verify: leaves, bodies, tree";
    figures.add("verify_hashing", said, hashing_alone(&reader, &report.root)?, "entries/s");
    Ok(())
}

/// How fast the entries of a ledger are hashed again once they are in memory. The root must come out.
fn hashing_alone(reader: &LedgerReader, root: &str) -> anyhow::Result<f64> {
    let (mut range, mut entries, mut time) = (CompactRange::new(), 0, Duration::ZERO);
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(HASHED_TOGETHER);
    let mut hash = |rows: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        let began = Instant::now();
        for (leaf, body) in rows.iter() {
            range.append(leaf_hash(leaf));
            std::hint::black_box(sha256(&[body]));
        }
        time += began.elapsed();
        entries += rows.len() as u64;
        rows.clear();
    };
    reader.rows(|row| {
        rows.push((row.leaf.to_vec(), row.body.unwrap_or_default().to_vec()));
        if rows.len() == HASHED_TOGETHER {
            hash(&mut rows);
        }
        anyhow::Ok(())
    })?;
    hash(&mut rows);
    if hex::encode(range.root()) != root {
        bail!("hashed again, the entries do not lead to the root");
    }
    Ok(per_second(entries, time))
}

/// Entries by many producers; returns the id of one decision.
async fn produce(store: &Arc<Store>, turns: u64) -> anyhow::Result<AuditId> {
    let tasks: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let ledger = store.ledger();
            tokio::spawn(async move {
                let mut last = None;
                for _ in 0..turns {
                    last = Some(one_turn(&*ledger).await?.0);
                }
                anyhow::Ok(last)
            })
        })
        .collect();
    let mut first = None;
    for task in tasks {
        first = first.or(task.await??);
    }
    first.ok_or_else(|| anyhow!("nothing was produced"))
}

/// A decision that is waited for and a delivery that is not; returns its id and the wait.
async fn one_turn(ledger: &dyn Ledger) -> anyhow::Result<(AuditId, Duration)> {
    let (id, draft, body) = decision();
    let mut delivery = Draft { kind: Kind::Delivery, ..draft.clone() };
    delivery.public = Value::map([("status", "sent".into()), ("bytes", 900_u64.into())]);
    let began = Instant::now();
    let appended = ledger.append(draft, body).await?;
    let wait = began.elapsed();
    delivery.parent = Some(appended.id);
    ledger.append_soon(delivery, Body::empty());
    Ok((id, wait))
}

/// About what a real decision looks like: seven votes, three texts.
fn decision() -> (AuditId, Draft, Body) {
    let mut random = [0; 10];
    conclave_engine::Entropy::fill(&SystemEntropy, &mut random);
    let id = AuditId::from_parts(SystemClock.now_ms(), random);
    let mut draft = Draft::new(Kind::Decision, tenant_number("bench"));
    draft.audit = Some(id.0.into_bytes());
    draft.subject = Some([random[0]; 16]);
    draft.session = Some([random[1]; 16]);
    draft.build = "bench".to_owned();
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
    body.push("request", [1; 32], vec![b'q'; TEXT_BYTES / 2]);
    body.push("candidate.0.0", [2; 32], vec![b'a'; TEXT_BYTES / 3]);
    body.push("votes.0.0", [3; 32], vec![b'v'; TEXT_BYTES / 6]);
    (id, draft, body)
}

/// What a decision waits for the disk at a steady pace.
fn latency(
    figures: &mut Figures,
    runtime: &tokio::runtime::Runtime,
    dir: &Path,
) -> anyhow::Result<()> {
    let store = Store::open(options(dir, None))?;
    let (rate, seconds) = PACE;
    let mut waits = runtime.block_on(async {
        let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / rate));
        let mut tasks = Vec::new();
        for _ in 0..rate * seconds {
            tick.tick().await;
            let ledger = store.ledger();
            tasks.push(tokio::spawn(async move { one_turn(&*ledger).await }));
        }
        let mut waits = Vec::new();
        for task in tasks {
            waits.push(task.await??.1);
        }
        anyhow::Ok(waits)
    })?;
    waits.sort();
    for percent in [50, 99] {
        let wait = waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
        let said = format!("added to a reply at {rate} decisions/s, p{percent}");
        figures.add(&format!("added_p{percent}_ms"), said, millis(wait), "ms");
    }
    Ok(())
}

/// How fast one, two and four replicas together hand a backlog over, and how fast they take entries and
/// hand them over at the same time.
fn postgres(
    figures: &mut Figures,
    runtime: &tokio::runtime::Runtime,
    root: &Path,
    turns: u64,
    url: &DatabaseUrl,
) -> anyhow::Result<()> {
    for replicas in [1, 2, 4_u64] {
        let open = |lazy| -> anyhow::Result<Vec<_>> {
            (0..replicas).map(|n| replica(root, n, url, lazy)).collect()
        };
        let stores = open(true)?;
        for store in &stores {
            runtime.block_on(produce(store, (turns / replicas).max(1)))?;
        }
        let drained = |stores: &[Arc<Store>]| stores.iter().map(|s| s.stats().drained).sum::<u64>();
        let (began, before) = (Instant::now(), drained(&stores));
        std::thread::scope(|scope| {
            let settling: Vec<_> =
                stores.iter().map(|store| scope.spawn(|| store.settle(PATIENCE))).collect();
            settling.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| anyhow!("a replica panicked"))?.map_err(Into::into)
            })
        })
        .map_err(|error: anyhow::Error| error)?;
        let rate = per_second(drained(&stores) - before, began.elapsed());
        let said = format!("PostgreSQL, a backlog of {replicas} replicas");
        figures.add(&format!("postgres_{replicas}"), said, rate, "entries/s");
        drop(stores);
        let stores = open(false)?;
        let rate = sustained(runtime, &stores, (turns / replicas).max(1))?;
        let said = format!("spool and PostgreSQL together, {replicas} replicas");
        figures.add(&format!("postgres_{replicas}_sustained"), said, rate, "entries/s");
    }
    let began = Instant::now();
    let report = inspect_database(url, None, Inspection::default())?;
    if !report.ok {
        bail!("the ledger in the database does not hold: {:?}", report.first_bad);
    }
    let said = format!("verify {} entries in PostgreSQL", report.entries);
    figures.add("postgres_verify", said, per_second(report.entries, began.elapsed()), "entries/s");
    Ok(())
}

/// Entries a second from the first that is taken to the last that is in the database.
fn sustained(
    runtime: &tokio::runtime::Runtime,
    stores: &[Arc<Store>],
    turns: u64,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    runtime.block_on(async {
        let producing = stores.iter().map(|store| produce(store, turns));
        futures_util::future::try_join_all(producing).await
    })?;
    stores.iter().try_for_each(|store| store.settle(PATIENCE))?;
    let entries = PRODUCERS * turns * 2 * stores.len() as u64;
    Ok(per_second(entries, began.elapsed()))
}

/// A replica, which may hand nothing over until it is asked; all have the first one's secrets.
fn replica(root: &Path, n: u64, url: &DatabaseUrl, lazy: bool) -> anyhow::Result<Arc<Store>> {
    let place = |n: u64| -> PathBuf { root.join(format!("replica{n}")) };
    let dir = place(n);
    std::fs::create_dir_all(&dir)?;
    for secret in ["pepper", "ledger.key", "root.key"] {
        if n > 0 && !dir.join(secret).exists() {
            std::fs::copy(place(0).join(secret), dir.join(secret))?;
        }
    }
    let mut options = options(&dir, Some(url.clone()));
    if lazy {
        options.drain_linger = Duration::from_secs(3_600);
        options.drain_entries_max = usize::MAX;
    }
    let store = Store::open(options);
    Ok(Arc::new(store.context("the database must be empty, or one that was only measured with")?))
}
