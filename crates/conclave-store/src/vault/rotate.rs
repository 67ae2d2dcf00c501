//! Wraps every key anew, so that what wrapped them before opens nothing.
//!
//! **Invariant:** all of it happens in one transaction. A key that cannot be unwrapped stops it, and
//! nothing is changed.

use super::book::{KeyId, LOOKUP, NAME, subject_purpose, tenant_purpose};
use super::wrap::{Secret, draw, keyed, unwrap, unwrap_secret, wrap};
use conclave_engine::Entropy;
use conclave_ledger::SealingKey;
use rusqlite::{Transaction, params};
use std::sync::Arc;

/// Everything new of a rotation.
pub(super) struct Rotation<'a> {
    pub(super) root: &'a Secret,
    pub(super) lookup: Secret,
    pub(super) entropy: Arc<dyn Entropy>,
}

impl Rotation<'_> {
    /// Runs within a transaction. What cannot be unwrapped stops it, and nothing is changed.
    pub(super) fn run(
        &self,
        tx: &Transaction<'_>,
        old: &Secret,
        now_ms: u64,
    ) -> rusqlite::Result<u64> {
        let tenants = {
            let mut rows = tx.prepare("SELECT tenant, epoch, wrapped FROM tenant_key")?;
            let read = rows.query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
            })?;
            read.collect::<rusqlite::Result<Vec<(i64, i64, Vec<u8>)>>>()?
        };
        let mut rewrapped = 0;
        for (tenant, epoch, wrapped) in tenants {
            let number = tenant.cast_unsigned();
            let Some(kek) = unwrap_secret(old, &tenant_purpose(number, epoch), &wrapped) else {
                return Err(unopened("tenant"));
            };
            let fresh = draw(&*self.entropy);
            rewrapped += self.subjects(tx, number, (&kek, &fresh), epoch + 1)?;
            let purpose = tenant_purpose(number, epoch + 1);
            let wrapped = wrap(self.root, &purpose, fresh.as_slice(), &*self.entropy);
            let sql = "UPDATE tenant_key SET epoch = ?2, wrapped = ?3 WHERE tenant = ?1";
            tx.execute(sql, params![tenant, epoch + 1, wrapped])?;
        }
        let lookup = wrap(self.root, LOOKUP, self.lookup.as_slice(), &*self.entropy);
        let sql = "UPDATE vault SET lookup = ?1, rotated_ms = ?2, erased_ms = NULL";
        tx.execute(sql, params![lookup, now_ms.cast_signed()])?;
        Ok(rewrapped)
    }

    fn subjects(
        &self,
        tx: &Transaction<'_>,
        tenant: u64,
        (old, fresh): (&Secret, &Secret),
        epoch: i64,
    ) -> rusqlite::Result<u64> {
        type Row = (KeyId, Vec<u8>, Option<Vec<u8>>);
        let mut after = Vec::new();
        let mut done = 0;
        loop {
            let rows: Vec<Row> = {
                let sql = "SELECT id, wrapped, name FROM subject_key
                           WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT 1000";
                let mut page = tx.prepare_cached(sql)?;
                let values = params![tenant.cast_signed(), after];
                let read = page.query_map(values, |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
                read.collect::<rusqlite::Result<_>>()?
            };
            let Some((last, _, _)) = rows.last() else { return Ok(done) };
            after = last.to_vec();
            let sql = "UPDATE subject_key SET epoch = ?2, wrapped = ?3, lookup = ?4 WHERE id = ?1";
            let mut update = tx.prepare_cached(sql)?;
            for (id, wrapped, name) in &rows {
                let purpose = subject_purpose(tenant, id);
                let Some(secret) = unwrap_secret(old, &purpose, wrapped) else {
                    return Err(unopened("person"));
                };
                let lookup =
                    self.lookup_of(tenant, &SealingKey::new(*id, &secret), name.as_deref());
                let wrapped = wrap(fresh, &purpose, secret.as_slice(), &*self.entropy);
                update.execute(params![id, epoch, wrapped, lookup])?;
                done += 1;
            }
        }
    }

    fn lookup_of(&self, tenant: u64, key: &SealingKey, name: Option<&[u8]>) -> Option<[u8; 32]> {
        let name = unwrap(&key.derived(NAME), NAME, name?)?;
        Some(keyed(&self.lookup, &[&tenant.to_be_bytes(), &name]))
    }
}

/// An error rolls the transaction back; this one says why.
fn unopened(whose: &str) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(format!("the key of a {whose} does not open").into())
}
