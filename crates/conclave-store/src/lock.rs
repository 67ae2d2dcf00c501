//! One process at a time writes to a data directory.
//!
//! **Invariant:** the lock is the kernel's, not the file's: a crashed process leaves no lock
//! behind.
//!
//! **Invariant:** what is locked is the directory itself. The file `lock` says who has it, and removing
//! that file lets nobody in.
//!
//! **Invariant:** having had the lock proves nothing. Whoever is about to promise something looks again
//! whether the path still leads to what was locked.

use crate::durable::{make_dir, private};
use crate::error::StoreError;
use crate::spool::Progress;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file that says who has the directory.
const FILE: &str = "lock";
/// More than this is never read of it.
const BYTES_MAX: usize = 64;

/// Which file or directory a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// What an open file is, or what was found at a path.
    pub(crate) fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// What a path leads to now; `None` where nothing is.
    ///
    /// # Errors
    /// When the path cannot be looked at.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(Some(Self::of(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Why it is not certain any more that the directory is ours.
#[derive(Debug, Error)]
pub(crate) enum LockTrouble {
    /// It is not.
    #[error("{0}")]
    Lost(String),
    /// It could not be looked at.
    #[error("it cannot be seen whether the data directory is still the one that was locked: {0}")]
    Unclear(#[from] io::Error),
}

/// Held for as long as the directory is in use.
#[derive(Debug)]
pub struct DirLock {
    dir: PathBuf,
    dir_id: FileId,
    file: File,
    file_id: FileId,
    /// What was written into the file. Where two machines share a directory and not the kernel's locks,
    /// the second writes something else over it.
    written: String,
    locked: File,
}

impl DirLock {
    /// Makes the directory if need be and takes its lock.
    ///
    /// # Errors
    /// When the directory cannot be made or written, or another process (or this one) has it.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        make_dir(dir)?;
        let locked = File::open(dir).map_err(StoreError::file("open", dir))?;
        let path = dir.join(FILE);
        let opened = private().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(StoreError::file("write to", &path))?;
        // The file is locked as well: it is all that an earlier version looks at.
        for (held, what) in [(&locked, dir), (&file, &path)] {
            match flock(held, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let said = read_start(&file);
                    return Err(StoreError::Locked { pid: holder(&said), dir: dir.to_owned() });
                }
                Err(error) => return Err(StoreError::file("lock", what)(error.into())),
            }
        }
        let written = format!("{} {}\n", std::process::id(), times(&read_start(&file)) + 1);
        let ids = put(&file, &written).and_then(|()| Ok((locked.metadata()?, file.metadata()?)));
        let (dir_found, file_found) = ids.map_err(StoreError::file("write to", &path))?;
        Ok(Self {
            dir: dir.to_owned(),
            dir_id: FileId::of(&dir_found),
            file,
            file_id: FileId::of(&file_found),
            written,
            locked,
        })
    }

    /// Gives the directory free, also where parts of a store that was closed still hold this.
    pub(crate) fn release(&self) {
        for held in [&self.file, &self.locked] {
            if let Err(error) = flock(held, FlockOperation::Unlock) {
                tracing::warn!(%error, "the lock of the data directory goes with the process");
            }
        }
    }

    /// Why the directory is not ours any more, for whoever is about to change something in it.
    pub(crate) fn why_lost(&self, progress: &Progress) -> Option<String> {
        if let Err(LockTrouble::Lost(why)) = self.check() {
            progress.set_overtaken(&why);
        }
        progress.overtaken()
    }

    /// Looks whether the path still leads to the directory and the lock file that were locked, and
    /// whether nobody else has signed there.
    ///
    /// # Errors
    /// When not, or when it cannot be seen.
    pub(crate) fn check(&self) -> Result<(), LockTrouble> {
        let dir = self.dir.display();
        if FileId::at(&self.dir)? != Some(self.dir_id) {
            return Err(LockTrouble::Lost(format!(
                "the data directory {dir} was moved or replaced while this gateway used it; stop it, \
                 put the directory back and start again"
            )));
        }
        if FileId::at(&self.dir.join(FILE))? != Some(self.file_id) {
            return Err(LockTrouble::Lost(format!(
                "the lock file of {dir} was removed or replaced while this gateway used it; see that \
                 no other one does, and start this one again"
            )));
        }
        if read_start(&self.file) != self.written {
            return Err(LockTrouble::Lost(format!(
                "another conclave has taken over the data directory {dir}; stop one of them, and \
                 start this one again with a directory of its own"
            )));
        }
        Ok(())
    }
}

fn put(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// The beginning of the file; what cannot be read is nobody's signature.
fn read_start(file: &File) -> String {
    let mut bytes = [0; BYTES_MAX];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// The process id that was written, made safe to print.
fn holder(said: &str) -> String {
    let digits = said.split_whitespace().next().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() { "unknown".to_owned() } else { digits }
}

/// How often the directory was taken before, so that no two holders write the same.
fn times(said: &str) -> u64 {
    said.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let held = DirLock::take(&data).unwrap();
        let sentence = DirLock::take(&data).unwrap_err().to_string();
        let expected = format!(
            "another conclave (pid {}) is using {}; stop it or choose another --data directory",
            std::process::id(),
            data.display()
        );
        assert_eq!(sentence, expected);
        drop(held);
        DirLock::take(&data).unwrap();
    }

    #[test]
    fn a_file_in_the_way_gives_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"x").unwrap();
        let sentence = DirLock::take(&path).unwrap_err().to_string();
        assert!(sentence.starts_with("cannot create the directory"), "{sentence}");
        std::fs::create_dir_all(dir.path().join("data/lock")).unwrap();
        let sentence = DirLock::take(&dir.path().join("data")).unwrap_err().to_string();
        assert!(sentence.starts_with("cannot write to"), "{sentence}");
    }

    #[test]
    fn removing_the_file_lets_nobody_in_and_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::take(dir.path()).unwrap();
        held.check().unwrap();
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        let sentence = DirLock::take(dir.path()).unwrap_err().to_string();
        assert!(sentence.contains("another conclave"), "{sentence}");
        let sentence = held.check().unwrap_err().to_string();
        assert!(sentence.contains("lock file") && sentence.contains("removed"), "{sentence}");
    }

    #[test]
    fn a_directory_that_was_moved_and_one_in_its_place_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let held = DirLock::take(&data).unwrap();
        std::fs::rename(&data, dir.path().join("moved")).unwrap();
        let missing = held.check().unwrap_err().to_string();
        let other = DirLock::take(&data).unwrap();
        let replaced = held.check().unwrap_err().to_string();
        assert!(missing == replaced && missing.contains("moved or replaced"), "{missing}");
        other.check().unwrap();
    }

    #[test]
    fn where_the_kernel_keeps_nobody_out_the_second_signature_does() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::take(dir.path()).unwrap();
        let elsewhere = format!("{} 2\n", std::process::id());
        std::fs::write(dir.path().join(FILE), elsewhere).unwrap();
        let sentence = held.check().unwrap_err().to_string();
        assert!(sentence.contains("another conclave has taken over"), "{sentence}");
    }
}
