//! Sealing: the texts of an entry encrypted, so that forgetting a key forgets them all.
//!
//! **Invariant:** a sealed text opens only with the key it was sealed with, in the entry, the field
//! and the tenant it was sealed for, and only to the text the leaf commits to. The cipher alone
//! does not bind a key; the commitment does.
//!
//! **Invariant:** nothing here draws randomness: salts and nonces are given. A nonce serves one
//! entry; each field of it has a key of its own.

use crate::body::{Body, BodyError, StoredBody};
use crate::cbor::Writer;
use crate::leaf::{Commitment, EntryId, Leaf, sha256};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use std::ops::Range;
use thiserror::Error;
use zeroize::Zeroizing;

/// The envelope of a field that is sealed.
pub(crate) const SEALED: u8 = 0x01;
const KEY_ID_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// Envelope byte, name of the key and nonce.
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;
/// Everything in a sealed field but its text.
const AROUND_BYTES: usize = HEAD_BYTES + SALT_BYTES + TAG_BYTES;
/// Separates the keys of fields from whatever else a secret may be used for.
const FIELD_KEYS: &[u8] = b"conclave.field.v1";

/// Why a text could not be sealed or opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The key is not there: the words were erased.
    #[error("the key of field `{0}` is gone")]
    KeyGone(String),
    /// Another key, another place, or other bytes.
    #[error("the sealed text of field `{0}` does not open with its key")]
    Forged(String),
    /// It opens, but to something else than the leaf commits to.
    #[error("the sealed text of field `{0}` opens to another text than the leaf commits to")]
    NotCommitted(String),
    /// The body is not what the leaf commits to.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The text is longer than the cipher takes, or the key is not the one it was laid out for.
    #[error("field `{0}` cannot be sealed")]
    Unsealable(String),
}

/// A key that seals the texts of one person. Its secret leaves no trace when it is dropped.
#[derive(Clone)]
pub struct SealingKey {
    id: [u8; KEY_ID_BYTES],
    derive: Hkdf<Sha256>,
}

impl SealingKey {
    /// A key by its name and its secret.
    #[must_use]
    pub fn new(id: [u8; KEY_ID_BYTES], secret: &[u8; 32]) -> Self {
        Self { id, derive: Hkdf::new(None, secret) }
    }

    /// Its name, which stands in every envelope it sealed.
    #[must_use]
    pub const fn id(&self) -> [u8; KEY_ID_BYTES] {
        self.id
    }

    /// A secret for another purpose, from which nobody can come back to the key.
    #[must_use]
    pub fn derived(&self, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
        self.expand(&[b"conclave.other.v1", purpose])
    }

    fn expand(&self, info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        // Fails only beyond 255 blocks, and this is one.
        let expanded = self.derive.expand_multi_info(info, &mut *out);
        debug_assert!(expanded.is_ok());
        out
    }

