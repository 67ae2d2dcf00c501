//! The tree cut into tiles, as C2SP tlog-tiles lays it out: their names, bytes and growth.
//!
//! **Invariant:** a tile holds the hashes of up to 256 subtrees side by side. Only a full tile is
//! hashed into the level above, so a tile that was full never changes again.

use crate::leaf::LEAF_BYTES_MAX;
use crate::tree::{Hash, root_of};
use std::fmt::Write;
use thiserror::Error;

/// How many hashes a full tile has.
pub const TILE_WIDTH: u64 = 256;
/// The highest level a path may name.
const LEVEL_MAX: u8 = 63;
/// The largest index a path may name: more digits than this hold no number of entries.
const INDEX_PARTS_MAX: usize = 7;

/// Which tile: its level, its place in the level, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    /// 0 holds the hashes of leaves.
    pub level: u8,
    /// From 0, left to right.
    pub index: u64,
    /// 1 to 256 hashes.
    pub width: u16,
}

/// Why a path names no tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this is not the path of a tile; one looks like `0/x001/234` or `0/x001/234.p/17`")]
pub struct TilePathError;

impl TileId {
    /// The tile at this place in a tree of this size; `None` when the tree does not reach there.
    #[must_use]
    pub fn in_tree(level: u8, index: u64, size: u64) -> Option<Self> {
        let hashes = hashes_at(level, size);
        let left = hashes.checked_sub(index.checked_mul(TILE_WIDTH)?)?;
        let width = u16::try_from(left.min(TILE_WIDTH)).ok().filter(|width| *width > 0)?;
        Some(Self { level, index, width })
    }

    /// Whether all 256 hashes are there.
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.width as u64 == TILE_WIDTH
    }

    /// The path below `tile/`.
    #[must_use]
    pub fn path(self) -> String {
        format!("{}/{}", self.level, index_path(self.index, self.width))
    }

    /// Reads the path below `tile/`.
    ///
    /// # Errors
    /// When it is not exactly what [`TileId::path`] writes.
    pub fn parse(path: &str) -> Result<Self, TilePathError> {
        let (level, rest) = path.split_once('/').ok_or(TilePathError)?;
        let level = small_number(level, u64::from(LEVEL_MAX)).ok_or(TilePathError)?;
        let (index, width) = parse_index(rest).ok_or(TilePathError)?;
        Ok(Self { level: u8::try_from(level).map_err(|_| TilePathError)?, index, width })
    }
}

/// How many hashes a level of a tree has.
fn hashes_at(level: u8, size: u64) -> u64 {
    size.checked_shr(u32::from(level) * 8).unwrap_or(0)
}

/// Every tile of a tree, lowest level first, full and partial.
pub fn tiles_of(size: u64) -> impl Iterator<Item = TileId> {
    (0..8_u8).flat_map(move |level| {
        let tiles = hashes_at(level, size).div_ceil(TILE_WIDTH);
        (0..tiles).filter_map(move |index| TileId::in_tree(level, index, size))
    })
}

/// The path of an entry bundle below `tile/entries/`.
#[must_use]
pub fn bundle_path(index: u64, width: u16) -> String {
    index_path(index, width)
}

/// Reads the path of an entry bundle below `tile/entries/`: index and width.
///
/// # Errors
/// When it is not exactly what [`bundle_path`] writes.
pub fn parse_bundle_path(path: &str) -> Result<(u64, u16), TilePathError> {
    parse_index(path).ok_or(TilePathError)
}

fn index_path(index: u64, width: u16) -> String {
    let mut path = format!("{:03}", index % 1_000);
    let mut rest = index / 1_000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1_000);
        rest /= 1_000;
    }
    if u64::from(width) < TILE_WIDTH {
        let _ = write!(path, ".p/{width}");
    }
    path
}

fn parse_index(path: &str) -> Option<(u64, u16)> {
    let (index, width) = match path.split_once(".p/") {
        Some((index, width)) => (index, small_number(width, TILE_WIDTH - 1).filter(|w| *w > 0)?),
        None => (path, TILE_WIDTH),
    };
    let parts = index.split('/').count();
    if parts > INDEX_PARTS_MAX {
        return None;
    }
    let mut number = 0_u64;
    for (at, part) in index.split('/').enumerate() {
        let digits = if at + 1 < parts { part.strip_prefix('x')? } else { part };
        let three = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = if three { digits.parse::<u64>().ok()? } else { return None };
        if at == 0 && parts > 1 && value == 0 {
            return None;
        }
        number = number.checked_mul(1_000)?.checked_add(value)?;
    }
    Some((number, u16::try_from(width).ok()?))
}

