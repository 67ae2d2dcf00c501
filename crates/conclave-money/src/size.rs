//! How large a request is at most, and so what it can cost at most.
//!
//! **Invariant:** a bound is never under what a request can cost: text has at most one token a byte,
//! and a model is told how much it may write.

use conclave_core::{MicroUsd, Usage};
use conclave_govern::Price;
use serde_json::{Map, Value};

/// Tokens a part of a message that is no text can have at most, such as a picture.
const PART_TOKENS_MAX: u64 = 8_192;
/// Tokens that a message costs beside its text.
pub const MESSAGE_TOKENS: u64 = 16;
/// Tokens of what we add to a prompt: how to shape the reply, and what was wrong with the last one.
pub const GUIDANCE_TOKENS_MAX: u64 = 8_192;
/// What a model may write where nobody said how much.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 4_096;

/// How large a request is, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSize {
    /// Tokens of the prompt, without what we add.
    pub prompt_tokens: u64,
    /// Tokens of one reply.
    pub output_tokens: u64,
    /// How often a model may be called for it.
    pub calls: u64,
    /// How often a panel may judge what came of it.
    pub panels: u64,
}

impl RequestSize {
    /// The bound of one call with this body, for which the model writes as much as the client lets it,
    /// else as much as it can.
    #[must_use]
    pub fn of_request(body: &Map<String, Value>, output_tokens_max: Option<u64>) -> Self {
        let prompt_tokens = body.iter().fold(0_u64, |sum, (name, value)| {
            sum.saturating_add(tokens_at_most(value)).saturating_add(byte_count(name))
        });
        let default = output_tokens_max.unwrap_or(OUTPUT_TOKENS_DEFAULT);
        let output_tokens = stated_output_tokens(body).unwrap_or(default);
        Self { prompt_tokens, output_tokens, calls: 1, panels: 0 }
    }

    /// The most that one call of the model can cost.
    #[must_use]
    pub const fn call(&self, price: &Price) -> MicroUsd {
        price.cost(Usage {
            input_tokens: self.prompt_tokens.saturating_add(GUIDANCE_TOKENS_MAX),
            output_tokens: self.output_tokens,
        })
    }

    /// The most that all calls of the model can cost.
    #[must_use]
    pub const fn calls_cost(&self, price: &Price) -> MicroUsd {
        MicroUsd(self.call(price).0.saturating_mul(self.calls))
    }
}

fn byte_count(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// How many tokens a part of a request can have: text at most one a byte, a picture its own measure.
#[must_use]
pub fn tokens_at_most(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => 8,
        Value::Number(_) => 32,
        Value::String(text) => byte_count(text).saturating_add(MESSAGE_TOKENS),
        Value::Array(items) => {
            items.iter().fold(8, |sum, item| sum.saturating_add(tokens_at_most(item)))
        }
        Value::Object(fields) => fields.iter().fold(MESSAGE_TOKENS, |sum, (name, value)| {
            // A client may write whatever it likes beside a picture, so only that field has its measure.
            let tokens = match name.as_str() {
                "image_url" => PART_TOKENS_MAX,
                _ => tokens_at_most(value),
            };
            sum.saturating_add(byte_count(name)).saturating_add(tokens)
        }),
    }
}

/// What the client lets the model write, if it says so.
#[must_use]
pub fn stated_output_tokens(body: &Map<String, Value>) -> Option<u64> {
    let stated = ["max_tokens", "max_completion_tokens"].map(|name| body.get(name)?.as_u64());
    stated.into_iter().flatten().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_govern::Usd;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn text_has_a_token_a_byte_and_a_picture_its_own_measure() {
        let text = "word ".repeat(1_000);
        let message = json!({"role": "user", "content": text});
        let bound = tokens_at_most(&message);
        assert!((5_000..5_200).contains(&bound), "{bound}");
        let picture = json!({"type": "image_url", "image_url": {"url": "x".repeat(1 << 20)}});
        let bound = tokens_at_most(&picture);
        assert!((PART_TOKENS_MAX..PART_TOKENS_MAX + 200).contains(&bound), "{bound}");
    }

    #[test]
    fn what_stands_beside_a_picture_is_counted_too() {
        let text = "x".repeat(100_000);
        let part = json!({"type": "text", "text": text, "image_url": {"url": "https://a.example"}});
        assert!(tokens_at_most(&part) > 100_000 + PART_TOKENS_MAX);
    }

    #[test]
    fn what_the_client_says_about_the_length_of_a_reply_counts_else_what_the_model_can() {
        for (body, tokens) in [
            (json!({}), 900),
            (json!({"max_tokens": 5}), 5),
            (json!({"max_tokens": 5, "max_completion_tokens": 7}), 7),
            (json!({"max_tokens": -5}), 900),
        ] {
            let size = RequestSize::of_request(body.as_object().unwrap(), Some(900));
            assert_eq!(size.output_tokens, tokens, "{body}");
        }
        let unknown = RequestSize::of_request(&Map::new(), None);
        assert_eq!(unknown.output_tokens, OUTPUT_TOKENS_DEFAULT);
    }

    proptest! {
        #[test]
        fn nothing_within_the_size_costs_more_than_the_bound(
            prompt in 0_u64..100_000, output in 0_u64..10_000, calls in 1_u64..40,
            input_price in 0_u64..100_000_000, output_price in 0_u64..100_000_000,
        ) {
            let price = Price {
                input_usd_per_million: Usd(MicroUsd(input_price)),
                output_usd_per_million: Usd(MicroUsd(output_price)),
                output_tokens_max: None,
            };
            let size = RequestSize { prompt_tokens: prompt, output_tokens: output, calls, panels: 0 };
            let call = Usage { input_tokens: prompt + GUIDANCE_TOKENS_MAX, output_tokens: output };
            let mut all = MicroUsd(0);
            for _ in 0..calls {
                all = all.saturating_add(price.cost(call));
            }
            prop_assert!(all <= size.calls_cost(&price));
        }
    }
}
