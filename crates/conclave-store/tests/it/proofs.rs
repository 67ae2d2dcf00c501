//! Tiles, checkpoints, receipts and keys: what is shown to those who do not trust us.

use crate::support::*;
use conclave_engine::ReceiptState;
use conclave_ledger::{
    Body, Checkpoint, CompactRange, Leaf, Value, VerifierKey, leaf_hash, root_of,
};
use conclave_store::{Inspection, KeptLimits, LedgerReader, Store, StoreOptions, inspect};
use rusqlite::{Connection, params};
use std::path::Path;
use tempfile::{TempDir, tempdir};

fn keys(dir: &Path) -> Vec<VerifierKey> {
    LedgerReader::open(dir).unwrap().vkeys().unwrap()
}

fn pinned(dir: &Path, key: &VerifierKey) -> conclave_ledger::Report {
    let vkey = Some(key.clone());
    inspect(dir, Inspection { vkey, ..Inspection::default() }).unwrap()
}

/// A store with so many refusals, which are quick to write.
fn fill(store: &Store, count: u64) {
    for n in 0..count {
        store.ledger().append_soon(refusal(400 + n % 20, 1), Body::empty());
        if n % 200 == 0 {
            settle(store);
        }
    }
    settle(store);
}

fn notes(dir: &Path) -> Vec<(i64, String)> {
    let conn = Connection::open(dir.join("ledger.db")).unwrap();
    let mut rows = conn.prepare("SELECT size, note FROM log_checkpoint ORDER BY size").unwrap();
    let notes = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    notes.map(Result::unwrap).collect()
}

#[tokio::test]
async fn every_decision_gets_a_receipt_that_holds() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let first = append(&store, 1).await;
    fill(&store, 700);
    append(&store, 2).await;
    settle(&store);
    store.publish().unwrap();
    let key = keys(dir.path());
    for n in [1, 2] {
        let tenant = conclave_ledger::tenant_number("acme");
        let state = store.proofs().receipt(tenant, audit(n)).await.unwrap();
        let ReceiptState::Ready(receipt) = state else { panic!("{state:?}") };
        let (checkpoint, leaf) = receipt.verify(&key).unwrap();
        assert_eq!(checkpoint.size, 702);
        assert_eq!(leaf.draft.audit, Some(audit(n).0.into_bytes()));
        if n == 1 {
            assert_eq!(leaf_hash(&receipt.leaf), first.leaf_hash);
        }
        let stranger = conclave_ledger::tenant_number("other");
        let hidden = store.proofs().receipt(stranger, audit(n)).await.unwrap();
        assert_eq!(hidden, ReceiptState::Unknown);
    }
    drop(store);
    let report = sound(dir.path());
    assert_eq!(report.signed, 702);
    assert!(report.checkpoints > 0);
}

#[tokio::test]
async fn no_size_gets_two_notes_and_restarts_sign_nothing_new() {
    let dir = tempdir().unwrap();
    for run in 0..3 {
        let store = open(dir.path());
        if run < 2 {
            turn(&store, run).await;
            settle(&store);
        }
        store.publish().unwrap();
        assert_eq!(store.publish().unwrap(), None, "nothing new");
    }
    let before = notes(dir.path());
    drop(open(dir.path()));
    assert_eq!(notes(dir.path()), before);
    assert_eq!(before.last().unwrap().0, 4);
    let beside = std::fs::read_to_string(dir.path().join("checkpoint")).unwrap();
    assert_eq!(beside, before.last().unwrap().1);
}

#[tokio::test]
async fn a_store_that_went_back_is_not_signed() {
    let (dir, old) = (tempdir().unwrap(), tempdir().unwrap());
    // Without what is kept, it cannot be made whole again.
    let open = |dir: &Path| {
        let kept = KeptLimits { bytes_max: 0, ..KeptLimits::default() };
        Store::open(StoreOptions { kept, ..options(dir) }).unwrap()
    };
    let store = open(dir.path());
    append(&store, 1).await;
    drop(store);
    std::fs::copy(dir.path().join("ledger.db"), old.path().join("ledger.db")).unwrap();
    let store = open(dir.path());
    append(&store, 2).await;
    append(&store, 3).await;
    drop(store);
    let _ = std::fs::remove_file(dir.path().join("ledger.db-wal"));
    std::fs::copy(old.path().join("ledger.db"), dir.path().join("ledger.db")).unwrap();
    let bad = check(dir.path()).first_bad.unwrap();
    assert!(bad.problem.contains("its end was cut off"), "{bad:?}");
    let store = open(dir.path());
    let refused = store.publish().unwrap_err().to_string();
    assert!(refused.contains("the ledger went back"), "{refused}");
    assert!(store.proofs().health().unwrap_err().contains("the ledger went back"));
    let signed = notes(dir.path()).len();
    for n in 4..=6 {
        append(&store, n).await;
    }
    unsettled(&store, "restored_database");
    let refused = store.publish().unwrap_err().to_string();
    assert!(refused.contains("the ledger went back"), "nothing was appended: {refused}");
    drop(store);
    assert_eq!(notes(dir.path()).len(), signed);
}

