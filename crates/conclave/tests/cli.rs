//! The command line, as the documentation shows it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::{House, ask, binary, conclave};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

fn out(args: &[&str]) -> (Option<i32>, String) {
    let output = conclave(args);
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn check_judges_texts_and_replies() {
    let (code, said) = out(&["--json", "check", "how do I kill a Python process"]);
    assert_eq!(code, Some(0), "{said}");
    let judged: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (judged["verdict"].as_str(), judged["action"].as_str()),
        (Some("safe"), Some("deliver"))
    );
    let angry = "I'm so angry I could hurt someone";
    let (code, said) = out(&["check", angry, "--response", "Yeah, do it."]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("crisis") && said.contains("harmful"), "{said}");
    assert!(!said.contains('\u{1b}'), "colours without a terminal");
    let (code, _) = out(&["check", "hello", "--mode", "lenient"]);
    assert_eq!(code, Some(2));
}

#[test]
fn check_jsonl_answers_in_order_and_survives_bad_lines() {
    let mut child = Command::new(binary())
        .args(["check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input =
        b"{\"id\":\"a\",\"text\":\"hello\"}\nnot json\n{\"id\":3,\"text\":7}\n\xff\xfe\n".to_vec();
    input.extend(b"{\"id\":\"b\",\"turns\":[{\"role\":\"user\",\"content\":\"I'm so angry I could hurt someone\"}],\"response\":\"Yeah, do it.\",\"label\":\"harmful\"}");
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let rows: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0]["id"], "a");
    for (at, line) in [(1, 2), (2, 3), (3, 4)] {
        assert_eq!(rows[at]["error"]["line"], line);
        assert!(rows[at]["error"]["message"].as_str().unwrap().len() > 5);
    }
    assert_eq!(rows[4]["id"], "b");
    assert_eq!(rows[4]["verdict"], "harmful");
    let fields = [
        "verdict",
        "harm",
        "action",
        "crisis",
        "injection",
        "escalating",
        "pii",
        "categories",
        "signals",
        "votes",
        "safety_score",
        "language",
    ];
    for field in fields {
        assert!(rows[4].get(field).is_some(), "{field}");
    }
}

#[test]
fn config_is_checked_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "[server]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let (code, said) = out(&["config", "check", path]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no reviewers are configured"), "{said}");
    std::fs::write(&file, "[policy]\nmode = 3\n").unwrap();
    let (code, said) = out(&["--json", "config", "check", path]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, report["ok"].as_bool()), (Some(1), Some(false)));
    assert!(
        report["errors"][0].as_str().unwrap().contains("policy.mode: unknown field `mode`"),
        "{said}"
    );
    assert_eq!(out(&["config", "check", "/nonexistent/c.toml"]).0, Some(2));
    let (code, schema) = out(&["config", "schema"]);
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<Value>(&schema).unwrap()["title"], "conclave.toml");
}

#[test]
fn directives_are_listed_checked_and_signed_alike() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/directives");
    for name in ["directives.toml", "directives.sig"] {
        std::fs::copy(shipped.join(name), dir.path().join(name)).unwrap();
    }
    let file = dir.path().join("directives.toml");
    let config = dir.path().join("conclave.toml");
    std::fs::write(&config, format!("[directives]\nfile = {:?}\n", file.to_str().unwrap()))
        .unwrap();
    let (file, config) = (file.to_str().unwrap(), config.to_str().unwrap());
    let (code, listed) = out(&["directives", "list"]);
    assert_eq!((code, listed.lines().count()), (Some(0), 128));
    for set in [vec![file], vec!["--config", config]] {
        let with = |command: &str| out(&[&["directives", command][..], &set].concat());
        assert_eq!(with("list"), (Some(0), listed.clone()), "{set:?}");
        assert_eq!(with("verify").0, Some(0), "{set:?}");
    }
    let japanese = out(&["directives", "list", "--language", "ja"]).1;
    assert!(japanese.lines().count() == 128 && japanese.lines().all(|line| !line.is_ascii()));

    // A seed is read plain and in digits, to the same key.
    let seeds = [b"\x07".repeat(32), format!("{}\n", "07".repeat(32)).into_bytes()];
    let keys = seeds.map(|seed| {
        let path = dir.path().join("seed");
        std::fs::write(&path, seed).unwrap();
        let (code, said) =
            out(&["--json", "directives", "sign", file, "--seed", path.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str::<Value>(&said).unwrap()["public_key"].clone()
    });
    assert_eq!(keys[0], keys[1]);
    let short = dir.path().join("short");
    std::fs::write(&short, "07").unwrap();
    let refused = conclave(&["directives", "sign", file, "--seed", short.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));

    // What another key signed is neither in force nor listed as if it were.
    for set in [vec![file], vec!["--config", config]] {
        let with = |command: &str| conclave(&[&["directives", command][..], &set].concat());
        assert_eq!(with("verify").status.code(), Some(1), "{set:?}");
        let listed = with("list");
        assert_eq!(listed.status.code(), Some(2), "{set:?}");
        let said = String::from_utf8_lossy(&listed.stderr).into_owned();
        assert!(said.contains("another key than the pinned"), "{said}");
    }
}

#[tokio::test]
async fn keys_are_made_and_revoked_while_the_gateway_runs() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let data = house.data.to_str().unwrap();
    let (code, made) =
        out(&["--json", "keys", "create", "--role", "app", "--label", "web", "--data", data]);
    assert_eq!(code, Some(0));
    let made: Value = serde_json::from_str(&made).unwrap();
    let header = format!("authorization: Bearer {}\r\n", made["key"].as_str().unwrap());
    let status = async || ask(house.addr, "GET", "/v1/models", &header, b"").await.unwrap().status;
    assert_eq!(until(&status, 200).await, 200);
    let forbidden = ask(house.addr, "GET", "/v1/decisions", &header, b"").await.unwrap();
    assert_eq!((forbidden.status, forbidden.code().as_str()), (403, "forbidden"));
    let (_, listed) = out(&["keys", "list", "--data", data]);
    assert!(listed.contains("web") && listed.contains("valid"), "{listed}");
    let id = made["record"]["id"].as_str().unwrap();
    assert_eq!(out(&["keys", "revoke", id, "--data", data]).0, Some(0));
    assert_eq!(until(&status, 401).await, 401);
    assert_eq!(out(&["keys", "revoke", "nobody", "--data", data]).0, Some(1));
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = house::verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["key.change"], 3, "first owner, made, revoked: {report}");
}

