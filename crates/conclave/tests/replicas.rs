//! Several gateways on one PostgreSQL, as a client sees them: killed under load, with the database
//! stopped under them and away at their start.
//!
//! Needs PostgreSQL; `cargo xtask test` installs it. `CONCLAVE_FAULT_KILLS` sets how often a
//! replica is killed, `CONCLAVE_FAULT_OUTAGE` for how many seconds the database is away.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, Cluster, MockModel};
use house::{House, ask, chat_body, conclave, config_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const REPLICAS: usize = 2;
const CLIENTS: usize = 30;
/// How long a client of replicas that are killed waits between two questions: 200 are asked a second. Without
/// it the log would grow faster than it can be verified again and again.
const PAUSE: Duration = Duration::from_millis(CLIENTS as u64 * 1_000 / 200);

async fn mock() -> MockModel {
    let kind = "Thank you for telling me. What was the hardest part of it?";
    MockModel::start(move |_| Behaviour::Reply(kind.into())).await.unwrap()
}

fn cluster() -> (Cluster, String) {
    let cluster = Cluster::start().unwrap_or_else(|why| panic!("{why}"));
    let url = cluster.fresh().unwrap();
    (cluster, url)
}

fn config(base_url: &str, database: &str) -> String {
    let extra =
        format!("[detection]\nsecond_tier = \"never\"\n[storage]\ndatabase = \"{database}\"\n");
    config_for(base_url, &extra)
}

/// A further replica has the secrets of the first.
fn share_secrets(first: &Path, other: &Path) {
    std::fs::create_dir_all(other.join("data")).unwrap();
    for file in ["data/pepper", "data/ledger.key", "data/root.key", "owner-key"] {
        std::fs::copy(first.join(file), other.join(file)).unwrap();
    }
}

fn verify_database(url: &str, data: &Path) -> (Option<i32>, Value) {
    let data = data.to_str().unwrap();
    let output = conclave(&["--json", "ledger", "verify", "--database", url, "--data", data]);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report)
}

/// Where replicas can be reached just now.
type Doors = Arc<Mutex<Vec<Option<SocketAddr>>>>;

