//! The database of keys: which keys there are, wrapped, and who is being forgotten.
//!
//! **Invariant:** the file holds no user id and no key in clear. A person is found by a keyed hash
//! of the id; the id itself is wrapped by the person's own key and goes with it.
//!
//! **Invariant:** forgetting is one transaction: the key, the id and the hash go together, and the
//! request stays until the ledger has its entry.

use super::root::{RootFiles, RootKey};
use super::rotate::{Rotation, follow};
use super::sqlite::SqliteKeys;
use super::tables::{By, KeyTables, NewStoredKey, StoredKey};
use super::wrap::{Secret, draw, keyed, unwrap_secret, wrap};
use crate::error::StoreError;
use conclave_engine::Entropy;
use conclave_failpoint as failpoint;
use conclave_ledger::SealingKey;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub(super) const LOOKUP: &[u8] = b"conclave.lookup.v1";
const TENANT: &[u8] = b"conclave.tenant.v1";
const SUBJECT: &[u8] = b"conclave.subject.v1";
pub(super) const NAME: &[u8] = b"conclave.name.v1";
const COPY: &[u8] = b"conclave.copy.v1";

/// The epoch of a key that no tenant's key wraps: the root key does.
pub(super) const BY_ROOT: i64 = 0;
const FIRST_EPOCH: i64 = 1;
/// The day of a house's key, which never comes: what nobody's words have left open is not the house's.
pub(crate) const HOUSE_DAY: i64 = i64::MAX;
/// How many tenants' keys are held in memory.
const TENANTS_MAX: usize = 10_000;

/// The name of a key: for a person, the pseudonym.
pub(crate) type KeyId = [u8; 16];

/// Whose key is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A person, by the id the application uses.
    Person(String),
    /// A person whose id is not known here, by pseudonym.
    Pseudonym(KeyId),
    /// Whoever gave no id on a day, counted in days since 1970.
    Nobody(u64),
    /// The tenant itself: what its people lay down and decide together.
    House,
}

impl Owner {
    /// The bytes by which it is found; a pseudonym is found by itself.
    fn name(&self) -> Option<Vec<u8>> {
        match self {
            Self::Person(id) => Some([b"person/", id.as_bytes()].concat()),
            Self::Nobody(day) => Some(format!("nobody/{day}").into_bytes()),
            Self::House => Some(b"house".to_vec()),
            Self::Pseudonym(_) => None,
        }
    }
}

/// A request to forget somebody that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) tenant: u64,
    pub(crate) subject: KeyId,
    pub(crate) request: [u8; 16],
    pub(crate) requested_ms: u64,
}

/// The database and what opens it.
pub(crate) struct Book {
    tables: Box<dyn KeyTables>,
    files: RootFiles,
    external: bool,
    root: Secret,
    lookup: Secret,
    tenants: HashMap<u64, (i64, Secret)>,
    entropy: Arc<dyn Entropy>,
}

pub(super) fn tenant_purpose(tenant: u64, epoch: i64) -> Vec<u8> {
    [TENANT, &tenant.to_be_bytes(), &epoch.to_be_bytes()].concat()
}

pub(super) fn subject_purpose(tenant: u64, id: &KeyId) -> Vec<u8> {
    [SUBJECT, &tenant.to_be_bytes(), id].concat()
}

