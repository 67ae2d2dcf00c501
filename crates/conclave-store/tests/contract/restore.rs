//! A database that comes back older than it was: from a backup, or from a standby that was behind.

use crate::forgetting::{named, speak, tenant, user, words};
use crate::place::Place;
use crate::support::*;
use conclave_engine::ReceiptState;
use conclave_ledger::{Kind, Leaf, VerifierKey, tenant_number};
use conclave_store::{Inspection, KeptLimits, Store, StoreOptions};
use std::sync::Arc;
use std::time::Duration;

promises!(
    f04_a_database_from_a_backup_gets_back_everything_in_its_place,
    f04_what_is_not_kept_any_more_needs_an_operator,
    f04_a_backup_of_an_hour_ago_is_made_whole_again_and_again,
    f04_a_backup_from_the_middle_of_a_run_is_made_whole,
    f04_killed_while_handing_over_again_it_goes_on_at_the_next_start,
    r09_a_database_from_a_backup_forgets_again_before_words_are_read,
);

/// Keeps a copy of the database; no store may be open.
fn back_up(place: &Place, name: &str) {
    match &place.cluster {
        Some(cluster) => {
            let sql = format!("CREATE DATABASE {name} TEMPLATE fresh0");
            cluster.sql("postgres", &sql).unwrap();
        }
        None => {
            let from = place.dir(0).join("ledger.db");
            // A store that was closed has left its write-ahead log empty, or the copy takes it in.
            let conn = rusqlite::Connection::open(&from).unwrap();
            let copy = place.root.path().join(name).display().to_string();
            conn.execute("VACUUM INTO ?1", [copy]).unwrap();
        }
    }
}

/// Puts a copy in the place of the database, under the feet of whoever uses it.
fn put_back(place: &Place, name: &str) {
    match &place.cluster {
        Some(cluster) => {
            cluster.sql("postgres", "DROP DATABASE fresh0 WITH (FORCE)").unwrap();
            let sql = format!("CREATE DATABASE fresh0 TEMPLATE {name}");
            cluster.sql("postgres", &sql).unwrap();
        }
        None => {
            let database = place.dir(0).join("ledger.db");
            for part in ["ledger.db-wal", "ledger.db-shm"] {
                let _ = std::fs::remove_file(place.dir(0).join(part));
            }
            std::fs::copy(place.root.path().join(name), database).unwrap();
        }
    }
}

fn with(place: &Place, replica: usize, change: impl FnOnce(&mut StoreOptions)) -> Store {
    let mut options = place.options(replica);
    static SEED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(900_000_000);
    let seed = SEED.fetch_add(1_000_000, std::sync::atomic::Ordering::Relaxed);
    options.entropy = Arc::new(CountingEntropy::from(seed));
    options.segment_bytes = 16 << 10;
    change(&mut options);
    Store::open(options).unwrap()
}

async fn turns(store: &Store, from: u64, count: u64) {
    for n in from..from + count {
        turn(store, n).await;
    }
    settle(store);
}

fn places_of(log: &[Leaf]) -> Vec<String> {
    log.iter().map(|leaf| leaf.id.to_string()).collect()
}

pub async fn f04_a_database_from_a_backup_gets_back_everything_in_its_place(place: &Place) {
    let store = with(place, 0, |_| {});
    turns(&store, 1, 30).await;
    store.publish().unwrap();
    drop(store);
    back_up(place, "backup");
    let store = with(place, 0, |_| {});
    turns(&store, 100, 80).await;
    let signed = store.publish().unwrap();
    assert!(signed.is_some());
    let vkey = VerifierKey::parse(&store.proofs().vkeys().await.unwrap()[0]).unwrap();
    let acme = tenant_number("acme");
    let receipt = store.proofs().receipt(acme, audit(170)).await.unwrap();
    let ReceiptState::Ready(receipt) = receipt else { panic!("no receipt") };
    drop(store);
    let before = place.log();
    put_back(place, "backup");
    let report = place.check();
    let bad = report.first_bad.unwrap().problem;
    assert!(bad.contains("restored_database"), "{bad}");

    let store = with(place, 0, |_| {});
    settle(&store);
    assert_eq!(store.ledger().state().alerts.len(), 0, "it is over");
    let next = turn(&store, 500).await;
    settle(&store);
    store.publish().unwrap().unwrap();
    let (checkpoint, _) = receipt.verify(std::slice::from_ref(&vkey)).unwrap();
    let now = before.len() as u64 + 1;
    let still = store.proofs().consistency(checkpoint.size, now).await.unwrap();
    assert_eq!(still.unwrap().from_root, checkpoint.root, "what was signed is still true");
    drop(store);
    let after = place.log();
    assert_eq!(places_of(&after)[..before.len()], places_of(&before), "each where it stood");
    assert!(before.iter().all(|leaf| leaf.id.n < next.id.n), "no number is given twice");
    let gaps = after.iter().filter(|leaf| leaf.draft.kind == Kind::CoverageGap).count();
    assert_eq!(gaps, 0);
    place.sound();
}

