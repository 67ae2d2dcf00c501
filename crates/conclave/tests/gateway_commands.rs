//! The commands that ask a running gateway, all held against the same rules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// An audit id of nobody's decision.
const AUDIT: &str = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

/// Every command that asks a gateway, with the arguments it needs. `FILE` stands for a file with a
/// JSON object, `DATA` for an empty directory.
const COMMANDS: &[&str] = &[
    "appeals decide deny app_1 --words Because",
    "appeals estimates",
    "appeals file AUDIT --concern other --words Why",
    "appeals list",
    "appeals result app_1",
    "appeals show app_1",
    "consents give ana --scope research --purpose study --evidence form",
    "consents list ana",
    "consents withdraw con_1 --evidence form",
    "ledger checkpoint",
    "ledger entries",
    "ledger prove AUDIT",
    "ledger receipt AUDIT",
    "ledger verify",
    "ledger vkey",
    "people add ana --role elder --community River --data DATA",
    "protocols list",
    "protocols name-elder River key_1 --person Ana",
    "protocols remove-elder River key_1",
    "protocols set River FILE",
    "protocols show River",
    "reviews claim rev_1",
    "reviews decide reject rev_1 --token 1",
    "reviews list",
    "reviews release rev_1 --token 1",
    "reviews result rev_1",
    "reviews show rev_1",
    "tenants add acme",
    "tenants change acme --user ana",
    "tenants list",
    "tenants policy set acme FILE",
    "tenants policy show acme",
    "usage",
    "webhooks add https://example.com/hook",
    "webhooks events wh_1",
    "webhooks list",
    "webhooks remove wh_1",
    "webhooks resend msg_1 wh_1",
    "webhooks secret wh_1",
];

/// The words that name a command, without its arguments.
fn name_of(command: &str) -> String {
    let mut words = command.split(' ');
    let depth = match command.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["usage", ..] => 1,
        ["tenants", "policy"] => 3,
        _ => 2,
    };
    words.by_ref().take(depth).collect::<Vec<_>>().join(" ")
}

/// What a stand-in for a gateway was asked: the request line and the key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    line: String,
    key: Option<String>,
}

/// Answers every request with the same status and body, for as long as the test runs.
struct StandIn {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl StandIn {
    fn start(status: u16, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                kept.lock().unwrap().push(read_request(&mut BufReader::new(&stream)));
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\
                     content-type: application/json\r\n\r\n{body}"
                );
                stream.write_all(head.as_bytes()).unwrap();
            }
        });
        Self { url, asked }
    }

    fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn read_request(reader: &mut impl BufRead) -> Asked {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut key, mut length) = (None, 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "authorization" => key = value.strip_prefix("Bearer ").map(str::to_owned),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
    Asked { line: line.trim().to_owned(), key }
}

/// Runs one of [`COMMANDS`] with these variables, and none of the caller's own.
fn run(command: &str, dir: &Path, variables: &[(&str, &str)], options: &[&str]) -> Output {
    let file = dir.join("object.json");
    std::fs::write(&file, "{}").unwrap();
    let data = tempfile::tempdir_in(dir).unwrap();
    let words = command.split(' ').map(|word| match word {
        "FILE" => file.to_str().unwrap(),
        "DATA" => data.path().to_str().unwrap(),
        "AUDIT" => AUDIT,
        word => word,
    });
    let mut conclave = Command::new(house::binary());
    for name in ["RUST_LOG", "CONCLAVE_URL", "CONCLAVE_KEY", "CONCLAVE_DATA", "CONCLAVE_DATABASE"] {
        conclave.env_remove(name);
    }
    conclave.current_dir(dir).args(words).args(options).envs(variables.iter().copied());
    conclave.output().unwrap()
}

#[test]
fn the_table_names_every_command_that_asks_a_gateway() {
    let found = house::commands_with("--url <URL>");
    assert_eq!(found, COMMANDS.iter().map(|command| name_of(command)).collect());
}

#[test]
fn tenants_and_the_ledger_ignored_conclave_url() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = StandIn::start(200, "{}");
    let variables = [("CONCLAVE_URL", gateway.url.as_str()), ("CONCLAVE_KEY", "ck_from_env")];
    for command in COMMANDS {
        run(command, dir.path(), &variables, &[]);
        let asked = gateway.take_asked();
        assert!(!asked.is_empty(), "{command} did not ask the gateway of CONCLAVE_URL");
        let from_env = Some("ck_from_env".to_owned());
        assert!(asked.iter().all(|one| one.key == from_env), "{command}: {asked:?}");
    }
}

#[test]
fn an_option_wins_over_its_variable() {
    let dir = tempfile::tempdir().unwrap();
    let typed = StandIn::start(200, "{}");
    let unasked = StandIn::start(200, "{}");
    let variables = [("CONCLAVE_URL", unasked.url.as_str()), ("CONCLAVE_KEY", "ck_from_env")];
    for command in COMMANDS {
        run(command, dir.path(), &variables, &["--url", &typed.url, "--key", "ck_typed"]);
        let asked = typed.take_asked();
        assert!(!asked.is_empty(), "{command} did not ask the gateway of --url");
        let key = Some("ck_typed".to_owned());
        assert!(asked.iter().all(|one| one.key == key), "{command}: {asked:?}");
    }
    assert_eq!(unasked.take_asked(), []);
}

