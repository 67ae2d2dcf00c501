//! Sealing and forgetting: what is promised of every store, and what several replicas promise.

use crate::place::Place;
use crate::support::*;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::Pseudonyms;
use conclave_ledger::{Body, Kind, StoredBody, tenant_number};
use conclave_store::{RetentionRules, RootKey, Store, move_to_postgres};
use std::time::{Duration, Instant};

promises!(
    words_are_sealed_and_read_again_after_a_start,
    an_erased_person_is_gone_and_the_log_explains_it,
    what_is_due_is_purged_once,
);

pub fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub async fn named(store: &Store, who: &str) -> Pseudonyms {
    let session = SessionId::new("talk").unwrap();
    store.subjects().name(&tenant(), Some(&user(who)), &session).await.unwrap()
}

/// One turn of somebody; returns the pseudonym.
pub async fn speak(store: &Store, who: &str, n: u64) -> [u8; 16] {
    let names = named(store, who).await;
    let (mut draft, _) = decision(n);
    (draft.subject, draft.session) = (names.subject, Some(names.session));
    let mut body = Body::empty();
    body.push("request", [6; 32], format!("unmistakable words of {who}"));
    store.ledger().append(draft, body).await.unwrap();
    names.subject.unwrap()
}

pub async fn words(store: &Store, n: u64) -> Option<String> {
    let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
    let body = found.into_iter().next().unwrap().body?;
    let text = StoredBody::decode(&body).unwrap().open("request").unwrap();
    Some(String::from_utf8(text).unwrap())
}

pub fn number(place: &Place, sql: &str) -> i64 {
    match &place.cluster {
        Some(cluster) => cluster.sql("fresh0", sql).unwrap().trim().parse().unwrap(),
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ledger.db")).unwrap();
            conn.query_row(sql, [], |row| row.get(0)).unwrap()
        }
    }
}

async fn words_are_sealed_and_read_again_after_a_start(place: &Place) {
    let store = place.open();
    let ana = speak(&store, "ana", 1).await;
    assert_eq!(speak(&store, "ana", 2).await, ana, "one person, one pseudonym");
    assert_ne!(speak(&store, "ben", 3).await, ana);
    drop(store);
    let report = place.sound();
    assert_eq!((report.bodies, report.opened), (3, 3), "verify opens them");
    let mut again = place.options(0);
    again.entropy = std::sync::Arc::new(CountingEntropy::from(55_000_000));
    let store = Store::open(again).unwrap();
    assert_eq!(words(&store, 1).await.unwrap(), "unmistakable words of ana");
    assert_eq!(named(&store, "ana").await.subject, Some(ana));
    drop(store);
    let clear = match &place.cluster {
        Some(_) => {
            "SELECT count(*) FROM log_body WHERE position('unmistakable'::bytea IN body) > 0"
        }
        None => "SELECT count(*) FROM log_body WHERE instr(body, 'unmistakable') > 0",
    };
    assert_eq!(number(place, clear), 0, "nothing stands there in clear");
}

pub async fn an_erased_person_is_gone_and_the_log_explains_it(place: &Place) {
    let store = place.open();
    let ana = speak(&store, "ana", 1).await;
    speak(&store, "ana", 2).await;
    speak(&store, "ben", 3).await;
    let receipt = store.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    assert_eq!((receipt.subject, receipt.decisions, receipt.bodies), (ana, 2, 2));
    assert_eq!(words(&store, 1).await, None);
    assert_eq!(words(&store, 3).await.unwrap(), "unmistakable words of ben");
    assert_eq!(store.subjects().erase(&tenant(), &user("ana")).await.unwrap(), None, "twice");
    assert_ne!(speak(&store, "ana", 4).await, ana, "the next time it is somebody new");
    drop(store);
    assert_eq!(number(place, "SELECT count(*) FROM log_body"), 2);
    let gone = "SELECT count(*) FROM response_audit_log WHERE anonymized";
    assert_eq!(number(place, gone), 2);
    let report = place.sound();
    assert_eq!((report.bodies, report.opened), (2, 2));
    // A body that is missing without such an entry is a finding.
    match &place.cluster {
        Some(cluster) => drop(cluster.sql("fresh0", "DELETE FROM log_body").unwrap()),
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ledger.db")).unwrap();
            conn.execute("DELETE FROM log_body", []).unwrap();
        }
    }
    assert!(!place.check().ok);
}

pub async fn what_is_due_is_purged_once(place: &Place) {
    let clock = std::sync::Arc::new(HandClock(1_800_000_000_000.into()));
    let mut options = place.options(0);
    (options.clock, options.steady) = (clock.clone(), passing(&clock));
    let store = Store::open(options).unwrap();
    store.set_retention(RetentionRules { days: 30, ..RetentionRules::default() });
    speak(&store, "ana", 1).await;
    settle(&store);
    assert_eq!(store.purge_due().unwrap(), 0, "not due");
    clock.0.fetch_add(31 * 24 * 3_600_000, std::sync::atomic::Ordering::Relaxed);
    speak(&store, "ana", 2).await;
    // The store looks by itself a second after it was opened, and may have been faster.
    assert!(store.purge_due().unwrap() <= 1);
    assert_eq!(store.purge_due().unwrap(), 0);
    assert_eq!(words(&store, 1).await, None);
    assert_eq!(words(&store, 2).await.unwrap(), "unmistakable words of ana");
    drop(store);
    assert_eq!(place.sound().kinds["retention.purge"], 1);
}

