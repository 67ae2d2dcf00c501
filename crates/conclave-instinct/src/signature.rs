//! Signing a set of directives, and checking a signature under the pinned key.
//!
//! **Invariant:** what is signed is [`DOMAIN`] and then the exact bytes of the file, so that a
//! signature made for anything else with the same key never passes for one of directives.
//!
//! **Invariant:** keys and signatures have one spelling (lower-case hex, at most one end of line),
//! so that there is no changed byte that changes nothing.

use crate::InstinctError;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;

/// Stands before the file in what is signed.
const DOMAIN: &[u8] = b"conclave.directives.v1\0";

/// The key the project's own set is signed with.
const SHIPPED_KEY: &str = include_str!("../../../data/directives/pinned.pub");

/// The key an organisation pins instead when it builds the program.
const ORGANISATION_KEY: Option<&str> = option_env!("CONCLAVE_DIRECTIVES_KEY");

/// The public key that directives must be signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedKey(VerifyingKey);

impl PinnedKey {
    /// Reads a public key: 64 lower-case hex digits, with or without an end of line.
    ///
    /// # Errors
    /// When it is spelled otherwise, is no point of the curve, or is one under which forgery is
    /// easy.
    pub fn parse(text: &str) -> Result<Self, InstinctError> {
        let bytes = decode(text).ok_or(InstinctError::KeyMalformed)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| InstinctError::KeyMalformed)?;
        if key.is_weak() { Err(InstinctError::KeyMalformed) } else { Ok(Self(key)) }
    }

    /// The key compiled into this program: `CONCLAVE_DIRECTIVES_KEY` of the build where it was set,
    /// otherwise the project's own.
    ///
    /// # Errors
    /// When the build was given something that is no key.
    pub fn compiled_in() -> Result<Self, InstinctError> {
        Self::parse(ORGANISATION_KEY.unwrap_or(SHIPPED_KEY))
    }

    /// The key the project's own set is signed with, whatever this program pins.
    ///
    /// # Errors
    /// When the program was built from a tree whose `pinned.pub` is no key.
    pub fn shipped() -> Result<Self, InstinctError> {
        Self::parse(SHIPPED_KEY)
    }
}

impl fmt::Display for PinnedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0.as_bytes()))
    }
}

/// What signing gives: the contents of `directives.sig` and `pinned.pub`, without their ends of
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The signature, in hex.
    pub signature_hex: String,
    /// The public key to pin, in hex.
    pub public_key_hex: String,
}

/// Reads a private seed: 32 bytes as they are, or as 64 hexadecimal digits with or without an end of
/// line.
#[must_use]
pub fn read_seed(file: &[u8]) -> Option<[u8; 32]> {
    if let Ok(seed) = file.try_into() {
        return Some(seed);
    }
    let mut seed = [0; 32];
    hex::decode_to_slice(file.trim_ascii(), &mut seed).ok().map(|()| seed)
}

/// Signs a file with the key of this seed. It does not read the file: see
/// [`crate::Instinct::check`].
#[must_use]
pub fn sign(file: &[u8], seed: &[u8; 32]) -> Signed {
    let key = SigningKey::from_bytes(seed);
    Signed {
        signature_hex: hex::encode(key.sign(&message(file)).to_bytes()),
        public_key_hex: hex::encode(key.verifying_key().as_bytes()),
    }
}

/// SHA-256 of a file: what ledger entries carry.
pub(crate) fn digest(file: &[u8]) -> [u8; 32] {
    Sha256::digest(file).into()
}

/// Whether the signature is one of these bytes under the pinned key.
pub(crate) fn check(
    file: &[u8],
    signature_hex: &str,
    pinned: &PinnedKey,
) -> Result<(), InstinctError> {
    let bytes = decode(signature_hex).ok_or(InstinctError::SignatureMalformed)?;
    let (signature, message) = (Signature::from_bytes(&bytes), message(file));
    if pinned.0.verify_strict(&message, &signature).is_ok() {
        return Ok(());
    }
    Err(explain(file, &message, &signature, pinned))
}

/// Ed25519 does not say why it refuses; one case can be told from the others by trying the
/// project's key.
fn explain(
    file: &[u8],
    message: &[u8],
    signature: &Signature,
    pinned: &PinnedKey,
) -> InstinctError {
    let key = pinned.to_string();
    let by_project = PinnedKey::shipped()
        .is_ok_and(|shipped| shipped.0.verify_strict(message, signature).is_ok());
    if by_project {
        InstinctError::OtherKeyPinned { key }
    } else {
        InstinctError::Mismatch { digest: hex::encode(digest(file)), key }
    }
}

fn message(file: &[u8]) -> Vec<u8> {
    [DOMAIN, file].concat()
}

/// Decodes exactly `N` bytes of lower-case hex, with or without one end of line.
fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    if digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_bytes_and_key_only() {
        let signed = sign(b"abc", &[7; 32]);
        let pinned = PinnedKey::parse(&signed.public_key_hex).unwrap();
        assert_eq!(pinned.to_string(), signed.public_key_hex);
        assert_eq!(check(b"abc", &signed.signature_hex, &pinned), Ok(()));
        assert!(check(b"abd", &signed.signature_hex, &pinned).is_err());
        let other = PinnedKey::parse(&sign(b"abc", &[8; 32]).public_key_hex).unwrap();
        assert!(check(b"abc", &signed.signature_hex, &other).is_err());
    }

    #[test]
    fn a_signature_of_the_bare_file_is_none_of_directives() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let pinned = PinnedKey(key.verifying_key());
        let bare = hex::encode(key.sign(b"abc").to_bytes());
        assert!(matches!(check(b"abc", &bare, &pinned), Err(InstinctError::Mismatch { .. })));
    }

    #[test]
    fn one_spelling_only() {
        let key = sign(b"", &[7; 32]).public_key_hex;
        assert!(PinnedKey::parse(&format!("{key}\n")).is_ok());
        let spellings = [
            key.to_uppercase(),
            format!(" {key}"),
            format!("{key}\n\n"),
            format!("{key}\r\n"),
            format!("0x{key}"),
            key[..62].to_owned(),
            format!("{key}00"),
            String::new(),
        ];
        for spelling in spellings {
            assert_eq!(
                PinnedKey::parse(&spelling),
                Err(InstinctError::KeyMalformed),
                "{spelling:?}"
            );
        }
    }

    #[test]
    fn keys_under_which_anything_verifies_are_refused() {
        let identity = format!("01{}", "0".repeat(62));
        for weak in [identity, "0".repeat(64)] {
            assert_eq!(PinnedKey::parse(&weak), Err(InstinctError::KeyMalformed), "{weak}");
        }
    }
}
