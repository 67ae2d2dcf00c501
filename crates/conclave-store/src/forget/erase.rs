//! Erasing a person.
//!
//! **Invariant:** a receipt is given only when the key is gone, the entry is in the log and the
//! bodies are deleted. What stops half-way is resumed, and its words stay unreadable meanwhile.

use super::{Forgetter, entry_of};
use crate::error::StoreError;
use crate::spool::LivingKeys;
use crate::vault::{Intent, KeyId, Owner};
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{ErasureReceipt, Pseudonyms, Subjects, SubjectsError};
use conclave_ledger::{Draft, Erasure, Kind, Leaf, Value, tenant_number};
use futures_util::future::{BoxFuture, FutureExt};
use rusqlite::{Connection, params};
use std::sync::{Arc, PoisonError};

/// How many conversations of a person are let go from memory; the rest leaves it by itself.
const SESSIONS_MAX: u32 = 10_000;

impl Forgetter {
    /// Erases a person; `None` when nobody is known by this id.
    pub(crate) fn erase(
        &self,
        tenant: &TenantId,
        user: &str,
    ) -> Result<Option<ErasureReceipt>, StoreError> {
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.vault.find_person(tenant, user)?.is_none() {
            return Ok(None);
        }
        // Somebody of an earlier version has no key yet; one is made, so that it can be deleted.
        let earlier = self.vault.earlier(tenant, user);
        let tenant = tenant_number(tenant.as_str());
        let key = self.vault.ensure(tenant, Owner::Person(user.to_owned()), earlier);
        let subject = key.map_err(StoreError::Key)?.id();
        let mut request = [0; 16];
        self.entropy.fill(&mut request);
        let requested_ms = self.clock.now_ms();
        let intent = Intent { tenant, subject, request, requested_ms };
        self.vault.bury(&[subject]);
        let forgotten = self.vault.book().forget(intent);
        if !matches!(forgotten, Ok(true)) {
            self.vault.revive(subject);
            return forgotten.map(|_| None);
        }
        // Somebody may have read the key between the two.
        self.vault.bury(&[subject]);
        self.finish(intent).map(Some)
    }

    /// Does what is left of a request whose key is deleted already.
    fn finish(&self, intent: Intent) -> Result<ErasureReceipt, StoreError> {
        let Intent { tenant, subject, request, .. } = intent;
        // What was sealed before the key went is in the database after this, and counted.
        self.drained()?;
        let conn = self.reader()?;
        let sessions = sessions_of(&conn, intent).map_err(self.broken())?;
        if entry_of(&conn, request).map_err(self.broken())?.is_none() {
            let (decisions, bodies) = counts(&conn, intent).map_err(self.broken())?;
            let public = Erasure { request, decisions, bodies }.to_public();
            let stamped = self.stamps.draft(Kind::SubjectErase);
            self.append(Draft { tenant, subject: Some(subject), public, ..stamped })?;
            self.drained()?;
        }
        let entry = entry_of(&conn, request).map_err(self.broken())?;
        drop(conn);
        let lost = || StoreError::Unsettled("the entry of an erasure is not in the log".to_owned());
        let (leaf, leaf_hash) = entry.ok_or_else(lost)?;
        self.scrub_ledger()?;
        self.vault.book().settle(request, leaf.ts_ms)?;
        Ok(receipt(&leaf, leaf_hash, subject, sessions))
    }

    /// Finishes what an earlier run began, and forgets again what a restored copy remembers. Says how
    /// many people that were.
    pub(crate) fn resume(&self) -> Result<usize, StoreError> {
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let conn = self.reader()?;
        // The keys are older than the ledger: it knows who was erased.
        let erased = erased_in_log(&conn).map_err(self.broken())?;
        self.vault.bury(&erased);
        let mut again = self.vault.book().drop_keys(&erased)?;
        // The ledger is older than the keys, or a run ended half-way.
        let unfinished = self.vault.book().intents(true)?;
        let intents = self.vault.book().intents(false)?;
        for intent in intents {
            let logged = entry_of(&conn, intent.request).map_err(self.broken())?.is_some();
            if !logged || unfinished.contains(&intent) {
                self.finish(intent)?;
                again += 1;
            }
        }
        Ok(again)
    }
}

fn receipt(
    leaf: &Leaf,
    leaf_hash: [u8; 32],
    subject: KeyId,
    sessions: Vec<[u8; 16]>,
) -> ErasureReceipt {
    let number = |key| leaf.draft.public.get(key).and_then(Value::as_u64).unwrap_or(0);
    ErasureReceipt {
        subject,
        decisions: number("decisions"),
        bodies: number("bodies"),
        erased_ms: leaf.ts_ms,
        entry: leaf.id,
        leaf_hash,
        sessions,
    }
}

fn counts(conn: &Connection, intent: Intent) -> rusqlite::Result<(u64, u64)> {
    let sql = "SELECT count(*), count(b.seq) FROM response_audit_log r
               LEFT JOIN log_body b ON b.seq = r.seq WHERE r.subject = ?1 AND r.tenant = ?2";
    conn.query_row(sql, params![intent.subject, intent.tenant.cast_signed()], |row| {
        let (decisions, bodies): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok((decisions.cast_unsigned(), bodies.cast_unsigned()))
    })
}

fn sessions_of(conn: &Connection, intent: Intent) -> rusqlite::Result<Vec<[u8; 16]>> {
    let sql = "SELECT DISTINCT session FROM response_audit_log
               WHERE subject = ?1 AND tenant = ?2 AND session IS NOT NULL LIMIT ?3";
    let mut rows = conn.prepare(sql)?;
    let values = params![intent.subject, intent.tenant.cast_signed(), SESSIONS_MAX];
    rows.query_map(values, |row| row.get(0))?.collect()
}

/// Everybody the log says was erased.
fn erased_in_log(conn: &Connection) -> rusqlite::Result<Vec<KeyId>> {
    let sql = "SELECT e.leaf FROM log_forgotten f JOIN log_entry e ON e.seq = f.seq";
    let mut rows = conn.prepare(sql)?;
    let leaves = rows.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
    let mut erased = Vec::new();
    for leaf in leaves {
        let leaf = Leaf::decode(&leaf?).ok();
        let leaf = leaf.filter(|leaf| leaf.draft.kind == Kind::SubjectErase);
        erased.extend(leaf.and_then(|leaf| leaf.draft.subject));
    }
    Ok(erased)
}

/// The names people have in the ledger, and the way to be forgotten.
pub(crate) struct Register(pub(crate) Arc<Forgetter>);

impl Subjects for Register {
    fn name(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Pseudonyms, SubjectsError>> {
        self.0.vault.name(tenant, user, session)
    }

    fn find(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<[u8; 16]>, SubjectsError>> {
        let (vault, tenant) = (Arc::clone(&self.0.vault), tenant.clone());
        let user = user.as_str().to_owned();
        off_thread(move || vault.find_person(&tenant, &user))
    }

    fn is_current(&self, subject: [u8; 16]) -> bool {
        self.0.vault.is_alive(subject)
    }

    fn erase(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<ErasureReceipt>, SubjectsError>> {
        let (forgetter, tenant) = (Arc::clone(&self.0), tenant.clone());
        let user = user.as_str().to_owned();
        off_thread(move || forgetter.erase(&tenant, &user))
    }
}

fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> BoxFuture<'static, Result<T, SubjectsError>> {
    async move {
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| SubjectsError(error.to_string()))?;
        done.map_err(|error| SubjectsError(error.to_string()))
    }
    .boxed()
}
