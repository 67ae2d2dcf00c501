//! What the book of keys needs of a database. Everything in it is wrapped already.

use super::book::{Intent, KeyId};
use super::rotate::Rotation;
use super::wrap::Secret;
use crate::error::StoreError;

/// A person's key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredKey {
    pub(crate) id: KeyId,
    pub(crate) tenant: u64,
    /// Of the tenant's key that wraps it; 0 when the root key does.
    pub(crate) epoch: i64,
    pub(crate) wrapped: Vec<u8>,
}

/// A key to be stored, with what leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewStoredKey {
    pub(crate) key: StoredKey,
    /// The id the application uses, wrapped by the key itself.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) lookup: Option<[u8; 32]>,
    pub(crate) day: Option<i64>,
    pub(crate) created_ms: u64,
}

/// By what a key is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Id(KeyId),
    Lookup([u8; 32]),
}

/// The tables of keys and of requests to forget.
pub(crate) trait KeyTables: Send {
    /// Where the keys are, for sentences about them.
    fn place(&self) -> std::path::PathBuf;
    /// What to tell somebody whose root key does not open these keys.
    fn wrong_root(&self) -> StoreError;
    /// The wrapped secret of the look-up; absent before the first start.
    fn lookup(&mut self) -> Result<Option<Vec<u8>>, StoreError>;
    /// Begins with this secret, unless somebody has begun already.
    fn begin(&mut self, wrapped: &[u8], legacy: bool) -> Result<(), StoreError>;
    /// Whether the log began before there were keys.
    fn is_legacy(&mut self) -> Result<bool, StoreError>;
    /// The wrapped key of a tenant and its epoch.
    fn tenant(&mut self, tenant: u64) -> Result<Option<(i64, Vec<u8>)>, StoreError>;
    /// Stores the key of a tenant, unless there is one.
    fn add_tenant(&mut self, tenant: u64, epoch: i64, wrapped: &[u8]) -> Result<(), StoreError>;
    /// Looks for a person's key.
    fn find(&mut self, by: By) -> Result<Option<StoredKey>, StoreError>;
    /// Stores keys in one commit; returns for each the one that holds: where somebody was faster,
    /// that one's.
    fn add(&mut self, keys: &[NewStoredKey]) -> Result<Vec<StoredKey>, StoreError>;
    /// Every key of somebody: whoever several replicas met while their database was away has several.
    fn find_all(&mut self, by: By) -> Result<Vec<KeyId>, StoreError> {
        Ok(self.find(by)?.map(|key| key.id).into_iter().collect())
    }
    /// Whether copies of new keys are wanted, for a database that may come back older than it was.
    fn wants_copies(&self) -> bool {
        false
    }
    /// Keeps copies of keys that were stored, wrapped by the root key.
    fn keep(&mut self, _copies: &[NewStoredKey]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Stores again what is kept and missing; `restored` says that the database came back older, so that
    /// also what is there may be wrapped by a key that it lost. Says how many.
    fn give_back(&mut self, _restored: bool) -> Result<usize, StoreError> {
        Ok(0)
    }
    /// Deletes copies of keys that were deleted elsewhere.
    fn drop_copies(&mut self, _ids: &[KeyId]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Deletes copies that were kept before a time.
    fn prune_copies(&mut self, _now_ms: u64, _before_ms: u64) -> Result<(), StoreError> {
        Ok(())
    }
    /// Which of these keys are not there.
    fn missing(&mut self, _ids: &[KeyId]) -> Result<Vec<KeyId>, StoreError> {
        Ok(Vec::new())
    }
    /// Deletes a key and notes the request, together; says whether there was one.
    fn forget(&mut self, intent: Intent) -> Result<bool, StoreError>;
    /// Notes that the ledger has the entry of a request.
    fn settle(&mut self, request: [u8; 16], erased_ms: u64) -> Result<(), StoreError>;
    /// Deletes keys; says how many there were.
    fn drop_keys(&mut self, ids: &[KeyId]) -> Result<usize, StoreError>;
    /// The keys of a tenant's nobody up to a day, itself included.
    fn nobody_until(&mut self, tenant: u64, day: u64) -> Result<Vec<KeyId>, StoreError>;
    /// A page of people's keys that may be idle, made up to a time, in order of their names.
    fn made_until(
        &mut self,
        tenant: u64,
        until_ms: u64,
        after: Option<KeyId>,
    ) -> Result<Vec<KeyId>, StoreError>;
    /// Requests to forget: those that are not finished, or all.
    fn intents(&mut self, unfinished: bool) -> Result<Vec<Intent>, StoreError>;
    /// When somebody was first forgotten since the keys were last replaced, and when that was.
    fn since_rotation(&mut self) -> Result<(Option<u64>, u64), StoreError>;
    /// Wraps every key anew in one transaction; says how many.
    fn rotate(&mut self, next: &Rotation<'_>, old: &Secret, now_ms: u64)
    -> Result<u64, StoreError>;
    /// The look-up that the root key of this directory opens, where it may differ from the shared one;
    /// and whether keys wait here that only that root key opens.
    fn settled(&mut self) -> Result<(Option<Vec<u8>>, bool), StoreError> {
        Ok((self.lookup()?, false))
    }
    /// How to get from root keys of before to the one in force, oldest first.
    fn root_steps(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }
    /// Takes over what the last [`KeyTables::lookup`] said: what waits here is wrapped anew.
    fn go_over(&mut self, _next: &Rotation<'_>, _old: &Secret) -> Result<(), StoreError> {
        Ok(())
    }
    /// Notes that this directory has the root key in force, and no other.
    fn note_holder(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
    /// The replicas that still have a root key of before.
    fn behind(&mut self) -> Result<Vec<[u8; 8]>, StoreError> {
        Ok(Vec::new())
    }
    /// The keys that were marked as idle since a number, to be let go of, and the number of the last.
    fn idle_since(&mut self, seen: i64) -> Result<(Vec<KeyId>, i64), StoreError> {
        Ok((Vec::new(), seen))
    }
    /// Notes that this replica has let go of them and handed over what it sealed with them.
    fn acknowledge_idle(&mut self, _seen: i64) -> Result<(), StoreError> {
        Ok(())
    }
    /// Hands over what waited for the database, and says whom others have forgotten lately.
    fn news(&mut self) -> Result<Vec<KeyId>, StoreError> {
        Ok(Vec::new())
    }
}
