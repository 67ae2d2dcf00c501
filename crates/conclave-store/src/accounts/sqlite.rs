//! Accounts and reservations in SQLite, in the operational database of a data directory.

use super::tables::{
    AccountTables, PageRequest, ReservationRow, account_key, add_reservation, changes,
};
use crate::db::{OPS, id_in, open_writer};
use crate::error::StoreError;
use crate::keys::{Note, leave_note};
use conclave_govern::{AccountKey, Period};
use conclave_money::{AccountBalance, AccountPage, Balance, UnsettledReservation, encode_lines};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};

/// The table whose rows are named by their ids.
const RESERVATIONS: &str = "purse_hold";

/// One connection to the operational database.
pub(crate) struct SqliteAccounts {
    conn: Connection,
    path: PathBuf,
}

impl SqliteAccounts {
    /// Opens the operational database of a data directory.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("ops.db");
        Ok(Self { conn: open_writer(&path, OPS)?, path })
    }

    /// Everything in it, to be moved elsewhere.
    ///
    /// # Errors
    /// When it cannot be read: nothing may be lost on the way.
    pub(crate) fn whole(&self) -> Result<AccountPage, StoreError> {
        let named = StoreError::database(&self.path);
        let read = || -> rusqlite::Result<AccountPage> {
            let mut page = AccountPage::default();
            let mut find = self.conn.prepare(
                "SELECT scope, name, period, number, spent, held, alerted, tenant
                 FROM purse_account",
            )?;
            for found in find.query_map([], account)? {
                let AccountBalance { key, balance } = found?;
                page.balances.insert(key, balance);
            }
            let mut find = self.conn.prepare(
                "SELECT most, lines, tenant, made_ms, expires_ms, charged, id FROM purse_hold",
            )?;
            let mut rows = find.query([])?;
            while let Some(row) = rows.next()? {
                add_reservation(&mut page, id_in(row, 6, RESERVATIONS)?, &reservation(row)?);
            }
            Ok(page)
        };
        let page = read().map_err(named)?;
        match page.unreadable.values().next() {
            Some(error) => Err(StoreError::damaged(&self.path, error.to_string())),
            None => Ok(page),
        }
    }

    fn change(
        &mut self,
        wanted: &PageRequest,
        work: &mut dyn FnMut(&mut AccountPage),
    ) -> rusqlite::Result<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = read(&tx, wanted)?;
        let mut after = before.clone();
        work(&mut after);
        write(&tx, &before, &after)?;
        tx.commit()
    }
}

fn read(tx: &Transaction<'_>, wanted: &PageRequest) -> rusqlite::Result<AccountPage> {
    let mut page = AccountPage::default();
    let mut find = tx.prepare_cached(
        "SELECT most, lines, tenant, made_ms, expires_ms, charged FROM purse_hold WHERE id = ?1",
    )?;
    for id in &wanted.reservations {
        if let Some(row) = find.query_row([id], reservation).optional()? {
            add_reservation(&mut page, *id, &row);
        }
    }
    let mut keys = wanted.accounts.clone();
    let lines = page.reservations.values().flat_map(|open| &open.lines);
    keys.extend(lines.map(|line| line.key.clone()));
    let mut find = tx.prepare_cached(
        "SELECT spent, held, alerted FROM purse_account
         WHERE tenant = ?1 AND scope = ?2 AND name = ?3 AND period = ?4 AND number = ?5",
    )?;
    for key in keys {
        let AccountKey { tenant, scope, name, period, number } = &key;
        let (scope, period, tenant) = (scope.as_str(), period.as_str(), tenant.cast_signed());
        let values = params![tenant, scope, name, period, number];
        if let Some(found) = find.query_row(values, |row| balance(row, 0)).optional()? {
            page.balances.insert(key, found);
        }
    }
    Ok(page)
}

fn write(tx: &Transaction<'_>, before: &AccountPage, after: &AccountPage) -> rusqlite::Result<()> {
    let changed = changes(before, after);
    let mut put = tx.prepare_cached(
        "INSERT INTO purse_account (tenant, scope, name, period, number, spent, held, alerted)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT DO UPDATE SET spent = excluded.spent, held = excluded.held,
         alerted = excluded.alerted",
    )?;
    for (AccountKey { tenant, scope, name, period, number }, now) in changed.balances {
        let (scope, period, tenant) = (scope.as_str(), period.as_str(), tenant.cast_signed());
        let (spent, reserved) = (now.spent.cast_signed(), now.reserved.cast_signed());
        put.execute(params![tenant, scope, name, period, number, spent, reserved, now.alerted])?;
    }
    let mut make = tx.prepare_cached(
        "INSERT INTO purse_hold (id, most, lines, tenant, made_ms, expires_ms, charged)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (id, open) in changed.made {
        let (amount, lines) = (open.amount.cast_signed(), encode_lines(&open.lines));
        let (made, expires) = (open.made_ms.cast_signed(), open.expires_ms.cast_signed());
        let tenant = open.tenant.cast_signed();
        make.execute(params![id, amount, lines, tenant, made, expires, open.charged])?;
    }
    let mut charge = tx.prepare_cached("UPDATE purse_hold SET charged = 1 WHERE id = ?1")?;
    for id in changed.charged {
        charge.execute([id])?;
    }
    let mut remove = tx.prepare_cached("DELETE FROM purse_hold WHERE id = ?1")?;
    for id in changed.gone {
        remove.execute([id])?;
    }
    Ok(())
}

