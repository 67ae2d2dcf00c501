//! Money as integers: floating point loses cents.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Millionths of a US dollar.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// The price of `tokens` at a price per million tokens, rounded up so that nothing is free by
    /// rounding.
    #[must_use]
    pub const fn for_tokens(tokens: u64, per_million: Self) -> Self {
        Self(tokens.saturating_mul(per_million.0).div_ceil(1_000_000))
    }

    /// Sum that stops at the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Dollars, for people and JSON.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "only shown, never added up")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Dollars with two decimals, and with as many more as it takes: `$25.00`, `$0.00014`.
impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % 1_000_000);
        let (cents, rest) = part.split_at(2);
        write!(f, "${}.{cents}{}", self.0 / 1_000_000, rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_told_in_dollars_and_nothing_is_rounded() {
        for (amount, told) in [
            (0, "$0.00"),
            (140, "$0.00014"),
            (50_000, "$0.05"),
            (100_000, "$0.10"),
            (25_000_000, "$25.00"),
            (1_234_567, "$1.234567"),
        ] {
            assert_eq!(MicroUsd(amount).to_string(), told);
        }
    }

    #[test]
    fn a_single_token_costs_something() {
        assert_eq!(MicroUsd::for_tokens(1, MicroUsd(150_000)), MicroUsd(1));
        assert_eq!(MicroUsd::for_tokens(2_000_000, MicroUsd(150_000)), MicroUsd(300_000));
        assert_eq!(MicroUsd::for_tokens(0, MicroUsd(150_000)), MicroUsd(0));
    }
}
