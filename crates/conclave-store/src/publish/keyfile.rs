//! The log's signing key on disk: `ledger.key`.
//!
//! **Invariant:** the file holds seeds; which of them signs is said by the log. A rotation that was
//! cut short leaves a seed that nobody uses.
//!
//! **Invariant:** a lost or damaged key is never replaced silently: the log would have a signer
//! nobody vouches for.

use crate::durable;
use crate::error::StoreError;
use conclave_engine::Entropy;
use conclave_ledger::{NoteSigner, VerifierKey};
use std::path::{Path, PathBuf};

/// The name of the file in the data directory.
pub(super) const FILE: &str = "ledger.key";
/// Its first line.
const FIRST_LINE: &str = "conclave-ledger-key v1";
const ADVICE: &str = "it should hold `conclave-ledger-key v1`, `origin NAME` and `seed` lines; \
                      restore it from a backup";

/// The seeds of one log.
#[derive(Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
    origin: String,
    /// Oldest first.
    seeds: Vec<[u8; 32]>,
}

/// One hand-over as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) seq: u64,
    pub(crate) old: String,
    pub(crate) new: String,
}

impl KeyFile {
    /// Reads the key of a data directory, or draws one if the log has never been signed.
    pub(crate) fn load_or_make(
        dir: &Path,
        origin: &str,
        was_signed: bool,
        entropy: &dyn Entropy,
    ) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        if path.exists() {
            return Self::load(dir);
        }
        if was_signed {
            let message = "it is missing, but the ledger has been signed; restore it from a backup";
            return Err(StoreError::damaged(&path, message));
        }
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let made = Self { path, origin: origin.to_owned(), seeds: vec![seed] };
        made.write()?;
        Ok(made)
    }

    /// Reads the key of a data directory.
    pub(crate) fn load(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(StoreError::file("read", &path))?;
        Self::parse(&path, &text).ok_or_else(|| StoreError::damaged(&path, ADVICE))
    }

    fn parse(path: &Path, text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let origin = lines.next()?.strip_prefix("origin ")?.to_owned();
        let seed = |line: &str| hex::decode(line.strip_prefix("seed ")?).ok()?.try_into().ok();
        let seeds = lines.map(seed).collect::<Option<Vec<[u8; 32]>>>()?;
        let whole = !seeds.is_empty() && NoteSigner::new(&origin, &[0; 32]).is_ok();
        whole.then(|| Self { path: path.to_owned(), origin, seeds })
    }

    fn write(&self) -> Result<(), StoreError> {
        let seeds = self.seeds.iter().map(|seed| format!("seed {}\n", hex::encode(seed)));
        let text = format!("{FIRST_LINE}\norigin {}\n{}", self.origin, seeds.collect::<String>());
        let written = durable::replace(&self.path, text.as_bytes());
        written.map_err(StoreError::file("write", &self.path))
    }

    /// The name of the log.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    fn all(&self) -> Vec<NoteSigner> {
        self.seeds.iter().filter_map(|seed| NoteSigner::new(&self.origin, seed).ok()).collect()
    }

    /// Who signs after these hand-overs: the newest key first, then the one before it for as long
    /// as its seed is kept.
    pub(crate) fn signers(&self, handovers: &[Handover]) -> Result<Vec<NoteSigner>, StoreError> {
        let signers = self.all();
        let Some(last) = handovers.last() else {
            return Ok(signers.into_iter().take(1).collect());
        };
        let find = |vkey: &str| signers.iter().find(|s| s.verifier().to_string() == vkey).cloned();
        let Some(current) = find(&last.new) else {
            let message = format!("it does not hold the key in force, {}; {ADVICE}", last.new);
            return Err(StoreError::damaged(&self.path, message));
        };
        Ok(std::iter::once(current).chain(find(&last.old)).collect())
    }

    /// Every key that ever signed, the one in force first.
    pub(crate) fn verifiers(&self, handovers: &[Handover]) -> Vec<VerifierKey> {
        let mut keys: Vec<VerifierKey> = Vec::new();
        let signers = self.signers(handovers).unwrap_or_default();
        let told = handovers.iter().rev().flat_map(|handover| [&handover.new, &handover.old]);
        let told = told.filter_map(|vkey| VerifierKey::parse(vkey).ok());
        for key in signers.iter().map(NoteSigner::verifier).chain(told) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Adds a drawn seed, durably, and drops those that are neither in force nor in overlap.
    pub(crate) fn add(
        &mut self,
        handovers: &[Handover],
        entropy: &dyn Entropy,
    ) -> Result<(NoteSigner, NoteSigner), StoreError> {
        let current = self.signers(handovers)?.into_iter().next();
        let current = current.ok_or_else(|| StoreError::damaged(&self.path, ADVICE))?;
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let next = NoteSigner::new(&self.origin, &seed);
        let next = next.map_err(|_| StoreError::damaged(&self.path, ADVICE))?;
        self.retain(std::slice::from_ref(&current));
        self.seeds.push(seed);
        self.write()?;
        Ok((current, next))
    }

    /// Ends the overlap: only the key in force is kept. Says whether there was another.
    pub(crate) fn end_overlap(&mut self, handovers: &[Handover]) -> Result<bool, StoreError> {
        let signers = self.signers(handovers)?;
        let before = self.seeds.len();
        self.retain(&signers[..signers.len().min(1)]);
        if self.seeds.len() == before {
            return Ok(false);
        }
        self.write().map(|()| true)
    }

    fn retain(&mut self, kept: &[NoteSigner]) {
        let origin = &self.origin;
        self.seeds.retain(|seed| {
            let key = NoteSigner::new(origin, seed).map(|signer| signer.verifier());
            key.is_ok_and(|key| kept.iter().any(|signer| signer.verifier() == key))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU8, Ordering};

    struct Counting(AtomicU8);
    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    #[test]
    fn a_key_is_drawn_once_kept_private_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let entropy = Counting(AtomicU8::new(1));
        let made = KeyFile::load_or_make(dir.path(), "log", false, &entropy).unwrap();
        let again = KeyFile::load_or_make(dir.path(), "other", true, &entropy).unwrap();
        assert_eq!((made.origin(), &made.seeds), (again.origin(), &again.seeds));
        let path = dir.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        let lost = KeyFile::load_or_make(dir.path(), "log", true, &entropy).err().unwrap();
        assert!(lost.to_string().contains("has been signed"), "{lost}");
        for text in ["", "conclave-ledger-key v1\norigin a b\nseed 00\n", "x\norigin a\n"] {
            std::fs::write(&path, text).unwrap();
            let sentence = KeyFile::load(dir.path()).err().unwrap().to_string();
            assert!(sentence.contains("is damaged"), "{sentence}");
        }
    }

    #[test]
    fn the_log_says_which_seed_signs() {
        let dir = tempfile::tempdir().unwrap();
        let entropy = Counting(AtomicU8::new(1));
        let mut file = KeyFile::load_or_make(dir.path(), "log", false, &entropy).unwrap();
        let (old, new) = file.add(&[], &entropy).unwrap();
        let vkeys = |signers: Vec<NoteSigner>| -> Vec<_> {
            signers.iter().map(|signer| signer.verifier().to_string()).collect()
        };
        let (was, is) = (old.verifier().to_string(), new.verifier().to_string());
        assert_eq!(
            vkeys(file.signers(&[]).unwrap()),
            std::slice::from_ref(&was),
            "before the log says so"
        );
        let handovers = [Handover { seq: 3, old: was.clone(), new: is.clone() }];
        assert_eq!(vkeys(file.signers(&handovers).unwrap()), [is.clone(), was.clone()]);
        assert!(file.end_overlap(&handovers).unwrap());
        assert!(!file.end_overlap(&handovers).unwrap());
        let file = KeyFile::load(dir.path()).unwrap();
        assert_eq!(vkeys(file.signers(&handovers).unwrap()), std::slice::from_ref(&is));
        let known: Vec<_> = file.verifiers(&handovers).iter().map(ToString::to_string).collect();
        assert_eq!(known, [is, was.clone()], "old keys stay known");
        let unknown = [Handover { seq: 9, old: was.clone(), new: was }];
        assert!(file.signers(&unknown).is_err());
    }
}
