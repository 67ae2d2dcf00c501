//! What commands do about a `--data` that is no data directory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// Nobody answers there, so that what is refused before is told from what was tried.
const DATABASE: &str = "postgres://nobody@127.0.0.1:1/none";

/// Commands that read or change what is there: the words that name them, then their arguments.
const NEED_DATA: &[(&str, &[&str])] = &[
    ("keys list", &[]),
    ("keys revoke", &["key_1"]),
    ("keys rotate", &["key_1"]),
    ("keys rotate-epoch", &[]),
    ("ledger accept-restore", &[]),
    ("ledger checkpoint", &[]),
    ("ledger export", &["out"]),
    ("ledger prove", &["0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"]),
    ("ledger rebuild", &[]),
    ("ledger receipt", &["0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"]),
    ("ledger rotate-key", &[]),
    ("ledger verify", &[]),
    ("ledger vkey", &[]),
    ("migrate sqlite-to-postgres", &[]),
    ("people list", &[]),
    ("people remove", &["ana"]),
    ("recipes kpis", &[]),
    ("subject erase", &["ana", "--yes"]),
    ("subject export", &["ana"]),
];

/// Commands that may be the first in a directory.
const MAKE_DATA: &[&str] = &["keys create", "people add", "recipes run", "serve"];

fn run(dir: &Path, words: &str, options: &[&str]) -> Output {
    let mut command = Command::new(house::binary());
    for name in ["CONCLAVE_DATA", "CONCLAVE_DATABASE", "CONCLAVE_CONFIG", "CONCLAVE_URL"] {
        command.env_remove(name);
    }
    command.current_dir(dir).args(words.split(' ')).args(options).output().unwrap()
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_tables_name_every_command_with_a_data_directory() {
    let known = NEED_DATA.iter().map(|row| row.0).chain(MAKE_DATA.iter().copied());
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    assert_eq!(house::commands_with("--data <DIR>"), known);
}

#[test]
fn a_mistyped_directory_was_made_and_passed_for_an_empty_one() {
    let with_database = ["--database", DATABASE];
    for (words, arguments) in NEED_DATA {
        for database in [&[][..], &with_database] {
            // With PostgreSQL the tables are derived from what is there; no directory is looked at.
            let only_database = *words == "ledger rebuild" && !database.is_empty();
            let moves = words.starts_with("migrate") && database.is_empty();
            if only_database || moves {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("empty")).unwrap();
            for typo in ["conclave-dta", "empty"] {
                let options = [arguments, database, &["--data", typo]].concat();
                let output = run(dir.path(), words, &options);
                let why = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(2), "{words} {options:?}: {why}");
                let sentence = format!("{typo} is not a Conclave data directory");
                assert!(why.contains(&sentence), "{words} {options:?}: {why}");
                assert!(output.stdout.is_empty(), "{words} {options:?}");
                assert_eq!(names_in(dir.path()), ["empty".to_owned()].into(), "{words}");
                assert_eq!(names_in(&dir.path().join("empty")), BTreeSet::new(), "{words}");
            }
        }
    }
}

#[test]
fn the_default_directory_is_refused_by_name_too() {
    let dir = tempfile::tempdir().unwrap();
    for (words, arguments) in NEED_DATA.iter().filter(|row| !row.0.starts_with("migrate")) {
        let output = run(dir.path(), words, arguments);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {why}");
        assert!(why.contains("conclave-data is not a Conclave data directory"), "{words}: {why}");
        assert_eq!(names_in(dir.path()), BTreeSet::new(), "{words}");
    }
}

#[test]
fn a_ledger_in_postgresql_needs_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    for words in ["ledger verify", "ledger checkpoint", "ledger rebuild"] {
        let output = run(dir.path(), words, &["--database", DATABASE]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {why}");
        assert!(!why.contains("data directory"), "{words}: {why}");
    }
}

#[test]
fn a_command_that_begins_a_data_directory_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let notes = |output: Output| {
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let made = notes(run(dir.path(), "keys create --data new", &[]));
    assert!(made.contains("new was not a data directory; it is one now"), "{made}");
    let known = notes(run(dir.path(), "people add ana --data new", &[]));
    assert!(!known.contains("data directory"), "{known}");
    let listed = run(dir.path(), "--json keys list --data new", &[]);
    assert!(String::from_utf8(listed.stdout).unwrap().contains("app"));
}
