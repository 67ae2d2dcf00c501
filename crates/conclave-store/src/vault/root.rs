//! The root key: the one secret that opens all others.
//!
//! **Invariant:** a root key that was replaced is overwritten before it is unlinked, and at every
//! moment of the replacement one of the two files opens the database.

use super::wrap::{Secret, draw};
use crate::durable;
use crate::error::StoreError;
use conclave_engine::Entropy;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// A root key that is kept outside of the data directory.
#[derive(Clone)]
pub struct RootKey(pub(crate) Secret);

impl RootKey {
    /// Reads it from text: 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is anything else; the text is not repeated.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let mut secret = Zeroizing::new([0; 32]);
        match hex::decode_to_slice(text.trim(), &mut *secret) {
            Ok(()) => Ok(Self(secret)),
            Err(_) => {
                let advice = "a root key is 64 hexadecimal digits; \
                              `openssl rand -hex 32` makes one";
                Err(StoreError::Key(advice.to_owned()))
            }
        }
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootKey(..)")
    }
}

/// The files in which a root key of our own is kept.
#[derive(Clone, Debug)]
pub(super) struct RootFiles {
    current: PathBuf,
    next: PathBuf,
}

impl RootFiles {
    pub(super) fn of(dir: &Path) -> Self {
        Self { current: dir.join("root.key"), next: dir.join("root.key.next") }
    }

    /// Whether a key is there.
    pub(super) fn exist(&self) -> bool {
        self.current.exists() || self.next.exists()
    }

    /// Draws the first key.
    pub(super) fn create(&self, entropy: &dyn Entropy) -> Result<Secret, StoreError> {
        let secret = draw(entropy);
        let written = durable::replace(&self.current, to_text(&secret).as_bytes());
        written.map_err(StoreError::file("write", &self.current)).map(|()| secret)
    }

    /// The key that `opens` the database, whichever of the files holds it. A replacement that was
    /// interrupted is finished when `mend` says so.
    pub(super) fn load(
        &self,
        opens: impl Fn(&Secret) -> bool,
        mend: bool,
    ) -> Result<Secret, StoreError> {
        let found = |path: &Path| read(path).filter(|secret| opens(secret));
        if let Some(secret) = found(&self.current) {
            if mend {
                destroy(&self.next).map_err(StoreError::file("remove", &self.next))?;
            }
            return Ok(secret);
        }
        let Some(secret) = found(&self.next) else {
            let advice = "it does not open keys.db; restore the one that belongs to it";
            return Err(StoreError::damaged(&self.current, advice));
        };
        if mend {
            self.finish().map_err(StoreError::file("replace", &self.current))?;
        }
        Ok(secret)
    }

    /// Writes the next key beside the current one.
    pub(super) fn prepare(&self, secret: &Secret) -> Result<(), StoreError> {
        let written = durable::replace(&self.next, to_text(secret).as_bytes());
        written.map_err(StoreError::file("write", &self.next))
    }

    /// Overwrites the current key and puts the next one in its place.
    pub(super) fn finish(&self) -> io::Result<()> {
        overwrite(&self.current)?;
        std::fs::rename(&self.next, &self.current)?;
        self.current.parent().map_or(Ok(()), durable::sync_dir)
    }
}

fn to_text(secret: &Secret) -> Zeroizing<String> {
    Zeroizing::new(hex::encode(secret.as_slice()) + "\n")
}

fn read(path: &Path) -> Option<Secret> {
    let mut text = std::fs::read_to_string(path).ok()?;
    let parsed = RootKey::parse(&text).ok();
    text.zeroize();
    parsed.map(|RootKey(secret)| secret)
}

/// Overwrites a file where it stands; one that is not there needs nothing.
fn overwrite(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0).min(1 << 16);
    file.write_all(&vec![b'0'; length])?;
    file.sync_all()
}

fn destroy(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    overwrite(path)?;
    std::fs::remove_file(path)?;
    path.parent().map_or(Ok(()), durable::sync_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn a_key_is_64_digits_and_never_repeated() {
        assert!(RootKey::parse(&"ab".repeat(32)).is_ok());
        for bad in ["", "secret words", &"ab".repeat(31), &"zz".repeat(32)] {
            let sentence = RootKey::parse(bad).unwrap_err().to_string();
            assert!(sentence.contains("64 hexadecimal digits"), "{sentence}");
            assert!(bad.is_empty() || !sentence.contains(bad), "{sentence}");
        }
        assert_eq!(format!("{:?}", RootKey(secret(1))), "RootKey(..)");
    }

    #[test]
    fn an_interrupted_replacement_is_finished_or_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let files = RootFiles::of(dir.path());
        std::fs::write(&files.current, to_text(&secret(1)).as_bytes()).unwrap();
        files.prepare(&secret(2)).unwrap();
        // The database was not changed yet: the old one is the one.
        let loaded = files.load(|root| **root == [1; 32], true).unwrap();
        assert_eq!((*loaded, files.next.exists()), ([1; 32], false));
        // It was: the next one is.
        files.prepare(&secret(2)).unwrap();
        let loaded = files.load(|root| **root == [2; 32], true).unwrap();
        assert_eq!((*loaded, files.next.exists()), ([2; 32], false));
        assert_eq!(read(&files.current).as_deref(), Some(&[2; 32]));
        let sentence = files.load(|_| false, true).unwrap_err().to_string();
        assert!(sentence.contains("does not open keys.db"), "{sentence}");
    }
}
