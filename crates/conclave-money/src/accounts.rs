//! The port to whoever keeps the accounts: money held before and settled after, durably.

use crate::{Account, Crossing, Grant, HoldAsk, Refusal};
use conclave_core::MicroUsd;
use conclave_govern::AccountKey;
use futures_util::future::BoxFuture;
use thiserror::Error;

/// Why the accounts did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the accounts cannot be reached: {0}")]
pub struct AccountsError(pub String);

/// What became of a hold that was asked for.
pub type HoldAnswer = Result<Grant, (Refusal, Option<Crossing>)>;

/// Money that was set aside and that nobody has settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Its id, which is that of the decision it was made for.
    pub id: [u8; 16],
    /// The tenant's number.
    pub tenant: u64,
    /// When it was set aside.
    pub made_ms: u64,
    /// Whether it was charged in full meanwhile.
    pub charged: bool,
}

/// Keeps the accounts of all replicas.
pub trait Accounts: Send + Sync {
    /// Sets money aside in every account or in none; durable when this resolves.
    fn hold(&self, ask: HoldAsk) -> BoxFuture<'_, Result<HoldAnswer, AccountsError>>;
    /// Says what was really spent; a second time does nothing. Returns the alerts that are due.
    fn settle(
        &self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>>;
    /// The oldest holds made before this time that nobody has settled.
    fn unsettled(
        &self,
        before_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<Unsettled>, AccountsError>>;
    /// The accounts of a tenant that count now, the largest first.
    fn balances(
        &self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<(AccountKey, Account)>, AccountsError>>;
}
