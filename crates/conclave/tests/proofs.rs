//! Checkpoints, tiles and receipts, as somebody sees them who trusts nobody.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::{House, Reply, ask, conclave};
use serde_json::{Value, json};
use std::path::Path;

async fn chat(house: &House) -> String {
    let body =
        json!({"model": "builtin", "messages": [{"role": "user", "content": "I had a hard day."}]});
    let answer = house.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.own("receipt_url").as_str().unwrap().to_owned()
}

/// Asks until a checkpoint covers the decision.
async fn receipt(house: &House, url: &str) -> Reply {
    let asked = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        loop {
            let answer = house.get(url).await;
            match answer.status {
                200 => return answer,
                202 => {
                    assert_eq!(answer.header("retry-after").as_deref(), Some("1"));
                    assert_eq!(answer.json()["status"], "pending");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                other => panic!("{other}: {}", answer.body),
            }
        }
    });
    asked.await.expect("no checkpoint came")
}

/// Asks without a key.
async fn stranger(house: &House, path: &str) -> Reply {
    ask(house.addr, "GET", path, "", b"").await.unwrap()
}

fn run(args: &[&str]) -> (Option<i32>, Value, String) {
    let output = conclave(&[&["--json"], args].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_reply_is_proved_to_a_stranger() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let url = chat(&house).await;
    let proof = receipt(&house, &url).await;
    assert_eq!(stranger(&house, &url).await.status, 401);
    let missing = "/v1/decisions/01a1e43d-ebdd-7267-be2d-e097efef0ff9/receipt";
    assert_eq!(house.get(missing).await.status, 404);

    let vkey = stranger(&house, "/ledger/vkey").await.body.trim().to_owned();
    let file = dir.path().join("receipt.json");
    std::fs::write(&file, &proof.body).unwrap();
    let check = ["ledger", "receipt", "--vkey", &vkey, "--check", text(&file)];
    let (code, said, _) = run(&check);
    assert_eq!((code, &said["ok"], &said["kind"]), (Some(0), &json!(true), &json!("decision")));

    let mut forged = proof.json();
    forged["index"] = json!(forged["index"].as_u64().unwrap() + 1);
    std::fs::write(&file, forged.to_string()).unwrap();
    let (code, said, _) = run(&check);
    assert_eq!((code, &said["ok"]), (Some(1), &json!(false)));
    std::fs::write(&file, "nonsense").unwrap();
    assert_eq!(run(&check).0, Some(1));
    assert_eq!(run(&["ledger", "receipt", "--vkey", "x", "--check", text(&file)]).0, Some(2));
}

#[tokio::test]
async fn tiles_are_public_and_entries_are_for_auditors() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let url = chat(&house).await;
    let size = receipt(&house, &url).await.json()["size"].as_u64().unwrap();

    let checkpoint = stranger(&house, "/ledger/checkpoint").await;
    assert_eq!(checkpoint.status, 200);
    assert_eq!(checkpoint.header("content-type").unwrap(), "text/plain; charset=utf-8");
    assert_eq!(checkpoint.header("cache-control").unwrap(), "public, max-age=1");
    let tile = stranger(&house, &format!("/ledger/tile/0/000.p/{size}")).await;
    assert_eq!(tile.status, 200);
    assert_eq!(tile.header("content-type").unwrap(), "application/octet-stream");
    assert!(tile.header("cache-control").unwrap().contains("immutable"));
    assert_eq!(tile.header("content-length").unwrap(), (size * 32).to_string());
    for path in ["0/000", "0/001", "9/000", "0/000.p/200", "x", "0/../000", "0/000.p/0"] {
        let answer = stranger(&house, &format!("/ledger/tile/{path}")).await;
        assert_eq!(answer.status, 404, "{path}");
    }

    let entries = format!("/ledger/tile/entries/000.p/{size}");
    assert_eq!(stranger(&house, &entries).await.status, 401);
    assert_eq!(house.get(&entries).await.status, 200);
    for (role, status) in [("auditor", 200), ("app", 403), ("admin", 403)] {
        let data = text(&house.data).to_owned();
        let (_, made, _) = run(&["keys", "create", "--role", role, "--data", &data]);
        let key = format!("authorization: Bearer {}\r\n", made["key"].as_str().unwrap());
        let asked = async || ask(house.addr, "GET", &entries, &key, b"").await.unwrap().status;
        let heard = tokio::time::timeout(std::time::Duration::from_secs(20), async {
            while asked().await == 401 {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        });
        heard.await.expect("the key was never known");
        assert_eq!(asked().await, status, "{role}");
    }

    let proof = stranger(&house, &format!("/ledger/proof/consistency?from=1&to={size}")).await;
    assert_eq!(proof.json()["proof"].as_array().map(Vec::is_empty), Some(false));
    for (query, status) in
        [("from=1", 400), ("from=9&to=1", 400), ("from=1&to=9999", 404), ("a=1", 400)]
    {
        let path = format!("/ledger/proof/consistency?{query}");
        assert_eq!(stranger(&house, &path).await.status, status, "{query}");
    }
    assert_eq!(house.get("/health").await.json()["parts"]["checkpoints"]["status"], "ok");
}

/// A key made beside the running house, once it is known there.
async fn key_of(house: &House, tenant: &str, role: &str) -> String {
    let data = text(&house.data);
    let args = ["keys", "create", "--tenant", tenant, "--role", role, "--data", data];
    let key = run(&args).1["key"].as_str().unwrap().to_owned();
    let heard = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while as_key(house, &key, "/v1/reviews").await.status == 401 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    heard.await.expect("the key was never known");
    key
}

async fn as_key(house: &House, key: &str, path: &str) -> Reply {
    let header = format!("authorization: Bearer {key}\r\n");
    ask(house.addr, "GET", path, &header, b"").await.unwrap()
}

#[tokio::test]
async fn a_tenants_auditor_reads_its_own_entries_with_proofs_and_nobody_elses() {
    use conclave_ledger::{Leaf, Receipt, VerifierKey, tenant_number};
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let (app, auditor) =
        (key_of(&house, "acme", "app").await, key_of(&house, "acme", "auditor").await);
    let mut last = String::new();
    for round in 0..3 {
        chat(&house).await;
        let header = format!("authorization: Bearer {app}\r\ncontent-type: application/json\r\n");
        let said = format!("I had a hard day, {round}.");
        let body = json!({"model": "builtin", "messages": [{"role": "user", "content": said}]});
        let body = body.to_string().into_bytes();
        let said = ask(house.addr, "POST", "/v1/chat/completions", &header, &body).await.unwrap();
        assert_eq!(said.status, 200, "{}", said.body);
        last = chat(&house).await;
    }
    // Covers everything before it.
    let size = receipt(&house, &last).await.json()["size"].as_u64().unwrap();
    for (key, path, status) in [
        (&auditor, format!("/ledger/tile/entries/000.p/{size}"), 403),
        (&auditor, "/v1/ledger/entries?limit=0".to_owned(), 200),
        (&auditor, "/v1/ledger/entries?limit=201".to_owned(), 400),
        (&auditor, "/v1/ledger/entries?from=x".to_owned(), 400),
        (&auditor, "/v1/ledger/entries?tenant=default".to_owned(), 400),
        (&app, "/v1/ledger/entries".to_owned(), 403),
        (&app, "/v1/reviews".to_owned(), 403),
    ] {
        let answer = as_key(&house, key, &path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }

    let vkey = stranger(&house, "/ledger/vkey").await.body.trim().to_owned();
    let keys = [VerifierKey::parse(&vkey).unwrap()];
    let (mut from, mut own) = (Some(0), Vec::new());
    while let Some(place) = from {
        let page =
            as_key(&house, &auditor, &format!("/v1/ledger/entries?from={place}&limit=1")).await;
        let page = page.json();
        assert!(page["data"].as_array().unwrap().len() <= 1, "{page}");
        for entry in page["data"].as_array().unwrap() {
            let found = Receipt::from_json(&entry.to_string()).unwrap();
            let (_, leaf): (_, Leaf) = found.verify(&keys).unwrap();
            assert_eq!(leaf.draft.tenant, tenant_number("acme"));
            own.push(leaf.draft.kind.as_str().to_owned());
        }
        from = page["next_from"].as_u64();
    }
    assert_eq!(own.iter().filter(|kind| *kind == "decision").count(), 3, "{own:?}");

    let url = format!("http://{}", house.addr);
    let asked = ["ledger", "entries", "--url", &url, "--key", &auditor, "--vkey", &vkey];
    let printed = conclave(&asked);
    assert_eq!(printed.status.code(), Some(0), "{}", String::from_utf8_lossy(&printed.stderr));
    let lines = String::from_utf8(printed.stdout).unwrap();
    assert!(lines.lines().count() >= own.len());
    assert!(lines.lines().all(|line| Receipt::from_json(line).unwrap().verify(&keys).is_ok()));
    let other = "other/log+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let forged =
        conclave(&["ledger", "entries", "--url", &url, "--key", &auditor, "--vkey", other]);
    assert_ne!(forged.status.code(), Some(0), "another key signed nothing of it");
}

#[tokio::test]
async fn a_log_is_checked_by_directory_by_export_and_by_url() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("anchor.jsonl");
    let config =
        format!("[ledger]\norigin = \"log.example/test\"\n[ledger.anchor]\nfile = {notes:?}\n");
    let house = House::start(dir.path(), &config);
    let url = chat(&house).await;
    receipt(&house, &url).await;
    let vkey = stranger(&house, "/ledger/vkey").await.body.trim().to_owned();
    assert!(vkey.starts_with("log.example/test+"), "{vkey}");
    let (base, since) = (format!("http://{}", house.addr), dir.path().join("since"));

    let by_url = ["ledger", "verify", "--url", &base, "--vkey", &vkey, "--since", text(&since)];
    let (code, said, why) = run(&by_url);
    assert_eq!((code, &said["leaves_checked"]), (Some(0), &json!(false)), "{said} {why}");
    let (code, said, why) = run(&[&by_url[..], &["--key", &house.key]].concat());
    assert_eq!((code, &said["leaves_checked"]), (Some(0), &json!(true)), "{said} {why}");
    assert!(said["entries"].as_u64().unwrap() >= 3);

    let export = dir.path().join("export");
    let data = text(&house.data).to_owned();
    assert_eq!(run(&["ledger", "export", text(&export), "--data", &data]).0, Some(0));
    assert_eq!(run(&["ledger", "export", text(&export), "--data", &data]).0, Some(2), "not empty");
    let by_export = ["ledger", "verify", "--export", text(&export), "--vkey", &vkey];
    let (code, said, why) = run(&by_export);
    assert_eq!((code, &said["key_given"]), (Some(0), &json!(true)), "{said} {why}");
    assert!(said["bodies"].as_u64().unwrap() >= 1);
    assert_eq!(run(&["ledger", "verify", "--data", &data, "--vkey", &vkey]).0, Some(0));

    spoil(&export.join("bodies"));
    let (code, said, _) = run(&by_export);
    assert_eq!((code, said["first_bad"]["seq"].is_u64()), (Some(1), true), "{said}");

    let anchored = std::fs::read_to_string(&notes).unwrap();
    let last: Value = serde_json::from_str(anchored.lines().last().unwrap()).unwrap();
    assert!(last["note"].as_str().unwrap().starts_with("log.example/test\n"));

    let (code, _, why) = run(&["ledger", "rotate-key", "--data", &data]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("another conclave"), "{why}");
    assert!(house.stop());
    let (code, said, why) = run(&["ledger", "rotate-key", "--data", &data]);
    assert_eq!((code, &said["old"]), (Some(0), &json!(vkey)), "{why}");
    assert_eq!(run(&["ledger", "verify", "--data", &data, "--vkey", &vkey]).0, Some(0));
}

/// The file that people read of an export says what the leaves say, or is named.
#[tokio::test]
async fn a_changed_word_in_the_file_that_people_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let url = chat(&house).await;
    receipt(&house, &url).await;
    let export = dir.path().join("export");
    let data = text(&house.data).to_owned();
    assert_eq!(run(&["ledger", "export", text(&export), "--data", &data]).0, Some(0));
    let by_export = ["ledger", "verify", "--export", text(&export)];
    let (code, said, why) = run(&by_export);
    assert_eq!((code, &said["lines_checked"]), (Some(0), &json!(true)), "{said} {why}");
    let file = export.join("entries.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let line = whole.lines().position(|line| line.contains("\"decision\"")).unwrap();
    let changed = whole.replacen("\"outcome\":\"delivered\"", "\"outcome\":\"blocked\"", 1);
    assert_ne!(changed, whole);
    std::fs::write(&file, changed).unwrap();
    let (code, said, _) = run(&by_export);
    assert_eq!((code, &said["first_bad"]["seq"]), (Some(1), &json!(line)), "{said}");
    let problem = said["first_bad"]["problem"].as_str().unwrap();
    // Which of the two fields that say so comes first in the line is the file's business.
    let names_field = problem.contains("\"blocked\" for `public.") && problem.contains("outcome`");
    assert!(names_field, "{problem}");
    let lines: Vec<_> = whole.lines().collect();
    let spoiled = [
        lines[1..].join("\n"),
        lines[..lines.len() - 1].join("\n"),
        format!("{whole}{}\n", lines[0]),
    ];
    for lines in spoiled {
        std::fs::write(&file, lines).unwrap();
        assert_eq!(run(&by_export).0, Some(1));
    }
    std::fs::remove_file(&file).unwrap();
    let (code, said, _) = run(&by_export);
    assert_eq!((code, &said["lines_checked"]), (Some(0), &json!(false)), "{said}");
}

