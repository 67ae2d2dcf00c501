//! The dashboard in a real browser, served by the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::House;
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
