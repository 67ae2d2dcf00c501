//! Amounts of money as people write them: dollars with at most six decimals, never rounded.

use conclave_core::MicroUsd;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The largest amount that can be stated: a billion dollars.
const USD_MAX: u64 = 1_000_000_000;

/// An amount that is written in dollars and kept in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(pub MicroUsd);

impl Usd {
    /// Reads `12`, `12.5` or `0.000001`; `None` for anything else, more decimals included.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
            return None;
        }
        let whole: u64 = whole.parse().ok().filter(|whole| *whole <= USD_MAX)?;
        let part: u64 = format!("{part:0<6}").parse().ok()?;
        let micro = whole * 1_000_000 + part;
        (micro <= USD_MAX * 1_000_000).then_some(Self(MicroUsd(micro)))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Within the largest amount every millionth has a number of its own.
        serializer.serialize_f64(self.0.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Amount)
    }
}

struct Amount;

impl Visitor<'_> for Amount {
    type Value = Usd;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dollars from 0 to {USD_MAX} with at most six decimals")
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<Usd, E> {
        self.visit_str(&whole.to_string())
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<Usd, E> {
        self.visit_str(&whole.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Usd, E> {
        // The shortest text that means this number is what was written.
        Usd::parse(&number.to_string())
            .ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Usd, E> {
        Usd::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_amount_is_refused() {
        for bad in ["-1", "1e10", "0.0000001", "1000000001", "\"x\"", "null", "\"1.\u{661}\"", "[]"]
        {
            assert!(serde_json::from_str::<Usd>(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_str::<Usd>("0.1").unwrap(), Usd(MicroUsd(100_000)));
        assert_eq!(serde_json::from_str::<Usd>("\"2.50\"").unwrap(), Usd(MicroUsd(2_500_000)));
        assert_eq!(serde_json::from_str::<Usd>("1000000000").unwrap().0.0, 1_000_000_000_000_000);
    }

    proptest! {
        #[test]
        fn every_amount_comes_back(micro in 0_u64..=1_000_000_000_000_000) {
            let amount = Usd(MicroUsd(micro));
            let text = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), amount, "{}", text);
        }
    }
}
