//! Being forgotten, as the person, the operator and a thief with the disk see it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, Reply, ask, conclave, config_for, verify};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ANA: &str = "ana.lopez@mail.example";
const BEN: &str = "ben-4711";
const REPLY: &str = "That sounds like a good place to be. What grows there this year?";
const SECRET: &str = "my allotment number is quillwort seventy";

/// Words, names, addresses and numbers that must not stand anywhere on disk.
const TRACES: [&str; 5] = [ANA, BEN, SECRET, "quillwort", "192.0.2.77"];

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// Which traces stand in which files of a directory.
fn traces(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(dir) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        for trace in TRACES {
            if bytes.windows(trace.len()).any(|window| window == trace.as_bytes()) {
                found.push(format!("{trace} in {}", path.display()));
            }
        }
    }
    found
}

async fn say(house: &House, user: &str, text: &str) -> Reply {
    let content = format!("{text}, and I write from 192.0.2.77");
    let body = json!({
        "model": "mock", "user": user, "messages": [{"role": "user", "content": content}],
    });
    let reply = house.post("/v1/chat/completions", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}\r\n")
}

fn audit_id(reply: &Reply) -> String {
    reply.own("audit_id").as_str().unwrap().to_owned()
}

fn lines(text: &str) -> Vec<Value> {
    // A streamed answer has the sizes of its chunks between them.
    let objects = text.lines().filter(|line| line.starts_with('{'));
    objects.map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn started(extra: &str) -> (House, MockModel, tempfile::TempDir) {
    let mock = MockModel::scripted(Script::always(Behaviour::Reply(REPLY.into()))).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), extra));
    (house, mock, dir)
}

#[tokio::test]
async fn a_person_is_exported_and_erased_over_http() {
    let (house, _mock, dir) = started("").await;
    let first = audit_id(&say(&house, ANA, SECRET).await);
    let other = audit_id(&say(&house, BEN, "a quiet day in the garden").await);

    let exported = house.get(&format!("/v1/subjects/{ANA}")).await;
    assert_eq!(exported.status, 200, "{}", exported.body);
    let decisions = lines(&exported.body);
    assert_eq!(decisions.len(), 1, "hers alone");
    assert_eq!(decisions[0]["id"], first.as_str());
    assert!(decisions[0]["conversation"].to_string().contains(SECRET));
    assert_eq!(traces(&dir.path().join("data")), [""; 0], "nothing stands on disk in clear");

    let receipt = house.ask("DELETE", &format!("/v1/subjects/{ANA}"), b"").await.unwrap();
    assert_eq!(receipt.status, 200, "{}", receipt.body);
    let receipt = receipt.json();
    assert_eq!((&receipt["decisions"], &receipt["bodies"]), (&json!(1), &json!(1)));
    assert_eq!(receipt["horizon"]["live_days_max"], 7);
    let why = house.get(&format!("/v1/decisions/{first}/explanation")).await;
    assert_eq!(why.status, 200);
    assert_eq!(why.json()["response_text"], "");
    assert!(why.json()["story"][0].as_str().unwrap().contains("were erased"), "{}", why.body);
    let decision = house.get(&format!("/v1/decisions/{first}")).await.json();
    assert_eq!((&decision["erased"], &decision["conversation"]), (&json!(true), &Value::Null));
    let decision = house.get(&format!("/v1/decisions/{other}")).await.json();
    assert_eq!(decision["erased"], false);
    assert!(decision["conversation"].to_string().contains("garden"));

    for method in ["GET", "DELETE"] {
        let again = house.ask(method, &format!("/v1/subjects/{ANA}"), b"").await.unwrap();
        assert_eq!((again.status, again.code()), (404, "not_found".to_owned()), "{method}");
    }
    // She comes back as somebody new, of whom nothing is remembered.
    let drift = house.get(&format!("/v1/users/{ANA}/drift")).await.json();
    assert_eq!(drift["messages"], 0);
    say(&house, ANA, "good morning").await;
    assert_eq!(house.get(&format!("/v1/users/{ANA}/drift")).await.json()["messages"], 1);
    assert!(TRACES.iter().all(|trace| !house.log().contains(trace)), "the log names nobody");
    assert!(house.stop());
    assert_eq!(traces(&dir.path().join("data")), [""; 0]);
    let (code, report) = verify(&dir.path().join("data"));
    assert_eq!((code, &report["forgotten"]), (Some(0), &json!(1)), "{report}");
    assert_eq!(report["kinds"]["subject.erase"], 1);
    assert_eq!(report["opened"], report["bodies"], "everything that is left opens");
}

