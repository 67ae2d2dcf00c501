//! Where API keys are made, listed, replaced and withdrawn while the house runs.
//!
//! **Invariant:** whoever asks for a tenant's keys names the tenant; a key of another one is not there.

use crate::ports::{KeyRecord, KeyRole};
use conclave_core::{KeyId, TenantId};
use futures_util::future::BoxFuture;
use serde::Serialize;
use thiserror::Error;

/// So many keys a tenant has at most, those that are withdrawn among them.
pub const KEYS_MAX: usize = 10_000;
/// The longest label of a key, and the longest name of its person.
pub const LABEL_BYTES_MAX: usize = 200;

/// What a new key shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// Whose.
    pub tenant: TenantId,
    /// What it may do.
    pub role: KeyRole,
    /// A word for people.
    pub label: String,
    /// Whose hands it is in.
    pub person: Option<String>,
    /// When it ends.
    pub expires_ms: Option<u64>,
}

/// A key that was made. Its text is shown this once and kept nowhere.
pub struct MadeKey {
    /// What is kept of it.
    pub record: KeyRecord,
    /// The whole key.
    pub text: String,
}

/// A key and when it was last used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedKey {
    /// The key, without its secret.
    #[serde(flatten)]
    pub record: KeyRecord,
    /// To the minute; absent if never.
    pub last_used_ms: Option<u64>,
}

/// Why a key was not made or changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyDeskError {
    /// The tenant has no such key.
    #[error("there is no key with this id")]
    NotFound,
    /// It cannot be done with this key any more.
    #[error("{0}")]
    Ended(String),
    /// It cannot be a key.
    #[error("{0}")]
    Invalid(String),
    /// The database does not answer.
    #[error("the keys cannot be reached: {0}")]
    Unavailable(String),
}

/// Makes, lists, replaces and withdraws keys; each change is a ledger entry.
pub trait KeyDesk: Send + Sync {
    /// Makes a key; it opens doors at once.
    fn issue(&self, order: KeyOrder) -> BoxFuture<'_, Result<MadeKey, KeyDeskError>>;
    /// Every key of a tenant, oldest first.
    fn list(&self, tenant: TenantId) -> BoxFuture<'_, Result<Vec<ListedKey>, KeyDeskError>>;
    /// Withdraws a key of a tenant, at once and for ever; a second time changes nothing.
    fn revoke(&self, tenant: TenantId, id: KeyId)
    -> BoxFuture<'_, Result<KeyRecord, KeyDeskError>>;
    /// Makes the successor of a key of a tenant; the key itself goes on for so long at most.
    fn rotate(
        &self,
        tenant: TenantId,
        id: KeyId,
        overlap_ms: u64,
    ) -> BoxFuture<'_, Result<MadeKey, KeyDeskError>>;
}
