//! Words that are gone on purpose: entries that say so, and which missing bodies they explain.
//!
//! **Invariant:** an entry explains only bodies of entries before it, of its own tenant, and what it
//! names: a person, or a range of time without the people on hold. Every other missing body is a
//! finding.

use crate::cbor::Value;
use crate::leaf::{Kind, Leaf, leaf_hash};
use crate::tree::Hash;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a `subject.erase` entry says beside the pseudonym of the person it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Of the request to erase: one request is one entry, however often it is resumed.
    pub request: [u8; 16],
    /// How many decisions of the person there are; their leaves stay.
    pub decisions: u64,
    /// How many bodies were deleted.
    pub bodies: u64,
}

impl Erasure {
    /// The public part of the entry.
    #[must_use]
    pub fn to_public(&self) -> Value {
        Value::map([
            ("outbox", self.request.to_vec().into()),
            ("decisions", self.decisions.into()),
            ("bodies", self.bodies.into()),
        ])
    }
}

/// What a `retention.purge` entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The time of the oldest decision whose words were due.
    pub from_ms: u64,
    /// Decisions up to this time, itself included, were due.
    pub until_ms: u64,
    /// How many bodies were deleted.
    pub count: u64,
    /// People whose words stay, although they are due.
    pub held: BTreeSet<[u8; 16]>,
}

impl Purge {
    /// The public part of the entry.
    #[must_use]
    pub fn to_public(&self) -> Value {
        let held = self.held.iter().map(|subject| Value::Bytes(subject.to_vec())).collect();
        Value::map([
            ("from_ms", self.from_ms.into()),
            ("until_ms", self.until_ms.into()),
            ("count", self.count.into()),
            ("kinds", Value::Array(vec![Kind::Decision.as_str().into()])),
            ("held", Value::Array(held)),
        ])
    }

    /// Reads the public part back; `None` if it is not one.
    #[must_use]
    pub fn from_public(public: &Value) -> Option<Self> {
        let number = |key| public.get(key).and_then(Value::as_u64);
        let held = public.get("held").and_then(Value::as_array)?.iter();
        let held = held.map(|subject| subject.as_bytes()?.try_into().ok());
        Some(Self {
            from_ms: number("from_ms")?,
            until_ms: number("until_ms")?,
            count: number("count")?,
            held: held.collect::<Option<_>>()?,
        })
    }

    /// Whether the words of an entry were due.
    #[must_use]
    pub fn takes(&self, ts_ms: u64, subject: Option<[u8; 16]>) -> bool {
        (self.from_ms..=self.until_ms).contains(&ts_ms)
            && subject.is_none_or(|subject| !self.held.contains(&subject))
    }
}

/// Which words a log says are gone on purpose; gathered before its entries are checked, because such
/// an entry stands after those it explains.
#[derive(Clone, Debug, Default)]
pub struct Forgotten {
    erased: HashMap<(u64, [u8; 16]), u64>,
    purges: HashMap<u64, Vec<(u64, Purge)>>,
    /// What was claimed to stand where; each must be met in the log.
    claims: BTreeMap<u64, Hash>,
}

impl Forgotten {
    /// Takes in what is claimed to be the entry at a position; anything else than an erasure or a
    /// purge explains nothing.
    pub fn claim(&mut self, seq: u64, leaf: &[u8]) {
        let hash = leaf_hash(leaf);
        let Ok(leaf) = Leaf::decode(leaf) else { return };
        let tenant = leaf.draft.tenant;
        match (&leaf.draft.kind, leaf.draft.subject) {
            (Kind::SubjectErase, Some(subject)) => {
                let last = self.erased.entry((tenant, subject)).or_default();
                *last = seq.max(*last);
            }
            (Kind::RetentionPurge, _) => {
                let Some(purge) = Purge::from_public(&leaf.draft.public) else { return };
                self.purges.entry(tenant).or_default().push((seq, purge));
            }
            _ => return,
        }
        self.claims.insert(seq, hash);
    }

    /// Whether the body of an entry may be missing.
    #[must_use]
    pub fn explains(&self, seq: u64, leaf: &Leaf) -> bool {
        let (tenant, subject) = (leaf.draft.tenant, leaf.draft.subject);
        let erased = subject.and_then(|subject| self.erased.get(&(tenant, subject)));
        // The latest purge reaches furthest, so it is asked first.
        let purges = self.purges.get(&tenant).into_iter().flatten().rev();
        erased.is_some_and(|at| *at > seq)
            || (leaf.draft.kind == Kind::Decision
                && purges
                    .into_iter()
                    .any(|(at, purge)| *at > seq && purge.takes(leaf.ts_ms, subject)))
    }