#[test]
fn a_ledger_at_hand_is_read_before_a_gateway_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let unasked = StandIn::start(200, "{}");
    let url = ("CONCLAVE_URL", unasked.url.as_str());
    // A tenant's own entries are the gateway's to give: whoever has the data has all of them.
    let reads = |command: &&&str| command.starts_with("ledger") && **command != "ledger entries";
    for command in COMMANDS.iter().filter(reads) {
        run(command, dir.path(), &[url, ("CONCLAVE_DATA", "no-data")], &[]);
        run(command, dir.path(), &[url], &["--data", "no-data"]);
    }
    assert_eq!(unasked.take_asked(), []);
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_refusal_was_exit_1_of_one_command_and_exit_2_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let said = r#"{"error": {"message": "Not \u001b[31mtoday."}}"#;
    for status in [400, 401, 403, 404, 409, 422, 429, 500, 502, 503] {
        let gateway = StandIn::start(status, said);
        let options = ["--url", &gateway.url, "--key", "ck_any"];
        for command in COMMANDS {
            let output = run(command, dir.path(), &[], &options);
            // Exit 1 of `verify` is a log that does not hold; one that is not shown is not checked.
            let is_no = status < 500 && *command != "ledger verify";
            let wanted = if is_no { 1 } else { 2 };
            let why = stderr(&output);
            assert_eq!(output.status.code(), Some(wanted), "{command} at {status}: {why}");
            assert!(!why.is_empty(), "{command} at {status} says nothing");
            assert!(!why.contains('\u{1b}'), "{command}: an answer must not steer the terminal");
            if !command.starts_with("ledger") {
                assert!(why.contains("today."), "{command} at {status}: {why}");
            }
        }
    }
}

#[test]
fn nobody_there_is_exit_2_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let options = ["--url", "http://127.0.0.1:1", "--key", "ck_any"];
        let output = run(command, dir.path(), &[], &options);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
    }
    let gateway = StandIn::start(200, "{}");
    for command in COMMANDS.iter().filter(|command| !command.starts_with("ledger")) {
        let output = run(command, dir.path(), &[], &["--url", &gateway.url]);
        let why = stderr(&output);
        assert_eq!((output.status.code(), why.contains("--key")), (Some(2), true), "{command}");
    }
}

#[test]
fn another_program_that_answered_passed_for_an_empty_list() {
    let dir = tempfile::tempdir().unwrap();
    let website = StandIn::start(200, "<html>Welcome!</html>");
    for command in COMMANDS {
        let options = ["--url", &website.url, "--key", "ck_any"];
        let output = run(command, dir.path(), &[], &options);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
    }
}

/// Has every field that one of the commands looks at.
const ANSWER: &str = r#"{
    "object": "anything", "id": "rev_1", "review_id": "rev_2", "tenant": "acme", "version": 3,
    "status": "approved",
    "text": "Ask the elders.", "conditions": ["Name the River People."], "community": "River",
    "approvals": 1, "approvals_needed": 2, "due_ms": 1800000000000, "secret": "whsec_1",
    "url": "https://example.com/hook", "state": "waiting", "deleted": true,
    "claim": {"by": "key_1", "token": 7, "until_ms": 1800000900000},
    "in_force": {"daily_budget_usd": 12.5}, "users": ["ana"], "projects": [],
    "words": {"request": "first line\nsecond \u001b[31mline"}, "by": ["day"],
    "withdrawn": {"at_ms": 1800000000000},
    "data": [{"id": "rev_1", "status": "pending", "priority": "high", "due_ms": 1800000000000}]
}"#;

#[test]
fn json_was_printed_where_nobody_had_asked_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = StandIn::start(200, ANSWER);
    let answer: Value = serde_json::from_str(ANSWER).unwrap();
    let options = ["--url", &gateway.url, "--key", "ck_any"];
    for command in COMMANDS.iter().filter(|command| !command.starts_with("ledger")) {
        let output = run(command, dir.path(), &[], &options);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        assert!(!said.trim().is_empty(), "{command} says nothing");
        assert!(!said.contains(['{', '"', '\u{1b}']), "{command}: {said}");
        let output = run(command, dir.path(), &[], &[&options[..], &["--json"]].concat());
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        // What `people add` prints is its own: the password that nobody else knows.
        if command.starts_with("people add") {
            assert!(printed["password"].is_string());
        } else {
            assert_eq!(printed, answer, "{command}");
        }
    }
}

#[test]
fn a_review_was_due_in_milliseconds() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = StandIn::start(200, ANSWER);
    let options = ["--url", &gateway.url, "--key", "ck_any"];
    for (command, moment) in [
        ("reviews list", "due 2027-01-15 08:00 UTC"),
        ("reviews show rev_1", "due: 2027-01-15 08:00 UTC"),
        ("reviews claim rev_1", "until: 2027-01-15 08:15 UTC"),
    ] {
        let output = run(command, dir.path(), &[], &options);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(moment) && !said.contains("_ms"), "{command}: {said}");
    }
}
