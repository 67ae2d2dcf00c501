//! The names of segment files.
//!
//! **Invariant:** the name tells the order of the segments and the secret of their checksums, so
//! that a damaged first block does not make the rest of the file unreadable.
//!
//! **Invariant:** a segment that was begun after a failed write says in its name from where on
//! everything before it is void. What the failed disk may have kept all the same was never
//! acknowledged, and must not come back at the next start beside a statement that it is missing.

use super::frame::Seed;
use super::progress::Position;
use std::io;
use std::path::{Path, PathBuf};

/// What a segment's file name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentName {
    pub(crate) index: u64,
    pub(crate) seed: Seed,
    /// Nothing between this place and the segment itself counts.
    pub(crate) void_from: Option<Position>,
    pub(crate) path: PathBuf,
}

impl SegmentName {
    pub(crate) fn new(dir: &Path, index: u64, seed: Seed, void_from: Option<Position>) -> Self {
        let void = void_from.map_or_else(String::new, |Position { segment, offset }| {
            format!("-{segment:016x}-{offset:016x}")
        });
        let path = dir.join(format!("{index:016x}-{:016x}{void}.seg", seed.0));
        Self { index, seed, void_from, path }
    }

    fn parse(dir: &Path, name: &str) -> Option<Self> {
        let mut numbers = name.strip_suffix(".seg")?.split('-');
        let mut next = || u64::from_str_radix(numbers.next()?, 16).ok();
        let (index, seed) = (next()?, next()?);
        let void_from = match (next(), next()) {
            (Some(segment), Some(offset)) => Some(Position { segment, offset }),
            _ => None,
        };
        let parsed = Self::new(dir, index, Seed(seed), void_from);
        // Only the spelling we write ourselves, or two names could mean the same segment.
        (parsed.path.file_name()? == name).then_some(parsed)
    }
}

/// A segment and how many of its bytes count at most; without a limit, as many as it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedSegment {
    pub(crate) name: SegmentName,
    pub(crate) bytes_max: Option<u64>,
}

impl ListedSegment {
    /// Whether nothing in it counts.
    pub(crate) fn is_void(&self) -> bool {
        self.bytes_max == Some(0)
    }

    /// How much of a file of this length counts.
    pub(crate) fn limit(&self, length: u64) -> u64 {
        self.bytes_max.map_or(length, |most| most.min(length))
    }
}

/// All segments of several directories in their order, with what counts of each.
pub(crate) fn list_all(dirs: &[PathBuf]) -> io::Result<Vec<ListedSegment>> {
    let mut names = Vec::new();
    for dir in dirs {
        names.extend(list_segments(dir)?);
    }
    names.sort_by_key(|name| name.index);
    let mut void_from: Option<Position> = None;
    let mut listed: Vec<_> = names
        .into_iter()
        .rev()
        .map(|name| {
            let bytes_max = void_from.and_then(|void| void.bytes_max_of(name.index));
            void_from = [void_from, name.void_from].into_iter().flatten().min();
            ListedSegment { name, bytes_max }
        })
        .collect();
    listed.reverse();
    Ok(listed)
}

impl Position {
    /// How many bytes of a segment stand before this place, unless all of them do.
    const fn bytes_max_of(self, segment: u64) -> Option<u64> {
        if segment > self.segment {
            Some(0)
        } else if segment == self.segment {
            Some(self.offset)
        } else {
            None
        }
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
            let name = SegmentName::new(dir.path(), index, Seed(seed), None);
            std::fs::write(name.path, b"").unwrap();
        }
        let half = "0000000000000001-0000000000000001-0000000000000001.seg";
        for other in ["x.seg", "1-1.seg", "0000000000000001.seg", half, "notes.txt"] {
            std::fs::write(dir.path().join(other), b"").unwrap();
        }
        let listed = list_segments(dir.path()).unwrap();
        let order: Vec<_> = listed.iter().map(|segment| (segment.index, segment.seed.0)).collect();
        assert_eq!(order, [(2, 0xffff_0000_0000_0001), (16, 7), (300, 7)]);
        assert_eq!(list_segments(&dir.path().join("none")).unwrap(), []);
    }

    #[test]
    fn what_failed_is_void_in_whichever_directory_it_stands() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let make = |dir: &Path, index, void: Option<(u64, u64)>| {
            let void = void.map(|(segment, offset)| Position { segment, offset });
            std::fs::write(SegmentName::new(dir, index, Seed(1), void).path, b"").unwrap();
        };
        let (a, b) = (first.path(), second.path());
        make(a, 1, None);
        make(a, 2, None);
        make(a, 3, None);
        make(b, 4, Some((2, 70)));
        make(a, 5, None);
        make(b, 6, None);
        make(b, 7, Some((5, 0)));
        let listed = list_all(&[a.to_owned(), b.to_owned()]).unwrap();
        let counts: Vec<_> =
            listed.iter().map(|segment| (segment.name.index, segment.bytes_max)).collect();
        let expected = [
            (1, None),
            (2, Some(70)),
            (3, Some(0)),
            (4, None),
            (5, Some(0)),
            (6, Some(0)),
            (7, None),
        ];
        assert_eq!(counts, expected);
        assert!(listed[2].is_void() && !listed[1].is_void());
        assert_eq!((listed[1].limit(50), listed[1].limit(80), listed[0].limit(9)), (50, 70, 9));
    }
}
