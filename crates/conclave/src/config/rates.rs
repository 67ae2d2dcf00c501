//! The section `rate_limits`: how fast anybody may ask.

use conclave_govern::{RATE_MAX, Rate, Rates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast anybody may ask. A tenant's policy may be stricter and not laxer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Requests a minute of all callers without a valid key together; 0 for as many as come.
    pub keyless_requests_per_minute: u32,
    /// What each API key may ask.
    pub per_key: Pace,
    /// What all keys of a tenant may ask together.
    pub per_tenant: Pace,
    /// What each person may ask; those without an id share one.
    pub per_user: Pace,
}

/// How much in a minute; anything where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, read and written.
    pub tokens_per_minute: Option<u32>,
}

impl Default for RateLimits {
    fn default() -> Self {
        let open = Pace::default();
        let keyless_requests_per_minute = 600;
        Self { keyless_requests_per_minute, per_key: open, per_tenant: open, per_user: open }
    }
}

impl RateLimits {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What the gateway is told.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let rate = |pace: Pace| Rate {
            requests_per_minute: pace.requests_per_minute,
            tokens_per_minute: pace.tokens_per_minute,
        };
        Rates {
            per_key: rate(self.per_key),
            per_tenant: rate(self.per_tenant),
            per_user: rate(self.per_user),
        }
    }

    /// What cannot be: (path, message).
    pub(super) fn fault(&self) -> Option<(String, String)> {
        if self.keyless_requests_per_minute > RATE_MAX {
            let path = "rate_limits.keyless_requests_per_minute".to_owned();
            return Some((path, format!("must be 0 to {RATE_MAX}")));
        }
        let (field, message) = self.rates().fault()?;
        Some((format!("rate_limits.{field}"), message))
    }
}
