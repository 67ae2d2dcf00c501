//! One batch of entries on its way into the log: a bundle, bodies, and the rows derived from them.
//!
//! **Invariant:** nothing here speaks to a server; what a batch comes to depends on the state it
//! goes on from and on its entries alone.

use crate::db::{DecisionColumns, DeliveryColumns, Hole, LogState, UsageColumns, states};
use crate::replica::Identity;
use conclave_ledger::{
    EntryId, Kind, Leaf, Rotation, TileEdge, TileId, Value, decode_hashes, encode_hashes, leaf_hash,
};
use std::collections::{BTreeMap, HashMap};

/// A decision's row, with its delivery where that came in the same batch.
pub(super) struct AuditRow {
    pub(super) seq: i64,
    pub(super) replica: [u8; 8],
    pub(super) decision: DecisionColumns,
    pub(super) delivery: Option<(i64, DeliveryColumns)>,
}

/// Entries gathered for one transaction.
pub(super) struct Batch {
    pub(super) first: u64,
    pub(super) state: LogState,
    pub(super) leaves: Vec<u8>,
    pub(super) ends: Vec<i32>,
    pub(super) hashes: Vec<u8>,
    pub(super) tiles: Vec<(TileId, Vec<u8>)>,
    pub(super) body_seqs: Vec<i64>,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) derived: Derivation,
    pub(super) holes: Vec<Hole>,
}

/// Rows that follow from entries.
#[derive(Default)]
pub(super) struct Derivation {
    pub(super) decisions: Vec<AuditRow>,
    /// What each request used.
    pub(super) usage: Vec<(i64, UsageColumns)>,
    by_audit: HashMap<[u8; 16], usize>,
    /// Deliveries of decisions of earlier batches; a later one takes the place of an earlier one.
    pub(super) deliveries: BTreeMap<[u8; 16], (i64, DeliveryColumns)>,
    pub(super) changes: Vec<(Vec<u8>, i64)>,
    pub(super) rotations: Vec<(i64, String, String)>,
    /// Erasures and purges, with the words they delete.
    pub(super) forgotten: Vec<(i64, Leaf)>,
}

