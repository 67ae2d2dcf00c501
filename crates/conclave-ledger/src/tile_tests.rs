//! Tiles against the paths of an independent implementation, and their growth.

use super::*;
use crate::leaf::leaf_hash;
use proptest::prelude::*;

#[test]
fn paths_are_those_of_an_independent_implementation() {
    for (level, index, width) in
        [(0, 0, 256), (0, 999, 1), (1, 1_000, 255), (2, 1_234_067, 256), (7, 123_456_789, 17)]
    {
        let ours = TileId { level, index, width };
        let theirs = tlog_tiles::Tile::new(8, level, index, width.into(), false);
        assert_eq!(theirs.path(), format!("tile/8/{}", ours.path()));
        assert_eq!(TileId::parse(&ours.path()), Ok(ours));
        let entries = bundle_path(index, width);
        assert_eq!(parse_bundle_path(&entries), Ok((index, width)));
    }
    assert_eq!(TileId { level: 0, index: 1_234_067, width: 256 }.path(), "0/x001/x234/067");
}

#[test]
fn odd_paths_name_no_tile() {
    for path in [
        "",
        "0",
        "0/",
        "0/0",
        "0/00",
        "0/0000",
        "64/000",
        "-1/000",
        "00/000",
        "0/x000/001",
        "0/001/002",
        "0/x001",
        "0/x01/001",
        "0/000.p/0",
        "0/000.p/256",
        "0/000.p/01",
        "0/000.p/",
        "0/000.p/1/",
        "0/+01",
        "0/x999/x999/x999/x999/x999/x999/x999/999",
        "0/é00",
        "0/../000",
    ] {
        assert_eq!(TileId::parse(path), Err(TilePathError), "{path}");
    }
}

#[test]
fn the_tiles_of_seventy_thousand_entries() {
    let tiles: Vec<_> = tiles_of(70_000).collect();
    let full = |level| tiles.iter().filter(|tile| tile.level == level && tile.is_full()).count();
    assert_eq!([full(0), full(1), full(2)], [273, 1, 0]);
    let partial: Vec<_> =
        tiles.iter().filter(|t| !t.is_full()).map(|t| (t.level, t.width)).collect();
    assert_eq!(partial, [(0, 112), (1, 17), (2, 1)]);
    assert_eq!(tiles_of(0).count(), 0);
    assert_eq!(TileId::in_tree(0, 0, 0), None);
    assert_eq!(TileId::in_tree(8, 0, u64::MAX), None);
    assert_eq!(TileId::in_tree(0, u64::MAX, u64::MAX), None);
}

#[test]
fn an_edge_hands_over_each_full_tile_once() {
    let mut edge = TileEdge::default();
    let mut full = Vec::new();
    for at in 0..65_793_u64 {
        edge.append(leaf_hash(&at.to_be_bytes()), |id, hashes| {
            assert_eq!(hashes.len(), 256);
            full.push((id.level, id.index));
        });
    }
    let expected: Vec<_> = (0..257_u64)
        .flat_map(|at| if at == 255 { vec![(0, 255), (1, 0)] } else { vec![(0, at)] })
        .collect();
    assert_eq!(full, expected);
    assert_eq!([edge.level(0).len(), edge.level(1).len(), edge.level(2).len()], [1, 1, 1]);
    let levels = (0..edge.levels()).map(|level| edge.level(level).to_vec()).collect();
    assert_eq!(TileEdge::new(edge.size(), levels), Some(edge));
    assert_eq!(TileEdge::new(5, vec![vec![[0; 32]; 4]]), None);
    assert_eq!(TileEdge::new(256, vec![vec![]]), None);
}

#[test]
fn bundles_hold_leaves_up_to_their_limit() {
    let mut bundle = Vec::new();
    for leaf in [&b""[..], b"a", &[7; LEAF_BYTES_MAX]] {
        write_bundle(&mut bundle, leaf).unwrap();
    }
    assert_eq!(read_bundle(&bundle, 3).unwrap(), [&b""[..], b"a", &[7; LEAF_BYTES_MAX]]);
    assert_eq!(read_bundle(&bundle, 4), Err(BundleError::Count { found: 3, expected: 4 }));
    let too_long = [7; LEAF_BYTES_MAX + 1];
    assert_eq!(write_bundle(&mut bundle, &too_long), Err(BundleError::TooLong(65_536)));
    assert_eq!(read_bundle(&bundle[..bundle.len() - 1], 3), Err(BundleError::CutOff));
    assert_eq!(read_bundle(&[0], 0), Err(BundleError::CutOff));
}

proptest! {
    #[test]
    fn no_path_and_no_bundle_panics(path in ".{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(id) = TileId::parse(&path) {
            prop_assert_eq!(id.path(), path);
        }
        let _ = read_bundle(&bytes, 3);
        let _ = decode_hashes(&bytes);
    }

    #[test]
    fn every_tile_has_one_path(level in 0_u8..=63, index in any::<u64>(), width in 1_u16..=256) {
        let id = TileId { level, index, width };
        prop_assert_eq!(TileId::parse(&id.path()), Ok(id));
    }
}
