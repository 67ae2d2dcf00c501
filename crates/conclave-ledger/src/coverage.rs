//! Which entries of each replica there are, and which are admitted to be missing.
//!
//! **Invariant:** memory grows with the number of holes, not with the number of entries, and the
//! number of holes is bounded.

use crate::cbor::Value;
use crate::leaf::{EntryId, Leaf};
use std::collections::BTreeMap;

/// More holes than this are not followed one by one: the log is broken anyway.
const HOLES_MAX: usize = 10_000;

/// The statement of a `coverage.gap` entry: these numbers are missing, and the writer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whose entries.
    pub replica: [u8; 8],
    /// In which epoch.
    pub epoch: u32,
    /// The first missing number.
    pub from: u64,
    /// The last missing number.
    pub to: u64,
    /// Why, as one of a few fixed words.
    pub reason: String,
}

impl Gap {
    /// The public part of the entry.
    #[must_use]
    pub fn to_public(&self) -> Value {
        Value::map([
            ("replica", self.replica.to_vec().into()),
            ("epoch", self.epoch.into()),
            ("from", self.from.into()),
            ("to", self.to.into()),
            ("reason", self.reason.as_str().into()),
        ])
    }

    /// Reads the public part of the entry; `None` if it states no range.
    #[must_use]
    pub fn from_public(public: &Value) -> Option<Self> {
        let number = |key| public.get(key).and_then(Value::as_u64);
        let reason = public.get("reason").and_then(Value::as_str).unwrap_or_default();
        let (from, to) = (number("from")?, number("to")?);
        let gap = Self {
            replica: public.get("replica")?.as_bytes()?.try_into().ok()?,
            epoch: u32::try_from(number("epoch")?).ok()?,
            from,
            to,
            reason: reason.to_owned(),
        };
        (from <= to).then_some(gap)
    }

    /// Whether the gap names every number of this range.
    #[must_use]
    pub fn covers(&self, replica: [u8; 8], epoch: u32, from: u64, to: u64) -> bool {
        (self.replica, self.epoch) == (replica, epoch) && self.from <= from && to <= self.to
    }
}

/// Numbers that were passed over, and where that showed.
#[derive(Clone, Debug)]
pub(crate) struct Hole {
    pub(crate) seq: u64,
    pub(crate) id: EntryId,
    from: u64,
}

/// Follows the numbers of all replicas.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    last: BTreeMap<([u8; 8], u32), u64>,
    holes: Vec<Hole>,
    gaps: Vec<Gap>,
}

impl Coverage {
    /// Takes the next entry into account.
    pub(crate) fn observe(&mut self, seq: u64, leaf: &Leaf) -> Result<(), String> {
        let id = leaf.id;
        let last = self.last.entry((id.replica, id.epoch)).or_insert(0);
        if id.n <= *last {
            return Err(format!("entry number {} comes after number {last}", id.n));
        }
        let from = *last + 1;
        *last = id.n;
        if from == id.n {
            return Ok(());
        }
        if self.holes.len() >= HOLES_MAX {
            return Err("too many entries are missing".to_owned());
        }
        self.holes.push(Hole { seq, id, from });
        Ok(())
    }

    /// Takes a statement about missing entries into account.
    pub(crate) fn declare(&mut self, public: &Value) -> Result<(), String> {
        let gap = Gap::from_public(public).ok_or("the coverage gap names no range")?;
        if self.gaps.len() >= HOLES_MAX {
            return Err("too many coverage gaps".to_owned());
        }
        self.gaps.push(gap);
        Ok(())
    }

    /// Whether a statement says that an entry is missing.
    pub(crate) fn admits(&self, EntryId { replica, epoch, n }: EntryId) -> bool {
        self.gaps.iter().any(|gap| gap.covers(replica, epoch, n, n))
    }

    /// The first hole that no statement covers, with a sentence.
    pub(crate) fn uncovered(mut self) -> Option<(Hole, String)> {
        self.gaps.sort_by_key(|gap| (gap.replica, gap.epoch, gap.from));
        let hole = self.holes.iter().find(|hole| !self.is_covered(hole))?;
        let (from, to) = (hole.from, hole.id.n - 1);
        let problem = format!("entries {from} to {to} of this replica are missing");
        Some((hole.clone(), problem))
    }