fn small_number(text: &str, most: u64) -> Option<u64> {
    crate::checkpoint::parse_number(text).filter(|number| *number <= most)
}

/// The bytes of a tile.
#[must_use]
pub fn encode_hashes(hashes: &[Hash]) -> Vec<u8> {
    hashes.as_flattened().to_vec()
}

/// Reads the bytes of a tile; `None` unless they are 1 to 256 whole hashes.
#[must_use]
pub fn decode_hashes(bytes: &[u8]) -> Option<Vec<Hash>> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    let fits = rest.is_empty() && (1..=TILE_WIDTH).contains(&(hashes.len() as u64));
    fits.then(|| hashes.to_vec())
}

/// The right edge of a tree: the tile of each level that is not full yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileEdge {
    size: u64,
    levels: Vec<Vec<Hash>>,
}

impl TileEdge {
    /// The edge of a tree of this size with these partial tiles, lowest level first; `None` when
    /// their widths do not belong to the size.
    #[must_use]
    pub fn new(size: u64, levels: Vec<Vec<Hash>>) -> Option<Self> {
        let width = |level: usize| {
            let level = u8::try_from(level).unwrap_or(u8::MAX);
            hashes_at(level, size) % TILE_WIDTH
        };
        let fits = levels.iter().enumerate().all(|(at, tile)| tile.len() as u64 == width(at));
        (fits && (levels.len()..8).all(|at| width(at) == 0)).then_some(Self { size, levels })
    }

    /// How many leaves the tree has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The partial tile of a level; empty when there is none.
    #[must_use]
    pub fn level(&self, level: usize) -> &[Hash] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// How many levels there are.
    #[must_use]
    pub const fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Adds a leaf; hands over every tile that became full by it, lowest level first.
    pub fn append(&mut self, leaf_hash: Hash, mut full: impl FnMut(TileId, &[Hash])) {
        let (mut hash, mut level) = (leaf_hash, 0);
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(tile) = self.levels.get_mut(level) else { break };
            tile.push(hash);
            if (tile.len() as u64) < TILE_WIDTH {
                break;
            }
            let place = u8::try_from(level).unwrap_or(u8::MAX);
            let index = hashes_at(place, self.size) / TILE_WIDTH;
            full(TileId { level: place, index, width: 256 }, tile);
            hash = root_of(tile);
            tile.clear();
            level += 1;
        }
        self.size += 1;
    }
}

/// Why a bundle of entries cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// A leaf that no bundle can hold.
    #[error("a leaf of {0} bytes is too long for an entry bundle")]
    TooLong(usize),
    /// Bytes that end within an entry.
    #[error("the entry bundle is cut off")]
    CutOff,
    /// Another number of entries than asked for.
    #[error("the entry bundle has {found} entries instead of {expected}")]
    Count {
        /// How many are there.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
}

/// Appends an entry to the bytes of a bundle.
///
/// # Errors
/// When the leaf is too long for one.
pub fn write_bundle(bundle: &mut Vec<u8>, leaf: &[u8]) -> Result<(), BundleError> {
    let length = u16::try_from(leaf.len()).ok().filter(|_| leaf.len() <= LEAF_BYTES_MAX);
    let length = length.ok_or(BundleError::TooLong(leaf.len()))?;
    bundle.extend_from_slice(&length.to_be_bytes());
    bundle.extend_from_slice(leaf);
    Ok(())
}

/// The entries of a bundle.
///
/// # Errors
/// When it is cut off or does not hold as many as it should.
pub fn read_bundle(bundle: &[u8], expected: u16) -> Result<Vec<&[u8]>, BundleError> {
    let (mut rest, mut leaves) = (bundle, Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (leaf, after) = after.split_at_checked(length).ok_or(BundleError::CutOff)?;
        leaves.push(leaf);
        rest = after;
    }
    let (found, expected) = (leaves.len() as u64, u64::from(expected));
    match rest {
        [] if found == expected => Ok(leaves),
        [] => Err(BundleError::Count { found, expected }),
        _ => Err(BundleError::CutOff),
    }
}

#[cfg(test)]
#[path = "tile_tests.rs"]
mod tests;
