//! What was altered in the stored ledger is named; crashes have a file of their own, `faults.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, Cluster, MockModel};
use house::{House, conclave, config_for, verify};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn kind() -> Behaviour {
    Behaviour::Reply("Thank you for telling me. What was the hardest part of it?".into())
}

/// An installation with five replies, stopped; and where its data is.
async fn written(dir: &Path, storage: &str) -> PathBuf {
    let mock = MockModel::start(|_| kind()).await.unwrap();
    let house = House::start(dir, &config_for(&mock.base_url(), storage));
    for _ in 0..5 {
        assert_eq!(house.chat("My day was long.").await.status, 200);
    }
    let data = house.data.clone();
    assert!(house.stop());
    data
}

fn vkey(data: &Path, database: Option<&str>) -> String {
    let mut args = vec!["ledger", "vkey", "--data", data.to_str().unwrap()];
    args.extend(database.into_iter().flat_map(|url| ["--database", url]));
    let output = conclave(&args);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    said.lines().next().unwrap_or_else(|| panic!("{output:?}")).to_owned()
}

#[tokio::test]
async fn one_changed_byte_of_one_entry_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = written(dir.path(), "").await;
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

/// One kind of tampering: what it is called, the statement, and the entry that must be named.
type Kind<'a> = (&'a str, &'a str, u64);

fn assert_named(what: &str, (code, report): (Option<i32>, Value), seq: u64) {
    assert_eq!(code, Some(1), "{what}: {report}");
    let bad = &report["first_bad"];
    assert!(bad["problem"].as_str().is_some_and(|problem| !problem.is_empty()), "{what}: {report}");
    assert_eq!(bad["seq"], seq, "{what}: {report}");
}

/// F-10 on SQLite: every way of an administrator with the file in hand, through the command.
#[tokio::test]
async fn f10_every_kind_of_tampering_with_sqlite_ends_with_1_and_names_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    let data = written(dir.path(), "").await;
    let key = vkey(&data, None);
    let loose = "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')
                 WHERE type = 'table' AND name LIKE 'log_%' AND sql NOT LIKE '%WITHOUT%';
                 PRAGMA writable_schema = OFF";
    let db = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
    let first = "SELECT min(seq) FROM log_body";
    let first: i64 = db.query_row(first, [], |row| row.get(0)).unwrap();
    drop(db);
    let first = u64::try_from(first).unwrap();
    let large = "UPDATE log_body SET body = zeroblob(67108865)
                 WHERE seq = (SELECT min(seq) FROM log_body)";
    let kinds: [Kind<'_>; 9] = [
        ("edit", "UPDATE log_entry SET leaf = zeroblob(9) WHERE seq = 4", 4),
        ("edit, of a query table", "UPDATE response_audit_log SET latency_ms = -1", first),
        ("delete the last", "DELETE FROM log_entry WHERE seq >= 8", 8),
        ("delete one", "DELETE FROM log_entry WHERE seq = 3", 3),
        (
            "reorder",
            "UPDATE log_entry SET seq = 1000 WHERE seq = 5; UPDATE log_entry SET seq = 5
             WHERE seq = 7; UPDATE log_entry SET seq = 7 WHERE seq = 1000",
            5,
        ),
        ("another type", "UPDATE log_entry SET leaf = 'text' WHERE seq = 4", 4),
        ("null", "UPDATE log_entry SET leaf = NULL WHERE seq = 4", 4),
        ("too large", "UPDATE log_entry SET leaf = zeroblob(67108865) WHERE seq = 4", 4),
        ("a large body", large, first),
    ];
    for (what, sql, seq) in kinds {
        let copy = tempfile::tempdir().unwrap();
        let copied = copy_of(&data, copy.path());
        let edit = |sql: &str| {
            let db = rusqlite::Connection::open(copied.join("ledger.db")).unwrap();
            db.execute_batch(sql).unwrap();
        };
        edit(loose);
        edit(sql);
        assert_named(what, verify(&copied), seq);
    }
    // An edit that brings its hash along, with the query tables made again: the root after its batch
    // is another, and the batch is named by its first entry.
    let copy = tempfile::tempdir().unwrap();
    let copied = copy_of(&data, copy.path());
    let seq = forge_leaf(&copied.join("ledger.db"));
    let rebuilt = conclave(&["ledger", "rebuild", "--data", copied.to_str().unwrap()]);
    assert_eq!(rebuilt.status.code(), Some(0), "{rebuilt:?}");
    let (code, report) = verify(&copied);
    assert_eq!(code, Some(1), "{report}");
    assert!(report["first_bad"]["seq"].as_u64().is_some_and(|bad| bad <= seq), "{report}");
    // Somebody else's whole log, right in itself, signed with a key of its own.
    let other = tempfile::tempdir().unwrap();
    let foreign = written(other.path(), "").await;
    let args = ["--json", "ledger", "verify", "--data", foreign.to_str().unwrap(), "--vkey", &key];
    assert_foreign(&args);
}

