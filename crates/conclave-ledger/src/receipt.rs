//! A receipt: everything somebody needs to check, without us, that an entry is in the log.
//!
//! **Invariant:** a receipt is checked against a key that the checker brings. The key that stands
//! in it is a convenience and proves nothing.

use crate::checkpoint::{Checkpoint, CheckpointError, parse_hash, parse_number};
use crate::leaf::{LEAF_BYTES_MAX, Leaf, LeafError, leaf_hash};
use crate::note::VerifierKey;
use crate::tree::{Hash, verify_inclusion};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use thiserror::Error;

/// The version of the form.
const VERSION: u8 = 1;
/// A tree of 64-bit size has no longer path.
const PROOF_HASHES_MAX: usize = 64;
/// The first line of a C2SP tlog-proof.
const TLOG_PROOF: &str = "c2sp.org/tlog-proof@v1";

/// A leaf, its path to a root, and the signed checkpoint with that root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The exact bytes of the leaf.
    pub leaf: Vec<u8>,
    /// Its place in the log.
    pub index: u64,
    /// From the leaf's sibling up.
    pub proof: Vec<Hash>,
    /// The signed note.
    pub checkpoint: String,
    /// The key that signed, as the log tells it.
    pub vkey: String,
}

/// Why a receipt cannot be read or proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReceiptError {
    /// Not the form of a receipt.
    #[error("this is not a receipt: {0}")]
    Form(String),
    /// The checkpoint cannot be believed.
    #[error("the checkpoint of the receipt does not hold: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The leaf is not in the tree of the checkpoint.
    #[error("the proof does not lead from the leaf to the root of the checkpoint")]
    Proof,
    /// The size beside the proof is not that of the checkpoint.
    #[error("the receipt says a size of {said}, its checkpoint {signed}")]
    Size {
        /// In the receipt.
        said: u64,
        /// In the checkpoint.
        signed: u64,
    },
    /// The leaf is in the log, but cannot be read.
    #[error("the leaf is in the log but cannot be read: {0}")]
    Leaf(#[from] LeafError),
}

/// The JSON form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    v: u8,
    leaf: String,
    leaf_hash: String,
    index: u64,
    size: u64,
    proof: Vec<String>,
    checkpoint: String,
    vkey: String,
}

impl Receipt {
    /// The JSON object.
    ///
    /// # Errors
    /// When the checkpoint in it is none.
    pub fn to_json(&self) -> Result<serde_json::Value, ReceiptError> {
        let wire = Wire {
            v: VERSION,
            leaf: STANDARD.encode(&self.leaf),
            leaf_hash: hex::encode(leaf_hash(&self.leaf)),
            index: self.index,
            size: self.unchecked_size()?,
            proof: self.proof.iter().map(|hash| STANDARD.encode(hash)).collect(),
            checkpoint: self.checkpoint.clone(),
            vkey: self.vkey.clone(),
        };
        serde_json::to_value(wire).map_err(|error| ReceiptError::Form(error.to_string()))
    }

    /// Reads the JSON object; says nothing yet about whether it proves anything.
    ///
    /// # Errors
    /// When it does not have the form of a receipt or contradicts itself.
    pub fn from_json(text: &str) -> Result<Self, ReceiptError> {
        let form = |what: &str| ReceiptError::Form(what.to_owned());
        let wire: Wire =
            serde_json::from_str(text).map_err(|error| ReceiptError::Form(error.to_string()))?;
        if wire.v != VERSION {
            return Err(form(&format!("its version is {}, known is {VERSION}", wire.v)));
        }
        let leaf = STANDARD.decode(&wire.leaf).map_err(|_| form("the leaf is not base64"))?;
        if leaf.len() > LEAF_BYTES_MAX {
            return Err(form("the leaf is too long"));
        }
        if wire.leaf_hash != hex::encode(leaf_hash(&leaf)) {
            return Err(form("the leaf does not have the hash that is written beside it"));
        }
        let proof = read_proof(wire.proof.iter().map(String::as_str))?;
        let Wire { index, size, checkpoint, vkey, .. } = wire;
        let receipt = Self { leaf, index, proof, checkpoint, vkey };
        let signed = receipt.unchecked_size()?;
        if size == signed { Ok(receipt) } else { Err(ReceiptError::Size { said: size, signed }) }
    }

    /// Checks it against keys the caller trusts: the checkpoint it holds for, and what the leaf
    /// says.
    ///
    /// # Errors
    /// When it proves nothing; the sentence says why.
    pub fn verify(&self, keys: &[VerifierKey]) -> Result<(Checkpoint, Leaf), ReceiptError> {
        let checkpoint = Checkpoint::open(&self.checkpoint, keys)?;
        let hash = leaf_hash(&self.leaf);
        let (size, root) = (checkpoint.size, &checkpoint.root);
        if !verify_inclusion(&hash, self.index, size, &self.proof, root) {
            return Err(ReceiptError::Proof);
        }
        Ok((checkpoint, Leaf::decode(&self.leaf)?))
    }

    /// The proof alone in the form of C2SP tlog-proof; the leaf stands in its `extra` line.
    #[must_use]
    pub fn to_tlog_proof(&self) -> String {
        let mut text = format!("{TLOG_PROOF}\nextra {}\n", STANDARD.encode(&self.leaf));
        let _ = writeln!(text, "index {}", self.index);
        for hash in &self.proof {
            let _ = writeln!(text, "{}", STANDARD.encode(hash));
        }
        let _ = write!(text, "\n{}", self.checkpoint);
        text
    }

    /// Reads a C2SP tlog-proof of ours.
    ///
    /// # Errors
    /// When it does not have that form.
    pub fn from_tlog_proof(text: &str) -> Result<Self, ReceiptError> {
        let form = |what: &str| ReceiptError::Form(what.to_owned());
        let (head, checkpoint) = text.split_once("\n\n").ok_or_else(|| form("no checkpoint"))?;
        let mut lines = head.lines();
        if lines.next() != Some(TLOG_PROOF) {
            return Err(form("it is neither JSON nor a tlog-proof"));
        }
        let extra = lines.next().and_then(|line| line.strip_prefix("extra "));
        let leaf = extra.and_then(|leaf| STANDARD.decode(leaf).ok());
        let leaf = leaf.ok_or_else(|| form("the leaf is missing in the line `extra`"))?;
        let index = lines.next().and_then(|line| parse_number(line.strip_prefix("index ")?));
        let index = index.ok_or_else(|| form("it has no index"))?;
        let proof = read_proof(lines)?;
        let (checkpoint, vkey) = (checkpoint.to_owned(), String::new());
        Ok(Self { leaf, index, proof, checkpoint, vkey })
    }

    /// The size in the checkpoint, whoever signed it.
    fn unchecked_size(&self) -> Result<u64, ReceiptError> {
        let note = crate::note::SignedNote::parse(&self.checkpoint);
        let note = note.map_err(CheckpointError::from)?;
        Ok(Checkpoint::parse(note.text())?.size)
    }
}

fn read_proof<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Hash>, ReceiptError> {
    let form = |what: &str| ReceiptError::Form(what.to_owned());
    let hashes: Option<Vec<_>> = lines.take(PROOF_HASHES_MAX + 1).map(parse_hash).collect();
    let hashes = hashes.ok_or_else(|| form("the proof holds something that is no hash"))?;
    if hashes.len() > PROOF_HASHES_MAX {
        return Err(form("the proof is too long"));
    }
    Ok(hashes)
}

#[cfg(test)]
#[path = "receipt_tests.rs"]
mod tests;
