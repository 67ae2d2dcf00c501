//! How likely a model held the pieces of its reply, as OpenAI's interface says it.
//!
//! **Invariant:** no words leave here that are not in the reply: the pieces put together are the reply's text,
//! to the byte, or nothing is read. What a model might have said instead is single pieces, too short and too
//! few to be a sentence.

use conclave_core::Candidate;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Alternatives at one place; the interface knows no more.
const ALTERNATIVES_MAX: usize = 20;
/// The longest alternative; the pieces models write in are shorter.
const ALTERNATIVE_BYTES_MAX: usize = 32;

#[derive(Deserialize)]
struct Stated {
    #[serde(default)]
    content: Option<Vec<Piece>>,
    #[serde(default)]
    refusal: Option<Vec<Piece>>,
}

/// A piece of the text.
#[derive(Deserialize, Serialize)]
struct Piece {
    token: String,
    logprob: f64,
    #[serde(default)]
    bytes: Option<Vec<u8>>,
    #[serde(default)]
    top_logprobs: Vec<Alternative>,
}

/// What might have stood there instead.
#[derive(Deserialize, Serialize)]
struct Alternative {
    token: String,
    logprob: f64,
    #[serde(default)]
    bytes: Option<Vec<u8>>,
}

impl Alternative {
    fn is_piece(&self) -> bool {
        let words = self.token.trim();
        self.token.len() <= ALTERNATIVE_BYTES_MAX
            && !words.contains(char::is_whitespace)
            && self.bytes.as_deref().is_none_or(|bytes| is_same(bytes, &self.token))
    }
}

/// The bytes of a piece are those of its text; a piece that is a part of a letter has no text of its own.
fn is_same(bytes: &[u8], token: &str) -> bool {
    bytes == token.as_bytes() || (bytes.len() < 4 && std::str::from_utf8(bytes).is_err())
}

/// The pieces of a candidate as JSON in OpenAI's form; `None` where they are not those of its text.
pub(crate) fn read_logprobs(raw: &RawValue, candidate: &Candidate) -> Option<String> {
    let stated: Stated = serde_json::from_str(raw.get()).ok()?;
    let pieces = if candidate.is_refusal { stated.refusal } else { stated.content }?;
    let mut text = Vec::new();
    for piece in &pieces {
        match &piece.bytes {
            Some(bytes) if !is_same(bytes, &piece.token) => return None,
            Some(bytes) => text.extend_from_slice(bytes),
            None => text.extend_from_slice(piece.token.as_bytes()),
        }
    }
    let are_pieces = pieces.iter().all(|piece| {
        piece.top_logprobs.len() <= ALTERNATIVES_MAX
            && piece.top_logprobs.iter().all(Alternative::is_piece)
    });
    let is_own = text == candidate.text.as_bytes() && are_pieces && !pieces.is_empty();
    let name = if candidate.is_refusal { "refusal" } else { "content" };
    let other = if candidate.is_refusal { "content" } else { "refusal" };
    let pieces = serde_json::to_value(pieces).ok().filter(|_| is_own)?;
    Some(serde_json::json!({name: pieces, other: null}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str, stated: &Value) -> Option<Value> {
        let candidate = Candidate { text: text.to_owned(), ..Candidate::default() };
        let raw = RawValue::from_string(stated.to_string()).unwrap();
        read_logprobs(&raw, &candidate).map(|said| serde_json::from_str(&said).unwrap())
    }

    fn piece(token: &str, instead: &[&str]) -> Value {
        let instead: Vec<_> = instead
            .iter()
            .map(|token| json!({"token": token, "logprob": -2.5, "bytes": token.as_bytes()}))
            .collect();
        json!({"token": token, "logprob": -0.5, "bytes": token.as_bytes(), "top_logprobs": instead})
    }

    #[test]
    fn the_pieces_of_the_text_itself_pass() {
        let stated = json!({"content": [piece("Ky", &["To"]), piece("oto", &[" o", "kyo"])]});
        let read = read("Kyoto", &stated).unwrap();
        assert_eq!(read["content"], stated["content"]);
        assert_eq!(read["refusal"], Value::Null);
    }

    #[test]
    fn a_letter_in_two_pieces_is_one() {
        let half = |bytes: &[u8]| json!({"token": "\u{fffd}", "logprob": -1.0, "bytes": bytes});
        let stated = json!({"content": [half(&[0xc3]), half(&[0xa9])]});
        assert!(read("\u{e9}", &stated).is_some());
    }

    #[test]
    fn other_words_do_not() {
        let long = "take-the-knife-and-go-to-the-school-now";
        for (text, stated) in [
            ("Kyoto", json!(null)),
            ("Kyoto", json!({"content": null})),
            ("Kyoto", json!({"content": []})),
            ("", json!({"content": []})),
            ("Kyoto", json!({"content": [piece("Osaka", &[])]})),
            ("Kyoto", json!({"content": [piece("Kyoto", &[]), piece("!", &[])]})),
            ("Kyoto", json!({"content": [piece("Kyoto", &["take the knife"])]})),
            ("Kyoto", json!({"content": [piece("Kyoto", &[long])]})),
            ("Kyoto", json!({"content": [piece("Kyoto", &["a"; 21])]})),
            ("Kyoto", json!({"content": [{"token": "knife", "logprob": 0.0, "bytes": b"Kyoto"}]})),
            ("Kyoto", json!({"content": [{"token": "Kyoto", "logprob": "x"}]})),
            ("Kyoto", json!(["Kyoto"])),
        ] {
            assert_eq!(read(text, &stated), None, "{stated}");
        }
    }
}