async fn f04_what_is_not_kept_any_more_needs_an_operator(place: &Place) {
    let nothing = |options: &mut StoreOptions| {
        options.kept = KeptLimits { bytes_max: 0, ..KeptLimits::default() };
    };
    let store = with(place, 0, nothing);
    turns(&store, 1, 30).await;
    drop(store);
    back_up(place, "backup");
    let store = with(place, 0, nothing);
    turns(&store, 100, 30).await;
    store.publish().unwrap();
    drop(store);
    let lost = place.log();
    put_back(place, "backup");

    let store = with(place, 0, nothing);
    let told = append(&store, 200).await;
    unsettled(&store, "restored_database");
    assert!(store.ledger().health().is_ok(), "replies go on");
    let alerts = store.ledger().state().alerts;
    let codes: Vec<_> = alerts.iter().map(|alert| alert.code).collect();
    assert!(codes.contains(&"restored_database"), "{codes:?}");
    assert!(alerts.iter().any(|alert| alert.message.contains("accept-restore")), "{alerts:?}");
    assert!(store.publish().is_err(), "nothing is signed");
    assert!(store.archive().find(1, audit(1)).await.is_err(), "nor read");
    drop(store);
    let report = place.check();
    assert!(report.first_bad.unwrap().problem.contains("restored_database"));

    let store = with(place, 0, |options| {
        nothing(options);
        options.accept_restore = true;
    });
    settle(&store);
    let accepted = store.accepted_restore().unwrap();
    assert_eq!((accepted.old_size, accepted.new_size), (lost.len() as u64, 60));
    drop(store);
    let store = with(place, 0, nothing);
    turns(&store, 300, 3).await;
    store.publish().unwrap();
    assert_eq!(store.ledger().state().alerts.len(), 0);
    drop(store);
    let log = place.log();
    let entry = log.iter().find(|leaf| leaf.draft.kind == Kind::Restore).unwrap();
    let public = &entry.draft.public;
    assert_eq!(public.get("old_size"), Some(&(lost.len() as u64).into()));
    assert_eq!(public.get("new_size"), Some(&60_u64.into()));
    assert!(log.iter().any(|leaf| leaf.id == told.id), "what was taken meanwhile is there");
    assert!(log.iter().any(|leaf| leaf.draft.kind == Kind::CoverageGap), "the loss is stated");
    place.sound();
}

async fn f04_a_backup_of_an_hour_ago_is_made_whole_again_and_again(place: &Place) {
    let mut size = 0;
    for round in 0..3_u64 {
        let store = with(place, 0, |_| {});
        turns(&store, 1_000 * round, 20).await;
        if round == 0 {
            drop(store);
            back_up(place, "backup");
            continue;
        }
        store.publish().unwrap();
        drop(store);
        let before = place.log();
        assert!(before.len() > size);
        size = before.len();
        put_back(place, "backup");
        let store = with(place, 0, |_| {});
        settle(&store);
        drop(store);
        assert_eq!(places_of(&place.log()), places_of(&before), "round {round}");
    }
}

/// Joins the notes of neighbouring batches, as happens when there are many.
fn join_positions(place: &Place) {
    let path = place.dir(0).join("positions");
    let text = std::fs::read_to_string(&path).unwrap();
    let runs: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("b "))
        .map(|line| line.split(' ').collect())
        .collect();
    let (first, last) = (runs.first().unwrap(), runs.last().unwrap());
    let joined = [first[0], first[1], first[2], last[3], first[4], last[5], last[6]].join(" ");
    std::fs::write(&path, format!("{joined}\nc\n")).unwrap();
}

async fn f04_a_backup_from_the_middle_of_a_run_is_made_whole(place: &Place) {
    let store = with(place, 0, |_| {});
    turns(&store, 1, 10).await;
    drop(store);
    back_up(place, "backup");
    let store = with(place, 0, |_| {});
    turns(&store, 100, 20).await;
    store.publish().unwrap();
    drop(store);
    let before = place.log();
    join_positions(place);
    put_back(place, "backup");
    // Several commits for one run, with others that have only what is there already.
    let store = with(place, 0, |options| options.drain_entries_max = 3);
    settle(&store);
    assert_eq!(store.ledger().state().alerts.len(), 0, "it is over");
    drop(store);
    assert_eq!(places_of(&place.log()), places_of(&before));
    place.sound();
}

