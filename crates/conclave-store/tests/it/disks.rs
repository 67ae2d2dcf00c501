//! Disks that fail: one of two, both, full ones, slow ones, and clocks that go back.

use crate::support::*;
use conclave_engine::AppendError;
use conclave_ledger::{Gap, Kind, Leaf, Value};
use conclave_store::{Disk, FileDisk, Store, StoreOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::{TempDir, tempdir};

/// Two directories, as of two disks, and what they shall do.
struct TwoDisks {
    data: TempDir,
    second: TempDir,
    faults: Arc<Faults>,
    options: StoreOptions,
}

fn two_disks() -> TwoDisks {
    let (data, second) = (tempdir().unwrap(), tempdir().unwrap());
    let disk = FaultyDisk::default();
    let faults = Arc::clone(&disk.0);
    let mut options = options(data.path());
    options.disk = Arc::new(disk);
    options.spool_fallback = Some(second.path().to_owned());
    TwoDisks { data, second, faults, options }
}

fn segments_in(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|it| it == "seg")).collect()
}

fn codes(store: &Store) -> Vec<&'static str> {
    store.ledger().state().alerts.into_iter().map(|alert| alert.code).collect()
}

fn gaps(log: &[Leaf]) -> Vec<(u64, u64)> {
    let gaps = log.iter().filter(|leaf| leaf.draft.kind == Kind::CoverageGap);
    let stated = gaps.map(|leaf| Gap::from_public(&leaf.draft.public).unwrap());
    stated.map(|gap| (gap.from, gap.to)).collect()
}

#[tokio::test]
async fn when_the_first_disk_fails_entries_go_to_the_second_and_nothing_is_lost() {
    for kind in ["sync", "write"] {
        let disks = two_disks();
        let store = Store::open(disks.options.clone()).unwrap();
        append(&store, 1).await;
        assert_eq!(segments_in(disks.second.path()), [] as [PathBuf; 0]);
        *disks.faults.dead_dir.lock().unwrap() = Some(disks.data.path().to_owned());
        let fail =
            if kind == "sync" { &disks.faults.syncs_to_fail } else { &disks.faults.writes_to_fail };
        fail.store(1, Ordering::SeqCst);
        for n in 2..=4 {
            append(&store, n).await;
        }
        assert!(store.ledger().health().is_ok());
        assert_eq!(codes(&store), ["spool_fallback"]);
        assert!(!segments_in(disks.second.path()).is_empty());
        assert_eq!(sound(disks.data.path()).pending + sound(disks.data.path()).entries, 4);
        drop(store);
        assert_eq!(segments_in(disks.second.path()), [] as [PathBuf; 0], "drained and removed");
        let log = log_of(disks.data.path());
        assert_eq!(log.iter().map(|leaf| leaf.id.n).collect::<Vec<_>>(), [1, 2, 3, 4], "{kind}");
    }
}

#[tokio::test]
async fn what_stands_on_the_second_disk_after_a_crash_is_taken_at_the_next_start() {
    let disks = two_disks();
    let mut lazy = disks.options.clone();
    lazy.drain_linger = std::time::Duration::from_secs(3_600);
    let store = Store::open(lazy).unwrap();
    append(&store, 1).await;
    disks.faults.syncs_to_fail.store(1, Ordering::SeqCst);
    append(&store, 2).await;
    append(&store, 3).await;
    let (data, second) = (tempdir().unwrap(), tempdir().unwrap());
    crash_copy(disks.data.path(), data.path());
    crash_copy(disks.second.path(), second.path());
    drop(store);
    std::fs::write(data.path().join("spool-fallback"), format!("{}\n", second.path().display()))
        .unwrap();
    assert_eq!(sound(data.path()).pending, 3, "the check looks at both");
    let mut again = options(data.path());
    again.spool_fallback = None;
    let sentence = Store::open(again.clone()).err().unwrap().to_string();
    assert!(sentence.contains("still stand in"), "{sentence}");
    again.spool_fallback = Some(second.path().to_owned());
    drop(Store::open(again).unwrap());
    let log = log_of(data.path());
    let decisions = log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision);
    assert_eq!(decisions.map(|leaf| leaf.id.n).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(gaps(&log), []);
}

#[tokio::test]
async fn when_both_disks_fail_numbers_stay_used_and_the_gap_is_the_first_entry_after() {
    let disks = two_disks();
    let store = Store::open(disks.options.clone()).unwrap();
    let ledger = store.ledger();
    append(&store, 1).await;
    disks.faults.syncs_to_fail.store(u64::MAX, Ordering::SeqCst);
    for n in 2..=4 {
        let (draft, body) = decision(n);
        let error = ledger.append(draft, body).await.unwrap_err();
        assert!(matches!(error, AppendError::Unwritable(_)), "{error}");
    }
    assert!(codes(&store).starts_with(&["spool_failed", "entries_lost"]));
    disks.faults.syncs_to_fail.store(0, Ordering::SeqCst);
    append(&store, 5).await;
    assert!(ledger.health().is_ok() && !codes(&store).contains(&"entries_lost"));
    assert!(ledger.state().lost_entries >= 3);
    drop(store);
    let log = log_of(disks.data.path());
    assert_eq!(log[1].draft.kind, Kind::CoverageGap, "before anything else");
    let missing = gaps(&log);
    assert_eq!(missing, [(2, log[1].id.n - 1)]);
}