/// When the overlap has ended, the key from before leads to the one in force by the log's entries.
#[tokio::test]
async fn a_key_from_before_a_rotation_is_enough_where_entries_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let vkey = stranger(&house, "/ledger/vkey").await.body.trim().to_owned();
    let data = text(&house.data).to_owned();
    assert!(house.stop());
    assert_eq!(run(&["ledger", "rotate-key", "--data", &data]).0, Some(0));
    assert_eq!(run(&["ledger", "rotate-key", "--end-overlap", "--data", &data]).0, Some(0));
    let house = House::start(dir.path(), "");
    let url = chat(&house).await;
    receipt(&house, &url).await;
    let base = format!("http://{}", house.addr);
    let by_url = ["ledger", "verify", "--url", &base, "--vkey", &vkey];
    let (code, said, why) = run(&[&by_url[..], &["--key", &house.key]].concat());
    assert_eq!((code, &said["leaves_checked"]), (Some(0), &json!(true)), "{said} {why}");
    assert_eq!(run(&by_url).0, Some(1), "without entries the new key is not known");
    let later = dir.path().join("later");
    assert_eq!(run(&["ledger", "export", text(&later), "--data", &data]).0, Some(0));
    let by_export = ["ledger", "verify", "--export", text(&later), "--vkey", &vkey];
    let (code, said, why) = run(&by_export);
    assert_eq!(code, Some(0), "{said} {why}");

    // A receipt from the export is the one the gateway gives, or one that holds as well.
    let id = url.split('/').nth(3).unwrap();
    let (code, made, why) = run(&["ledger", "receipt", id, "--export", text(&later)]);
    assert_eq!(code, Some(0), "{why}");
    let file = dir.path().join("receipt.json");
    std::fs::write(&file, made.to_string()).unwrap();
    let new = made["vkey"].as_str().unwrap();
    let (code, said, _) = run(&["ledger", "receipt", "--check", text(&file), "--vkey", new]);
    assert_eq!((code, &said["audit_id"]), (Some(0), &json!(id)), "{said}");
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(run(&["ledger", "prove", nobody, "--export", text(&later)]).0, Some(1));
}

