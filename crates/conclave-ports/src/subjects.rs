//! The names that stand in the ledger instead of people, and how they are given up.

use conclave_core::{SessionId, TenantId, UserId};
use conclave_ledger::EntryId;
use futures_util::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

/// Whose turn it is, as the ledger knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pseudonyms {
    /// The tenant's number.
    pub tenant: u64,
    /// The conversation.
    pub session: [u8; 16],
    /// The person; absent for anonymous ones.
    pub subject: Option<[u8; 16]>,
}

/// Why nobody could be named.
#[derive(Clone, Debug, Error)]
#[error("the keys of people cannot be used: {0}")]
pub struct SubjectsError(pub String);

/// The names that stand in the ledger instead of people.
pub trait Subjects: Send + Sync {
    /// Names a person and a conversation; whoever is new gets a name that is durable before this
    /// resolves. A known person costs no IO.
    fn name(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Pseudonyms, SubjectsError>>;
    /// The name of a person, if they have one.
    fn find(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<[u8; 16]>, SubjectsError>>;
    /// Every name of a person: whoever several replicas met while their database was away has several.
    fn find_all(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Vec<[u8; 16]>, SubjectsError>> {
        let found = self.find(tenant, user);
        Box::pin(async move { Ok(found.await?.into_iter().collect()) })
    }
    /// The name under which words of people without an id are sealed now; the words are gone with it.
    fn nobody(&self, tenant: &TenantId) -> BoxFuture<'_, Result<[u8; 16], SubjectsError>>;
    /// Whether a name is still in use: not once the person was erased.
    fn is_current(&self, subject: [u8; 16]) -> bool;
    /// Erases a person: the key of their words first, so that nothing can be read any more, then the
    /// words. `None` when nobody is known by this id. Resolves when all of it is done.
    fn erase(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<ErasureReceipt>, SubjectsError>>;
}

/// What was erased, and where that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureReceipt {
    /// The pseudonym that nobody has any more.
    pub subject: [u8; 16],
    /// How many decisions of theirs there are; what was decided stays.
    pub decisions: u64,
    /// The words of how many of them were still there.
    pub bodies: u64,
    /// When.
    pub erased_ms: u64,
    /// The entry that says so.
    pub entry: EntryId,
    /// The hash of its leaf.
    pub leaf_hash: [u8; 32],
    /// The conversations they had, to be let go from memory.
    pub sessions: Vec<[u8; 16]>,
}

impl ErasureReceipt {
    /// The receipt for people and machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "object": "subject.erasure",
            "subject": hex::encode(self.subject),
            "decisions": self.decisions,
            "bodies": self.bodies,
            "erased_at_ms": self.erased_ms,
            "horizon": {"live_days_max": 7, "backups_days_max": 30},
            "entry_id": self.entry.to_string(),
            "leaf_hash": hex::encode(self.leaf_hash),
        })
    }
}
