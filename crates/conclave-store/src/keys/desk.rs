//! The desk of a running house: changes of keys, known at once to the ring of the same process.

use super::book::{KeyBook, NewKey};
use super::ring::BookRing;
use super::text::KeyText;
use crate::error::StoreError;
use conclave_core::{KeyId, TenantId};
use conclave_engine::{
    Clock, Entropy, KEYS_MAX, KeyDesk, KeyDeskError, KeyOrder, KeyRecord, LABEL_BYTES_MAX,
    ListedKey, MadeKey,
};
use conclave_govern::tenant_name_fault;
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// The book of keys behind the port.
pub(crate) struct BookDesk {
    pub(crate) book: Arc<KeyBook>,
    pub(crate) ring: Arc<BookRing>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// What the blocking work needs.
struct Work {
    book: Arc<KeyBook>,
    now_ms: u64,
    entropy: Arc<dyn Entropy>,
}

impl BookDesk {
    /// Runs on a thread that may block, and lets the ring look at what changed.
    fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Work) -> Result<T, KeyDeskError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, KeyDeskError>> {
        let (book, entropy, ring) =
            (Arc::clone(&self.book), Arc::clone(&self.entropy), Arc::clone(&self.ring));
        let now_ms = self.clock.now_ms();
        async move {
            let done = tokio::task::spawn_blocking(move || {
                let done = work(&Work { book, now_ms, entropy })?;
                if let Err(error) = ring.refresh() {
                    tracing::warn!(%error, "the ring of keys learns of a change later");
                }
                Ok(done)
            });
            done.await.map_err(|error| KeyDeskError::Unavailable(error.to_string()))?
        }
        .boxed()
    }
}

impl KeyDesk for BookDesk {
    fn issue(&self, order: KeyOrder) -> BoxFuture<'_, Result<MadeKey, KeyDeskError>> {
        self.change(move |work| {
            for (what, text) in [("label", Some(&order.label)), ("person", order.person.as_ref())] {
                let Some(text) = text else { continue };
                if text.len() > LABEL_BYTES_MAX || text.chars().any(char::is_control) {
                    let sentence = format!(
                        "`{what}` has at most {LABEL_BYTES_MAX} bytes and no control characters"
                    );
                    return Err(KeyDeskError::Invalid(sentence));
                }
            }
            if let Some(fault) = tenant_name_fault(order.tenant.as_str()) {
                return Err(KeyDeskError::Invalid(fault));
            }
            if work.of(&order.tenant)?.len() >= KEYS_MAX {
                let sentence = format!("a tenant has at most {KEYS_MAX} keys");
                return Err(KeyDeskError::Invalid(sentence));
            }
            let KeyOrder { tenant, role, label, person, expires_ms } = order;
            let environment = "live".into();
            let new = NewKey { environment, tenant, role, label, person, expires_ms };
            let issued = work.book.issue(new, work.now_ms, &*work.entropy);
            issued.map(made).map_err(unavailable)
        })
    }

    fn list(&self, tenant: TenantId) -> BoxFuture<'_, Result<Vec<ListedKey>, KeyDeskError>> {
        self.change(move |work| work.of(&tenant))
    }

    fn revoke(
        &self,
        tenant: TenantId,
        id: KeyId,
    ) -> BoxFuture<'_, Result<KeyRecord, KeyDeskError>> {
        self.change(move |work| {
            work.one(&tenant, &id)?;
            let revoked = work.book.revoke(id.as_str(), work.now_ms, &*work.entropy);
            revoked.map_err(unavailable)
        })
    }

    fn rotate(
        &self,
        tenant: TenantId,
        id: KeyId,
        overlap_ms: u64,
    ) -> BoxFuture<'_, Result<MadeKey, KeyDeskError>> {
        self.change(move |work| {
            let old = work.one(&tenant, &id)?;
            if !old.is_valid_at(work.now_ms) {
                let sentence = "this key is withdrawn or over; make a new one".to_owned();
                return Err(KeyDeskError::Ended(sentence));
            }
            let rotated = work.book.rotate(id.as_str(), overlap_ms, work.now_ms, &*work.entropy);
            rotated.map(made).map_err(unavailable)
        })
    }
}

impl Work {
    fn of(&self, tenant: &TenantId) -> Result<Vec<ListedKey>, KeyDeskError> {
        let keys = self.book.list().map_err(unavailable)?.into_iter();
        let own = keys.filter(|key| key.record.tenant == *tenant);
        Ok(own
            .map(|key| ListedKey { record: key.record, last_used_ms: key.last_used_ms })
            .collect())
    }

    fn one(&self, tenant: &TenantId, id: &KeyId) -> Result<KeyRecord, KeyDeskError> {
        let found = self.of(tenant)?.into_iter().find(|key| key.record.id == *id);
        found.map(|key| key.record).ok_or(KeyDeskError::NotFound)
    }
}

fn made((record, text): (KeyRecord, KeyText)) -> MadeKey {
    MadeKey { record, text: text.reveal().to_owned() }
}

#[expect(clippy::needless_pass_by_value, reason = "an error is turned into another")]
fn unavailable(error: StoreError) -> KeyDeskError {
    KeyDeskError::Unavailable(error.to_string())
}
