//! The dashboard in a real browser, served by the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::House;
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
