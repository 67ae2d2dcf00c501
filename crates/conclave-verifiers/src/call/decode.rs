//! What a string of a call says once its encoding is undone: JSON in a string, percent signs, base64, hex.
//!
//! **Invariant:** what comes out is no longer than what went in, so that undoing encodings within encodings stays linear.
//! **Invariant:** what is no text once decoded (an image, a key, an id) is left as it was.

use super::tree::Tree;
use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Shorter strings are words or ids.
const ENCODED_MIN: usize = 8;
/// A text has so many letters in a row somewhere; ids that decode by chance have not.
const LETTERS_MIN: usize = 3;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// What a string holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// Values of its own.
    Tree(Tree),
    /// Another text.
    Text(String),
}

/// What stands behind the encoding of a string; `None` for one that says what it says.
pub fn decode(text: &str) -> Option<Decoded> {
    if let Some(tree) = Tree::parse_nested(text) {
        return Some(Decoded::Tree(tree));
    }
    let found = unescape(text).or_else(|| decode_run(text.trim()))?;
    Some(Decoded::Text(found))
}

/// A text with percent signs, or with plus signs for blanks beside them.
fn unescape(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let bytes = text.as_bytes();
    let is_form = !text.contains(' ');
    let mut out = Vec::with_capacity(bytes.len());
    let mut found = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let code = pair.and_then(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?));
        match code {
            Some(code) => {
                out.push(code);
                found = true;
                at += 3;
            }
            None => {
                out.push(if byte == b'+' && is_form { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok().filter(|_| found)
}

/// A string that is one code from its beginning to its end.
fn decode_run(text: &str) -> Option<String> {
    if text.len() < ENCODED_MIN {
        return None;
    }
    let code = text.rsplit(";base64,").next().unwrap_or(text);
    let plain: String = code.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let bytes = if plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        decode_hex(plain.as_bytes())
    } else {
        // A text with blanks is a text, unless its lines are all as long as those of a code.
        let is_wrapped = plain.len() == code.len() || code.lines().all(|line| !line.contains(' '));
        let decoded = BASE64.decode(&plain).or_else(|_| BASE64_URL.decode(&plain));
        decoded.ok().filter(|_| is_wrapped)
    };
    String::from_utf8(bytes?).ok().filter(|text| is_text(text))
}

fn decode_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn is_text(text: &str) -> bool {
    let is_odd = |c: char| c.is_control() && !c.is_whitespace();
    let mut run = 0;
    let mut longest = 0;
    for letter in text.chars() {
        run = if letter.is_alphabetic() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest >= LETTERS_MIN && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_undone_and_ids_are_left() {
        for (text, expected) in [
            ("Turn%20off%20the%20pump", Some("Turn off the pump")),
            ("turn+off%21", Some("turn off!")),
            ("dHVybiBvZmYgdGhlIHB1bXA=", Some("turn off the pump")),
            ("dHVybiBvZmYg\ndGhlIHB1bXA=", Some("turn off the pump")),
            ("data:text/plain;base64,dHVybiBvZmYgdGhlIHB1bXA=", Some("turn off the pump")),
            ("7475726e206f6666", Some("turn off")),
            ("44Gr44KB44KL44KI44GG44Gr", Some("にめるように")),
            ("100% of users", None),
            ("turn off the pump", None),
            ("4111111111111111", None),
            ("a3f8c2e19b7d4056", None),
            ("Lighthouse", None),
            ("deadbeef", None),
            ("", None),
        ] {
            let expected = expected.map(|text| Decoded::Text(text.to_owned()));
            assert_eq!(decode(text), expected, "{text}");
        }
        let nested = decode(r#"{"device":"pump"}"#);
        assert!(matches!(nested, Some(Decoded::Tree(Tree::Fields(_)))), "{nested:?}");
    }
}
