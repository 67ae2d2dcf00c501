//! Accounts that are gone when the process ends: for a library without a store, and for tests.

use crate::accounts::{Accounts, AccountsError, HoldAnswer, Unsettled};
use crate::{Account, Crossing, HoldAsk, Page};
use conclave_core::MicroUsd;
use conclave_govern::{AccountKey, Period};
use futures_util::future::{BoxFuture, ready};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps accounts in memory.
#[derive(Debug, Default)]
pub struct AccountsInMemory(Mutex<Page>);

impl AccountsInMemory {
    /// Everything that is kept, as it is now.
    #[must_use]
    pub fn page(&self) -> Page {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Page> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts for AccountsInMemory {
    fn hold(&self, ask: HoldAsk) -> BoxFuture<'_, Result<HoldAnswer, AccountsError>> {
        Box::pin(ready(Ok(self.lock().hold(&ask))))
    }

    fn settle(
        &self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>> {
        Box::pin(ready(Ok(self.lock().settle(id, spent, &alerts))))
    }

    fn unsettled(
        &self,
        before_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<Unsettled>, AccountsError>> {
        let page = self.lock();
        let old = page.holds.iter().filter(|(_, hold)| hold.made_ms < before_ms);
        let found = old.take(at_most as usize).map(|(id, hold)| Unsettled {
            id: *id,
            tenant: hold.tenant,
            made_ms: hold.made_ms,
            charged: hold.charged,
        });
        Box::pin(ready(Ok(found.collect())))
    }

    fn balances(
        &self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<(AccountKey, Account)>, AccountsError>> {
        let number = |period: Period| period.number_at(now_ms);
        let page = self.lock();
        let now = page
            .accounts
            .iter()
            .filter(|(key, _)| key.tenant == tenant && key.number == number(key.period));
        let found = now.take(at_most as usize).map(|(key, account)| (key.clone(), *account));
        Box::pin(ready(Ok(found.collect())))
    }
}
