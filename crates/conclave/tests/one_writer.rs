//! One process, one data directory: what happens when somebody takes the lock, the directory or its files
//! away while a gateway works in it. Whatever a client received is in the ledger, or named as missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod faults_suite;
mod house;

use faults_suite::{Installation, OnPostgres, OnSqlite, Received, check};
use house::{House, conclave, verify};
use serde_json::Value;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The load is what matters here: the second tier would only slow it down.
const CONFIG: &str = "[detection]\nsecond_tier = \"never\"\n";
/// Within this time `/health` has to tell.
const SEEN: Duration = Duration::from_secs(10);
const BODY: &str = r#"{"model": "builtin", "messages": [{"role": "user", "content": "My day was long and I am tired."}]}"#;

/// Waits until `/health` has an alert of this code; says how it stands then.
async fn alerted(house: &House, code: &str) -> (u16, Value) {
    let since = Instant::now();
    loop {
        let health = house.get("/health").await;
        let alerts = health.json()["alerts"].as_array().cloned().unwrap_or_default();
        if let Some(alert) = alerts.into_iter().find(|alert| alert["code"] == code) {
            return (health.status, alert);
        }
        assert!(since.elapsed() < SEEN, "never told {code}: {}", health.body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a gateway does that lost the right to write.
async fn stopped_answering(house: &House, why: &str) {
    let (status, alert) = alerted(house, "overtaken").await;
    assert_eq!(status, 503);
    assert!(alert["message"].as_str().unwrap().contains(why), "{alert}");
    let reply = house.ask("POST", "/v1/chat/completions", BODY.as_bytes()).await.unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (503, "audit_unavailable"), "{}", reply.body);
    assert_eq!(house.get("/readyz").await.status, 503);
    assert!(house.log().contains(why), "the log says so: {}", house.log());
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_conclave"))
}

/// Copies a directory with everything in it, as `cp -a` does.
fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// H2 of the attacks: the lock is removed, a second gateway is started. Once the first answered 176 of
/// 359 requests that were in no ledger afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_lock_file_a_second_is_refused_and_the_first_stops() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let first = home.start(None).pop().unwrap();
    received.ask(&first, 10).await;
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(home.dir().join("owner-key"), other.path().join("owner-key")).unwrap();
    std::os::unix::fs::symlink(home.data(), other.path().join("data")).unwrap();
    std::fs::remove_file(home.data().join("lock")).unwrap();
    let refused = House::try_start(program(), other.path(), CONFIG).err();
    let said = refused.expect("the second one must not start");
    assert!(said.contains("another conclave"), "{said}");
    // Whatever it still answers before it notices is in the ledger.
    received.ask(&first, 20).await;
    stopped_answering(&first, "lock file").await;
    assert_eq!(received.ask(&first, 5).await, 0);
    assert!(received.len() >= 10);
    first.kill();
    check(&home, &received, "the lock was removed").await;
}

/// The directory is moved away and a copy stands in its place, in which a second gateway works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_works_in_a_directory_that_was_moved_away_stops() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let first = home.start(None).pop().unwrap();
    received.ask(&first, 10).await;
    let moved = home.dir().join("moved");
    std::fs::rename(home.data(), &moved).unwrap();
    copy_all(&moved, &home.data());
    let second = home.start(None).pop().expect("the place is free");
    assert_eq!(received.ask(&first, 10).await, 0, "nothing is promised in a place that is gone");
    stopped_answering(&first, "moved or replaced").await;
    assert_eq!(received.ask(&second, 10).await, 10);
    first.signal("TERM");
    drop(first);
    assert!(second.stop());
    check(&home, &received, "the directory was moved").await;
    let (code, report) = verify(&moved);
    assert_eq!(code, Some(0), "what was left behind is whole as well: {report}");
}

