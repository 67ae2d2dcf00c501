//! What a store looks after by itself: the stored log is read again, idle keys are deleted.

use crate::forgetting::{named, number, speak, tenant, user, words};
use crate::place::Place;
use crate::support::*;
use conclave_store::{RetentionRules, Store, StoreOptions, TenantRetention};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const DAY_MS: u64 = 24 * 3600 * 1000;

promises!(
    a_scrub_names_what_was_forgotten_and_nothing_is_signed_meanwhile,
    keys_of_people_of_whom_nothing_is_left_are_deleted,
);

/// Changes the stored log behind the program's back.
fn tamper(place: &Place, sqlite: &str, postgres: &str) {
    match &place.cluster {
        Some(cluster) => {
            let off = "SET session_replication_role = replica; ";
            cluster.sql("fresh0", &format!("{off}{postgres}")).unwrap();
        }
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ledger.db")).unwrap();
            conn.execute_batch(sqlite).unwrap();
        }
    }
}

async fn a_scrub_names_what_was_forgotten_and_nothing_is_signed_meanwhile(place: &Place) {
    let store = place.open();
    for n in 1..=150 {
        turn(&store, n).await;
    }
    settle(&store);
    assert_eq!((store.scrub(false).unwrap(), store.scrub(true).unwrap()), (None, None));
    // One byte of a leaf, of its hash, of a body; and back. Bundles are as large as they happened to be.
    let bundle = "WHERE first <= 20 AND first + n > 20";
    let at = "coalesce(ends[(20 - first)::int], 0) + 9";
    let cases = [
        (
            "leaf",
            "UPDATE log_entry SET leaf = CAST(substr(leaf, 1, 9) || x'ff' || substr(leaf, 11) \
             AS BLOB) WHERE seq = 20"
                .to_owned(),
            format!("UPDATE log_bundle SET leaves = set_byte(leaves, {at}, 255) {bundle}"),
        ),
        (
            "hash",
            "UPDATE log_entry SET leaf_hash = zeroblob(32) WHERE seq = 20".to_owned(),
            format!(
                "UPDATE log_bundle SET hashes = set_byte(hashes, (20 - first)::int * 32, \
                 get_byte(hashes, (20 - first)::int * 32) # 1) {bundle}"
            ),
        ),
        (
            "body",
            "UPDATE log_body SET body = CAST(substr(body, 1, 40) || x'01' || substr(body, 42) \
             AS BLOB) WHERE seq = 20"
                .to_owned(),
            "UPDATE log_body SET body = set_byte(body, 60, get_byte(body, 60) # 1) WHERE seq = 20"
                .to_owned(),
        ),
    ];
    let kept = ["log_bundle", "log_body", "log_tile"];
    let keep = |table: &&str| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}");
    let keep = kept.iter().map(keep).collect::<Vec<_>>().join("; ");
    let keep_sqlite = keep.replace("log_bundle", "log_entry");
    tamper(place, &keep_sqlite, &keep);
    let back = |table: &&str| {
        format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}")
    };
    let back = kept.iter().map(back).collect::<Vec<_>>().join("; ");
    let back_sqlite = back.replace("log_bundle", "log_entry");
    for (what, sqlite, postgres) in &cases {
        tamper(place, sqlite, postgres);
        let said = store.scrub(false).unwrap().unwrap();
        assert!(said.starts_with("entry 20:"), "{what}: {said}");
        assert_eq!(store.doubt(), Some(said));
        assert_eq!(store.ledger().state().alerts[0].code, "log_damaged");
        assert!(store.ledger().health().is_ok(), "entries are taken all the same");
        let unsigned = store.publish().unwrap_err().to_string();
        assert!(unsigned.contains("nothing is signed"), "{what}: {unsigned}");
        tamper(place, &back_sqlite, &back);
        assert_eq!(store.scrub(true).unwrap(), None, "{what}");
        assert!(store.publish().is_ok(), "whole again");
    }
    let tile = "UPDATE log_tile SET hashes = (SELECT hashes FROM log_tile WHERE level = 1) \
                WHERE level = 0";
    tamper(place, tile, "UPDATE log_tile SET hashes = set_byte(hashes, 7, 7) WHERE level = 0");
    let said = store.scrub(true).unwrap().unwrap();
    assert!(said.contains("entry 0: the tile 0/000 is another"), "{said}");
    tamper(place, &back_sqlite, &back);
    let missing = "DELETE FROM log_bundle WHERE first = 0";
    tamper(place, "DELETE FROM log_entry WHERE seq = 0", missing);
    let said = store.scrub(true).unwrap().unwrap();
    assert!(said.starts_with("entry 0: it is missing"), "{said}");
}

/// How many keys of people there are; those of days do not count.
fn keys(place: &Place) -> i64 {
    match &place.cluster {
        Some(_) => number(place, "SELECT count(*) FROM subject_key WHERE day IS NULL"),
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("keys.db")).unwrap();
            let sql = "SELECT count(*) FROM subject_key WHERE day IS NULL";
            conn.query_row(sql, [], |row| row.get(0)).unwrap()
        }
    }
}

fn aged(place: &Place, replica: usize, clock: &Arc<HandClock>) -> Store {
    let store = Store::open(StoreOptions {
        clock: clock.clone(),
        steady: passing(clock),
        ..place.options(replica)
    })
    .unwrap();
    store.set_retention(RetentionRules { days: 30, ..RetentionRules::default() });
    store
}

/// Purges until so many keys are left; every look is an hour later than the one before.
fn purge_until(place: &Place, store: &Store, clock: &HandClock, left: i64) {
    let began = Instant::now();
    while keys(place) != left {
        assert!(began.elapsed() < Duration::from_secs(20), "{} keys are left", keys(place));
        clock.0.fetch_add(3_600_000, Ordering::Relaxed);
        store.purge_due().unwrap();
    }
}

