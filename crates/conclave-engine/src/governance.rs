//! What the guards ask of those who keep consent, protocols, money and reviews.

use conclave_core::{MicroUsd, TenantId};
use conclave_govern::{
    ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview, Reserve, Scope,
};
use futures_util::future::BoxFuture;
use thiserror::Error;

/// Why a guard got no answer; whatever asked is held then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct GovernError(pub String);

/// Knows what people and communities have said.
pub trait Governance: Send + Sync {
    /// Whether somebody has agreed, as of the latest change.
    fn consent<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>>;
    /// What the protocols of the tenant's communities say.
    fn look<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>>;
    /// Has something wait for a person; durable when this resolves. Returns the review's id.
    fn submit(&self, review: NewReview) -> BoxFuture<'_, Result<String, GovernError>>;
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
    },
    /// The purse cannot be opened.
    #[error("budgets cannot be checked: {0}")]
    Unavailable(String),
}

/// Keeps the money: set aside before, settled after, never overspent.
pub trait Purse: Send + Sync {
    /// Sets money aside in every scope or in none; durable when this resolves.
    fn reserve(&self, ask: Reserve) -> BoxFuture<'_, Result<(), PurseError>>;
    /// Says what was really spent and gives the rest back; a second time does nothing.
    fn settle(&self, id: [u8; 16], spent: MicroUsd) -> BoxFuture<'_, Result<(), PurseError>>;
}
