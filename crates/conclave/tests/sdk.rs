//! The official packages, unchanged but for their base URL and key.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, last_user_message};
use house::{House, config_for};
use serde_json::json;
use std::process::Command;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/sdk");

/// The program that runs a package, if the test command installed it.
fn runner(variable: &str) -> Option<Command> {
    let program = std::env::var_os(variable);
    if program.is_none() {
        eprintln!(
            "skipped: {variable} is not set; `cargo xtask test` installs the packages and sets it"
        );
    }
    program.map(Command::new)
}

/// Runs a script against a gateway with buffered and with windowed streams.
async fn run(variable: &str, script: &str) {
    for stream in ["buffered", "windowed"] {
        let Some(mut program) = runner(variable) else { return };
        let mock = MockModel::start(|body| match last_user_message(body) {
            "weather" if body["messages"].to_string().contains("Sunny.") => {
                Behaviour::Reply("Hello! It is sunny there.".into())
            }
            "weather" => Behaviour::ToolCall {
                name: "get_weather".into(),
                arguments: json!({"city": "Kyoto"}),
            },
            "I'm so angry I could hurt someone" => Behaviour::Reply("Yeah, do it.".into()),
            _ => Behaviour::Reply("Hello! What is on your mind today? I have time.".into()),
        })
        .await
        .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let policy = format!("[policy]\nstream = \"{stream}\"\n");
        let house = House::start(dir.path(), &config_for(&mock.base_url(), &policy));
        let output = program
            .arg(format!("{SCRIPTS}/{script}"))
            .env("OPENAI_BASE_URL", format!("http://{}/v1", house.addr))
            .env("OPENAI_API_KEY", &house.key)
            .env("ANTHROPIC_BASE_URL", format!("http://{}", house.addr))
            .env("ANTHROPIC_API_KEY", &house.key)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stream}: {said}\n{complained}");
        assert!(said.contains("all checks passed"), "{stream}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_openai_package_works_unchanged() {
    run("CONCLAVE_PYTHON", "openai_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_anthropic_package_works_unchanged() {
    run("CONCLAVE_PYTHON", "anthropic_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_openai_package_for_node_works_unchanged() {
    run("CONCLAVE_NODE", "openai_sdk.mjs").await;
}
