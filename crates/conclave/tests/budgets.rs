//! Budgets as a client sees them: raced, killed in the middle, shared by replicas.
//!
//! The PostgreSQL half needs PostgreSQL; `cargo xtask test` installs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, Cluster, MockModel};
use house::{House, ask, chat_body, config_for, verify};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Twenty tokens in and ten out, at 1 and 2 dollars a million, are 40 millionths of a dollar; a reply of
/// at most 16 tokens sets aside about 25,000 for three attempts.
const POLICY: &str = "[tenants.default.policy]\ndaily_budget_usd = 0.3\n";

/// Answers so slowly that all who race are there before the first is settled.
async fn mock() -> MockModel {
    let text = "Thank you for telling me. What was the hardest part of it?".to_owned();
    let every = std::time::Duration::from_millis(200);
    MockModel::start(move |_| Behaviour::Slow { text: text.clone(), bytes: 64, every })
        .await
        .unwrap()
}

fn config(base_url: &str, extra: &str) -> String {
    config_for(base_url, &format!("[detection]\nsecond_tier = \"never\"\n{POLICY}{extra}"))
}

async fn race(houses: &[&House], clients: usize) -> (usize, usize, u64) {
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let house = houses[client % houses.len()];
            let (addr, auth) = (house.addr, format!("authorization: Bearer {}\r\n", house.key));
            tokio::spawn(async move {
                let mut body = chat_body(&format!("My day {client} was long."));
                body["max_tokens"] = 16.into();
                let body = body.to_string();
                ask(addr, "POST", "/v1/chat/completions", &auth, body.as_bytes()).await.unwrap()
            })
        })
        .collect();
    let (mut granted, mut refused, mut cost) = (0, 0, 0);
    for task in tasks {
        let reply = task.await.unwrap();
        match reply.status {
            200 => {
                granted += 1;
                let dollars = reply.header("x-conclave-response-cost").unwrap();
                cost += dollars.replace('.', "").parse::<u64>().unwrap();
            }
            429 => {
                assert_eq!(reply.code(), "insufficient_quota");
                assert!(reply.body.contains("tenant limit"), "{}", reply.body);
                refused += 1;
            }
            other => panic!("{other}: {}", reply.body),
        }
    }
    (granted, refused, cost)
}

async fn tenant_account(house: &House) -> (u64, u64) {
    let usage = house.get("/v1/usage").await.json();
    let accounts = usage["accounts"].as_array().unwrap_or_else(|| panic!("{usage}"));
    let found = accounts.iter().find(|one| one["scope"] == "tenant");
    let number = |name: &str| found.map_or(0, |one| one[name].as_u64().unwrap());
    (number("spent_microusd"), number("held_microusd"))
}

