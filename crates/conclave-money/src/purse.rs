//! What the guard of a run asks of whoever keeps the money.

use crate::{Crossing, Grant};
use conclave_core::{MicroUsd, TenantId};
use conclave_govern::{Scope, Scopes};
use futures_util::future::BoxFuture;
use thiserror::Error;

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

/// Why money was not set aside.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PurseError {
    /// It would be more than a limit.
    #[error("the {scope:?} limit of {} micro-USD would be exceeded", limit.0)]
    Exceeded {
        /// Which limit.
        scope: Scope,
        /// How much it is.
        limit: MicroUsd,
        /// What is left of it.
        left: MicroUsd,
        /// Whom to tell, where it is the first refusal.
        crossing: Option<Box<Crossing>>,
        /// When the limit begins anew; absent where it never does.
        resets_ms: Option<u64>,
    },
    /// The purse cannot be opened.
    #[error("budgets cannot be checked: {0}")]
    Unavailable(String),
}

/// Keeps the money: set aside before, settled after, never overspent.
pub trait Purse: Send + Sync {
    /// Sets money aside in every scope or in none, and says whether it is the cheaper amount; durable when
    /// this resolves.
    fn reserve(&self, ask: Reserve) -> BoxFuture<'_, Result<Grant, PurseError>>;
    /// Says what was really spent and gives the rest back, and which lines that crossed; a second time
    /// does nothing.
    fn settle<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: [u8; 16],
        spent: MicroUsd,
    ) -> BoxFuture<'a, Result<Vec<Crossing>, PurseError>>;
}