fn reservation(row: &Row<'_>) -> rusqlite::Result<ReservationRow> {
    Ok(ReservationRow {
        amount: row.get(0)?,
        lines: row.get(1)?,
        tenant: row.get(2)?,
        made_ms: row.get(3)?,
        expires_ms: row.get(4)?,
        charged: row.get(5)?,
    })
}

fn balance(row: &Row<'_>, at: usize) -> rusqlite::Result<Balance> {
    Ok(Balance {
        spent: row.get::<_, i64>(at)?.cast_unsigned(),
        reserved: row.get::<_, i64>(at + 1)?.cast_unsigned(),
        alerted: row.get(at + 2)?,
    })
}

/// An account of a row with its scope, name, period, number, sums and tenant.
fn account(row: &Row<'_>) -> rusqlite::Result<AccountBalance> {
    let (scope, period): (String, String) = (row.get(0)?, row.get(2)?);
    let key = account_key(row.get(7)?, &scope, row.get(1)?, &period, row.get(3)?);
    let unreadable =
        |why: String| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, why.into());
    Ok(AccountBalance { key: key.map_err(unreadable)?, balance: balance(row, 4)? })
}

/// Removes the reservations that nobody came back for; says what becomes of each.
fn abandoned(tx: &Transaction<'_>, long_ago: i64) -> rusqlite::Result<Vec<Note>> {
    let sql = "DELETE FROM purse_hold WHERE charged = 1 AND expires_ms < ?1
               RETURNING id, tenant, most, made_ms";
    let mut gone = tx.prepare_cached(sql)?;
    let number = |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let notes = gone.query_map([long_ago], |row| {
        let (tenant, most) = (number(row, 1)?, number(row, 2)?);
        Ok(Note::of_abandoned(row.get(0)?, tenant, most, number(row, 3)?))
    })?;
    notes.collect()
}

impl AccountTables for SqliteAccounts {
    fn change_page(
        &mut self,
        wanted: &PageRequest,
        work: &mut dyn FnMut(&mut AccountPage),
    ) -> Result<(), StoreError> {
        let named = StoreError::database(&self.path);
        self.change(wanted, work).map_err(named)
    }

    fn expired(&mut self, now_ms: u64, at_most: u32) -> Result<Vec<[u8; 16]>, StoreError> {
        let named = StoreError::database(&self.path);
        let ask = || -> rusqlite::Result<Vec<_>> {
            let mut find = self.conn.prepare_cached(
                "SELECT id FROM purse_hold WHERE charged = 0 AND expires_ms <= ?1 LIMIT ?2",
            )?;
            find.query_map(params![now_ms.cast_signed(), at_most], |row| row.get(0))?.collect()
        };
        ask().map_err(named)
    }

    fn unsettled(
        &mut self,
        before_ms: u64,
        at_most: u32,
    ) -> Result<Vec<UnsettledReservation>, StoreError> {
        let named = StoreError::database(&self.path);
        let ask = || -> rusqlite::Result<Vec<_>> {
            let mut find = self.conn.prepare_cached(
                "SELECT id, tenant FROM purse_hold WHERE made_ms < ?1 ORDER BY made_ms LIMIT ?2",
            )?;
            let found = find.query_map(params![before_ms.cast_signed(), at_most], |row| {
                let tenant = row.get::<_, i64>(1)?.cast_unsigned();
                Ok(UnsettledReservation { id: id_in(row, 0, RESERVATIONS)?, tenant })
            })?;
            found.collect()
        };
        ask().map_err(named)
    }

    fn balances(
        &mut self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> Result<Vec<AccountBalance>, StoreError> {
        let named = StoreError::database(&self.path);
        let (day, month) = (Period::Day.number_at(now_ms), Period::Month.number_at(now_ms));
        let ask = || -> rusqlite::Result<Vec<_>> {
            let mut find = self.conn.prepare_cached(
                "SELECT scope, name, period, number, spent, held, alerted, tenant
                 FROM purse_account
                 WHERE tenant = ?1 AND ((period = 'day' AND number = ?2)
                 OR (period = 'month' AND number = ?3))
                 ORDER BY spent + held DESC, scope, name LIMIT ?4",
            )?;
            let values = params![tenant.cast_signed(), day, month, at_most];
            find.query_map(values, account)?.collect()
        };
        ask().map_err(named)
    }

    fn prune(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let named = StoreError::database(&self.path);
        let mut sweep = || -> rusqlite::Result<()> {
            let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for period in [Period::Day, Period::Month] {
                tx.execute(
                    "DELETE FROM purse_account WHERE period = ?1 AND number < ?2 AND held = 0",
                    params![period.as_str(), period.oldest_kept_at(now_ms)],
                )?;
            }
            let long_ago = now_ms.saturating_sub(CHARGED_KEPT_MS).cast_signed();
            for note in abandoned(&tx, long_ago)? {
                leave_note(&tx, &note)?;
            }
            tx.commit()
        };
        sweep().map_err(named)
    }
}

/// How long a reservation that was charged in full may still be corrected.
pub(crate) const CHARGED_KEPT_MS: u64 = 86_400_000;
