//! The tree against published vectors and a naive oracle.

use super::*;
use crate::leaf::leaf_hash;
use proptest::prelude::*;

/// The leaves and roots that the Certificate Transparency reference implementations test with.
const INPUTS: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];
const ROOTS: [&str; 9] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn hash(text: &str) -> Hash {
    hex::decode(text).unwrap().try_into().unwrap()
}

fn published() -> Vec<Hash> {
    INPUTS.iter().map(|input| leaf_hash(&hex::decode(input).unwrap())).collect()
}

/// The definition of RFC 6962, section 2.1, word by word, and as slow.
fn oracle(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => sha256(&[]),
        [one] => *one,
        many => {
            let mut k = 1;
            while k * 2 < many.len() {
                k *= 2;
            }
            node_hash(&oracle(&many[..k]), &oracle(&many[k..]))
        }
    }
}

fn numbered(count: usize) -> Vec<Hash> {
    (0..count).map(|i| leaf_hash(&i.to_be_bytes())).collect()
}

#[test]
fn published_roots() {
    let leaves = published();
    for (size, root) in ROOTS.iter().enumerate() {
        assert_eq!(hex::encode(root_of(&leaves[..size])), *root, "size {size}");
    }
}

#[test]
fn published_inclusion_paths() {
    let leaves = published();
    let cases: [(usize, usize, &[&str]); 3] = [
        (0, 1, &[]),
        (
            0,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
    ];
    for (index, size, path) in cases {
        let path: Vec<Hash> = path.iter().map(|text| hash(text)).collect();
        assert_eq!(inclusion_proof(&leaves[..size], index).unwrap(), path, "{index} of {size}");
    }
}

#[test]
fn published_consistency_paths() {
    let leaves = published();
    let cases: [(usize, usize, &[&str]); 4] = [
        (1, 1, &[]),
        (
            1,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            &[
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];
    for (old, new, path) in cases {
        let path: Vec<Hash> = path.iter().map(|text| hash(text)).collect();
        assert_eq!(consistency_proof(&leaves[..new], old).unwrap(), path, "{old} to {new}");
    }
}

#[test]
fn sizes_around_the_borders_of_tiles_match_the_oracle() {
    for size in [0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000] {
        let leaves = numbered(size);
        assert_eq!(root_of(&leaves), oracle(&leaves), "size {size}");
    }
}

#[test]
fn every_proof_of_small_trees_verifies_and_no_other() {
    for size in 1..=33_usize {
        let leaves = numbered(size);
        let root = root_of(&leaves);
        for index in 0..size {
            let proof = inclusion_proof(&leaves, index).unwrap();
            for claimed in 0..=size {
                let holds =
                    verify_inclusion(&leaves[index], claimed as u64, size as u64, &proof, &root);
                assert_eq!(holds, claimed == index, "leaf {index} as {claimed} of {size}");
            }
        }
        assert_eq!(inclusion_proof(&leaves, size), None);
        for old in 0..=size {
            let proof = consistency_proof(&leaves, old).unwrap();
            let old_root = root_of(&leaves[..old]);
            let holds = |old_root, new_root, proof: &[Hash]| {
                verify_consistency(old as u64, size as u64, old_root, new_root, proof)
            };
            assert!(holds(&old_root, &root, &proof), "{old} to {size}");
            assert!(!holds(&[9; 32], &root, &proof), "{old} to {size}: old root");
            if old > 0 {
                assert!(!holds(&old_root, &[9; 32], &proof), "{old} to {size}: new root");
            }
            let longer = [proof.as_slice(), &[[0; 32]]].concat();
            assert!(!holds(&old_root, &root, &longer), "{old} to {size}: longer");
        }
        assert_eq!(consistency_proof(&leaves, size + 1), None);
    }
    assert!(!verify_consistency(2, 1, &[0; 32], &[0; 32], &[]));
}

#[test]
fn a_compact_range_goes_through_its_bytes() {
    let mut range = CompactRange::new();
    for leaf in numbered(100) {
        assert_eq!(CompactRange::decode(&range.encode()), Some(range.clone()));
        range.append(leaf);
    }
    let mut bytes = range.encode();
    bytes.pop();
    assert_eq!(CompactRange::decode(&bytes), None);
    assert_eq!(CompactRange::decode(&[0; 7]), None);
    let mut resized = range.encode();
    resized[7] ^= 1;
    assert_eq!(CompactRange::decode(&resized), None);
}

proptest! {
    #[test]
    fn the_compact_range_matches_the_definition(
        leaves in prop::collection::vec(any::<Hash>(), 0..200),
    ) {
        prop_assert_eq!(root_of(&leaves), oracle(&leaves));
    }

    #[test]
    fn proofs_hold_and_break_with_any_bit(
        leaves in prop::collection::vec(any::<Hash>(), 2..100),
        index in any::<prop::sample::Index>(),
        node in any::<prop::sample::Index>(),
        bit in 0..256_usize,
    ) {
        let (index, root) = (index.index(leaves.len()), root_of(&leaves));
        let mut proof = inclusion_proof(&leaves, index).unwrap();
        let holds = |proof: &[Hash]| {
            verify_inclusion(&leaves[index], index as u64, leaves.len() as u64, proof, &root)
        };
        prop_assert!(holds(&proof));
        let node = node.index(proof.len());
        proof[node][bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!holds(&proof));
    }
}
