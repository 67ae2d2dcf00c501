//! The second spool directory, on another disk, for the day the first one fails.
//!
//! **Invariant:** nothing starts while the second directory may hold entries that cannot be read:
//! they would be stated as missing although they are durable. The data directory notes where it is,
//! and the directory notes whose it is; an empty mount point has no such note.

use crate::durable::{create, make_dir, replace, sync_dir};
use crate::error::StoreError;
use crate::lock::DirLock;
use crate::replica::Identity;
use crate::spool::list_segments;
use std::io;
use std::path::{Path, PathBuf};

/// In the data directory: where the second directory is.
const NOTE: &str = "spool-fallback";
/// In the second directory: whose it is.
const OWNER: &str = "owner";

/// A second spool directory, held for this process.
#[derive(Debug)]
pub(crate) struct Fallback {
    pub(crate) dir: PathBuf,
    _lock: DirLock,
}

impl Fallback {
    /// Takes the configured directory, and sees to it that none of an earlier run is forgotten.
    ///
    /// # Errors
    /// When a directory that may hold entries cannot be read, or belongs to somebody else.
    pub(crate) fn take(
        data: &Path,
        configured: Option<&Path>,
        identity: Identity,
    ) -> Result<Option<Self>, StoreError> {
        let note = data.join(NOTE);
        if let Some(noted) = noted(data)? {
            check_owner(&noted, &note, identity)?;
            let left = list_segments(&noted).map_err(StoreError::file("read", &noted))?;
            if configured != Some(noted.as_path()) {
                if !left.is_empty() {
                    return Err(StoreError::SpoolElsewhere { dir: noted });
                }
                std::fs::remove_file(&note).map_err(StoreError::file("remove", &note))?;
            }
        }
        let Some(dir) = configured else { return Ok(None) };
        let lock = DirLock::take(dir)?;
        make_dir(dir)?;
        let owner = dir.join(OWNER);
        create(&owner, owner_text(identity).as_bytes())
            .map_err(StoreError::file("write", &owner))?;
        check_owner(dir, &note, identity)?;
        let text = format!("{}\n", dir.display());
        replace(&note, text.as_bytes()).map_err(StoreError::file("write", &note))?;
        sync_dir(dir).map_err(StoreError::file("sync", dir))?;
        Ok(Some(Self { dir: dir.to_owned(), _lock: lock }))
    }
}

/// Every directory in which entries of a data directory may stand.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn spool_dirs(data: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut dirs = vec![data.join("spool")];
    if let Some(dir) = noted(data)? {
        let note = data.join(NOTE);
        match std::fs::metadata(dir.join(OWNER)) {
            Ok(_) => dirs.push(dir),
            Err(source) => return Err(StoreError::SpoolUnreadable { dir, note, source }),
        }
    }
    Ok(dirs)
}

/// Where the second directory of a data directory is, if it has one.
fn noted(data: &Path) -> Result<Option<PathBuf>, StoreError> {
    let note = data.join(NOTE);
    match std::fs::read_to_string(&note) {
        Ok(text) => Ok(Some(PathBuf::from(text.trim_end_matches('\n')))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::file("read", &note)(error)),
    }
}

fn owner_text(identity: Identity) -> String {
    format!("v1 {}\n", hex::encode(identity.replica))
}

fn check_owner(dir: &Path, note: &Path, identity: Identity) -> Result<(), StoreError> {
    match std::fs::read_to_string(dir.join(OWNER)) {
        Ok(text) if text == owner_text(identity) => Ok(()),
        Ok(_) => Err(StoreError::SpoolOfOther { dir: dir.to_owned() }),
        Err(source) => {
            Err(StoreError::SpoolUnreadable { dir: dir.to_owned(), note: note.to_owned(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { replica: [1; 8], epoch: 1 };

    fn take(data: &Path, configured: Option<&Path>) -> Result<Option<Fallback>, String> {
        Fallback::take(data, configured, OURS).map_err(|error| error.to_string())
    }

    #[test]
    fn a_second_directory_is_noted_and_may_be_given_up_when_it_is_empty() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = other.path().join("spool");
        assert!(take(data.path(), None).unwrap().is_none());
        let held = take(data.path(), Some(&dir)).unwrap().unwrap();
        assert_eq!(noted(data.path()).unwrap(), Some(dir.clone()));
        assert!(take(data.path(), Some(&dir)).unwrap_err().contains("another conclave"));
        drop(held);
        let segment = dir.join("0000000000000001-0000000000000001.seg");
        std::fs::write(&segment, b"").unwrap();
        let sentence = take(data.path(), None).unwrap_err();
        assert!(sentence.contains("still stand in"), "{sentence}");
        std::fs::remove_file(segment).unwrap();
        assert!(take(data.path(), None).unwrap().is_none());
        assert_eq!(noted(data.path()).unwrap(), None);
    }

    #[test]
    fn a_disk_that_is_not_mounted_stops_the_start_with_a_sentence() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(take(data.path(), Some(other.path())).unwrap());
        std::fs::remove_file(other.path().join(OWNER)).unwrap();
        for configured in [None, Some(other.path())] {
            let sentence = take(data.path(), configured).unwrap_err();
            assert!(sentence.contains("is its disk mounted?"), "{sentence}");
        }
    }

    #[test]
    fn two_installations_never_share_one() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(other.path().join(OWNER), "v1 0909090909090909\n").unwrap();
        let sentence = take(data.path(), Some(other.path())).unwrap_err();
        assert!(sentence.contains("belongs to another installation"), "{sentence}");
    }
}