const KILLED_DIR: &str = "CONCLAVE_TEST_RESTORED_DIR";
const KILLED_URL: &str = "CONCLAVE_TEST_RESTORED_URL";
const KILLED_ACCEPTS: &str = "CONCLAVE_TEST_RESTORED_ACCEPTS";

/// No test of its own: the test below runs it in a process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_is_killed_while_handing_over_again() {
    let Some(dir) = std::env::var_os(KILLED_DIR) else { return };
    let mut options = options(std::path::Path::new(&dir));
    let url = std::env::var(KILLED_URL).ok();
    options.database = url.map(|url| conclave_store::DatabaseUrl::parse(&url).unwrap());
    options.entropy = Arc::new(CountingEntropy::from(3_000_000_000));
    options.segment_bytes = 16 << 10;
    options.drain_entries_max = 4;
    options.accept_restore = std::env::var_os(KILLED_ACCEPTS).is_some();
    settle(&Store::open(options).unwrap());
}

async fn f04_killed_while_handing_over_again_it_goes_on_at_the_next_start(place: &Place) {
    let store = with(place, 0, |_| {});
    turns(&store, 1, 5).await;
    drop(store);
    back_up(place, "backup");
    let store = with(place, 0, |_| {});
    turns(&store, 100, 20).await;
    store.publish().unwrap();
    drop(store);
    let before = place.log();
    let whole = place.root.path().join("whole");
    crash_copy(&place.dir(0), &whole);
    for (died_at, accepts) in [
        ("restore.handed_over:2", false),
        ("restore.put_aside:1", true),
        ("restore.accepted:1", true),
        ("restore.handed_over:2", true),
    ] {
        std::fs::remove_dir_all(place.dir(0)).unwrap();
        crash_copy(&whole, &place.dir(0));
        put_back(place, "backup");
        if accepts {
            std::fs::write(place.dir(0).join("positions"), contradicting(place)).unwrap();
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "restore::child_that_is_killed_while_handing_over_again"]);
        child.env(KILLED_DIR, place.dir(0)).env(conclave_failpoint::VARIABLE, died_at);
        if let Some(cluster) = &place.cluster {
            child.env(KILLED_URL, cluster.url("fresh0"));
        }
        if accepts {
            child.env(KILLED_ACCEPTS, "1");
        }
        let killed = child.output().unwrap();
        assert_eq!(killed.status.code(), None, "{died_at}: it was never there: {killed:?}");
        let begun = died_at != "restore.put_aside:1";
        let store = with(place, 0, |options| options.accept_restore = accepts && !begun);
        settle(&store);
        turns(&store, 500, 1).await;
        store.publish().unwrap();
        drop(store);
        let log = place.log();
        if !accepts {
            assert_eq!(places_of(&log)[..before.len()], places_of(&before), "{died_at}");
        }
        let decisions = log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision).count();
        assert_eq!(decisions, 5 + 20 + 1, "{died_at}: nothing is lost");
        let gaps = log.iter().filter(|leaf| leaf.draft.kind == Kind::CoverageGap).count();
        assert_eq!(gaps, 0, "{died_at}: nothing is missing");
        place.sound();
    }
}

/// A note that the database contradicts, so that somebody has to decide.
fn contradicting(place: &Place) -> String {
    let text = std::fs::read_to_string(place.dir(0).join("positions")).unwrap();
    let whose = text.lines().find_map(|line| line.strip_prefix("b ")?.split(' ').next()).unwrap();
    format!("b {whose} 0 1 1 1 {}\nc\n", "00".repeat(32))
}

