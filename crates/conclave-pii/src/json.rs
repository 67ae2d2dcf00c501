//! Owns the reading of texts that are JSON as a whole, piece by piece, so that what is not replaced keeps
//! its form.
//!
//! **Invariant:** the pieces of a text are together the text.

use serde::de::IgnoredAny;

/// How many times a string that holds JSON is opened.
pub(crate) const LAYERS_MAX: usize = 4;
/// The longest member name that is used as context, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// A part of a JSON text.
pub(crate) struct JsonPiece<'t> {
    pub(crate) written: &'t str,
    pub(crate) value: JsonValue,
}

/// What a part of a JSON text means.
pub(crate) enum JsonValue {
    /// The name of the member that follows.
    Name(String),
    Text(String),
    Number,
    /// Brackets, blanks and words of JSON itself.
    Nothing,
}

/// The pieces of a JSON text, in order.
pub(crate) fn json_pieces(text: &str) -> impl Iterator<Item = JsonPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_number = |sign: char| sign.is_ascii_digit() || "+-.eE".contains(sign);
        let begins_number = |sign: char| sign.is_ascii_digit() || sign == '-';
        let length = match first {
            '"' => literal_length(rest),
            sign if begins_number(sign) => rest.find(|sign| !is_number(sign)),
            _ => rest.find(|sign| sign == '"' || begins_number(sign)),
        };
        let (written, after) = rest.split_at(length.unwrap_or(rest.len()));
        rest = after;
        let value = match first {
            '"' => match serde_json::from_str(written) {
                Ok(meant) if after.trim_start().starts_with(':') => JsonValue::Name(meant),
                Ok(meant) => JsonValue::Text(meant),
                Err(_) => JsonValue::Nothing,
            },
            sign if begins_number(sign) => JsonValue::Number,
            _ => JsonValue::Nothing,
        };
        Some(JsonPiece { written, value })
    })
}

/// How long the string is that a text begins with, with its quotes.
fn literal_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a text is an array or object of JSON as a whole.
pub(crate) fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The words of a member name: `homePhone` becomes `home phone`.
pub(crate) fn member_words(name: &str) -> String {
    if name.len() > NAME_BYTES_MAX {
        return String::new();
    }
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_small = false;
    for sign in name.chars() {
        if sign.is_uppercase() && was_small {
            words.push(' ');
        }
        was_small = sign.is_lowercase() || sign.is_ascii_digit();
        let plain = if matches!(sign, '_' | '-' | '.') { ' ' } else { sign };
        words.extend(plain.to_lowercase());
    }
    words
}
