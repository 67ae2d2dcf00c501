//! Receipts, and the published vectors of this log's formats.

use super::*;
use crate::cbor::Value;
use crate::leaf::{Draft, EntryId, Kind};
use crate::note::NoteSigner;
use crate::proofs::{TileSource, prove_inclusion, root_at};
use crate::tile::{TileId, encode_hashes, write_bundle};
use serde_json::json;

/// The vectors that other implementations can be held to.
const VECTORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/ledger-vectors.json"));

fn leaf(n: u64) -> Vec<u8> {
    let id = EntryId { replica: *b"replica1", epoch: 1, n };
    let public = Value::map([("status", "sent".into())]);
    let draft = Draft { public, build: "0.0.0".into(), ..Draft::new(Kind::Delivery, 7) };
    Leaf { id, ts_ms: 1_700_000_000_000 + n, draft, commitments: vec![] }.encode()
}

struct Leaves(Vec<Hash>);
impl TileSource for Leaves {
    type Error = std::convert::Infallible;
    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, Self::Error> {
        Ok(self.0[..id.width.into()].to_vec())
    }
}

fn signer() -> NoteSigner {
    NoteSigner::new("log.example/vectors", &[42; 32]).unwrap()
}

fn receipt(index: u64, size: u64) -> Receipt {
    let mut leaves = Leaves((1..=size).map(|n| leaf_hash(&leaf(n))).collect());
    let root = root_at(&mut leaves, size).unwrap();
    let checkpoint = Checkpoint::new("log.example/vectors", size, root).sign(&[signer()]);
    let proof = prove_inclusion(&mut leaves, index, size).unwrap();
    let vkey = signer().verifier().to_string();
    Receipt { leaf: leaf(index + 1), index, proof, checkpoint, vkey }
}

#[test]
fn the_published_vectors_are_what_we_write() {
    let receipt = receipt(2, 5);
    let hashes: Vec<_> = (1..=5).map(|n| leaf_hash(&leaf(n))).collect();
    let mut bundle = Vec::new();
    (1..=5).for_each(|n| write_bundle(&mut bundle, &leaf(n)).unwrap());
    let written = json!({
        "seed": hex::encode([42; 32]),
        "vkey": receipt.vkey,
        "checkpoint": receipt.checkpoint,
        "tile_path": TileId { level: 0, index: 0, width: 5 }.path(),
        "tile": hex::encode(encode_hashes(&hashes)),
        "bundle": STANDARD.encode(bundle),
        "receipt": receipt.to_json().unwrap(),
        "tlog_proof": receipt.to_tlog_proof(),
    });
    let published: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(published, written, "{written:#}");
}

#[test]
fn a_receipt_holds_in_both_forms() {
    for (index, size) in [(0, 1), (0, 2), (4, 5), (100, 250)] {
        let receipt = receipt(index, size);
        let keys = [signer().verifier()];
        let text = receipt.to_json().unwrap().to_string();
        let read = Receipt::from_json(&text).unwrap();
        assert_eq!(read, receipt);
        let (checkpoint, leaf) = read.verify(&keys).unwrap();
        assert_eq!((checkpoint.size, leaf.id.n), (size, index + 1));
        let read = Receipt::from_tlog_proof(&receipt.to_tlog_proof()).unwrap();
        assert_eq!(read, Receipt { vkey: String::new(), ..receipt });
        assert!(read.verify(&keys).is_ok());
    }
}

#[test]
fn the_key_inside_a_receipt_proves_nothing() {
    let receipt = receipt(2, 5);
    let stranger = NoteSigner::new("log.example/vectors", &[43; 32]).unwrap();
    assert!(receipt.verify(&[stranger.verifier()]).is_err());
    assert!(receipt.verify(&[]).is_err());
}

#[test]
fn every_changed_part_is_noticed() {
    let good = receipt(2, 5);
    let keys = [signer().verifier()];
    let mut leaf = good.leaf.clone();
    leaf[40] ^= 1;
    let mut hash = good.proof.clone();
    hash[1][0] ^= 1;
    for bad in [
        Receipt { leaf, ..good.clone() },
        Receipt { index: 3, ..good.clone() },
        Receipt { index: u64::MAX, ..good.clone() },
        Receipt { proof: hash, ..good.clone() },
        Receipt { proof: vec![], ..good.clone() },
        Receipt { proof: good.proof[1..].to_vec(), ..good.clone() },
    ] {
        assert_eq!(bad.verify(&keys).unwrap_err(), ReceiptError::Proof);
    }
}

#[test]
fn odd_receipts_are_refused_with_a_reason() {
    let good = receipt(2, 5).to_json().unwrap();
    let changed = |key: &str, value: serde_json::Value| {
        let mut receipt = good.clone();
        receipt[key] = value;
        Receipt::from_json(&receipt.to_string()).unwrap_err().to_string()
    };
    for (key, value, said) in [
        ("v", json!(2), "version is 2"),
        ("leaf", json!("!"), "not base64"),
        ("leaf", json!("AAAA"), "does not have the hash"),
        ("size", json!(6), "a size of 6, its checkpoint 5"),
        ("proof", json!(["AAAA"]), "no hash"),
        ("proof", json!(vec![STANDARD.encode([0; 32]); 65]), "too long"),
        ("checkpoint", json!("x"), "does not hold"),
        ("other", json!(1), "unknown field"),
        ("index", json!(-1), "not a receipt"),
    ] {
        let sentence = changed(key, value);
        assert!(sentence.contains(said), "{key}: {sentence}");
    }
    for text in
        ["", "c2sp.org/tlog-proof@v1\n\n", "x\n\ny", "c2sp.org/tlog-proof@v1\nextra A\nindex 1\n\n"]
    {
        assert!(Receipt::from_tlog_proof(text).is_err());
    }
}
