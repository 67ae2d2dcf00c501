//! The real program, really killed: at every place where it matters, and at random under load.
//!
//! `cargo xtask faults` runs this with more kills; `docs/guide/faults.md` says which test stands for
//! which fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod faults_suite;
mod house;

use conclave_testkit::{Behaviour, MockModel};
use faults_suite::{Dice, Installation, OnPostgres, OnSqlite};
use faults_suite::{Received, check, check_and_tell, load, worth_a_look};
use house::{House, Reply, conclave, config_for};
use std::process::Command;

/// The load is what matters here: the second tier would only slow it down.
const CONFIG: &str = "[detection]\nsecond_tier = \"never\"\n";
const SIGKILL: Option<i32> = Some(9);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Kills the program at one place for the n-th time, after an earlier kill has left it something to
/// recover; then asks the oracle.
async fn die_at(place: &str, nth: u64) {
    die_within(500, place, nth).await;
}

/// The same, where more replies than a few may go by before the place is reached.
async fn die_within(replies: usize, place: &str, nth: u64) {
    die_in(&OnSqlite::new(CONFIG), replies, place, nth).await;
}

async fn die_in(home: &dyn Installation, replies: usize, place: &str, nth: u64) {
    let what = format!("{place}, time {nth}");
    let mut received = Received::default();
    let house = home.start(None).pop().expect("it starts");
    assert_eq!(load(house, 4, usize::MAX, Some(6), &mut received).await, SIGKILL);
    match home.start(Some(&format!("{place}:{nth}"))).pop() {
        // It died on the way up, as it does where recovery comes to the place.
        None => {}
        Some(house) => {
            let ended = load(house, 4, replies, None, &mut received).await;
            assert_eq!(ended, SIGKILL, "{what}: it never came there");
        }
    }
    check(home, &received, &what).await;
}

macro_rules! places {
    ($($name:ident: $($place:literal),+;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for place in [$($place),+] {
                for nth in [1, 3] {
                    die_at(place, nth).await;
                }
            }
        }
    )+

    const KILLED_IN_A_TURN: &[&str] = &[$($($place),+),+];

    /// So that a new place cannot be forgotten here.
    const KILLED_AT: &[&str] = &[
        $($($place),+),+, "spool.before_create", "spool.created", "drain.before_remove",
        "run.recorded", "checkpoint.signed", "checkpoint.kept", "erase.forgotten", "erase.entered",
        "keys.prepared", "keys.replaced", "rebuild.derived", "move.copied", "move.committed",
        "schema.step",
        // In the store, where a test has the clock: `c13_a_purge_that_is_killed_is_finished_or_never_begun`.
        "purge.chosen", "purge.entered",
        // In the store as well: `f04_killed_while_handing_over_again_it_goes_on_at_the_next_start`.
        "restore.put_aside", "restore.accepted", "restore.handed_over",
    ];
    };
}

places! {
    killed_before_the_decision_is_written: "turn.accepted", "turn.answered", "turn.decided";
    killed_around_the_reply: "turn.recorded", "reply.begun", "reply.half_sent";
    killed_while_writing: "spool.before_write", "spool.inside_write";
    killed_while_syncing: "spool.before_sync", "spool.synced";
    killed_while_draining: "drain.before_begin", "drain.locked", "drain.inserted";
    killed_around_the_commit: "drain.before_commit", "drain.committed";
}

/// Two segments are made at every start, and what recovery has drained is removed once.
const SEGMENTS: &[(&str, u64)] = &[
    ("spool.before_create", 1),
    ("spool.before_create", 2),
    ("spool.created", 1),
    ("spool.created", 2),
    ("drain.before_remove", 1),
];

/// Checkpoints are signed once a second.
const CHECKPOINTS: &[(&str, u64)] =
    &[("checkpoint.signed", 1), ("checkpoint.kept", 1), ("checkpoint.kept", 2)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_making_or_removing_a_segment() {
    for &(place, nth) in SEGMENTS {
        die_at(place, nth).await;
    }
}

/// C-12: a size never gets two notes, and what was signed before is still begun with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_signing_a_checkpoint() {
    for &(place, nth) in CHECKPOINTS {
        die_within(100_000, place, nth).await;
    }
}

