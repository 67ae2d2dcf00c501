//! Erasing a person.
//!
//! **Invariant:** a receipt is given only when the key is gone, the entry is in the log and the
//! bodies are deleted. What stops half-way is resumed, and its words stay unreadable meanwhile.

use super::Forgetter;
use crate::error::StoreError;
use crate::spool::LivingKeys;
use crate::vault::{Intent, KeyId, Owner};
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{ErasureReceipt, Pseudonyms, Subjects, SubjectsError};
use conclave_failpoint as failpoint;
use conclave_ledger::{Draft, Erasure, Kind, Leaf, Value, tenant_number};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::{Arc, PoisonError};

/// How many keys of one person are erased together: one for each replica that met them first while
/// the database was away.
const KEYS_MAX: usize = 64;
/// So long a request belongs to the replica that took it.
const FRESH_MS: u64 = 60_000;

impl Forgetter {
    /// Erases a person; `None` when nobody is known by this id. Whoever was met by several replicas
    /// while their database was away has several keys: all go, and the receipt counts all.
    pub(crate) fn erase(
        &self,
        tenant: &TenantId,
        user: &str,
    ) -> Result<Option<ErasureReceipt>, StoreError> {
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total: Option<ErasureReceipt> = None;
        for _ in 0..KEYS_MAX {
            let Some(receipt) = self.erase_one(tenant, user)? else { break };
            total = Some(match total {
                None => receipt,
                Some(mut total) => {
                    total.decisions += receipt.decisions;
                    total.bodies += receipt.bodies;
                    total.sessions.extend(receipt.sessions);
                    total
                }
            });
        }
        Ok(total)
    }

    fn erase_one(
        &self,
        tenant: &TenantId,
        user: &str,
    ) -> Result<Option<ErasureReceipt>, StoreError> {
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
        match self.vault.book().tables().forget(intent) {
            Ok(true) => {}
            // Another replica was faster; the receipt is its.
            Ok(false) => return Ok(None),
            Err(error) => {
                self.vault.revive(subject);
                return Err(error);
            }
        }
        failpoint::reach("erase.forgotten");
        // Somebody may have read the key between the two.
        self.vault.bury(&[subject]);
        self.finish(intent).map(Some)
    }

    /// Does what is left of a request whose key is deleted already.
    fn finish(&self, intent: Intent) -> Result<ErasureReceipt, StoreError> {
        let Intent { tenant, subject, request, .. } = intent;
        // What was sealed before the key went is in the database after this, and counted.
        self.drained()?;
        let sessions = self.words.sessions_of(intent)?;
        if self.words.entry_of(request)?.is_none() {
            let (decisions, bodies) = self.words.counts(intent)?;
            let public = Erasure { request, decisions, bodies }.to_public();
            let stamped = self.stamps.draft(Kind::SubjectErase);
            self.append(Draft { tenant, subject: Some(subject), public, ..stamped })?;
            self.drained()?;
        }
        let lost = || StoreError::Unsettled("the entry of an erasure is not in the log".to_owned());
        let (leaf, leaf_hash) = self.words.entry_of(request)?.ok_or_else(lost)?;
        failpoint::reach("erase.entered");
        self.words.scrub()?;
        self.vault.book().tables().settle(request, leaf.ts_ms)?;
        Ok(receipt(&leaf, leaf_hash, subject, sessions))
    }

    /// Finishes what an earlier run began, and forgets again what a restored copy remembers. Says how
    /// many people that were.
    pub(crate) fn resume(&self) -> Result<usize, StoreError> {
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // The keys are older than the ledger: it knows who was erased.
        let erased = self.words.erased_in_log()?;
        self.vault.bury(&erased);
        let mut again = self.vault.book().tables().drop_keys(&erased)?;
        // The ledger is older than the keys, or a run ended half-way.
        let unfinished = self.vault.book().tables().intents(true)?;
        let intents = self.vault.book().tables().intents(false)?;
        for intent in intents {
            if self.words.is_shared() && self.is_fresh(intent) {
                continue;
            }
            let logged = self.words.entry_of(intent.request)?.is_some();
            if !logged || unfinished.contains(&intent) {
                self.finish(intent)?;
                again += 1;
            }
        }
        Ok(again)
    }
}

impl Forgetter {
    /// Whether another replica may be working on a request at this moment.
    fn is_fresh(&self, intent: Intent) -> bool {
        self.clock.now_ms() < intent.requested_ms.saturating_add(FRESH_MS)
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

    fn find_all(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Vec<[u8; 16]>, SubjectsError>> {
        let (vault, tenant) = (Arc::clone(&self.0.vault), tenant.clone());
        let user = user.as_str().to_owned();
        off_thread(move || vault.find_all(&tenant, &user))
    }

    fn nobody(&self, tenant: &TenantId) -> BoxFuture<'_, Result<[u8; 16], SubjectsError>> {
        let vault = Arc::clone(&self.0.vault);
        let tenant = tenant_number(tenant.as_str());
        async move {
            let made = tokio::task::spawn_blocking(move || {
                let owner = vault.nobody();
                vault.ensure(tenant, owner, None).map(|key| key.id())
            });
            let made = made.await.map_err(|error| SubjectsError(error.to_string()))?;
            made.map_err(SubjectsError)
        }
        .boxed()
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