impl Book {
    /// Opens the keys of a data directory, or begins them. `after_others` says that its log began
    /// before there were keys.
    pub(crate) fn open(
        dir: &Path,
        mut tables: Box<dyn KeyTables>,
        given: Option<RootKey>,
        entropy: Arc<dyn Entropy>,
        after_others: bool,
    ) -> Result<Self, StoreError> {
        let files = RootFiles::of(dir);
        let external = given.is_some();
        let mut wrapped = tables.lookup()?;
        let root = match (&wrapped, given) {
            (Some(wrapped), given) => settled_root(&mut *tables, wrapped, given, &files)?,
            (None, Some(RootKey(given))) => given,
            (None, None) if files.exist() => files.load(|_| true, true)?,
            (None, None) => files.create(&*entropy)?,
        };
        if wrapped.is_none() {
            let drawn = draw(&*entropy);
            let first = wrap(&root, LOOKUP, drawn.as_slice(), &*entropy);
            tables.begin(&first, after_others)?;
            // Somebody else may have begun at the same moment.
            wrapped = tables.lookup()?;
        }
        let wrapped = wrapped.ok_or_else(|| tables.wrong_root())?;
        let (lookup, tenants) = (Secret::default(), HashMap::new());
        let mut book = Self { tables, files, external, root, lookup, tenants, entropy };
        book.go_over(&wrapped)?;
        Ok(book)
    }

    /// Goes over to what all who share the keys use now. The root key is followed through what was
    /// handed over since; it replaces the one in the file only when what waits here is wrapped by it.
    fn go_over(&mut self, wrapped: &[u8]) -> Result<(), StoreError> {
        let root = follow(self.root.clone(), &self.tables.root_steps()?, wrapped);
        let lookup = unwrap_secret(&root, LOOKUP, wrapped);
        let lookup = lookup.ok_or_else(|| self.tables.wrong_root())?;
        let is_new = *root != *self.root;
        let in_file = is_new && !self.external;
        if in_file {
            self.files.prepare(&root)?;
        }
        let next = Rotation { root: &root, lookup, entropy: Arc::clone(&self.entropy) };
        self.tables.go_over(&next, &self.root)?;
        self.lookup = next.lookup;
        if in_file {
            self.finish_files()?;
        }
        self.root = root;
        self.tenants.clear();
        // A root key that is kept elsewhere is replaced by a person; until then the old one exists.
        if in_file || !is_new { self.tables.note_holder() } else { Ok(()) }
    }

    fn finish_files(&self) -> Result<(), StoreError> {
        let done = self.files.finish();
        done.map_err(StoreError::file("replace the root key beside", &self.tables.place()))
    }