/// The same places on PostgreSQL, once each; with more kills asked for, as often as on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_place_with_postgresql() {
    let cluster = conclave_testkit::Cluster::start().unwrap();
    let again = number("CONCLAVE_FAULT_KILLS", 0) > 20;
    let turns = KILLED_IN_A_TURN.iter().flat_map(|place| [(*place, 1), (*place, 3)]);
    let turns = turns.chain(SEGMENTS.iter().copied()).map(|(place, nth)| (500, place, nth));
    let notes = CHECKPOINTS.iter().map(|(place, nth)| (100_000, *place, *nth));
    for (replies, place, nth) in turns.chain(notes).filter(|(_, _, nth)| again || *nth == 1) {
        let home = OnPostgres::new(cluster.fresh().unwrap(), CONFIG);
        die_in(&home, replies, place, nth).await;
    }
}

const ANA: &str = "ana@mail.example";
const BEN: &str = "ben@mail.example";

/// An installation with something that two people said, stopped.
async fn two_people(dir: &std::path::Path, config: &str) {
    let program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    let house = House::try_start(program, dir, config).unwrap();
    for who in [ANA, BEN] {
        let body = serde_json::json!({
            "model": "builtin", "user": who,
            "messages": [{"role": "user", "content": format!("unmistakable words of {who}")}],
        });
        let reply = house.post("/v1/chat/completions", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert!(house.stop());
}

/// Runs a command on an installation, which may die at a place; says how it ended and what it said.
fn run_in(dir: &std::path::Path, args: &[&str], die_at: Option<&str>) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    program.args(args).env_remove("RUST_LOG");
    program.arg("--data").arg(dir.join("data")).arg("--config").arg(dir.join("conclave.toml"));
    if let Some(place) = die_at {
        program.env(conclave_failpoint::VARIABLE, format!("{place}:1"));
    }
    let output = program.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn verified(dir: &std::path::Path, database: Option<&str>) -> serde_json::Value {
    let data = dir.join("data");
    let args = ["--json", "ledger", "verify", "--data", data.to_str().unwrap()];
    let database = database.map(|url| ["--database", url]);
    let args = [&args[..], database.as_ref().map_or(&[], |args| &args[..])].concat();
    let output = conclave(&args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// C-13, on SQLite and on PostgreSQL: each resumes or rolls back, and nobody else notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_forgetting_or_replacing_keys() {
    let cluster = conclave_testkit::Cluster::start().unwrap();
    for on_postgres in [false, true] {
        for place in ["erase.forgotten", "erase.entered", "keys.prepared", "keys.replaced"] {
            let dir = tempfile::tempdir().unwrap();
            let url = on_postgres.then(|| cluster.fresh().unwrap());
            let storage = url.as_ref().map(|url| format!("[storage]\ndatabase = \"{url}\"\n"));
            let config = format!("{CONFIG}{}", storage.unwrap_or_default());
            two_people(dir.path(), &config).await;
            let erasing = place.starts_with("erase");
            let args: &[&str] = if erasing {
                &["subject", "erase", ANA, "--yes"]
            } else {
                &["keys", "rotate-epoch"]
            };
            let (code, said) = run_in(dir.path(), args, Some(place));
            assert_eq!(code, None, "{place}: it never came there: {said}");
            verified(dir.path(), url.as_deref());
            let (code, said) = run_in(dir.path(), &["subject", "export", BEN], None);
            assert_eq!(code, Some(0), "{place}: {said}");
            assert!(said.contains("unmistakable words of ben"), "{place}: {said}");
            let (code, said) = run_in(dir.path(), &["subject", "export", ANA], None);
            assert_eq!(code == Some(1), erasing, "{place}: {said}");
            if !erasing {
                let (code, said) = run_in(dir.path(), &["keys", "rotate-epoch"], None);
                assert_eq!(code, Some(0), "{place}: {said}");
            }
            let (code, said) = run_in(dir.path(), &["subject", "export", BEN], None);
            assert_eq!(code, Some(0), "{place}: {said}");
            let report = verified(dir.path(), url.as_deref());
            let left = if erasing { 1 } else { 2 };
            assert_eq!(report["opened"], left, "{place}: {report}");
        }
    }
}

/// C-13: derived tables are as they were or as they shall be, and can be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_deriving_tables_again() {
    let cluster = conclave_testkit::Cluster::start().unwrap();
    for url in [None, Some(cluster.fresh().unwrap())] {
        let dir = tempfile::tempdir().unwrap();
        let storage = url.as_ref().map(|url| format!("[storage]\ndatabase = \"{url}\"\n"));
        two_people(dir.path(), &format!("{CONFIG}{}", storage.unwrap_or_default())).await;
        let data = dir.path().join("data");
        let mut args = vec!["ledger", "rebuild", "--data", data.to_str().unwrap()];
        args.extend(url.iter().flat_map(|url| ["--database", url.as_str()]));
        let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
        program.args(&args).env(conclave_failpoint::VARIABLE, "rebuild.derived:1");
        assert_eq!(program.output().unwrap().status.code(), None, "it never came there");
        let before = verified(dir.path(), url.as_deref());
        assert_eq!(conclave(&args).status.code(), Some(0));
        assert_eq!(verified(dir.path(), url.as_deref())["root"], before["root"]);
    }
}

/// C-13: a log that moves stands in one database or in the other, never half in each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_moving_to_postgresql() {
    let cluster = conclave_testkit::Cluster::start().unwrap();
    for place in ["move.copied", "move.committed"] {
        let dir = tempfile::tempdir().unwrap();
        two_people(dir.path(), CONFIG).await;
        let before = verified(dir.path(), None);
        let (data, url) = (dir.path().join("data"), cluster.fresh().unwrap());
        let (data, to) = (data.to_str().unwrap(), ["--database", url.as_str()]);
        let args = ["--json", "migrate", "sqlite-to-postgres", "--data", data, to[0], to[1]];
        let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
        program.args(args).env(conclave_failpoint::VARIABLE, format!("{place}:1"));
        assert_eq!(program.output().unwrap().status.code(), None, "{place}: never reached");
        assert_eq!(verified(dir.path(), None)["root"], before["root"], "{place}");
        let again = conclave(&args);
        let moved: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(again.status.code(), Some(0), "{place}: {moved}");
        assert_eq!((&moved["verified"], &moved["root"]), (&true.into(), &before["root"]));
        assert_eq!(moved["was_there"], place == "move.committed", "{moved}");
        let config = format!("{CONFIG}[storage]\ndatabase = \"{url}\"\n");
        let program = Command::new(env!("CARGO_BIN_EXE_conclave"));
        assert!(House::try_start(program, dir.path(), &config).unwrap().stop(), "{place}");
        assert_eq!(verified(dir.path(), Some(&url))["opened"], 2, "{place}");
    }
}

/// C-13, F-20: a step of the schema that was interrupted is made by the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_the_tables_are_made() {
    let cluster = conclave_testkit::Cluster::start().unwrap();
    for on_postgres in [false, true] {
        for nth in [1, 2, 7] {
            let home: Box<dyn Installation> = match on_postgres {
                true => Box::new(OnPostgres::new(cluster.fresh().unwrap(), CONFIG)),
                false => Box::new(OnSqlite::new(CONFIG)),
            };
            let order = format!("schema.step:{nth}");
            assert!(home.start(Some(&order)).is_empty(), "step {nth}: never reached");
            let mut received = Received::default();
            let house = home.start(None).pop().expect("it starts");
            assert_eq!(load(house, 2, 3, None, &mut received).await, None);
            check(&*home, &received, &format!("step {nth}")).await;
        }
    }
}

