//! Governed records: versions, order, entries, sealing, forgetting.

use crate::place::Place;
use crate::support::*;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{Record, RecordChange, RecordKey, RecordKind, RecordQuery, RecordsError};
use conclave_ledger::{Kind, Value};
use conclave_store::move_to_postgres;
use serde_json::json;
use std::collections::BTreeSet;

const NOW: u64 = 1_800_000_000_000;

promises!(
    of_two_writers_who_read_the_same_one_succeeds,
    records_come_by_rank_then_by_due_date,
    a_change_and_its_entry_become_durable_together,
    changes_made_together_are_made_all_or_none,
    what_a_record_says_of_a_person_goes_with_their_key,
);

fn key(tenant: &str, id: &str) -> RecordKey {
    RecordKey {
        kind: RecordKind::Review,
        tenant: TenantId::new(tenant).unwrap(),
        id: id.to_owned(),
    }
}

fn record(key: RecordKey, version: u64) -> Record {
    Record {
        key,
        version,
        state: "pending".to_owned(),
        owner: "elders".to_owned(),
        rank: 1,
        due_ms: None,
        changed_ms: NOW,
        subject: None,
        data: json!({"n": version}),
    }
}

fn change(record: Record) -> RecordChange {
    RecordChange { record, entry: None }
}

fn everything() -> RecordQuery {
    RecordQuery {
        kind: RecordKind::Review,
        tenant: None,
        states: Vec::new(),
        owner: None,
        due_before_ms: None,
        offset: 0,
        limit: 100,
    }
}

async fn of_two_writers_who_read_the_same_one_succeeds(place: &Place) {
    let store = place.open();
    let records = store.records();
    let mine = key("acme", "one");
    assert_eq!(records.get(mine.clone()).await.unwrap(), None);
    let made = records.put(vec![change(record(mine.clone(), 0))]).await.unwrap();
    assert_eq!(made[0].version, 1);
    let again = records.put(vec![change(record(mine.clone(), 0))]).await;
    assert_eq!(again.unwrap_err(), RecordsError::Conflict, "it is there already");
    let mut succeeded = 0;
    let writers = (0..8).map(|_| records.put(vec![change(record(mine.clone(), 1))]));
    for written in futures_util::future::join_all(writers).await {
        match written {
            Ok(_) => succeeded += 1,
            Err(error) => assert_eq!(error, RecordsError::Conflict),
        }
    }
    assert_eq!(succeeded, 1);
    assert_eq!(records.get(mine.clone()).await.unwrap().unwrap().version, 2);
    assert_eq!(records.get(key("other", "one")).await.unwrap(), None, "another tenant's");
    assert_eq!(records.remove(mine.clone(), 1).await.unwrap_err(), RecordsError::Conflict);
    records.remove(mine.clone(), 2).await.unwrap();
    records.remove(mine.clone(), 2).await.unwrap();
    assert_eq!(records.get(mine).await.unwrap(), None);
}

async fn records_come_by_rank_then_by_due_date(place: &Place) {
    let store = place.open();
    let records = store.records();
    for (id, rank, due_ms, state, tenant) in [
        ("late", 2, Some(900), "pending", "acme"),
        ("soon", 2, Some(100), "pending", "acme"),
        ("whenever", 2, None, "approved", "acme"),
        ("grave", 4, Some(999), "in_review", "acme"),
        ("theirs", 9, Some(1), "pending", "other"),
    ] {
        let state = state.to_owned();
        let one = Record { rank, due_ms, state, ..record(key(tenant, id), 0) };
        records.put(vec![change(one)]).await.unwrap();
    }
    let ids = async |query: RecordQuery| -> Vec<String> {
        let found = records.list(query).await.unwrap();
        found.into_iter().map(|record| record.key.id).collect()
    };
    let acme = || RecordQuery { tenant: Some(TenantId::new("acme").unwrap()), ..everything() };
    assert_eq!(ids(everything()).await, ["theirs", "grave", "soon", "late", "whenever"]);
    assert_eq!(ids(acme()).await, ["grave", "soon", "late", "whenever"]);
    let open = vec!["pending".to_owned(), "in_review".to_owned()];
    assert_eq!(ids(RecordQuery { states: open, ..acme() }).await, ["grave", "soon", "late"]);
    let due = RecordQuery { due_before_ms: Some(900), ..acme() };
    assert_eq!(ids(due).await, ["soon"]);
    let page = RecordQuery { offset: 1, limit: 2, ..acme() };
    assert_eq!(ids(page).await, ["soon", "late"]);
    let nobody = RecordQuery { owner: Some("nobody".to_owned()), ..acme() };
    assert_eq!(ids(nobody).await, [""; 0]);
}

