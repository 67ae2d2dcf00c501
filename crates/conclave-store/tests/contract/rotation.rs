//! Replacing the keys that wrap others, where several replicas share them.

use crate::forgetting::{named, number, speak, tenant, two_replicas, user, words};
use crate::place::Place;
use crate::support::*;
use conclave_engine::ReceiptState;
use conclave_ledger::{Kind, VerifierKey, tenant_number};
use conclave_store::{DatabaseUrl, Inspection, RootKey, Store, StoreOptions, inspect_database};
use conclave_testkit::Cluster;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const DAY_MS: u64 = 24 * 3600 * 1000;

fn root_of(place: &Place, replica: usize) -> Vec<u8> {
    std::fs::read(place.dir(replica).join("root.key")).unwrap()
}

/// Options of a later start, with other random numbers than the first one had.
fn again(place: &Place, replica: usize, start: u64) -> StoreOptions {
    let entropy = Arc::new(CountingEntropy::from(1_000_000_000 * start));
    StoreOptions { entropy, ..place.options(replica) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_replica_replaces_the_keys_and_the_others_go_over() {
    let place = Place::postgres();
    let (first, second) = two_replicas(&place);
    let ana = speak(&first, "ana", 1).await;
    let ben = speak(&second, "ben", 2).await;
    settle(&second);
    let old = root_of(&place, 0);
    assert_eq!(first.rotate_keys(None).unwrap(), 2);
    // The other one has not looked yet, or has: either way people are who they were.
    assert_eq!(named(&second, "ana").await.subject, Some(ana));
    let zoe = speak(&second, "zoe", 3).await;
    settle(&second);
    assert_eq!(named(&first, "zoe").await.subject, Some(zoe), "found under the new hash");
    assert_eq!(words(&first, 3).await.unwrap(), "unmistakable words of zoe");
    assert_ne!(root_of(&place, 0), old);
    assert_eq!(root_of(&place, 1), root_of(&place, 0), "handed over");
    assert_eq!(first.replicas_behind().unwrap(), [[0; 8]; 0]);
    assert_eq!(number(&place, "SELECT count(*) FROM root_handover"), 0, "not needed any more");
    // Twice in a row, the second time by the other one, and somebody is erased right after.
    assert_eq!(second.rotate_keys(None).unwrap(), 3);
    let receipt = first.subjects().erase(&tenant(), &user("ben")).await.unwrap().unwrap();
    assert_eq!((receipt.subject, receipt.bodies), (ben, 1), "nobody is taken for a stranger");
    drop((first, second));
    for replica in 0..2 {
        let store = Store::open(again(&place, replica, 2)).unwrap();
        assert_eq!(words(&store, 1).await.unwrap(), "unmistakable words of ana");
        assert_eq!(named(&store, "zoe").await.subject, Some(zoe));
    }
    let rotations = place.log().iter().filter(|leaf| leaf.draft.kind == Kind::KeyEpoch).count();
    assert_eq!(rotations, 2);
    assert_eq!(place.sound().opened, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_was_away_brings_its_waiting_keys_over_two_rotations() {
    let place = Place::postgres();
    let (first, second) = two_replicas(&place);
    speak(&first, "ana", 1).await;
    speak(&second, "ana", 2).await;
    settle(&first);
    settle(&second);
    place.cluster.as_ref().unwrap().stop_at_once().unwrap();
    let zoe = speak(&second, "zoe", 3).await;
    drop(second);
    place.cluster.as_ref().unwrap().start_again().unwrap();
    settle(&first);
    assert_eq!(first.rotate_keys(None).unwrap(), 1, "the other one's newcomer is not known here");
    let behind = first.replicas_behind().unwrap();
    assert_eq!(behind.len(), 1, "the other one has the old root key still");
    assert_eq!(first.rotate_keys(None).unwrap(), 1);
    assert_eq!(number(&place, "SELECT count(*) FROM root_handover"), 2);
    let second = Store::open(again(&place, 1, 2)).unwrap();
    assert_eq!(named(&second, "zoe").await.subject, Some(zoe));
    settle(&second);
    assert_eq!(words(&first, 3).await.unwrap(), "unmistakable words of zoe");
    assert_eq!(first.replicas_behind().unwrap(), [[0; 8]; 0]);
    assert_eq!(root_of(&place, 1), root_of(&place, 0));
    // A key that the root key wraps is taken along by the next rotation.
    assert_eq!(first.rotate_keys(None).unwrap(), 2);
    assert_eq!(words(&second, 3).await.unwrap(), "unmistakable words of zoe");
    drop((first, second));
    assert_eq!(place.sound().opened, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_that_was_interrupted_is_taken_back_or_finished_at_the_next_start() {
    let place = Place::postgres();
    let (store, other) = two_replicas(&place);
    let ana = speak(&store, "ana", 1).await;
    drop((store, other));
    let dir = place.dir(0);
    let before = tempfile::tempdir().unwrap();
    crash_copy(&dir, before.path());
    // Prepared and not committed.
    std::fs::write(dir.join("root.key.next"), "ab".repeat(32)).unwrap();
    let store = Store::open(again(&place, 0, 2)).unwrap();
    assert!(!dir.join("root.key.next").exists());
    assert_eq!(named(&store, "ana").await.subject, Some(ana));
    store.rotate_keys(None).unwrap();
    let new = root_of(&place, 0);
    drop(store);
    // Committed, and nothing of it noted in the directory.
    for name in ["root.key", "keys.db"] {
        std::fs::copy(before.path().join(name), dir.join(name)).unwrap();
    }
    for beside in ["keys.db-wal", "keys.db-shm"] {
        let _ = std::fs::remove_file(dir.join(beside));
    }
    let store = Store::open(again(&place, 0, 4)).unwrap();
    assert_eq!(root_of(&place, 0), new);
    assert_eq!(words(&store, 1).await.unwrap(), "unmistakable words of ana");
    drop(store);
    place.sound();
    // The other one comes back only when the way to the new key is not kept any more.
    let cluster = place.cluster.as_ref().unwrap();
    cluster.sql("fresh0", "DELETE FROM root_handover").unwrap();
    let sentence = Store::open(again(&place, 1, 5)).err().unwrap().to_string();
    assert!(sentence.contains("copy the file `root.key`"), "{sentence}");
    std::fs::copy(dir.join("root.key"), place.dir(1).join("root.key")).unwrap();
    let store = Store::open(again(&place, 1, 6)).unwrap();
    assert_eq!(words(&store, 1).await.unwrap(), "unmistakable words of ana");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_key_kept_elsewhere_is_replaced_while_replicas_run() {
    let place = Place::postgres();
    let key = |digit: &str| Some(RootKey::parse(&digit.repeat(64)).unwrap());
    let with =
        |replica, start, root_key| StoreOptions { root_key, ..again(&place, replica, start) };
    let first = Store::open(with(0, 1, key("a"))).unwrap();
    let second = Store::open(with(1, 2, key("a"))).unwrap();
    let ana = speak(&first, "ana", 1).await;
    assert_eq!(first.rotate_keys(key("b")).unwrap(), 1);
    assert_eq!(named(&second, "ana").await.subject, Some(ana), "goes over in memory");
    drop((first, second));
    assert!(!place.dir(0).join("root.key").exists());
    // The old one leads to the new one as long as it is handed over; the new one is better.
    let second = Store::open(with(1, 3, key("a"))).unwrap();
    assert_eq!(named(&second, "ana").await.subject, Some(ana));
    assert_eq!(second.replicas_behind().unwrap().len(), 1, "configured with the old one");
    drop(second);
    let second = Store::open(with(1, 4, key("b"))).unwrap();
    assert_eq!(named(&second, "ana").await.subject, Some(ana));
    assert_eq!(second.replicas_behind().unwrap().len(), 0);
    drop(second);
    let sentence = Store::open(with(1, 5, key("a"))).err().unwrap().to_string();
    assert!(sentence.contains("all replicas need the same"), "{sentence}");
}

/// Every file under a directory in which these bytes stand.
fn grep(dir: &Path, wanted: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            grep(&path, wanted, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(wanted.len()).any(|window| window == wanted)
        {
            found.push(path.display().to_string());
        }
    }
}

/// What `ledger verify` says of a copy, with a root key.
fn opened_in(copy: &Cluster, root: &[u8], beside: &Path) -> u64 {
    std::fs::write(beside.join("root.key"), root).unwrap();
    let url = DatabaseUrl::parse(&copy.url("fresh0")).unwrap();
    let report = inspect_database(&url, Some(beside), Inspection::default()).unwrap();
    assert!(report.ok, "{:?}", report.first_bad);
    report.opened
}

/// The statements that put today's keys into a copy.
fn todays_keys(cluster: &Cluster) -> String {
    let mut statements =
        "DELETE FROM vault; DELETE FROM tenant_key; DELETE FROM subject_key".into();
    for table in ["vault", "tenant_key", "subject_key", "root_handover"] {
        let sql = format!(
            "SELECT string_agg(format('INSERT INTO {table} SELECT * FROM \
             json_populate_record(NULL::{table}, %L)', row_to_json(t)), '; ') FROM {table} t"
        );
        let inserts = cluster.sql("fresh0", &sql).unwrap();
        if !inserts.is_empty() {
            statements = format!("{statements}; {inserts}");
        }
    }
    statements
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_cluster_from_before_opens_with_nothing_after_the_keys_were_replaced() {
    let place = Place::postgres();
    let clock = Arc::new(HandClock(1_800_000_000_000.into()));
    let with = |replica, start| StoreOptions {
        clock: clock.clone(),
        steady: passing(&clock),
        ..again(&place, replica, start)
    };
    let first = Store::open(with(0, 1)).unwrap();
    let second = Store::open(with(1, 2)).unwrap();
    speak(&first, "ana", 1).await;
    speak(&second, "ana", 2).await;
    let ben = speak(&second, "ben", 3).await;
    settle(&second);
    settle(&first);
    first.publish().unwrap();
    let proofs = first.proofs();
    let vkey = VerifierKey::parse(&proofs.vkeys().await.unwrap()[0]).unwrap();
    let acme = tenant_number("acme");
    let ReceiptState::Ready(receipt) = proofs.receipt(acme, audit(1)).await.unwrap() else {
        panic!("no receipt");
    };
    drop((first, second));
    let root_before = place.sound().root;
    let entries = place.sound().entries;
    // The cluster with its write-ahead log, and the directory of a replica.
    let cluster = place.cluster.as_ref().unwrap();
    let copy = cluster.copy().unwrap();
    let beside = tempfile::tempdir().unwrap();
    crash_copy(&place.dir(0), beside.path());
    let old_root = root_of(&place, 0);
    assert_eq!(opened_in(&copy, &old_root, beside.path()), 3, "before, it opens");

    let first = Store::open(with(0, 3)).unwrap();
    let second = Store::open(with(1, 4)).unwrap();
    let erased = second.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    assert_eq!((erased.decisions, erased.bodies), (2, 2));
    assert!(!first.rotate_keys_if_due().unwrap(), "not yet");
    clock.0.fetch_add(6 * DAY_MS, Ordering::Relaxed);
    assert!(first.rotate_keys_if_due().unwrap());
    assert!(!second.rotate_keys_if_due().unwrap(), "one of them is enough");
    assert_eq!(named(&second, "ben").await.subject, Some(ben));
    assert_eq!(second.replicas_behind().unwrap(), [[0; 8]; 0]);
    assert_eq!(words(&second, 3).await.unwrap(), "unmistakable words of ben");
    assert_eq!(words(&first, 1).await, None);
    drop((first, second));
    let today = root_of(&place, 1);
    let mut found = Vec::new();
    for replica in 0..2 {
        grep(&place.dir(replica), old_root.trim_ascii(), &mut found);
    }
    grep(&cluster.files(), &hex::decode(old_root.trim_ascii()).unwrap(), &mut found);
    assert_eq!(found, [""; 0], "the old root key is nowhere");

    // The copy with today's root key, and with everything else that is a key today.
    assert_eq!(opened_in(&copy, &today, beside.path()), 0, "today's root key opens nothing of it");
    copy.sql("fresh0", &todays_keys(cluster)).unwrap();
    assert_eq!(opened_in(&copy, &today, beside.path()), 1, "ben, but not ana");

    // The log, and what was handed out of it, is what it was.
    let (checkpoint, leaf) = receipt.verify(std::slice::from_ref(&vkey)).unwrap();
    assert_eq!(leaf.draft.audit, Some(audit(1).0.into_bytes()));
    assert_eq!(hex::encode(checkpoint.root), root_before);
    let store = Store::open(with(0, 5)).unwrap();
    let still = store.proofs().consistency(entries, entries + 1).await.unwrap().unwrap();
    assert_eq!(hex::encode(still.from_root), root_before);
    drop(store);
    let report = place.sound();
    assert_eq!((report.opened, report.forgotten), (1, 2));
}
