//! What tokens cost, by model and date, and what a request can cost at most.
//!
//! **Invariant:** a bound is never under what a request can cost: text has at most one token a byte,
//! and a model is told how much it may write.

use crate::period::parse_date;
use crate::{Usd, day_of};
use conclave_core::{MicroUsd, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Tokens a part of a message that is no text can have at most, such as a picture.
pub const PART_TOKENS_MAX: u64 = 8_192;
/// Tokens that a message costs beside its text.
pub const MESSAGE_TOKENS: u64 = 16;
/// Tokens of what we add to a prompt: how to shape the reply, and what was wrong with the last one.
pub const GUIDANCE_TOKENS_MAX: u64 = 8_192;
/// What a model may write where nobody said how much.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 4_096;

/// The price of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Dollars per million tokens read.
    pub input_usd_per_million: Usd,
    /// Dollars per million tokens written.
    pub output_usd_per_million: Usd,
    /// Tokens it can write in one reply, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<u64>,
}

impl Price {
    /// What these tokens cost.
    #[must_use]
    pub const fn cost(&self, usage: Usage) -> MicroUsd {
        MicroUsd::for_tokens(usage.input_tokens, self.input_usd_per_million.0).saturating_add(
            MicroUsd::for_tokens(usage.output_tokens, self.output_usd_per_million.0),
        )
    }

    /// Whether it costs nothing.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.input_usd_per_million.0.0 == 0 && self.output_usd_per_million.0.0 == 0
    }
}

/// How large a request is, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Tokens of the prompt, without what we add.
    pub prompt_tokens: u64,
    /// Tokens of one reply.
    pub output_tokens: u64,
    /// Replies that are wanted.
    pub choices: u64,
    /// Times each may be written.
    pub attempts: u64,
}

impl Size {
    /// The most that one call of the model can cost.
    #[must_use]
    pub const fn call(&self, price: &Price) -> MicroUsd {
        price.cost(Usage {
            input_tokens: self.prompt_tokens.saturating_add(GUIDANCE_TOKENS_MAX),
            output_tokens: self.output_tokens,
        })
    }

    /// The most that the whole request can cost, its verifiers' own calls included: `verifiers` is what
    /// judging one candidate can cost, and a panel may run twice on it.
    #[must_use]
    pub const fn most(&self, price: &Price, verifiers: MicroUsd) -> MicroUsd {
        let candidate = self.call(price).0.saturating_add(verifiers.0.saturating_mul(2));
        MicroUsd(candidate.saturating_mul(self.choices).saturating_mul(self.attempts))
    }
}

/// Why a price table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the price table: {0}")]
pub struct PriceError(String);

/// Prices by model, each from a date on.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    checked: String,
    models: BTreeMap<String, Vec<(u32, Price)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    checked: String,
    #[serde(rename = "note")]
    _note: String,
    models: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    since: String,
    input_usd_per_million: Usd,
    output_usd_per_million: Usd,
    output_tokens_max: Option<u64>,
}

impl PriceTable {
    /// The table compiled in: a help to begin with, to be checked before use.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn builtin() -> Result<Self, PriceError> {
        Self::parse(include_str!("../../../data/prices/prices.json"))
    }

    /// Reads a table.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let broken = |why: String| PriceError(why);
        let file: File = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        if parse_date(&file.checked).is_none() {
            return Err(broken(format!("`{}` is not a date", file.checked)));
        }
        let mut models: BTreeMap<String, Vec<(u32, Price)>> = BTreeMap::new();
        for row in file.models {
            let since = parse_date(&row.since)
                .ok_or_else(|| broken(format!("{}: `{}` is not a date", row.name, row.since)))?;
            let price = Price {
                input_usd_per_million: row.input_usd_per_million,
                output_usd_per_million: row.output_usd_per_million,
                output_tokens_max: row.output_tokens_max,
            };
            let known = models.entry(row.name).or_default();
            known.push((since, price));
            known.sort_by_key(|(since, _)| *since);
        }
        Ok(Self { checked: file.checked, models })
    }

    /// When the prices were last compared with what providers say.
    #[must_use]
    pub fn checked(&self) -> &str {
        &self.checked
    }

    /// The price of a model at a time; `None` for one that is not known.
    #[must_use]
    pub fn at(&self, model: &str, now_ms: u64) -> Option<Price> {
        let today = day_of(now_ms);
        let prices = self.models.get(model)?.iter();
        prices.rev().find(|(since, _)| *since <= today).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::DAY_MS;
    use proptest::prelude::*;

    const TABLE: &str = r#"{"checked": "2025-01-01", "note": "", "models": [
        {"name": "m", "since": "2024-02-01", "input_usd_per_million": 1, "output_usd_per_million": 2, "output_tokens_max": 9},
        {"name": "m", "since": "2024-01-01", "input_usd_per_million": 3, "output_usd_per_million": 4, "output_tokens_max": null}]}"#;

    #[test]
    fn a_price_holds_from_its_date_on() {
        let table = PriceTable::parse(TABLE).unwrap();
        let at = |date: &str| {
            let now_ms = u64::from(parse_date(date).unwrap()) * DAY_MS;
            table.at("m", now_ms).map(|price| price.input_usd_per_million.0.0)
        };
        assert_eq!(at("2023-12-31"), None);
        assert_eq!(at("2024-01-31"), Some(3_000_000));
        assert_eq!(at("2024-02-01"), Some(1_000_000));
        assert_eq!(table.at("other", u64::MAX), None);
    }

    #[test]
    fn the_table_compiled_in_can_be_read_and_says_when_it_was_checked() {
        let table = PriceTable::builtin().unwrap();
        assert!(parse_date(table.checked()).is_some());
        assert!(table.at("gpt-4o-mini", 1_800_000_000_000).is_some());
        for broken in ["{}", "[]", &TABLE.replace("2024-02-01", "2024-02-31")] {
            assert!(PriceTable::parse(broken).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn nothing_within_the_size_costs_more_than_the_bound(
            prompt in 0_u64..100_000, output in 0_u64..10_000, choices in 1_u64..8,
            attempts in 1_u64..5, input_price in 0_u64..100_000_000, output_price in 0_u64..100_000_000,
        ) {
            let price = Price {
                input_usd_per_million: Usd(MicroUsd(input_price)),
                output_usd_per_million: Usd(MicroUsd(output_price)),
                output_tokens_max: None,
            };
            let size = Size { prompt_tokens: prompt, output_tokens: output, choices, attempts };
            let call = Usage { input_tokens: prompt + GUIDANCE_TOKENS_MAX, output_tokens: output };
            let mut all = MicroUsd(0);
            for _ in 0..choices * attempts {
                all = all.saturating_add(price.cost(call));
            }
            prop_assert!(all <= size.most(&price, MicroUsd(0)));
        }
    }
}
