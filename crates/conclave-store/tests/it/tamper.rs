//! What an administrator with the file in hand could try, and how it shows.

use crate::support::*;
use conclave_ledger::{Bad, Body, Leaf, Value, leaf_hash};
use conclave_store::{Inspection, Store, inspect};
use rusqlite::{Connection, params};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::{TempDir, tempdir};

/// A closed store with twelve turns in several batches: entries 0 to 23, decisions at even
/// positions.
async fn written() -> TempDir {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for n in 1..=12 {
        let appended = append(&store, n).await;
        store.ledger().append(delivery(n, appended.id), Body::empty()).await.unwrap();
        if n % 3 == 0 {
            settle(&store);
        }
    }
    drop(store);
    assert_eq!(sound(dir.path()).entries, 24);
    dir
}

fn edit(dir: &Path, sql: &str) {
    let conn = Connection::open(dir.join("ledger.db")).unwrap();
    conn.execute_batch(sql).unwrap();
}

fn first_bad(dir: &Path) -> Bad {
    let report = check(dir);
    assert!(!report.ok);
    report.first_bad.unwrap()
}

#[tokio::test]
async fn every_edit_of_the_log_is_named() {
    let source = written().await;
    let cases: [(&str, u64, &str); 22] = [
        ("UPDATE log_entry SET leaf = zeroblob(9) WHERE seq = 4", 4, "leaf cannot be read"),
        ("UPDATE log_entry SET leaf_hash = zeroblob(32) WHERE seq = 5", 5, "the hash that is"),
        ("UPDATE log_entry SET leaf_hash = zeroblob(31) WHERE seq = 5", 5, "the hash that is"),
        (
            "UPDATE log_entry SET leaf = (SELECT leaf FROM log_entry WHERE seq = 7)
          WHERE seq = 5",
            5,
            "",
        ),
        ("DELETE FROM log_entry WHERE seq = 6", 6, "entry 6 is missing"),
        ("DELETE FROM log_entry WHERE seq = 0", 0, "entry 0 is missing"),
        ("DELETE FROM log_entry WHERE seq >= 20", 20, "the head counts 24 entries, the log has 20"),
        ("DELETE FROM log_entry WHERE seq >= 20; UPDATE log_head SET size = 20", 0, "milestone"),
        ("UPDATE log_entry SET seq = -5 WHERE seq = 3", 0, "below 0"),
        ("UPDATE log_entry SET seq = 99 WHERE seq = 3", 3, "entry 3 is missing"),
        (
            "UPDATE log_entry SET seq = 1000 WHERE seq = 8;
          UPDATE log_entry SET seq = 8 WHERE seq = 10;
          UPDATE log_entry SET seq = 10 WHERE seq = 1000",
            8,
            "",
        ),
        ("DELETE FROM log_body WHERE seq = 2", 2, "the body is missing"),
        (
            "UPDATE log_body SET body = (SELECT body FROM log_body WHERE seq = 0) WHERE seq = 2",
            2,
            "field `request` were changed",
        ),
        ("INSERT INTO log_body VALUES (3, x'00')", 3, "the body cannot be read"),
        ("INSERT INTO log_body VALUES (77, x'00')", 24, "a body without its entry"),
        ("UPDATE log_head SET root = zeroblob(32)", 0, "root"),
        ("UPDATE log_head SET root = zeroblob(3)", 0, "the head of the log cannot be read"),
        ("DELETE FROM log_head", 0, "the head of the log is missing"),
        ("UPDATE log_head SET compact_range = zeroblob(8)", 24, "the tree in the head"),
        ("UPDATE log_replica SET hwm = 3", 24, "log_replica"),
        ("DELETE FROM log_replica", 24, "log_replica"),
        ("DROP TABLE log_entry", 0, "no such table"),
    ];
    for (sql, seq, sentence) in cases {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        edit(dir.path(), sql);
        let bad = first_bad(dir.path());
        if sentence != "milestone" {
            assert!(bad.problem.contains(sentence), "{sql}: {bad:?}");
            let seq = if sentence == "root" { bad.seq } else { seq };
            assert_eq!(bad.seq.min(24), seq, "{sql}: {bad:?}");
        }
    }
}

