//! Accounts that are gone when the process ends: for a library without a store, and for tests.

use crate::accounts::{
    AccountBalance, Accounts, AccountsError, ReserveOutcome, UnsettledReservation,
};
use crate::{AccountPage, Crossing, ReservationOrder};
use conclave_core::MicroUsd;
use futures_util::future::{BoxFuture, ready};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps accounts in memory.
#[derive(Debug, Default)]
pub struct AccountsInMemory(Mutex<AccountPage>);

impl AccountsInMemory {
    /// A copy of everything that is kept.
    #[must_use]
    pub fn page(&self) -> AccountPage {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, AccountPage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts for AccountsInMemory {
    fn reserve(
        &self,
        order: ReservationOrder,
    ) -> BoxFuture<'_, Result<ReserveOutcome, AccountsError>> {
        Box::pin(ready(Ok(self.lock().reserve(&order))))
    }

    fn settle(
        &self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>> {
        let settled = self.lock().settle(id, spent, &alerts);
        Box::pin(ready(settled.map_err(Into::into)))
    }

    fn unsettled(
        &self,
        before_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<UnsettledReservation>, AccountsError>> {
        let page = self.lock();
        let old = page.reservations.iter().filter(|(_, open)| open.made_ms < before_ms);
        let found = old
            .take(at_most as usize)
            .map(|(id, open)| UnsettledReservation { id: *id, tenant: open.tenant });
        Box::pin(ready(Ok(found.collect())))
    }

    fn balances(
        &self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<AccountBalance>, AccountsError>> {
        let page = self.lock();
        let mut found: Vec<_> = page
            .balances
            .iter()
            .filter(|(key, _)| key.tenant == tenant && key.number == key.period.number_at(now_ms))
            .map(|(key, balance)| AccountBalance { key: key.clone(), balance: *balance })
            .collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.balance.used()));
        found.truncate(at_most as usize);
        Box::pin(ready(Ok(found)))
    }
}
