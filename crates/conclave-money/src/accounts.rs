//! The port to whoever keeps the accounts: money reserved before and settled after, durably.

use crate::{
    Balance, Crossing, LineExceeded, Reservation, ReservationOrder, UnreadableReservation,
};
use conclave_core::MicroUsd;
use conclave_govern::AccountKey;
use futures_util::future::BoxFuture;
use thiserror::Error;

/// Why the accounts did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccountsError {
    /// Nobody knows whether anything was changed.
    #[error("the accounts cannot be reached: {0}")]
    Unreachable(String),
    /// One reservation cannot be settled; everything else can.
    #[error(transparent)]
    Unreadable(#[from] UnreadableReservation),
}

/// What became of an order: money, or the limit it does not fit in.
pub type ReserveOutcome = Result<Reservation, Box<LineExceeded>>;

/// A reservation that nobody has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsettledReservation {
    /// That of the decision it was made for.
    pub id: [u8; 16],
    /// The tenant's number.
    pub tenant: u64,
}

/// How an account stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountBalance {
    /// Which account.
    pub key: AccountKey,
    /// What is in it.
    pub balance: Balance,
}

/// Keeps the accounts of all replicas.
pub trait Accounts: Send + Sync {
    /// Reserves money in every account or in none; durable when this resolves.
    fn reserve(
        &self,
        order: ReservationOrder,
    ) -> BoxFuture<'_, Result<ReserveOutcome, AccountsError>>;
    /// Counts what was really spent; a second time does nothing. Returns the alerts that are due.
    fn settle(
        &self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>>;
    /// The oldest reservations made before this time that nobody has settled.
    fn unsettled(
        &self,
        before_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<UnsettledReservation>, AccountsError>>;
    /// The accounts of a tenant that count now, the largest first.
    fn balances(
        &self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<AccountBalance>, AccountsError>>;
}
