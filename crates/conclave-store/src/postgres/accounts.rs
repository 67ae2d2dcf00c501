//! Accounts and reservations in PostgreSQL, shared by all replicas.
//!
//! **Invariant:** reservations are locked before accounts, and both in the order of their keys, so that two
//! replicas never wait for each other.

use super::books::leave_note;
use super::link::{Conn, Connector, LinkError, Param};
use super::session::Session;
use crate::accounts::{
    AccountTables, CHARGED_KEPT_MS, Changes, PageRequest, ReservationRow, account_key,
    add_reservation, changes,
};
use crate::error::StoreError;
use crate::keys::Note;
use conclave_govern::{AccountKey, Period};
use conclave_money::{
    AccountBalance, AccountPage, Balance, OpenReservation, UnsettledReservation, encode_lines,
};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long a request may wait for the accounts.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many accounts are remembered to be there.
const KNOWN_MAX: usize = 50_000;

pub(crate) struct PgAccounts {
    session: Session,
    /// Accounts whose rows are there.
    known: BTreeSet<AccountKey>,
}

impl PgAccounts {
    /// Connects when it is first used.
    pub(crate) const fn later(connector: Connector) -> Self {
        Self { session: Session::new(connector, PATIENCE), known: BTreeSet::new() }
    }
}

/// Columns of many accounts, one array each.
struct Keys {
    tenants: Vec<i64>,
    scopes: Vec<&'static str>,
    names: Vec<String>,
    periods: Vec<&'static str>,
    numbers: Vec<i64>,
}

impl Keys {
    fn of<'a>(keys: impl IntoIterator<Item = &'a AccountKey>) -> Self {
        let mut all = Self {
            tenants: Vec::new(),
            scopes: Vec::new(),
            names: Vec::new(),
            periods: Vec::new(),
            numbers: Vec::new(),
        };
        for AccountKey { tenant, scope, name, period, number } in keys {
            all.tenants.push(tenant.cast_signed());
            all.scopes.push(scope.as_str());
            all.names.push(name.clone());
            all.periods.push(period.as_str());
            all.numbers.push(i64::from(*number));
        }
        all
    }

    fn params(&self) -> [Param<'_>; 5] {
        [
            (&self.tenants, Type::INT8_ARRAY),
            (&self.scopes, Type::TEXT_ARRAY),
            (&self.names, Type::TEXT_ARRAY),
            (&self.periods, Type::TEXT_ARRAY),
            (&self.numbers, Type::INT8_ARRAY),
        ]
    }
}

const UNNESTED: &str = "unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[])
                        AS k (tenant, scope, name, period, number)";

/// Makes rows for accounts that have none, before anything is locked.
fn make_rows(conn: &Conn, keys: &BTreeSet<AccountKey>) -> Result<(), LinkError> {
    let sql = format!(
        "INSERT INTO purse_account (tenant, scope, name, period, number, spent, held, alerted)
         SELECT tenant, scope, name, period, number, 0, 0, 0 FROM {UNNESTED}
         ORDER BY tenant, period, number, scope, name ON CONFLICT DO NOTHING"
    );
    conn.execute(&sql, &Keys::of(keys).params()).map(|_| ())
}

/// # Errors
/// When the bytes are no id: whatever they stand for would be settled as something else.
fn reservation_id(bytes: &[u8]) -> Result<[u8; 16], LinkError> {
    bytes.try_into().map_err(|_| {
        LinkError::Told(format!("the id {} in purse_hold cannot be read", hex::encode(bytes)))
    })
}

fn lock_reservations(
    conn: &Conn,
    ids: &BTreeSet<[u8; 16]>,
    page: &mut AccountPage,
) -> Result<(), LinkError> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    let sql = "SELECT id, most, lines, tenant, made_ms, expires_ms, charged FROM purse_hold
               WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    for row in conn.query(sql, &[(&ids, Type::BYTEA_ARRAY)])? {
        let found = ReservationRow {
            amount: row.try_get(1)?,
            lines: row.try_get(2)?,
            tenant: row.try_get(3)?,
            made_ms: row.try_get(4)?,
            expires_ms: row.try_get(5)?,
            charged: row.try_get(6)?,
        };
        add_reservation(page, reservation_id(row.try_get(0)?)?, &found);
    }
    Ok(())
}

fn lock_accounts(
    conn: &Conn,
    keys: &BTreeSet<AccountKey>,
    page: &mut AccountPage,
) -> Result<(), LinkError> {
    let sql = format!(
        "SELECT a.scope, a.name, a.period, a.number, a.spent, a.held, a.alerted, a.tenant
         FROM purse_account a JOIN {UNNESTED} USING (tenant, scope, name, period, number)
         ORDER BY a.tenant, a.period, a.number, a.scope, a.name FOR UPDATE OF a"
    );
    for row in conn.query(&sql, &Keys::of(keys).params())? {
        let AccountBalance { key, balance } = account(&row)?;
        page.balances.insert(key, balance);
    }
    Ok(())
}

