//! What is left after a crash is exactly what was acknowledged, and what is missing is named.

use crate::support::*;
use conclave_ledger::{Body, CompactRange, Draft, Gap, Kind, Leaf, leaf_hash};
use conclave_store::{Store, StoreOptions};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::tempdir;

fn numbers(log: &[Leaf], kind: &Kind) -> Vec<u64> {
    log.iter().filter(|leaf| leaf.draft.kind == *kind).map(|leaf| leaf.id.n).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_taken_at_any_time_holds_everything_acknowledged_before_once() {
    let dir = tempdir().unwrap();
    let mut small = options(dir.path());
    small.segment_bytes = 16 << 10;
    let store = Arc::new(Store::open(small).unwrap());
    let mut acknowledged = BTreeSet::new();
    for round in 0..6 {
        for n in 0..40 {
            acknowledged.insert(turn(&store, round * 100 + n).await.id);
        }
        let copy = tempdir().unwrap();
        // The spool is copied before SQLite's files: what is drained and put away meanwhile is there.
        let (from, to) = (dir.path(), copy.path());
        crash_copy(&from.join("spool"), &to.join("spool"));
        for file in KEPT {
            let _ = std::fs::copy(from.join(file), to.join(file));
        }
        for _ in 0..2 {
            drop(open(to));
            let log = log_of(to);
            let there: BTreeSet<_> = log.iter().map(|leaf| leaf.id).collect();
            assert_eq!(there.len(), log.len(), "each once");
            assert!(acknowledged.is_subset(&there), "round {round}");
            assert!(numbers(&log, &Kind::CoverageGap).is_empty());
        }
    }
}

/// A directory whose spool holds some entries and whose database holds none; returns the frames'
/// ends.
async fn undrained(dir: &Path, entries: u64) -> Vec<u64> {
    let running = tempdir().unwrap();
    let store = Store::open(lazy(running.path())).unwrap();
    let mut ends = Vec::new();
    for n in 1..=entries {
        append(&store, n).await;
        ends.push(store.stats().bytes);
    }
    crash_copy(running.path(), dir);
    drop(store);
    ends
}

fn spool_file(dir: &Path) -> File {
    let path = segments(dir).into_iter().next().unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[tokio::test]
async fn a_tail_torn_at_any_byte_costs_the_last_entry_and_nothing_else() {
    let source = tempdir().unwrap();
    let ends = undrained(source.path(), 3).await;
    let blank = vec![0; 8 << 10];
    for cut in (ends[1]..ends[2]).step_by(29).chain([ends[2] - 1]) {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        // As the crash leaves it in which nobody was told of the last entry.
        std::fs::remove_file(dir.path().join("acknowledged")).unwrap();
        spool_file(dir.path()).write_all_at(&blank, cut).unwrap();
        let report = sound(dir.path());
        assert_eq!(report.pending, 2, "a torn tail is no finding");
        let store = open(dir.path());
        settle(&store);
        append(&store, 9).await;
        drop(store);
        let log = log_of(dir.path());
        // Numbers go on after the last whole frame: first the deliveries nobody knows about.
        assert_eq!(numbers(&log, &Kind::Delivery), [3, 4], "cut at {cut}");
        assert_eq!(numbers(&log, &Kind::Decision), [1, 2, 5], "cut at {cut}");
        assert!(numbers(&log, &Kind::CoverageGap).is_empty());
    }
}

/// The same, where somebody was told: then it was no crash, and is named before and after the next start.
#[tokio::test]
async fn a_tail_that_was_acknowledged_and_is_gone_is_named_and_stated() {
    let source = tempdir().unwrap();
    let ends = undrained(source.path(), 3).await;
    let blank = vec![0; 8 << 10];
    for (cut, left) in [(ends[2] - 1, 2), (ends[0] + 7, 1), (0, 0)] {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        spool_file(dir.path()).write_all_at(&blank, cut).unwrap();
        let bad = check(dir.path()).first_bad.unwrap();
        let said = format!("entries {} to 3 of this replica were acknowledged", left + 1);
        assert!(bad.problem.contains(&said), "{bad:?}");
        let store = open(dir.path());
        settle(&store);
        append(&store, 9).await;
        drop(store);
        let log = log_of(dir.path());
        let gaps = log.iter().filter(|leaf| leaf.draft.kind == Kind::CoverageGap);
        let gaps: Vec<_> = gaps.map(|leaf| Gap::from_public(&leaf.draft.public).unwrap()).collect();
        let [gap] = &gaps[..] else { panic!("{gaps:?}") };
        assert_eq!((gap.from, gap.to, &*gap.reason), (left + 1, 3, "spool_cut"));
        assert_eq!(numbers(&log, &Kind::CoverageGap), [4], "no number is given twice");
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_named_copied_and_costs_one_entry() {
    let source = tempdir().unwrap();
    let ends = undrained(source.path(), 5).await;
    for at in [ends[1], ends[1] + 5, ends[1] + 39, ends[1] + 200, ends[2] - 1] {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        spool_file(dir.path()).write_all_at(&[0xee; 1], at).unwrap();
        assert!(!check(dir.path()).ok, "a hole nobody has stated is a finding");
        drop(open(dir.path()));
        let log = log_of(dir.path());
        assert_eq!(numbers(&log, &Kind::Decision), [1, 2, 4, 5], "damage at {at}");
        let gap = log.iter().find(|leaf| leaf.draft.kind == Kind::CoverageGap).unwrap();
        let gap = Gap::from_public(&gap.draft.public).unwrap();
        assert_eq!((gap.from, gap.to, &*gap.reason), (3, 3, "spool_damaged"));
        assert_eq!(std::fs::read_dir(dir.path().join("quarantine")).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn zeroed_blocks_are_damage_too() {
    let dir = tempdir().unwrap();
    let ends = undrained(dir.path(), 6).await;
    let blank = vec![0; usize::try_from(ends[3] - ends[1]).unwrap()];
    spool_file(dir.path()).write_all_at(&blank, ends[1]).unwrap();
    drop(open(dir.path()));
    let log = log_of(dir.path());
    assert_eq!(numbers(&log, &Kind::Decision), [1, 2, 5, 6]);
    assert_eq!(numbers(&log, &Kind::CoverageGap).len(), 1);
}

#[tokio::test]
async fn a_decision_without_delivery_is_marked_unknown_once() {
    let dir = tempdir().unwrap();
    let running = tempdir().unwrap();
    let store = Store::open(lazy(running.path())).unwrap();
    let delivered = append(&store, 1).await;
    store.ledger().append(delivery(1, delivered.id), Body::empty()).await.unwrap();
    let undelivered = append(&store, 2).await;
    crash_copy(running.path(), dir.path());
    drop(store);
    for _ in 0..3 {
        let store = open(dir.path());
        settle(&store);
        drop(store);
        let log = log_of(dir.path());
        let unknown: Vec<_> = log
            .iter()
            .filter(|leaf| leaf.draft.public.get("status") == Some(&"unknown".into()))
            .collect();
        assert_eq!(unknown.len(), 1);
        let (decision, unknown) = (&log[2].draft, &unknown[0].draft);
        assert_eq!((&unknown.kind, unknown.parent), (&Kind::Delivery, Some(undelivered.id)));
        let of = |draft: &Draft| {
            (
                draft.audit,
                draft.tenant,
                draft.subject,
                draft.session,
                draft.policy,
                draft.directives,
            )
        };
        assert_eq!(of(unknown), of(decision));
    }
}

#[tokio::test]
async fn numbers_go_on_after_a_restart() {
    let dir = tempdir().unwrap();
    for round in 1..=3 {
        let store = open(dir.path());
        assert_eq!(store.is_new(), round == 1);
        let first = append(&store, round).await;
        store.ledger().append(delivery(round, first.id), Body::empty()).await.unwrap();
        assert_eq!(first.id.n, round * 2 - 1);
    }
    assert_eq!(sound(dir.path()).entries, 6);
}

#[tokio::test]
async fn a_lost_identity_begins_an_epoch_and_says_so() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let before = turn(&store, 1).await;
    drop(store);
    std::fs::remove_file(dir.path().join("replica")).unwrap();
    let store = open(dir.path());
    let after = turn(&store, 2).await;
    drop(store);
    assert_eq!((after.id.replica, after.id.epoch), (before.id.replica, before.id.epoch + 1));
    let log = log_of(dir.path());
    let epoch = log.iter().find(|leaf| leaf.draft.kind.as_str() == "replica.epoch").unwrap();
    assert_eq!(epoch.draft.public.get("last_n"), Some(&2_u64.into()));
}

#[tokio::test]
async fn a_store_that_fails_delays_nobody_and_catches_up() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    turn(&store, 1).await;
    settle(&store);
    let other = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    other.execute_batch("ALTER TABLE log_entry RENAME TO hidden").unwrap();
    for n in 2..=10 {
        turn(&store, n).await;
    }
    let archive = store.archive();
    unsettled(&store, "the database does not take entries");
    let sick = archive.health().await.unwrap_err().to_string();
    assert!(sick.contains("log_entry"), "{sick}");
    assert!(store.ledger().health().is_ok(), "the spool goes on taking entries");
    other.execute_batch("ALTER TABLE hidden RENAME TO log_entry").unwrap();
    drop(other);
    settle(&store);
    archive.health().await.unwrap();
    // That it works again is noted after the entries were taken: the next turn comes after the note.
    turn(&store, 11).await;
    settle(&store);
    drop(store);
    let report = sound(dir.path());
    assert_eq!(report.kinds["decision"], 11);
    assert_eq!((report.kinds["store.down"], report.kinds["store.up"]), (1, 1));
}

#[tokio::test]
async fn a_segment_that_somebody_removed_is_a_stated_gap() {
    let source = tempdir().unwrap();
    let mut small = lazy(source.path());
    small.segment_bytes = 4 << 10;
    let store = Store::open(small).unwrap();
    for n in 1..=20 {
        append(&store, n).await;
    }
    let dir = tempdir().unwrap();
    crash_copy(source.path(), dir.path());
    drop(store);
    std::fs::remove_file(&segments(dir.path())[1]).unwrap();
    drop(open(dir.path()));
    let report = sound(dir.path());
    assert_eq!(report.kinds["coverage.gap"], 1);
    assert!(report.kinds["decision"] < 20);
}

#[tokio::test]
async fn an_older_database_is_made_whole_while_running() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    turn(&store, 1).await;
    settle(&store);
    let other = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    let empty = "DELETE FROM log_entry; DELETE FROM log_body; DELETE FROM log_head;
                 DELETE FROM log_replica; DELETE FROM log_batch; DELETE FROM log_tile;
                 DELETE FROM log_checkpoint; DELETE FROM response_audit_log;
                 DELETE FROM ai_usage_events; ALTER TABLE log_body RENAME TO hidden";
    other.execute_batch(empty).unwrap();
    turn(&store, 2).await;
    unsettled(&store, "does not take entries");
    other.execute_batch("ALTER TABLE hidden RENAME TO log_body").unwrap();
    settle(&store);
    drop(other);
    drop(store);
    let report = sound(dir.path());
    assert_eq!(report.kinds["decision"], 2);
    let first: Vec<_> = log_of(dir.path()).iter().map(|leaf| leaf.id.n).take(2).collect();
    assert_eq!(first, [1, 2], "what the database had lost stands where it stood");
}

#[tokio::test]
async fn a_damaged_head_stops_the_start_with_advice() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    turn(&store, 1).await;
    drop(store);
    let conn = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    conn.execute("UPDATE log_head SET size = 7", []).unwrap();
    drop(conn);
    let sentence = Store::open(options(dir.path())).err().unwrap().to_string();
    assert!(sentence.contains("is damaged") && sentence.contains("ledger verify"), "{sentence}");
}

const KILLED_DIR: &str = "CONCLAVE_TEST_KILLED_DIR";

/// Not a test of its own: what the process that is killed runs, telling which entries are durable.
#[test]
fn child_that_appends_until_it_is_killed() {
    let Ok(dir) = std::env::var(KILLED_DIR) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut small = options(Path::new(&dir));
    (small.segment_bytes, small.drain_entries_max) = (16 << 10, 20);
    small.drain_linger = std::time::Duration::from_millis(2);
    small.entropy = Arc::new(CountingEntropy::from(u64::from(std::process::id()) << 20));
    let store = Arc::new(Store::open(small).unwrap());
    let base = u64::from(std::process::id()) << 20;
    let producers: Vec<_> = (0..4_u64)
        .map(|producer| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                for n in 0.. {
                    let appended = turn(&store, base + producer * 100_000 + n).await;
                    println!("\ndurable {}", appended.id);
                }
            })
        })
        .collect();
    for producer in producers {
        runtime.block_on(producer).unwrap();
    }
}