#[tokio::test]
async fn a_rotation_is_in_the_log_and_both_keys_sign_until_it_ends() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    append(&store, 1).await;
    settle(&store);
    store.publish().unwrap();
    let first = keys(dir.path()).remove(0);
    let (old, new) = store.rotate_key(&CountingEntropy::from(77)).unwrap();
    assert_eq!(old, first);
    let note = notes(dir.path()).pop().unwrap().1;
    for key in [&old, &new] {
        Checkpoint::open(&note, std::slice::from_ref(key)).unwrap();
    }
    assert!(store.end_key_overlap().unwrap());
    append(&store, 2).await;
    settle(&store);
    store.publish().unwrap();
    drop(store);
    let note = notes(dir.path()).pop().unwrap().1;
    assert!(Checkpoint::open(&note, std::slice::from_ref(&old)).is_err());
    assert_eq!(keys(dir.path()), [new.clone(), old.clone()]);
    for key in [&old, &new] {
        let report = pinned(dir.path(), key);
        assert!(report.ok, "{:?}", report.first_bad);
        assert_eq!(report.kinds.get("key.rotate"), Some(&1));
    }
    let other = conclave_ledger::NoteSigner::new(old.name(), &[9; 32]).unwrap().verifier();
    let bad = pinned(dir.path(), &other).first_bad.unwrap();
    assert!(bad.problem.contains("not signed by the key that was given"), "{bad:?}");
}

#[tokio::test]
async fn a_ledger_from_before_tiles_gets_them_once() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 600);
    drop(store);
    let conn = Connection::open(dir.path().join("ledger.db")).unwrap();
    let tiles = || -> Vec<(i64, i64, Vec<u8>)> {
        let mut rows = conn.prepare("SELECT * FROM log_tile ORDER BY level, idx").unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = tiles();
    assert_eq!(before.len(), 3, "two of level 0 and the growing one above");
    let older = "DROP VIEW response_audit; DROP VIEW ai_usage_daily; DROP INDEX audit_by_time;
                 DROP TABLE log_tile; DROP TABLE log_checkpoint; DROP TABLE log_rotation;
                 DROP TABLE log_forgotten;
                 ALTER TABLE response_audit_log DROP COLUMN anonymized;
                 ALTER TABLE response_audit_log DROP COLUMN data_retention_until;
                 ALTER TABLE response_audit_log DROP COLUMN verifying_agents;
                 ALTER TABLE response_audit_log DROP COLUMN consensus_result;
                 ALTER TABLE response_audit_log DROP COLUMN drift_alerts;
                 ALTER TABLE response_audit_log DROP COLUMN exchange_count;
                 ALTER TABLE response_audit_log DROP COLUMN policy;
                 ALTER TABLE response_audit_log DROP COLUMN directives;
                 DROP INDEX audit_escalated; DROP TABLE ai_usage_events;
                 PRAGMA user_version = 2;";
    conn.execute_batch(older).unwrap();
    std::fs::remove_file(dir.path().join("checkpoint")).unwrap();
    std::fs::remove_file(dir.path().join("ledger.key")).unwrap();
    sound(dir.path());
    drop(open(dir.path()));
    assert_eq!(tiles(), before);
    assert_eq!(sound(dir.path()).signed, 600);
}

#[tokio::test]
async fn a_lost_key_is_not_replaced_silently() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    append(&store, 1).await;
    drop(store);
    std::fs::remove_file(dir.path().join("ledger.key")).unwrap();
    let refused = Store::open(options(dir.path())).err().unwrap().to_string();
    assert!(refused.contains("the ledger has been signed"), "{refused}");
}

/// A closed store with 300 entries and checkpoints on the way, and its key.
fn signed() -> (TempDir, VerifierKey) {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for _ in 0..3 {
        fill(&store, 100);
        store.publish().unwrap();
    }
    drop(store);
    let key = keys(dir.path()).remove(0);
    assert!(pinned(dir.path(), &key).ok);
    (dir, key)
}