/// Types that the schema forbids, after the schema was loosened.
#[tokio::test]
async fn a_value_of_another_type_is_named() {
    let source = written().await;
    let loose = "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')
                 WHERE type = 'table' AND name LIKE 'log_%' AND sql NOT LIKE '%WITHOUT%';
                 PRAGMA writable_schema = OFF";
    let types: [(&str, u64, &str); 6] = [
        ("UPDATE log_entry SET leaf = 'text' WHERE seq = 4", 4, "the leaf is not a blob"),
        ("UPDATE log_entry SET leaf = NULL WHERE seq = 4", 4, "the leaf is not a blob"),
        ("UPDATE log_entry SET leaf = 12 WHERE seq = 4", 4, "the leaf is not a blob"),
        ("UPDATE log_entry SET leaf_hash = 'text' WHERE seq = 4", 4, "the hash of the leaf"),
        ("UPDATE log_body SET body = NULL WHERE seq = 4", 4, "the body is not a blob"),
        ("UPDATE log_head SET root = 'text'", 0, "the head of the log cannot be read"),
    ];
    for (sql, seq, sentence) in types {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        edit(dir.path(), loose);
        edit(dir.path(), sql);
        let bad = first_bad(dir.path());
        assert!(bad.problem.contains(sentence) && bad.seq == seq, "{sql}: {bad:?}");
    }
}

/// An edit that recomputes what lies beside the leaf still changes the root, and stored roots of
/// earlier sizes say about where.
#[tokio::test]
async fn an_edit_with_its_hash_is_narrowed_down() {
    let dir = written().await;
    let conn = Connection::open(dir.path().join("ledger.db")).unwrap();
    let bytes: Vec<u8> =
        conn.query_row("SELECT leaf FROM log_entry WHERE seq = 14", [], |r| r.get(0)).unwrap();
    let mut leaf = Leaf::decode(&bytes).unwrap();
    leaf.draft.public = Value::map([("outcome", "blocked".into())]);
    let changed = leaf.encode();
    let sql = "UPDATE log_entry SET leaf = ?1, leaf_hash = ?2 WHERE seq = 14";
    conn.execute(sql, params![changed, leaf_hash(&changed)]).unwrap();
    drop(conn);
    conclave_store::rebuild(dir.path()).unwrap();
    let bad = first_bad(dir.path());
    assert!(bad.problem.contains("was changed"), "{bad:?}");
    assert!((12..=14).contains(&bad.seq), "{bad:?}");
}

#[tokio::test]
async fn query_tables_that_say_something_else_are_named() {
    let source = written().await;
    let cases = [
        ("UPDATE response_audit_log SET outcome = 'blocked' WHERE seq = 6", 6),
        ("UPDATE response_audit_log SET tenant = 5 WHERE seq = 6", 6),
        ("UPDATE response_audit_log SET safety_score_e4 = 10000 WHERE seq = 6", 6),
        ("UPDATE response_audit_log SET delivery_status = 'aborted' WHERE seq = 6", 7),
        (
            "UPDATE response_audit_log SET delivery_status = NULL, delivery_seq = NULL
             WHERE seq = 6",
            7,
        ),
        ("DELETE FROM response_audit_log WHERE seq = 6", 6),
        (
            "INSERT INTO response_audit_log SELECT 500, zeroblob(16), tenant, subject, session,
          timestamp_ms, outcome, action, safety_score_e4, regeneration_attempts, crisis, scrutiny,
          model, latency_ms, cost_microusd, NULL, NULL, NULL, 'sent', 0, NULL, verifying_agents,
          consensus_result, drift_alerts, exchange_count, policy, directives FROM response_audit_log
          WHERE seq = 6",
            24,
        ),
        ("DROP TABLE response_audit_log", 0),
    ];
    for (sql, seq) in cases {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        edit(dir.path(), sql);
        let bad = first_bad(dir.path());
        assert!(bad.problem.contains("response_audit_log") && bad.seq == seq, "{sql}: {bad:?}");
    }
}

#[tokio::test]
async fn a_value_larger_than_any_entry_is_not_even_read() {
    let dir = written().await;
    edit(dir.path(), "UPDATE log_entry SET leaf = zeroblob(67108865) WHERE seq = 4");
    let bad = first_bad(dir.path());
    assert!(bad.problem.contains("not a blob of a possible size") && bad.seq == 4, "{bad:?}");
}

/// No byte of the file can be changed so that the check panics; what it says then is another
/// matter.
#[tokio::test]
async fn a_flipped_page_never_panics() {
    let source = written().await;
    let length = std::fs::metadata(source.path().join("ledger.db")).unwrap().len();
    let mut noticed = 0;
    let places: Vec<u64> = (0..length).step_by(397).collect();
    for at in &places {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        let path = dir.path().join("ledger.db");
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, *at).unwrap();
        file.write_all_at(&[byte[0] ^ 0xa5], *at).unwrap();
        let verdict = inspect(dir.path(), Inspection::default());
        noticed += usize::from(verdict.is_err() || verdict.is_ok_and(|report| !report.ok));
    }
    assert!(noticed > places.len() / 8, "{noticed} of {} noticed", places.len());
}

#[tokio::test]
async fn a_truncated_or_replaced_file_is_named() {
    let source = written().await;
    let dir = tempdir().unwrap();
    crash_copy(source.path(), dir.path());
    let path = dir.path().join("ledger.db");
    let length = std::fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    assert!(first_bad(dir.path()).problem.contains("damaged"));
    std::fs::write(&path, vec![1; 10_000]).unwrap();
    assert!(first_bad(dir.path()).problem.contains("damaged"));
}

