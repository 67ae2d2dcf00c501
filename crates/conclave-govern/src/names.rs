//! What may stand as a name or a sentence in a governed record.

use thiserror::Error;

/// The longest name of a scope, a purpose, an audience and the like, in bytes.
pub const NAME_BYTES_MAX: usize = 120;

/// Why something cannot be kept: where, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} {why}")]
pub struct Unfit {
    /// Which field.
    pub place: String,
    /// The rest of the sentence.
    pub why: String,
}

impl Unfit {
    /// Says what is wrong where.
    pub fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }
}

/// Whether a list of names can be kept.
pub(crate) fn named_list(
    place: &str,
    list: &[String],
    least: usize,
    most: usize,
) -> Result<(), Unfit> {
    if list.len() < least || list.len() > most {
        return Err(Unfit::new(place, format!("must have {least} to {most} entries")));
    }
    list.iter().try_for_each(|name| sentence(place, name, 1, NAME_BYTES_MAX))
}

/// Whether a text can be kept: within its length, and without control characters but line ends.
pub(crate) fn sentence(place: &str, text: &str, least: usize, most: usize) -> Result<(), Unfit> {
    let length = text.trim().len();
    if length < least || text.len() > most {
        return Err(Unfit::new(place, format!("must have {least} to {most} bytes")));
    }
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.chars().any(odd) {
        return Err(Unfit::new(place, "must not hold control characters"));
    }
    Ok(())
}
