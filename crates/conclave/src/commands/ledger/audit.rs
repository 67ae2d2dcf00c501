//! Checks a log that is laid out in tiles, from its files alone.
//!
//! **Invariant:** nothing is believed but the key: the checkpoint must be signed with it, every
//! tile and leaf must lead to the checkpoint's root.

use super::handover::{TrustedCheckpoint, open_checkpoint};
use super::tiled::TiledLog;
use anyhow::{Context, bail};
use conclave_engine::replay;
use conclave_ledger::{
    Auditor, Checkpoint, CompactRange, Entry, Forgotten, Hash, Head, Report, TILE_WIDTH, TileEdge,
    TileId, VerifierKey, prove_consistency, read_bundle, verify_consistency,
};

/// What a check of a tiled log came to.
pub(super) struct Audit {
    /// What was found.
    pub(super) report: Report,
    /// The signed note that was checked.
    pub(super) note: String,
    /// Whether the leaves were to be had, or only their hashes.
    pub(super) with_leaves: bool,
}

/// Checks the log; `since` is a checkpoint kept from an earlier check.
///
/// # Errors
/// When it could not be checked.
pub(super) fn audit(
    log: &dyn TiledLog,
    keys: &[VerifierKey],
    since: Option<&str>,
    tell: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<Audit> {
    let note = log.text("checkpoint")?;
    let with_leaves = log.has_leaves();
    let with_bodies = log.has_bodies();
    let check: conclave_ledger::ExtraCheck<'_> =
        Box::new(|_, leaf, _| replay(leaf).map_err(|error| error.to_string()));
    let auditor = Auditor::with_check(check);
    let mut walk = Walk {
        log,
        auditor: if with_bodies { auditor } else { auditor.leaves_only() },
        edge: TileEdge::default(),
        hashes: CompactRange::new(),
        with_leaves,
        with_bodies,
    };
    let TrustedCheckpoint { checkpoint, keys } = match open_checkpoint(log, &note, keys)? {
        Ok(trusted) => trusted,
        Err(error) => return Ok(walk.refuse(note, &format!("the checkpoint: {error}"))),
    };
    if with_bodies {
        walk.auditor = walk.auditor.knowing(forgotten(log, checkpoint.size)?);
    }
    let differs = since.map(|since| differs(log, &keys, since, &checkpoint)).transpose()?;
    if let Some(problem) = differs.flatten() {
        return Ok(walk.refuse(note, &problem));
    }
    walk.run(&checkpoint, tell)?;
    Ok(walk.finish(note, &checkpoint))
}

/// What the log says is gone on purpose. It is read once for this beforehand, because an erasure stands behind
/// what it explains; whatever cannot be read explains nothing and is found afterwards.
fn forgotten(log: &dyn TiledLog, size: u64) -> anyhow::Result<Forgotten> {
    let mut forgotten = Forgotten::default();
    for index in 0..size.div_ceil(TILE_WIDTH) {
        let Some(id) = TileId::in_tree(0, index, size) else { break };
        let bundle = log.bundle(index, id.width)?;
        let leaves = bundle.as_deref().and_then(|bundle| read_bundle(bundle, id.width).ok());
        for (seq, leaf) in (index * TILE_WIDTH..).zip(leaves.into_iter().flatten()) {
            forgotten.claim(seq, leaf);
        }
    }
    Ok(forgotten)
}

/// What is wrong between an earlier checkpoint and this one.
fn differs(
    log: &dyn TiledLog,
    keys: &[VerifierKey],
    since: &str,
    now: &Checkpoint,
) -> anyhow::Result<Option<String>> {
    let before = match Checkpoint::open(since, keys) {
        Ok(before) => before,
        Err(error) => bail!("the checkpoint of last time: {error}"),
    };
    if before.origin != now.origin {
        return Ok(Some(format!("the log is called {}, last time {}", now.origin, before.origin)));
    }
    let old = before.size;
    let new = now.size;
    if old > new {
        return Ok(Some(format!("the log went back from {old} to {new} entries")));
    }
    let proof = match prove_consistency(&mut Source(log), old, new) {
        Ok(proof) => proof,
        Err(error) => return Ok(Some(format!("the tiles: {error}"))),
    };
    let same = verify_consistency(old, new, &before.root, &now.root, &proof);
    Ok((!same).then(|| format!("the first {old} entries are not those of last time")))
}

/// The tiles of a log.
pub(super) struct Source<'a>(pub(super) &'a dyn TiledLog);

impl conclave_ledger::TileSource for Source<'_> {
    type Error = anyhow::Error;
    fn tile(&mut self, id: TileId) -> anyhow::Result<Vec<Hash>> {
        self.0.tile(id)?.with_context(|| format!("the tile {} is missing or cut off", id.path()))
    }
}

struct Walk<'a> {
    log: &'a dyn TiledLog,
    auditor: Auditor<'static>,
    edge: TileEdge,
    /// Stands in for the auditor's tree where only hashes are to be had.
    hashes: CompactRange,
    with_leaves: bool,
    with_bodies: bool,
}