    /// Does something; once more if another replica has replaced the keys meanwhile.
    fn current<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match work(self) {
            Err(StoreError::Replaced) => {
                self.catch_up()?;
                work(self)
            }
            done => done,
        }
    }

    /// Goes over to the keys with which another replica has replaced ours.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        let wrapped = self.tables.lookup()?.ok_or_else(|| self.tables.wrong_root())?;
        self.go_over(&wrapped)
    }

    /// Hands over what waited for the database, and says whom others have forgotten lately.
    pub(crate) fn news(&mut self) -> Result<Vec<KeyId>, StoreError> {
        self.current(|book| book.tables.news())
    }

    /// Opens those of a data directory to look only; `None` when they are not there or do not open.
    pub(crate) fn open_to_read(dir: &Path, given: Option<RootKey>) -> Option<Self> {
        Self::over_to_read(dir, Box::new(SqliteKeys::open_to_read(dir)?), given)
    }

    /// Looks only; `None` when the keys do not open.
    pub(crate) fn over_to_read(
        dir: &Path,
        mut tables: Box<dyn KeyTables>,
        given: Option<RootKey>,
    ) -> Option<Self> {
        struct NoEntropy;
        impl Entropy for NoEntropy {
            fn fill(&self, _: &mut [u8]) {}
        }
        let files = RootFiles::of(dir);
        let wrapped = tables.lookup().ok()??;
        let steps = tables.root_steps().ok()?;
        let external = given.is_some();
        let opens = |root: &Secret| {
            let root = follow(root.clone(), &steps, &wrapped);
            unwrap_secret(&root, LOOKUP, &wrapped).is_some()
        };
        let root = right_root(&*tables, opens, given, &files, false).ok()?;
        let root = follow(root, &steps, &wrapped);
        let lookup = unwrap_secret(&root, LOOKUP, &wrapped)?;
        let (tenants, entropy) = (HashMap::new(), Arc::new(NoEntropy));
        let next = Rotation { root: &root, lookup: lookup.clone(), entropy: entropy.clone() };
        tables.go_over(&next, &root).ok()?;
        Some(Self { tables, files, external, root, lookup, tenants, entropy })
    }

    /// What copies of governed records beside the database are sealed with: it needs no database.
    pub(crate) fn copy_key(&self) -> Secret {
        Secret::new(keyed(&self.root, &[COPY]))
    }

    /// Whether the root key is kept elsewhere.
    pub(crate) const fn is_external(&self) -> bool {
        self.external
    }

    /// The database, for what needs no secret.
    pub(crate) fn tables(&mut self) -> &mut dyn KeyTables {
        &mut *self.tables
    }

    /// The keyed hash by which an owner is found.
    fn hash_of(&self, tenant: u64, owner: &Owner) -> Option<[u8; 32]> {
        Some(keyed(&self.lookup, &[&tenant.to_be_bytes(), &owner.name()?]))
    }

    /// The keys of several owners; those that are missing are made, all in one commit. While a
    /// database is away that others share, whoever is not known here counts as missing.
    pub(crate) fn ensure(
        &mut self,
        wanted: &[(u64, Owner, Option<KeyId>)],
        now_ms: u64,
    ) -> Result<Vec<Arc<SealingKey>>, StoreError> {
        self.current(|book| book.ensure_now(wanted, now_ms))
    }

    fn ensure_now(
        &mut self,
        wanted: &[(u64, Owner, Option<KeyId>)],
        now_ms: u64,
    ) -> Result<Vec<Arc<SealingKey>>, StoreError> {
        let mut found = Vec::with_capacity(wanted.len());
        let (mut missing, mut copies) = (Vec::new(), Vec::new());
        for (tenant, owner, adopted) in wanted {
            let key = match self.find_owner_now(*tenant, owner) {
                Err(StoreError::Unreachable { .. }) => None,
                found => found?,
            };
            if key.is_none() {
                missing.push(self.make((*tenant, owner), *adopted, now_ms, &mut copies)?);
            }
            found.push(key);
        }
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let made = self.tables.add(&missing)?;
        copies.retain(|copy: &NewStoredKey| made.iter().any(|made| made.id == copy.key.id));
        if let Err(error) = self.tables.keep(&copies) {
            // The key is stored; it is missed only if its database comes back older.
            tracing::warn!(%error, "the copy of a new key could not be kept");
        }
        let mut made = made.into_iter();
        let mut keys = Vec::with_capacity(found.len());
        for key in found {
            keys.push(match key {
                Some(key) => key,
                None => {
                    let stored = opened(made.next(), &*self.tables)?;
                    self.open_key(stored)?
                }
            });
        }
        Ok(keys)
    }

    fn make(
        &mut self,
        (tenant, owner): (u64, &Owner),
        adopted: Option<KeyId>,
        now_ms: u64,
        copies: &mut Vec<NewStoredKey>,
    ) -> Result<NewStoredKey, StoreError> {
        let id = match (owner, adopted) {
            (Owner::Pseudonym(id), _) => *id,
            (_, Some(id)) => id,
            _ => {
                let mut drawn = [0; 16];
                self.entropy.fill(&mut drawn);
                drawn
            }
        };
        let secret = draw(&*self.entropy);
        let key = SealingKey::new(id, &secret);
        let name = owner.name().map(|name| wrap(&key.derived(NAME), NAME, &name, &*self.entropy));
        let lookup = self.hash_of(tenant, owner);
        let (epoch, kek) = match self.tenant_key(tenant) {
            // The tenant's key cannot be had now, and another must not be made beside it.
            Err(StoreError::Unreachable { .. }) => (BY_ROOT, self.root.clone()),
            found => found?,
        };
        let purpose = subject_purpose(tenant, &id);
        let wrapped = wrap(&kek, &purpose, secret.as_slice(), &*self.entropy);
        let day = match owner {
            Owner::Nobody(day) => Some(day.cast_signed()),
            Owner::House => Some(HOUSE_DAY),
            Owner::Person(_) | Owner::Pseudonym(_) => None,
        };
        let key = StoredKey { id, tenant, epoch, wrapped };
        let new = NewStoredKey { key, name, lookup, day, created_ms: now_ms };
        if self.tables.wants_copies() {
            // By the root key alone: the tenant's may be lost together with the database's newest part.
            let wrapped = wrap(&self.root, &purpose, secret.as_slice(), &*self.entropy);
            let key = StoredKey { id, tenant, epoch: BY_ROOT, wrapped };
            copies.push(NewStoredKey { key, ..new.clone() });
        }
        Ok(new)
    }

    /// Stores again what a database that came back older has lost of what was given to it from here.
    pub(crate) fn give_back(&mut self, restored: bool) -> Result<usize, StoreError> {
        if restored {
            // The keys of tenants that are held in memory may be lost with it.
            self.catch_up()?;
        }
        self.current(|book| book.tables.give_back(restored))
    }

    /// The pseudonyms of an owner.
    pub(crate) fn find_all(
        &mut self,
        tenant: u64,
        owner: &Owner,
    ) -> Result<Vec<KeyId>, StoreError> {
        self.current(|book| match (owner, book.hash_of(tenant, owner)) {
            (Owner::Pseudonym(id), _) => book.tables.find_all(By::Id(*id)),
            (_, Some(hash)) => book.tables.find_all(By::Lookup(hash)),
            (_, None) => Ok(Vec::new()),
        })
    }

    /// The key of an owner, if there is one.
    pub(crate) fn find_owner(
        &mut self,
        tenant: u64,
        owner: &Owner,
    ) -> Result<Option<Arc<SealingKey>>, StoreError> {
        self.current(|book| book.find_owner_now(tenant, owner))
    }

    fn find_owner_now(
        &mut self,
        tenant: u64,
        owner: &Owner,
    ) -> Result<Option<Arc<SealingKey>>, StoreError> {
        let by = match (owner, self.hash_of(tenant, owner)) {
            (Owner::Pseudonym(id), _) => By::Id(*id),
            (_, Some(hash)) => By::Lookup(hash),
            (_, None) => return Ok(None),
        };
        self.tables.find(by)?.map(|stored| self.open_key(stored)).transpose()
    }

    /// The key with a name, whoever's it is.
    pub(crate) fn find(&mut self, id: KeyId) -> Result<Option<Arc<SealingKey>>, StoreError> {
        self.current(|book| {
            book.tables.find(By::Id(id))?.map(|stored| book.open_key(stored)).transpose()
        })
    }

    fn open_key(&mut self, stored: StoredKey) -> Result<Arc<SealingKey>, StoreError> {
        let StoredKey { id, tenant, epoch, wrapped } = stored;
        let kek = if epoch == BY_ROOT {
            Some(self.root.clone())
        } else {
            let (mut current, mut kek) = self.tenant_key(tenant)?;
            if current != epoch {
                // Somebody replaced it since it was held.
                self.tenants.remove(&tenant);
                (current, kek) = self.tenant_key(tenant)?;
            }
            (current == epoch).then_some(kek)
        };
        let secret =
            kek.and_then(|kek| unwrap_secret(&kek, &subject_purpose(tenant, &id), &wrapped));
        let secret = opened(secret, &*self.tables)?;
        Ok(Arc::new(SealingKey::new(id, &secret)))
    }

    /// The key that wraps those of a tenant's people, and its epoch.
    fn tenant_key(&mut self, tenant: u64) -> Result<(i64, Secret), StoreError> {
        if let Some((epoch, kek)) = self.tenants.get(&tenant) {
            return Ok((*epoch, kek.clone()));
        }
        let mut row = self.tables.tenant(tenant)?;
        if row.is_none() {
            let drawn = draw(&*self.entropy);
            let purpose = tenant_purpose(tenant, FIRST_EPOCH);
            let wrapped = wrap(&self.root, &purpose, drawn.as_slice(), &*self.entropy);
            self.tables.add_tenant(tenant, FIRST_EPOCH, &wrapped)?;
            row = self.tables.tenant(tenant)?;
        }
        let kek = row.and_then(|(epoch, wrapped)| {
            let kek = unwrap_secret(&self.root, &tenant_purpose(tenant, epoch), &wrapped)?;
            Some((epoch, kek))
        });
        let (epoch, kek) = opened(kek, &*self.tables)?;
        if self.tenants.len() >= TENANTS_MAX {
            self.tenants.clear();
        }
        self.tenants.insert(tenant, (epoch, kek.clone()));
        Ok((epoch, kek))
    }

    /// Wraps every surviving key anew: a new root key, new keys of the tenants, a new key for the
    /// look-up. A copy made before opens with nothing that exists after. Says how many keys.
    pub(crate) fn rotate(
        &mut self,
        given: Option<RootKey>,
        now_ms: u64,
    ) -> Result<u64, StoreError> {
        let keep = self.external && given.is_none();
        let root = match given {
            Some(RootKey(given)) => given,
            None if keep => self.root.clone(),
            None => draw(&*self.entropy),
        };
        if !self.external {
            self.files.prepare(&root)?;
        }
        let next = Rotation {
            root: &root,
            lookup: draw(&*self.entropy),
            entropy: Arc::clone(&self.entropy),
        };
        let old = self.root.clone();
        failpoint::reach("keys.prepared");
        let rewrapped = match self.tables.rotate(&next, &old, now_ms) {
            Err(StoreError::Replaced) => {
                self.catch_up()?;
                return Err(StoreError::Replaced);
            }
            done => done?,
        };
        failpoint::reach("keys.replaced");
        self.lookup = next.lookup;
        self.root = root;
        self.tenants.clear();
        if !self.external {
            self.finish_files()?;
        }
        self.tables.note_holder()?;
        Ok(rewrapped)
    }
}

