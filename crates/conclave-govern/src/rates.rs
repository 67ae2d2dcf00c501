//! How fast somebody may ask: requests and tokens a minute.
//!
//! **Invariant:** of two sayings the stricter holds; nothing a tenant says lets more through than the
//! operator does.

use serde::{Deserialize, Serialize};

/// The largest number a minute that is worth counting.
pub const RATE_MAX: u32 = 10_000_000;

/// How much in a minute; anything where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rate {
    /// Requests a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
}

/// How much in a minute, for whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Each API key.
    pub per_key: Rate,
    /// All keys of a tenant together.
    pub per_tenant: Rate,
    /// Each person; those without an id share one.
    pub per_user: Rate,
}

impl Rate {
    /// The stricter of both, number by number.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let least = |one: Option<u32>, other: Option<u32>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            requests_per_minute: least(self.requests_per_minute, other.requests_per_minute),
            tokens_per_minute: least(self.tokens_per_minute, other.tokens_per_minute),
        }
    }

    /// What is wrong with it: (field, sentence).
    #[must_use]
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let numbers = [
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
        ];
        let odd = |number: u32| !(1..=RATE_MAX).contains(&number);
        let wrong = numbers.into_iter().find(|(_, number)| number.is_some_and(odd));
        wrong.map(|(field, _)| (field, format!("must be 1 to {RATE_MAX}")))
    }
}

impl Rates {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The stricter of both, number by number.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        Self {
            per_key: self.per_key.strictest(other.per_key),
            per_tenant: self.per_tenant.strictest(other.per_tenant),
            per_user: self.per_user.strictest(other.per_user),
        }
    }

    /// What is wrong with it: (field, sentence).
    #[must_use]
    pub fn fault(&self) -> Option<(String, String)> {
        let all = [
            ("per_key", &self.per_key),
            ("per_tenant", &self.per_tenant),
            ("per_user", &self.per_user),
        ];
        let faults = all.into_iter().filter_map(|(who, rate)| {
            rate.fault().map(|(field, message)| (format!("{who}.{field}"), message))
        });
        faults.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(requests: Option<u32>, tokens: Option<u32>) -> Rate {
        Rate { requests_per_minute: requests, tokens_per_minute: tokens }
    }

    #[test]
    fn the_stricter_number_holds_whoever_said_it() {
        let operator = rate(Some(60), None);
        assert_eq!(operator.strictest(rate(Some(600), Some(9))), rate(Some(60), Some(9)));
        assert_eq!(rate(Some(6), None).strictest(operator), rate(Some(6), None));
        assert_eq!(rate(None, None).strictest(operator), operator);
    }

    #[test]
    fn numbers_that_would_stop_everybody_or_nobody_are_refused() {
        assert!(Rates::default().fault().is_none());
        let zero = Rates { per_user: rate(Some(0), None), ..Rates::default() };
        assert_eq!(zero.fault().unwrap().0, "per_user.requests_per_minute");
        let huge = Rates { per_key: rate(None, Some(RATE_MAX + 1)), ..Rates::default() };
        assert_eq!(huge.fault().unwrap().0, "per_key.tokens_per_minute");
    }
}
