//! Checks a whole log from its bytes, one entry at a time.
//!
//! **Invariant:** the auditor trusts nothing it is given but the head it is to be compared with:
//! every hash is computed again from the bytes.
//!
//! **Invariant:** it never stops early and never panics. What follows a bad entry is still counted,
//! and the report names the first bad entry of the log, not the first one noticed.

use crate::body::StoredBody;
use crate::cbor::Value;
use crate::coverage::{Coverage, NumberSet};
use crate::forget::Forgotten;
use crate::leaf::{EntryId, Kind, Leaf, leaf_hash};
use crate::rotation::Rotation;
use crate::tree::{CompactRange, Hash};
use crate::windows::Windows;
use std::collections::BTreeMap;

/// One entry as stored.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its position in the log, from 0.
    pub seq: u64,
    /// The exact bytes of the leaf.
    pub leaf: &'a [u8],
    /// The hash that is stored beside it.
    pub leaf_hash: &'a [u8],
    /// The body, if one is stored.
    pub body: Option<&'a [u8]>,
}

/// What the store says about the whole log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many entries there are.
    pub size: u64,
    /// The root over all of them.
    pub root: Hash,
}

/// The first thing wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where.
    pub seq: u64,
    /// Which entry, as far as it could be read.
    pub id: Option<EntryId>,
    /// What, in a sentence.
    pub problem: String,
}

/// What the check of a log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether everything is as it was written.
    pub ok: bool,
    /// How many entries the log has.
    pub entries: u64,
    /// How many more were durable, but not yet part of the log.
    pub pending: u64,
    /// The root over the entries of the log, in hex.
    pub root: String,
    /// How many entries of each kind, pending ones included.
    pub kinds: BTreeMap<String, u64>,
    /// How many decisions of each outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// How many requests were refused, by status.
    pub refused: BTreeMap<String, u64>,
    /// How many bodies were compared with what their leaves commit to.
    pub bodies: u64,
    /// How many signed checkpoints were compared with the log.
    pub checkpoints: u64,
    /// How many entries the last of them covers.
    pub signed: u64,
    /// How many of them were opened as well, and say what their leaves commit to.
    pub opened: u64,
    /// How many bodies are gone on purpose, as a later entry says.
    pub forgotten: u64,
    /// The first thing wrong.
    pub first_bad: Option<Bad>,
}

/// More names than this are counted together: a hostile log must not fill the memory.
const NAMES_MAX: usize = 1_000;

/// More deliveries without a decision are not waited for: the log is broken anyway.
const ORPHANS_MAX: usize = 10_000;

/// A delivery whose decision the log does not have. It is right only if the log admits that.
struct Orphan {
    seq: u64,
    id: EntryId,
    decision: EntryId,
}

/// A further check of each entry, such as a replay of its votes.
pub type ExtraCheck<'a> =
    Box<dyn FnMut(u64, &Leaf, Option<&StoredBody<'_>>) -> Result<(), String> + 'a>;

/// Is fed all entries of a log in order and says what is wrong with them.
#[derive(Default)]
pub struct Auditor<'a> {
    tree: CompactRange,
    coverage: Coverage,
    decisions: NumberSet,
    windows: Windows,
    orphans: Vec<Orphan>,
    sound_until: u64,
    suspects: Option<(u64, u64)>,
    leaves_only: bool,
    report: Report,
    extra: Option<ExtraCheck<'a>>,
    forgotten: Forgotten,
}

impl<'a> Auditor<'a> {
    /// Checks the log alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also runs `extra` on every entry that is sound in itself.
    #[must_use]
    pub fn with_check(extra: ExtraCheck<'a>) -> Self {
        Self { extra: Some(extra), ..Self::default() }
    }

    /// Looks at leaves alone, where bodies are not to be had.
    #[must_use]
    pub fn leaves_only(self) -> Self {
        Self { leaves_only: true, ..self }
    }

    /// Accepts missing bodies that these entries of the same log explain.
    #[must_use]
    pub fn knowing(self, forgotten: Forgotten) -> Self {
        Self { forgotten, ..self }
    }