/// An account of a row with its scope, name, period, number, sums and tenant.
fn account(row: &Row) -> Result<AccountBalance, LinkError> {
    let key = account_key(
        row.try_get(7)?,
        row.try_get(0)?,
        row.try_get(1)?,
        row.try_get(2)?,
        row.try_get(3)?,
    );
    let alerted = u8::try_from(row.try_get::<_, i16>(6)?);
    let balance = Balance {
        spent: row.try_get::<_, i64>(4)?.cast_unsigned(),
        reserved: row.try_get::<_, i64>(5)?.cast_unsigned(),
        alerted: alerted.map_err(|_| LinkError::Told("an alert cannot be read".to_owned()))?,
    };
    Ok(AccountBalance { key: key.map_err(LinkError::Told)?, balance })
}

fn write(conn: &Conn, changed: &Changes<'_>) -> Result<(), LinkError> {
    if !changed.balances.is_empty() {
        let keys = Keys::of(changed.balances.iter().map(|(key, _)| *key));
        let now = || changed.balances.iter().map(|(_, now)| *now);
        let spent: Vec<i64> = now().map(|now| now.spent.cast_signed()).collect();
        let reserved: Vec<i64> = now().map(|now| now.reserved.cast_signed()).collect();
        let alerted: Vec<i16> = now().map(|now| i16::from(now.alerted)).collect();
        let sql = "UPDATE purse_account a SET spent = k.spent, held = k.held, alerted = k.alerted
                   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[],
                               $6::bigint[], $7::bigint[], $8::smallint[])
                   AS k (tenant, scope, name, period, number, spent, held, alerted)
                   WHERE (a.tenant, a.period, a.number, a.scope, a.name)
                       = (k.tenant, k.period, k.number, k.scope, k.name)";
        let [tenants, scopes, names, periods, numbers] = keys.params();
        let values = [
            tenants,
            scopes,
            names,
            periods,
            numbers,
            (&spent, Type::INT8_ARRAY),
            (&reserved, Type::INT8_ARRAY),
            (&alerted, Type::INT2_ARRAY),
        ];
        let touched = conn.execute(sql, &values)?;
        if touched != changed.balances.len() as u64 {
            return Err(LinkError::Told("an account was removed while it was used".to_owned()));
        }
    }
    write_reservations(conn, changed)
}

fn write_reservations(conn: &Conn, changed: &Changes<'_>) -> Result<(), LinkError> {
    if !changed.made.is_empty() {
        let ids: Vec<&[u8]> = changed.made.iter().map(|(id, _)| &id[..]).collect();
        let lines: Vec<String> =
            changed.made.iter().map(|(_, open)| encode_lines(&open.lines)).collect();
        let number = |pick: fn(&OpenReservation) -> u64| -> Vec<i64> {
            changed.made.iter().map(|(_, open)| pick(open).cast_signed()).collect()
        };
        let (amounts, tenants) = (number(|open| open.amount), number(|open| open.tenant));
        let (made, ends) = (number(|open| open.made_ms), number(|open| open.expires_ms));
        let sql = "INSERT INTO purse_hold (id, most, lines, tenant, made_ms, expires_ms, charged)
                   SELECT h.*, false FROM unnest($1::bytea[], $2::bigint[], $3::text[],
                   $4::bigint[], $5::bigint[], $6::bigint[]) AS h";
        let values: [Param<'_>; 6] = [
            (&ids, Type::BYTEA_ARRAY),
            (&amounts, Type::INT8_ARRAY),
            (&lines, Type::TEXT_ARRAY),
            (&tenants, Type::INT8_ARRAY),
            (&made, Type::INT8_ARRAY),
            (&ends, Type::INT8_ARRAY),
        ];
        conn.execute(sql, &values)?;
    }
    let ends = [
        ("UPDATE purse_hold SET charged = true WHERE id = ANY($1)", &changed.charged),
        ("DELETE FROM purse_hold WHERE id = ANY($1)", &changed.gone),
    ];
    for (sql, ids) in ends.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
        conn.execute(sql, &[(&ids, Type::BYTEA_ARRAY)])?;
    }
    Ok(())
}

/// Removes the reservations that nobody came back for; says what becomes of each.
fn abandoned(conn: &Conn, long_ago: i64) -> Result<Vec<Note>, LinkError> {
    let sql = "DELETE FROM purse_hold WHERE charged AND expires_ms < $1
               RETURNING id, tenant, most, made_ms";
    let rows = conn.query(sql, &[(&long_ago, Type::INT8)])?;
    let notes = rows.iter().map(|row| {
        let id = reservation_id(row.try_get(0)?)?;
        let number = |at: usize| row.try_get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(Note::of_abandoned(id, number(1)?, number(2)?, number(3)?))
    });
    notes.collect()
}