fn assert_foreign(args: &[&str]) {
    let output = conclave(args);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{report}");
    let problem = report["first_bad"]["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("no known key has signed"), "{report}");
}

fn copy_of(data: &Path, to: &Path) -> PathBuf {
    let to = to.join("data");
    let copied = std::process::Command::new("cp").arg("-a").arg(data).arg(&to).status().unwrap();
    assert!(copied.success());
    to
}

/// Changes the leaf of a decision with its hash; says which.
fn forge_leaf(database: &Path) -> u64 {
    let db = rusqlite::Connection::open(database).unwrap();
    let sql = "SELECT e.seq, e.leaf FROM log_entry e JOIN response_audit_log a ON a.seq = e.seq
               ORDER BY e.seq LIMIT 1 OFFSET 2";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
    let (seq, leaf) = db.query_row(sql, [], read).unwrap();
    let forged = forge(&leaf);
    let hash = conclave_ledger::leaf_hash(&forged);
    let sql = "UPDATE log_entry SET leaf = ?1, leaf_hash = ?2 WHERE seq = ?3";
    db.execute(sql, rusqlite::params![forged, hash, seq]).unwrap();
    u64::try_from(seq).unwrap()
}

/// A leaf of the same length that says it happened a millisecond later.
fn forge(leaf: &[u8]) -> Vec<u8> {
    let mut forged = conclave_ledger::Leaf::decode(leaf).unwrap();
    forged.ts_ms ^= 1;
    let bytes = forged.encode();
    assert_eq!(bytes.len(), leaf.len());
    bytes
}

fn verify_database(url: &str) -> (Option<i32>, Value) {
    let output = conclave(&["--json", "ledger", "verify", "--database", url]);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// F-10 on PostgreSQL: the same, by somebody who has switched the triggers off.
#[tokio::test]
async fn f10_every_kind_of_tampering_with_postgresql_ends_with_1_and_names_the_entry() {
    let cluster = Cluster::start().unwrap();
    let (dir, url) = (tempfile::tempdir().unwrap(), cluster.fresh().unwrap());
    let data = written(dir.path(), &format!("[storage]\ndatabase = \"{url}\"\n")).await;
    let key = vkey(&data, Some(&url));
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    // Bundles are as large as they happened to be: one entry is found by its place in its bundle.
    let at = "coalesce(ends[(4 - first)::int], 0)";
    let holds = "WHERE first <= 4 AND first + n > 4";
    let edit = format!(
        "UPDATE log_bundle SET leaves = set_byte(leaves, {at} + 9, get_byte(leaves, {at} + 9) # 1) \
         {holds}"
    );
    let hash = format!(
        "UPDATE log_bundle SET hashes = set_byte(hashes, (4 - first)::int * 32, \
         get_byte(hashes, (4 - first)::int * 32) # 1) {holds}"
    );
    let last = "(SELECT max(first) FROM log_bundle)";
    let cut: u64 = sql(&cluster, &name, &format!("SELECT {last}")).parse().unwrap();
    let delete = format!("DELETE FROM log_bundle WHERE first = {last}");
    let body = "UPDATE log_body SET body = set_byte(body, 60, get_byte(body, 60) # 1)
                WHERE seq = (SELECT min(seq) FROM log_body)";
    let large = "UPDATE log_body SET body = decode(repeat('00', 67108865), 'hex')
                 WHERE seq = (SELECT min(seq) FROM log_body)";
    let null = "ALTER TABLE log_bundle ALTER COLUMN leaves DROP NOT NULL;
                UPDATE log_bundle SET leaves = NULL WHERE first = 0";
    let reorder = "UPDATE log_body SET seq = 1000 WHERE seq = (SELECT min(seq) FROM log_body);
                   UPDATE log_body SET seq = (SELECT min(a.seq) FROM response_audit_log a)
                   WHERE seq = (SELECT min(seq) FROM log_body);
                   UPDATE log_body SET seq = (SELECT a.seq FROM response_audit_log a ORDER BY a.seq
                   OFFSET 1 LIMIT 1) WHERE seq = 1000";
    let first: u64 = sql(&cluster, &name, "SELECT min(seq) FROM log_body").parse().unwrap();
    let kinds: [Kind<'_>; 9] = [
        ("edit", &edit, 4),
        ("edit of a hash", &hash, 4),
        ("edit of words", body, first),
        ("edit, of a query table", "UPDATE response_audit_log SET latency_ms = -1", first),
        ("delete the last", &delete, cut),
        ("reorder words", reorder, first),
        ("another type", "ALTER TABLE log_bundle ALTER COLUMN n TYPE numeric", 0),
        ("null", null, 0),
        ("a large body", large, first),
    ];
    for (n, (what, change, seq)) in kinds.into_iter().enumerate() {
        let copy = format!("tampered{n}");
        sql(&cluster, "postgres", &format!("CREATE DATABASE {copy} TEMPLATE {name}"));
        sql(&cluster, &copy, &format!("SET session_replication_role = replica; {change}"));
        assert_named(what, verify_database(&cluster.url(&copy)), seq);
    }
    forged_with_its_hash(&cluster, &name);
    let (other, foreign) = (tempfile::tempdir().unwrap(), cluster.fresh().unwrap());
    written(other.path(), &format!("[storage]\ndatabase = \"{foreign}\"\n")).await;
    assert_foreign(&["--json", "ledger", "verify", "--database", &foreign, "--vkey", &key]);
}

fn sql(cluster: &Cluster, database: &str, statement: &str) -> String {
    cluster.sql(database, statement).unwrap().trim().to_owned()
}

/// A leaf and its hash are exchanged together, and the query tables are made again.
fn forged_with_its_hash(cluster: &Cluster, name: &str) {
    sql(cluster, "postgres", &format!("CREATE DATABASE forged TEMPLATE {name}"));
    let leaf = "SELECT encode(substring(b.leaves
        FROM coalesce(b.ends[(a.seq - b.first)::int], 0) + 1
        FOR b.ends[(a.seq - b.first)::int + 1] - coalesce(b.ends[(a.seq - b.first)::int], 0)), 'hex')
        FROM response_audit_log a JOIN log_bundle b ON a.seq >= b.first AND a.seq < b.first + b.n
        ORDER BY a.seq LIMIT 1";
    let seq: u64 =
        sql(cluster, "forged", "SELECT min(seq) FROM response_audit_log").parse().unwrap();
    let forged = forge(&hex::decode(sql(cluster, "forged", leaf)).unwrap());
    let hash = hex::encode(conclave_ledger::leaf_hash(&forged));
    let (forged, length) = (hex::encode(&forged), forged.len());
    let change = format!(
        "SET session_replication_role = replica; UPDATE log_bundle SET
         leaves = overlay(leaves PLACING '\\x{forged}'::bytea
             FROM coalesce(ends[({seq} - first)::int], 0) + 1 FOR {length}),
         hashes = overlay(hashes PLACING '\\x{hash}'::bytea FROM ({seq} - first)::int * 32 + 1 FOR 32)
         WHERE first <= {seq} AND first + n > {seq}"
    );
    sql(cluster, "forged", &change);
    let url = cluster.url("forged");
    let rebuilt = conclave(&["ledger", "rebuild", "--database", &url]);
    assert_eq!(rebuilt.status.code(), Some(0), "{rebuilt:?}");
    let (code, report) = verify_database(&url);
    assert_eq!(code, Some(1), "{report}");
    // The root after its batch is another: the batch is named by its first entry.
    assert!(report["first_bad"]["seq"].as_u64().is_some_and(|bad| bad <= seq), "{report}");
}
