//! Fakes and shorthands of these tests.

use conclave_core::AuditId;
use conclave_engine::{Appended, Clock, Entropy};
use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, Report, Value, tenant_number};
use conclave_store::{
    Disk, FileDisk, Inspection, SegmentSink, Steady, Store, StoreOptions, inspect,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A clock that the test moves.
#[derive(Debug, Default)]
pub struct HandClock(pub AtomicU64);

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Not random at all, but never twice the same.
#[derive(Debug, Default)]
pub struct CountingEntropy(AtomicU64);

impl CountingEntropy {
    pub fn from(start: u64) -> Self {
        Self(AtomicU64::new(start))
    }
}

impl Entropy for CountingEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let next = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let mixed = next.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            chunk.copy_from_slice(&mixed[..chunk.len()]);
        }
    }
}

/// What the faulty disk shall do next.
#[derive(Debug, Default)]
pub struct Faults {
    pub syncs_to_fail: AtomicU64,
    pub writes_to_fail: AtomicU64,
    pub no_room: AtomicBool,
    pub short_writes: AtomicBool,
    interrupts: AtomicBool,
    /// Nothing can be made in this directory any more.
    pub dead_dir: Mutex<Option<std::path::PathBuf>>,
    pub created: AtomicU64,
    good_syncs: Mutex<u64>,
    synced: Condvar,
}