#[test]
fn kill_after_kill_loses_nothing_that_was_acknowledged() {
    let dir = tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 1..=6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_appends_until_it_is_killed", "--nocapture"])
            .env(KILLED_DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let durable =
            lines.filter_map(|line| line.unwrap().strip_prefix("durable ").map(str::to_owned));
        acknowledged.extend(durable.take(round * 30));
        child.kill().unwrap();
        child.wait().unwrap();
        let report = sound(dir.path());
        assert!(report.entries + report.pending >= acknowledged.len() as u64, "before recovery");
    }
    drop(open(dir.path()));
    let log = log_of(dir.path());
    let there: BTreeSet<String> = log.iter().map(|leaf| leaf.id.to_string()).collect();
    assert_eq!(there.len(), log.len(), "each once");
    assert!(acknowledged.is_subset(&there));
    assert!(numbers(&log, &Kind::CoverageGap).is_empty());
    assert_eq!(numbers(&log, &Kind::Delivery).len(), numbers(&log, &Kind::Decision).len());
}

/// What a crash leaves beside the spool.
const KEPT: [&str; 10] = [
    "ledger.db",
    "ledger.db-wal",
    "replica",
    "ledger.key",
    "root.key",
    "keys.db",
    "keys.db-wal",
    "pepper",
    "ops.db",
    "ops.db-wal",
];

