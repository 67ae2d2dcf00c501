//! The plain types that a policy states its limits in: prices, whose money it is, and for how long.

use crate::{Period, Usd};
use conclave_core::{MicroUsd, TenantId, Usage};
use serde::{Deserialize, Serialize};

/// The most limits one request counts towards.
pub(crate) const LINES_MAX: usize = 16;

/// What a limit holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetScope {
    /// A tenant.
    Tenant,
    /// An API key.
    Key,
    /// A person.
    User,
    /// A conversation.
    Session,
    /// A recipe.
    Recipe,
}

impl BudgetScope {
    const ALL: [Self; 5] = [Self::Tenant, Self::Key, Self::User, Self::Session, Self::Recipe];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Key => "key",
            Self::User => "user",
            Self::Session => "session",
            Self::Recipe => "recipe",
        }
    }

    /// Finds the scope with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Everything a request counts towards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// Whose account.
    pub tenant: TenantId,
    /// The public part of the key.
    pub key: Option<String>,
    /// The person's pseudonym.
    pub user: Option<String>,
    /// The conversation's pseudonym.
    pub session: Option<String>,
    /// The recipe.
    pub recipe: Option<String>,
}

/// What money is counted for: somebody, in one day or month.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// The tenant's number.
    pub tenant: u64,
    /// What the name means.
    pub scope: BudgetScope,
    /// Who; empty for the tenant itself, and for all who have no name together.
    pub name: String,
    /// How long it counts.
    pub period: Period,
    /// Which day or month.
    pub number: u32,
}

impl AccountKey {
    /// When its day or month is over and a limit begins anew, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn ends_ms(&self) -> u64 {
        self.period.end_ms(self.number)
    }
}

/// One limit a request counts towards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLimit {
    /// Whose account.
    pub key: AccountKey,
    /// How much there may be in it.
    pub limit: MicroUsd,
}

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
