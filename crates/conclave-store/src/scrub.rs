//! Reads the stored log again from time to time, so that a disk that forgets is noticed before
//! somebody asks for what it forgot.
//!
//! **Invariant:** a walk is slow on purpose: so many entries and bytes a second, in short read
//! transactions, so that it delays nobody.
//!
//! **Invariant:** what was found stays said until a walk through the whole log finds nothing. A body
//! that is missing altogether is left to `ledger verify`, which knows whether it may be.

use crate::error::StoreError;
use crate::spool::Progress;
use conclave_ledger::{
    CompactRange, Hash, Leaf, StoredBody, TILE_WIDTH, TileEdge, TileId, encode_hashes, leaf_hash,
};
use std::sync::Arc;

/// One entry as it is stored. What has another type than it should, or a size that is not possible,
/// is not there.
pub(crate) struct StoredRow<'a> {
    pub(crate) seq: u64,
    pub(crate) leaf: Option<&'a [u8]>,
    pub(crate) hash: Option<&'a [u8]>,
    /// No body at all, one that cannot be read, or its bytes.
    pub(crate) body: Option<Option<&'a [u8]>>,
}

/// Takes an entry; says whether to go on.
pub(crate) type TakeStored<'a> = dyn FnMut(StoredRow<'_>) -> bool + 'a;

/// A log that is read again, whichever database holds it. An error that says damage is damage; any
/// other means that it cannot be read now.
pub(crate) trait StoredLog: Send {
    /// How many entries it has.
    fn size(&mut self) -> Result<u64, StoreError>;
    /// The entries of a range, in order, as many as are taken.
    fn read(&mut self, at: u64, end: u64, take: &mut TakeStored<'_>) -> Result<(), StoreError>;
    /// The root that was stored with the batch that ended at a size.
    fn root_at(&mut self, size: u64) -> Result<Option<Vec<u8>>, StoreError>;
    /// The hashes of a full tile.
    fn tile(&mut self, id: TileId) -> Result<Option<Vec<u8>>, StoreError>;
}

/// How many of the last entries are read every hour.
const RECENT_ENTRIES: u64 = 10_000;
/// How many entries are read in one step, of which there is one a second.
const STEP_ENTRIES: u64 = 2_000;
/// A step ends early when it has read so many bytes.
const STEP_BYTES: usize = 16 << 20;
/// Steps between two walks through the last entries, and when the first begins.
const RECENT_STEPS: (u64, u64) = (3_600, 60);
/// Steps between two walks through the whole log, and when the first begins.
const WHOLE_STEPS: (u64, u64) = (7 * 86_400, 600);

/// A walk that has begun.
struct Walk {
    at: u64,
    end: u64,
    /// The tree so far; only a walk from the beginning has one.
    tree: Option<(CompactRange, TileEdge)>,
}

/// Walks through the log, a step at a time.
pub(crate) struct Scrub {
    log: Box<dyn StoredLog>,
    progress: Arc<Progress>,
    steps: u64,
    walk: Option<Walk>,
}

impl Scrub {
    pub(crate) fn new(log: Box<dyn StoredLog>, progress: Arc<Progress>) -> Self {
        Self { log, progress, steps: 0, walk: None }
    }

    /// What a second is worth: begins a walk when one is due, or goes on with the one that has
    /// begun.
    ///
    /// # Errors
    /// When the database cannot be read now.
    pub(crate) fn step(&mut self) -> Result<(), StoreError> {
        self.steps += 1;
        let due = |(every, first): (u64, u64)| self.steps % every == first;
        let (whole, recent) = (due(WHOLE_STEPS), due(RECENT_STEPS));
        if whole || (recent && self.walk.is_none()) {
            self.walk = Some(begin(&mut *self.log, whole)?);
        }
        self.go_on().map(|_| ())
    }

    /// A whole walk at once; says what it found.
    ///
    /// # Errors
    /// When the database cannot be read now.
    pub(crate) fn walk_now(&mut self, whole: bool) -> Result<Option<String>, StoreError> {
        self.walk = Some(begin(&mut *self.log, whole)?);
        while self.go_on()? {}
        Ok(self.progress.damage())
    }