    /// Takes the next entry of the log; returns the hash of its leaf.
    pub fn feed(&mut self, entry: &Entry<'_>) -> Hash {
        let expected = self.tree.size();
        let hash = leaf_hash(entry.leaf);
        self.tree.append(hash);
        self.report.entries += 1;
        if entry.seq != expected {
            self.note(expected.min(entry.seq), None, misplaced(expected, entry.seq));
        }
        let stored = if entry.leaf_hash == hash {
            Ok(())
        } else {
            Err("the leaf does not have the hash that is stored for it".to_owned())
        };
        if !self.forgotten.meet(entry.seq, &hash) {
            self.note(
                entry.seq,
                None,
                "another entry stands here than was said to explain erasures",
            );
        }
        self.examine(entry.seq, entry.leaf, entry.body, stored);
        hash
    }

    /// Takes an entry that is durable but not yet part of the log, after all that are.
    pub fn feed_pending(&mut self, leaf: &[u8], body: Option<&[u8]>) {
        let seq = self.tree.size() + self.report.pending;
        self.report.pending += 1;
        self.examine(seq, leaf, body, Ok(()));
    }

    /// Compares the entries so far with a root that was stored when the log ended here. This cannot
    /// make a log good, but it narrows down which entry made it bad.
    pub fn milestone(&mut self, root: &Hash) {
        let size = self.report.entries;
        if *root == self.tree.root() {
            self.sound_until = size;
        } else if let Some(last) = size.checked_sub(1) {
            self.suspects.get_or_insert((self.sound_until.min(last), last));
        }
    }

    /// Records a problem that only the reader of the store can see, such as a value of a wrong
    /// type.
    pub fn note(&mut self, seq: u64, id: Option<EntryId>, problem: impl Into<String>) {
        if self.report.first_bad.as_ref().is_none_or(|bad| seq < bad.seq) {
            self.report.first_bad = Some(Bad { seq, id, problem: problem.into() });
        }
    }

    /// Records that a signed checkpoint ends here, and holds.
    pub const fn note_checkpoint(&mut self) {
        self.report.checkpoints += 1;
        self.report.signed = self.report.entries;
    }

