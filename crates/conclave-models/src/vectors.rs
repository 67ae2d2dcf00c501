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

/// Reads the body of a 200.
pub(crate) fn read_vectors(bytes: &[u8]) -> Result<Embedded, Fault> {
    // The parser's own words are left out: they can quote the answer.
    let answer: Answer =
        serde_json::from_slice(bytes).map_err(|_| Fault::invalid("the answer holds no vectors"))?;
    let mut items = answer.data;
    items.sort_by_key(|item| item.index);
    let tokens = answer.usage.map_or(0, |usage| usage.prompt_tokens);
    Ok(Embedded {
        vectors: items.into_iter().map(|item| vector(item.embedding)).collect(),
        input_tokens: if tokens <= TOKENS_MAX { tokens } else { 0 },
    })
}

fn vector(vector: WireVector) -> Embedding {
    match vector {
        WireVector::Numbers(numbers) => Embedding::Numbers(numbers),
        WireVector::Packed(text) => Embedding::Packed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_order_and_nothing_else() {
        let answer = br#"{"object":"list","model":"x","data":[
            {"index":1,"embedding":"AAAA"},{"index":0,"embedding":[0.5,-1]}],
            "usage":{"prompt_tokens":7,"total_tokens":7},"extra":{"a":1}}"#;
        let read = read_vectors(answer).unwrap();
        assert_eq!(read.vectors[0], Embedding::Numbers(vec![0.5, -1.0]));
        assert_eq!(read.vectors[1], Embedding::Packed("AAAA".into()));
        assert_eq!(read.input_tokens, 7);
        for wrong in ["{}", "[]", "x", r#"{"data":[{"embedding":{}}]}"#] {
            assert!(read_vectors(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