/// Where the kernel's locks reach nobody, the database says who came last. SQLite and PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_overtaken_in_the_database_stops() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let house = home.start(None).pop().unwrap();
    received.ask(&house, 5).await;
    let db = rusqlite::Connection::open(home.data().join("ledger.db")).unwrap();
    db.execute("UPDATE log_writer SET epoch = epoch + 1, claim = zeroblob(16)", []).unwrap();
    drop(db);
    received.ask(&house, 5).await;
    stopped_answering(&house, "another conclave writes").await;
    house.kill();
    check(&home, &received, "another writer was in force in SQLite").await;

    let cluster = conclave_testkit::Cluster::start().unwrap();
    let url = cluster.fresh().unwrap();
    let home = OnPostgres::new(url, CONFIG);
    let mut received = Received::default();
    let house = home.start(None).pop().unwrap();
    received.ask(&house, 5).await;
    let later = "UPDATE replica_lease SET writer = writer + 1, claim = 'x'";
    cluster.sql("fresh0", later).unwrap();
    received.ask(&house, 5).await;
    stopped_answering(&house, "another conclave writes").await;
    house.kill();
    check(&home, &received, "another writer was in force in PostgreSQL").await;
}

/// Every file of a running gateway, removed: told within ten seconds, in the log, and by `verify`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_removed_while_it_is_in_use_is_told() {
    for (name, status) in [("ops.db", 200), ("keys.db", 503), ("pepper", 200)] {
        let home = OnSqlite::new(CONFIG);
        let house = home.start(None).pop().unwrap();
        let mut received = Received::default();
        received.ask(&house, 3).await;
        for beside in [name.to_owned(), format!("{name}-wal"), format!("{name}-shm")] {
            let _ = std::fs::remove_file(home.data().join(beside));
        }
        let (told, alert) = alerted(&house, "files_missing").await;
        assert!(alert["message"].as_str().unwrap().contains(name), "{alert}");
        assert_eq!(told, status, "{name}: {alert}");
        assert!(house.log().contains(name), "{name}: {}", house.log());
        let (code, report) = home.verify();
        assert_eq!(code, Some(1), "{name}: {report}");
        assert!(report.to_string().contains(name), "{name}: {report}");
        house.kill();
        let refused = House::try_start(program(), home.dir(), CONFIG).err();
        let said = refused.unwrap_or_else(|| panic!("{name}: it starts without"));
        assert!(said.contains(name) && said.contains("is missing"), "{name}: {said}");
    }
}

/// The log itself removed: the spool takes what comes, and a start makes the log whole from what is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_is_removed_while_it_is_in_use_comes_back_from_the_spool() {
    let home = OnSqlite::new(CONFIG);
    let house = home.start(None).pop().unwrap();
    let mut received = Received::default();
    received.ask(&house, 5).await;
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(home.data().join(name));
    }
    let (_, alert) = alerted(&house, "files_missing").await;
    assert!(alert["message"].as_str().unwrap().contains("ledger.db"), "{alert}");
    assert_eq!(received.ask(&house, 5).await, 5, "replies go on");
    assert!(!home.data().join("ledger.db").exists(), "nothing is begun anew behind anybody's back");
    house.kill();
    assert!(home.start(None).pop().expect("it starts").stop());
    check(&home, &received, "the ledger was removed").await;
}

/// The spool removed: what had been handed over is there, what had not is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spool_files_that_are_removed_while_they_are_in_use_are_told() {
    let home = OnSqlite::new(CONFIG);
    let house = home.start(None).pop().unwrap();
    let mut received = Received::default();
    received.ask(&house, 5).await;
    for entry in std::fs::read_dir(home.data().join("spool")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let (_, alert) = alerted(&house, "files_missing").await;
    assert!(alert["message"].as_str().unwrap().contains("spool/"), "{alert}");
    let before = received.len();
    assert_eq!(received.ask(&house, 5).await, 5, "it goes on in a new file");
    house.kill();
    let (_, report) = home.verify();
    let house = home.start(None).pop().expect("it starts");
    let found = house.get("/v1/decisions?limit=500").await.json();
    let found = found["data"].as_array().unwrap().len();
    assert!(house.stop());
    let (code, after) = home.verify();
    assert_eq!(code, Some(0), "{after}");
    let gaps = after["kinds"]["coverage.gap"].as_u64().unwrap_or(0);
    assert!(found == before + 5 || gaps > 0, "{found} found, nothing named: {report} {after}");
}