impl Faults {
    fn strikes(count: &AtomicU64) -> bool {
        let less = |left: u64| left.checked_sub(1);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Waits until so many syncs have succeeded.
    pub fn wait_for_syncs(&self, wanted: u64) {
        let good = self.good_syncs.lock().unwrap();
        let (long, few) = (Duration::from_secs(20), |good: &mut u64| *good < wanted);
        let (good, waited) = self.synced.wait_timeout_while(good, long, few).unwrap();
        assert!(!waited.timed_out(), "{good} syncs");
    }
}

/// A disk that fails when it is told to.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(pub Arc<Faults>);

impl Disk for FaultyDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>> {
        let dead = self.0.dead_dir.lock().unwrap().clone();
        if dead.is_some_and(|dead| path.starts_with(dead)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        if self.0.no_room.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.created.fetch_add(1, Ordering::SeqCst);
        let inner = FileDisk.create(path, bytes)?;
        Ok(Box::new(FaultySink { inner, faults: Arc::clone(&self.0), broken: false }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        FileDisk.remove(path)
    }
}

struct FaultySink {
    inner: Box<dyn SegmentSink>,
    faults: Arc<Faults>,
    broken: bool,
}

impl SegmentSink for FaultySink {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        assert!(!self.broken, "a segment that failed is used again");
        if self.faults.interrupts.swap(false, Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.faults.short_writes.load(Ordering::SeqCst) {
            self.faults.interrupts.store(true, Ordering::SeqCst);
            return self.inner.write_at(&bytes[..bytes.len().div_ceil(3)], offset);
        }
        if Faults::strikes(&self.faults.writes_to_fail) {
            self.broken = true;
            // Half of it gets through, as happens.
            self.inner.write_at(&bytes[..bytes.len() / 2], offset)?;
            return Err(io::Error::from_raw_os_error(5));
        }
        self.inner.write_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        assert!(!self.broken, "a segment that failed is used again");
        if Faults::strikes(&self.faults.syncs_to_fail) {
            self.broken = true;
            return Err(io::Error::from_raw_os_error(5));
        }
        self.inner.sync()?;
        *self.faults.good_syncs.lock().unwrap() += 1;
        self.faults.synced.notify_all();
        Ok(())
    }
}

/// As much time has passed as a clock says, however it is moved.
pub fn passing(clock: &Arc<HandClock>) -> Steady {
    let clock = Arc::clone(clock);
    Arc::new(move || Duration::from_millis(clock.now_ms()))
}

pub fn options(dir: &Path) -> StoreOptions {
    let clock = Arc::new(HandClock(AtomicU64::new(1_800_000_000_000)));
    let seed = dir.as_os_str().len() as u64 * 1_000;
    let steady = passing(&clock);
    let mut options = StoreOptions::new(dir, clock, Arc::new(CountingEntropy::from(seed)));
    options.steady = steady;
    options.segment_bytes = 256 << 10;
    options
}

pub fn open(dir: &Path) -> Store {
    Store::open(options(dir)).unwrap()
}

pub fn audit(n: u64) -> AuditId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&n.to_be_bytes());
    AuditId::from_parts(1_800_000_000_000, random)
}

pub fn decision_of(tenant: &str, n: u64, outcome: &str) -> (Draft, Body) {
    let mut draft = Draft::new(Kind::Decision, tenant_number(tenant));
    draft.audit = Some(audit(n).0.into_bytes());
    draft.subject = Some([(n % 3) as u8; 16]);
    draft.session = Some([7; 16]);
    draft.policy = [1; 32];
    draft.directives = [2; 32];
    draft.build = "test".to_owned();
    draft.public = Value::map([
        ("outcome", outcome.into()),
        ("action", if outcome == "delivered" { "deliver".into() } else { "block".into() }),
        ("score", (9_000 + n % 1_000).into()),
        ("attempts", 1_u64.into()),
        ("crisis", false.into()),
        ("scrutiny", "normal".into()),
        ("model", "builtin".into()),
        ("latency_ms", (n % 100).into()),
        ("cost", 12_u64.into()),
    ]);
    let mut body = Body::empty();
    body.push("request", [3; 32], format!("request {n}"));
    body.push("candidate.0", [4; 32], format!("candidate {n}"));
    (draft, body)
}

pub fn decision(n: u64) -> (Draft, Body) {
    decision_of("acme", n, "delivered")
}

pub fn delivery(n: u64, parent: EntryId) -> Draft {
    let (decision, _) = decision(n);
    let public = Value::map([("status", "sent".into()), ("bytes", 100_u64.into())]);
    Draft { kind: Kind::Delivery, parent: Some(parent), public, ..decision }
}

pub fn refusal(status: u64, count: u64) -> Draft {
    let mut draft = Draft::new(Kind::RequestRefused, 0);
    draft.public = Value::map([
        ("status", status.into()),
        ("code", "invalid_api_key".into()),
        ("count", count.into()),
        ("route", "/v1/chat/completions".into()),
    ]);
    draft
}

pub async fn append(store: &Store, n: u64) -> Appended {
    let (draft, body) = decision(n);
    store.ledger().append(draft, body).await.unwrap()
}

/// A decision and its delivery.
pub async fn turn(store: &Store, n: u64) -> Appended {
    let appended = append(store, n).await;
    store.ledger().append_soon(delivery(n, appended.id), Body::empty());
    appended
}

pub fn settle(store: &Store) {
    store.settle(Duration::from_secs(20)).unwrap();
}

/// Waits until the store says why it cannot settle, in these words.
pub fn unsettled(store: &Store, why: &str) {
    let says = || store.settle(Duration::from_millis(100)).unwrap_err().to_string();
    let heard = (0..200).map(|_| says()).find(|sentence| sentence.contains(why));
    assert!(heard.is_some(), "never said: {why}");
}

pub fn check(dir: &Path) -> Report {
    inspect(dir, Inspection::default()).unwrap()
}

/// Checks a directory that must be sound.
pub fn sound(dir: &Path) -> Report {
    let report = check(dir);
    assert!(report.ok, "{:?}", report.first_bad);
    report
}

/// Everything in the log: ids and kinds in order.
pub fn log_of(dir: &Path) -> Vec<Leaf> {
    let leaves = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&leaves);
    let check =
        Box::new(move |_: u64, leaf: &Leaf, _: Option<&conclave_ledger::StoredBody<'_>>| {
            seen.lock().unwrap().push(leaf.clone());
            Ok(())
        });
    let report = inspect(dir, Inspection { check: Some(check), ..Inspection::default() }).unwrap();
    assert!(report.ok, "{:?}", report.first_bad);
    std::mem::take(&mut leaves.lock().unwrap())
}

/// What a crash leaves: the files as they are at this moment, without the lock.
pub fn crash_copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let mut entries: Vec<_> = std::fs::read_dir(from).unwrap().map(Result::unwrap).collect();
    // What is noted of the entries is copied before them: a crash leaves both as they were at one moment.
    entries.sort_by_key(|entry| entry.file_name() != "acknowledged");
    for entry in entries {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            crash_copy(&entry.path(), &target);
        } else {
            // A segment may be drained and removed while we look.
            match std::fs::copy(entry.path(), &target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}

/// The spool's segments in order.
pub fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let listed = std::fs::read_dir(dir.join("spool")).unwrap();
    let paths = listed.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some()).collect();
    paths.sort();
    paths
}

/// Options under which the drainer leaves everything in the spool.
pub fn lazy(dir: &Path) -> StoreOptions {
    let mut options = options(dir);
    options.drain_linger = Duration::from_secs(3_600);
    options
}
