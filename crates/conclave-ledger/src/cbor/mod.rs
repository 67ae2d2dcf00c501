//! The one binary form of everything in the log: a small, strict part of deterministic CBOR (RFC
//! 8949, section 4.2.1).
//!
//! **Invariant:** each value has exactly one encoding, and the reader refuses every other: lengths
//! and integers in their shortest form, keys sorted and unique, nothing indefinite, nothing left
//! over.
//!
//! **Invariant:** there are no floating-point numbers, tags or keys other than text. Fractions are
//! integers with the unit in their name, because a float has too many spellings.

mod read;
mod value;
mod write;

pub use read::Reader;
pub use value::{Map, Value};
pub use write::Writer;

use thiserror::Error;

/// How deep arrays and maps may be nested.
pub const DEPTH_MAX: usize = 32;

/// Why bytes are not an encoding of ours, with the offset where that showed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CborError {
    /// The bytes end inside an item.
    #[error("byte {0}: the data ends too early")]
    Truncated(usize),
    /// A longer form was used where a shorter one exists.
    #[error("byte {0}: a number is not in its shortest form")]
    NotShortest(usize),
    /// Keys stand in the wrong order or twice.
    #[error("byte {0}: map keys are not sorted and unique")]
    KeyOrder(usize),
    /// Floats, tags, indefinite lengths, non-text keys and other simple values are not used here.
    #[error("byte {0}: this kind of item is not allowed")]
    NotAllowed(usize),
    /// Another kind of item was expected.
    #[error("byte {at}: expected {expected}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What should have stood there.
        expected: &'static str,
    },
    /// Text that is not UTF-8.
    #[error("byte {0}: text is not UTF-8")]
    NotUtf8(usize),
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("byte {0}: nested too deeply")]
    TooDeep(usize),
    /// Something follows the item.
    #[error("byte {0}: unexpected bytes after the end")]
    Trailing(usize),
}

/// Encodes one value.
#[must_use]
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).value(value);
    out
}

/// Decodes exactly one value.
///
/// # Errors
/// When the bytes are not the deterministic encoding of one value.
pub fn decode(bytes: &[u8]) -> Result<Value, CborError> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::any_value;