#[tokio::test]
async fn a_second_checkpoint_that_tells_another_story_is_evidence() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[ledger]\norigin = \"log.example/test\"\n";
    let house = House::start(dir.path(), config);
    let url = chat(&house).await;
    receipt(&house, &url).await;
    let (data, base) = (text(&house.data).to_owned(), format!("http://{}", house.addr));
    let note = stranger(&house, "/ledger/checkpoint").await.body;
    let shown = dir.path().join("shown");
    std::fs::write(&shown, &note).unwrap();
    let with = |place: &[&str]| {
        run(&[&["ledger", "verify", "--checkpoint", text(&shown)], place].concat())
    };
    for place in [&["--data", &data][..], &["--url", &base]] {
        let (code, said, why) = with(place);
        assert_eq!((code, &said["equivocation"]), (Some(0), &json!(null)), "{said} {why}");
    }
    // Whoever holds the key can sign another log of the same size, and show it to somebody else.
    let seed = std::fs::read_to_string(house.data.join("ledger.key")).unwrap();
    let other = another_story(&seed, &note);
    std::fs::write(&shown, &other).unwrap();
    for place in [&["--data", &data][..], &["--url", &base]] {
        let (code, said, why) = with(place);
        assert_eq!(code, Some(1), "{said} {why}");
        let found = &said["equivocation"];
        assert_eq!(found["theirs"], json!(other), "{said}");
        assert!(found["problem"].as_str().unwrap().starts_with("equivocation"), "{said}");
        assert!(found["ours"].as_str().unwrap().starts_with("log.example/test\n"), "{said}");
    }
    // A note that nobody of this log has signed proves nothing.
    std::fs::write(&shown, other.replace("\u{2014} log.example/test", "\u{2014} log.example/else"))
        .unwrap();
    assert_eq!(with(&["--data", &data]).0, Some(2));
}

/// A note of the same size with another root, signed with the log's own key.
fn another_story(key_file: &str, note: &str) -> String {
    let opened = conclave_ledger::SignedNote::parse(note).unwrap();
    let mut checkpoint = conclave_ledger::Checkpoint::parse(opened.text()).unwrap();
    checkpoint.root[0] ^= 1;
    let seed = key_file.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 64);
    let mut bytes = [0; 32];
    hex::decode_to_slice(seed.expect("a seed in the key file"), &mut bytes).unwrap();
    let signer = conclave_ledger::NoteSigner::new("log.example/test", &bytes).unwrap();
    checkpoint.sign(&[signer])
}

/// Changes the last byte of the first file below a directory.
fn spoil(dir: &Path) {
    let entry = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    if entry.is_dir() {
        return spoil(&entry);
    }
    let mut bytes = std::fs::read(&entry).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&entry, bytes).unwrap();
}
