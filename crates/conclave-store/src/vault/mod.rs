//! Keys of people: made at first sight, held in memory, deleted for ever.
//!
//! **Invariant:** a key is durable before anything is sealed with it, and nothing is sealed with a
//! key after it was deleted: the writer asks at the last moment.
//!
//! **Invariant:** a known person costs no IO. What is held in memory is bounded, and leaves no trace
//! when it is dropped.
//!
//! The database behind it is [`Book`]; another kind of database needs another book.

mod book;
mod kept;
mod root;
mod rotate;
mod sqlite;
mod tables;
mod wrap;

pub(crate) use book::{Book, HOUSE_DAY, Intent, KeyId, Owner};
pub use root::RootKey;
pub(crate) use rotate::{Rotation, TenantChange};
pub(crate) use sqlite::SqliteKeys;
pub(crate) use tables::{By, KeyTables, NewStoredKey, StoredKey};
pub(crate) use wrap::Secret;

use crate::error::StoreError;
use crate::spool::LivingKeys;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{Clock, Entropy, Pseudonyms, SubjectsError, pseudonym};
use conclave_ledger::{SealingKey, tenant_number};
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use wrap::{keyed, unwrap, wrap};
use zeroize::Zeroizing;

/// What keys of people seal besides words.
const RECORD: &[u8] = b"conclave.record.v1";

/// How many keys are held in memory; beyond that, all are let go and read again when needed.
const HELD_MAX: usize = 100_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

type Held = (u64, Owner);
type Found = Result<Arc<SealingKey>, String>;

/// Says whether words of a pseudonym of an earlier version are still there.
pub(crate) type Adoption = Box<dyn Fn(u64, KeyId) -> bool + Send + Sync>;

#[derive(Default)]
struct Shelf {
    by_owner: HashMap<Held, Arc<SealingKey>>,
    by_id: HashMap<KeyId, Arc<SealingKey>>,
}

/// Somebody who waits for a key; whoever has the database serves all who wait.
struct Waiting {
    wanted: Held,
    /// The pseudonym an earlier version would have given.
    earlier: Option<KeyId>,
    found: OnceLock<Found>,
}

/// The keys of one data directory.
pub(crate) struct Vault {
    shelf: RwLock<Shelf>,
    book: Mutex<Book>,
    waiting: Mutex<Vec<Arc<Waiting>>>,
    /// Keys that were deleted since the start, or whose deletion was asked for at any time.
    dead: RwLock<HashSet<KeyId>>,
    has_words: Adoption,
    is_legacy: bool,
    session_key: [u8; 32],
    clock: Arc<dyn Clock>,
}

impl LivingKeys for Vault {
    fn is_alive(&self, id: KeyId) -> bool {
        !self.dead.read().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }
}

