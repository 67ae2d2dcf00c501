//! The hand-over from one signing key of the log to the next.
//!
//! **Invariant:** both keys sign both names: the old one, so that nobody can slip in a key of their
//! own; the new one, so that nobody can claim somebody else's key.

use crate::cbor::Value;
use crate::note::{NoteSigner, VerifierKey};

/// A change of the log's signing key, as an entry of the log says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The key that signed until here.
    pub old: VerifierKey,
    /// The key that signs from here on.
    pub new: VerifierKey,
    by_old: [u8; 64],
    by_new: [u8; 64],
}

impl Rotation {
    /// Hands over.
    #[must_use]
    pub fn new(old: &NoteSigner, new: &NoteSigner) -> Self {
        let (was, is) = (old.verifier(), new.verifier());
        let message = message(&was, &is);
        Self { by_old: old.sign(&message), by_new: new.sign(&message), old: was, new: is }
    }

    /// Whether both keys agreed to it, in the name of one log.
    #[must_use]
    pub fn holds(&self) -> bool {
        let message = message(&self.old, &self.new);
        self.old.name() == self.new.name()
            && self.old != self.new
            && self.old.has_signed(&message, &self.by_old)
            && self.new.has_signed(&message, &self.by_new)
    }

    /// The public part of its entry.
    #[must_use]
    pub fn to_public(&self) -> Value {
        Value::map([
            ("new", self.new.to_string().as_str().into()),
            ("old", self.old.to_string().as_str().into()),
            ("by_new", Value::Bytes(self.by_new.to_vec())),
            ("by_old", Value::Bytes(self.by_old.to_vec())),
        ])
    }

    /// Reads the public part of an entry.
    #[must_use]
    pub fn from_public(public: &Value) -> Option<Self> {
        let key = |name| VerifierKey::parse(public.get(name)?.as_str()?).ok();
        let signature = |name| <[u8; 64]>::try_from(public.get(name)?.as_bytes()?).ok();
        let (by_old, by_new) = (signature("by_old")?, signature("by_new")?);
        Some(Self { old: key("old")?, new: key("new")?, by_old, by_new })
    }
}

fn message(old: &VerifierKey, new: &VerifierKey) -> Vec<u8> {
    format!("conclave.key.rotate.v1\n{old}\n{new}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(name: &str, seed: u8) -> NoteSigner {
        NoteSigner::new(name, &[seed; 32]).unwrap()
    }

    #[test]
    fn a_rotation_reads_back_and_holds() {
        let rotation = Rotation::new(&signer("log", 1), &signer("log", 2));
        assert!(rotation.holds());
        assert_eq!(Rotation::from_public(&rotation.to_public()), Some(rotation));
    }

    #[test]
    fn nobody_slips_in_a_key_of_their_own() {
        let rotation = Rotation::new(&signer("log", 1), &signer("log", 2));
        let thief = signer("log", 3).verifier();
        assert!(!Rotation { new: thief.clone(), ..rotation.clone() }.holds());
        assert!(!Rotation { old: thief, ..rotation.clone() }.holds());
        assert!(!Rotation { by_old: rotation.by_new, ..rotation }.holds());
        assert!(!Rotation::new(&signer("log", 1), &signer("other", 2)).holds());
        assert!(!Rotation::new(&signer("log", 1), &signer("log", 1)).holds());
        assert_eq!(Rotation::from_public(&Value::Null), None);
    }
}