#[test]
fn edits_of_tiles_and_checkpoints_are_named() {
    let (source, key) = signed();
    let first = notes(source.path())[0].0;
    let cases: [(String, &str); 13] = [
        ("UPDATE log_tile SET hashes = zeroblob(8192) WHERE level = 0".into(), "tile 0/000 is not"),
        ("UPDATE log_tile SET hashes = zeroblob(9)".into(), "tile 0/000 is not"),
        ("DELETE FROM log_tile WHERE level = 1".into(), "tile 1/000.p/1 is not"),
        ("INSERT INTO log_tile VALUES (5, 9, x'00')".into(), "tiles are stored"),
        ("DROP TABLE log_tile".into(), "log_tile"),
        ("DROP TABLE log_checkpoint".into(), "log_checkpoint"),
        ("UPDATE log_checkpoint SET note = 'x'".into(), "not a signed note"),
        ("UPDATE log_checkpoint SET note = hex(zeroblob(1000000))".into(), "not a signed note"),
        ("UPDATE log_checkpoint SET note = replace(note, '1', '2')".into(), "checkpoint over"),
        (format!("UPDATE log_checkpoint SET size = 7 WHERE size = {first}"), "another size"),
        (format!("UPDATE log_checkpoint SET at_ms = 1 << 61 WHERE size = {first}"), "is older"),
        ("DELETE FROM log_checkpoint".into(), ""),
        ("INSERT INTO log_rotation VALUES (5, 'a+b', 'c')".into(), "rotation"),
    ];
    for (sql, said) in cases {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        Connection::open(dir.path().join("ledger.db")).unwrap().execute_batch(&sql).unwrap();
        let report = pinned(dir.path(), &key);
        // The note beside the database stands in for those that were taken out of it.
        if sql.starts_with("DELETE FROM log_checkpoint") {
            assert_eq!((report.ok, report.checkpoints), (false, 1), "{:?}", report.first_bad);
            continue;
        }
        assert!(!report.ok, "{sql}");
        let bad = report.first_bad.unwrap();
        assert!(bad.problem.contains(said), "{sql}: {bad:?}");
    }
}

/// What somebody does who holds the whole database and knows how it is made.
fn rewrite(dir: &Path, keep: usize, change: impl Fn(usize, Leaf) -> Leaf) {
    let conn = Connection::open(dir.join("ledger.db")).unwrap();
    let mut rows = conn.prepare("SELECT leaf FROM log_entry ORDER BY seq").unwrap();
    let leaves: Vec<Vec<u8>> =
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(rows);
    let (mut range, mut hashes) = (CompactRange::new(), Vec::new());
    conn.execute_batch("DELETE FROM log_entry; DELETE FROM log_batch; DELETE FROM log_tile")
        .unwrap();
    for (seq, leaf) in leaves.iter().take(keep).enumerate() {
        let leaf = change(seq, Leaf::decode(leaf).unwrap()).encode();
        let hash = leaf_hash(&leaf);
        range.append(hash);
        hashes.push(hash);
        let sql = "INSERT INTO log_entry VALUES (?1, ?2, ?3)";
        conn.execute(sql, params![seq as i64, leaf, hash]).unwrap();
    }
    if let Some(tile) = hashes.get(..256) {
        let put = "INSERT INTO log_tile VALUES (?1, 0, ?2)";
        conn.execute(put, params![0, tile.as_flattened()]).unwrap();
        conn.execute(put, params![1, root_of(tile)]).unwrap();
    }
    let (size, root) = (range.size().cast_signed(), range.root());
    let head = "UPDATE log_head SET size = ?1, root = ?2, compact_range = ?3";
    conn.execute(head, params![size, root, range.encode()]).unwrap();
    conn.execute("UPDATE log_replica SET hwm = ?1", [size]).unwrap();
    conn.execute("DELETE FROM log_checkpoint WHERE size > ?1", [size]).unwrap();
    drop(conn);
    conclave_store::rebuild(dir).unwrap();
}

#[test]
fn whoever_rewrites_the_whole_database_meets_the_checkpoints() {
    let (source, key) = signed();
    let copy = || {
        let dir = tempdir().unwrap();
        crash_copy(source.path(), dir.path());
        dir
    };
    let unchanged = copy();
    rewrite(unchanged.path(), 300, |_, leaf| leaf);
    assert!(pinned(unchanged.path(), &key).ok, "the rewriting itself is right");

    let changed = copy();
    rewrite(changed.path(), 300, |seq, mut leaf| {
        if seq == 150 {
            leaf.draft.public = Value::map([("status", 200_u64.into())]);
        }
        leaf
    });
    let bad = pinned(changed.path(), &key).first_bad.unwrap();
    assert!(bad.problem.contains("not the one it was signed for"), "{bad:?}");
    assert!((100..=150).contains(&bad.seq), "narrowed down by the checkpoint before: {bad:?}");

    let cut = copy();
    rewrite(cut.path(), 280, |_, leaf| leaf);
    let bad = pinned(cut.path(), &key).first_bad.unwrap();
    assert!(bad.problem.contains("over 300 entries"), "{bad:?}");
    assert!(bad.problem.contains("the log has 280"), "{bad:?}");

    // With a log and a key of their own only a key from elsewhere helps.
    let own = tempdir().unwrap();
    let entropy = std::sync::Arc::new(CountingEntropy::from(5));
    let options = StoreOptions { entropy, ..options(own.path()) };
    let store = Store::open(options).unwrap();
    fill(&store, 50);
    drop(store);
    assert!(check(own.path()).ok);
    let bad = pinned(own.path(), &key).first_bad.unwrap();
    assert!(bad.problem.contains("no known key has signed"), "{bad:?}");
}