    /// Goes on with a walk, if there is one; says whether it goes on after that.
    fn go_on(&mut self) -> Result<bool, StoreError> {
        let Some(mut walk) = self.walk.take() else { return Ok(false) };
        let found = match walk.step(&mut *self.log) {
            Err(StoreError::Damaged { message, .. }) => {
                Some(format!("entry {}: {message}", walk.at))
            }
            found => found?,
        };
        if let Some(problem) = found {
            tracing::error!(problem, "the stored log is damaged");
            self.progress.set_damage(Some(problem));
            return Ok(false);
        }
        if walk.at < walk.end {
            self.walk = Some(walk);
            return Ok(true);
        }
        if walk.tree.is_some() {
            self.progress.set_damage(None);
        }
        Ok(false)
    }
}

fn begin(log: &mut dyn StoredLog, whole: bool) -> Result<Walk, StoreError> {
    let end = log.size()?;
    let at = if whole { 0 } else { end.saturating_sub(RECENT_ENTRIES) };
    Ok(Walk { at, end, tree: (at == 0).then(Default::default) })
}

impl Walk {
    /// Reads on; a sentence says what is wrong with which entry.
    fn step(&mut self, log: &mut dyn StoredLog) -> Result<Option<String>, StoreError> {
        let end = self.end.min(self.at + STEP_ENTRIES);
        let (mut bytes, mut problem, mut full) = (0, None, Vec::new());
        log.read(self.at, end, &mut |row| {
            match check(&row, self.at) {
                Ok((hash, length)) => {
                    bytes += length;
                    self.grow(hash, &mut full);
                    self.at += 1;
                }
                Err(what) => problem = Some(format!("entry {}: {what}", self.at)),
            }
            problem.is_none() && bytes < STEP_BYTES
        })?;
        if problem.is_some() {
            return Ok(problem);
        }
        for (id, hashes) in full {
            if log.tile(id)?.as_deref() != Some(&hashes) {
                let width = TILE_WIDTH.saturating_pow(u32::from(id.level) + 1);
                let first = id.index.saturating_mul(width);
                return Ok(Some(format!("entry {first}: the tile {} is another", id.path())));
            }
        }
        if self.at < end && bytes < STEP_BYTES {
            return Ok(Some(format!("entry {}: it is missing", self.at)));
        }
        if self.at == self.end { self.check_root(log) } else { Ok(None) }
    }

    fn grow(&mut self, hash: Hash, full: &mut Vec<(TileId, Vec<u8>)>) {
        if let Some((tree, edge)) = &mut self.tree {
            tree.append(hash);
            edge.append(hash, |id, hashes| full.push((id, encode_hashes(hashes))));
        }
    }

    fn check_root(&self, log: &mut dyn StoredLog) -> Result<Option<String>, StoreError> {
        let Some((tree, _)) = self.tree.as_ref().filter(|_| self.end > 0) else { return Ok(None) };
        let same = log.root_at(self.end)?.is_some_and(|root| root == tree.root());
        Ok((!same).then(|| format!("the tree of the first {} entries has another root", self.end)))
    }
}

/// Checks one row; returns the hash of its leaf and how many bytes it has.
fn check(row: &StoredRow<'_>, at: u64) -> Result<(Hash, usize), String> {
    if row.seq != at {
        return Err("it is missing".to_owned());
    }
    let leaf = row.leaf.ok_or("its leaf cannot be read")?;
    let hash = leaf_hash(leaf);
    if row.hash != Some(hash.as_slice()) {
        return Err("its leaf does not have the stored hash".to_owned());
    }
    let decoded = Leaf::decode(leaf).map_err(|error| error.to_string())?;
    let Some(body) = row.body else { return Ok((hash, leaf.len())) };
    let body = body.ok_or("its body cannot be read")?;
    let checked = StoredBody::decode(body).and_then(|body| body.check(&decoded.commitments));
    checked.map_err(|error| error.to_string())?;
    Ok((hash, leaf.len() + body.len()))
}