impl Walk<'_> {
    fn refuse(mut self, note: String, problem: &str) -> Audit {
        self.auditor.note(0, None, problem);
        let with_leaves = self.with_leaves;
        Audit { report: self.auditor.finish(None), note, with_leaves }
    }

    fn run(
        &mut self,
        checkpoint: &Checkpoint,
        tell: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<()> {
        let size = checkpoint.size;
        for index in 0..size.div_ceil(TILE_WIDTH) {
            let Some(id) = TileId::in_tree(0, index, size) else { break };
            let first = index * TILE_WIDTH;
            let Some(hashes) = self.log.tile(id)? else {
                self.auditor.note(first, None, missing(id));
                return Ok(());
            };
            if self.with_leaves && !self.take_bundle(id, &hashes)? {
                return Ok(());
            }
            for hash in hashes {
                self.follow(hash)?;
            }
            tell(self.edge.size(), size);
        }
        self.compare_edge(size)
    }

    /// Feeds the leaves behind a tile; `false` when they cannot be had.
    fn take_bundle(&mut self, id: TileId, hashes: &[Hash]) -> anyhow::Result<bool> {
        let first = id.index * TILE_WIDTH;
        let bundle = self.log.bundle(id.index, id.width)?;
        let leaves = bundle.as_deref().map(|bundle| read_bundle(bundle, id.width));
        let leaves = match leaves {
            Some(Ok(leaves)) => leaves,
            Some(Err(error)) => {
                self.auditor.note(first, None, error.to_string());
                return Ok(false);
            }
            None => {
                self.auditor.note(first, None, format!("the entries from {first} on are missing"));
                return Ok(false);
            }
        };
        let stored = if self.with_bodies { self.log.bodies(id.index, id.width)? } else { None };
        let mut bodies = Bodies(stored.as_deref().unwrap_or(&[]));
        for ((seq, leaf), hash) in (first..).zip(leaves).zip(hashes) {
            let body = bodies.next();
            self.auditor.feed(&Entry { seq, leaf, leaf_hash: hash, body });
        }
        Ok(true)
    }

    /// Adds a hash and compares every tile above that became full by it.
    fn follow(&mut self, hash: Hash) -> anyhow::Result<()> {
        let mut full = Vec::new();
        self.edge.append(hash, |id, hashes| {
            if id.level > 0 {
                full.push((id, hashes.to_vec()));
            }
        });
        self.hashes.append(hash);
        full.into_iter().try_for_each(|(id, hashes)| self.compare(id, &hashes))
    }

    fn compare_edge(&mut self, size: u64) -> anyhow::Result<()> {
        for level in 1..self.edge.levels() {
            let place = u8::try_from(level).unwrap_or(u8::MAX);
            let hashes = self.edge.level(level).to_vec();
            let index = size.checked_shr(u32::from(place) * 8).unwrap_or(0) / TILE_WIDTH;
            if let Some(id) = TileId::in_tree(place, index, size) {
                self.compare(id, &hashes)?;
            }
        }
        Ok(())
    }

    fn compare(&mut self, id: TileId, hashes: &[Hash]) -> anyhow::Result<()> {
        let first = id.index.saturating_mul(TILE_WIDTH.saturating_pow(u32::from(id.level) + 1));
        match self.log.tile(id)? {
            Some(stored) if stored == hashes => {}
            Some(_) if !self.auditor.is_sound() => {}
            Some(_) => {
                let problem = format!("the tile {} is not what those below it say", id.path());
                self.auditor.note(first, None, problem);
            }
            None => self.auditor.note(first, None, missing(id)),
        }
        Ok(())
    }

    fn finish(mut self, note: String, checkpoint: &Checkpoint) -> Audit {
        let Checkpoint { size, root, .. } = *checkpoint;
        let with_leaves = self.with_leaves;
        if with_leaves {
            if self.auditor.root() == root && self.auditor.entries() == size {
                self.auditor.note_checkpoint();
            }
            let report = self.auditor.finish(Some(&Head { size, root }));
            return Audit { report, note, with_leaves };
        }
        if self.hashes.size() == size && self.hashes.root() != root {
            self.auditor.note(0, None, "the tiles do not lead to the root of the checkpoint");
        }
        let mut report = self.auditor.finish(None);
        if report.ok {
            report.checkpoints = 1;
            report.signed = size;
        }
        report.entries = self.hashes.size();
        report.root = hex::encode(self.hashes.root());
        Audit { report, note, with_leaves }
    }
}

fn missing(id: TileId) -> String {
    format!("the tile {} is missing or cut off", id.path())
}

/// Bodies one after another, each behind its length in four bytes; no body has length 0.
struct Bodies<'a>(&'a [u8]);

impl<'a> Bodies<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (body, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (!body.is_empty()).then_some(body)
    }
}