/// The root key that opens what is in this directory. What waits here for a shared database may be
/// older than what is in there; only when nothing waits may the key of the latter do.
fn settled_root(
    tables: &mut dyn KeyTables,
    shared: &[u8],
    given: Option<RootKey>,
    files: &RootFiles,
) -> Result<Secret, StoreError> {
    let steps = tables.root_steps()?;
    let (here, waits) = tables.settled()?;
    let here = here.unwrap_or_else(|| shared.to_vec());
    let opens = |root: &Secret| {
        let leads = || unwrap_secret(&follow(root.clone(), &steps, shared), LOOKUP, shared);
        unwrap_secret(root, LOOKUP, &here).is_some() || (!waits && leads().is_some())
    };
    right_root(tables, opens, given, files, true)
}

fn right_root(
    tables: &dyn KeyTables,
    opens: impl Fn(&Secret) -> bool,
    given: Option<RootKey>,
    files: &RootFiles,
    mend: bool,
) -> Result<Secret, StoreError> {
    match given {
        Some(RootKey(given)) if opens(&given) => Ok(given),
        Some(_) => Err(tables.wrong_root()),
        None => files.load(opens, mend).map_err(|error| match tables.wrong_root() {
            told @ StoreError::Foreign(_) => told,
            _ => error,
        }),
    }
}

fn opened<T>(secret: Option<T>, tables: &dyn KeyTables) -> Result<T, StoreError> {
    let advice = "a key in it does not open; restore it together with the root key it belongs to";
    secret.ok_or_else(|| StoreError::damaged(&tables.place(), advice))
}
