//! Tenants with their users and projects, by HTTP and by the command line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::{House, conclave, verify};
use serde_json::{Value, json};
use std::process::Output;

fn tenants(house: &House, args: &[&str]) -> Output {
    let url = format!("http://{}", house.addr);
    let options = ["--url", &url, "--key", &house.key];
    conclave(&[&["tenants"], args, &options].concat())
}

/// The users and projects of `acme`, and how often it was changed.
async fn acme(house: &House) -> Value {
    let list = house.get("/v1/tenants").await.json();
    let all = list["data"].as_array().unwrap();
    let acme = all.iter().find(|tenant| tenant["id"] == "acme").unwrap();
    json!([acme["users"], acme["projects"], acme["version"]])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adding_a_tenant_twice_wiped_its_users_and_projects() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let made = tenants(&house, &["add", "acme", "--user", "ana", "--project", "intake"]);
    assert_eq!(made.status.code(), Some(0));
    let as_made = json!([["ana"], ["intake"], 1]);
    assert_eq!(acme(&house).await, as_made);

    let again = tenants(&house, &["add", "acme"]);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!((again.status.code(), why.contains("409")), (Some(1), true), "{why}");
    assert!(why.contains("There is a tenant `acme` already"), "{why}");
    assert_eq!(acme(&house).await, as_made);
    let again = house.post("/v1/tenants", &json!({"id": "acme", "users": ["eve"]})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"), "{}", again.body);
    assert_eq!(acme(&house).await, as_made);

    // What is not named stays as it was.
    let changed = tenants(&house, &["change", "acme", "--user", "ana", "--user", "ben"]);
    assert_eq!(changed.status.code(), Some(0), "{}", String::from_utf8_lossy(&changed.stderr));
    assert_eq!(acme(&house).await, json!([["ana", "ben"], ["intake"], 2]));
    let emptied = house.ask("PATCH", "/v1/tenants/acme", br#"{"projects": []}"#).await.unwrap();
    assert_eq!((emptied.status, &emptied.json()["users"]), (200, &json!(["ana", "ben"])));
    assert_eq!(acme(&house).await, json!([["ana", "ben"], [], 3]));

    // A change is durable with its note; the note becomes an entry a moment later.
    let mut reports = (0..500).map(|_| verify(&house.data).1);
    assert!(reports.any(|report| report["kinds"]["tenant.change"] == 3));
    assert!(house.stop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_makes_no_tenant_and_checks_every_name() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let unknown = tenants(&house, &["change", "acme", "--user", "ana"]);
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!((unknown.status.code(), why.contains("404")), (Some(1), true), "{why}");
    assert_eq!(house.get("/v1/tenants").await.json()["data"], json!([]));
    // A change of nothing is a mistake of whoever typed it.
    assert_eq!(tenants(&house, &["change", "acme"]).status.code(), Some(2));

    assert_eq!(house.post("/v1/tenants", &json!({"id": "acme"})).await.status, 200);
    for body in [r#"{"users": ["a\nb"]}"#, r#"{"projects": [""]}"#, r#"{"id": "b"}"#, "[]"] {
        let refused = house.ask("PATCH", "/v1/tenants/acme", body.as_bytes()).await.unwrap();
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
    }
    assert_eq!(acme(&house).await, json!([[], [], 1]));
    assert!(house.stop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_is_shown_can_be_set_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let file = dir.path().join("policy.toml");
    std::fs::write(&file, "daily_budget_usd = 2.5\n[per_key]\ndaily_usd = 1.5\n").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(tenants(&house, &["policy", "set", "acme", file]).status.code(), Some(0));
    let shown = tenants(&house, &["policy", "show", "acme"]).stdout;
    std::fs::write(file, &shown).unwrap();
    let set = tenants(&house, &["policy", "set", "acme", file]);
    assert_eq!(set.status.code(), Some(0), "{}", String::from_utf8_lossy(&set.stderr));
    let again = tenants(&house, &["policy", "show", "acme"]).stdout;
    assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&shown));
    assert!(String::from_utf8_lossy(&shown).contains("daily_usd = 1.5"));
    assert!(house.stop());
}
