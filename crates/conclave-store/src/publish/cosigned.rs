//! What witnesses have said about the last checkpoint.
//!
//! **Invariant:** the stored note of a size never changes. Lines of witnesses stand beside it and are put
//! below it when it is shown.

use super::checkpoints::Published;
use crate::durable;
use crate::error::StoreError;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where they are kept for the next start.
const FILE: &str = "cosignatures";
/// More witnesses than anybody has.
const LINES_MAX: usize = 32;

/// The cosignatures of one checkpoint.
pub(crate) struct Cosigned {
    path: PathBuf,
    last: Mutex<(u64, Vec<String>)>,
}

impl Cosigned {
    /// Reads what is kept; what cannot be read is as good as nothing.
    pub(crate) fn open(dir: &Path) -> Self {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        let size = lines.next().and_then(|line| line.parse().ok());
        let kept = size.map(|size| {
            (size, lines.take(LINES_MAX).map(|line| format!("{line}\n")).collect::<Vec<_>>())
        });
        Self { path, last: Mutex::new(kept.unwrap_or_default()) }
    }

    /// Adds the line of a witness, which must have been checked.
    ///
    /// # Errors
    /// When it cannot be kept; it is shown all the same.
    pub(crate) fn add(&self, size: u64, line: &str) -> Result<(), StoreError> {
        let mut last = self.lock();
        if size < last.0 {
            return Ok(());
        }
        if size > last.0 {
            *last = (size, Vec::new());
        }
        if !last.1.iter().any(|known| known == line) && last.1.len() < LINES_MAX {
            last.1.push(line.to_owned());
        }
        let text = format!("{}\n{}", last.0, last.1.concat());
        let written = durable::replace(&self.path, text.as_bytes());
        written.map_err(StoreError::file("write", &self.path))
    }

    /// The note with what witnesses have said about it.
    pub(crate) fn below(&self, last: &Published) -> String {
        let known = self.lock();
        let lines = if known.0 == last.size { known.1.concat() } else { String::new() };
        format!("{}{lines}", last.note)
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Vec<String>)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_below_their_note_only_and_survive_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let note = |size| Published { size, note: format!("n{size}\n"), at_ms: 0 };
        let cosigned = Cosigned::open(dir.path());
        assert_eq!(cosigned.below(&note(5)), "n5\n");
        cosigned.add(5, "- a\n").unwrap();
        cosigned.add(5, "- a\n").unwrap();
        cosigned.add(5, "- b\n").unwrap();
        cosigned.add(4, "- late\n").unwrap();
        assert_eq!(cosigned.below(&note(5)), "n5\n- a\n- b\n");
        assert_eq!(Cosigned::open(dir.path()).below(&note(5)), "n5\n- a\n- b\n");
        assert_eq!(cosigned.below(&note(6)), "n6\n");
        cosigned.add(6, "- a\n").unwrap();
        assert_eq!(
            (cosigned.below(&note(5)), cosigned.below(&note(6))),
            ("n5\n".into(), "n6\n- a\n".into())
        );
        std::fs::write(dir.path().join(FILE), "nonsense").unwrap();
        assert_eq!(Cosigned::open(dir.path()).below(&note(5)), "n5\n");
    }
}
