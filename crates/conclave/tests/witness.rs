//! A witness that the real program shows its checkpoints to: honest, away, slow, lying, and one whose answer
//! is lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_ledger::{Checkpoint, SignedNote, WitnessSigner, verify_consistency};
use house::House;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a witness behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Honest,
    /// Does what it should, and its answer does not arrive.
    Lost,
    /// Takes the connection and says nothing.
    Slow,
    /// Says it has seen more than there is.
    Lying,
    /// Cosigns another checkpoint than the one it was shown.
    Forging,
    Away,
}

struct Seen {
    manner: Manner,
    size: u64,
    root: [u8; 32],
    asked: usize,
    conflicts: usize,
    cosigned: usize,
}

/// A witness that follows the rules: the latest checkpoint, and a proof from there to the next.
struct MockWitness {
    signer: WitnessSigner,
    seen: Mutex<Seen>,
}

impl MockWitness {
    async fn start() -> (Arc<Self>, String) {
        let signer = WitnessSigner::new("witness.example/w1", &[9; 32]).unwrap();
        let seen = Seen {
            manner: Manner::Honest,
            size: 0,
            root: [0; 32],
            asked: 0,
            conflicts: 0,
            cosigned: 0,
        };
        let witness = Arc::new(Self { signer, seen: Mutex::new(seen) });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/witness", listener.local_addr().unwrap());
        let own = Arc::clone(&witness);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&own).serve(stream));
            }
        });
        (witness, url)
    }

    fn set(&self, manner: Manner) {
        self.seen.lock().unwrap().manner = manner;
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        loop {
            let Some(body) = request(&mut stream).await else { return };
            let manner = {
                let mut seen = self.seen.lock().unwrap();
                seen.asked += 1;
                seen.manner
            };
            let (status, answer) = match manner {
                Manner::Away => return,
                Manner::Slow => std::future::pending().await,
                Manner::Lying => (409, "1000000000\n".to_owned()),
                Manner::Lost => {
                    assert_eq!(self.cosign(&body).0 / 100, 2);
                    return;
                }
                Manner::Forging => {
                    let other = Checkpoint::new("log", 1, [7; 32]).to_string();
                    (200, self.signer.cosign(&other, 1_800_000_000))
                }
                Manner::Honest => self.cosign(&body),
            };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", answer.len());
            if stream.write_all((head + &answer).as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn cosign(&self, body: &str) -> (u16, String) {
        let (lines, note) = body.split_once("\n\n").unwrap();
        let mut lines = lines.lines();
        let old: u64 = lines.next().unwrap().strip_prefix("old ").unwrap().parse().unwrap();
        let decode = |line: &str| {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.decode(line).unwrap().try_into().unwrap()
        };
        let proof: Vec<[u8; 32]> = lines.map(decode).collect();
        let note = SignedNote::parse(note).unwrap();
        let checkpoint = Checkpoint::parse(note.text()).unwrap();
        let mut seen = self.seen.lock().unwrap();
        if old != seen.size {
            seen.conflicts += 1;
            return (409, format!("{}\n", seen.size));
        }
        let extends = match old {
            0 => proof.is_empty(),
            old if old == checkpoint.size => checkpoint.root == seen.root,
            old => verify_consistency(old, checkpoint.size, &seen.root, &checkpoint.root, &proof),
        };
        if !extends {
            return (422, String::new());
        }
        (seen.size, seen.root) = (checkpoint.size, checkpoint.root);
        seen.cosigned += 1;
        (200, self.signer.cosign(note.text(), 1_800_000_000))
    }
}

/// The body of the next request; `None` when the connection ends.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            assert!(head.starts_with("post /witness/add-checkpoint http/1.1"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().trim().parse().unwrap() {
                return Some(body.to_owned());
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Waits until the published checkpoint is as wanted.
async fn published(house: &House, wanted: impl Fn(&str) -> bool) -> String {
    for _ in 0..400 {
        let reply = house.get("/ledger/checkpoint").await;
        if reply.status == 200 && wanted(&reply.body) {
            return reply.body;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never published: {}", house.get("/ledger/checkpoint").await.body);
}

fn size_of(note: &str) -> u64 {
    Checkpoint::parse(SignedNote::parse(note).unwrap().text()).unwrap().size
}

async fn failures(house: &House) -> u64 {
    let page = house.get("/metrics").await.body;
    let line = page.lines().find(|line| line.starts_with("conclave_witness_failures_total "));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_f21_a_witness_cosigns_and_whatever_it_does_publishing_goes_on() {
    let (witness, url) = MockWitness::start().await;
    let key = witness.signer.key();
    let config = format!(
        "[detection]\nsecond_tier = \"never\"\n[[ledger.witnesses]]\nurl = \"{url}\"\nvkey = \"{key}\"\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config);
    let turn = json!({
        "model": "builtin", "messages": [{"role": "user", "content": "My day was long."}]
    });
    let talk = || house.post("/v1/chat/completions", &turn);
    assert_eq!(talk().await.status, 200);
    let cosigned = |note: &str| key.find(note, note).is_ok();
    let note = published(&house, cosigned).await;
    let first = size_of(&note);

    // The answer is lost after the witness has kept what it saw: the next question is a conflict, and the
    // one after it is right.
    witness.set(Manner::Lost);
    let before = failures(&house).await;
    assert_eq!(talk().await.status, 200);
    while failures(&house).await == before {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    witness.set(Manner::Honest);
    assert_eq!(talk().await.status, 200);
    let note = published(&house, |note| size_of(note) > first && cosigned(note)).await;
    assert!(witness.seen.lock().unwrap().conflicts > 0, "it was told what the witness knew");

    // Slow, lying, forging or away: checkpoints are published all the same, without its line.
    let mut last = size_of(&note);
    for manner in [Manner::Slow, Manner::Lying, Manner::Forging, Manner::Away] {
        witness.set(manner);
        let before = failures(&house).await;
        assert_eq!(talk().await.status, 200);
        let note = published(&house, |note| size_of(note) > last).await;
        assert!(!cosigned(&note), "{manner:?}");
        last = size_of(&note);
        while failures(&house).await == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(house.get("/readyz").await.status, 200);

    // Killed, and honest again: no size gets two notes, and the witness goes on from what it saw.
    house.kill();
    witness.set(Manner::Honest);
    let house = House::start(dir.path(), &config);
    assert_eq!(house.post("/v1/chat/completions", &turn).await.status, 200);
    let note = published(&house, |note| size_of(note) > last && cosigned(note)).await;
    assert!(witness.seen.lock().unwrap().cosigned >= 3);
    assert!(size_of(&note) >= witness.seen.lock().unwrap().size);
    let data = house.data.clone();
    assert!(house.stop());
    let (code, report) = house::verify(&data);
    assert_eq!(code, Some(0), "{report}");
}
