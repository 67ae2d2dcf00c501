//! Checkpoints: how large the log was and what its root was, in the form of C2SP tlog-checkpoint.
//!
//! **Invariant:** a checkpoint has one form: numbers without leading zeros, canonical base64.

use crate::note::{NoteError, NoteSigner, SignedNote, VerifierKey};
use crate::tree::Hash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use thiserror::Error;

/// What a log has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log.
    pub origin: String,
    /// How many entries.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
    /// Further lines; we write none and keep those of others.
    pub extensions: Vec<String>,
}

/// Why a note is not a checkpoint to believe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The note cannot be read or believed.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The text is not that of a checkpoint.
    #[error("this is not a checkpoint: {0}")]
    Form(&'static str),
    /// The origin is not the name of the key.
    #[error("the checkpoint speaks of the log `{0}`, which is not the name of its key")]
    Origin(String),
}

impl Checkpoint {
    /// A checkpoint without further lines.
    #[must_use]
    pub fn new(origin: &str, size: u64, root: Hash) -> Self {
        Self { origin: origin.to_owned(), size, root, extensions: Vec::new() }
    }

    /// The signed note.
    #[must_use]
    pub fn sign(&self, signers: &[NoteSigner]) -> String {
        SignedNote::sign(&self.to_string(), signers).to_string()
    }

    /// Reads the text of a note.
    ///
    /// # Errors
    /// When it is not the one form of a checkpoint.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let bad = CheckpointError::Form;
        let mut lines = text.strip_suffix('\n').ok_or(bad("the last line is cut off"))?.split('\n');
        let origin = lines.next().filter(|line| !line.is_empty()).ok_or(bad("no origin"))?;
        let size = lines.next().and_then(parse_number).ok_or(bad("no size"))?;
        let root = lines.next().and_then(parse_hash).ok_or(bad("no root"))?;
        let extensions: Vec<_> = lines.map(str::to_owned).collect();
        if extensions.iter().any(String::is_empty) {
            return Err(bad("it has an empty line"));
        }
        Ok(Self { origin: origin.to_owned(), size, root, extensions })
    }

    /// Reads a signed note and believes it if one of these keys signed it in the name of its log.
    ///
    /// # Errors
    /// When it is no checkpoint, or none of the keys has signed it.
    pub fn open(note: &str, keys: &[VerifierKey]) -> Result<Self, CheckpointError> {
        let note = SignedNote::parse(note)?;
        let signers = note.signed_by(keys)?;
        let checkpoint = Self::parse(note.text())?;
        if signers.iter().any(|key| key.name() == checkpoint.origin) {
            Ok(checkpoint)
        } else {
            Err(CheckpointError::Origin(checkpoint.origin))
        }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, STANDARD.encode(self.root))?;
        self.extensions.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A decimal number without leading zeros or sign.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// A hash in base64.
pub(crate) fn parse_hash(text: &str) -> Option<Hash> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(name: &str, seed: u8) -> NoteSigner {
        NoteSigner::new(name, &[seed; 32]).unwrap()
    }

    #[test]
    fn what_was_signed_opens_and_nothing_else_does() {
        let (ours, other) = (signer("log.example", 1), signer("log.example", 2));
        let checkpoint = Checkpoint::new("log.example", 70_000, [7; 32]);
        let note = checkpoint.sign(std::slice::from_ref(&ours));
        let keys = [ours.verifier()];
        assert_eq!(Checkpoint::open(&note, &keys), Ok(checkpoint.clone()));
        let stranger = Checkpoint::open(&note, &[other.verifier()]);
        assert_eq!(stranger, Err(NoteError::Unsigned.into()));
        let larger = note.replacen("70000", "70001", 1);
        let opened = Checkpoint::open(&larger, &keys);
        assert_eq!(opened, Err(NoteError::Wrong(keys[0].to_string()).into()));
        let elsewhere = Checkpoint::new("other.example", 1, [7; 32]).sign(&[ours]);
        let opened = Checkpoint::open(&elsewhere, &keys);
        assert_eq!(opened, Err(CheckpointError::Origin("other.example".into())));
    }

    #[test]
    fn during_a_rotation_either_key_opens_the_note() {
        let (old, new) = (signer("log.example", 1), signer("log.example", 2));
        let checkpoint = Checkpoint::new("log.example", 9, [7; 32]);
        let note = checkpoint.sign(&[new.clone(), old.clone()]);
        for key in [old.verifier(), new.verifier()] {
            assert_eq!(Checkpoint::open(&note, &[key]), Ok(checkpoint.clone()));
        }
    }

    #[test]
    fn only_the_one_form_is_read() {
        let root = STANDARD.encode([7; 32]);
        let good = format!("o\n5\n{root}\nmore\n");
        assert_eq!(Checkpoint::parse(&good).unwrap().to_string(), good);
        for bad in [
            String::new(),
            format!("o\n5\n{root}"),
            format!("o\n05\n{root}\n"),
            format!("o\n+5\n{root}\n"),
            format!("o\n-1\n{root}\n"),
            format!("o\n18446744073709551616\n{root}\n"),
            format!("\n5\n{root}\n"),
            format!("o\n5\n{root}=\n"),
            format!("o\n5\n{}\n", STANDARD.encode([7; 31])),
            format!("o\n5\n{root}\n\n"),
        ] {
            assert!(Checkpoint::parse(&bad).is_err(), "{bad:?}");
        }
    }
}
