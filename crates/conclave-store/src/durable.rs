//! Small files and directories that must survive a loss of power.
//!
//! **Invariant:** a file made here is either whole or absent: it is written beside its place,
//! synced, and only then linked or renamed into it.
//!
//! **Invariant:** nothing is readable by other users of the machine.

use crate::error::StoreError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a directory that only its owner may enter; one that is there already stays as it is.
pub(crate) fn make_dir(dir: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(StoreError::file("create the directory", dir))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Puts a file in its place, whole and for its owner only, over what was there.
///
/// # Errors
/// When it cannot be written; what was there stays then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (beside, dir) = write_beside(path, bytes)?;
    std::fs::rename(&beside, path)?;
    sync_dir(dir)
}

/// Puts a file in its place unless one is there; says whether it did.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (beside, dir) = write_beside(path, bytes)?;
    let linked = std::fs::hard_link(&beside, path);
    std::fs::remove_file(&beside)?;
    match linked {
        Ok(()) => sync_dir(dir).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The name carries the process id, so that two processes never write the same file.
fn write_beside<'a>(path: &'a Path, bytes: &[u8]) -> io::Result<(std::path::PathBuf, &'a Path)> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = private().write(true).create(true).truncate(true).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok((beside, dir))
}

/// Options for a file that only its owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_created_once_and_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thing");
        assert!(create(&path, b"first").unwrap());
        assert!(!create(&path, b"second").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        replace(&path, b"third").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn directories_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        make_dir(&inner).unwrap();
        make_dir(&inner).unwrap();
        assert_eq!(std::fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
