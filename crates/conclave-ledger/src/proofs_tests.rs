//! Proofs from tiles, against proofs from leaves and against an independent implementation.

use super::*;
use crate::leaf::leaf_hash;
use crate::tile::{TileEdge, encode_hashes};
use crate::tree::{consistency_proof, inclusion_proof, verify_consistency, verify_inclusion};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;
use tlog_tiles as theirs;

/// Where tiles begin and end, and the example of the specification.
const SIZES: [u64; 10] = [0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000];

/// A log in memory that keeps what a store would: full tiles, and the edge.
#[derive(Default)]
struct Shelf {
    leaves: Vec<Hash>,
    full: BTreeMap<(u8, u64), Vec<Hash>>,
    edge: TileEdge,
}

impl Shelf {
    fn grow(&mut self, size: u64) {
        for at in self.edge.size()..size {
            let hash = leaf_hash(&at.to_be_bytes());
            self.leaves.push(hash);
            let full = &mut self.full;
            self.edge.append(hash, |id, hashes| {
                full.insert((id.level, id.index), hashes.to_vec());
            });
        }
    }

    fn of(size: u64) -> Self {
        let mut shelf = Self::default();
        shelf.grow(size);
        shelf
    }

    fn hashes(&self, id: TileId) -> Vec<Hash> {
        let stored = self.full.get(&(id.level, id.index)).map(Vec::as_slice);
        let stored = stored.unwrap_or_else(|| self.edge.level(id.level.into()));
        stored[..id.width.into()].to_vec()
    }
}

impl TileSource for Shelf {
    type Error = Infallible;
    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, Infallible> {
        Ok(self.hashes(id))
    }
}

impl theirs::TileReader for Shelf {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[theirs::Tile]) -> Result<Vec<Vec<u8>>, theirs::Error> {
        let read = |tile: &theirs::Tile| {
            let width = u16::try_from(tile.width()).unwrap();
            let id = TileId { level: tile.level(), index: tile.level_index(), width };
            encode_hashes(&self.hashes(id))
        };
        Ok(tiles.iter().map(read).collect())
    }

    fn save_tiles(&self, _: &[theirs::Tile], _: &[Vec<u8>]) {}
}

/// Places worth proving in a log of this size.
fn places(size: u64) -> Vec<u64> {
    let mut places: Vec<_> =
        [0, 1, 127, 255, 256, 65_535, 65_536, size / 2, size.wrapping_sub(1)].into();
    places.retain(|place| *place < size);
    places.dedup();
    places
}

#[test]
fn roots_and_ranges_are_those_of_the_leaves() {
    let mut shelf = Shelf::of(70_000);
    for size in SIZES {
        let leaves = &shelf.leaves[..usize::try_from(size).unwrap()];
        let root = root_of(leaves);
        assert_eq!(root_at(&mut shelf, size), Ok(root), "size {size}");
        assert_eq!(range_of(&mut shelf, size).unwrap().root(), root);
    }
}

#[test]
fn proofs_are_those_of_the_leaves() {
    for size in SIZES {
        let mut shelf = Shelf::of(size);
        let leaves = shelf.leaves.clone();
        let root = root_of(&leaves);
        for place in places(size) {
            let at = usize::try_from(place).unwrap();
            let proof = prove_inclusion(&mut shelf, place, size).unwrap();
            assert_eq!(Some(&proof), inclusion_proof(&leaves, at).as_ref(), "{place} of {size}");
            assert!(verify_inclusion(&leaves[at], place, size, &proof, &root));
            let old = place + 1;
            let proof = prove_consistency(&mut shelf, old, size).unwrap();
            assert_eq!(Some(&proof), consistency_proof(&leaves, at + 1).as_ref());
            assert!(verify_consistency(old, size, &root_of(&leaves[..=at]), &root, &proof));
        }
        let outside = Err(ProofError::Outside { size });
        assert_eq!(prove_inclusion(&mut shelf, size, size), outside);
        assert_eq!(prove_consistency(&mut shelf, size + 1, size), outside);
        assert_eq!(prove_consistency(&mut shelf, 0, size), Ok(vec![]));
    }
}

#[test]
fn an_independent_implementation_reads_our_tiles_and_believes_our_proofs() {
    for size in SIZES.into_iter().filter(|size| *size > 0) {
        let mut shelf = Shelf::of(size);
        let root = root_at(&mut shelf, size).unwrap();
        let head = theirs::Hash(root);
        let their_leaf = theirs::record_hash(&0_u64.to_be_bytes());
        assert_eq!(their_leaf.0, shelf.leaves[0]);
        for place in places(size) {
            let ours: Vec<_> = prove_inclusion(&mut shelf, place, size).unwrap();
            let leaf = theirs::Hash(shelf.leaves[usize::try_from(place).unwrap()]);
            let proof = ours.iter().copied().map(theirs::Hash).collect();
            theirs::check_record(&proof, size, head, place, leaf).unwrap();
            let reader = theirs::TileHashReader::new(size, head, &shelf);
            assert_eq!(theirs::prove_record(size, place, &reader).unwrap(), proof);
        }
        for old in places(size).into_iter().filter(|old| *old > 0) {
            let before = root_at(&mut shelf, old).unwrap();
            let proof = prove_consistency(&mut shelf, old, size).unwrap();
            let reader = theirs::TileHashReader::new(size, head, &shelf);
            let their_proof: Vec<_> = theirs::prove_tree(size, old, &reader).unwrap();
            assert_eq!(their_proof.iter().map(|hash| hash.0).collect::<Vec<_>>(), proof);
            let proof = proof.into_iter().map(theirs::Hash).collect();
            theirs::check_tree(&proof, size, head, old, theirs::Hash(before)).unwrap();
        }
    }
}

#[test]
fn a_source_that_gives_too_little_is_named() {
    struct Short;
    impl TileSource for Short {
        type Error = Infallible;
        fn tile(&mut self, _: TileId) -> Result<Vec<Hash>, Infallible> {
            Ok(vec![[0; 32]; 3])
        }
    }
    assert_eq!(root_at(&mut Short, 5), Err(ProofError::Width("0/000.p/5".into())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn random_batches_come_to_the_root_of_the_naive_tree(batches in prop::collection::vec(0_u64..400, 1..8)) {
        let mut shelf = Shelf::default();
        for batch in batches {
            let size = shelf.edge.size() + batch;
            shelf.grow(size);
            let naive = naive(&shelf.leaves);
            prop_assert_eq!(root_at(&mut shelf, size), Ok(naive));
        }
    }
}

/// RFC 6962, section 2.1, word by word.
fn naive(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => crate::leaf::sha256(&[]),
        [one] => *one,
        many => {
            let mut k = 1;
            while k * 2 < many.len() {
                k *= 2;
            }
            node_hash(&naive(&many[..k]), &naive(&many[k..]))
        }
    }
}
