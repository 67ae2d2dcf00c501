//! One process at a time writes to a data directory.
//!
//! **Invariant:** the lock is the kernel's, not the file's: a crashed process leaves no lock
//! behind.

use crate::durable::{make_dir, private};
use crate::error::StoreError;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Held for as long as the directory is in use.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Makes the directory if need be and takes its lock.
    ///
    /// # Errors
    /// When the directory cannot be made or written, or another process (or this one) has it.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        make_dir(dir)?;
        let path = dir.join("lock");
        let opened = private().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(StoreError::file("write to", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked { pid: holder(&mut file), dir: dir.to_owned() });
            }
            Err(error) => return Err(StoreError::file("lock", &path)(error.into())),
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(StoreError::file("write to", &path))?;
        Ok(Self { _file: file })
    }
}

/// The process id in the file, made safe to print.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if read.is_err() || digits.is_empty() { "unknown".to_owned() } else { digits }
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
}