    fn is_covered(&self, hole: &Hole) -> bool {
        let stream = (hole.id.replica, hole.id.epoch);
        let begin = self.gaps.partition_point(|gap| (gap.replica, gap.epoch) < stream);
        let of_stream = self.gaps.iter().skip(begin);
        let mut next = hole.from;
        for gap in of_stream.take_while(|gap| (gap.replica, gap.epoch) == stream) {
            if gap.from <= next && next <= gap.to {
                next = gap.to.saturating_add(1);
            }
        }
        next >= hole.id.n
    }
}

/// Replica, epoch, and which run of 4,096 numbers.
type Block = ([u8; 8], u32, u64);

/// A set of entry numbers that is small when they stand close together.
#[derive(Debug, Default)]
pub(crate) struct NumberSet(BTreeMap<Block, Box<[u64; 64]>>);

impl NumberSet {
    /// Adds an entry.
    pub(crate) fn insert(&mut self, id: EntryId) {
        let (block, word, bit) = Self::place(id);
        self.0.entry(block).or_insert_with(|| Box::new([0; 64]))[word] |= bit;
    }

    /// Whether an entry was added.
    pub(crate) fn contains(&self, id: EntryId) -> bool {
        let (block, word, bit) = Self::place(id);
        self.0.get(&block).is_some_and(|bits| bits[word] & bit != 0)
    }

    const fn place(id: EntryId) -> (Block, usize, u64) {
        let block = (id.replica, id.epoch, id.n >> 12);
        (block, ((id.n >> 6) & 63) as usize, 1 << (id.n & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::{Draft, Kind};

    fn leaf(n: u64) -> Leaf {
        let id = EntryId { replica: [7; 8], epoch: 1, n };
        Leaf { id, ts_ms: 0, draft: Draft::new(Kind::Decision, 1), commitments: vec![] }
    }

    fn gap(from: u64, to: u64) -> Value {
        Gap { replica: [7; 8], epoch: 1, from, to, reason: "test".into() }.to_public()
    }

    fn first_uncovered(numbers: &[u64], gaps: &[(u64, u64)]) -> Option<String> {
        let mut coverage = Coverage::default();
        for (seq, n) in (0..).zip(numbers) {
            coverage.observe(seq, &leaf(*n)).unwrap();
        }
        for (from, to) in gaps {
            coverage.declare(&gap(*from, *to)).unwrap();
        }
        coverage.uncovered().map(|(_, problem)| problem)
    }

    #[test]
    fn holes_must_be_admitted() {
        let missing = |range: &str| Some(format!("entries {range} of this replica are missing"));
        assert_eq!(first_uncovered(&[1, 2, 3], &[]), None);
        assert_eq!(first_uncovered(&[2, 3], &[]), missing("1 to 1"));
        assert_eq!(first_uncovered(&[1, 5, 6], &[]), missing("2 to 4"));
        assert_eq!(first_uncovered(&[1, 5, 6], &[(2, 4)]), None);
        assert_eq!(first_uncovered(&[1, 5, 6], &[(4, 4), (2, 3)]), None);
        assert_eq!(first_uncovered(&[1, 5, 9], &[(2, 4)]), missing("6 to 8"));
        assert_eq!(first_uncovered(&[1, 5], &[(3, 4)]), missing("2 to 4"));
    }

    #[test]
    fn a_number_never_comes_back() {
        let mut coverage = Coverage::default();
        coverage.observe(0, &leaf(4)).unwrap();
        assert!(coverage.observe(1, &leaf(4)).is_err());
        assert!(coverage.observe(1, &leaf(3)).is_err());
    }

    #[test]
    fn a_gap_reads_back() {
        let gap = Gap { replica: [1; 8], epoch: 3, from: 5, to: 9, reason: "spool".into() };
        assert_eq!(Gap::from_public(&gap.to_public()), Some(gap.clone()));
        assert!(gap.covers([1; 8], 3, 6, 9) && !gap.covers([1; 8], 3, 6, 10));
        assert_eq!(Gap::from_public(&Value::empty_map()), None);
        let backwards = Gap { from: 9, to: 5, ..gap };
        assert_eq!(Gap::from_public(&backwards.to_public()), None);
    }

    #[test]
    fn a_number_set_keeps_streams_apart() {
        let mut set = NumberSet::default();
        let id = EntryId { replica: [1; 8], epoch: 1, n: u64::MAX };
        set.insert(id);
        assert!(set.contains(id));
        for other in [EntryId { n: 0, ..id }, EntryId { epoch: 2, ..id }] {
            assert!(!set.contains(other));
        }
    }
}