    fn cipher(&self, id: EntryId, field: &str) -> XChaCha20Poly1305 {
        let key = self.expand(&[FIELD_KEYS, &id.to_bytes(), field.as_bytes()]);
        XChaCha20Poly1305::new((&*key).into())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

/// What a sealed text is bound to beside its key: entry, field, tenant. The outer two have a fixed
/// length, so no two triples run into the same bytes.
fn bound_to(id: EntryId, field: &str, tenant: u64) -> Vec<u8> {
    [&id.to_bytes(), field.as_bytes(), &tenant.to_be_bytes()].concat()
}

/// A body with everything in its place, which lacks only the id of its entry to be sealed.
///
/// Laying out and hashing plaintext is done by whoever brings the entry; sealing needs the number,
/// which is given last.
#[derive(Clone, PartialEq, Eq)]
pub struct LaidOut {
    bytes: Vec<u8>,
    blobs: Vec<Range<usize>>,
    commitments: Vec<Commitment>,
}

impl fmt::Debug for LaidOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaidOut").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Body {
    /// Puts every text where its sealed form will stand.
    #[must_use]
    pub fn lay_out(&self, key: [u8; KEY_ID_BYTES], nonce: &[u8; NONCE_BYTES]) -> LaidOut {
        let texts: usize = self.fields.iter().map(|f| f.name.len() + f.text.len()).sum();
        let mut bytes = Vec::with_capacity(texts + self.fields.len() * (AROUND_BYTES + 16) + 8);
        let mut laid = LaidOut { bytes: Vec::new(), blobs: Vec::new(), commitments: Vec::new() };
        if !self.fields.is_empty() {
            Writer::new(&mut bytes).array(self.fields.len());
        }
        for field in &self.fields {
            let mut w = Writer::new(&mut bytes);
            w.array(2);
            w.text(&field.name);
            w.bytes_of(&[&[SEALED], &key, nonce, &field.salt, &field.text, &[0; TAG_BYTES]]);
            let end = bytes.len();
            laid.blobs.push(end - AROUND_BYTES - field.text.len()..end);
            laid.commitments.push(Commitment {
                field: field.name.clone(),
                plain: sha256(&[&field.salt, &field.text]),
                blob: [0; 32],
                len: field.text.len() as u64,
            });
        }
        LaidOut { bytes, ..laid }
    }
}

impl LaidOut {
    /// How many bytes it takes, sealed or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What the leaf will say about the texts; the hashes of the sealed bytes are not known yet.
    #[must_use]
    pub fn commitments(&self) -> &[Commitment] {
        &self.commitments
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Encrypts every text where it stands; returns what the leaf says about them, and the bytes.
    ///
    /// # Errors
    /// When it was laid out for another key, or a text is too long for the cipher.
    pub fn seal(
        mut self,
        key: &SealingKey,
        id: EntryId,
        tenant: u64,
    ) -> Result<(Vec<Commitment>, Vec<u8>), SealError> {
        for (commitment, blob) in self.commitments.iter_mut().zip(&self.blobs) {
            let field = &commitment.field;
            let refused = || SealError::Unsealable(field.clone());
            let blob = self.bytes.get_mut(blob.clone()).ok_or_else(refused)?;
            let (head, rest) = blob.split_at_mut_checked(HEAD_BYTES).ok_or_else(refused)?;
            let named = head.get(1..=KEY_ID_BYTES) == Some(key.id.as_slice());
            let nonce = head.get(1 + KEY_ID_BYTES..).and_then(|nonce| XNonce::try_from(nonce).ok());
            let (true, Some(nonce)) = (named, nonce) else { return Err(refused()) };
            let text = rest.len().checked_sub(TAG_BYTES).ok_or_else(refused)?;
            let (text, tag) = rest.split_at_mut(text);
            let bound = bound_to(id, field, tenant);
            let cipher = key.cipher(id, field);
            let sealed = cipher.encrypt_inout_detached(&nonce, &bound, text.into());
            tag.copy_from_slice(&sealed.map_err(|_| refused())?);
            commitment.blob = sha256(&[blob]);
        }
        Ok((self.commitments, self.bytes))
    }
}

/// Whether stored bytes are a sealed envelope of a text of this length.
pub(crate) fn is_sealed_text(blob: &[u8], text_bytes: u64) -> bool {
    blob.first() == Some(&SEALED)
        && blob.len().checked_sub(AROUND_BYTES).is_some_and(|text| text as u64 == text_bytes)
}

/// The name of the key in a sealed envelope.
fn key_of(blob: &[u8]) -> Option<[u8; KEY_ID_BYTES]> {
    let (envelope, rest) = blob.split_first()?;
    let id = rest.first_chunk::<KEY_ID_BYTES>()?;
    (*envelope == SEALED && blob.len() >= AROUND_BYTES).then_some(*id)
}

impl StoredBody<'_> {
    /// Opens every field of the body of an entry. Fields that are not sealed are taken as they are;
    /// either way each text must be the one the leaf commits to.
    ///
    /// `find` gives the key of a name, or nothing when it is gone.
    ///
    /// # Errors
    /// When a key is gone, or anything is not what was sealed; names the field.
    pub fn unseal<K: AsRef<SealingKey>>(
        &self,
        leaf: &Leaf,
        mut find: impl FnMut([u8; KEY_ID_BYTES]) -> Option<K>,
    ) -> Result<Body, SealError> {
        self.check(&leaf.commitments)?;
        let mut body = Body::empty();
        for (commitment, (name, blob)) in leaf.commitments.iter().zip(self.fields()) {
            let salted = match key_of(blob) {
                None => Zeroizing::new(blob.get(1..).unwrap_or_default().to_vec()),
                Some(id) => {
                    let key = find(id).ok_or_else(|| SealError::KeyGone(name.to_owned()))?;
                    open(key.as_ref(), leaf, name, blob)?
                }
            };
            let Some((salt, text)) = salted.split_first_chunk::<SALT_BYTES>() else {
                return Err(SealError::Forged(name.to_owned()));
            };
            if sha256(&[salt, text]) != commitment.plain {
                return Err(SealError::NotCommitted(name.to_owned()));
            }
            body.push(name, *salt, text);
        }
        Ok(body)
    }

    /// The names of the keys that its fields were sealed with, each once.
    #[must_use]
    pub fn keys(&self) -> Vec<[u8; KEY_ID_BYTES]> {
        let mut keys: Vec<_> = self.fields().filter_map(|(_, blob)| key_of(blob)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Salt and text of a sealed field.
fn open(
    key: &SealingKey,
    leaf: &Leaf,
    field: &str,
    blob: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let forged = || SealError::Forged(field.to_owned());
    let (head, rest) = blob.split_at_checked(HEAD_BYTES).ok_or_else(forged)?;
    let nonce = head.get(1 + KEY_ID_BYTES..).and_then(|nonce| XNonce::try_from(nonce).ok());
    let text = rest.len().checked_sub(TAG_BYTES).ok_or_else(forged)?;
    let (text, tag) = rest.split_at(text);
    let (Some(nonce), Ok(tag)) = (nonce, Tag::try_from(tag)) else { return Err(forged()) };
    let mut opened = Zeroizing::new(text.to_vec());
    let bound = bound_to(leaf.id, field, leaf.draft.tenant);
    let cipher = key.cipher(leaf.id, field);
    let whole = cipher.decrypt_inout_detached(&nonce, &bound, opened.as_mut_slice().into(), &tag);
    whole.map_err(|_| forged())?;
    Ok(opened)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "seal_two_keys_tests.rs"]
mod two_keys_tests;
