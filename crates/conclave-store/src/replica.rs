//! Who this installation is in the log.
//!
//! **Invariant:** a number is never given twice within a replica and epoch. When the identity was
//! lost, a new epoch begins, because nobody knows any more which numbers had been given.

use crate::durable;
use crate::error::StoreError;
use conclave_engine::Entropy;
use std::path::Path;

/// The name under which entries are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Random, drawn once.
    pub replica: [u8; 8],
    /// Counts how often the state was lost.
    pub epoch: u32,
}

impl Identity {
    /// Reads the identity of a data directory, or makes one. `known` is the last identity the
    /// database saw, for the case that the file was lost and the database was not.
    pub(crate) fn load(
        dir: &Path,
        known: Option<Self>,
        entropy: &dyn Entropy,
    ) -> Result<Self, StoreError> {
        let path = dir.join("replica");
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).ok_or_else(|| {
                let advice = "it should hold `v1`, 16 hex digits and a number; \
                              restore it, or remove it to begin a new epoch";
                StoreError::damaged(&path, advice)
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = Self::make(known, entropy);
                let written = durable::replace(&path, made.to_text().as_bytes());
                written.map_err(StoreError::file("write", &path)).map(|()| made)
            }
            Err(error) => Err(StoreError::file("read", &path)(error)),
        }
    }

    fn make(known: Option<Self>, entropy: &dyn Entropy) -> Self {
        if let Some(Self { replica, epoch }) = known {
            return Self { replica, epoch: epoch.saturating_add(1) };
        }
        let mut replica = [0; 8];
        entropy.fill(&mut replica);
        Self { replica, epoch: 1 }
    }

    fn to_text(self) -> String {
        format!("v1 {} {}\n", hex::encode(self.replica), self.epoch)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (version, replica, epoch) = (words.next()?, words.next()?, words.next()?);
        let replica = hex::decode(replica).ok()?.try_into().ok()?;
        let whole = version == "v1" && words.next().is_none();
        whole.then_some(Self { replica, epoch: epoch.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn an_identity_is_made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let made = Identity::load(dir.path(), None, &Sevens).unwrap();
        assert_eq!(made, Identity { replica: [7; 8], epoch: 1 });
        let other = Identity { replica: [1; 8], epoch: 9 };
        assert_eq!(Identity::load(dir.path(), Some(other), &Sevens).unwrap(), made);
    }

    #[test]
    fn a_lost_identity_begins_a_new_epoch() {
        let dir = tempfile::tempdir().unwrap();
        let known = Identity { replica: [1; 8], epoch: 9 };
        let made = Identity::load(dir.path(), Some(known), &Sevens).unwrap();
        assert_eq!(made, Identity { replica: [1; 8], epoch: 10 });
    }

    #[test]
    fn a_damaged_identity_is_not_guessed() {
        for text in ["", "v1", "v2 0707070707070707 1", "v1 07 1", "v1 0707070707070707 x"] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("replica"), text).unwrap();
            let sentence = Identity::load(dir.path(), None, &Sevens).unwrap_err().to_string();
            assert!(sentence.contains("is damaged"), "{sentence}");
        }
    }
}