/// A disk that keeps what it was given although it says that it failed.
#[tokio::test]
async fn a_gap_stays_a_gap_although_the_failed_disk_kept_the_entries() {
    let dir = tempdir().unwrap();
    let disk = FaultyDisk::default();
    let faults = Arc::clone(&disk.0);
    let mut lazy = lazy(dir.path());
    lazy.disk = Arc::new(disk);
    let store = Store::open(lazy).unwrap();
    append(&store, 1).await;
    faults.syncs_to_fail.store(2, Ordering::SeqCst);
    let (draft, body) = decision(2);
    store.ledger().append(draft, body).await.unwrap_err();
    append(&store, 3).await;
    let copy = tempdir().unwrap();
    crash_copy(dir.path(), copy.path());
    drop(store);
    assert_eq!(sound(copy.path()).pending, 3, "1, the gap and 3: what failed does not count");
    drop(open(copy.path()));
    let log = log_of(copy.path());
    let decisions = log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision);
    let numbers: Vec<_> = decisions.map(|leaf| leaf.id.n).collect();
    assert_eq!((numbers, gaps(&log)), (vec![1, 4], vec![(2, 2)]));
}

#[tokio::test]
async fn short_and_interrupted_writes_lose_nothing() {
    let disks = two_disks();
    disks.faults.short_writes.store(true, Ordering::SeqCst);
    let store = Store::open(disks.options.clone()).unwrap();
    for n in 1..=20 {
        append(&store, n).await;
    }
    assert_eq!(store.ledger().state().failed_segments, 0);
    drop(store);
    assert_eq!(sound(disks.data.path()).entries, 20);
}

#[tokio::test]
async fn a_full_disk_shows_while_a_whole_segment_is_left() {
    let dir = tempdir().unwrap();
    let disk = FaultyDisk::default();
    let faults = Arc::clone(&disk.0);
    let mut options = options(dir.path());
    options.disk = Arc::new(disk);
    let store = Store::open(options).unwrap();
    append(&store, 1).await;
    faults.no_room.store(true, Ordering::SeqCst);
    // The first segment fills up, the spare takes over, and no other can be made.
    let mut n = 2;
    while store.ledger().health().is_ok() {
        append(&store, n).await;
        n += 1;
    }
    assert_eq!(codes(&store), ["spool_no_room"]);
    let left = (256 << 10) / store.stats().bytes.div_ceil(store.stats().entries) / 2;
    for more in 0..left {
        append(&store, n + more).await;
    }
    faults.no_room.store(false, Ordering::SeqCst);
    for more in left..left + 2 {
        append(&store, n + more).await;
    }
    assert!(store.ledger().health().is_ok());
    drop(store);
    assert_eq!(sound(dir.path()).entries, n + left + 1);
}

#[tokio::test]
async fn the_spool_stops_at_its_limit_and_goes_on_when_the_database_does() {
    let dir = tempdir().unwrap();
    let mut small = lazy(dir.path());
    (small.segment_bytes, small.spool_bytes_max) = (8 << 10, 1);
    let store = Store::open(small).unwrap();
    let mut taken = 0;
    let refused = loop {
        let (draft, body) = decision(taken + 1);
        match store.ledger().append(draft, body).await {
            Ok(_) => taken += 1,
            Err(error) => break error.to_string(),
        }
        assert!(taken < 1_000, "a limit of three segments");
    };
    assert!(refused.contains("spool_bytes_max"), "{refused}");
    assert!(codes(&store).contains(&"spool_80"), "{:?}", codes(&store));
    settle(&store);
    append(&store, taken + 2).await;
    assert!(!codes(&store).contains(&"entries_lost"));
    drop(store);
    let report = sound(dir.path());
    assert_eq!((report.kinds["decision"], report.kinds["coverage.gap"]), (taken + 1, 1));
}

#[tokio::test]
async fn a_clock_that_goes_back_is_flagged_and_never_fatal() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(HandClock::default());
    let mut with_clock = options(dir.path());
    with_clock.clock = Arc::clone(&clock) as _;
    let store = Store::open(with_clock).unwrap();
    let ten_years = 10 * 365 * 86_400_000;
    for now in [3_600_000, 0, 3_600_000, ten_years, 3_600_001] {
        clock.0.store(now, Ordering::Relaxed);
        append(&store, now).await;
    }
    assert_eq!(store.ledger().state().clock_behind, 2);
    drop(store);
    let log = log_of(dir.path());
    let seen: Vec<_> = log
        .iter()
        .map(|leaf| (leaf.ts_ms, leaf.draft.public.get("clock_ms").and_then(Value::as_u64)))
        .collect();
    let hour = 3_600_000;
    let expected = [
        (hour, None),
        (hour, Some(0)),
        (hour, None),
        (ten_years, None),
        (ten_years, Some(3_600_001)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_segment_is_removed_by_the_disk_that_made_it() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("segment");
    drop(FileDisk.create(&path, 4_096).unwrap());
    FileDisk.remove(&path).unwrap();
    assert!(!path.exists() && FileDisk.remove(&path).is_err());
}

#[tokio::test]
async fn a_gap_that_is_known_at_the_end_is_stated_then() {
    let dir = tempdir().unwrap();
    let disk = FaultyDisk::default();
    let faults = Arc::clone(&disk.0);
    let mut options = options(dir.path());
    options.disk = Arc::new(disk);
    let store = Store::open(options).unwrap();
    append(&store, 1).await;
    faults.syncs_to_fail.store(2, Ordering::SeqCst);
    let (draft, body) = decision(2);
    store.ledger().append(draft, body).await.unwrap_err();
    drop(store);
    assert_eq!(gaps(&log_of(dir.path())), [(2, 2)]);
}
