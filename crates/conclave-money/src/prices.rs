//! The table of what tokens cost, by model and date.

use conclave_govern::{Price, Usd, day_of, parse_date};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a price table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the price table: {0}")]
pub struct PriceError(String);

/// Prices by model, each from a date on.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    /// Oldest first.
    models: BTreeMap<String, Vec<DatedPrice>>,
}

#[derive(Clone, Copy, Debug)]
struct DatedPrice {
    since_day: u32,
    price: Price,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// When the prices were last compared with what providers say.
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
        let file: File =
            serde_json::from_str(text).map_err(|error| PriceError(error.to_string()))?;
        read_day(&file.checked)?;
        let mut models: BTreeMap<String, Vec<DatedPrice>> = BTreeMap::new();
        for row in file.models {
            let price = Price {
                input_usd_per_million: row.input_usd_per_million,
                output_usd_per_million: row.output_usd_per_million,
                output_tokens_max: row.output_tokens_max,
            };
            let since_day = read_day(&row.since)?;
            models.entry(row.name).or_default().push(DatedPrice { since_day, price });
        }
        models.values_mut().for_each(|prices| prices.sort_by_key(|dated| dated.since_day));
        Ok(Self { models })
    }

    /// The price of a model at a time; `None` for one that is not known.
    #[must_use]
    pub fn at(&self, model: &str, now_ms: u64) -> Option<Price> {
        let today = day_of(now_ms);
        let mut newest_first = self.models.get(model)?.iter().rev();
        newest_first.find(|dated| dated.since_day <= today).map(|dated| dated.price)
    }
}

fn read_day(date: &str) -> Result<u32, PriceError> {
    parse_date(date).ok_or_else(|| PriceError(format!("`{date}` is not a date")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

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
    fn the_table_compiled_in_can_be_read_and_a_broken_one_cannot() {
        let table = PriceTable::builtin().unwrap();
        assert!(table.at("gpt-4o-mini", 1_800_000_000_000).is_some());
        for broken in [
            "{}",
            "[]",
            &TABLE.replace("2024-02-01", "2024-02-31"),
            &TABLE.replace("2025-01-01", "x"),
        ] {
            assert!(PriceTable::parse(broken).is_err(), "{broken}");
        }
    }
}
