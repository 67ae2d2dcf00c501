//! Cosignatures: that somebody else has seen a checkpoint and that it extends all they saw before, in the
//! form of C2SP tlog-cosignature, and the request of C2SP tlog-witness that asks for one.
//!
//! **Invariant:** a line that a witness sent is believed only if the key that was configured for it has
//! signed this very checkpoint; everything else in an answer is ignored.

use crate::note::{
    LINE_START, NoteError, NoteSignature, SignedNote, VerifierKeyError, check_name, parse_signature,
};
use crate::tree::Hash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;

/// The signature type of Ed25519 cosignatures.
const COSIGNATURE: u8 = 4;
/// More lines of an answer than this are not read.
const LINES_MAX: usize = 64;

/// The public half of a witness' key.
#[derive(Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    key: VerifyingKey,
}

/// A cosignature that was found true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// The line as it stands below a checkpoint, its line break included.
    pub line: String,
    /// When the witness signed, by its own clock, in seconds since 1970.
    pub time: u64,
}

impl WitnessKey {
    /// Reads the text form, `name+id+base64`, of a key for Ed25519 cosignatures.
    ///
    /// # Errors
    /// When it is not one, or its id does not fit.
    pub fn parse(text: &str) -> Result<Self, VerifierKeyError> {
        let mut parts = text.trim().splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VerifierKeyError::Form);
        };
        check_name(name)?;
        let key = STANDARD.decode(key).map_err(|_| VerifierKeyError::Form)?;
        let (algorithm, key) = key.split_first().ok_or(VerifierKeyError::Form)?;
        if *algorithm != COSIGNATURE {
            return Err(VerifierKeyError::Algorithm);
        }
        let bytes: &[u8; 32] = key.try_into().map_err(|_| VerifierKeyError::Form)?;
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| VerifierKeyError::Form)?;
        let parsed = Self { name: name.to_owned(), key };
        if id == hex::encode(parsed.id()) { Ok(parsed) } else { Err(VerifierKeyError::Id) }
    }

    /// The name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> [u8; 4] {
        let digest = Sha256::new()
            .chain_update(self.name.as_bytes())
            .chain_update(b"\n")
            .chain_update([COSIGNATURE])
            .chain_update(self.key.as_bytes())
            .finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// The cosignature of this witness among the lines of its answer.
    ///
    /// # Errors
    /// When there is none of it, or one that is wrong.
    pub fn find(&self, answer: &str, note: &str) -> Result<Cosignature, NoteError> {
        let note = SignedNote::parse(note)?;
        for line in answer.lines().take(LINES_MAX).filter(|line| line.starts_with(LINE_START)) {
            let Ok(NoteSignature { name, key_id, bytes }) = parse_signature(line) else { continue };
            if name != self.name || key_id != self.id() {
                continue;
            }
            let wrong = || NoteError::Wrong(self.to_string());
            let (time, signature) = bytes.split_first_chunk::<8>().ok_or_else(wrong)?;
            let signature: &[u8; 64] = signature.try_into().map_err(|_| wrong())?;
            let time = u64::from_be_bytes(*time);
            let message = message(time, note.text());
            let holds = self.key.verify_strict(&message, &Signature::from_bytes(signature)).is_ok();
            if !holds || time == 0 || i64::try_from(time).is_err() {
                return Err(wrong());
            }
            return Ok(Cosignature { line: format!("{line}\n"), time });
        }
        Err(NoteError::Unsigned)
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[COSIGNATURE], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{}+{}", self.name, hex::encode(self.id()), STANDARD.encode(key))
    }
}

impl fmt::Debug for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WitnessKey({self})")
    }
}

/// What is signed: a header, the time and the whole text of the checkpoint.
fn message(time: u64, text: &str) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}

/// A key that cosigns.
#[derive(Clone)]
pub struct WitnessSigner {
    name: String,
    key: SigningKey,
}

