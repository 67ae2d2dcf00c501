//! `cargo xtask test`: everything that must hold.

use crate::process::{self, cargo, exists, root, say};
use crate::setup;
use std::process::Command;
use std::time::Instant;

/// Runs every check; the first failure ends it.
pub fn run_all() -> anyhow::Result<()> {
    process::run("cargo fmt", cargo().args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run("cargo clippy", cargo().args(lints))?;
    process::run("cargo build --release", cargo().args(["build", "--release", "-p", "conclave"]))?;
    let python = setup::python()?;
    setup::browser()?;
    setup::postgres()?;
    setup::tracer()?;
    let mut tests = tests();
    tests
        .env("CONCLAVE_BIN", root().join("target/release/conclave"))
        .env("CONCLAVE_PYTHON", python)
        .env("CONCLAVE_BROWSER", "1");
    if let Some(node) = setup::node()? {
        tests.env("CONCLAVE_NODE", node);
    }
    process::run(
        "documentation",
        cargo().env("RUSTDOCFLAGS", "-D warnings").args([
            "doc",
            "--workspace",
            "--no-deps",
            "--quiet",
        ]),
    )?;
    process::run(
        "documentation examples",
        cargo().args(["test", "--workspace", "--doc", "--quiet"]),
    )?;
    if std::env::var_os("CONCLAVE_DATASETS").is_none() {
        say("CONCLAVE_DATASETS is not set: the tests that measure on public data are skipped");
    }
    process::run("tests", &mut tests)
}

/// nextest where it is installed, because it isolates tests; plain `cargo test` otherwise.
fn tests() -> Command {
    let mut command = cargo();
    if exists("cargo-nextest") {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        command.args(["test", "--workspace", "--all-targets", "--no-fail-fast"]);
    }
    command
}

/// Runs every check and says how long it took.
pub fn run() -> anyhow::Result<()> {
    let started = Instant::now();
    run_all()?;
    say(&format!("everything holds, in {} s", started.elapsed().as_secs()));
    Ok(())
}
