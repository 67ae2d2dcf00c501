//! The texts beside a leaf: each with its own salt, stored apart so that they can be erased.
//!
//! **Invariant:** a leaf commits to every field of its body, in order; a field more, less, renamed
//! or changed by one bit does not match.
//!
//! **Invariant:** the salt stands only inside the stored bytes. When those are gone, the commitment
//! in the leaf says nothing about the text, not even to somebody who guesses it.

use crate::cbor::{CborError, Reader, Writer};
use crate::leaf::{Commitment, LeafError, sha256};
use crate::seal::is_sealed_text;
use thiserror::Error;

/// The envelope of a field that is not sealed.
const PLAIN: u8 = 0x00;
/// Envelope byte and salt.
const HEAD_BYTES: usize = 33;
/// The longest name of a field.
const NAME_BYTES_MAX: usize = 128;

/// One text and its salt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, such as `request` or `candidate.0`.
    pub name: String,
    /// Random; makes equal texts look different.
    pub salt: [u8; 32],
    /// The plaintext.
    pub text: Vec<u8>,
}

/// All texts of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// In the order of the commitments.
    pub fields: Vec<Field>,
}

impl Body {
    /// An entry without texts.
    #[must_use]
    pub const fn empty() -> Self {
        Self { fields: Vec::new() }
    }

    /// Adds a text.
    pub fn push(&mut self, name: impl Into<String>, salt: [u8; 32], text: impl Into<Vec<u8>>) {
        self.fields.push(Field { name: name.into(), salt, text: text.into() });
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Checks what decoding would refuse, before the entry becomes part of the log.
    ///
    /// # Errors
    /// When the name of a field is empty or too long.
    pub fn check(&self) -> Result<(), LeafError> {
        let fits = |field: &Field| (1..=NAME_BYTES_MAX).contains(&field.name.len());
        if self.fields.iter().all(fits) { Ok(()) } else { Err(LeafError::Name("field")) }
    }

    /// What the leaf says about the fields.
    #[must_use]
    pub fn commitments(&self) -> Vec<Commitment> {
        self.fields.iter().map(Field::commitment).collect()
    }

    /// The bytes that are stored; none for an empty body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if self.fields.is_empty() {
            return Vec::new();
        }
        let texts: usize = self.fields.iter().map(|f| f.name.len() + f.text.len()).sum();
        let mut out = Vec::with_capacity(texts + self.fields.len() * (HEAD_BYTES + 16) + 8);
        let mut w = Writer::new(&mut out);
        w.array(self.fields.len());
        for field in &self.fields {
            w.array(2);
            w.text(&field.name);
            w.bytes_of(&[&[PLAIN], &field.salt, &field.text]);
        }
        out
    }
}

impl Field {
    fn commitment(&self) -> Commitment {
        Commitment {
            field: self.name.clone(),
            plain: sha256(&[&self.salt, &self.text]),
            blob: sha256(&[&[PLAIN], &self.salt, &self.text]),
            len: self.text.len() as u64,
        }
    }
}

/// Why a stored body is not what the leaf promised.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Not our encoding.
    #[error("the body cannot be read: {0}")]
    Encoding(#[from] CborError),
    /// Other fields than committed to.
    #[error("the body has field `{found}` where the leaf commits to `{expected}`")]
    WrongField {
        /// What the leaf says.
        expected: String,
        /// What is stored.
        found: String,
    },
    /// More or fewer fields than committed to.
    #[error("the body has {found} fields, the leaf commits to {expected}")]
    FieldCount {
        /// What the leaf says.
        expected: usize,
        /// What is stored.
        found: usize,
    },
    /// Other bytes than committed to.
    #[error("the stored bytes of field `{0}` were changed")]
    Blob(String),
    /// Another text than committed to.
    #[error("the text of field `{0}` is not what the leaf commits to")]
    Plain(String),
}

/// A body as stored, borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBody<'a> {
    fields: Vec<(&'a str, &'a [u8])>,
}