/// Waits until nothing is held: settlements are not waited for by replies.
async fn settled(house: &House) -> u64 {
    for _ in 0..600 {
        let (spent, held) = tenant_account(house).await;
        if held == 0 {
            return spent;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("something is held for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_race_one_budget_and_usage_says_what_the_ledger_says() {
    let mock = mock().await;
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config(&mock.base_url(), ""));
    let (granted, refused, cost) = race(&[&house], 64).await;
    assert_eq!(granted + refused, 64);
    assert!(granted > 0 && refused > 0, "{granted} granted, {refused} refused");
    let spent = settled(&house).await;
    assert_eq!(spent, cost, "the account has what the replies cost");
    let usage = house.get("/v1/usage").await.json();
    let rows = usage["data"].as_array().unwrap();
    let of_mock = rows.iter().find(|row| row["model"] == "mock").unwrap();
    assert_eq!(usage["cost_microusd"], cost, "{usage}");
    assert_eq!(of_mock["requests"], granted, "{usage}");
    assert_eq!(house.get("/v1/usage?from=yesterday").await.status, 400);
    assert!(house.stop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_share_one_budget() {
    let mock = mock().await;
    let cluster = Cluster::start().unwrap_or_else(|why| panic!("{why}"));
    let url = cluster.fresh().unwrap();
    let config = config(&mock.base_url(), &format!("[storage]\ndatabase = \"{url}\"\n"));
    let root = tempfile::tempdir().unwrap();
    let dirs: Vec<_> = (0..3).map(|n| root.path().join(format!("replica{n}"))).collect();
    std::fs::create_dir_all(&dirs[0]).unwrap();
    let mut houses = vec![House::start(&dirs[0], &config)];
    for other in &dirs[1..] {
        share_secrets(&dirs[0], other);
        houses.push(House::start(other, &config));
    }
    let all: Vec<_> = houses.iter().collect();
    let (granted, refused, cost) = race(&all, 64).await;
    assert_eq!(granted + refused, 64);
    assert!(granted > 0 && refused > 0, "{granted} granted, {refused} refused");
    assert_eq!(settled(&houses[2]).await, cost);
    for house in houses {
        assert!(house.stop());
    }
}

fn share_secrets(first: &Path, other: &Path) {
    std::fs::create_dir_all(other.join("data")).unwrap();
    for file in ["data/pepper", "data/ledger.key", "data/root.key", "owner-key"] {
        std::fs::copy(first.join(file), other.join(file)).unwrap();
    }
}

/// Dies after the decision is recorded and before it is settled: the ledger settles it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_decision_and_settlement_is_settled_from_the_ledger() {
    let mock = mock().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&mock.base_url(), "");
    let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    program.env(conclave_failpoint::VARIABLE, "turn.recorded:1");
    let house = House::try_start(program, dir.path(), &config).unwrap();
    let _ = house.ask("POST", "/v1/chat/completions", small().to_string().as_bytes()).await;
    assert!(house.wait().is_some(), "it died");
    let house = House::start(dir.path(), &config);
    let (spent, held) = tenant_account(&house).await;
    assert!(held > 0 || spent > 0, "it is held, or settled already");
    let spent = settled(&house).await;
    let usage = house.get("/v1/usage").await.json();
    assert_eq!(usage["cost_microusd"], spent, "what it really cost: {usage}");
    assert!(spent > 0);
    assert!(house.stop());
}

/// Dies while the model is asked: nobody knows what it cost, so all of it stays held until its time is
/// over, and never more than the limit is granted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_a_model_answers_leaves_the_most_held() {
    let mock = mock().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&mock.base_url(), "");
    let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    program.env(conclave_failpoint::VARIABLE, "turn.answered:1");
    let house = House::try_start(program, dir.path(), &config).unwrap();
    let _ = house.ask("POST", "/v1/chat/completions", small().to_string().as_bytes()).await;
    assert!(house.wait().is_some(), "it died");
    let house = House::start(dir.path(), &config);
    let (spent, held) = tenant_account(&house).await;
    assert_eq!(spent, 0);
    assert!(held > 1_000, "{held}");
    let (granted, refused, cost) = race(&[&house], 64).await;
    assert!(granted > 0 && refused > 0, "{granted} granted, {refused} refused");
    assert!(cost + held <= 300_000);
    assert!(house.stop());
}

fn small() -> Value {
    let mut body = chat_body("My day was long.");
    body["max_tokens"] = 16.into();
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_and_policies_are_set_by_http_and_by_the_command_line() {
    let mock = mock().await;
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let url = format!("http://{}", house.addr);
    let run = |args: &[&str]| {
        let output = Command::new(house::binary())
            .args(args)
            .args(["--url", &url, "--key", &house.key])
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    assert_eq!(run(&["tenants", "add", "acme", "--user", "ana", "--project", "p"]).0, Some(0));
    let (code, listed) = run(&["tenants", "list"]);
    assert_eq!((code, listed.contains("acme")), (Some(0), true), "{listed}");
    let file = dir.path().join("policy.toml");
    std::fs::write(&file, "daily_budget_usd = 0.0\n[per_key]\ndaily_usd = 1.5\n").unwrap();
    let file = file.to_str().unwrap();
    let (code, set) = run(&["tenants", "policy", "set", "default", file]);
    assert_eq!(code, Some(0), "{set}");
    let refused = house.chat("My day was long.").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "insufficient_quota"));
    let policy = house.get("/v1/tenants/default/policy").await.json();
    assert_eq!(policy["policy"]["per_key"]["daily_usd"], 1.5, "{policy}");
    let put = |body: Value| {
        let body = body.to_string();
        let house = &house;
        async move { house.ask("PUT", "/v1/tenants/default/policy", body.as_bytes()).await.unwrap() }
    };
    let crossing = put(json!({"policy": {"harm_threshold": 90}})).await;
    assert_eq!(crossing.status, 400, "{}", crossing.body);
    assert!(crossing.body.contains("floor"), "{}", crossing.body);
    assert_eq!(put(json!({"policy": {}, "version": 7})).await.status, 409);
    assert_eq!(put(json!({"policy": {}, "version": 1})).await.status, 200);
    assert_eq!(house.chat("My day was long.").await.status, 200);
    std::fs::write(file, "harm_threshold = 90\n").unwrap();
    let (code, why) = run(&["tenants", "policy", "set", "default", file]);
    assert_eq!((code, why.contains("floor")), (Some(1), true), "{why}");
    let shown = run(&["tenants", "policy", "show", "acme"]);
    assert!(shown.1.contains("downgrade_at_percent"), "{}", shown.1);
    let data = house.data.clone();
    assert!(house.stop());
    // Both changes are entries, and the policy is there after a start.
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["policy.set"], 2, "{report}");
    assert_eq!(report["kinds"]["tenant.change"], 1, "{report}");
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    assert_eq!(house.get("/v1/tenants/default/policy").await.json()["version"], 2);
    assert!(house.stop());
}