async fn keys_of_people_of_whom_nothing_is_left_are_deleted(place: &Place) {
    let clock = Arc::new(HandClock(1_800_000_000_000.into()));
    let store = aged(place, 0, &clock);
    let ana = speak(&store, "ana", 1).await;
    let ben = speak(&store, "ben", 2).await;
    settle(&store);
    store.purge_due().unwrap();
    assert_eq!(keys(place), 2, "nothing is due");
    clock.0.fetch_add(20 * DAY_MS, Ordering::Relaxed);
    assert_eq!(speak(&store, "ben", 3).await, ben);
    settle(&store);
    clock.0.fetch_add(11 * DAY_MS, Ordering::Relaxed);
    purge_until(place, &store, &clock, 1);
    assert_eq!(words(&store, 3).await.unwrap(), "unmistakable words of ben");
    assert_eq!(named(&store, "ben").await.subject, Some(ben), "who still has words keeps the key");
    assert_ne!(named(&store, "ana").await.subject, Some(ana), "somebody new");
    drop(store);
    place.sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_key_that_another_replica_uses_again_is_kept() {
    let place = Place::postgres();
    let clock = Arc::new(HandClock(1_800_000_000_000.into()));
    let (first, second) = (aged(&place, 0, &clock), aged(&place, 1, &clock));
    let ana = speak(&first, "ana", 1).await;
    let zoe = speak(&second, "zoe", 2).await;
    settle(&first);
    settle(&second);
    clock.0.fetch_add(31 * DAY_MS, Ordering::Relaxed);
    first.purge_due().unwrap();
    assert_eq!(number(&place, "SELECT count(*) FROM idle_key"), 2, "marked, not deleted");
    // Zoe comes back while the mark is there. Both replicas let go of both within seconds.
    let began = Instant::now();
    let seen =
        "SELECT count(*) FROM replica_lease WHERE idle_seen >= (SELECT max(n) FROM idle_key)";
    while number(&place, seen) != 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody says that they let go");
        tokio::task::yield_now().await;
    }
    assert_eq!(speak(&second, "zoe", 3).await, zoe);
    settle(&second);
    assert_eq!(number(&place, "SELECT count(*) FROM idle_key"), 1, "the mark is gone");
    purge_until(&place, &first, &clock, 1);
    assert_eq!(words(&first, 3).await.unwrap(), "unmistakable words of zoe");
    assert_eq!(named(&first, "zoe").await.subject, Some(zoe));
    assert_ne!(named(&second, "ana").await.subject, Some(ana));
    drop((first, second));
    place.sound();
}

/// Whoever two replicas met while their database was away has two names; a hold and an export mean both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r06_a_hold_holds_every_name_of_a_person() {
    let place = Place::postgres();
    drop(place.open());
    let clock = Arc::new(HandClock(1_800_000_000_000.into()));
    let (first, second) = (aged(&place, 0, &clock), aged(&place, 1, &clock));
    speak(&first, "ben", 1).await;
    speak(&second, "ben", 2).await;
    let cluster = place.cluster.as_ref().unwrap();
    cluster.stop_at_once().unwrap();
    let names = [speak(&first, "ana", 3).await, speak(&second, "ana", 4).await];
    assert_ne!(names[0], names[1]);
    cluster.start_again().unwrap();
    for store in [&first, &second] {
        store.settle(Duration::from_secs(60)).unwrap();
    }
    let mut found = first.subjects().find_all(&tenant(), &user("ana")).await.unwrap();
    let mut names = names.to_vec();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names);
    let held = TenantRetention { held_users: vec![user("ana")], ..TenantRetention::default() };
    first.set_retention(RetentionRules { days: 30, tenants: [(tenant(), held)].into() });
    second.set_retention(RetentionRules::default());
    clock.0.fetch_add(31 * DAY_MS, Ordering::Relaxed);
    first.purge_due().unwrap();
    assert_eq!(words(&first, 1).await, None);
    for n in [3, 4] {
        assert_eq!(words(&first, n).await.as_deref(), Some("unmistakable words of ana"), "{n}");
    }
    drop((first, second));
    place.sound();
}

/// F-13: a clock that is set ten years ahead by mistake makes nobody's words due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f13_a_clock_ten_years_ahead_purges_nobody() {
    let place = Place::sqlite();
    let clock = Arc::new(HandClock(1_800_000_000_000.into()));
    let open = || {
        let mut options = place.options(0);
        (options.clock, options.steady) = (clock.clone(), Arc::new(|| Duration::ZERO));
        let store = Store::open(options).unwrap();
        store.set_retention(RetentionRules { days: 30, ..RetentionRules::default() });
        store
    };
    let store = open();
    speak(&store, "ana", 1).await;
    settle(&store);
    clock.0.fetch_add(3_650 * DAY_MS, Ordering::Relaxed);
    let why = store.purge_due().unwrap_err().to_string();
    assert!(why.contains("the clock stands 3650 days beyond"), "{why}");
    speak(&store, "ana", 2).await;
    drop(store);
    let store = open();
    assert!(store.purge_due().is_err(), "nor after a start");
    let codes: Vec<_> = store.ledger().state().alerts.iter().map(|alert| alert.code).collect();
    assert_eq!(codes, ["clock_jumped"]);
    assert_eq!(words(&store, 1).await.unwrap(), "unmistakable words of ana");
    drop(store);
    clock.0.fetch_sub(3_650 * DAY_MS, Ordering::Relaxed);
    let store = open();
    assert_eq!(store.purge_due().unwrap(), 0, "it was set right");
}
