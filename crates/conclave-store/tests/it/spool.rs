//! Group commit, order, back-pressure and failing disks.

use crate::support::*;
use conclave_ledger::{Body, Draft, Gap, Kind, leaf_hash};
use conclave_store::Store;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::tempdir;

#[tokio::test]
async fn what_was_acknowledged_is_in_the_log_as_it_was_acknowledged() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    assert!(store.is_new());
    let mut acknowledged = Vec::new();
    for n in 1..=20 {
        acknowledged.push(append(&store, n).await);
    }
    store.shutdown();
    let log = log_of(dir.path());
    assert_eq!(log.len(), 20);
    for (n, (leaf, appended)) in (1..).zip(log.iter().zip(&acknowledged)) {
        assert_eq!((leaf.id, leaf.id.n), (appended.id, n));
        assert_eq!(leaf_hash(&leaf.encode()), appended.leaf_hash);
    }
    assert_eq!(segments(dir.path()), Vec::<std::path::PathBuf>::new(), "all drained");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn producers_share_syncs() {
    let dir = tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let producers = (0..64).map(|producer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0..10 {
                append(&store, producer * 10 + n).await;
            }
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await.unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats.entries, 640);
    assert!(stats.syncs < 320, "{} syncs for 640 entries", stats.syncs);
    store.shutdown();
    assert_eq!(sound(dir.path()).kinds["decision"], 640);
}

#[tokio::test]
async fn an_entry_nobody_waits_for_rides_with_the_next_or_goes_alone_after_a_while() {
    let dir = tempdir().unwrap();
    let mut options = options(dir.path());
    options.soon = Duration::from_secs(3_600);
    let store = Store::open(options).unwrap();
    for count in 1..=5 {
        store.ledger().append_soon(refusal(401, count), Body::empty());
    }
    assert_eq!(store.stats().syncs, 0, "no sync for their sake");
    append(&store, 1).await;
    assert_eq!((store.stats().entries, store.stats().syncs), (6, 1));
    drop(store);

    let store = open(dir.path());
    settle(&store);
    let before = store.stats().entries;
    store.ledger().append_soon(refusal(429, 1), Body::empty());
    settle(&store);
    assert_eq!(store.stats().entries, before + 1);
    drop(store);
    let report = sound(dir.path());
    assert_eq!((report.refused["401"], report.refused["429"]), (15, 1));
    let kinds: Vec<_> = log_of(dir.path()).into_iter().map(|leaf| leaf.draft.kind).collect();
    assert_eq!(kinds[5], Kind::Decision, "in the order in which they came");
}

#[tokio::test]
async fn time_never_goes_back_in_the_log() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(HandClock::default());
    let mut with_clock = options(dir.path());
    with_clock.clock = Arc::clone(&clock) as _;
    let store = Store::open(with_clock.clone()).unwrap();
    for now in [1_000, 5_000, 2_000, 6_000] {
        clock.0.store(now, Ordering::Relaxed);
        append(&store, now).await;
    }
    drop(store);
    clock.0.store(10, Ordering::Relaxed);
    let store = Store::open(with_clock).unwrap();
    append(&store, 10).await;
    drop(store);
    let mut log = log_of(dir.path());
    log.retain(|leaf| leaf.draft.kind == Kind::Decision);
    let times: Vec<_> = log.iter().map(|leaf| leaf.ts_ms).collect();
    assert_eq!(times, [1_000, 5_000, 5_000, 6_000, 6_000]);
}

#[tokio::test]
async fn what_could_not_be_read_back_is_refused() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let ledger = store.ledger();
    let mut large = Body::empty();
    large.push("request", [0; 32], vec![b'x'; 300 << 10]);
    let error = ledger.append(decision(1).0, large).await.unwrap_err();
    assert!(error.to_string().contains("larger than a spool segment"), "{error}");
    let nameless = Draft::new(Kind::Other(String::new()), 0);
    assert!(ledger.append(nameless.clone(), Body::empty()).await.is_err());
    ledger.append_soon(nameless, Body::empty());
    assert_eq!(ledger.dropped(), 1);
    assert_eq!(append(&store, 2).await.id.n, 1, "what was refused has no number");
    drop(store);
    assert_eq!(sound(dir.path()).entries, 1);
}

#[tokio::test]
async fn a_full_queue_turns_away_who_does_not_wait_and_holds_up_who_does() {
    let dir = tempdir().unwrap();
    let mut small = options(dir.path());
    (small.queue_bytes, small.soon) = (8 << 10, Duration::from_secs(3_600));
    let store = Store::open(small).unwrap();
    let ledger = store.ledger();
    for _ in 0..20 {
        ledger.append_soon(refusal(401, 1), Body::empty());
    }
    assert_eq!(ledger.dropped(), 12);
    let waiting = append(&store, 1);
    let hurried = tokio::task::spawn_blocking({
        let archive = store.archive();
        let handle = tokio::runtime::Handle::current();
        move || handle.block_on(archive.tally(None, 0)).unwrap()
    });
    // The reader makes the writer take what waits, which makes room for the decision.
    waiting.await;
    assert!(hurried.await.unwrap().entries >= 8);
    drop(store);
    assert_eq!(sound(dir.path()).kinds["request.refused"], 8);
}

