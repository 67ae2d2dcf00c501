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
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}