    /// The entry at a position was met; says whether it is the one that was claimed.
    pub(crate) fn meet(&mut self, seq: u64, hash: &Hash) -> bool {
        self.claims.remove(&seq).is_none_or(|claimed| claimed == *hash)
    }

    /// The first claim that was never met.
    pub(crate) fn unmet(&self) -> Option<u64> {
        self.claims.keys().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Auditor, Body, Draft, Entry, EntryId};

    const ANA: [u8; 16] = [1; 16];
    const BEN: [u8; 16] = [2; 16];

    fn leaf(n: u64, draft: Draft, body: &Body) -> Leaf {
        let id = EntryId { replica: [7; 8], epoch: 1, n };
        Leaf { id, ts_ms: n * 100, draft, commitments: body.commitments() }
    }

    fn said(n: u64, subject: [u8; 16]) -> Leaf {
        let mut body = Body::empty();
        body.push("request", [3; 32], "words");
        let draft = Draft { subject: Some(subject), ..Draft::new(Kind::Decision, 5) };
        leaf(n, draft, &body)
    }

    fn erased(n: u64, tenant: u64, subject: [u8; 16]) -> Leaf {
        let public = Erasure { request: [9; 16], decisions: 1, bodies: 1 }.to_public();
        let draft =
            Draft { subject: Some(subject), public, ..Draft::new(Kind::SubjectErase, tenant) };
        leaf(n, draft, &Body::empty())
    }

    fn purged(n: u64, until_ms: u64, held: &[[u8; 16]]) -> Leaf {
        let held = held.iter().copied().collect();
        let purge = Purge { from_ms: 0, until_ms, count: 1, held };
        assert_eq!(Purge::from_public(&purge.to_public()), Some(purge.clone()));
        let public = purge.to_public();
        leaf(n, Draft { public, ..Draft::new(Kind::RetentionPurge, 5) }, &Body::empty())
    }

    /// Where the first bad entry of a log without any bodies is; `claimed` are taken as claims.
    fn first_bad(log: &[Leaf], claimed: &[usize]) -> Option<u64> {
        let mut forgotten = Forgotten::default();
        claimed.iter().for_each(|at| forgotten.claim(*at as u64, &log[*at].encode()));
        let mut auditor = Auditor::new().knowing(forgotten);
        for (seq, leaf) in (0..).zip(log) {
            let bytes = leaf.encode();
            let hash = leaf_hash(&bytes);
            auditor.feed(&Entry { seq, leaf: &bytes, leaf_hash: &hash, body: None });
        }
        auditor.finish(None).first_bad.map(|bad| bad.seq)
    }

    #[test]
    fn only_what_an_entry_names_may_be_missing() {
        let cases: [(&str, Leaf, Option<u64>); 7] = [
            ("her erasure", erased(3, 5, ANA), Some(1)),
            ("his erasure", erased(3, 5, BEN), Some(0)),
            ("an erasure of another tenant", erased(3, 6, ANA), Some(0)),
            ("a purge of both", purged(3, 200, &[]), None),
            ("a purge of the first only", purged(3, 199, &[]), Some(1)),
            ("a purge with one on hold", purged(3, 200, &[BEN]), Some(1)),
            ("something else", said(3, ANA), Some(0)),
        ];
        for (what, entry, bad) in cases {
            let log = [said(1, ANA), said(2, BEN), entry];
            assert_eq!(first_bad(&log, &[2]), bad, "{what}");
        }
    }

    #[test]
    fn an_entry_explains_nothing_after_it_and_nothing_when_it_is_not_claimed() {
        let log = [erased(1, 5, ANA), said(2, ANA)];
        assert_eq!(first_bad(&log, &[0]), Some(1));
        let log = [said(1, ANA), erased(2, 5, ANA)];
        assert_eq!(first_bad(&log, &[]), Some(0));
        assert_eq!(first_bad(&log, &[1]), None);
    }

    #[test]
    fn a_claim_must_be_met_in_the_log() {
        let log = [said(1, ANA), erased(2, 5, ANA)];
        let check = |seq: u64, claimed: &Leaf| {
            let mut forgotten = Forgotten::default();
            forgotten.claim(seq, &claimed.encode());
            let mut auditor = Auditor::new().knowing(forgotten);
            for (seq, leaf) in (0..).zip(&log) {
                let bytes = leaf.encode();
                let hash = leaf_hash(&bytes);
                auditor.feed(&Entry { seq, leaf: &bytes, leaf_hash: &hash, body: None });
            }
            auditor.finish(None).first_bad.map(|bad| bad.problem)
        };
        assert_eq!(check(1, &log[1]), None);
        let other = check(1, &erased(9, 5, ANA)).unwrap();
        assert!(other.contains("another entry stands here"), "{other}");
        let absent = check(7, &log[1]).unwrap();
        assert!(absent.contains("is not in the log"), "{absent}");
    }
}
