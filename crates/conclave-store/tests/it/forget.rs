//! Forgetting: what is gone, what stays, and what happens half-way. The tests are named after the
//! catalogue of privacy tests: R-01 and so on.

use crate::support::*;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{DecisionFilter, Pseudonyms, StoredEntry};
use conclave_ledger::{Body, Draft, Kind, Leaf, StoredBody, leaf_hash, tenant_number};
use conclave_store::{RetentionRules, RootKey, Store, StoreOptions, TenantRetention};
use rusqlite::Connection;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::{TempDir, tempdir};

const DAY_MS: u64 = 24 * 3600 * 1000;
const NOON: u64 = 1_800_000_000_000;

/// Every store of these tests draws other numbers, also when a directory is opened again.
fn private(dir: &Path) -> (StoreOptions, Arc<HandClock>) {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let seed = DRAWN.fetch_add(1, Ordering::Relaxed) << 32;
    let clock = Arc::new(HandClock(AtomicU64::new(NOON)));
    let mut made = options(dir);
    made.entropy = Arc::new(CountingEntropy::from(seed));
    (made.clock, made.steady) = (clock.clone(), passing(&clock));
    (made, clock)
}

fn open_private(dir: &Path) -> Store {
    Store::open(private(dir).0).unwrap()
}

fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

async fn named(store: &Store, who: Option<&str>) -> Pseudonyms {
    let (user, session) = (who.map(user), SessionId::new("talk").unwrap());
    store.subjects().name(&tenant(), user.as_ref(), &session).await.unwrap()
}

/// What somebody said; no other test text looks like it.
fn said(who: Option<&str>, n: u64) -> String {
    format!("unmistakable words of {} number {n}", who.unwrap_or("nobody"))
}

fn entry_for(names: Pseudonyms, who: Option<&str>, n: u64) -> (Draft, Body) {
    let (mut draft, _) = decision(n);
    (draft.subject, draft.session) = (names.subject, Some(names.session));
    let mut body = Body::empty();
    body.push("who", [5; 32], format!("{{\"user\":\"{}\"}}", who.unwrap_or("")));
    body.push("request", [6; 32], said(who, n));
    (draft, body)
}

/// One turn of somebody; returns the pseudonym.
async fn speak(store: &Store, who: Option<&str>, n: u64) -> Option<[u8; 16]> {
    let names = named(store, who).await;
    let (draft, body) = entry_for(names, who, n);
    store.ledger().append(draft, body).await.unwrap();
    names.subject
}

async fn found(store: &Store, n: u64) -> StoredEntry {
    let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
    found.into_iter().next().unwrap()
}

async fn words(store: &Store, n: u64) -> Option<String> {
    let body = found(store, n).await.body?;
    let text = StoredBody::decode(&body).unwrap().open("request").unwrap();
    Some(String::from_utf8(text).unwrap())
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// In which files of a directory some bytes stand.
fn grep(dir: &Path, needle: &[u8]) -> Vec<String> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle)
    };
    let found = files(dir).into_iter().filter(holds);
    found.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn wrapped_keys(dir: &Path) -> HashMap<Vec<u8>, Vec<u8>> {
    let conn = Connection::open(dir.join("keys.db")).unwrap();
    let mut rows = conn.prepare("SELECT id, wrapped FROM subject_key").unwrap();
    let read = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    read.map(Result::unwrap).collect()
}

async fn erase(store: &Store, who: &str) -> Option<conclave_engine::ErasureReceipt> {
    store.subjects().erase(&tenant(), &user(who)).await.unwrap()
}

