//! The Merkle tree over the log, hashed as RFC 6962 says.
//!
//! **Invariant:** a leaf and an inner node can never have the same hash by construction: their
//! inputs begin with different bytes.
//!
//! **Invariant:** appending needs only the compact range, never the leaves before.

use crate::leaf::sha256;

/// A node of the tree.
pub type Hash = [u8; 32];

/// The root of a tree without leaves.
#[must_use]
pub fn empty_root() -> Hash {
    sha256(&[])
}

/// The hash of an inner node.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], left, right])
}

/// The roots of the perfect subtrees that make up a tree, largest first: one for each bit of its
/// size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactRange {
    size: u64,
    peaks: Vec<Hash>,
}

impl CompactRange {
    /// The range of an empty tree.
    #[must_use]
    pub const fn new() -> Self {
        Self { size: 0, peaks: Vec::new() }
    }

    /// The range of a tree of this size with these subtrees, largest first; `None` when there
    /// cannot be so many.
    #[must_use]
    pub fn from_peaks(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        (peaks.len() == size.count_ones() as usize).then_some(Self { size, peaks })
    }

    /// How many leaves there are.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf; merges as many subtrees as the size has trailing ones.
    pub fn append(&mut self, leaf_hash: Hash) {
        let mut node = leaf_hash;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The root over all leaves.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(smallest) = peaks.next() else {
            return empty_root();
        };
        peaks.fold(*smallest, |right, left| node_hash(left, &right))
    }

    /// Size and subtrees as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.size.to_be_bytes().to_vec();
        bytes.extend(self.peaks.iter().flatten());
        bytes
    }

    /// Reads the bytes back; `None` when they do not fit together.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (size, peaks) = bytes.split_first_chunk::<8>()?;
        let size = u64::from_be_bytes(*size);
        let (peaks, rest) = peaks.as_chunks::<32>();
        if rest.is_empty() { Self::from_peaks(size, peaks.to_vec()) } else { None }
    }
}

/// The root of a tree over these leaf hashes.
#[must_use]
pub fn root_of(leaves: &[Hash]) -> Hash {
    let mut range = CompactRange::new();
    leaves.iter().for_each(|leaf| range.append(*leaf));
    range.root()
}

/// Where a tree of more than one leaf is cut: the largest power of two below its size.
const fn cut(size: usize) -> usize {
    1 << (usize::BITS - 1 - (size - 1).leading_zeros())
}

/// The path that proves leaf `index` to the root over `leaves`; `None` when there is no such leaf.
#[must_use]
pub fn inclusion_proof(leaves: &[Hash], index: usize) -> Option<Vec<Hash>> {
    if index >= leaves.len() {
        return None;
    }
    let (mut leaves, mut index, mut proof) = (leaves, index, Vec::new());
    while leaves.len() > 1 {
        let (left, right) = leaves.split_at(cut(leaves.len()));
        if index < left.len() {
            proof.push(root_of(right));
            leaves = left;
        } else {
            proof.push(root_of(left));
            index -= left.len();
            leaves = right;
        }
    }
    proof.reverse();
    Some(proof)
}

/// Whether the path proves that the leaf stands at `index` of the tree with this size and root.
#[must_use]
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut node) = (index, size - 1, *leaf);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            node = node_hash(sibling, &node);
            while at % 2 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            node = node_hash(&node, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && node == *root
}

/// The path that proves that the first `old` leaves were not changed; `None` when there are fewer.
#[must_use]
pub fn consistency_proof(leaves: &[Hash], old: usize) -> Option<Vec<Hash>> {
    if old > leaves.len() {
        return None;
    }
    if old == 0 || old == leaves.len() {
        return Some(Vec::new());
    }
    let (mut leaves, mut old, mut whole, mut proof) = (leaves, old, true, Vec::new());
    while old != leaves.len() {
        let (left, right) = leaves.split_at(cut(leaves.len()));
        if old <= left.len() {
            proof.push(root_of(right));
            leaves = left;
        } else {
            proof.push(root_of(left));
            old -= left.len();
            leaves = right;
            whole = false;
        }
    }
    if !whole {
        proof.push(root_of(leaves));
    }
    proof.reverse();
    Some(proof)
}

/// Whether the path proves that the tree of size `new` begins with the tree of size `old`.
#[must_use]
pub fn verify_consistency(
    old: u64,
    new: u64,
    old_root: &Hash,
    new_root: &Hash,
    proof: &[Hash],
) -> bool {
    if old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    if old == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    let shift = (old - 1).trailing_ones();
    let (mut at, mut last) = ((old - 1) >> shift, (new - 1) >> shift);
    let mut path = proof.iter();
    let first = if old.is_power_of_two() { Some(old_root) } else { path.next() };
    let Some(first) = first else { return false };
    let (mut was, mut is) = (*first, *first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            was = node_hash(sibling, &was);
            is = node_hash(sibling, &is);
            while at % 2 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            is = node_hash(&is, sibling);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && was == *old_root && is == *new_root
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