/// Takes over the accounts and reservations of another store within a transaction.
pub(super) fn insert_accounts(conn: &Conn, page: &AccountPage) -> Result<(), LinkError> {
    if page.balances.is_empty() {
        return Ok(());
    }
    make_rows(conn, &page.balances.keys().cloned().collect())?;
    write(conn, &changes(&AccountPage::default(), page))
}

impl AccountTables for PgAccounts {
    fn change_page(
        &mut self,
        wanted: &PageRequest,
        work: &mut dyn FnMut(&mut AccountPage),
    ) -> Result<(), StoreError> {
        let fresh: BTreeSet<_> = wanted.accounts.difference(&self.known).cloned().collect();
        let done = self.session.with(|conn| {
            if !fresh.is_empty() {
                make_rows(conn, &fresh)?;
            }
            conn.change(|conn| {
                let mut before = AccountPage::default();
                if !wanted.reservations.is_empty() {
                    lock_reservations(conn, &wanted.reservations, &mut before)?;
                }
                let mut keys = wanted.accounts.clone();
                let lines = before.reservations.values().flat_map(|open| &open.lines);
                keys.extend(lines.map(|line| line.key.clone()));
                lock_accounts(conn, &keys, &mut before)?;
                let mut after = before.clone();
                work(&mut after);
                write(conn, &changes(&before, &after))
            })
        });
        match &done {
            Ok(()) if self.known.len() < KNOWN_MAX => self.known.extend(fresh),
            _ => self.known.clear(),
        }
        done
    }

    fn expired(&mut self, now_ms: u64, at_most: u32) -> Result<Vec<[u8; 16]>, StoreError> {
        let sql = "SELECT id FROM purse_hold WHERE NOT charged AND expires_ms <= $1 LIMIT $2";
        let (now, at_most) = (now_ms.cast_signed(), i64::from(at_most));
        self.session.with(|conn| {
            let rows = conn.query(sql, &[(&now, Type::INT8), (&at_most, Type::INT8)])?;
            rows.iter().map(|row| reservation_id(row.try_get(0)?)).collect()
        })
    }

    fn unsettled(
        &mut self,
        before_ms: u64,
        at_most: u32,
    ) -> Result<Vec<UnsettledReservation>, StoreError> {
        let sql = "SELECT id, tenant FROM purse_hold WHERE made_ms < $1 ORDER BY made_ms LIMIT $2";
        let (before, at_most) = (before_ms.cast_signed(), i64::from(at_most));
        self.session.with(|conn| {
            let rows = conn.query(sql, &[(&before, Type::INT8), (&at_most, Type::INT8)])?;
            let found = rows.iter().map(|row| {
                let tenant = row.try_get::<_, i64>(1)?.cast_unsigned();
                Ok(UnsettledReservation { id: reservation_id(row.try_get(0)?)?, tenant })
            });
            found.collect()
        })
    }

    fn balances(
        &mut self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> Result<Vec<AccountBalance>, StoreError> {
        let sql = "SELECT scope, name, period, number, spent, held, alerted, tenant
                   FROM purse_account WHERE tenant = $1 AND ((period = 'day' AND number = $2)
                   OR (period = 'month' AND number = $3))
                   ORDER BY spent + held DESC, scope, name LIMIT $4";
        let number = |period: Period| i64::from(period.number_at(now_ms));
        let (tenant, at_most) = (tenant.cast_signed(), i64::from(at_most));
        let (day, month) = (number(Period::Day), number(Period::Month));
        let values: [Param<'_>; 4] = [
            (&tenant, Type::INT8),
            (&day, Type::INT8),
            (&month, Type::INT8),
            (&at_most, Type::INT8),
        ];
        self.session.with(|conn| {
            let rows = conn.query(sql, &values)?;
            rows.iter().map(account).collect()
        })
    }

    fn prune(&mut self, now_ms: u64) -> Result<(), StoreError> {
        self.known.clear();
        self.session.with(|conn| {
            for period in [Period::Day, Period::Month] {
                let (name, number) = (period.as_str(), i64::from(period.oldest_kept_at(now_ms)));
                let sql = "DELETE FROM purse_account
                           WHERE period = $1 AND number < $2 AND held = 0";
                conn.execute(sql, &[(&name, Type::TEXT), (&number, Type::INT8)])?;
            }
            let long_ago = now_ms.saturating_sub(CHARGED_KEPT_MS).cast_signed();
            conn.change(|conn| {
                let notes = abandoned(conn, long_ago)?;
                notes.iter().try_for_each(|note| leave_note(conn, note))
            })
        })
    }
}
