//! How far the database has come, noted beside the spool.
//!
//! **Invariant:** the note is written before a drained segment is removed. A start that cannot ask the
//! database still knows which numbers were given, from the spool or from here.

use crate::durable;
use crate::replica::Identity;
use std::io;
use std::path::Path;

/// What the database is known to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Whose numbers these are.
    pub(crate) epoch: u32,
    /// The largest number taken.
    pub(crate) n: u64,
    /// The latest time of any entry.
    pub(crate) ts_ms: u64,
    /// How many entries the log had.
    pub(crate) size: u64,
}

impl Mark {
    /// Reads the note; one of another epoch, or none, says nothing.
    pub(crate) fn read(path: &Path, identity: Identity) -> Self {
        let nothing = Self { epoch: identity.epoch, ..Self::default() };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text).filter(|mark| mark.epoch == identity.epoch).unwrap_or(nothing)
    }

    /// Writes the note durably.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let Self { epoch, n, ts_ms, size } = self;
        durable::replace(path, format!("v1 {epoch} {n} {ts_ms} {size}\n").as_bytes())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let version = words.next()?;
        let epoch = words.next()?.parse().ok()?;
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let mark = Self { epoch, n: number()?, ts_ms: number()?, size: number()? };
        (version == "v1" && words.next().is_none()).then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_nonsense_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drained");
        let identity = Identity { replica: [1; 8], epoch: 3 };
        let nothing = Mark { epoch: 3, ..Mark::default() };
        assert_eq!(Mark::read(&path, identity), nothing);
        let mark = Mark { epoch: 3, n: 70, ts_ms: 9, size: 200 };
        mark.write(&path).unwrap();
        assert_eq!(Mark::read(&path, identity), mark);
        assert_eq!(Mark::read(&path, Identity { epoch: 4, ..identity }).n, 0);
        for text in ["", "v1 3 70", "v2 3 70 9 200", "v1 3 70 9 200 1", "v1 3 x 9 200"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Mark::read(&path, identity), nothing, "{text}");
        }
    }
}
