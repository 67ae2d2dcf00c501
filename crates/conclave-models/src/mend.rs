//! Bytes that are almost JSON, as some servers write it, mended before they are read.
//!
//! **Invariant:** what is JSON already is not touched, and nothing within a string is changed but halves of
//! letters that stand alone, which no text can hold.

use std::borrow::Cow;

const BARE_WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
/// How long `\uD83D` is.
const ESCAPE_BYTES: usize = 6;
/// What stands for a letter that cannot be read.
const UNREADABLE: &[u8] = b"\\ufffd";

/// Replaces `NaN` and `Infinity` outside strings by `null`, as Python's JSON writer makes them, and escaped
/// halves of letters without their other half by the sign for what cannot be read.
pub(crate) fn mended(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    let mut is_within = false;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let (length, instead): (usize, Option<&[u8]>) = match byte {
            b'"' => {
                is_within = !is_within;
                (1, None)
            }
            b'\\' if is_within => match half_letter(rest) {
                Some(_) if is_whole_letter(rest) => (2 * ESCAPE_BYTES, None),
                Some(_) => (ESCAPE_BYTES, Some(UNREADABLE)),
                None => (2, None),
            },
            _ if is_within => (1, None),
            _ => match BARE_WORDS.iter().find(|word| rest.starts_with(word)) {
                Some(word) => (word.len(), Some(b"null")),
                None => (1, None),
            },
        };
        if let Some(instead) = instead {
            mended.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
            mended.extend_from_slice(instead);
            copied = at + length;
        }
        at += length;
    }
    if mended.is_empty() {
        return Cow::Borrowed(bytes);
    }
    mended.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Cow::Owned(mended)
}

/// Which half of a letter beyond the first 65,536 an escape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

fn half_letter(escape: &[u8]) -> Option<Half> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    let number = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match number {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

/// Whether an escape and the one after it are the two halves of one letter.
fn is_whole_letter(escapes: &[u8]) -> bool {
    let second = escapes.get(ESCAPE_BYTES..).and_then(half_letter);
    half_letter(escapes) == Some(Half::First) && second == Some(Half::Second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_letters_are_mended_and_whole_ones_stay() {
        for (bytes, expected) in [
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"{"a":"\uDE00y"}"#, r#"{"a":"\ufffdy"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\ude00\ud83d"}"#, r#"{"a":"\ufffd\ufffd"}"#),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\"NaN \ud83d","b":NaN}"#, r#"{"a":"\"NaN \ufffd","b":null}"#),
            (r#"{"a":"\u00e9 \n"}"#, r#"{"a":"\u00e9 \n"}"#),
            (r#"{"a":"\u+123"}"#, r#"{"a":"\u+123"}"#),
            (r#"{"a":"\"#, r#"{"a":"\"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&mended(bytes.as_bytes())), expected, "{bytes}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_json_is_not_touched(text in ".{0,40}") {
            let json = serde_json::json!({"a": text, "b": [1, "\u{1f600}"]}).to_string();
            proptest::prop_assert!(matches!(mended(json.as_bytes()), Cow::Borrowed(_)));
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(
            proptest::sample::select(b"\"\\ud8c0NaI {".to_vec()), 0..60)) {
            let _ = mended(&bytes);
        }
    }
}
