//! What every fault test shares: an installation that is started and killed, clients that remember
//! what they received, and one oracle that says whether what is left is right.
#![allow(dead_code, reason = "each test binary uses its own part")]

use crate::house::{House, conclave, verify};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One or more gateways over one log. SQLite has one; a shared database may have several.
pub trait Installation {
    /// Starts every gateway there is; those that died before they were ready are missing. `die_at`
    /// tells the first of them where to die.
    fn start(&self, die_at: Option<&str>) -> Vec<House>;
    /// Exit code and report of `ledger verify`.
    fn verify(&self) -> (Option<i32>, Value);
}

/// One gateway, one data directory, SQLite.
pub struct OnSqlite {
    dir: tempfile::TempDir,
    config: String,
}

impl OnSqlite {
    pub fn new(config: &str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), config: config.to_owned() }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Installation for OnSqlite {
    fn start(&self, die_at: Option<&str>) -> Vec<House> {
        start_in(self.dir.path(), &self.config, die_at)
    }

    fn verify(&self) -> (Option<i32>, Value) {
        verify(&self.data())
    }
}

/// One gateway, one data directory, a database of its own on a PostgreSQL server.
pub struct OnPostgres {
    dir: tempfile::TempDir,
    url: String,
    config: String,
}

impl OnPostgres {
    pub fn new(url: String, config: &str) -> Self {
        let config = format!("{config}[storage]\ndatabase = \"{url}\"\n");
        Self { dir: tempfile::tempdir().unwrap(), url, config }
    }
}

impl Installation for OnPostgres {
    fn start(&self, die_at: Option<&str>) -> Vec<House> {
        start_in(self.dir.path(), &self.config, die_at)
    }

    fn verify(&self) -> (Option<i32>, Value) {
        let data = self.dir.path().join("data");
        let data = data.to_str().unwrap();
        let args = ["--json", "ledger", "verify", "--database", &self.url, "--data", data];
        let output = conclave(&args);
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
    }
}

/// Starts the gateway of a directory; it is missing if it died before it was ready.
fn start_in(dir: &Path, config: &str, die_at: Option<&str>) -> Vec<House> {
    // The program that was built with these tests has the places to die at; a shipped one has not.
    let mut program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    if let Some(order) = die_at {
        program.env(conclave_failpoint::VARIABLE, order);
    }
    House::try_start(program, dir, config).into_iter().collect()
}

/// What clients got: the audit id and the leaf hash of every reply that came whole.
#[derive(Default)]
pub struct Received(BTreeMap<String, String>);

impl Received {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Asks so often, one after the other; says how many replies came whole and recorded. Whatever else
    /// comes is a refusal, not a reply.
    pub async fn ask(&mut self, house: &House, times: usize) -> usize {
        let mut whole = 0;
        for _ in 0..times {
            let answer = house.ask("POST", "/v1/chat/completions", BODY.as_bytes()).await;
            // A connection may be refused where nothing can be opened; nothing was acknowledged then.
            let Ok(reply) = answer else { continue };
            assert!(matches!(reply.status, 200 | 503), "{}: {}", reply.status, reply.body);
            let names = (reply.header("x-conclave-audit-id"), reply.header("x-conclave-leaf"));
            if let (200, (Some(id), Some(leaf))) = (reply.status, names) {
                self.take(vec![(id, leaf)]);
                whole += 1;
            }
        }
        whole
    }

    fn take(&mut self, replies: Vec<(String, String)>) {
        for (id, leaf) in replies {
            assert_eq!(self.0.insert(id.clone(), leaf), None, "the audit id {id} was given twice");
        }
    }
}

const BODY: &str = r#"{"model": "builtin", "messages": [{"role": "user", "content": "My day was long and I am tired."}]}"#;
const STREAM: &str = r#"{"model": "builtin", "stream": true, "messages": [{"role": "user", "content": "My day was long and I am tired."}]}"#;

/// Asks until the connection dies or there were enough replies.
async fn client(
    house: Arc<House>,
    stream: bool,
    most: usize,
    answered: Arc<AtomicUsize>,
) -> Vec<(String, String)> {
    let mut received = Vec::new();
    let body = if stream { STREAM } else { BODY };
    for _ in 0..most {
        let Ok(reply) = house.ask("POST", "/v1/chat/completions", body.as_bytes()).await else {
            break;
        };
        assert_eq!(reply.status, 200, "{}", reply.body);
        // A stream has no length: it is whole only with its last line.
        if stream && !reply.body.contains("data: [DONE]") {
            break;
        }
        let header = |name| reply.header(name).expect("every reply names its decision");
        received.push((header("x-conclave-audit-id"), header("x-conclave-leaf")));
        answered.fetch_add(1, Ordering::Relaxed);
    }
    received
}

