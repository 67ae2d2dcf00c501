//! Proofs computed from tiles, so that a proof in a large log reads a handful of them.
//!
//! **Invariant:** a tile that is asked for exists in a tree of the size in question; whoever gives
//! tiles is never asked beyond the right edge.

use crate::tile::{TILE_WIDTH, TileId};
use crate::tree::{CompactRange, Hash, empty_root, node_hash, root_of};
use thiserror::Error;

/// Gives tiles of a log.
pub trait TileSource {
    /// Why one could not be given.
    type Error;
    /// The hashes of a tile, as many as its width says.
    ///
    /// # Errors
    /// When it cannot be read.
    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, Self::Error>;
}

/// Why a proof could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofError<E> {
    /// There is no such entry, or no such earlier tree.
    #[error("a log of {size} entries has no such place")]
    Outside {
        /// How large the log is.
        size: u64,
    },
    /// A tile has another width than it was asked for.
    #[error("the tile {0} does not have its width")]
    Width(String),
    /// The tile could not be read.
    #[error(transparent)]
    Source(E),
}

/// The root of the tree over the first `size` entries.
///
/// # Errors
/// When a tile cannot be read.
pub fn root_at<S: TileSource>(source: &mut S, size: u64) -> Result<Hash, ProofError<S::Error>> {
    if size == 0 { Ok(empty_root()) } else { Tiles::new(source, size).root(0, size) }
}

/// The perfect subtrees that make up the first `size` entries.
///
/// # Errors
/// When a tile cannot be read.
pub fn range_of<S: TileSource>(
    source: &mut S,
    size: u64,
) -> Result<CompactRange, ProofError<S::Error>> {
    let peaks = Tiles::new(source, size).peaks(0, size)?;
    CompactRange::from_peaks(size, peaks).ok_or(ProofError::Outside { size })
}

/// The path that proves entry `index` to the root over the first `size` entries.
///
/// # Errors
/// When there is no such entry, or a tile cannot be read.
pub fn prove_inclusion<S: TileSource>(
    source: &mut S,
    index: u64,
    size: u64,
) -> Result<Vec<Hash>, ProofError<S::Error>> {
    if index >= size {
        return Err(ProofError::Outside { size });
    }
    let mut tiles = Tiles::new(source, size);
    let (mut start, mut end, mut proof) = (0, size, Vec::new());
    while end - start > 1 {
        let middle = start + cut(end - start);
        if index < middle {
            proof.push(tiles.root(middle, end)?);
            end = middle;
        } else {
            proof.push(tiles.root(start, middle)?);
            start = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// The path that proves that the first `old` of `size` entries were not changed.
///
/// # Errors
/// When the log was never that large, or a tile cannot be read.
pub fn prove_consistency<S: TileSource>(
    source: &mut S,
    old: u64,
    size: u64,
) -> Result<Vec<Hash>, ProofError<S::Error>> {
    if old > size {
        return Err(ProofError::Outside { size });
    }
    if old == 0 || old == size {
        return Ok(Vec::new());
    }
    let mut tiles = Tiles::new(source, size);
    let (mut start, mut end, mut proof) = (0, size, Vec::new());
    while end != old {
        let middle = start + cut(end - start);
        if old <= middle {
            proof.push(tiles.root(middle, end)?);
            end = middle;
        } else {
            proof.push(tiles.root(start, middle)?);
            start = middle;
        }
    }
    if start != 0 {
        proof.push(tiles.root(start, end)?);
    }
    proof.reverse();
    Ok(proof)
}

/// Where a tree of more than one leaf is cut: the largest power of two below its size.
const fn cut(size: u64) -> u64 {
    1 << (u64::BITS - 1 - (size - 1).leading_zeros())
}

/// The tiles of a tree of one size; each is read once.
struct Tiles<'s, S> {
    source: &'s mut S,
    size: u64,
    seen: Vec<(TileId, Vec<Hash>)>,
}

impl<'s, S: TileSource> Tiles<'s, S> {
    const fn new(source: &'s mut S, size: u64) -> Self {
        Self { source, size, seen: Vec::new() }
    }

    /// The root over `start..end`, where `start` is a multiple of a power of two not below the
    /// length.
    fn root(&mut self, start: u64, end: u64) -> Result<Hash, ProofError<S::Error>> {
        let peaks = self.peaks(start, end)?;
        let mut peaks = peaks.into_iter().rev();
        let last = peaks.next().unwrap_or_else(empty_root);
        Ok(peaks.fold(last, |right, left| node_hash(&left, &right)))
    }

    fn peaks(&mut self, start: u64, end: u64) -> Result<Vec<Hash>, ProofError<S::Error>> {
        let (mut at, mut peaks) = (start, Vec::new());
        while at < end {
            let height = (end - at).ilog2();
            peaks.push(self.subtree(height, at >> height)?);
            at += 1 << height;
        }
        Ok(peaks)
    }

    /// The root of the perfect subtree of this height, counted from the left.
    fn subtree(&mut self, height: u32, index: u64) -> Result<Hash, ProofError<S::Error>> {
        let outside = ProofError::Outside { size: self.size };
        // A height of 64 and more cannot occur: the size is a 64-bit number.
        let Ok(level) = u8::try_from(height / 8) else { return Err(outside) };
        let first = index << (height % 8);
        let Some(id) = TileId::in_tree(level, first / TILE_WIDTH, self.size) else {
            return Err(outside);
        };
        let within = usize::try_from(first % TILE_WIDTH).unwrap_or(usize::MAX);
        let hashes = self.tile(id)?;
        let part = hashes.get(within..within.saturating_add(1 << (height % 8)));
        part.map(root_of).ok_or(outside)
    }

    fn tile(&mut self, id: TileId) -> Result<&[Hash], ProofError<S::Error>> {
        let at = match self.seen.iter().position(|(seen, _)| *seen == id) {
            Some(at) => at,
            None => {
                let hashes = self.source.tile(id).map_err(ProofError::Source)?;
                if hashes.len() != usize::from(id.width) {
                    return Err(ProofError::Width(id.path()));
                }
                self.seen.push((id, hashes));
                self.seen.len() - 1
            }
        };
        Ok(self.seen.get(at).map_or(&[], |(_, hashes)| hashes.as_slice()))
    }
}

#[cfg(test)]
#[path = "proofs_tests.rs"]
mod tests;