impl Batch {
    /// Goes on from a state.
    pub(super) fn new(state: LogState) -> Self {
        Self {
            first: state.range.size(),
            state,
            leaves: Vec::new(),
            ends: Vec::new(),
            hashes: Vec::new(),
            tiles: Vec::new(),
            body_seqs: Vec::new(),
            bodies: Vec::new(),
            derived: Derivation::default(),
            holes: Vec::new(),
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the largest number of this identity is known.
    pub(super) fn knows(&self, identity: Identity) -> bool {
        self.state.taken.contains_key(&identity)
    }

    /// Adds an entry, unless it was added before. Its identity must be known.
    pub(super) fn take(&mut self, id: EntryId, leaf: &[u8], body: &[u8]) {
        let identity = Identity { replica: id.replica, epoch: id.epoch };
        let taken = self.state.taken.entry(identity).or_insert(0);
        if id.n <= *taken {
            return;
        }
        let missing = *taken + 1..id.n;
        *taken = id.n;
        self.push(leaf, body);
        // A leaf of a later version cannot be read here, but it is in the log all the same.
        let leaf = Leaf::decode(leaf).ok();
        if !missing.is_empty() && !leaf.as_ref().is_some_and(|leaf| states(leaf, id, &missing)) {
            self.holes.push((identity, missing.start, id.n - 1));
        }
        if let Some(leaf) = leaf {
            self.state.ts_ms = self.state.ts_ms.max(leaf.ts_ms);
            let seq = self.state.range.size() - 1;
            self.derived.add(seq.cast_signed(), &leaf);
        }
    }

    /// Adds the bytes of an entry to the bundle.
    pub(super) fn push(&mut self, leaf: &[u8], body: &[u8]) {
        let (seq, hash) = (self.state.range.size().cast_signed(), leaf_hash(leaf));
        self.leaves.extend_from_slice(leaf);
        // A batch ends long before it has so many bytes.
        self.ends.push(i32::try_from(self.leaves.len()).unwrap_or(i32::MAX));
        self.hashes.extend_from_slice(&hash);
        if !body.is_empty() {
            self.body_seqs.push(seq);
            self.bodies.push(body.to_vec());
        }
        self.state.range.append(hash);
        let tiles = &mut self.tiles;
        self.state.edge.append(hash, |id, hashes| tiles.push((id, encode_hashes(hashes))));
    }
}

/// The edge of the tree as it stands in the head: for each level, how many hashes and which.
pub(in crate::postgres) fn encode_edge(edge: &TileEdge) -> Vec<u8> {
    let mut bytes = Vec::new();
    for level in 0..edge.levels() {
        let hashes = edge.level(level);
        // A tile that is not full has at most 255.
        bytes.push(u8::try_from(hashes.len()).unwrap_or(u8::MAX));
        bytes.extend(encode_hashes(hashes));
    }
    bytes
}

/// Reads an edge; `None` unless it fits a log of this size.
pub(super) fn decode_edge(mut bytes: &[u8], size: u64) -> Option<TileEdge> {
    let mut levels = Vec::new();
    while let Some((count, rest)) = bytes.split_first() {
        let (hashes, rest) = rest.split_at_checked(usize::from(*count) * 32)?;
        // The tile before has just become full.
        levels.push(if hashes.is_empty() { Vec::new() } else { decode_hashes(hashes)? });
        bytes = rest;
    }
    TileEdge::new(size, levels)
}

impl Derivation {
    /// Adds what follows from one entry.
    pub(super) fn add(&mut self, seq: i64, leaf: &Leaf) {
        self.usage.extend(UsageColumns::of(leaf).map(|event| (seq, event)));
        match leaf.draft.kind {
            Kind::Decision => {
                if let Some(decision) = DecisionColumns::of(leaf) {
                    self.by_audit.entry(decision.id).or_insert(self.decisions.len());
                    let replica = leaf.id.replica;
                    self.decisions.push(AuditRow { seq, replica, decision, delivery: None });
                }
            }
            Kind::Delivery => self.deliver(seq, leaf),
            Kind::SubjectErase => {
                self.change(seq, leaf);
                self.forgotten.push((seq, leaf.clone()));
            }
            Kind::RetentionPurge => self.forgotten.push((seq, leaf.clone())),
            // A rotation that does not hold changes no key; `verify` names it.
            Kind::KeyRotate => {
                let rotation = Rotation::from_public(&leaf.draft.public).filter(Rotation::holds);
                let keys = rotation.map(|keys| (seq, keys.old.to_string(), keys.new.to_string()));
                self.rotations.extend(keys);
            }
            // Whatever became of a note is found again by its id.
            _ => self.change(seq, leaf),
        }
    }

    fn change(&mut self, seq: i64, leaf: &Leaf) {
        let id = leaf.draft.public.get("outbox").and_then(Value::as_bytes);
        self.changes.extend(id.map(|id| (id.to_vec(), seq)));
    }

    /// Most deliveries come in the same batch as their decision; then one row is written, once.
    fn deliver(&mut self, seq: i64, leaf: &Leaf) {
        let Some(audit) = leaf.draft.audit else { return };
        let delivery = (seq, DeliveryColumns::of(leaf));
        match self.by_audit.get(&audit).and_then(|at| self.decisions.get_mut(*at)) {
            Some(row) => row.delivery = Some(delivery),
            None => {
                self.deliveries.insert(audit, delivery);
            }
        }
    }

    /// How many rows it comes to.
    pub(super) fn len(&self) -> usize {
        self.decisions.len()
            + self.usage.len()
            + self.deliveries.len()
            + self.changes.len()
            + self.rotations.len()
            + self.forgotten.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_of_any_size_is_read_as_it_was_written() {
        let mut edge = TileEdge::default();
        for size in 0..=66_000_u64 {
            let near = |border: u64| size.abs_diff(border) < 3;
            if size < 3 || size % 256 < 2 || near(65_536) || near(65_792) {
                let bytes = encode_edge(&edge);
                assert_eq!(decode_edge(&bytes, size).as_ref(), Some(&edge), "{size}");
                assert_eq!(decode_edge(&bytes, size + 1), None, "of another size");
                if size > 0 {
                    assert_eq!(decode_edge(&bytes[1..], size), None, "cut off");
                }
            }
            edge.append([u8::try_from(size % 251).unwrap(); 32], |_, _| {});
        }
    }
}