/// Puts clients on a gateway until it dies, or each has got `most` replies; `kill_after` kills it
/// after so many replies to all of them. Returns the signal that ended it; one that lives is stopped.
pub async fn load(
    house: House,
    clients: usize,
    most: usize,
    kill_after: Option<usize>,
    received: &mut Received,
) -> Option<i32> {
    let house = Arc::new(house);
    let answered = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..clients)
        .map(|n| tokio::spawn(client(house.clone(), n % 2 == 1, most, answered.clone())))
        .collect();
    if let Some(enough) = kill_after {
        while answered.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        house.signal("KILL");
    }
    for task in tasks {
        received.take(task.await.unwrap());
    }
    let house = Arc::into_inner(house).expect("all clients are done");
    // A client that got fewer replies than it wanted has seen the gateway die.
    if answered.load(Ordering::Relaxed) == clients.saturating_mul(most) {
        assert!(house.stop(), "it ends well");
        return None;
    }
    house.wait()
}

/// The one oracle. Checks the log as the crash left it, starts again, and checks that everything a
/// client received is in the log exactly once, as it was received, and that nothing is missing but
/// what the log itself states.
pub async fn check(home: &dyn Installation, received: &Received, what: &str) {
    check_and_tell(home, received, what, &|_| {}).await;
}

/// The same; tells the figures before anything is held against them.
pub async fn check_and_tell(
    home: &dyn Installation,
    received: &Received,
    what: &str,
    tell: &(dyn Fn(String) + Sync),
) {
    let (code, report) = home.verify();
    let houses = home.start(None);
    let house = houses.first().unwrap_or_else(|| panic!("{what}: it does not start again"));
    let recorded = decisions(house).await;
    let lost = received.0.keys().filter(|id| !recorded.contains_key(*id)).count();
    let double = recorded.values().filter(|count| **count > 1).count();
    tell(format!("acknowledged: {}", received.len()));
    tell(format!("found: {}", received.len() - lost));
    tell(format!("lost: {lost}"));
    tell(format!("double: {double}"));
    tell(format!("verify exit: {}", code.unwrap_or(-1)));
    assert_eq!(code, Some(0), "{what}, before the start: {report}");
    for (id, leaf) in &received.0 {
        assert_eq!(recorded.get(id), Some(&1), "{what}: {id} was received");
        let kept = house.get(&format!("/v1/decisions/{id}")).await.json();
        assert_eq!(kept["leaf_hash"].as_str(), Some(leaf.as_str()), "{what}: {kept}");
    }
    for house in houses {
        assert!(house.stop(), "{what}: it ends well");
    }
    let (code, report) = home.verify();
    assert_eq!(code, Some(0), "{what}, after the start: {report}");
    let kinds = &report["kinds"];
    assert_eq!(kinds["decision"], kinds["delivery"], "{what}: {report}");
    assert_eq!(kinds.get("coverage.gap"), None, "{what}: nothing was lost, {report}");
}

/// The same where entries may have been refused or lost before anybody was told of them: what was
/// acknowledged is there once, as it was received, and whatever is missing is named.
pub async fn acknowledged_is_there(home: &dyn Installation, received: &Received, what: &str) {
    let houses = home.start(None);
    let house = houses.first().unwrap_or_else(|| panic!("{what}: it does not start again"));
    let recorded = decisions(house).await;
    for id in received.0.keys() {
        assert_eq!(recorded.get(id), Some(&1), "{what}: {id} was received");
    }
    for house in houses {
        assert!(house.stop(), "{what}: it ends well");
    }
    let (code, report) = home.verify();
    assert_eq!(code, Some(0), "{what}: {report}");
    assert_eq!(report["kinds"]["decision"], report["kinds"]["delivery"], "{what}: {report}");
}

/// How often each decision is in the log.
async fn decisions(house: &House) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut page = "/v1/decisions?limit=500".to_owned();
    loop {
        let list = house.get(&page).await.json();
        for row in list["data"].as_array().unwrap() {
            *found.entry(row["id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let Some(next) = list["next_before"].as_str() else { return found };
        page = format!("/v1/decisions?limit=500&before={next}");
    }
}

/// Whether the whole log is verified after this kill: after each of the first, and then now and then,
/// because it takes longer the longer the log is. What a kill did wrong stays in the log and is found
/// at the next look, at the latest at the end.
pub fn worth_a_look(kill: u64) -> bool {
    kill < 20 || kill.is_multiple_of(50)
}

/// Numbers that look random and are the same for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}