fn bodies_of(dir: &Path, subject: [u8; 16]) -> i64 {
    let conn = Connection::open(dir.join("ledger.db")).unwrap();
    let sql = "SELECT count(*) FROM response_audit_log r JOIN log_body b ON b.seq = r.seq
               WHERE r.subject = ?1";
    conn.query_row(sql, [subject], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn no_file_ever_holds_words_or_names_in_clear() {
    let dir = tempdir().unwrap();
    let (mut undrained, _) = private(dir.path());
    undrained.drain_linger = std::time::Duration::from_secs(3_600);
    let store = Store::open(undrained).unwrap();
    for n in 1..=5 {
        speak(&store, Some("ana@example.org"), n).await;
        speak(&store, None, 10 + n).await;
    }
    // In the spool, then in the database and its log, then after everything was closed.
    for moment in 0..3 {
        for needle in ["unmistakable", "ana@example.org"] {
            assert_eq!(grep(dir.path(), needle.as_bytes()), [""; 0], "{needle}, moment {moment}");
        }
        if moment == 0 {
            settle(&store);
        } else {
            store.shutdown();
        }
    }
    assert!(!grep(dir.path(), b"delivered").is_empty(), "the search finds what is there");
    let report = sound(dir.path());
    assert_eq!((report.bodies, report.opened), (10, 10), "verify opens them all");
}

#[tokio::test]
async fn r01_r02_r03_erased_words_are_gone_and_everything_else_stays() {
    let dir = tempdir().unwrap();
    let store = open_private(dir.path());
    let ana = speak(&store, Some("ana"), 1).await.unwrap();
    for n in 2..=6 {
        speak(&store, Some(if n % 2 == 0 { "ben" } else { "ana" }), n).await;
    }
    speak(&store, None, 7).await;
    settle(&store);
    let before = log_of(dir.path());
    let wrapped = wrapped_keys(dir.path()).remove(ana.as_slice()).unwrap();
    assert!(!grep(dir.path(), &wrapped).is_empty());
    assert_eq!(words(&store, 1).await, Some(said(Some("ana"), 1)));

    let receipt = erase(&store, "ana").await.unwrap();
    assert_eq!((receipt.subject, receipt.decisions, receipt.bodies), (ana, 3, 3));
    for n in [1, 3, 5] {
        assert_eq!(words(&store, n).await, None, "decision {n}");
    }
    for n in [2, 4, 6] {
        assert_eq!(words(&store, n).await, Some(said(Some("ben"), n)));
    }
    assert_eq!(words(&store, 7).await, Some(said(None, 7)));
    assert_eq!(grep(dir.path(), &wrapped), [""; 0], "the wrapped key is nowhere any more");
    assert_eq!(bodies_of(dir.path(), ana), 0);
    assert_eq!(found(&store, 2).await.seq, 1, "nothing has moved");

    // Old leaves are byte for byte the same, and the entry is where the receipt says.
    let after = log_of(dir.path());
    assert_eq!(after[..before.len()], before);
    let entry = after.iter().find(|leaf| leaf.id == receipt.entry).unwrap();
    assert_eq!(entry.draft.kind, Kind::SubjectErase);
    assert_eq!(leaf_hash(&entry.encode()), receipt.leaf_hash);
    store.shutdown();
    let report = sound(dir.path());
    assert_eq!((report.forgotten, report.bodies, report.opened), (3, 4, 4));
}

#[tokio::test]
async fn r04_erasing_twice_or_nobody_answers_clearly() {
    let dir = tempdir().unwrap();
    let store = open_private(dir.path());
    let first = speak(&store, Some("ana"), 1).await;
    assert!(erase(&store, "nobody-of-this-name").await.is_none());
    assert!(erase(&store, "ana").await.is_some());
    assert!(erase(&store, "ana").await.is_none(), "there is nobody any more");
    // Whoever comes back is somebody new.
    let again = speak(&store, Some("ana"), 2).await;
    assert_ne!(first, again);
    assert_eq!(words(&store, 2).await, Some(said(Some("ana"), 2)));
    let receipt = erase(&store, "ana").await.unwrap();
    assert_eq!((Some(receipt.subject), receipt.bodies), (again, 1));
    store.shutdown();
    assert_eq!(sound(dir.path()).forgotten, 2);
}

#[tokio::test]
async fn r04_a_turn_in_flight_is_never_sealed_with_a_dead_key() {
    let dir = tempdir().unwrap();
    let store = Arc::new(open_private(dir.path()));
    let names = named(&store, Some("ana")).await;
    assert!(store.subjects().is_current(names.subject.unwrap()));
    speak(&store, Some("ana"), 1).await;
    erase(&store, "ana").await.unwrap();
    assert!(!store.subjects().is_current(names.subject.unwrap()));
    let (draft, body) = entry_for(names, Some("ana"), 2);
    let refused = store.ledger().append(draft, body).await.unwrap_err().to_string();
    assert!(refused.contains("erased"), "{refused}");

    // Many turns at once while the person is erased: each is either complete and then deleted, or
    // refused.
    let names = named(&store, Some("ana")).await;
    let turns: Vec<_> = (100..400)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (draft, body) = entry_for(names, Some("ana"), n);
                store.ledger().append(draft, body).await.is_ok()
            })
        })
        .collect();
    erase(&store, "ana").await.unwrap();
    for turn in turns {
        turn.await.unwrap();
    }
    settle(&store);
    assert_eq!(bodies_of(dir.path(), names.subject.unwrap()), 0);
    store.shutdown();
    sound(dir.path());
}

