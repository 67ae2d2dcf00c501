//! `kill -9` under load: what a client received is in the ledger exactly once; what was altered is named.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel};
use house::{House, chat_body, config_for, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ROUNDS: usize = 20;
const IN_FLIGHT: usize = 200;

fn kind() -> Behaviour {
    Behaviour::Reply("Thank you for telling me. What was the hardest part of it?".into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_kills_under_load_lose_nothing_that_was_received() {
    let mock = MockModel::start(|_| kind()).await.unwrap();
    // The load is what matters here: the second tier would only slow it down.
    let config = config_for(&mock.base_url(), "[detection]\nsecond_tier = \"never\"\n");
    let dir = tempfile::tempdir().unwrap();
    let mut received = BTreeSet::new();
    for round in 0..ROUNDS {
        let house = Arc::new(House::start(dir.path(), &config));
        let answered = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> =
            (0..IN_FLIGHT).map(|_| tokio::spawn(client(house.clone(), answered.clone()))).collect();
        // Every round dies at another moment: after 1, 38, 75, ... answers.
        let enough = 1 + round * 37;
        while answered.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        house.signal("KILL");
        for client in clients {
            received.extend(client.await.unwrap());
        }
        let house = Arc::into_inner(house).expect("all clients are done");
        let data = house.data.clone();
        house.kill();
        // Also between the kill and the next start the ledger holds.
        let (code, report) = verify(&data);
        assert_eq!(code, Some(0), "round {round}: {report}");
    }
    let house = House::start(dir.path(), &config);
    let recorded = all_decisions(&house).await;
    assert!(received.len() > ROUNDS, "too few replies to mean anything");
    for id in &received {
        assert_eq!(recorded.get(id), Some(&1), "{id} of {}", received.len());
    }
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["decision"], report["kinds"]["delivery"], "{report}");
}

/// Asks until the connection dies; returns the audit ids of whole replies.
async fn client(house: Arc<House>, answered: Arc<AtomicUsize>) -> Vec<String> {
    let body = chat_body("My day was long and I am tired.").to_string();
    let mut ids = Vec::new();
    while let Ok(reply) = house.ask("POST", "/v1/chat/completions", body.as_bytes()).await {
        let id = reply.own("audit_id").as_str().expect("a whole reply has an audit id").to_owned();
        ids.push(id);
        answered.fetch_add(1, Ordering::Relaxed);
    }
    ids
}

async fn all_decisions(house: &House) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut page = "/v1/decisions?limit=500".to_owned();
    loop {
        let list = house.get(&page).await.json();
        for row in list["data"].as_array().unwrap() {
            *found.entry(row["id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let Some(next) = list["next_before"].as_str() else { return found };
        page = format!("/v1/decisions?limit=500&before={next}");
    }
}

#[tokio::test]
async fn one_changed_byte_of_one_entry_is_named() {
    let mock = MockModel::start(|_| kind()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    for _ in 0..5 {
        assert_eq!(house.chat("My day was long.").await.status, 200);
    }
    let data = house.data.clone();
    assert!(house.stop());
    let database = data.join("ledger.db");
    for (table, column) in [("log_entry", "leaf"), ("log_entry", "leaf_hash"), ("log_body", "body")]
    {
        let db = rusqlite::Connection::open(&database).unwrap();
        let read = format!("SELECT seq, {column} FROM {table} ORDER BY seq LIMIT 1 OFFSET 3");
        let (seq, good): (i64, Vec<u8>) =
            db.query_row(&read, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let write = format!("UPDATE {table} SET {column} = ?1 WHERE seq = ?2");
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        db.execute(&write, rusqlite::params![bad, seq]).unwrap();
        let (code, report) = verify(&data);
        assert_eq!(code, Some(1), "{table}.{column}: {report}");
        assert_eq!(report["first_bad"]["seq"], seq, "{table}.{column}: {report}");
        db.execute(&write, rusqlite::params![good, seq]).unwrap();
        assert_eq!(verify(&data).0, Some(0));
    }
}