async fn a_change_and_its_entry_become_durable_together(place: &Place) {
    let store = place.open();
    let records = store.records();
    for version in 0..3 {
        let entry = Some((Kind::ReviewChange, Value::map([("version", version.into())])));
        let record = record(key("acme", "told"), version);
        records.put(vec![RecordChange { record, entry }]).await.unwrap();
    }
    let entry = Some((Kind::ReviewChange, Value::map([("version", 99_u64.into())])));
    let late = RecordChange { record: record(key("acme", "told"), 1), entry };
    assert_eq!(records.put(vec![late]).await.unwrap_err(), RecordsError::Conflict);
    store.sync_keys().unwrap();
    drop(store);
    // Notes that an earlier run left are not told twice.
    drop(place.open());
    let log = place.log();
    let told: Vec<_> = log.iter().filter(|leaf| leaf.draft.kind == Kind::ReviewChange).collect();
    assert_eq!(told.len(), 3, "one for each change that was made");
    let ids: BTreeSet<_> = told.iter().map(|leaf| leaf.id).collect();
    assert_eq!(ids.len(), 3);
}

pub async fn changes_made_together_are_made_all_or_none(place: &Place) {
    let store = place.open();
    let records = store.records();
    records.put(vec![change(record(key("acme", "there"), 0))]).await.unwrap();
    let both = vec![change(record(key("acme", "new"), 0)), change(record(key("acme", "there"), 5))];
    assert_eq!(records.put(both).await.unwrap_err(), RecordsError::Conflict);
    assert_eq!(records.get(key("acme", "new")).await.unwrap(), None);
    for wrong in [String::new(), "x".repeat(300)] {
        let refused = records.put(vec![change(record(key("acme", &wrong), 0))]).await;
        assert!(matches!(refused, Err(RecordsError::Invalid(_))), "{refused:?}");
    }
}

pub async fn what_a_record_says_of_a_person_goes_with_their_key(place: &Place) {
    let store = place.open();
    let records = store.records();
    let (tenant, user) = (TenantId::new("acme").unwrap(), UserId::new("maria").unwrap());
    let session = SessionId::new("s").unwrap();
    let named = store.subjects().name(&tenant, Some(&user), &session).await.unwrap();
    let data = json!({"evidence": "she said yes beside the old willow"});
    let hers = Record { subject: named.subject, data, ..record(key("acme", "hers"), 0) };
    records.put(vec![change(hers.clone())]).await.unwrap();
    records.put(vec![change(record(key("acme", "nobody's"), 0))]).await.unwrap();
    let read = records.get(key("acme", "hers")).await.unwrap().unwrap();
    assert_eq!(read.data, hers.data);
    if place.url.is_none() {
        store.settle(std::time::Duration::from_secs(20)).unwrap();
        let file = std::fs::read(place.dir(0).join("ops.db")).unwrap();
        let wal = std::fs::read(place.dir(0).join("ops.db-wal")).unwrap_or_default();
        for bytes in [file, wal] {
            assert!(!bytes.windows(10).any(|window| window == b"old willow"), "sealed on disk");
        }
    }
    store.subjects().erase(&tenant, &user).await.unwrap().unwrap();
    assert_eq!(records.get(key("acme", "hers")).await.unwrap(), None);
    let left = records.list(everything()).await.unwrap();
    assert_eq!(left.len(), 1, "only what is nobody's");
    let back = records.put(vec![change(Record { version: 1, ..hers })]).await;
    assert!(matches!(back, Err(RecordsError::Invalid(_))), "{back:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_move_with_the_ledger() {
    let mut place = Place::postgres();
    let url = place.url.take().unwrap();
    let store = place.open();
    let (tenant, user) = (TenantId::new("acme").unwrap(), UserId::new("maria").unwrap());
    let session = SessionId::new("s").unwrap();
    let named = store.subjects().name(&tenant, Some(&user), &session).await.unwrap();
    let hers = Record { subject: named.subject, ..record(key("acme", "hers"), 0) };
    store.records().put(vec![change(hers)]).await.unwrap();
    for version in 0..4 {
        store.records().put(vec![change(record(key("acme", "ours"), version))]).await.unwrap();
    }
    append(&store, 1).await;
    drop(store);
    let entropy = CountingEntropy::from(5_000_000);
    move_to_postgres(&place.dir(0), &url, &entropy, &mut |_, _| {}).unwrap();
    place.url = Some(url);
    let moved = place.open();
    let there = moved.records().list(everything()).await.unwrap();
    let versions: Vec<_> = there.iter().map(|it| (it.key.id.as_str(), it.version)).collect();
    assert_eq!(versions, [("hers", 1), ("ours", 4)], "her words open with the key that moved too");
}