/// Asks one replica after the other until it is told to stop; returns the ids of whole replies.
async fn client(
    at: usize,
    doors: Doors,
    (key, pause): (String, Duration),
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
) -> Vec<String> {
    let auth = format!("authorization: Bearer {key}\r\n");
    let body = chat_body("My day was long and I am tired.").to_string();
    let mut ids = Vec::new();
    for turn in at.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep(pause).await;
        let door = doors.lock().unwrap()[turn % REPLICAS];
        let reply = match door {
            Some(addr) => {
                ask(addr, "POST", "/v1/chat/completions", &auth, body.as_bytes()).await.ok()
            }
            None => None,
        };
        match reply {
            Some(reply) => {
                assert_eq!(reply.status, 200, "{}", reply.body);
                ids.push(reply.own("audit_id").as_str().unwrap().to_owned());
                answered.fetch_add(1, Ordering::Relaxed);
            }
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    ids
}

async fn all_decisions(house: &House) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut page = "/v1/decisions?limit=500".to_owned();
    loop {
        let list = house.get(&page).await.json();
        for row in list["data"].as_array().unwrap_or_else(|| panic!("{list}")) {
            *found.entry(row["id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let Some(next) = list["next_before"].as_str() else { return found };
        page = format!("/v1/decisions?limit=500&before={next}");
    }
}

/// What became of the replies that clients received whole.
struct Kept {
    acknowledged: usize,
    found: usize,
    lost: Vec<String>,
    double: usize,
}

impl Kept {
    fn of(received: &[String], recorded: &BTreeMap<String, usize>) -> Self {
        let lost: Vec<_> =
            received.iter().filter(|id| !recorded.contains_key(*id)).cloned().collect();
        let double = recorded.values().filter(|count| **count > 1).count();
        let acknowledged = received.len();
        Self { acknowledged, found: acknowledged - lost.len(), lost, double }
    }

    /// One line for each figure.
    fn figures(&self, verify: Option<i32>) -> [String; 5] {
        let verify = verify.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        [
            format!("acknowledged: {}", self.acknowledged),
            format!("found: {}", self.found),
            format!("lost: {}", self.lost.len()),
            format!("double: {}", self.double),
            format!("verify exit: {verify}"),
        ]
    }

    fn hold(&self) {
        assert!(self.lost.is_empty(), "received and not recorded: {:?}", self.lost);
        assert_eq!(self.double, 0, "recorded twice");
    }
}

/// A number of the environment.
fn set_by(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_replicas_under_load_lose_nothing_and_double_nothing() {
    let kills = set_by("CONCLAVE_FAULT_KILLS", 30);
    let (mock, (_cluster, url)) = (mock().await, cluster());
    let config = config(&mock.base_url(), &url);
    let root = tempfile::tempdir().unwrap();
    let dirs: Vec<_> = (0..REPLICAS).map(|n| root.path().join(format!("replica{n}"))).collect();
    std::fs::create_dir_all(&dirs[0]).unwrap();
    let first = House::start(&dirs[0], &config);
    let key = first.key.clone();
    for other in &dirs[1..] {
        share_secrets(&dirs[0], other);
    }
    let mut houses = vec![Some(first)];
    houses.extend(dirs[1..].iter().map(|dir| Some(House::start(dir, &config))));
    let addrs = houses.iter().map(|house| Some(house.as_ref().unwrap().addr)).collect();
    let (doors, stop): (Doors, _) = (Arc::new(Mutex::new(addrs)), Arc::new(AtomicBool::new(false)));
    let answered = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|at| {
            let (doors, stop) = (Arc::clone(&doors), Arc::clone(&stop));
            tokio::spawn(client(at, doors, (key.clone(), PAUSE), stop, Arc::clone(&answered)))
        })
        .collect();
    let mut random = 0x9e37_79b9_u32;
    for kill in 0..kills {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let victim = (random >> 16) as usize % REPLICAS;
        let enough = answered.load(Ordering::Relaxed) + 1 + (random >> 8) as usize % 40;
        while answered.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        doors.lock().unwrap()[victim] = None;
        houses[victim].take().unwrap().kill();
        // In a long run more seldom: a look takes longer the longer the log is.
        if kill % (kills / 10).max(10) == 9 {
            let (code, report) = verify_database(&url, &dirs[victim].join("data"));
            assert_eq!(code, Some(0), "after {kill} kills: {report}");
        }
        let again = House::start(&dirs[victim], &config);
        doors.lock().unwrap()[victim] = Some(again.addr);
        houses[victim] = Some(again);
    }
    stop.store(true, Ordering::Relaxed);
    let mut received = Vec::new();
    for client in clients {
        received.extend(client.await.unwrap());
    }
    // Whoever is stopped has drained what it took; then the last one sees everything.
    let last = houses.pop().unwrap().unwrap();
    for house in houses.into_iter().flatten() {
        assert!(house.stop());
    }
    let recorded = all_decisions(&last).await;
    assert!(last.stop());
    let (code, report) = verify_database(&url, &dirs[0].join("data"));
    println!("figure: postgres, replicas: {REPLICAS}");
    println!("figure: postgres, kills: {kills}");
    let kept = Kept::of(&received, &recorded);
    for line in kept.figures(code) {
        println!("figure: postgres, {line}");
    }
    assert!(received.len() > kills, "too few replies to mean anything");
    kept.hold();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["decision"], report["kinds"]["delivery"], "{report}");
    assert_eq!(report["kinds"]["genesis"], 1, "{report}");
}

/// Waits until nothing waits for the database any more.
async fn drained_by(house: &House) {
    for _ in 0..2_400 {
        let page = house.get("/metrics").await.body;
        if page.lines().any(|line| line == "conclave_spool_bytes 0") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never drained: {}", house.get("/health").await.body);
}

/// Waits until `/health` says this.
async fn healthy(house: &House, wanted: &str) {
    healthy_after(house, wanted, 0).await;
}

/// The same after an outage of so many seconds: the longer it was, the more has to be drained under load.
async fn healthy_after(house: &House, wanted: &str, outage_s: usize) {
    for _ in 0..600 + 60 * outage_s {
        if house.get("/health").await.json()["status"] == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never {wanted}: {}", house.get("/health").await.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_stopped_under_load_costs_no_reply() {
    let seconds = set_by("CONCLAVE_FAULT_OUTAGE", 3);
    let (mock, (cluster, url)) = (mock().await, cluster());
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config(&mock.base_url(), &url));
    let doors: Doors = Arc::new(Mutex::new(vec![Some(house.addr); REPLICAS]));
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|at| {
            let (doors, stop, key) = (Arc::clone(&doors), Arc::clone(&stop), house.key.clone());
            let asking = (key, Duration::ZERO);
            tokio::spawn(client(at, doors, asking, stop, Arc::clone(&answered)))
        })
        .collect();
    healthy(&house, "ok").await;
    let stopped = Instant::now();
    cluster.stop_at_once().unwrap();
    let before = answered.load(Ordering::Relaxed);
    while !house.get("/health").await.body.contains("store_down") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let alerted = stopped.elapsed();
    healthy(&house, "degraded").await;
    let (mut looks, mut ready) = (0, 0);
    while stopped.elapsed().as_secs() < seconds as u64 {
        looks += 1;
        ready += usize::from(house.get("/readyz").await.status == 200);
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let during = answered.load(Ordering::Relaxed) - before;
    cluster.start_again().unwrap();
    let began = Instant::now();
    healthy_after(&house, "ok", seconds).await;
    stop.store(true, Ordering::Relaxed);
    drained_by(&house).await;
    let drained = began.elapsed();
    println!("figure: outage, seconds: {seconds}");
    println!("figure: outage, replies meanwhile: {during}");
    println!("figure: outage, seconds to the alert: {:.2}", alerted.as_secs_f64());
    println!("figure: outage, drained after seconds: {:.2}", drained.as_secs_f64());
    println!("figure: outage, ready: {ready} of {looks} looks");
    assert!(during > 10 * seconds, "{during} replies in {seconds} s without a database");
    assert_eq!(ready, looks, "it answers, so it is ready");
    assert!(alerted < Duration::from_secs(5), "the alert came after {alerted:?}");
    let mut received = Vec::new();
    for client in clients {
        received.extend(client.await.unwrap());
    }
    let recorded = all_decisions(&house).await;
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify_database(&url, &data);
    let kept = Kept::of(&received, &recorded);
    for line in kept.figures(code) {
        println!("figure: outage, {line}");
    }
    kept.hold();
    assert_eq!(code, Some(0), "{report}");
    for kind in ["store.down", "store.up"] {
        assert_eq!(report["kinds"][kind], 1, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_or_is_not_there_costs_no_reply() {
    let (mock, (cluster, url)) = (mock().await, cluster());
    let config = config(&mock.base_url(), &url);
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config);
    assert_eq!(house.chat("My day was long.").await.status, 200);
    healthy(&house, "ok").await;
    cluster.stop_at_once().unwrap();
    for _ in 0..50 {
        assert_eq!(house.chat("My day was long.").await.status, 200);
    }
    healthy(&house, "degraded").await;
    assert_eq!(house.get("/readyz").await.status, 200);
    let list = house.get("/v1/decisions").await;
    assert_eq!(list.status, 503, "{}", list.body);
    house.kill();
    // Down at the start too: keys and numbers are known from the last contact.
    let house = House::start(dir.path(), &config);
    for _ in 0..20 {
        let reply = house.chat("My day was long.").await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(house.get("/readyz").await.status, 200);
    cluster.start_again().unwrap();
    healthy(&house, "ok").await;
    assert_eq!(all_decisions(&house).await.len(), 71);
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify_database(&url, &data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["decision"], 71, "{report}");
    assert!(report["kinds"]["store.down"].as_u64() >= Some(1), "{report}");
    assert!(report["kinds"]["store.up"].as_u64() >= Some(1), "{report}");
}

/// The median time of so many replies, one after the other, in milliseconds.
async fn median_ms(house: &House, replies: usize) -> f64 {
    let mut times = Vec::with_capacity(replies);
    for _ in 0..replies {
        let began = Instant::now();
        assert_eq!(house.chat("My day was long.").await.status, 200);
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[replies / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_replies_are_as_quick_while_the_database_hangs() {
    const REPLIES: usize = 200;
    let (mock, (cluster, url)) = (mock().await, cluster());
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config(&mock.base_url(), &url));
    median_ms(&house, 50).await;
    healthy(&house, "ok").await;
    let before = median_ms(&house, REPLIES).await;
    cluster.signal("STOP").unwrap();
    let hanging = median_ms(&house, REPLIES).await;
    cluster.signal("CONT").unwrap();
    println!("figure: a database that hangs, reply before: {before:.2} ms");
    println!("figure: a database that hangs, reply meanwhile: {hanging:.2} ms");
    assert!(hanging < before + 5.0, "{before:.2} ms became {hanging:.2} ms");
    healthy(&house, "ok").await;
    drained_by(&house).await;
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = verify_database(&url, &data);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["kinds"]["decision"], 50 + 2 * REPLIES, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_moves_from_sqlite_and_every_receipt_stays_valid() {
    let (mock, (_cluster, url)) = (mock().await, cluster());
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    let reply = house.chat("My day was long.").await;
    let id = reply.own("audit_id").as_str().unwrap().to_owned();
    for _ in 0..5 {
        assert_eq!(house.chat("My day was long.").await.status, 200);
    }
    let data = house.data.clone();
    assert!(house.stop());
    let data = data.to_str().unwrap();
    let before = conclave(&["ledger", "receipt", &id, "--data", data]);
    let vkey = conclave(&["ledger", "vkey", "--data", data]);
    let vkey = String::from_utf8(vkey.stdout).unwrap().lines().next().unwrap().to_owned();
    let root = |args: &[&str]| {
        let report: Value = serde_json::from_slice(&conclave(args).stdout).unwrap();
        assert_eq!(report["ok"], true, "{report}");
        report["root"].clone()
    };
    let sqlite_root = root(&["--json", "ledger", "verify", "--data", data]);
    let moving = ["--json", "migrate", "sqlite-to-postgres", "--data", data, "--database", &url];
    let moved: Value = serde_json::from_slice(&conclave(&moving).stdout).unwrap();
    assert_eq!((&moved["verified"], &moved["root"]), (&true.into(), &sqlite_root), "{moved}");
    let again = conclave(&moving);
    assert_eq!(again.status.code(), Some(2), "it is moved already");
    let receipt = dir.path().join("receipt.json");
    std::fs::write(&receipt, &before.stdout).unwrap();
    let file = receipt.to_str().unwrap();
    let checked = conclave(&["ledger", "receipt", "--check", file, "--vkey", &vkey]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    // The gateway goes on from there, under the same keys, and refuses to go on in SQLite.
    let refused = conclave(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("PostgreSQL database"));
    let house = House::start(dir.path(), &config(&mock.base_url(), &url));
    assert_eq!(house.chat("My day was long.").await.status, 200);
    assert_eq!(all_decisions(&house).await.len(), 7);
    assert_eq!(house.get(&format!("/v1/decisions/{id}/receipt")).await.status, 200);
    assert!(house.stop());
    let pinned = ["--json", "ledger", "verify", "--database", &url, "--vkey", &vkey];
    root(&pinned);
    let rebuilt = conclave(&["ledger", "rebuild", "--database", &url]);
    assert_eq!(rebuilt.status.code(), Some(0), "{rebuilt:?}");
    root(&pinned);
    let export = dir.path().join("export");
    let export = export.to_str().unwrap();
    let exported = conclave(&["ledger", "export", export, "--database", &url, "--data", data]);
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    root(&["--json", "ledger", "verify", "--export", export, "--vkey", &vkey]);
}