#[test]
fn every_place_to_die_at_is_died_at() {
    for place in conclave_failpoint::PLACES {
        assert!(KILLED_AT.contains(&place), "{place}");
    }
    assert_eq!(KILLED_AT.len(), conclave_failpoint::PLACES.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_under_load_lose_nothing_that_was_received() {
    let (kills, seed) = (number("CONCLAVE_FAULT_KILLS", 20), number("CONCLAVE_FAULT_SEED", 1));
    let home = OnSqlite::new(CONFIG);
    let mut dice = Dice(seed);
    let mut received = Received::default();
    for kill in 0..kills {
        let house = home.start(None).pop().expect("it starts after every kill");
        let enough = usize::try_from(1 + dice.below(150)).unwrap();
        assert_eq!(load(house, 64, usize::MAX, Some(enough), &mut received).await, SIGKILL);
        if worth_a_look(kill) {
            let (code, report) = home.verify();
            assert_eq!(code, Some(0), "seed {seed}, kill {kill}: {report}");
        }
    }
    assert!(received.len() as u64 > kills, "too few replies to mean anything");
    println!("figure: sqlite, kills: {kills}");
    let what = format!("{kills} kills, seed {seed}");
    check_and_tell(&home, &received, &what, &|line| println!("figure: sqlite, {line}")).await;
}

#[test]
fn the_shipped_program_has_no_place_to_die_at() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["tree", "--offline", "--manifest-path", manifest, "-e", "normal,features"])
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("conclave-failpoint"), "{tree}");
    for feature in ["armed", "blind", "bare-checks", "bare-ledger"] {
        let named = format!("feature \"{feature}\"");
        assert!(!tree.contains(&named), "the feature {feature} is for tests and benchmarks");
    }
    // The test command makes a release build first and says where it is.
    if let Some(shipped) = std::env::var_os("CONCLAVE_BIN") {
        let bytes = std::fs::read(shipped).unwrap();
        for word in conclave_failpoint::PLACES.iter().chain([&conclave_failpoint::VARIABLE]) {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "`{word}` is in the shipped program");
        }
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_directory_is_refused() {
    let home = OnSqlite::new(CONFIG);
    let first = home.start(None).pop().unwrap();
    let data = home.data();
    let second = conclave(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("another conclave (pid"), "{said}");
    assert!(first.stop());
}

