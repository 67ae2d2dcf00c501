//! C-14: every call that an append makes of the operating system fails, one after another.
//!
//! The real program runs while a tracer makes the n-th call of one kind fail. Needs strace, which
//! `cargo xtask test` installs; without it, or where tracing is not allowed, this says so and passes: the
//! simulated disks of the store's own tests then stand alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod faults_suite;
mod house;

use faults_suite::{Installation, OnSqlite, Received};
use house::House;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The second tier would only slow it down.
const CONFIG: &str = "[detection]\nsecond_tier = \"never\"\n";

/// The calls, and what each may say.
const CALLS: &[(&str, &[&str])] = &[
    ("pwrite64", &["EIO", "ENOSPC", "EINTR"]),
    ("fdatasync", &["EIO", "ENOSPC", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC", "EINTR"]),
    ("openat", &["EIO", "ENOSPC", "EMFILE"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("fallocate", &["EIO", "ENOSPC", "EINTR"]),
    ("unlink", &["EIO", "EACCES"]),
    ("close", &["EIO", "EINTR"]),
];

/// So many calls of a kind fail, each by itself.
fn depth() -> u32 {
    let asked = std::env::var("CONCLAVE_FAULT_KILLS").ok().and_then(|text| text.parse().ok());
    if asked.is_some_and(|kills: u32| kills > 20) { 8 } else { 2 }
}

/// A tracer on a running program; it lets go when it is told to.
struct Tracer(Child);

impl Tracer {
    /// `None` where there is no strace, or it may not trace.
    async fn on(house: &House, call: &str, error: &str, nth: u32) -> Option<Self> {
        let mut program = Command::new("strace");
        program.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
        program.args(["-e", &format!("inject={call}:error={error}:when={nth}")]);
        program.args(["-p", &house.pid().to_string()]).stderr(Stdio::null());
        let mut tracer = Self(program.spawn().ok()?);
        let status = format!("/proc/{}/status", house.pid());
        for _ in 0..500 {
            let traced = std::fs::read_to_string(&status).unwrap();
            if traced.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0")) {
                return Some(tracer);
            }
            if tracer.0.try_wait().unwrap().is_some() {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        None
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Interrupted it detaches; killed it would take the program with it.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

/// One call of a kind fails after the other while clients talk; then everything that was acknowledged is
/// there once, whatever else became of it.
async fn fails(call: &str, error: &str) -> bool {
    let what = format!("{call} says {error}");
    let home = OnSqlite::new(CONFIG);
    let house = home.start(None).pop().expect("it starts");
    let mut received = Received::default();
    received.ask(&house, 2).await;
    for nth in 1..=depth() {
        let Some(tracer) = Tracer::on(&house, call, error, nth).await else { return false };
        received.ask(&house, 4).await;
        drop(tracer);
    }
    // Whatever it was, it is over.
    let before = received.len();
    for _ in 0..500 {
        if received.ask(&house, 1).await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(received.len() > before, "{what}: it never goes on");
    assert!(house.stop(), "{what}: it ends well");
    faults_suite::acknowledged_is_there(&home, &received, &what).await;
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_each_call_of_an_append_fails_and_nothing_acknowledged_is_lost() {
    for (call, errors) in CALLS {
        for error in *errors {
            if !fails(call, error).await {
                println!("strace cannot be used here: C-14 is left to the simulated disks");
                return;
            }
        }
    }
}