    /// Whether nothing wrong was found so far.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.report.first_bad.is_none() && self.suspects.is_none()
    }

    /// The root over the entries so far.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.tree.root()
    }

    /// How many entries of the log were taken so far.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.report.entries
    }

    /// Compares the log with its head, if there is one, and reports.
    #[must_use]
    pub fn finish(mut self, head: Option<&Head>) -> Report {
        for Orphan { seq, id, decision } in std::mem::take(&mut self.orphans) {
            // One that comes later is there, whatever anybody says of it.
            if self.decisions.contains(decision) || !self.coverage.admits(decision) {
                self.note(seq, Some(id), undecided(decision));
            }
        }
        if let Some((hole, problem)) = std::mem::take(&mut self.coverage).uncovered() {
            self.note(hole.seq, Some(hole.id), problem);
        }
        if let Some(seq) = self.forgotten.unmet() {
            self.note(seq, None, "an entry that is said to explain erasures is not in the log");
        }
        self.note_suspects();
        if let Some(head) = head {
            self.compare(head);
        }
        let mut report = self.report;
        report.root = hex::encode(self.tree.root());
        report.ok = report.first_bad.is_none();
        report
    }

    fn compare(&mut self, head: &Head) {
        let entries = self.report.entries;
        if head.size != entries {
            let problem = format!("the head counts {} entries, the log has {entries}", head.size);
            self.note(head.size.min(entries), None, problem);
        } else if head.root != self.tree.root() && self.report.first_bad.is_none() {
            let problem = "the root of the entries is not the root of the head";
            self.note(self.sound_until, None, problem);
        }
    }

    /// A range of entries is only worth naming where no single one is known to be bad.
    fn note_suspects(&mut self) {
        let Some((first, last)) = self.suspects else { return };
        if self.report.first_bad.as_ref().is_none_or(|bad| bad.seq > last) {
            self.note(first, None, format!("one of the entries {first} to {last} was changed"));
        }
    }

    fn examine(&mut self, seq: u64, bytes: &[u8], body: Option<&[u8]>, hash: Result<(), String>) {
        match Leaf::decode(bytes) {
            Ok(leaf) => {
                let sound = hash.and_then(|()| self.examine_leaf(seq, &leaf, body));
                if let Err(problem) = sound {
                    self.note(seq, Some(leaf.id), problem);
                }
                self.count(&leaf);
            }
            Err(error) => self.note(seq, None, format!("the leaf cannot be read: {error}")),
        }
    }

    fn examine_leaf(&mut self, seq: u64, leaf: &Leaf, body: Option<&[u8]>) -> Result<(), String> {
        // Coverage comes first: a bad body must not look like a missing entry as well.
        let numbered = self.coverage.observe(seq, leaf);
        let body = self.check_body(seq, leaf, body)?;
        numbered?;
        self.check_kind(seq, leaf)?;
        match &mut self.extra {
            Some(extra) => extra(seq, leaf, body.as_ref()),
            None => Ok(()),
        }
    }

    fn check_body<'b>(
        &mut self,
        seq: u64,
        leaf: &Leaf,
        body: Option<&'b [u8]>,
    ) -> Result<Option<StoredBody<'b>>, String> {
        if self.leaves_only {
            return Ok(None);
        }
        let Some(bytes) = body else {
            if leaf.commitments.is_empty() {
                return Ok(None);
            }
            let explained = self.forgotten.explains(seq, leaf);
            self.report.forgotten += u64::from(explained);
            let missing = Err("the body is missing".to_owned());
            return if explained { Ok(None) } else { missing };
        };
        if bytes.is_empty() {
            return Err("a body without fields is stored".to_owned());
        }
        let stored = StoredBody::decode(bytes).map_err(|error| error.to_string())?;
        stored.check(&leaf.commitments).map_err(|error| error.to_string())?;
        self.report.bodies += 1;
        Ok(Some(stored))
    }

    fn check_kind(&mut self, seq: u64, leaf: &Leaf) -> Result<(), String> {
        match &leaf.draft.kind {
            Kind::Decision => {
                self.decisions.insert(leaf.id);
                self.windows.close(leaf)
            }
            Kind::Window => self.windows.open(leaf),
            Kind::Delivery => match leaf.draft.parent {
                Some(parent) if self.decisions.contains(parent) => Ok(()),
                // The statement that the decision is missing comes later.
                Some(decision) if self.orphans.len() < ORPHANS_MAX => {
                    self.orphans.push(Orphan { seq, id: leaf.id, decision });
                    Ok(())
                }
                Some(decision) => Err(undecided(decision)),
                None => Err("the delivery names no decision".to_owned()),
            },
            Kind::CoverageGap => self.coverage.declare(&leaf.draft.public),
            Kind::KeyRotate if !rotates(leaf) => {
                Err("the signing key is handed over without both keys agreeing".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, leaf: &Leaf) {
        let (kind, public) = (&leaf.draft.kind, &leaf.draft.public);
        add(&mut self.report.kinds, kind.as_str(), 1);
        match kind {
            Kind::Decision => {
                let outcome = public.get("outcome").and_then(Value::as_str).unwrap_or("unknown");
                add(&mut self.report.outcomes, outcome, 1);
            }
            Kind::RequestRefused => {
                let number = |key| public.get(key).and_then(Value::as_u64);
                let status = number("status").map_or("unknown".to_owned(), |s| s.to_string());
                add(&mut self.report.refused, &status, number("count").unwrap_or(1));
            }
            _ => {}
        }
    }
}

fn rotates(leaf: &Leaf) -> bool {
    Rotation::from_public(&leaf.draft.public).is_some_and(|rotation| rotation.holds())
}

fn undecided(decision: EntryId) -> String {
    format!("it delivers {decision}, which is no earlier decision")
}

fn misplaced(expected: u64, found: u64) -> String {
    if found > expected {
        format!("entry {expected} is missing: the next one is {found}")
    } else {
        format!("entry {found} stands where {expected} should")
    }
}

/// Most names are there already; only a new one is copied.
fn add(counts: &mut BTreeMap<String, u64>, name: &str, more: u64) {
    let full = counts.len() >= NAMES_MAX && !counts.contains_key(name);
    let name = if full { "(others)" } else { name };
    match counts.get_mut(name) {
        Some(count) => *count = count.saturating_add(more),
        None => {
            counts.insert(name.to_owned(), more);
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
