//! What forgetting needs to know of the log, whichever database holds it.

use crate::error::StoreError;
use crate::vault::{Intent, KeyId};
use conclave_ledger::{Hash, Leaf};
use std::collections::BTreeSet;

/// How many conversations of a person are let go from memory; the rest leaves it by itself.
pub(crate) const SESSIONS_MAX: u32 = 10_000;
/// How many decisions one entry may purge, so that no transaction grows without bound.
pub(crate) const PURGE_MAX: u32 = 5_000;

/// What one entry will purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) from_ms: u64,
    pub(crate) until_ms: u64,
    pub(crate) count: u64,
}

impl Due {
    /// Takes the next decision in order of time; `None` when this entry has enough.
    pub(crate) fn take(due: Option<Self>, at: u64) -> Option<Self> {
        let mut found = due.unwrap_or(Self { from_ms: at, until_ms: at, count: 0 });
        // All of one millisecond go together: the entry names times, not rows.
        if found.count >= u64::from(PURGE_MAX) && at > found.until_ms {
            return None;
        }
        found.until_ms = at;
        found.count += 1;
        Some(found)
    }
}

/// Something to do while no other replica purges.
pub(crate) type Purging<'a> = dyn FnMut() -> Result<u64, StoreError> + 'a;

/// The log as forgetting sees it. Everything blocks.
pub(crate) trait WordTables: Send + Sync {
    /// The entry that a request to forget led to.
    fn entry_of(&self, request: [u8; 16]) -> Result<Option<(Leaf, Hash)>, StoreError>;
    /// How many decisions and how many bodies there are of a person.
    fn counts(&self, intent: Intent) -> Result<(u64, u64), StoreError>;
    /// The conversations of a person.
    fn sessions_of(&self, intent: Intent) -> Result<Vec<[u8; 16]>, StoreError>;
    /// Everybody the log says was erased.
    fn erased_in_log(&self) -> Result<Vec<KeyId>, StoreError>;
    /// Whether any words of a pseudonym are there.
    fn has_words(&self, tenant: u64, subject: KeyId) -> Result<bool, StoreError>;
    /// Every tenant that decided anything.
    fn tenants(&self) -> Result<Vec<u64>, StoreError>;
    /// What is due of a tenant, as much as one entry may purge.
    fn due(
        &self,
        tenant: u64,
        until_ms: u64,
        held: &BTreeSet<KeyId>,
    ) -> Result<Option<Due>, StoreError>;
    /// Sees to it that deleted bodies do not stay readable where they were written.
    fn scrub(&self) -> Result<(), StoreError>;
    /// Purges while no other replica does; 0 if another is at it.
    fn alone(&self, purge: &mut Purging<'_>) -> Result<u64, StoreError>;
    /// Where other replicas may be using them: marks keys of people of whom nothing is left and
    /// deletes those that were marked before; says which were deleted.
    fn drop_idle_shared(
        &self,
        _tenant: u64,
        _until_ms: u64,
        _now_ms: u64,
    ) -> Result<Vec<KeyId>, StoreError> {
        Ok(Vec::new())
    }
    /// Whether a key may still be in use where it cannot be seen from here.
    fn is_shared(&self) -> bool;
}
