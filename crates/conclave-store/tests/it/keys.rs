//! Keys made by one process, used by another, and entered into the ledger once.

use crate::support::*;
use conclave_core::TenantId;
use conclave_engine::KeyRole;
use conclave_ledger::{Kind, tenant_number};
use conclave_store::{KeyBook, NewKey, Pepper, Store};
use std::path::Path;
use tempfile::tempdir;

const NOW: u64 = 1_800_000_000_000;

fn new_key(label: &str) -> NewKey {
    NewKey {
        environment: "test".into(),
        tenant: TenantId::new("acme").unwrap(),
        role: KeyRole::App,
        label: label.into(),
        person: Some(" Mara ".into()),
        expires_ms: Some(NOW + 1_000),
    }
}

/// The book as another process opens it.
fn other_process(dir: &Path) -> (KeyBook, CountingEntropy) {
    let entropy = CountingEntropy::from(777_000);
    let pepper = Pepper::load(dir, &entropy).unwrap();
    (KeyBook::open(dir, None, pepper).unwrap(), entropy)
}

#[test]
fn a_key_made_elsewhere_opens_at_once_and_a_revoked_one_says_so() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let ring = store.keys();
    let (book, entropy) = other_process(dir.path());
    let (record, text) = book.issue(new_key("first"), NOW, &entropy).unwrap();
    assert_eq!(ring.find(text.reveal()), Some(record.clone()), "looked up on the first miss");
    assert_eq!(record.person.as_deref(), Some("Mara"));
    assert!(record.is_valid_at(NOW) && !record.is_valid_at(NOW + 1_000));
    book.revoke(record.id.as_str(), NOW + 5, &entropy).unwrap();
    store.sync_keys().unwrap();
    let revoked = ring.find(text.reveal()).unwrap();
    assert_eq!(revoked.revoked_ms, Some(NOW + 5));
    assert!(!revoked.is_valid_at(NOW));
}

#[test]
fn nothing_but_the_whole_key_opens() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let ring = store.keys();
    let entropy = CountingEntropy::from(5);
    let (_, text) = store.key_book().issue(new_key("a"), NOW, &entropy).unwrap();
    store.sync_keys().unwrap();
    assert!(ring.find(text.reveal()).is_some());
    for wrong in ["", "ck_", text.id(), &text.reveal()[..40], &format!("{} ", text.reveal())] {
        assert_eq!(ring.find(wrong), None, "{wrong:?}");
    }
    let stored = std::fs::read(dir.path().join("ops.db")).unwrap();
    let wal = std::fs::read(dir.path().join("ops.db-wal")).unwrap();
    let secret = text.reveal().split('_').nth(3).unwrap().as_bytes();
    for file in [stored, wal] {
        assert!(!file.windows(secret.len()).any(|window| window == secret), "the secret is stored");
    }
}

#[test]
fn each_change_becomes_one_entry() {
    let dir = tempdir().unwrap();
    drop(open(dir.path()));
    let (book, entropy) = other_process(dir.path());
    let (first, _) = book.issue(new_key("while nobody runs"), NOW, &entropy).unwrap();
    let store = open(dir.path());
    let (second, _) = book.issue(new_key("while somebody runs"), NOW, &entropy).unwrap();
    book.revoke(first.id.as_str(), NOW + 1, &entropy).unwrap();
    book.revoke(first.id.as_str(), NOW + 2, &entropy).unwrap();
    store.sync_keys().unwrap();
    drop(store);
    let log = log_of(dir.path());
    let changes: Vec<_> = log
        .iter()
        .filter(|leaf| leaf.draft.kind == Kind::KeyChange)
        .map(|leaf| {
            let text = |key| leaf.draft.public.get(key).unwrap().as_str().unwrap().to_owned();
            assert_eq!(leaf.draft.tenant, tenant_number("acme"));
            (text("change"), text("key"), text("role"))
        })
        .collect();
    let (first, second) = (first.id.to_string(), second.id.to_string());
    let expected = [("created", &first), ("created", &second), ("revoked", &first)];
    let expected = expected.map(|(change, key)| (change.to_owned(), key.clone(), "app".to_owned()));
    assert_eq!(changes, expected);
}

/// The crash between the entry and the removal of its note.
#[test]
fn a_note_that_is_entered_already_is_not_entered_again() {
    let dir = tempdir().unwrap();
    let (book, entropy) = other_process(dir.path());
    book.issue(new_key("a"), NOW, &entropy).unwrap();
    drop(book);
    let before = std::fs::read(dir.path().join("ops.db")).unwrap();
    let store = open(dir.path());
    store.sync_keys().unwrap();
    drop(store);
    for file in ["ops.db-wal", "ops.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(file));
    }
    std::fs::write(dir.path().join("ops.db"), before).unwrap();
    for _ in 0..2 {
        let store = open(dir.path());
        store.sync_keys().unwrap();
        drop(store);
        assert_eq!(sound(dir.path()).kinds["key.change"], 1);
    }
}

#[test]
fn keys_are_listed_with_their_last_use() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let (book, entropy) = other_process(dir.path());
    let (_, used) = book.issue(new_key("used"), NOW, &entropy).unwrap();
    book.issue(new_key("unused"), NOW + 1, &entropy).unwrap();
    store.sync_keys().unwrap();
    store.keys().find(used.reveal()).unwrap();
    drop(store);
    let listed = book.list().unwrap();
    let uses: Vec<_> = listed.iter().map(|key| (&*key.record.label, key.last_used_ms)).collect();
    assert_eq!(uses, [("used", Some(NOW)), ("unused", None)]);
}

#[test]
fn mistakes_with_keys_are_sentences() {
    let dir = tempdir().unwrap();
    let (book, entropy) = other_process(dir.path());
    let sentence = book.revoke("nobody", NOW, &entropy).unwrap_err().to_string();
    assert_eq!(sentence, "there is no key `nobody`");
    let (record, text) = book.issue(new_key("a"), NOW, &entropy).unwrap();
    assert!(book.create(&record, &book.digest(text.reveal()), &entropy).is_err());
    let odd = NewKey { environment: "not a word".into(), ..new_key("b") };
    assert!(book.issue(odd, NOW, &entropy).is_err());
    assert_eq!(book.list().unwrap().len(), 1);
}

#[test]
fn a_row_that_makes_no_sense_opens_nothing_and_stops_nobody() {
    let dir = tempdir().unwrap();
    let (book, entropy) = other_process(dir.path());
    let (_, good) = book.issue(new_key("good"), NOW, &entropy).unwrap();
    let (bad, bad_text) = book.issue(new_key("bad"), NOW, &entropy).unwrap();
    let conn = rusqlite::Connection::open(dir.path().join("ops.db")).unwrap();
    let sql = "UPDATE api_key SET role = 'emperor' WHERE id = ?1";
    conn.execute(sql, [bad.id.as_str()]).unwrap();
    let store: Store = open(dir.path());
    let ring = store.keys();
    assert!(ring.find(good.reveal()).is_some());
    assert_eq!(ring.find(bad_text.reveal()), None);
}