impl WitnessSigner {
    /// The witness with this name and private seed.
    ///
    /// # Errors
    /// When the name cannot stand in a note.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, VerifierKeyError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), key: SigningKey::from_bytes(seed) })
    }

    /// The public half.
    #[must_use]
    pub fn key(&self) -> WitnessKey {
        WitnessKey { name: self.name.clone(), key: self.key.verifying_key() }
    }

    /// Cosigns the text of a checkpoint; returns the line.
    #[must_use]
    pub fn cosign(&self, text: &str, time: u64) -> String {
        let signature = self.key.sign(&message(time, text)).to_bytes();
        let (id, time) = (self.key().id(), time.to_be_bytes());
        let bytes = [id.as_slice(), time.as_slice(), signature.as_slice()].concat();
        format!("{LINE_START}{} {}\n", self.name, STANDARD.encode(bytes))
    }
}

impl fmt::Debug for WitnessSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WitnessSigner({})", self.key())
    }
}

/// The body of a request to cosign a checkpoint: the size the witness saw last, the proof from there, and
/// the note.
#[must_use]
pub fn witness_request(old: u64, proof: &[Hash], note: &str) -> String {
    let proof: String = proof.iter().map(|hash| STANDARD.encode(hash) + "\n").collect();
    format!("old {old}\n{proof}\n{note}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint, NoteSigner, VerifierKey};

    const NOTE: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

    fn witness() -> WitnessSigner {
        WitnessSigner::new("witness.example/w1", &[9; 32]).unwrap()
    }

    #[test]
    fn a_key_is_read_as_it_is_written_and_no_other_kind_is() {
        let key = witness().key();
        assert_eq!(WitnessKey::parse(&key.to_string()).unwrap(), key);
        assert_eq!(key.name(), "witness.example/w1");
        let log = NoteSigner::new("witness.example/w1", &[9; 32]).unwrap().verifier();
        assert_eq!(WitnessKey::parse(&log.to_string()), Err(VerifierKeyError::Algorithm));
        assert!(VerifierKey::parse(&key.to_string()).is_err(), "it signs no checkpoints");
        let strange = key.to_string().replace("w1", "w2");
        assert_eq!(WitnessKey::parse(&strange), Err(VerifierKeyError::Id));
        for text in ["", "a+b", "a+00000000+!!", "a b+00000000+AAAA"] {
            assert!(WitnessKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cosignature_holds_for_its_checkpoint_alone_and_strangers_are_ignored() {
        let (ours, other) = (witness(), WitnessSigner::new("other.example", &[8; 32]).unwrap());
        let text = SignedNote::parse(NOTE).unwrap().text().to_owned();
        let line = ours.cosign(&text, 1_679_315_147);
        let answer = format!("{}nonsense\n{line}", other.cosign(&text, 5));
        let found = ours.key().find(&answer, NOTE).unwrap();
        assert_eq!((found.line.as_str(), found.time), (line.as_str(), 1_679_315_147));
        // Below the note it is a signature like any other, and the note is still read.
        let cosigned = format!("{NOTE}{line}");
        assert_eq!(SignedNote::parse(&cosigned).unwrap().to_string(), cosigned);
        assert_eq!(ours.key().find(&other.cosign(&text, 5), NOTE), Err(NoteError::Unsigned));
        let elsewhere = Checkpoint::new("example.com/behind-the-sofa", 7, [1; 32]).to_string();
        let wrong = ours.key().find(&ours.cosign(&elsewhere, 5), NOTE);
        assert!(matches!(wrong, Err(NoteError::Wrong(_))), "{wrong:?}");
        assert!(ours.key().find(&ours.cosign(&text, 0), NOTE).is_err(), "without a time");
        for cut in ["", "\u{2014} witness.example/w1 AAAA\n", "\u{2014} witness.example/w1\n"] {
            assert!(ours.key().find(cut, NOTE).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn a_request_names_the_old_size_the_proof_and_the_note() {
        let request = witness_request(20, &[[0; 32]], "log\n");
        assert_eq!(request, format!("old 20\n{}=\n\nlog\n", "A".repeat(43)));
        assert_eq!(witness_request(0, &[], "log\n"), "old 0\n\nlog\n");
    }
}
