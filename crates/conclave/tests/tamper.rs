//! What was altered in the stored ledger is named; crashes have a file of their own, `faults.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel};
use house::{House, config_for, verify};

fn kind() -> Behaviour {
    Behaviour::Reply("Thank you for telling me. What was the hardest part of it?".into())
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
