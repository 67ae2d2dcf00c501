//! Reads an answer to a request for vectors.
//!
//! **Invariant:** only vectors and what they cost leave here; whatever else a provider says is
//! dropped.

use crate::fault::Fault;
use conclave_engine::{Embedded, Embedding};
use serde::Deserialize;

/// More tokens than any request holds; a larger claim counts as none.
const TOKENS_MAX: u64 = 100_000_000;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: usize,
    embedding: WireVector,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireVector {
    Numbers(Vec<f64>),
    Packed(String),
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: u64,
}

/// Reads the body of a 200; `expected` tokens were used where the provider does not say, or says what
/// cannot be: nobody works for nothing.
pub(crate) fn read_vectors(bytes: &[u8], expected: u64) -> Result<Embedded, Fault> {
    // The parser's own words are left out: they can quote the answer.
    let answer: Answer =
        serde_json::from_slice(bytes).map_err(|_| Fault::invalid("the answer holds no vectors"))?;
    let mut items = answer.data;
    items.sort_by_key(|item| item.index);
    let claimed = answer.usage.map(|usage| usage.prompt_tokens);
    let vectors = items.into_iter().map(|item| vector(item.embedding));
    Ok(Embedded {
        vectors: vectors.collect::<Result<_, _>>()?,
        input_tokens: claimed.filter(|n| (1..=TOKENS_MAX).contains(n)).unwrap_or(expected),
    })
}

fn vector(vector: WireVector) -> Result<Embedding, Fault> {
    match vector {
        WireVector::Numbers(numbers) => Ok(Embedding::Numbers(numbers)),
        WireVector::Packed(text) if is_base64(&text) => Ok(Embedding::Packed(text)),
        // Words would reach the client, and nobody has judged them.
        WireVector::Packed(_) => Err(Fault::invalid("a vector is no base64")),
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_order_and_nothing_else() {
        let answer = br#"{"object":"list","model":"x","data":[
            {"index":1,"embedding":"AACAPw=="},{"index":0,"embedding":[0.5,-1]}],
            "usage":{"prompt_tokens":7,"total_tokens":7},"extra":{"a":1}}"#;
        let read = read_vectors(answer, 1).unwrap();
        assert_eq!(read.vectors[0], Embedding::Numbers(vec![0.5, -1.0]));
        assert_eq!(read.vectors[1], Embedding::Packed("AACAPw==".into()));
        assert_eq!(read.input_tokens, 7);
        for wrong in ["{}", "[]", "x", r#"{"data":[{"embedding":{}}]}"#] {
            assert!(read_vectors(wrong.as_bytes(), 1).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_in_the_place_of_a_vector_go_no_further() {
        for words in ["hello there!", "AAAA AAA", "AAA", "A===", "AA=A", "\u{e4}AAA"] {
            let answer = format!(r#"{{"data":[{{"embedding":"{words}"}}]}}"#);
            assert!(read_vectors(answer.as_bytes(), 1).is_err(), "{words}");
        }
    }

    #[test]
    fn what_a_provider_does_not_count_is_counted_here() {
        for (usage, tokens) in [
            ("", 40),
            (r#","usage":{}"#, 40),
            (r#","usage":{"prompt_tokens":0}"#, 40),
            (r#","usage":{"prompt_tokens":900000000}"#, 40),
            (r#","usage":{"prompt_tokens":12}"#, 12),
        ] {
            let answer = format!(r#"{{"data":[{{"embedding":[1]}}]{usage}}}"#);
            assert_eq!(
                read_vectors(answer.as_bytes(), 40).unwrap().input_tokens,
                tokens,
                "{usage}"
            );
        }
    }
}