/// Runs some turns, stops, and hands the data directory over to be damaged.
async fn some_turns(home: &OnSqlite) {
    let house = home.start(None).pop().unwrap();
    let mut received = Received::default();
    assert_eq!(load(house, 4, 10, None, &mut received).await, None);
}

/// Puts a copy of the database as it is now elsewhere.
fn back_up(home: &OnSqlite) -> std::path::PathBuf {
    let backup = home.dir().join("backup.db");
    let conn = rusqlite::Connection::open(home.data().join("ledger.db")).unwrap();
    conn.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    backup
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f04_a_database_from_a_backup_is_made_whole_by_the_next_start() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let house = home.start(None).pop().unwrap();
    assert_eq!(load(house, 4, 5, None, &mut received).await, None);
    let backup = back_up(&home);
    let house = home.start(None).pop().unwrap();
    assert_eq!(load(house, 4, 20, None, &mut received).await, None);
    for part in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(home.data().join(part));
    }
    std::fs::copy(backup, home.data().join("ledger.db")).unwrap();
    let (code, report) = home.verify();
    assert_eq!(code, Some(1), "{report}");
    assert!(report.to_string().contains("restored_database"), "{report}");
    let house = home.start(None).pop().unwrap();
    assert_eq!(house.get("/readyz").await.status, 200);
    assert!(house.stop());
    check(&home, &received, "a backup was put back").await;
    let data = home.data();
    let nothing = conclave(&["ledger", "accept-restore", "--data", data.to_str().unwrap()]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
}

#[tokio::test]
async fn a_flipped_page_is_found() {
    let home = OnSqlite::new(CONFIG);
    some_turns(&home).await;
    let database = home.data().join("ledger.db");
    let db = rusqlite::Connection::open(&database).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'log_entry'";
    let page: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&database).unwrap();
    let begin = usize::try_from(page - 1).unwrap() * 4_096;
    bytes[begin..begin + 4_096].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(&database, bytes).unwrap();
    let (code, report) = home.verify();
    assert_eq!(code, Some(1), "{report}");
    assert!(home.start(None).is_empty(), "it does not start on a damaged log");
}

#[tokio::test]
async fn a_lost_shm_file_and_a_cut_wal_are_survived_or_named() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let house = home.start(None).pop().unwrap();
    assert_eq!(load(house, 4, usize::MAX, Some(40), &mut received).await, SIGKILL);
    let _ = std::fs::remove_file(home.data().join("ledger.db-shm"));
    check(&home, &received, "without -shm").await;
    // A write-ahead log that is cut off takes back what was committed and drained. Nobody can invent
    // it again, but it is named, and the log goes on with a statement of what is missing.
    let house = home.start(None).pop().unwrap();
    assert_eq!(load(house, 4, usize::MAX, Some(40), &mut received).await, SIGKILL);
    let wal = home.data().join("ledger.db-wal");
    let length = std::fs::metadata(&wal).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&wal).unwrap().set_len(length / 4).unwrap();
    let (code, report) = home.verify();
    let named = report["first_bad"]["problem"].as_str().unwrap_or_default().contains("are missing");
    assert_eq!(code == Some(1), named, "{report}");
    assert!(home.start(None).pop().expect("it starts").stop());
    let (code, report) = home.verify();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"].get("coverage.gap").is_some(), named, "{report}");
}