#[test]
fn what_cannot_be_checked_is_not_called_bad() {
    let dir = tempdir().unwrap();
    let missing = inspect(&dir.path().join("none"), Inspection::default()).unwrap_err();
    assert!(missing.to_string().starts_with("there is no ledger in"), "{missing}");
    std::fs::write(dir.path().join("ledger.db"), b"").unwrap();
    let unmade = inspect(dir.path(), Inspection::default()).unwrap_err();
    assert_eq!(unmade.to_string(), "the ledger is still being made");
    edit(dir.path(), "PRAGMA user_version = 99");
    let newer = inspect(dir.path(), Inspection::default()).unwrap_err();
    assert!(newer.to_string().contains("schema 99"), "{newer}");
}

#[tokio::test]
async fn a_running_store_is_checked_with_what_waits_in_its_spool() {
    let dir = tempdir().unwrap();
    let store = Store::open(lazy(dir.path())).unwrap();
    for n in 1..=5 {
        append(&store, n).await;
    }
    settle(&store);
    for n in 6..=9 {
        append(&store, n).await;
    }
    store.ledger().append(refusal(401, 3), Body::empty()).await.unwrap();
    let mut told = Vec::new();
    let progress = Box::new(|done, total| told.push((done, total)));
    let report =
        inspect(dir.path(), Inspection { progress: Some(progress), ..Inspection::default() })
            .unwrap();
    assert!(report.ok, "{:?}", report.first_bad);
    assert_eq!((report.entries, report.pending, report.bodies), (5, 5, 9));
    assert_eq!((report.outcomes["delivered"], report.refused["401"]), (9, 3));
    assert_eq!(told.last(), Some(&(5, 5)));
    drop(store);
    assert_eq!(sound(dir.path()).entries, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_store_is_never_called_bad() {
    let dir = tempdir().unwrap();
    let mut small = options(dir.path());
    (small.segment_bytes, small.drain_entries_max) = (8 << 10, 5);
    small.drain_linger = std::time::Duration::from_millis(1);
    let store = std::sync::Arc::new(Store::open(small).unwrap());
    let writing = tokio::spawn({
        let store = std::sync::Arc::clone(&store);
        async move {
            for n in 1..=300 {
                turn(&store, n).await;
            }
        }
    });
    while !writing.is_finished() {
        let path = dir.path().to_owned();
        let report = tokio::task::spawn_blocking(move || check(&path)).await.unwrap();
        assert!(report.ok, "{:?}", report.first_bad);
    }
    writing.await.unwrap();
    drop(store);
    assert_eq!(sound(dir.path()).entries, 600);
}

#[tokio::test]
async fn a_scrub_names_what_the_disk_forgot_and_takes_it_back_when_it_is_whole_again() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for n in 1..=30 {
        turn(&store, n).await;
    }
    settle(&store);
    assert_eq!((store.scrub(false).unwrap(), store.scrub(true).unwrap()), (None, None));
    let db = Connection::open(dir.path().join("ledger.db")).unwrap();
    let flip = |table: &str, column: &str, seq: i64| {
        let sql = format!("SELECT {column} FROM {table} WHERE seq = ?1");
        let good: Vec<u8> = db.query_row(&sql, [seq], |row| row.get(0)).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        let write = format!("UPDATE {table} SET {column} = ?1 WHERE seq = ?2");
        db.execute(&write, params![bad, seq]).unwrap();
        let back = write.clone();
        (back, good)
    };
    for (table, column) in [("log_entry", "leaf"), ("log_entry", "leaf_hash"), ("log_body", "body")]
    {
        let (back, good) = flip(table, column, 20);
        let said = store.scrub(false).unwrap().unwrap();
        assert!(said.starts_with("entry 20:"), "{table}.{column}: {said}");
        assert_eq!(store.doubt(), Some(said));
        assert_eq!(store.ledger().state().alerts[0].code, "log_damaged");
        assert!(store.ledger().health().is_ok(), "entries are taken all the same");
        let unsigned = store.publish().unwrap_err().to_string();
        assert!(unsigned.contains("nothing is signed"), "{unsigned}");
        db.execute(&back, params![good, 20]).unwrap();
        assert_eq!(store.scrub(true).unwrap(), None);
        assert_eq!(store.doubt(), None);
        assert!(store.publish().is_ok(), "whole again");
    }
    db.execute("UPDATE log_batch SET root = zeroblob(32)", []).unwrap();
    let said = store.scrub(true).unwrap().unwrap();
    assert!(said.contains("another root"), "{said}");
    db.execute("DELETE FROM log_entry WHERE seq = 7", []).unwrap();
    assert!(store.scrub(true).unwrap().unwrap().starts_with("entry 7: it is missing"));
}