#[tokio::test]
async fn r11_only_the_right_roles_export_and_erase() {
    let (house, _mock, dir) = started("").await;
    say(&house, BEN, "hello").await;
    let data = dir.path().join("data");
    let make = |role: &str, tenant: &str| {
        let args = ["keys", "create", "--role", role, "--tenant", tenant, "--data"];
        let made = conclave(&[&args[..], &[data.to_str().unwrap()]].concat());
        bearer(String::from_utf8(made.stdout).unwrap().trim())
    };
    let doors = [
        ("app", "default", "nobody", 403, 403),
        ("auditor", "default", "nobody", 403, 403),
        ("reviewer", "default", "nobody", 403, 403),
        ("elder", "default", "nobody", 403, 403),
        ("admin", "default", "nobody", 403, 404),
        ("owner", "default", "nobody", 404, 404),
        // Another tenant's owner does not find him.
        ("owner", "other", BEN, 404, 404),
        ("owner", "default", BEN, 200, 200),
    ];
    // All are made before the first is used: the gateway looks for new keys only so often.
    let keys = doors.map(|(role, tenant, ..)| make(role, tenant));
    for ((role, tenant, who, export, erase), key) in doors.into_iter().zip(keys) {
        for (method, status) in [("GET", export), ("DELETE", erase)] {
            let path = format!("/v1/subjects/{who}");
            let answer = ask(house.addr, method, &path, &key, b"").await.unwrap();
            assert_eq!(answer.status, status, "{role} of {tenant}, {method}: {}", answer.body);
        }
    }
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["admin.action"], 1, "the one export is an entry");
}

#[tokio::test]
async fn the_command_line_exports_erases_and_rotates() {
    let (house, _mock, dir) = started("").await;
    say(&house, ANA, SECRET).await;
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let run = |args: &[&str]| {
        let done = conclave(&[args, &["--data", data]].concat());
        let (out, err) = (String::from_utf8(done.stdout), String::from_utf8(done.stderr));
        (done.status.code().unwrap(), out.unwrap(), err.unwrap())
    };
    let (code, _, err) = run(&["subject", "erase", ANA, "--yes"]);
    assert_eq!(code, 2);
    assert!(err.contains("is using") && err.contains("curl -X DELETE"), "{err}");
    assert!(house.stop());

    let (code, out, err) = run(&["subject", "export", ANA]);
    assert_eq!(code, 0, "{err}");
    assert!(lines(&out)[0]["conversation"].to_string().contains(SECRET));
    let file = dir.path().join("ana.jsonl");
    let (code, out, _) = run(&["subject", "export", ANA, "--output", file.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(&file).unwrap().contains(SECRET));
    std::fs::remove_file(&file).unwrap();

    let (code, _, err) = run(&["subject", "erase", ANA]);
    assert_eq!(code, 2);
    assert!(err.contains("add --yes"), "{err}");
    let (code, out, err) = run(&["--json", "subject", "erase", ANA, "--yes"]);
    assert_eq!(code, 0, "{err}");
    let receipt: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(receipt["bodies"], 1);
    for command in ["export", "erase"] {
        let (code, out, _) = run(&["subject", command, ANA]);
        assert_eq!(code, 1, "{command}: {out}");
    }
    let root = std::fs::read_to_string(Path::new(data).join("root.key")).unwrap();
    let (code, out, err) = run(&["keys", "rotate-epoch"]);
    assert_eq!((code, out.contains("wrapped anew")), (0, true), "{err}");
    assert_ne!(std::fs::read_to_string(Path::new(data).join("root.key")).unwrap(), root);
    let (code, report) = verify(Path::new(data));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["key.epoch"], 1);
}

#[tokio::test]
async fn r08_an_export_after_an_erasure_has_no_text_and_verifies() {
    let (house, _mock, dir) = started("").await;
    say(&house, ANA, SECRET).await;
    say(&house, BEN, "hello").await;
    let path = format!("/v1/subjects/{ANA}");
    let gone = house.ask("DELETE", &path, b"").await.unwrap();
    assert_eq!(gone.status, 200, "{}", gone.body);
    assert!(house.stop());
    let (data, export) = (dir.path().join("data"), dir.path().join("export"));
    let (data, to) = (data.to_str().unwrap(), export.to_str().unwrap());
    assert!(conclave(&["ledger", "export", to, "--data", data]).status.success());
    let check = || {
        let done = conclave(&["--json", "ledger", "verify", "--export", to]);
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        (done.status.code(), report)
    };
    let (code, report) = check();
    assert_eq!((code, &report["forgotten"]), (Some(0), &json!(1)), "{report}");
    assert_eq!(traces(&export), Vec::<String>::new());

    // Nothing explains that the words of somebody else are missing.
    let bodies = export.join("bodies").join("000.p").join(report["entries"].to_string());
    let kept = std::fs::read(&bodies).unwrap();
    std::fs::write(&bodies, vec![0; kept.len()]).unwrap();
    let (code, report) = check();
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(report["first_bad"]["problem"], "the body is missing");
}
