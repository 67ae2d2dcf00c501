//! Signed notes: a text with Ed25519 signatures below it, in the format of C2SP signed-note.
//!
//! **Invariant:** a note has one form. What was opened and is written again is the same bytes.
//!
//! **Invariant:** a seed is never printed: neither type here shows its secret part.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;

/// The signature type of plain Ed25519.
const ED25519: u8 = 1;
/// The longest note that is read: no checkpoint of ours comes near it.
const NOTE_BYTES_MAX: usize = 64 << 10;
/// More signatures than this are not read.
const SIGNATURES_MAX: usize = 64;
/// The longest name of a key.
const NAME_BYTES_MAX: usize = 256;
/// What a signature line begins with: a dash and a space.
pub(crate) const LINE_START: &str = "\u{2014} ";

/// Why a text is not a verifier key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifierKeyError {
    /// Not `name+id+key`.
    #[error("a verifier key looks like `name+0123abcd+base64`")]
    Form,
    /// A name that cannot stand in a note.
    #[error(
        "the name of a key must not be empty, longer than {NAME_BYTES_MAX} bytes or hold spaces or `+`"
    )]
    Name,
    /// Another algorithm.
    #[error("only Ed25519 keys are known")]
    Algorithm,
    /// The id is not that of name and key.
    #[error("the key id does not belong to this name and key; the text was mistyped or altered")]
    Id,
}

/// The public half of a key that signs notes.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    key: VerifyingKey,
}

impl VerifierKey {
    /// Reads the text form.
    ///
    /// # Errors
    /// When it is not one, or its id does not fit.
    pub fn parse(text: &str) -> Result<Self, VerifierKeyError> {
        let text = text.trim();
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VerifierKeyError::Form);
        };
        check_name(name)?;
        let key = STANDARD.decode(key).map_err(|_| VerifierKeyError::Form)?;
        let (algorithm, key) = key.split_first().ok_or(VerifierKeyError::Form)?;
        if *algorithm != ED25519 {
            return Err(VerifierKeyError::Algorithm);
        }
        let bytes: &[u8; 32] = key.try_into().map_err(|_| VerifierKeyError::Form)?;
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| VerifierKeyError::Form)?;
        let parsed = Self { name: name.to_owned(), key };
        if id == hex::encode(parsed.id()) { Ok(parsed) } else { Err(VerifierKeyError::Id) }
    }

    /// The name that stands before the signatures.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The four bytes that tell keys of one name apart.
    #[must_use]
    pub fn id(&self) -> [u8; 4] {
        let digest = Sha256::new()
            .chain_update(self.name.as_bytes())
            .chain_update(b"\n")
            .chain_update([ED25519])
            .chain_update(self.key.as_bytes())
            .finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// Whether the key signed these bytes.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![ED25519];
        key.extend_from_slice(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, hex::encode(self.id()), STANDARD.encode(key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifierKey({self})")
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), VerifierKeyError> {
    let odd = |c: char| c == '+' || c.is_whitespace() || c.is_control();
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(odd);
    if fits { Ok(()) } else { Err(VerifierKeyError::Name) }
}

/// A key that signs notes.
#[derive(Clone)]
pub struct NoteSigner {
    name: String,
    key: SigningKey,
}

impl NoteSigner {
    /// The signer with this name and private seed.
    ///
    /// # Errors
    /// When the name cannot stand in a note.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, VerifierKeyError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), key: SigningKey::from_bytes(seed) })
    }

    /// The public half.
    #[must_use]
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey { name: self.name.clone(), key: self.key.verifying_key() }
    }

    /// Signs bytes; the same bytes always get the same signature.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for NoteSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoteSigner({})", self.verifier())
    }
}

/// Why bytes are not a note, or not one to believe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoteError {
    /// Not text, a blank line and signature lines.
    #[error("this is not a signed note: {0}")]
    Form(&'static str),
    /// Nobody known has signed.
    #[error("no known key has signed this note")]
    Unsigned,
    /// A known key's signature does not fit the text.
    #[error("the signature of {0} is wrong")]
    Wrong(String),
}

/// One signature line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoteSignature {
    pub(crate) name: String,
    pub(crate) key_id: [u8; 4],
    pub(crate) bytes: Vec<u8>,
}

/// A text and the signatures below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl SignedNote {
    /// Signs a text, which must end with a line break.
    #[must_use]
    pub fn sign(text: &str, signers: &[NoteSigner]) -> Self {
        let signatures = signers.iter().map(|signer| NoteSignature {
            name: signer.name.clone(),
            key_id: signer.verifier().id(),
            bytes: signer.sign(text.as_bytes()).to_vec(),
        });
        Self { text: text.to_owned(), signatures: signatures.collect() }
    }

    /// Reads a note; says nothing yet about whether it is to be believed.
    ///
    /// # Errors
    /// When the form is not that of a note.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(NoteError::Form("it is too long"));
        }
        if note.chars().any(|c| c.is_control() && c != '\n') {
            return Err(NoteError::Form("it holds control characters"));
        }
        let cut = note.rfind("\n\n").ok_or(NoteError::Form("there are no signatures"))?;
        let (text, lines) = (&note[..=cut], &note[cut + 2..]);
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Form("the last line is cut off"))?;
        let signatures = lines.split('\n').take(SIGNATURES_MAX + 1).map(parse_signature);
        let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
        if signatures.len() > SIGNATURES_MAX {
            return Err(NoteError::Form("it has too many signatures"));
        }
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// What is signed, its last line break included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The keys among these that signed the text; signatures of others are ignored.
    ///
    /// # Errors
    /// When none did, or one of them is named and the signature is wrong.
    pub fn signed_by<'k>(
        &self,
        known: &'k [VerifierKey],
    ) -> Result<Vec<&'k VerifierKey>, NoteError> {
        let mut signers = Vec::new();
        for signature in &self.signatures {
            let named =
                |key: &&VerifierKey| key.name == signature.name && key.id() == signature.key_id;
            let Some(key) = known.iter().find(named) else { continue };
            let bytes = signature.bytes.as_slice().try_into();
            if !bytes.is_ok_and(|bytes| key.has_signed(self.text.as_bytes(), bytes)) {
                return Err(NoteError::Wrong(key.to_string()));
            }
            if !signers.contains(&key) {
                signers.push(key);
            }
        }
        if signers.is_empty() { Err(NoteError::Unsigned) } else { Ok(signers) }
    }
}

pub(crate) fn parse_signature(line: &str) -> Result<NoteSignature, NoteError> {
    const BAD: NoteError = NoteError::Form("a signature line cannot be read");
    let (name, signature) =
        line.strip_prefix(LINE_START).and_then(|line| line.split_once(' ')).ok_or(BAD)?;
    check_name(name).map_err(|_| BAD)?;
    let bytes = STANDARD.decode(signature).map_err(|_| BAD)?;
    let (key_id, bytes) = bytes.split_first_chunk::<4>().ok_or(BAD)?;
    if bytes.is_empty() {
        return Err(BAD);
    }
    Ok(NoteSignature { name: name.to_owned(), key_id: *key_id, bytes: bytes.to_vec() })
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        for NoteSignature { name, key_id, bytes } in &self.signatures {
            let signature = STANDARD.encode([key_id.as_slice(), bytes].concat());
            writeln!(f, "{LINE_START}{name} {signature}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "note_tests.rs"]
mod tests;