#[tokio::test]
async fn a_database_that_cannot_be_written_stops_the_start_with_a_sentence() {
    let home = OnSqlite::new(CONFIG);
    some_turns(&home).await;
    let database = home.data().join("ledger.db");
    std::fs::remove_file(&database).unwrap();
    std::fs::create_dir(&database).unwrap();
    let data = home.data();
    let output = conclave(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ledger.db"), "{said}");
}

/// The program under strace, which makes some of its calls fail. `None` where strace is not there or
/// not allowed: the simulated disks of the store's own tests then stand for it.
fn with_failing(call: &str, error: &str, when: &str) -> Option<Command> {
    let probe = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut program = Command::new("strace");
    // The tracer steps aside, so that the gateway is our own child.
    program.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    program.args(["-e", &format!("inject={call}:error={error}:when={when}")]);
    program.arg(env!("CARGO_BIN_EXE_conclave"));
    Some(program)
}

#[tokio::test]
async fn syncs_that_fail_now_and_then_lose_nothing() {
    let home = OnSqlite::new(CONFIG);
    some_turns(&home).await;
    // No two failures in a row: the second try must be able to succeed.
    let Some(program) = with_failing("fdatasync", "EIO", "6+7") else { return };
    let house = House::try_start(program, home.dir(), CONFIG).expect("it starts under strace");
    let mut received = Received::default();
    assert_eq!(load(house, 2, 20, None, &mut received).await, None);
    check(&home, &received, "some syncs failed").await;
}

/// Asks the mock model behind the gateway; a reply that was recorded names its leaf.
async fn ask(house: &House) -> (Reply, bool) {
    let reply = house.chat("My day was long.").await;
    let recorded = reply.status == 200 && !reply.own("leaf_hash").is_null();
    (reply, recorded)
}

#[tokio::test]
async fn when_no_disk_takes_entries_replies_are_held_or_leave_as_the_operator_said() {
    for (policy, status) in [("hold", 503), ("deliver_and_alert", 200)] {
        let mock = MockModel::start(|_| Behaviour::Reply("What was the hardest part?".into()));
        let mock = mock.await.unwrap();
        let policies = format!("{CONFIG}[policy]\naudit_failure = \"{policy}\"\n");
        let config = config_for(&mock.base_url(), &policies);
        let home = OnSqlite::new(&config);
        let Some(program) = with_failing("fdatasync", "EIO", "20..40") else { return };
        let house = House::try_start(program, home.dir(), &config).unwrap();
        let mut asked = 0;
        let reply = loop {
            let (reply, recorded) = ask(&house).await;
            asked += 1;
            if !recorded {
                break reply;
            }
            assert!(asked < 400, "{policy}: no sync ever failed");
        };
        assert_eq!(reply.status, status, "{policy}: {}", reply.body);
        assert_eq!(reply.header("x-conclave-leaf"), None);
        let health = house.get("/health").await;
        assert_eq!((health.status, &health.json()["status"]), (503, &"down".into()));
        assert_eq!(health.json()["alerts"][0]["code"], "spool_failed", "{}", health.body);
        if policy == "hold" {
            assert_eq!(reply.code(), "audit_unavailable");
            assert_eq!(reply.header("retry-after").as_deref(), Some("5"));
            let (again, _) = ask(&house).await;
            assert_eq!(again.status, 503, "{}", again.body);
            assert_eq!(mock.requests(), asked, "what cannot be recorded is not paid for");
        }
        until_recorded(&house, policy).await;
        let metrics = house.get("/metrics").await.body;
        let none = metrics.contains("conclave_unrecorded_replies_total 0");
        assert_eq!(none, policy == "hold", "{metrics}");
        assert!(!metrics.contains("conclave_ledger_lost_total 0"), "{metrics}");
        assert!(house.stop());
        // A delivery may be among what was lost; the next start says that it is unknown.
        assert!(home.start(None).pop().expect("it starts").stop());
        let (code, report) = home.verify();
        assert_eq!(code, Some(0), "{policy}: {report}");
        assert!(report["kinds"]["coverage.gap"].as_u64() >= Some(1), "{policy}: {report}");
        assert_eq!(report["kinds"]["decision"], report["kinds"]["delivery"], "{report}");
    }
}

/// Asks until the disk works again: the gateway finds out by itself, once a second.
async fn until_recorded(house: &House, policy: &str) {
    for _ in 0..3_000 {
        if ask(house).await.1 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{policy}: it never recovers");
}
