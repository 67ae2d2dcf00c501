//! What witnesses have said about the last checkpoint.
//!
//! **Invariant:** the stored note of a size never changes. Lines of witnesses stand beside it and are put
//! below it when it is shown.

use super::checkpoints::Published;
use crate::durable;
use crate::error::StoreError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where they are kept for the next start.
const FILE: &str = "cosignatures";
/// More witnesses than anybody has.
const LINES_MAX: usize = 32;

/// The cosignatures of one checkpoint.
pub(crate) struct Cosigned {
    path: PathBuf,
    last: Mutex<Said>,
}

/// What was said, about which note.
#[derive(Default)]
struct Said {
    size: u64,
    /// The hash of what was signed: after a database was accepted that came back older, a size can have
    /// another note than before.
    about: [u8; 32],
    lines: Vec<String>,
}

/// The hash of what witnesses sign of a note: its text, without signatures.
fn hash_of(note: &str) -> [u8; 32] {
    let text = note.split_once("\n\n").map_or(note, |(text, _)| text);
    Sha256::digest(text.trim_end_matches('\n')).into()
}

impl Said {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (size, about) = lines.next()?.split_once(' ')?;
        let about = hex::decode(about).ok()?.try_into().ok()?;
        let lines = lines.take(LINES_MAX).map(|line| format!("{line}\n")).collect();
        Some(Self { size: size.parse().ok()?, about, lines })
    }
}

impl Cosigned {
    /// Reads what is kept; what cannot be read is as good as nothing.
    pub(crate) fn open(dir: &Path) -> Self {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Self { path, last: Mutex::new(Said::parse(&text).unwrap_or_default()) }
    }

    /// Adds the line of a witness about a note, which must have been checked.
    ///
    /// # Errors
    /// When it cannot be kept; it is shown all the same.
    pub(crate) fn add(&self, size: u64, note: &str, line: &str) -> Result<(), StoreError> {
        let (mut last, about) = (self.lock(), hash_of(note));
        if size < last.size || (size == last.size && about != last.about) {
            return Ok(());
        }
        if size > last.size {
            *last = Said { size, about, lines: Vec::new() };
        }
        if !last.lines.iter().any(|known| known == line) && last.lines.len() < LINES_MAX {
            last.lines.push(line.to_owned());
        }
        let text = format!("{} {}\n{}", last.size, hex::encode(last.about), last.lines.concat());
        let written = durable::replace(&self.path, text.as_bytes());
        written.map_err(StoreError::file("write", &self.path))
    }

    /// A note was published. What was said about one that it takes the place of counts no more.
    pub(crate) fn follow(&self, published: &Published) {
        let mut last = self.lock();
        let about = hash_of(&published.note);
        if published.size < last.size || (published.size == last.size && about != last.about) {
            *last = Said { size: published.size, about, lines: Vec::new() };
        }
    }

    /// The note with what witnesses have said about it.
    pub(crate) fn below(&self, last: &Published) -> String {
        let known = self.lock();
        let is_meant = known.size == last.size && known.about == hash_of(&last.note);
        let lines = if is_meant { known.lines.concat() } else { String::new() };
        format!("{}{lines}", last.note)
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
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
        cosigned.add(5, "n5\n", "- a\n").unwrap();
        cosigned.add(5, "n5\n", "- a\n").unwrap();
        cosigned.add(5, "n5\n", "- b\n").unwrap();
        cosigned.add(4, "n4\n", "- late\n").unwrap();
        assert_eq!(cosigned.below(&note(5)), "n5\n- a\n- b\n");
        assert_eq!(Cosigned::open(dir.path()).below(&note(5)), "n5\n- a\n- b\n");
        assert_eq!(cosigned.below(&note(6)), "n6\n");
        cosigned.add(6, "n6\n", "- a\n").unwrap();
        assert_eq!(
            (cosigned.below(&note(5)), cosigned.below(&note(6))),
            ("n5\n".into(), "n6\n- a\n".into())
        );
        std::fs::write(dir.path().join(FILE), "nonsense").unwrap();
        assert_eq!(Cosigned::open(dir.path()).below(&note(5)), "n5\n");
    }

    #[test]
    fn what_was_said_about_a_note_that_was_given_up_is_not_shown_below_another() {
        let dir = tempfile::tempdir().unwrap();
        let note = |size, root: &str| Published {
            size,
            note: format!("log\n{size}\n{root}\n\n- log sig{root}\n"),
            at_ms: 0,
        };
        let (given_up, other) = (note(9, "old"), note(9, "new"));
        let cosigned = Cosigned::open(dir.path());
        cosigned.add(9, &given_up.note, "- w\n").unwrap();
        assert_eq!(cosigned.below(&other), other.note);
        let later = Cosigned::open(dir.path());
        assert_eq!(later.below(&other), other.note, "nor after a start");
        assert_eq!(later.below(&given_up), format!("{}- w\n", given_up.note));
        // The log went on from fewer entries, and witnesses speak about that.
        let fewer = note(7, "new");
        later.follow(&fewer);
        later.add(7, &fewer.note, "- w\n").unwrap();
        assert_eq!(later.below(&fewer), format!("{}- w\n", fewer.note));
    }
}