async fn r09_a_database_from_a_backup_forgets_again_before_words_are_read(place: &Place) {
    let store = with(place, 0, |_| {});
    speak(&store, "ana", 1).await;
    let ben = speak(&store, "ben", 2).await;
    settle(&store);
    drop(store);
    back_up(place, "backup");
    let store = with(place, 0, |_| {});
    speak(&store, "ana", 3).await;
    store.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    speak(&store, "ben", 4).await;
    settle(&store);
    store.publish().unwrap();
    drop(store);
    put_back(place, "backup");
    let store = with(place, 0, |_| {});
    for n in [1, 3] {
        let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
        assert!(found.first().unwrap().body.is_none(), "entry {n} of somebody who was erased");
    }
    assert_eq!(words(&store, 2).await.unwrap(), "unmistakable words of ben");
    assert_eq!(words(&store, 4).await.unwrap(), "unmistakable words of ben");
    assert_eq!(named(&store, "ben").await.subject, Some(ben));
    let known = store.subjects().find(&tenant(), &user("ana")).await.unwrap();
    assert_eq!(known, None, "nobody knows her any more");
    drop(store);
    let report = place.sound();
    assert_eq!((report.opened, report.forgotten), (2, 2));
    assert_eq!(report.kinds["subject.erase"], 1, "the entry came back; it is not made twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r01_what_is_kept_of_somebody_who_was_erased_opens_with_no_key() {
    let place = Place::sqlite();
    let store = with(&place, 0, |_| {});
    for n in 1..=10 {
        speak(&store, "ana", n).await;
    }
    store.subjects().erase(&tenant(), &user("ana")).await.unwrap().unwrap();
    settle(&store);
    drop(store);
    let kept = place.dir(0).join("spool/kept");
    let files: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(!files.is_empty(), "segments are kept");
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(12).any(|part| part == b"unmistakable"), "{}", file.display());
    }
    // As a spool of a log that never heard of the erasure: with today's keys nothing opens.
    let other = tempfile::tempdir().unwrap();
    crash_copy(&place.dir(0), other.path());
    for part in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "positions", "checkpoint"] {
        let _ = std::fs::remove_file(other.path().join(part));
    }
    std::fs::remove_dir_all(other.path().join("spool")).unwrap();
    crash_copy(&kept, &other.path().join("spool"));
    let mut options = place.options(0);
    options.dir = other.path().to_owned();
    options.entropy = Arc::new(CountingEntropy::from(77_000_000));
    let store = Store::open(options).unwrap();
    settle(&store);
    drop(store);
    let report = conclave_store::inspect(other.path(), Inspection::default()).unwrap();
    assert_eq!((report.opened, report.kinds["decision"]), (0, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_two_replicas_hand_over_again_in_the_order_that_was_signed() {
    let place = Place::postgres();
    drop(place.open());
    let open = |replica| with(&place, replica, |_| {});
    let (first, second) = (open(0), open(1));
    turns(&first, 1, 5).await;
    turns(&second, 50, 5).await;
    drop((first, second));
    back_up(&place, "backup");
    let (first, second) = (open(0), open(1));
    for round in 0..6 {
        turns(&first, 100 + 10 * round, 3).await;
        turns(&second, 200 + 10 * round, 2).await;
    }
    first.publish().unwrap();
    drop((first, second));
    let before = place.log();
    // Both are away, then one comes and waits for the other.
    put_back(&place, "backup");
    let second = open(1);
    append(&second, 900).await;
    unsettled(&second, "restored_database");
    let first = open(0);
    settle(&first);
    settle(&second);
    append(&first, 901).await;
    settle(&first);
    first.publish().unwrap().unwrap();
    drop((first, second));
    let after = place.log();
    assert_eq!(places_of(&after)[..before.len()], places_of(&before));
    place.sound();

    // Both run while the database is put back under them.
    let (first, second) = (open(0), open(1));
    turns(&first, 910, 1).await;
    let before = place.log();
    put_back(&place, "backup");
    let both = tokio::task::spawn_blocking(move || {
        for store in [&first, &second] {
            store.settle(Duration::from_secs(60)).unwrap();
        }
        (first, second)
    });
    let (first, second) = both.await.unwrap();
    append(&second, 911).await;
    settle(&second);
    settle(&first);
    second.publish().unwrap();
    drop((first, second));
    assert_eq!(places_of(&place.log())[..before.len()], places_of(&before));
    place.sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_somebody_who_knew_of_nothing_appended_first_and_an_operator_decides_once_for_all() {
    let place = Place::postgres();
    drop(place.open());
    let open = |replica| with(&place, replica, |_| {});
    let (first, second) = (open(0), open(1));
    turns(&first, 1, 5).await;
    turns(&second, 50, 5).await;
    drop((first, second));
    back_up(&place, "backup");
    let (first, second) = (open(0), open(1));
    turns(&first, 100, 3).await;
    turns(&second, 200, 3).await;
    first.publish().unwrap();
    second.publish().unwrap();
    drop((first, second));
    put_back(&place, "backup");
    // A replica that is new here cannot know.
    let third = open(2);
    turns(&third, 800, 4).await;
    drop(third);
    let first = open(0);
    append(&first, 901).await;
    unsettled(&first, "accept-restore");
    assert!(first.publish().is_err());
    drop(first);
    let accepting = with(&place, 0, |options| options.accept_restore = true);
    settle(&accepting);
    assert!(accepting.accepted_restore().is_some());
    drop(accepting);
    // The others follow by themselves.
    let (first, second) = (open(0), open(1));
    turns(&second, 902, 1).await;
    turns(&first, 903, 1).await;
    first.publish().unwrap();
    drop((first, second));
    let log = place.log();
    let decisions = log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision).count();
    assert_eq!(decisions, 10 + 6 + 4 + 3, "nothing is lost but places");
    assert_eq!(log.iter().filter(|leaf| leaf.draft.kind == Kind::Restore).count(), 1);
    place.sound();
}

/// The keys of people are in the database that came back older, with those of the tenant that wrap them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_the_keys_of_newcomers_come_back_with_and_without_a_restart() {
    for restarted in [false, true] {
        let place = Place::postgres();
        let store = with(&place, 0, |_| {});
        turns(&store, 1, 3).await;
        drop(store);
        back_up(&place, "backup");
        let store = with(&place, 0, |_| {});
        let ben = speak(&store, "ben", 12).await;
        speak(&store, "zoe", 13).await;
        store.subjects().erase(&tenant(), &user("zoe")).await.unwrap().unwrap();
        settle(&store);
        store.publish().unwrap();
        let store = if restarted {
            drop(store);
            put_back(&place, "backup");
            with(&place, 0, |_| {})
        } else {
            put_back(&place, "backup");
            store
        };
        assert_eq!(speak(&store, "ben", 14).await, ben, "who they were: {restarted}");
        store.settle(Duration::from_secs(60)).unwrap();
        for n in [12, 14] {
            let read = words(&store, n).await;
            assert_eq!(read.as_deref(), Some("unmistakable words of ben"), "{n}, {restarted}");
        }
        assert_eq!(store.subjects().find(&tenant(), &user("zoe")).await.unwrap(), None);
        drop(store);
        let store = with(&place, 0, |_| {});
        assert_eq!(words(&store, 14).await.unwrap(), "unmistakable words of ben");
        assert_eq!(named(&store, "ben").await.subject, Some(ben));
        drop(store);
        let report = place.sound();
        assert_eq!((report.opened, report.forgotten), (report.bodies, 1), "{restarted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_if_the_replica_that_asked_to_wait_is_lost_any_other_can_accept() {
    let place = Place::postgres();
    drop(place.open());
    let open = |replica| with(&place, replica, |_| {});
    let (first, second) = (open(0), open(1));
    turns(&first, 1, 5).await;
    drop((first, second));
    back_up(&place, "backup");
    let (first, second) = (open(0), open(1));
    turns(&first, 100, 3).await;
    turns(&second, 200, 3).await;
    second.publish().unwrap();
    drop((first, second));
    put_back(&place, "backup");
    // It asks everybody to wait for what the first has to hand over, and neither is seen again.
    let second = open(1);
    unsettled(&second, "restored_database");
    drop(second);
    let third = open(2);
    let read = third.archive().find(tenant_number("acme"), audit(1)).await;
    let why = read.unwrap_err().to_string();
    assert!(why.contains("another replica"), "who was erased may be readable still: {why}");
    append(&third, 800).await;
    unsettled(&third, "accept-restore");
    drop(third);
    let accepting = with(&place, 2, |options| options.accept_restore = true);
    settle(&accepting);
    let accepted = accepting.accepted_restore().unwrap();
    assert_eq!((accepted.old_size, accepted.old_root), (22, None));
    drop(accepting);
    let third = open(2);
    turns(&third, 900, 1).await;
    let read = third.archive().find(tenant_number("acme"), audit(1)).await;
    assert!(!read.unwrap().is_empty());
    third.publish().unwrap();
    drop(third);
    // A number that counted would be given again by a database from before the acceptance.
    let numbers = "SELECT count(*) FROM restore_accepted WHERE number > 1600000000000";
    assert_eq!(crate::forgetting::number(&place, numbers), 1);
    // They come back after all, and follow.
    let (first, second) = (open(0), open(1));
    turns(&first, 910, 1).await;
    turns(&second, 911, 1).await;
    drop((first, second));
    let log = place.log();
    let decisions = log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision).count();
    assert_eq!(decisions, 5 + 6 + 2 + 2, "nothing is lost but places");
    place.sound();
}
