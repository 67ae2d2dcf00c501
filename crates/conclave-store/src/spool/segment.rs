//! The names of segment files.
//!
//! **Invariant:** the name tells the order of the segments and the secret of their checksums, so
//! that a damaged first block does not make the rest of the file unreadable.

use super::frame::Seed;
use std::io;
use std::path::{Path, PathBuf};

/// What a segment's file name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentName {
    pub(crate) index: u64,
    pub(crate) seed: Seed,
    pub(crate) path: PathBuf,
}

impl SegmentName {
    pub(crate) fn new(dir: &Path, index: u64, seed: Seed) -> Self {
        let path = dir.join(format!("{index:016x}-{:016x}.seg", seed.0));
        Self { index, seed, path }
    }

    fn parse(dir: &Path, name: &str) -> Option<Self> {
        let (index, seed) = name.strip_suffix(".seg")?.split_once('-')?;
        let index = u64::from_str_radix(index, 16).ok()?;
        let parsed = Self::new(dir, index, Seed(u64::from_str_radix(seed, 16).ok()?));
        // Only the spelling we write ourselves, or two names could mean the same segment.
        (parsed.path.file_name()? == name).then_some(parsed)
    }
}

/// All segments of a directory in their order; none if there is no such directory.
pub(crate) fn list_segments(dir: &Path) -> io::Result<Vec<SegmentName>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut segments = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        segments.extend(name.to_str().and_then(|name| SegmentName::parse(dir, name)));
    }
    segments.sort_by_key(|segment| segment.index);
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_listed_in_order_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let names = [(300, 7), (2, 0xffff_0000_0000_0001), (16, 7)];
        for (index, seed) in names {
            std::fs::write(SegmentName::new(dir.path(), index, Seed(seed)).path, b"").unwrap();
        }
        for other in ["x.seg", "1-1.seg", "0000000000000001.seg", "notes.txt"] {
            std::fs::write(dir.path().join(other), b"").unwrap();
        }
        let listed = list_segments(dir.path()).unwrap();
        let order: Vec<_> = listed.iter().map(|segment| (segment.index, segment.seed.0)).collect();
        assert_eq!(order, [(2, 0xffff_0000_0000_0001), (16, 7), (300, 7)]);
        assert_eq!(list_segments(&dir.path().join("none")).unwrap(), []);
    }
}