fn due_after(days: u32, hold: bool, held: &[&str]) -> RetentionRules {
    let held_users = held.iter().map(|name| user(name)).collect();
    let own = TenantRetention { days: Some(days), hold, held_users };
    RetentionRules { days: 0, tenants: HashMap::from([(tenant(), own)]) }
}

#[tokio::test]
async fn r05_words_are_purged_at_the_boundary_and_a_hold_wins() {
    let dir = tempdir().unwrap();
    let (options, clock) = private(dir.path());
    let store = Store::open(options).unwrap();
    store.set_retention(due_after(30, false, &["held"]));
    let ana = speak(&store, Some("ana"), 1).await.unwrap();
    speak(&store, Some("held"), 2).await;
    speak(&store, None, 3).await;
    clock.0.store(NOON + 1, Ordering::Relaxed);
    speak(&store, Some("ben"), 4).await;

    clock.0.store(NOON + 30 * DAY_MS - 1, Ordering::Relaxed);
    assert_eq!(store.purge_due().unwrap(), 0, "a millisecond early");
    clock.0.store(NOON + 30 * DAY_MS, Ordering::Relaxed);
    store.set_retention(due_after(30, true, &[]));
    assert_eq!(store.purge_due().unwrap(), 0, "the whole tenant is on hold");
    store.set_retention(due_after(30, false, &["held"]));
    assert_eq!(store.purge_due().unwrap(), 2, "ana and nobody");
    assert_eq!(store.purge_due().unwrap(), 0, "only once");
    assert_eq!((words(&store, 1).await, words(&store, 3).await), (None, None));
    assert_eq!(words(&store, 2).await, Some(said(Some("held"), 2)));
    assert_eq!(words(&store, 4).await, Some(said(Some("ben"), 4)));
    let conn = Connection::open(dir.path().join("ledger.db")).unwrap();
    let rows = "SELECT anonymized, data_retention_until FROM response_audit_log WHERE subject = ?1";
    let row: (i64, i64) =
        conn.query_row(rows, [ana], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(row, (1, (NOON + 30 * DAY_MS).cast_signed()));
    drop(conn);
    store.shutdown();
    let report = sound(dir.path());
    assert_eq!((report.forgotten, report.kinds["retention.purge"]), (2, 1));

    // A hold that is lifted lets go.
    let (options, clock) = private(dir.path());
    clock.0.store(NOON + 60 * DAY_MS, Ordering::Relaxed);
    let store = Store::open(options).unwrap();
    store.set_retention(due_after(30, false, &[]));
    // After a month away the clock is believed when it has gone on for a day.
    assert!(store.purge_due().is_err());
    clock.0.store(NOON + 61 * DAY_MS, Ordering::Relaxed);
    assert_eq!(store.purge_due().unwrap(), 2);
    // Whoever was in memory is looked at once more.
    assert_eq!(store.purge_due().unwrap(), 0);
    assert_eq!(wrapped_keys(dir.path()).len(), 0, "keys that open nothing are gone too");
    store.shutdown();
    sound(dir.path());
}

#[tokio::test]
async fn a_missing_body_that_no_entry_explains_is_still_found() {
    let dir = tempdir().unwrap();
    let (options, clock) = private(dir.path());
    let store = Store::open(options).unwrap();
    speak(&store, Some("ana"), 1).await;
    speak(&store, Some("held"), 2).await;
    erase(&store, "ana").await.unwrap();
    store.set_retention(due_after(1, false, &["held"]));
    speak(&store, Some("ben"), 3).await;
    clock.0.store(NOON + DAY_MS, Ordering::Relaxed);
    assert_eq!(store.purge_due().unwrap(), 1);
    store.shutdown();
    sound(dir.path());
    // Whoever deletes the words of somebody on hold, or the table that leads to the entries.
    for edit in ["DELETE FROM log_body", "DELETE FROM log_forgotten"] {
        let copy = tempdir().unwrap();
        crash_copy(dir.path(), copy.path());
        let conn = Connection::open(copy.path().join("ledger.db")).unwrap();
        conn.execute_batch(edit).unwrap();
        drop(conn);
        let bad = check(copy.path()).first_bad.unwrap();
        assert_eq!(bad.problem, "the body is missing", "{edit}");
    }
}

#[tokio::test]
async fn r08_what_is_listed_after_an_erasure_has_no_words() {
    let dir = tempdir().unwrap();
    let store = open_private(dir.path());
    let ana = speak(&store, Some("ana"), 1).await.unwrap();
    erase(&store, "ana").await.unwrap();
    assert_eq!(store.subjects().find(&tenant(), &user("ana")).await.unwrap(), None);
    let filter = DecisionFilter { subject: Some(ana), limit: 9, ..DecisionFilter::default() };
    let rows = store.archive().list(filter).await.unwrap();
    assert_eq!(rows.len(), 1, "what was decided is still known");
    let archive = store.archive();
    let records = store.records();
    let page = conclave_people::export_page(&*archive, &*records, &tenant(), ana, None).await;
    let page = page.unwrap();
    assert_eq!(page.decisions[0]["erased"], true);
    assert!(!page.decisions[0].to_string().contains("unmistakable"));
}

fn copy_of(dir: &Path, names: &[&str]) -> TempDir {
    let copy = tempdir().unwrap();
    for name in names {
        std::fs::copy(dir.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn put_back(copy: &TempDir, dir: &Path) {
    for entry in std::fs::read_dir(copy.path()).unwrap() {
        let entry = entry.unwrap();
        let target = dir.join(entry.file_name());
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{beside}", target.display()));
        }
        std::fs::copy(entry.path(), target).unwrap();
    }
}

#[tokio::test]
async fn r09_older_keys_or_an_older_ledger_forget_again_before_anything_is_served() {
    for restored in [&["keys.db", "root.key"][..], &["ledger.db"][..]] {
        let dir = tempdir().unwrap();
        let store = open_private(dir.path());
        speak(&store, Some("ana"), 1).await;
        speak(&store, Some("ben"), 2).await;
        store.shutdown();
        drop(store);
        let backup = copy_of(dir.path(), restored);
        let store = open_private(dir.path());
        let ana = erase(&store, "ana").await.unwrap().subject;
        store.shutdown();
        drop(store);
        put_back(&backup, dir.path());
        let store = open_private(dir.path());
        assert_eq!(words(&store, 1).await, None, "{restored:?}");
        assert_eq!(words(&store, 2).await, Some(said(Some("ben"), 2)), "{restored:?}");
        assert!(erase(&store, "ana").await.is_none(), "{restored:?}");
        store.shutdown();
        assert_eq!(bodies_of(dir.path(), ana), 0, "{restored:?}");
        assert!(!wrapped_keys(dir.path()).contains_key(ana.as_slice()), "{restored:?}");
        assert_eq!(sound(dir.path()).kinds["subject.erase"], 1, "{restored:?}");
    }
}

#[tokio::test]
async fn c13_an_erasure_that_was_interrupted_is_finished_at_the_next_start() {
    let dir = tempdir().unwrap();
    let store = open_private(dir.path());
    let ana = speak(&store, Some("ana"), 1).await.unwrap();
    store.shutdown();
    drop(store);
    // What a crash leaves right after the key was deleted.
    let conn = Connection::open(dir.path().join("keys.db")).unwrap();
    conn.execute("DELETE FROM subject_key WHERE id = ?1", [ana]).unwrap();
    let intent =
        "INSERT INTO erasure (subject, tenant, request, requested_ms) VALUES (?1, ?2, ?3, 1)";
    let number = tenant_number("acme").cast_signed();
    conn.execute(intent, rusqlite::params![ana, number, [9_u8; 16]]).unwrap();
    drop(conn);
    assert_eq!(sound(dir.path()).forgotten, 0, "not called erased yet");
    let store = open_private(dir.path());
    assert_eq!(words(&store, 1).await, None);
    store.shutdown();
    let report = sound(dir.path());
    assert_eq!((report.forgotten, report.kinds["subject.erase"]), (1, 1));
    drop(open_private(dir.path()));
    assert_eq!(sound(dir.path()).kinds["subject.erase"], 1, "finished once");
}

#[tokio::test]
async fn a_copy_made_before_opens_with_nothing_after_the_keys_were_replaced() {
    let dir = tempdir().unwrap();
    let (options, clock) = private(dir.path());
    let store = Store::open(options).unwrap();
    let ana = speak(&store, Some("ana"), 1).await;
    let ben = speak(&store, Some("ben"), 2).await;
    speak(&store, None, 3).await;
    settle(&store);
    let (copy, control) = (tempdir().unwrap(), tempdir().unwrap());
    crash_copy(dir.path(), copy.path());
    crash_copy(dir.path(), control.path());
    let old_root = std::fs::read(dir.path().join("root.key")).unwrap();
    assert!(!store.rotate_keys_if_due().unwrap(), "nobody was erased");
    erase(&store, "ana").await.unwrap();
    assert!(!store.rotate_keys_if_due().unwrap(), "not yet");
    clock.0.fetch_add(6 * DAY_MS, Ordering::Relaxed);
    assert!(store.rotate_keys_if_due().unwrap());
    assert!(!store.rotate_keys_if_due().unwrap(), "once is enough");

    // Everybody else is who they were, in memory and after a restart.
    assert_eq!(speak(&store, Some("ben"), 4).await, ben);
    store.shutdown();
    drop(store);
    let store = open_private(dir.path());
    assert_eq!(speak(&store, Some("ben"), 5).await, ben);
    for (n, who) in [(2, Some("ben")), (3, None), (4, Some("ben")), (5, Some("ben"))] {
        assert_eq!(words(&store, n).await, Some(said(who, n)));
    }
    store.shutdown();
    drop(store);
    let new_root = std::fs::read(dir.path().join("root.key")).unwrap();
    assert_ne!(old_root, new_root);
    assert_eq!(grep(dir.path(), old_root.trim_ascii()), [""; 0], "the old root key is nowhere");
    let report = sound(dir.path());
    assert_eq!(report.kinds["key.epoch"], 1);

    // The copy as it was made opens: so it is the replaced key that keeps it shut, not the test.
    assert_eq!(sound(control.path()).opened, 3);
    let store = open_private(control.path());
    assert_eq!(speak(&store, Some("ana"), 9).await, ana);
    drop(store);
    std::fs::write(copy.path().join("root.key"), &new_root).unwrap();
    assert_eq!(sound(copy.path()).opened, 0, "today's root key opens nothing of it");
    let sentence = Store::open(private(copy.path()).0).err().unwrap().to_string();
    assert!(sentence.contains("does not open keys.db"), "{sentence}");
    // Nor do today's keys together with the words of then.
    for name in ["keys.db", "root.key"] {
        std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    for beside in ["keys.db-wal", "keys.db-shm"] {
        let _ = std::fs::remove_file(copy.path().join(beside));
    }
    assert_eq!(sound(copy.path()).opened, 2, "ben and nobody, but not ana");
}

#[tokio::test]
async fn a_root_key_kept_elsewhere_is_needed_and_can_be_replaced() {
    let dir = tempdir().unwrap();
    let key = |digit: &str| Some(RootKey::parse(&digit.repeat(64)).unwrap());
    let with = |root_key| StoreOptions { root_key, ..private(dir.path()).0 };
    let store = Store::open(with(key("a"))).unwrap();
    speak(&store, Some("ana"), 1).await;
    store.shutdown();
    drop(store);
    assert!(!dir.path().join("root.key").exists());
    assert!(Store::open(with(None)).is_err());
    let sentence = Store::open(with(key("b"))).err().unwrap().to_string();
    assert!(sentence.contains("does not open keys.db"), "{sentence}");
    let store = Store::open(with(key("a"))).unwrap();
    assert_eq!(store.rotate_keys(key("c")).unwrap(), 1);
    store.shutdown();
    drop(store);
    assert!(Store::open(with(key("a"))).is_err());
    let store = Store::open(with(key("c"))).unwrap();
    assert_eq!(words(&store, 1).await, Some(said(Some("ana"), 1)));
}

/// R-10 at the level of leaves: neither ids nor words nor anything derived from them without a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r10_leaves_name_nobody() {
    const PEOPLE: u64 = 10_000;
    let dir = tempdir().unwrap();
    let store = Arc::new(open_private(dir.path()));
    let mut pseudonyms = BTreeSet::new();
    // A few hundred at a time, so that newcomers share commits.
    for first in (1..=PEOPLE).step_by(500) {
        let arrivals: Vec<_> = (first..first + 500)
            .map(|n| {
                let store = Arc::clone(&store);
                let person = format!("person{n}@mail.example/192.0.2.{}", n % 256);
                tokio::spawn(async move { speak(&store, Some(&person), n).await.unwrap() })
            })
            .collect();
        for arrival in arrivals {
            pseudonyms.insert(arrival.await.unwrap());
        }
    }
    assert_eq!(pseudonyms.len() as u64, PEOPLE, "each their own");
    store.shutdown();
    let log = log_of(dir.path());
    assert_eq!(log.len() as u64, PEOPLE);
    let named = [&b"mail.example"[..], b"192.0.2.", b"unmistakable", b"person"];
    for leaf in log {
        let bytes = leaf.encode();
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        assert!(!named.iter().any(|word| holds(word)), "{}", String::from_utf8_lossy(&bytes));
        assert!(Leaf::decode(&bytes).is_ok());
    }
}

/// Many newcomers at once share commits, and a known person needs none.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn newcomers_come_all_at_once() {
    let dir = tempdir().unwrap();
    let store = Arc::new(open_private(dir.path()));
    let arrivals: Vec<_> = (0..300)
        .map(|n| {
            let store = Arc::clone(&store);
            let name = format!("person{}", n % 150);
            tokio::spawn(async move { (n % 150, speak(&store, Some(&name), n + 1).await.unwrap()) })
        })
        .collect();
    let mut seen: HashMap<u64, [u8; 16]> = HashMap::new();
    for arrival in arrivals {
        let (who, pseudonym) = arrival.await.unwrap();
        assert_eq!(*seen.entry(who).or_insert(pseudonym), pseudonym, "one person, one name");
    }
    assert_eq!(seen.values().collect::<BTreeSet<_>>().len(), 150);
    store.shutdown();
    assert_eq!(sound(dir.path()).opened, 300);
}

const PURGED_DIR: &str = "CONCLAVE_TEST_PURGED_DIR";

/// Not a test of its own: what the process that is killed while it purges runs.
#[tokio::test]
async fn child_that_purges_until_it_is_killed() {
    let Ok(dir) = std::env::var(PURGED_DIR) else { return };
    let (options, clock) = private(Path::new(&dir));
    clock.0.store(NOON + 30 * DAY_MS, Ordering::Relaxed);
    let store = Store::open(options).unwrap();
    store.set_retention(due_after(30, false, &[]));
    store.purge_due().unwrap();
}

#[tokio::test]
async fn c13_a_purge_that_is_killed_is_finished_or_never_begun() {
    for place in ["purge.chosen", "purge.entered", "drain.before_commit", "drain.committed"] {
        let dir = tempdir().unwrap();
        let (options, _) = private(dir.path());
        let store = Store::open(options).unwrap();
        for n in 1..=3 {
            speak(&store, Some("ana"), n).await;
        }
        drop(store);
        let killed = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "forget::child_that_purges_until_it_is_killed", "--nocapture"])
            .env(PURGED_DIR, dir.path())
            .env(conclave_failpoint::VARIABLE, format!("{place}:1"))
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{place}: it was never there: {killed:?}");
        sound(dir.path());
        let (options, clock) = private(dir.path());
        clock.0.store(NOON + 30 * DAY_MS, Ordering::Relaxed);
        let store = Store::open(options).unwrap();
        store.set_retention(due_after(30, false, &[]));
        settle(&store);
        store.purge_due().unwrap();
        for n in 1..=3 {
            assert_eq!(words(&store, n).await, None, "{place}");
        }
        store.shutdown();
        let report = sound(dir.path());
        assert_eq!((report.forgotten, report.kinds["retention.purge"]), (3, 1), "{place}");
    }
}
