//! What keeping accounts needs of a database.

use crate::error::StoreError;
use conclave_govern::{AccountKey, BudgetScope, Period};
use conclave_money::{
    AccountBalance, AccountPage, Balance, OpenReservation, UnreadableReservation,
    UnsettledReservation, decode_lines,
};
use std::collections::BTreeSet;

/// Which accounts and reservations a transaction is about; accounts of known reservations come by themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageRequest {
    pub(crate) accounts: BTreeSet<AccountKey>,
    pub(crate) reservations: BTreeSet<[u8; 16]>,
}

/// The tables of accounts and reservations.
pub(crate) trait AccountTables: Send {
    /// Reads a page, has it changed and writes it back, in one transaction that nobody else's
    /// overlaps.
    ///
    /// # Errors
    /// When the database refuses; nothing is changed then, as far as can be known.
    fn change_page(
        &mut self,
        wanted: &PageRequest,
        work: &mut dyn FnMut(&mut AccountPage),
    ) -> Result<(), StoreError>;

    /// Reservations whose time is over and that were not charged yet.
    ///
    /// # Errors
    /// When the database refuses.
    fn expired(&mut self, now_ms: u64, at_most: u32) -> Result<Vec<[u8; 16]>, StoreError>;

    /// The oldest reservations made before this time.
    ///
    /// # Errors
    /// When the database refuses.
    fn unsettled(
        &mut self,
        before_ms: u64,
        at_most: u32,
    ) -> Result<Vec<UnsettledReservation>, StoreError>;

    /// The accounts of a tenant that count now, the largest first.
    ///
    /// # Errors
    /// When the database refuses.
    fn balances(
        &mut self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> Result<Vec<AccountBalance>, StoreError>;

    /// Removes accounts of long ago, and reservations that were charged a day ago: whatever decision is not
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
    pub(crate) balances: Vec<(&'a AccountKey, &'a Balance)>,
    /// Reservations that are new.
    pub(crate) made: Vec<(&'a [u8; 16], &'a OpenReservation)>,
    /// Reservations that were charged.
    pub(crate) charged: Vec<&'a [u8; 16]>,
    /// Reservations that were settled.
    pub(crate) gone: Vec<&'a [u8; 16]>,
}

/// Compares a page with what it was.
pub(crate) fn changes<'a>(before: &'a AccountPage, after: &'a AccountPage) -> Changes<'a> {
    let balances = after.balances.iter();
    let is_new = |id: &[u8; 16]| !before.reservations.contains_key(id);
    Changes {
        balances: balances.filter(|(key, now)| before.balances.get(*key) != Some(*now)).collect(),
        made: after.reservations.iter().filter(|(id, _)| is_new(id)).collect(),
        charged: after
            .reservations
            .iter()
            .filter(|(id, now)| {
                now.charged && before.reservations.get(*id).is_some_and(|then| !then.charged)
            })
            .map(|(id, _)| id)
            .collect(),
        gone: before
            .reservations
            .keys()
            .filter(|id| !after.reservations.contains_key(*id))
            .collect(),
    }
}

/// The key of an account from the columns of its row.
///
/// # Errors
/// When a column says what this program does not know, so that no account is taken for another or
/// left out of a sum.
pub(crate) fn account_key(
    tenant: i64,
    scope: &str,
    name: String,
    period: &str,
    number: i64,
) -> Result<AccountKey, String> {
    let unreadable = || format!("the account `{scope} {name} {period} {number}` cannot be read");
    Ok(AccountKey {
        tenant: tenant.cast_unsigned(),
        scope: BudgetScope::parse(scope).ok_or_else(unreadable)?,
        period: Period::parse(period).ok_or_else(unreadable)?,
        number: u32::try_from(number).map_err(|_| unreadable())?,
        name,
    })
}

/// Adds a stored reservation to a page, or says there why it cannot be read. One that cannot must not
/// keep others from being settled.
pub(crate) fn add_reservation(page: &mut AccountPage, id: [u8; 16], row: &ReservationRow) {
    match decode_lines(&row.lines) {
        Ok(lines) => {
            let open = OpenReservation {
                amount: row.amount.cast_unsigned(),
                lines,
                tenant: row.tenant.cast_unsigned(),
                made_ms: row.made_ms.cast_unsigned(),
                expires_ms: row.expires_ms.cast_unsigned(),
                charged: row.charged,
            };
            page.reservations.insert(id, open);
        }
        Err(error) => {
            let unreadable = UnreadableReservation { id, why: error.to_string() };
            page.unreadable.insert(id, unreadable);
        }
    }
}

/// A reservation as both databases keep it.
pub(crate) struct ReservationRow {
    pub(crate) amount: i64,
    pub(crate) lines: String,
    pub(crate) tenant: i64,
    pub(crate) made_ms: i64,
    pub(crate) expires_ms: i64,
    pub(crate) charged: bool,
}