/// A page of any database is overwritten: told within ten seconds, and by `verify`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_page_of_any_database_is_told_while_running() {
    for name in ["ledger.db", "ops.db", "keys.db"] {
        let home = OnSqlite::new(CONFIG);
        let house = home.start(None).pop().unwrap();
        let mut received = Received::default();
        received.ask(&house, 5).await;
        assert!(house.stop());
        let house = home.start(None).pop().unwrap();
        let file = home.data().join(name);
        let db = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        let pages = db.metadata().unwrap().len() / 4_096;
        for page in 2..pages {
            db.write_all_at(&[0xff; 4_096], page * 4_096).unwrap();
        }
        let (_, alert) = alerted(&house, "database_damaged").await;
        assert!(alert["message"].as_str().unwrap().contains(name), "{alert}");
        assert!(house.log().contains(name), "{name}: {}", house.log());
        house.kill();
        let (code, report) = home.verify();
        assert_eq!(code, Some(1), "{name}: {report}");
    }
}

/// An acknowledged tail that somebody cut off after a crash is named, before and after the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_that_was_cut_off_by_hand_is_named() {
    for cut in [5_000, 20_000] {
        let home = OnSqlite::new(CONFIG);
        let mut received = Received::default();
        let house = home.start(None).pop().unwrap();
        // Nothing gets into the database meanwhile.
        let db = rusqlite::Connection::open(home.data().join("ledger.db")).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(received.ask(&house, 20).await, 20);
        house.kill();
        drop(db);
        let mut segments: Vec<_> = std::fs::read_dir(home.data().join("spool")).unwrap().collect();
        segments.retain(|entry| entry.as_ref().unwrap().path().is_file());
        let mut paths: Vec<_> = segments.into_iter().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let written = |path: &Path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.iter().rposition(|byte| *byte != 0).map(|at| at as u64 + 1)
        };
        let (path, end) = paths.iter().rev().find_map(|path| Some((path, written(path)?))).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(end.saturating_sub(cut)).unwrap();
        let (code, report) = home.verify();
        assert_eq!(code, Some(1), "{cut}: {report}");
        let problem = report["first_bad"]["problem"].as_str().unwrap();
        assert!(problem.contains("acknowledged and are missing"), "{cut}: {problem}");
        let house = home.start(None).pop().expect("it starts");
        assert!(house.stop());
        let (code, report) = home.verify();
        assert_eq!(code, Some(0), "{cut}: {report}");
        assert_eq!(report["kinds"]["coverage.gap"], 1, "{cut}: {report}");
    }
}

/// What a gateway makes is for its owner only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_file_in_the_data_directory_is_private() {
    let home = OnSqlite::new(CONFIG);
    let house = home.start(None).pop().unwrap();
    Received::default().ask(&house, 3).await;
    let mut folders = vec![home.data()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = std::fs::metadata(&path).unwrap();
            let mode = found.permissions().mode() & 0o777;
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}", path.display());
            if found.is_dir() {
                folders.push(path);
            }
            seen += 1;
        }
    }
    assert!(seen > 10);
    assert!(home.data().join("protocols.json").exists(), "the copy of the protocols is among them");
    assert!(house.stop());
}

/// An auditor gets the directory where nothing can be written: the log of a gateway that ended well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_mounted_to_be_read_only_is_verified() {
    let home = OnSqlite::new(CONFIG);
    let mut received = Received::default();
    let house = home.start(None).pop().unwrap();
    received.ask(&house, 5).await;
    assert!(house.stop());
    let data = home.data();
    let data = data.to_str().unwrap();
    let script = format!(
        "mount --bind {data} {data} && mount -o remount,ro,bind {data} || exit 97; \
         touch {data}/written 2>/dev/null && exit 97; \
         exec {} --json ledger verify --data {data}",
        env!("CARGO_BIN_EXE_conclave")
    );
    let mut verifying = Command::new("unshare");
    verifying.args(["--mount", "--map-root-user", "sh", "-c", &script]);
    let Ok(output) = verifying.output() else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Who may not mount anything cannot try this.
    if output.status.code() == Some(97) || said.starts_with("unshare:") {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["kinds"]["decision"].as_u64() >= Some(5), "{report}");
    let prove = conclave(&["ledger", "verify", "--data", data]);
    assert_eq!(prove.status.code(), Some(0));
}
