//! What a reply cost in tokens: the provider's word where it is plausible, our count where it is
//! not.
//!
//! **Invariant:** the number is never negative, never absurd, and never nothing for something.

use conclave_core::{Candidate, Usage};
use conclave_engine::ModelRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io;

/// More tokens than any context holds; a larger claim is not believed.
const TOKENS_MAX: u64 = 100_000_000;

/// What a provider says about usage, still unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    input: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize)]
struct RawClaim<'a> {
    #[serde(borrow, default)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_creation_input_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_read_input_tokens: Option<&'a RawValue>,
}

impl Claim {
    /// Reads a `usage` object; anything else is no claim.
    pub(crate) fn read(raw: &RawValue) -> Self {
        let Ok(raw) = serde_json::from_str::<RawClaim<'_>>(raw.get()) else {
            return Self::default();
        };
        Self {
            input: raw.prompt_tokens.and_then(tokens).or_else(|| raw.input()),
            output: raw.completion_tokens.or(raw.output_tokens).and_then(tokens),
        }
    }

    /// The usage of this candidate, and whether any of it is our own count.
    pub(crate) fn settle(self, request: &ModelRequest, candidate: &Candidate) -> (Usage, bool) {
        let believed_input = self.input.filter(|tokens| *tokens > 0);
        let written = output_bytes(candidate);
        let believed_output = self.output.filter(|tokens| *tokens > 0 || written == 0);
        let usage = Usage {
            input_tokens: believed_input.unwrap_or_else(|| count_tokens(input_bytes(request))),
            output_tokens: believed_output.unwrap_or_else(|| count_tokens(written)),
        };
        (usage, believed_input.is_none() || believed_output.is_none())
    }
}

impl RawClaim<'_> {
    /// Anthropic counts what it read from its cache beside the rest; every part was read.
    fn input(&self) -> Option<u64> {
        let cached = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        let cached: u64 = cached.into_iter().flatten().filter_map(tokens).sum();
        let fresh = self.input_tokens.and_then(tokens)?;
        Some(fresh + cached).filter(|tokens| *tokens <= TOKENS_MAX)
    }
}

/// Accepts `12` and `12.0`; not `-1`, `1e999`, `"12"` or anything absurd.
fn tokens(raw: &RawValue) -> Option<u64> {
    let text = raw.get();
    let number = text.strip_suffix(".0").unwrap_or(text);
    number.parse().ok().filter(|tokens| *tokens <= TOKENS_MAX)
}

/// Our own count: a quarter of the bytes, rounded up.
pub(crate) fn count_tokens(bytes: usize) -> u64 {
    Usage::tokens_of(bytes)
}

/// The bytes of text a model wrote.
pub(crate) fn output_bytes(candidate: &Candidate) -> usize {
    let called = |call: &conclave_core::ToolCall| call.name.len() + call.arguments.len();
    candidate.text.len() + candidate.tool_calls.iter().map(called).sum::<usize>()
}

/// The bytes of text a model reads: the conversation, what we add, and the tools it is offered.
/// Images and files are left out, as their bytes say nothing about tokens.
pub(crate) fn input_bytes(request: &ModelRequest) -> usize {
    let said = |message: &conclave_core::Message| message.content.as_text().len();
    let conversation: usize = request.conversation.iter().map(said).sum();
    let guidance = request.guidance.as_ref().map_or(0, String::len);
    let tools = ["tools", "functions"]
        .iter()
        .filter_map(|field| request.body.get(*field))
        .map(json_bytes)
        .sum::<usize>();
    conversation + guidance + tools
}

fn json_bytes(value: &serde_json::Value) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail, and a value always has a JSON form.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request_saying;
    use serde_json::json;

    fn settled(usage: &str, text: &str) -> (Usage, bool) {
        let raw: Box<RawValue> = serde_json::from_str(usage).unwrap();
        let candidate = Candidate { text: text.into(), ..Candidate::default() };
        Claim::read(&raw).settle(&request_saying("twelve bytes"), &candidate)
    }

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens }
    }

    #[test]
    fn a_plausible_claim_is_believed() {
        for claim in [
            r#"{"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}"#,
            r#"{"prompt_tokens": 7.0, "completion_tokens": 9.0}"#,
            r#"{"input_tokens": 7, "output_tokens": 9}"#,
            r#"{"input_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1,
                "output_tokens": 9}"#,
        ] {
            assert_eq!(settled(claim, "hello"), (usage(7, 9), false), "{claim}");
        }
    }

    #[test]
    fn an_implausible_claim_is_replaced_by_our_count() {
        for claim in [
            "{}",
            "[]",
            "\"many\"",
            r#"{"prompt_tokens": -7, "completion_tokens": -9}"#,
            r#"{"prompt_tokens": null, "completion_tokens": null}"#,
            r#"{"prompt_tokens": "7", "completion_tokens": "NaN"}"#,
            r#"{"prompt_tokens": 1e999, "completion_tokens": 1e999}"#,
            r#"{"prompt_tokens": 1.5, "completion_tokens": 2.5}"#,
            r#"{"prompt_tokens": 0, "completion_tokens": 0}"#,
            r#"{"prompt_tokens": 18446744073709551615, "completion_tokens": 100000001}"#,
            r#"{"prompt_tokens": [1], "completion_tokens": {"a": 1}}"#,
        ] {
            assert_eq!(settled(claim, "hello"), (usage(3, 2), true), "{claim}");
        }
    }

    #[test]
    fn each_side_is_judged_by_itself() {
        let claim = r#"{"prompt_tokens": 40, "completion_tokens": -1}"#;
        assert_eq!(settled(claim, "hello"), (usage(40, 2), true));
    }

    #[test]
    fn silence_may_cost_nothing() {
        let claim = r#"{"prompt_tokens": 40, "completion_tokens": 0}"#;
        assert_eq!(settled(claim, ""), (usage(40, 0), false));
    }

    #[test]
    fn tools_and_guidance_are_read_too() {
        let mut request = request_saying("1234");
        let plain = input_bytes(&request);
        request.guidance = Some("12345678".into());
        let body = json!({"tools": [{"a": 1}]}).as_object().unwrap().clone();
        request.body = std::sync::Arc::new(body);
        assert_eq!(plain, 4);
        assert_eq!(input_bytes(&request), 4 + 8 + r#"[{"a":1}]"#.len());
    }
}