pub fn two_replicas(place: &Place) -> (Store, Store) {
    let first = place.open();
    (first, Store::open(place.options(1)).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_the_keys_of_people_and_forget_together() {
    let place = Place::postgres();
    let (first, second) = two_replicas(&place);
    let ana = speak(&first, "ana", 1).await;
    assert_eq!(speak(&second, "ana", 2).await, ana, "known to both");
    settle(&first);
    settle(&second);
    assert_eq!(words(&first, 2).await.unwrap(), "unmistakable words of ana");
    let receipt = first.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    assert_eq!((receipt.decisions, receipt.bodies), (2, 2), "of both");
    let began = Instant::now();
    while second.subjects().is_current(ana) {
        assert!(began.elapsed() < Duration::from_secs(10), "the other one does not notice");
        tokio::task::yield_now().await;
    }
    let (mut draft, _) = decision(9);
    draft.subject = Some(ana);
    let mut body = Body::empty();
    body.push("request", [6; 32], "too late");
    assert!(second.ledger().append(draft, body).await.is_err(), "nothing is sealed any more");
    assert_eq!(words(&second, 2).await, None);
    assert_ne!(speak(&second, "ana", 3).await, ana);
    drop((first, second));
    assert_eq!(place.log().iter().filter(|leaf| leaf.draft.kind == Kind::SubjectErase).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_gets_a_key_while_the_database_is_away_and_it_is_handed_over() {
    let place = Place::postgres();
    let (first, second) = two_replicas(&place);
    let ana = speak(&first, "ana", 1).await;
    settle(&first);
    place.cluster.as_ref().unwrap().stop_at_once().unwrap();
    assert_eq!(speak(&first, "ana", 2).await, ana, "known people are sealed from memory");
    let here = speak(&first, "zoe", 3).await;
    let there = speak(&second, "zoe", 4).await;
    assert_ne!(here, there, "two replicas that cannot ask each other");
    place.cluster.as_ref().unwrap().start_again().unwrap();
    settle(&first);
    settle(&second);
    assert_eq!(words(&second, 3).await.unwrap(), "unmistakable words of zoe");
    assert_eq!(words(&first, 4).await.unwrap(), "unmistakable words of zoe");
    let receipt = second.subjects().erase(&tenant(), &user("zoe")).await.unwrap().unwrap();
    assert_eq!((receipt.decisions, receipt.bodies), (2, 2), "under both keys");
    drop((first, second));
    // What another start could hand over again stays forgotten.
    drop(Store::open(place.options(0)).unwrap());
    assert_eq!(number(&place, "SELECT count(*) FROM subject_key WHERE lookup IS NOT NULL"), 1);
    let report = place.sound();
    assert_eq!((report.bodies, report.opened), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_with_another_root_key_is_refused() {
    let place = Place::postgres();
    drop(place.open());
    let mut options = place.options(1);
    std::fs::remove_file(options.dir.join("root.key")).unwrap();
    let sentence = Store::open(options.clone()).err().unwrap().to_string();
    assert!(sentence.contains("copy the file `root.key`"), "{sentence}");
    options.root_key = Some(RootKey::parse(&"ab".repeat(32)).unwrap());
    let sentence = Store::open(options).err().unwrap().to_string();
    assert!(sentence.contains("all replicas need the same"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_words_and_erasures_move_to_postgresql() {
    let (old, new) = (Place::sqlite(), Place::postgres());
    let store = old.open();
    speak(&store, "ana", 1).await;
    let ben = speak(&store, "ben", 2).await;
    store.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    drop(store);
    let conn = rusqlite::Connection::open(old.dir(0).join("ledger.db")).unwrap();
    let until = "UPDATE response_audit_log SET data_retention_until = 1900000000000 + seq";
    assert_eq!(conn.execute(until, []).unwrap(), 2);
    drop(conn);
    let url = new.url.clone().unwrap();
    let entropy = CountingEntropy::from(77_000_000);
    move_to_postgres(&old.dir(0), &url, &entropy, &mut |_, _| {}).unwrap();
    let kept = "SELECT count(*) FROM response_audit_log
                WHERE data_retention_until = 1900000000000 + seq";
    assert_eq!(number(&new, kept), 2, "rules of before hold for words of before");
    let mut options = old.options(0);
    options.database = Some(url.clone());
    options.entropy = std::sync::Arc::new(CountingEntropy::from(88_000_000));
    let store = Store::open(options).unwrap();
    assert_eq!(words(&store, 1).await, None);
    assert_eq!(words(&store, 2).await.unwrap(), "unmistakable words of ben");
    assert_eq!(named(&store, "ben").await.subject, Some(ben));
    drop(store);
    let checked = conclave_store::Inspection::default();
    let report = conclave_store::inspect_database(&url, Some(&old.dir(0)), checked).unwrap();
    assert!(report.ok, "{:?}", report.first_bad);
    assert_eq!((report.bodies, report.opened), (1, 1));
}