#[tokio::test]
async fn segments_follow_each_other() {
    let dir = tempdir().unwrap();
    let mut lazy = lazy(dir.path());
    lazy.segment_bytes = 16 << 10;
    let store = Store::open(lazy).unwrap();
    for n in 1..=100 {
        append(&store, n).await;
    }
    let count = segments(dir.path()).len();
    assert!(count > 4, "{count} segments");
    settle(&store);
    let left = segments(dir.path()).len();
    assert!(left <= 2, "{left} segments after the drain: the current one and a spare");
    drop(store);
    assert_eq!(sound(dir.path()).entries, 100);
}

fn faulty(dir: &std::path::Path) -> (Store, Arc<Faults>) {
    let disk = FaultyDisk::default();
    let faults = Arc::clone(&disk.0);
    let mut options = options(dir);
    options.disk = Arc::new(disk);
    (Store::open(options).unwrap(), faults)
}

#[tokio::test]
async fn one_failed_sync_or_write_loses_nothing() {
    for kind in ["sync", "write"] {
        let dir = tempdir().unwrap();
        let (store, faults) = faulty(dir.path());
        append(&store, 1).await;
        let fail = if kind == "sync" { &faults.syncs_to_fail } else { &faults.writes_to_fail };
        fail.store(1, Ordering::SeqCst);
        append(&store, 2).await;
        append(&store, 3).await;
        assert_eq!(store.ledger().state().failed_segments, 1);
        assert!(store.ledger().health().is_ok());
        // A crash now leaves the failed segment behind, with whatever reached it.
        let copy = tempdir().unwrap();
        crash_copy(dir.path(), copy.path());
        drop(store);
        drop(open(copy.path()));
        for dir in [dir.path(), copy.path()] {
            let report = sound(dir);
            assert_eq!(report.kinds["decision"], 3, "{kind}");
            assert_eq!(report.kinds.get("coverage.gap"), None, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_disk_that_always_fails_is_reported_and_the_gap_is_named_later() {
    let dir = tempdir().unwrap();
    let (store, faults) = faulty(dir.path());
    let ledger = store.ledger();
    append(&store, 1).await;
    faults.syncs_to_fail.store(u64::MAX, Ordering::SeqCst);
    for n in 2..=3 {
        let (draft, body) = decision(n);
        let error = ledger.append(draft, body).await.unwrap_err();
        assert!(error.to_string().contains("the spool cannot be written"), "{error}");
        assert!(ledger.health().is_err());
    }
    faults.syncs_to_fail.store(0, Ordering::SeqCst);
    append(&store, 4).await;
    assert!(ledger.health().is_ok());
    drop(store);
    let log = log_of(dir.path());
    let gaps: Vec<_> = log.iter().filter(|leaf| leaf.draft.kind == Kind::CoverageGap).collect();
    assert_eq!(gaps.len(), 1);
    let gap = Gap::from_public(&gaps[0].draft.public).unwrap();
    // The first is the entry that failed; the second consumed the numbers of its own gap entry too.
    assert_eq!((gap.from, gap.to + 1), (2, gaps[0].id.n));
    assert_eq!(gap.reason, "spool_failed");
    assert_eq!(segments(dir.path()).len(), 0, "failed segments are not left lying about");
}

#[tokio::test]
async fn a_disk_that_recovers_is_found_without_a_new_entry() {
    let dir = tempdir().unwrap();
    let (store, faults) = faulty(dir.path());
    let ledger = store.ledger();
    faults.syncs_to_fail.store(2, Ordering::SeqCst);
    let (draft, body) = decision(1);
    assert!(ledger.append(draft, body).await.is_err());
    assert!(ledger.health().is_err());
    // The writer tries again by itself, once a second.
    faults.wait_for_syncs(1);
    drop(store);
    let report = sound(dir.path());
    assert_eq!((report.entries, report.kinds["coverage.gap"]), (1, 1));
}

#[test]
fn a_spool_that_cannot_be_made_stops_the_start() {
    let dir = tempdir().unwrap();
    let disk = FaultyDisk::default();
    disk.0.no_room.store(true, Ordering::SeqCst);
    let mut options = options(dir.path());
    options.disk = Arc::new(disk);
    let sentence = Store::open(options).err().unwrap().to_string();
    assert!(sentence.starts_with("cannot prepare the spool in"), "{sentence}");
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let (ledger, archive) = (store.ledger(), store.archive());
    append(&store, 1).await;
    store.shutdown();
    store.shutdown();
    let (draft, body) = decision(2);
    let error = ledger.append(draft, body).await.unwrap_err();
    assert!(error.to_string().contains("shut down"), "{error}");
    ledger.append_soon(refusal(400, 1), Body::empty());
    assert_eq!(
        archive.find(conclave_ledger::tenant_number("acme"), audit(1)).await.unwrap().len(),
        1
    );
    drop(open(dir.path()));
}
