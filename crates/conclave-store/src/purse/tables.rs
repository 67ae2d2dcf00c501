//! What the purse needs of a database.

use crate::error::StoreError;
use conclave_govern::AccountKey;
use conclave_money::{Account, Hold, Page, Unsettled};
use std::collections::BTreeSet;

/// Which accounts and holds a transaction is about; accounts of known holds come by themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) accounts: BTreeSet<AccountKey>,
    pub(crate) holds: BTreeSet<[u8; 16]>,
}

/// The tables of the purse.
pub(crate) trait PurseTables: Send {
    /// Reads a page, has it changed and writes it back, in one transaction that nobody else's
    /// overlaps.
    ///
    /// # Errors
    /// When the database refuses; nothing is changed then, as far as can be known.
    fn turn_over(
        &mut self,
        wanted: &Wanted,
        work: &mut dyn FnMut(&mut Page),
    ) -> Result<(), StoreError>;

    /// Holds whose time is over and that were not charged yet.
    ///
    /// # Errors
    /// When the database refuses.
    fn expired(&mut self, now_ms: u64, at_most: u32) -> Result<Vec<[u8; 16]>, StoreError>;

    /// The oldest holds made before this time.
    ///
    /// # Errors
    /// When the database refuses.
    fn unsettled(&mut self, before_ms: u64, at_most: u32) -> Result<Vec<Unsettled>, StoreError>;

    /// The accounts of a tenant that count now, the largest first.
    ///
    /// # Errors
    /// When the database refuses.
    fn balances(
        &mut self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> Result<Vec<(AccountKey, Account)>, StoreError>;

    /// Removes accounts of long ago, and holds that were charged a day ago: whatever decision is not
    /// there by then does not come any more, which becomes an entry.
    ///
    /// # Errors
    /// When the database refuses.
    fn prune(&mut self, now_ms: u64) -> Result<(), StoreError>;
}

/// What a transaction changed.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a> {
    /// Accounts with other sums than before.
    pub(crate) accounts: Vec<(&'a AccountKey, &'a Account)>,
    /// Holds that are new.
    pub(crate) made: Vec<(&'a [u8; 16], &'a Hold)>,
    /// Holds that were charged.
    pub(crate) charged: Vec<&'a [u8; 16]>,
    /// Holds that were settled.
    pub(crate) gone: Vec<&'a [u8; 16]>,
}

/// Compares a page with what it was.
pub(crate) fn changes<'a>(before: &'a Page, after: &'a Page) -> Changes<'a> {
    let accounts = after.accounts.iter();
    let is_new = |id: &[u8; 16]| !before.holds.contains_key(id);
    Changes {
        accounts: accounts.filter(|(key, now)| before.accounts.get(*key) != Some(*now)).collect(),
        made: after.holds.iter().filter(|(id, _)| is_new(id)).collect(),
        charged: after
            .holds
            .iter()
            .filter(|(id, now)| {
                now.charged && before.holds.get(*id).is_some_and(|then| !then.charged)
            })
            .map(|(id, _)| id)
            .collect(),
        gone: before.holds.keys().filter(|id| !after.holds.contains_key(*id)).collect(),
    }
}