impl Vault {
    /// Opens the keys of a data directory. `session_key` names conversations of people without id.
    pub(crate) fn open(
        (dir, tables): (&Path, Box<dyn KeyTables>),
        root: Option<RootKey>,
        (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
        session_key: [u8; 32],
        (after_others, has_words): (bool, Adoption),
    ) -> Result<Self, StoreError> {
        let mut book = Book::open(dir, tables, root, entropy, after_others)?;
        let is_legacy = book.tables().is_legacy()?;
        let dead: HashSet<_> =
            book.tables().intents(false)?.iter().map(|intent| intent.subject).collect();
        let gone: Vec<_> = dead.iter().copied().collect();
        book.tables().drop_copies(&gone)?;
        Ok(Self {
            shelf: RwLock::default(),
            book: Mutex::new(book),
            waiting: Mutex::default(),
            dead: RwLock::new(dead),
            has_words,
            is_legacy,
            session_key,
            clock,
        })
    }

    /// The database, for who changes more than one key.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of keys; from here on nothing is sealed with them.
    pub(crate) fn bury(&self, ids: &[KeyId]) {
        self.dead.write().unwrap_or_else(PoisonError::into_inner).extend(ids);
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        let gone = |id: &KeyId| ids.contains(id);
        shelf.by_id.retain(|id, _| !gone(id));
        shelf.by_owner.retain(|_, key| !gone(&key.id()));
    }

    /// Takes a key out of memory; says whether it was there.
    pub(crate) fn let_go(&self, id: KeyId) -> bool {
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        let held = shelf.by_id.remove(&id).is_some();
        if held {
            shelf.by_owner.retain(|_, key| key.id() != id);
        }
        held
    }

    /// Takes back what [`Vault::bury`] did, because the key could not be deleted.
    pub(crate) fn revive(&self, id: KeyId) {
        self.dead.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Keys are found under new hashes after a rotation, but they are the same keys.
    pub(crate) fn rotate(&self, given: Option<RootKey>) -> Result<u64, StoreError> {
        self.book().rotate(given, self.clock.now_ms())
    }

    /// The key of an owner from memory.
    pub(crate) fn held(&self, tenant: u64, owner: &Owner) -> Option<Arc<SealingKey>> {
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        match owner {
            Owner::Pseudonym(id) => shelf.by_id.get(id).cloned(),
            _ => shelf.by_owner.get(&(tenant, owner.clone())).cloned(),
        }
    }

    /// The owner of words that nobody gave an id for.
    pub(crate) fn nobody(&self) -> Owner {
        Owner::Nobody(self.clock.now_ms() / DAY_MS)
    }

    /// The key of an owner, made if there is none. Blocks unless it is held.
    pub(crate) fn ensure(&self, tenant: u64, owner: Owner, earlier: Option<KeyId>) -> Found {
        if let Some(key) = self.held(tenant, &owner) {
            return Ok(key);
        }
        let mine = Arc::new(Waiting { wanted: (tenant, owner), earlier, found: OnceLock::new() });
        self.queue().push(Arc::clone(&mine));
        let mut book = self.book();
        // Whoever had the database before may have served us together with others.
        if mine.found.get().is_none() {
            let all = std::mem::take(&mut *self.queue());
            self.serve(&mut book, &all);
        }
        drop(book);
        let lost = || Err("the key was not looked for".to_owned());
        mine.found.get().cloned().unwrap_or_else(lost)
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Arc<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds or makes the keys of all who wait, in one commit.
    fn serve(&self, book: &mut Book, all: &[Arc<Waiting>]) {
        let (dead, alive): (Vec<_>, Vec<_>) = all.iter().partition(
            |waiting| matches!(&waiting.wanted.1, Owner::Pseudonym(id) if !self.is_alive(*id)),
        );
        for waiting in dead {
            let _ = waiting.found.set(Err("the person's words were erased".to_owned()));
        }
        let wanted: Vec<_> = alive
            .iter()
            .map(|waiting| {
                let (tenant, owner) = waiting.wanted.clone();
                (tenant, owner, self.adopted(tenant, waiting.earlier))
            })
            .collect();
        match book.ensure(&wanted, self.clock.now_ms()) {
            Ok(keys) => {
                for (waiting, key) in alive.iter().zip(keys) {
                    let found = if self.is_alive(key.id()) {
                        self.hold(waiting.wanted.clone(), &key);
                        Ok(key)
                    } else {
                        Err("the person is being erased".to_owned())
                    };
                    let _ = waiting.found.set(found);
                }
            }
            Err(error) => {
                for waiting in &alive {
                    let _ = waiting.found.set(Err(error.to_string()));
                }
            }
        }
    }

    /// The pseudonym an earlier version would give a person, where there was one.
    pub(crate) fn earlier(&self, tenant: &TenantId, user: &str) -> Option<KeyId> {
        let name = || pseudonym(&self.session_key, b"subject", tenant.as_str(), user);
        self.is_legacy.then(name)
    }

    /// Whoever has words under an earlier pseudonym keeps it; one that was erased stays erased.
    fn adopted(&self, tenant: u64, earlier: Option<KeyId>) -> Option<KeyId> {
        earlier.filter(|id| self.is_alive(*id) && (self.has_words)(tenant, *id))
    }

    fn hold(&self, wanted: Held, key: &Arc<SealingKey>) {
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        if shelf.by_id.len() >= HELD_MAX {
            *shelf = Shelf::default();
        }
        shelf.by_id.insert(key.id(), Arc::clone(key));
        if !matches!(wanted.1, Owner::Pseudonym(_)) {
            shelf.by_owner.insert(wanted, Arc::clone(key));
        }
    }

    /// The key with a name, to open what it sealed; `None` when it is gone. May block.
    pub(crate) fn find(&self, id: KeyId) -> Result<Option<Arc<SealingKey>>, StoreError> {
        if !self.is_alive(id) {
            return Ok(None);
        }
        if let Some(key) = self.held(0, &Owner::Pseudonym(id)) {
            return Ok(Some(key));
        }
        self.book().find(id)
    }

    /// Seals what a record of a person says; `None` when they were forgotten. May block.
    pub(crate) fn seal_record(
        &self,
        subject: KeyId,
        purpose: &[u8],
        text: &[u8],
        entropy: &dyn Entropy,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let key = self.find(subject)?;
        Ok(key.map(|key| wrap(&key.derived(RECORD), purpose, text, entropy)))
    }

    /// What a record of a person says; `None` when they were forgotten. May block.
    pub(crate) fn open_record(
        &self,
        subject: KeyId,
        purpose: &[u8],
        sealed: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let key = self.find(subject)?;
        Ok(key.and_then(|key| unwrap(&key.derived(RECORD), purpose, sealed)))
    }

    /// Seals what a tenant's people laid down or decided together, with the tenant's own key. May block.
    pub(crate) fn seal_for_house(
        &self,
        tenant: &TenantId,
        purpose: &[u8],
        text: &[u8],
        entropy: &dyn Entropy,
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.house_key(tenant)?;
        Ok(wrap(&key.derived(RECORD), purpose, text, entropy))
    }

    /// The text again; `None` where it is not what was sealed. May block.
    pub(crate) fn open_for_house(
        &self,
        tenant: &TenantId,
        purpose: &[u8],
        sealed: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let key = self.house_key(tenant)?;
        Ok(unwrap(&key.derived(RECORD), purpose, sealed))
    }

    fn house_key(&self, tenant: &TenantId) -> Result<Arc<SealingKey>, StoreError> {
        let tenant = tenant_number(tenant.as_str());
        if self.held(tenant, &Owner::House).is_none() {
            // What a house has laid down is read by all replicas with one key. None is made while it
            // cannot be seen whether there is one.
            if let Some(key) = self.book().find_owner(tenant, &Owner::House)? {
                self.hold((tenant, Owner::House), &key);
                return Ok(key);
            }
        }
        self.ensure(tenant, Owner::House, None).map_err(StoreError::Key)
    }

    /// Seals a copy that is kept beside the database, under a name.
    pub(crate) fn seal_copy(&self, name: &str, text: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
        wrap(&self.book().copy_key(), name.as_bytes(), text, entropy)
    }

    /// The copy again; `None` where it is not what was sealed.
    pub(crate) fn open_copy(&self, name: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        unwrap(&self.book().copy_key(), name.as_bytes(), sealed)
    }

    /// Hands over what waited for a database that was away, and lets go of whom others forgot.
    pub(crate) fn look_after(&self) -> Result<(), StoreError> {
        let gone = self.book().news()?;
        let fresh: Vec<_> = gone.into_iter().filter(|id| self.is_alive(*id)).collect();
        if !fresh.is_empty() {
            self.bury(&fresh);
            self.book().tables().drop_copies(&fresh)?;
        }
        Ok(())
    }

    /// Stores again the keys that a database has lost; says how many.
    pub(crate) fn give_back(&self, restored: bool) -> Result<usize, StoreError> {
        self.book().give_back(restored)
    }

    /// Lets go of keys in memory that nobody has given back to a database that lost them: nothing more is
    /// sealed with what will not open again. Says how many.
    pub(crate) fn let_go_of_lost(&self) -> Result<usize, StoreError> {
        let held: Vec<KeyId> = {
            let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
            shelf.by_id.keys().copied().collect()
        };
        let lost = self.book().tables().missing(&held)?;
        Ok(lost.into_iter().filter(|id| self.let_go(*id)).count())
    }

    /// Lets go of keys that were marked as idle since a number; returns the number of the last. The
    /// database is held meanwhile, so that nobody who is looking for one of them puts it back after it
    /// was let go.
    pub(crate) fn let_go_of_idle(&self, seen: i64) -> Result<i64, StoreError> {
        let mut book = self.book();
        let (idle, last) = book.tables().idle_since(seen)?;
        for id in idle {
            self.let_go(id);
        }
        Ok(last)
    }

    /// The pseudonym of a person, if there is one. Blocks.
    pub(crate) fn find_person(
        &self,
        tenant: &TenantId,
        user: &str,
    ) -> Result<Option<KeyId>, StoreError> {
        let (earlier, tenant) = (self.earlier(tenant, user), tenant_number(tenant.as_str()));
        let owner = Owner::Person(user.to_owned());
        if let Some(key) = self.book().find_owner(tenant, &owner)? {
            return Ok(Some(key.id()));
        }
        // Somebody of an earlier version who has not been back since.
        Ok(self.adopted(tenant, earlier))
    }

    /// Every pseudonym of a person: whoever several replicas met while their database was away has several.
    /// Blocks.
    pub(crate) fn find_all(&self, tenant: &TenantId, user: &str) -> Result<Vec<KeyId>, StoreError> {
        let number = tenant_number(tenant.as_str());
        let found = self.book().find_all(number, &Owner::Person(user.to_owned()))?;
        if found.is_empty() {
            return Ok(self.adopted(number, self.earlier(tenant, user)).into_iter().collect());
        }
        Ok(found)
    }

    /// Names a person and a conversation. A conversation's name is derived from the person's key, so
    /// that nobody can connect the two once the key is gone.
    pub(crate) fn name(
        self: &Arc<Self>,
        tenant: &TenantId,
        user: Option<&UserId>,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Pseudonyms, SubjectsError>> {
        let number = tenant_number(tenant.as_str());
        let Some(user) = user else {
            let key = &self.session_key;
            let session = pseudonym(key, b"session", tenant.as_str(), session.as_str());
            return ready(Ok(Pseudonyms { tenant: number, session, subject: None })).boxed();
        };
        let owner = Owner::Person(user.as_str().to_owned());
        if let Some(key) = self.held(number, &owner) {
            return ready(Ok(pseudonyms(number, &key, session))).boxed();
        }
        let earlier = self.earlier(tenant, user.as_str());
        let (vault, session) = (Arc::clone(self), session.clone());
        async move {
            let looked = tokio::task::spawn_blocking(move || {
                let key = vault.ensure(number, owner, earlier)?;
                Ok(pseudonyms(number, &key, &session))
            });
            let found = looked.await.unwrap_or_else(|error| Err(error.to_string()));
            found.map_err(SubjectsError)
        }
        .boxed()
    }
}

fn pseudonyms(tenant: u64, key: &SealingKey, session: &SessionId) -> Pseudonyms {
    let named = keyed(&key.derived(b"session"), &[session.as_str().as_bytes()]);
    let mut short = [0; 16];
    short.copy_from_slice(&named[..16]);
    Pseudonyms { tenant, session: short, subject: Some(key.id()) }
}
