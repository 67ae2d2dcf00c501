//! What is promised when PostgreSQL is away, and when there are several replicas.

use crate::place::Place;
use crate::support::*;
use conclave_engine::KeyRole;
use conclave_ledger::Kind;
use conclave_store::{NewKey, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOW: u64 = 1_800_000_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_stopped_delays_nobody_and_gets_everything_afterwards() {
    let place = Place::postgres();
    let store = place.open();
    turn(&store, 1).await;
    settle(&store);
    place.cluster.as_ref().unwrap().stop_at_once().unwrap();
    for n in 2..=40 {
        turn(&store, n).await;
    }
    unsettled(&store, "the database does not take entries");
    assert!(store.ledger().health().is_ok(), "replies go on");
    assert!(store.archive().health().await.is_err());
    let read = store.archive().find(1, audit(1)).await;
    assert!(read.unwrap_err().to_string().contains("does not take entries"));
    place.cluster.as_ref().unwrap().start_again().unwrap();
    settle(&store);
    store.archive().health().await.unwrap();
    drop(store);
    let log = place.log();
    let kinds: Vec<_> = log.iter().map(|leaf| leaf.draft.kind.clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Decision).count(), 40);
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::StoreDown).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::StoreUp).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_starts_without_its_database_and_knows_its_keys_and_numbers() {
    let place = Place::postgres();
    let store = place.open();
    let entropy = CountingEntropy::from(9_000_000);
    let new = NewKey {
        environment: "test".into(),
        tenant: conclave_core::TenantId::new("acme").unwrap(),
        role: KeyRole::App,
        label: "kept".into(),
        person: None,
        expires_ms: None,
    };
    let (record, text) = store.key_book().issue(new, NOW, &entropy).unwrap();
    store.sync_keys().unwrap();
    for n in 1..=10 {
        turn(&store, n).await;
    }
    drop(store);
    place.cluster.as_ref().unwrap().stop_at_once().unwrap();
    let store = place.open();
    assert_eq!(store.keys().find(text.reveal()), Some(record));
    let next = append(&store, 11).await;
    assert!(next.id.n > 21, "after 20 entries and a key change, not {}", next.id.n);
    place.cluster.as_ref().unwrap().start_again().unwrap();
    settle(&store);
    drop(store);
    let numbers: Vec<_> = place.log().iter().map(|leaf| leaf.id.n).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_never_saw_its_database_does_not_start_without_it() {
    let place = Place::postgres();
    place.cluster.as_ref().unwrap().stop_at_once().unwrap();
    let sentence = Store::open(place.options(0)).err().unwrap().to_string();
    assert!(sentence.contains("cannot be reached"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_does_not_hold_up_a_turn() {
    let place = Place::postgres();
    let store = place.open();
    turn(&store, 1).await;
    settle(&store);
    let cluster = place.cluster.as_ref().unwrap();
    cluster.signal("STOP").unwrap();
    let began = std::time::Instant::now();
    let whose = conclave_engine::Whose::Subject([1; 16]);
    for n in 2..=20 {
        turn(&store, n).await;
        assert!(store.archive().latest(1, whose, None).await.is_err());
    }
    // The first waits a quarter of a second for an answer; whoever comes after does not.
    assert!(began.elapsed().as_secs() < 3, "{:?}", began.elapsed());
    cluster.signal("CONT").unwrap();
    settle(&store);
    drop(store);
    place.sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_share_one_log_and_each_entry_is_in_it_once() {
    let place = Place::postgres();
    drop(place.open());
    let mut tasks = Vec::new();
    for replica in 0..3 {
        let store = Arc::new(Store::open(place.options(replica)).unwrap());
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for n in 0..200 {
                ids.push(turn(&store, replica as u64 * 1_000 + n).await.id);
            }
            store.settle(std::time::Duration::from_secs(30)).unwrap();
            ids
        }));
    }
    let mut acknowledged = BTreeSet::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    assert_eq!(acknowledged.len(), 600);
    let log = place.log();
    let there: BTreeSet<_> = log.iter().map(|leaf| leaf.id).collect();
    assert_eq!(there.len(), log.len(), "each once");
    assert!(acknowledged.is_subset(&there));
    // Every replica's entries stand in the order of their numbers; `log` has checked that there is
    // no hole.
    let replicas: BTreeSet<_> = log.iter().map(|leaf| leaf.id.replica).collect();
    assert_eq!(replicas.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_running_replica_is_refused_and_a_successor_is_not() {
    let place = Place::postgres();
    let store = place.open();
    turn(&store, 1).await;
    settle(&store);
    let copy = place.root.path().join("copy");
    crash_copy(&place.dir(0), &copy);
    let sentence = {
        let mut options = place.options(0);
        options.dir = copy.clone();
        tokio::task::spawn_blocking(move || Store::open(options).err().unwrap().to_string())
            .await
            .unwrap()
    };
    assert!(sentence.contains("another conclave writes to this database"), "{sentence}");
    drop(store);
    drop(place.open());
    place.sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_belong_together_is_refused_with_a_sentence() {
    let place = Place::postgres();
    drop(place.open());
    let refused = |options| Store::open(options).err().unwrap().to_string();
    // Another pepper.
    let other = tempfile::tempdir().unwrap();
    let mut strange = place.options(0);
    strange.dir = other.path().to_owned();
    strange.entropy = Arc::new(CountingEntropy::from(5));
    assert!(refused(strange).contains("copy the file `pepper`"));
    // SQLite in a directory whose log is elsewhere.
    let mut without = place.options(0);
    without.database = None;
    assert!(refused(without).contains("is in a PostgreSQL database"));
    // Another database.
    let mut elsewhere = place.options(0);
    let url = place.cluster.as_ref().unwrap().fresh().unwrap();
    elsewhere.database = Some(conclave_store::DatabaseUrl::parse(&url).unwrap());
    assert!(refused(elsewhere).contains("belongs to another database"));
    // A directory with a log of its own.
    let own = Place::sqlite();
    drop(own.open());
    let mut unmoved = own.options(0);
    unmoved.database = place.url.clone();
    assert!(refused(unmoved).contains("conclave migrate sqlite-to-postgres"));
    // A schema of a later program.
    let cluster = place.cluster.as_ref().unwrap();
    cluster.sql("fresh0", "UPDATE conclave_schema SET version = 99").unwrap();
    assert!(refused(place.options(0)).contains("has schema 99, this program knows"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_altered_in_the_database_is_named_and_the_log_cannot_be_edited_by_accident() {
    let place = Place::postgres();
    let store = place.open();
    for n in 1..=20 {
        turn(&store, n).await;
        settle(&store);
    }
    drop(store);
    place.sound();
    let cluster = place.cluster.as_ref().unwrap();
    let refused = [
        "DELETE FROM log_bundle",
        "UPDATE log_bundle SET n = 1",
        "TRUNCATE log_body",
        "UPDATE log_head SET size = 3",
        "DELETE FROM log_head",
        "UPDATE log_body SET body = ''",
    ];
    for statement in refused {
        let said = cluster.sql("fresh0", statement).unwrap_err().to_string();
        assert!(said.contains("append-only"), "{statement}: {said}");
    }
    let off = "SET session_replication_role = replica; ";
    let changes = [
        "UPDATE log_bundle SET leaves = set_byte(leaves, 40, get_byte(leaves, 40) # 1) \
         WHERE first = (SELECT first FROM log_bundle ORDER BY first OFFSET 3 LIMIT 1)",
        "UPDATE log_body SET body = set_byte(body, 60, get_byte(body, 60) # 1) WHERE seq = 6",
        "DELETE FROM log_body WHERE seq = 6",
        "UPDATE log_head SET root = set_byte(root, 0, get_byte(root, 0) # 1)",
        "UPDATE response_audit_log SET outcome = 'blocked' WHERE seq = 6",
        "DELETE FROM response_audit_log WHERE seq = 6",
        "UPDATE response_audit_log SET delivery_status = 'aborted' WHERE seq = 6",
        "UPDATE log_replica SET hwm = hwm + 1",
        "DELETE FROM log_bundle WHERE first = (SELECT max(first) FROM log_bundle)",
        "UPDATE log_bundle SET ends[1] = ends[1] + 1 WHERE first = 0",
        "INSERT INTO log_body VALUES (1000, '\\x00')",
        "UPDATE log_bundle SET hashes = '' WHERE first = 0",
        "ALTER TABLE log_bundle ALTER COLUMN n TYPE numeric",
        "ALTER TABLE log_bundle DROP COLUMN leaves",
    ];
    for (n, change) in changes.iter().enumerate() {
        let copy = format!("changed{n}");
        cluster.sql("postgres", &format!("CREATE DATABASE {copy} TEMPLATE fresh0")).unwrap();
        cluster.sql(&copy, &format!("{off}{change}")).unwrap();
        let url = conclave_store::DatabaseUrl::parse(&cluster.url(&copy)).unwrap();
        let report =
            conclave_store::inspect_database(&url, None, conclave_store::Inspection::default());
        let report = report.unwrap();
        assert!(!report.ok, "{change}");
        assert!(report.first_bad.is_some(), "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_that_start_at_once_make_the_tables_once_and_one_begins_the_log() {
    let (place, secrets) = (Place::postgres(), Place::sqlite());
    drop(secrets.open());
    for replica in 0..3 {
        for secret in ["pepper", "ledger.key", "root.key"] {
            let copied =
                std::fs::copy(secrets.dir(0).join(secret), place.dir(replica).join(secret));
            copied.unwrap();
        }
    }
    let starting = (0..3).map(|replica| {
        let options = place.options(replica);
        tokio::task::spawn_blocking(move || Store::open(options).unwrap())
    });
    let mut stores = Vec::new();
    for store in starting.collect::<Vec<_>>() {
        stores.push(store.await.unwrap());
    }
    assert_eq!(stores.iter().filter(|store| store.is_new()).count(), 1);
    for (n, store) in (1..).zip(&stores) {
        turn(store, n).await;
    }
    drop(stores);
    assert_eq!(place.sound().entries, 6);
}