impl<'a> StoredBody<'a> {
    /// Reads the stored bytes; no bytes are a body without fields.
    ///
    /// # Errors
    /// When they are not what [`Body::encode`] makes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, BodyError> {
        if bytes.is_empty() {
            return Ok(Self { fields: Vec::new() });
        }
        let mut r = Reader::new(bytes);
        let count = r.array()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let at = r.offset();
            if r.array()? != 2 {
                return Err(CborError::Unexpected { at, expected: "a field" }.into());
            }
            fields.push((r.text()?, r.bytes()?));
        }
        if fields.is_empty() {
            return Err(CborError::Unexpected { at: 0, expected: "at least one field" }.into());
        }
        r.end()?;
        Ok(Self { fields })
    }

    /// The names of the fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.fields.iter().map(|(name, _)| *name)
    }

    /// Names and stored bytes, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.fields.iter().copied()
    }

    /// The plaintext of a field, if it is there and not sealed.
    #[must_use]
    pub fn open(&self, field: &str) -> Option<Vec<u8>> {
        let (_, blob) = self.fields.iter().find(|(name, _)| *name == field)?;
        salted(blob).map(|(_, text)| text.to_vec())
    }

    /// Compares everything stored with what the leaf commits to. Of a sealed text, that is its
    /// bytes and its length; only [`StoredBody::unseal`] can tell what it says.
    ///
    /// # Errors
    /// When it differs; the error names the first such field.
    pub fn check(&self, commitments: &[Commitment]) -> Result<(), BodyError> {
        for (commitment, (name, blob)) in commitments.iter().zip(&self.fields) {
            check_field(commitment, name, blob)?;
        }
        let (expected, found) = (commitments.len(), self.fields.len());
        if expected == found { Ok(()) } else { Err(BodyError::FieldCount { expected, found }) }
    }
}

fn check_field(commitment: &Commitment, name: &str, blob: &[u8]) -> Result<(), BodyError> {
    let expected = &commitment.field;
    if expected != name {
        let (expected, found) = (expected.clone(), name.to_owned());
        return Err(BodyError::WrongField { expected, found });
    }
    if sha256(&[blob]) != commitment.blob {
        return Err(BodyError::Blob(expected.clone()));
    }
    if is_sealed_text(blob, commitment.len) {
        return Ok(());
    }
    match salted(blob) {
        Some((salted, text))
            if sha256(&[salted]) == commitment.plain && text.len() as u64 == commitment.len =>
        {
            Ok(())
        }
        _ => Err(BodyError::Plain(expected.clone())),
    }
}

/// Salt with text, and the text alone, of an envelope that is not sealed.
fn salted(blob: &[u8]) -> Option<(&[u8], &[u8])> {
    let (envelope, salted) = blob.split_first()?;
    let text = blob.get(HEAD_BYTES..)?;
    (*envelope == PLAIN).then_some((salted, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Body {
        let mut body = Body::empty();
        body.push("request", [1; 32], "hello");
        body.push("candidate.0", [2; 32], "good day");
        body
    }

    #[test]
    fn a_stored_body_opens_and_matches() {
        let (body, stored) = (body(), body().encode());
        let stored = StoredBody::decode(&stored).unwrap();
        assert_eq!(stored.open("candidate.0").as_deref(), Some(b"good day".as_slice()));
        assert_eq!(stored.open("nothing"), None);
        assert_eq!(stored.names().collect::<Vec<_>>(), ["request", "candidate.0"]);
        assert_eq!(stored.check(&body.commitments()), Ok(()));
    }

    #[test]
    fn an_empty_body_is_no_bytes() {
        assert!(Body::empty().encode().is_empty());
        assert_eq!(StoredBody::decode(&[]).unwrap().check(&[]), Ok(()));
        assert!(StoredBody::decode(&[0x80]).is_err(), "two spellings of nothing");
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let commitments = body().commitments();
        let check = |change: fn(&mut Body)| {
            let mut changed = body();
            change(&mut changed);
            let stored = changed.encode();
            StoredBody::decode(&stored).unwrap().check(&commitments)
        };
        assert_eq!(
            check(|body| body.fields[1].text[0] = b'G'),
            Err(BodyError::Blob("candidate.0".into()))
        );
        assert_eq!(
            check(|body| body.fields[0].salt[3] = 9),
            Err(BodyError::Blob("request".into()))
        );
        assert_eq!(
            check(|body| body.fields.truncate(1)),
            Err(BodyError::FieldCount { expected: 2, found: 1 })
        );
        let swapped = check(|body| body.fields.swap(0, 1));
        assert!(matches!(swapped, Err(BodyError::WrongField { .. })), "{swapped:?}");
    }

    #[test]
    fn a_commitment_to_another_text_is_seen() {
        let mut commitments = body().commitments();
        commitments[0].plain = [0; 32];
        let stored = body().encode();
        let stored = StoredBody::decode(&stored).unwrap();
        assert_eq!(stored.check(&commitments), Err(BodyError::Plain("request".into())));
        commitments = body().commitments();
        commitments[1].len += 1;
        assert_eq!(stored.check(&commitments), Err(BodyError::Plain("candidate.0".into())));
    }

    #[test]
    fn equal_texts_look_different() {
        let mut twins = Body::empty();
        twins.push("a", [1; 32], "yes");
        twins.push("b", [2; 32], "yes");
        let commitments = twins.commitments();
        assert_ne!(commitments[0].plain, commitments[1].plain);
        assert_ne!(commitments[0].blob, commitments[1].blob);
    }

    #[test]
    fn names_are_checked_before_they_are_written() {
        let mut body = Body::empty();
        body.push("", [0; 32], "x");
        assert_eq!(body.check(), Err(LeafError::Name("field")));
    }
}
