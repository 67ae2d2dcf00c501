//! The official OpenAI package for Python, unchanged but for its base URL and key.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::{House, config_for};
use serde_json::json;
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_openai_package_works_unchanged() {
    let Some(python) = std::env::var_os("CONCLAVE_PYTHON") else {
        eprintln!(
            "skipped: CONCLAVE_PYTHON is not set; `cargo xtask test` installs the package and sets it"
        );
        return;
    };
    let mock = MockModel::start(|body| match last_user_message(body) {
        "weather" => {
            Behaviour::ToolCall { name: "get_weather".into(), arguments: json!({"city": "Kyoto"}) }
        }
        "angry" => Behaviour::Reply("Yeah, do it.".into()),
        _ => Behaviour::Reply("Hello! What is on your mind today?".into()),
    })
    .await
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/sdk/openai_sdk.py");
    let output = Command::new(python)
        .arg(script)
        .env("OPENAI_BASE_URL", format!("http://{}/v1", house.addr))
        .env("OPENAI_API_KEY", &house.key)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("all checks passed"), "{said}");
}