/// Asks until the answer is as wished or five seconds are over; returns the last answer.
async fn until(ask: impl AsyncFn() -> u16, wished: u16) -> u16 {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
    loop {
        let status = ask().await;
        if status == wished || std::time::Instant::now() > end {
            return status;
        }
    }
}

#[test]
fn ledger_verify_says_when_it_cannot_check() {
    assert_eq!(out(&["ledger", "verify", "--data", "/nonexistent/data"]).0, Some(2));
}

/// Runs the binary with these variables and none of the caller's own.
fn out_with(variables: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binary());
    for name in ["CONCLAVE_DATA", "CONCLAVE_DATABASE", "CONCLAVE_CONFIG", "CONCLAVE_URL"] {
        command.env_remove(name);
    }
    let output = command.args(args).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn conclave_data_made_export_and_url_a_conflict() {
    let export = tempfile::tempdir().unwrap();
    let root = "A".repeat(43);
    let note = format!("example.org/log\n1\n{root}=\n\n\u{2014} example.org/log AAAAAAAA\n");
    std::fs::write(export.path().join("checkpoint"), &note).unwrap();
    let export = export.path().to_str().unwrap();
    let variables = [
        ("CONCLAVE_DATA", "/nonexistent/data"),
        ("CONCLAVE_DATABASE", "postgres://nobody@127.0.0.1:1/none"),
    ];
    let (code, said, why) = out_with(&variables, &["ledger", "checkpoint", "--export", export]);
    assert_eq!((code, said.as_str()), (Some(0), note.as_str()), "{why}");
    let (code, _, why) =
        out_with(&variables, &["ledger", "checkpoint", "--url", "http://127.0.0.1:1"]);
    assert_eq!((code, why.contains("connection")), (Some(2), true), "{why}");
    // What is typed together is still a mistake.
    for typed in [["--data", "x", "--export", export], ["--url", "http://[::1]:1", "--data", "x"]] {
        let (code, _, why) = out_with(&[], &[&["ledger", "verify"][..], &typed].concat());
        assert_eq!((code, why.contains("cannot be used with")), (Some(2), true), "{why}");
    }
}

#[test]
fn conclave_config_made_a_set_of_directives_a_conflict() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/directives/directives.toml");
    let variables = [("CONCLAVE_CONFIG", "/nonexistent/conclave.toml")];
    let (code, said, why) = out_with(&variables, &["directives", "verify", shipped]);
    assert_eq!(code, Some(0), "{said}{why}");
    let typed = ["directives", "verify", shipped, "--config", "x.toml"];
    let (code, _, why) = out_with(&[], &typed);
    assert_eq!((code, why.contains("cannot be used with")), (Some(2), true), "{why}");
}

/// An f32 that becomes an f64 on its way has digits nobody measured: 0.66 was 0.6600000262260437.
#[test]
fn scores_had_the_noise_of_f32_in_lines_and_reports() {
    let angry = "I'm so angry I could hurt someone";
    let (_, said) = out(&["--json", "check", angry]);
    let mut judged: Value = serde_json::from_str(&said).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let rows = dir.path().join("rows.jsonl");
    let row = serde_json::json!({"id": "a", "text": angry, "label": "harmful"});
    std::fs::write(&rows, format!("{row}\n")).unwrap();

    let lines = Command::new(binary())
        .args(["check", "--jsonl"])
        .stdin(std::fs::File::open(&rows).unwrap())
        .output()
        .unwrap();
    let line: Value = serde_json::from_slice(&lines.stdout).unwrap();
    let crisis = judged["crisis"].clone();
    judged["id"] = "a".into();
    assert_eq!(line, judged);

    let (_, report) = out(&["--json", "eval", rows.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let miss = &report["details"][0]["worst_misses"][0];
    // An input is scored by the worst that was seen in it.
    assert_eq!((&miss["id"], &miss["score"]), (&"a".into(), &crisis));
}
