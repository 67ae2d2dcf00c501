//! API keys: who holds which, what it opens, and where keys are made and withdrawn.
//!
//! **Invariant:** whoever asks for a tenant's keys names the tenant; a key of another one is not there.

use conclave_core::{KeyId, TenantId};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// Chat for its own tenant.
    App,
    /// Decides reviews.
    Reviewer,
    /// Decides for a community.
    Elder,
    /// Configures; reads no transcripts.
    Admin,
    /// Reads proofs and public fields.
    Auditor,
    /// Everything.
    Owner,
}

impl KeyRole {
    /// Every role.
    pub const ALL: [Self; 6] =
        [Self::App, Self::Reviewer, Self::Elder, Self::Admin, Self::Auditor, Self::Owner];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Reviewer => "reviewer",
            Self::Elder => "elder",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
            Self::Owner => "owner",
        }
    }

    /// Finds the role with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

/// Who asks: a key or an account, with its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id of the key, or `person:` and the name of the account.
    pub holder: String,
    /// Whose.
    pub tenant: TenantId,
    /// What it may do.
    pub role: KeyRole,
    /// Whose hands the key is in, or whose account it is; absent where nobody said.
    pub person: Option<String>,
}

/// One API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The public part.
    pub id: KeyId,
    /// Whose.
    pub tenant: TenantId,
    /// What it may do.
    pub role: KeyRole,
    /// A word for people.
    pub label: String,
    /// Whose hands it is in, where that is known: one person may have several keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// When it was made.
    pub created_ms: u64,
    /// When it ends.
    pub expires_ms: Option<u64>,
    /// When it was withdrawn.
    pub revoked_ms: Option<u64>,
}

impl KeyRecord {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn is_valid_at(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|end| now_ms < end)
    }
}

/// Looks keys up by the keyed hash of the whole key; answers from memory.
pub trait KeyRing: Send + Sync {
    /// The key with this hash, valid or not.
    fn find(&self, key: &str) -> Option<KeyRecord>;
    /// The key with this public part, valid or not.
    fn find_id(&self, id: &KeyId) -> Option<KeyRecord>;
    /// The keyed hash of a text that is no key, with a secret that all replicas share: whoever shows the
    /// text with it was given it here.
    fn mark(&self, text: &str) -> [u8; 32];
}

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
