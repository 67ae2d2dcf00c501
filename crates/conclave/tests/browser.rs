//! The dashboard in a real browser, served by the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;
mod office;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::{House, conclave};
use office::{CORRECTED, Pass, WORDS};
use serde_json::{Value, json};
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_is_sound_in_a_real_browser() {
    if std::env::var_os("CONCLAVE_BROWSER").is_none() {
        eprintln!(
            "skipped: CONCLAVE_BROWSER is not set; `cargo xtask test` installs the browser and sets it"
        );
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "[reviews]\nstaffed = true\n");
    let output = Command::new("npm")
        .args(["test", "--silent"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/browser"))
        .env("CONCLAVE_URL", format!("http://{}", house.addr))
        .env("CONCLAVE_PASSWORD", house.password.as_deref().unwrap())
        .env("CONCLAVE_KEY", &house.key)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{complained}");
}

/// A model that says what it is told, and a verifier that repeats it in its reasoning.
fn echo(body: &Value) -> Behaviour {
    match body["reply"]["text"].as_str() {
        Some(reply) => Behaviour::Json(json!({
            "vote": "concern", "confidence": 0.01, "reasoning": reply, "flagged_patterns": [reply],
        })),
        None => Behaviour::Reply(format!("You wrote: {}", last_user_message(body))),
    }
}

/// I-02, through the real program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_through_every_door_runs_nothing_and_reaches_nobody() {
    if std::env::var_os("CONCLAVE_BROWSER").is_none() {
        eprintln!("skipped: CONCLAVE_BROWSER is not set; `cargo xtask test` sets it");
        return;
    }
    const MODEL: &str = "<img src=x onerror=window.owned=1>";
    let mock = MockModel::start(echo).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = format!(
        "[reviews]\nstaffed = true\n[deliberation]\npanel_deadline_ms = 5000\n\
         [[providers]]\nname = \"<b>echo</b>\"\nbase_url = \"{url}\"\n\
         [[models]]\nname = \"{MODEL}\"\nupstream_model = \"echo\"\nprovider = \"<b>echo</b>\"\n\
         input_usd_per_million = 1.0\noutput_usd_per_million = 1.0\n\
         [[verifiers]]\nname = \"echo\"\nkind = \"http\"\nurl = \"{url}/verify\"\n",
        url = mock.base_url(),
    );
    let house = House::start(dir.path(), &config);
    let output = Command::new("npm")
        .args(["run", "hostile", "--silent"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/browser"))
        .env("CONCLAVE_URL", format!("http://{}", house.addr))
        .env("CONCLAVE_PASSWORD", house.password.as_deref().unwrap())
        .env("CONCLAVE_KEY", &house.key)
        .env("CONCLAVE_MODEL", MODEL)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let page = house.get("/metrics").await.body;
    assert!(!page.contains("<img"), "no label is a model's name");
}

/// The whole way of an appeal: the person on a phone, the second reviewer at the dashboard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_on_a_phone_appeals_and_gets_the_corrected_reply() {
    if std::env::var_os("CONCLAVE_BROWSER").is_none() {
        eprintln!("skipped: CONCLAVE_BROWSER is not set; `cargo xtask test` sets it");
        return;
    }
    let office = office::office().await;
    let data = office.house.data.to_str().unwrap();
    let made = conclave(&["--json", "people", "add", "mio", "--role", "reviewer", "--data", data]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let told = office.withheld().await;
    let rejected = office.decide(&office.aki, &told.review, json!({"ruling": "reject"})).await;
    assert_eq!(rejected.status, 200, "{}", rejected.body);
    let owner = Pass(office.house.key.clone());
    let before = office.ask(&owner, "GET", "/v1/appeals/estimates", &Value::Null).await.json();
    assert_eq!(before["false_alarms"]["share"], Value::Null, "{before}");
    let output = Command::new("npm")
        .args(["run", "why", "--silent"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/browser"))
        .env("CONCLAVE_URL", format!("http://{}", office.house.addr))
        .env("CONCLAVE_WHY", &told.why)
        .env("CONCLAVE_REVIEWER", "mio")
        .env("CONCLAVE_PASSWORD", made["password"].as_str().unwrap())
        .env("CONCLAVE_WORDS", WORDS)
        .env("CONCLAVE_CORRECTED", CORRECTED)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let listed = format!("/v1/appeals?user={}", office::PERSON);
    let listed = office.ask(&office.app, "GET", &listed, &Value::Null).await.json();
    let id = listed["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed}"));
    let result = format!("/v1/appeals/{id}/result");
    let result = office.ask(&office.app, "GET", &result, &Value::Null).await.json();
    assert_eq!(result["text"], CORRECTED, "{result}");
    let moved = office.ask(&owner, "GET", "/v1/appeals/estimates", &Value::Null).await.json();
    assert_eq!(moved["false_alarms"]["wrong"], 1, "{moved}");
    office.verified(2);
}
