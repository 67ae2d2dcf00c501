//! One process at a time.

use crate::support::*;
use conclave_store::Store;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[tokio::test]
async fn a_second_open_in_the_same_process_is_refused() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let sentence = Store::open(options(dir.path())).err().unwrap().to_string();
    assert!(sentence.contains("another conclave (pid "), "{sentence}");
    assert!(sentence.contains("stop it or choose another --data directory"), "{sentence}");
    store.shutdown();
    drop(open(dir.path()));
}

const HELD_DIR: &str = "CONCLAVE_TEST_HELD_DIR";

/// Not a test of its own: what the other process of the next test runs.
#[test]
fn child_that_holds_a_directory() {
    let Ok(dir) = std::env::var(HELD_DIR) else { return };
    let _store = open(Path::new(&dir));
    println!("\nheld");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_second_process_is_refused_and_told_the_pid() {
    let dir = tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::child_that_holds_a_directory", "--nocapture"])
        .env(HELD_DIR, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    let sentence = Store::open(options(dir.path())).err().unwrap().to_string();
    assert!(sentence.contains(&format!("(pid {})", child.id())), "{sentence}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    drop(open(dir.path()));
}

#[test]
fn a_killed_process_leaves_no_lock() {
    let dir = tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::child_that_holds_a_directory", "--nocapture"])
        .env(HELD_DIR, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(open(dir.path()));
    sound(dir.path());
}