/// What a run of the property test does next.
#[derive(Clone, Debug)]
enum Step {
    Turns(u64),
    Soon(u64),
    Crash,
    Restart,
    Settle,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..12_u64).prop_map(Step::Turns),
        (1..12_u64).prop_map(Step::Soon),
        Just(Step::Crash),
        Just(Step::Restart),
        Just(Step::Settle),
    ]
}

fn options_for(dir: &Path, run: u64) -> StoreOptions {
    let mut options = options(dir);
    options.entropy = Arc::new(CountingEntropy::from(run * 1_000));
    (options.segment_bytes, options.drain_entries_max) = (6 << 10, 7);
    options
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever happens, what was acknowledged is there once, in order, and the root is the naive
    /// one.
    #[test]
    fn any_history_gives_a_sound_log(steps in prop::collection::vec(any_step(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut dir = tempdir().unwrap();
        let mut store = Some(Store::open(options_for(dir.path(), 0)).unwrap());
        let (mut acknowledged, mut n) = (Vec::new(), 0);
        for (run, step) in (1..).zip(steps) {
            let open = store.as_ref().unwrap();
            match step {
                Step::Turns(count) => for _ in 0..count {
                    n += 1;
                    acknowledged.push(runtime.block_on(turn(open, n)).id);
                },
                Step::Soon(count) => for _ in 0..count {
                    open.ledger().append_soon(refusal(400, 1), Body::empty());
                },
                Step::Crash => {
                    let copy = tempdir().unwrap();
                    open.settle(std::time::Duration::from_secs(20)).unwrap();
                    for extra in 0..3 {
                        acknowledged.push(runtime.block_on(append(open, 10_000 * run + extra)).id);
                    }
                    crash_copy(&dir.path().join("spool"), &copy.path().join("spool"));
                    for file in KEPT {
                        let _ = std::fs::copy(dir.path().join(file), copy.path().join(file));
                    }
                    drop(store.take());
                    dir = copy;
                    store = Some(Store::open(options_for(dir.path(), run)).unwrap());
                }
                Step::Restart => {
                    drop(store.take());
                    store = Some(Store::open(options_for(dir.path(), run)).unwrap());
                }
                Step::Settle => settle(open),
            }
        }
        drop(store);
        let log = log_of(dir.path());
        let there: Vec<_> = log.iter().map(|leaf| leaf.id).collect();
        prop_assert!(there.windows(2).all(|pair| pair[0].n + 1 == pair[1].n), "contiguous");
        let there: BTreeSet<_> = there.into_iter().collect();
        prop_assert!(acknowledged.iter().all(|id| there.contains(id)));
        let mut range = CompactRange::new();
        log.iter().for_each(|leaf| range.append(leaf_hash(&leaf.encode())));
        let root: String = range.root().iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(root, sound(dir.path()).root);
    }
}
