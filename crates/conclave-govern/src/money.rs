//! Whose money it is, and how much is asked for.

use conclave_core::{MicroUsd, TenantId};
use serde::{Deserialize, Serialize};

/// What a limit holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One request with everything it causes.
    Request,
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

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 6] =
        [Self::Request, Self::Tenant, Self::Key, Self::User, Self::Session, Self::Recipe];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
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

/// Money that shall be set aside before anything is spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Unique: the same reservation asked for twice is one.
    pub id: [u8; 16],
    /// What it counts towards.
    pub scopes: Scopes,
    /// The most that the request with its verifiers and regenerations can cost.
    pub most: MicroUsd,
    /// The most that it can cost with a cheaper model, where another may be asked.
    pub cheaper: Option<MicroUsd>,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}
