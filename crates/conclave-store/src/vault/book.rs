//! The database of keys: which keys there are, wrapped, and who is being forgotten.
//!
//! **Invariant:** the file holds no user id and no key in clear. A person is found by a keyed hash
//! of the id; the id itself is wrapped by the person's own key and goes with it.
//!
//! **Invariant:** forgetting is one transaction: the key, the id and the hash go together, and the
//! request stays until the ledger has its entry.

use super::root::{RootFiles, RootKey};
use super::rotate::Rotation;
use super::wrap::{Secret, draw, keyed, unwrap_secret, wrap};
use crate::db::{KEYS, open_reader, open_writer};
use crate::error::StoreError;
use conclave_engine::Entropy;
use conclave_ledger::SealingKey;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const LOOKUP: &[u8] = b"conclave.lookup.v1";
const TENANT: &[u8] = b"conclave.tenant.v1";
const SUBJECT: &[u8] = b"conclave.subject.v1";
pub(super) const NAME: &[u8] = b"conclave.name.v1";

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
}

impl Owner {
    /// The bytes by which it is found; a pseudonym is found by itself.
    fn name(&self) -> Option<Vec<u8>> {
        match self {
            Self::Person(id) => Some([b"person/", id.as_bytes()].concat()),
            Self::Nobody(day) => Some(format!("nobody/{day}").into_bytes()),
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
    conn: Connection,
    path: PathBuf,
    files: RootFiles,
    external: bool,
    root: Secret,
    lookup: Secret,
    tenants: HashMap<u64, Secret>,
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
        given: Option<RootKey>,
        entropy: Arc<dyn Entropy>,
        after_others: bool,
    ) -> Result<Self, StoreError> {
        let (path, files) = (dir.join("keys.db"), RootFiles::of(dir));
        let conn = open_writer(&path, KEYS)?;
        let wrapped = wrapped_lookup(&conn).map_err(StoreError::database(&path))?;
        let external = given.is_some();
        let root = match (&wrapped, given) {
            (Some(wrapped), given) => right_root(wrapped, given, &files, true)?,
            (None, Some(RootKey(given))) => given,
            (None, None) if files.exist() => files.load(|_| true, true)?,
            (None, None) => files.create(&*entropy)?,
        };
        let lookup = match &wrapped {
            Some(wrapped) => opened(unwrap_secret(&root, LOOKUP, wrapped), &path)?,
            None => {
                begin(&conn, &root, &*entropy, after_others).map_err(StoreError::database(&path))?
            }
        };
        let tenants = HashMap::new();
        Ok(Self { conn, path, files, external, root, lookup, tenants, entropy })
    }

    /// Opens them to look only; `None` when they are not there or do not open.
    pub(crate) fn open_to_read(dir: &Path, given: Option<RootKey>) -> Option<Self> {
        struct NoEntropy;
        impl Entropy for NoEntropy {
            fn fill(&self, _: &mut [u8]) {}
        }
        let (path, files) = (dir.join("keys.db"), RootFiles::of(dir));
        let conn = path.is_file().then(|| open_reader(&path).ok())??;
        let wrapped = wrapped_lookup(&conn).ok()??;
        let external = given.is_some();
        let root = right_root(&wrapped, given, &files, false).ok()?;
        let lookup = unwrap_secret(&root, LOOKUP, &wrapped)?;
        let tenants = HashMap::new();
        let entropy = Arc::new(NoEntropy);
        Some(Self { conn, path, files, external, root, lookup, tenants, entropy })
    }

    /// Whether the root key is kept elsewhere.
    pub(crate) const fn is_external(&self) -> bool {
        self.external
    }

    /// Whether the log began before there were keys.
    pub(crate) fn is_legacy(&self) -> Result<bool, StoreError> {
        let read = self.conn.query_row("SELECT legacy FROM vault", [], |row| row.get(0));
        read.map_err(StoreError::database(&self.path))
    }

    /// The keyed hash by which an owner is found.
    fn hash_of(&self, tenant: u64, owner: &Owner) -> Option<[u8; 32]> {
        Some(keyed(&self.lookup, &[&tenant.to_be_bytes(), &owner.name()?]))
    }

    /// The keys of several owners; those that are missing are made, all in one commit.
    pub(crate) fn ensure(
        &mut self,
        wanted: &[(u64, Owner, Option<KeyId>)],
        now_ms: u64,
    ) -> Result<Vec<Arc<SealingKey>>, StoreError> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut missing = false;
        for (tenant, owner, _) in wanted {
            let key = self.find_owner(*tenant, owner)?;
            missing |= key.is_none();
            found.push(key);
        }
        if missing {
            self.run("BEGIN IMMEDIATE")?;
            let made = self.make_missing(wanted, &mut found, now_ms);
            let ended = self.run(if made.is_ok() { "COMMIT" } else { "ROLLBACK" });
            if let Err(error) = made.and(ended) {
                // What a failed commit left open must not swallow the next one.
                let _ = self.run("ROLLBACK");
                return Err(error);
            }
        }
        let lost = || StoreError::damaged(&self.path, "a key that was just made is not there");
        found.into_iter().map(|key| key.ok_or_else(lost)).collect()
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.conn.execute_batch(sql).map_err(StoreError::database(&self.path))
    }

    fn make_missing(
        &mut self,
        wanted: &[(u64, Owner, Option<KeyId>)],
        found: &mut [Option<Arc<SealingKey>>],
        now_ms: u64,
    ) -> Result<(), StoreError> {
        for (slot, (tenant, owner, adopted)) in found.iter_mut().zip(wanted) {
            if slot.is_none() {
                // The same owner may be wanted twice: the second time it is there.
                *slot = match self.find_owner(*tenant, owner)? {
                    Some(key) => Some(key),
                    None => Some(self.make(*tenant, owner, *adopted, now_ms)?),
                };
            }
        }
        Ok(())
    }

    fn make(
        &mut self,
        tenant: u64,
        owner: &Owner,
        adopted: Option<KeyId>,
        now_ms: u64,
    ) -> Result<Arc<SealingKey>, StoreError> {
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
        let key = Arc::new(SealingKey::new(id, &secret));
        let name = owner.name().map(|name| self.wrap_name(&key, &name));
        let hash = self.hash_of(tenant, owner);
        let (epoch, kek) = self.tenant_key(tenant)?;
        let purpose = subject_purpose(tenant, &id);
        let wrapped = wrap(&kek, &purpose, secret.as_slice(), &*self.entropy);
        let day = if let Owner::Nobody(day) = owner { Some(day.cast_signed()) } else { None };
        let sql = "INSERT INTO subject_key (id, tenant, epoch, wrapped, name, lookup, day,
                   created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = params![
            id,
            tenant.cast_signed(),
            epoch,
            wrapped,
            name,
            hash,
            day,
            now_ms.cast_signed()
        ];
        let mut insert = self.conn.prepare_cached(sql).map_err(StoreError::database(&self.path))?;
        insert.execute(values).map_err(StoreError::database(&self.path))?;
        Ok(key)
    }

    fn wrap_name(&self, key: &SealingKey, name: &[u8]) -> Vec<u8> {
        wrap(&key.derived(NAME), NAME, name, &*self.entropy)
    }

    /// The key of an owner, if there is one.
    pub(crate) fn find_owner(
        &mut self,
        tenant: u64,
        owner: &Owner,
    ) -> Result<Option<Arc<SealingKey>>, StoreError> {
        let (column, value) = match (owner, self.hash_of(tenant, owner)) {
            (Owner::Pseudonym(id), _) => ("id", id.to_vec()),
            (_, Some(hash)) => ("lookup", hash.to_vec()),
            (_, None) => return Ok(None),
        };
        let sql = format!("SELECT id, tenant, epoch, wrapped FROM subject_key WHERE {column} = ?1");
        self.read_key(&sql, &value)
    }

    /// The key with a name, whoever's it is.
    pub(crate) fn find(&mut self, id: KeyId) -> Result<Option<Arc<SealingKey>>, StoreError> {
        let sql = "SELECT id, tenant, epoch, wrapped FROM subject_key WHERE id = ?1";
        self.read_key(sql, &id)
    }

    fn read_key(&mut self, sql: &str, value: &[u8]) -> Result<Option<Arc<SealingKey>>, StoreError> {
        type Row = (KeyId, i64, i64, Vec<u8>);
        let row: Option<Row> = (|| {
            self.conn
                .prepare_cached(sql)?
                .query_row([value], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
                .optional()
        })()
        .map_err(StoreError::database(&self.path))?;
        let Some((id, tenant, epoch, wrapped)) = row else { return Ok(None) };
        let tenant = tenant.cast_unsigned();
        let (current, kek) = self.tenant_key(tenant)?;
        let secret = (current == epoch)
            .then(|| unwrap_secret(&kek, &subject_purpose(tenant, &id), &wrapped))
            .flatten();
        let secret = opened(secret, &self.path)?;
        Ok(Some(Arc::new(SealingKey::new(id, &secret))))
    }

    /// The key that wraps those of a tenant's people, and its epoch.
    fn tenant_key(&mut self, tenant: u64) -> Result<(i64, Secret), StoreError> {
        let database = StoreError::database(&self.path);
        let sql = "SELECT epoch, wrapped FROM tenant_key WHERE tenant = ?1";
        let row: Option<(i64, Vec<u8>)> = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut select| {
                let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                select.query_row([tenant.cast_signed()], read).optional()
            })
            .map_err(&database)?;
        if let Some((epoch, wrapped)) = row {
            if let Some(kek) = self.tenants.get(&tenant) {
                return Ok((epoch, kek.clone()));
            }
            let kek = unwrap_secret(&self.root, &tenant_purpose(tenant, epoch), &wrapped);
            let kek = opened(kek, &self.path)?;
            self.tenants.insert(tenant, kek.clone());
            return Ok((epoch, kek));
        }
        let (epoch, kek) = (1, draw(&*self.entropy));
        let purpose = tenant_purpose(tenant, epoch);
        let wrapped = wrap(&self.root, &purpose, kek.as_slice(), &*self.entropy);
        let sql = "INSERT INTO tenant_key (tenant, epoch, wrapped) VALUES (?1, ?2, ?3)";
        let values = params![tenant.cast_signed(), epoch, wrapped];
        self.conn.execute(sql, values).map_err(&database)?;
        // Not held in memory before the transaction around it is sure.
        Ok((epoch, kek))
    }

    fn change<T>(
        &mut self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let conn = &mut self.conn;
        let changed = (|| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let made = make(&tx)?;
            tx.commit()?;
            Ok(made)
        })();
        changed.map_err(StoreError::database(&self.path))
    }

    /// Deletes the key of a person and everything that leads to it, and notes the request. `None`
    /// when there is nobody of this pseudonym.
    pub(crate) fn forget(&mut self, intent: Intent) -> Result<bool, StoreError> {
        let Intent { tenant, subject, request, requested_ms } = intent;
        self.change(|tx| {
            let sql = "DELETE FROM subject_key WHERE id = ?1 AND tenant = ?2";
            if tx.execute(sql, params![subject, tenant.cast_signed()])? == 0 {
                return Ok(false);
            }
            let sql = "INSERT INTO erasure (subject, tenant, request, requested_ms)
                       VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (subject) DO UPDATE
                       SET request = ?3, requested_ms = ?4, erased_ms = NULL";
            let (tenant, when) = (tenant.cast_signed(), requested_ms.cast_signed());
            tx.execute(sql, params![subject, tenant, request, when])?;
            Ok(true)
        })
    }

    /// Notes that the ledger has the entry of a request, and empties the write-ahead log.
    pub(crate) fn settle(&mut self, request: [u8; 16], erased_ms: u64) -> Result<(), StoreError> {
        let erased = erased_ms.cast_signed();
        self.change(|tx| {
            let sql = "UPDATE erasure SET erased_ms = ?2 WHERE request = ?1";
            tx.execute(sql, params![request, erased])?;
            let sql = "UPDATE vault SET erased_ms = ?1 WHERE erased_ms IS NULL";
            tx.execute(sql, [erased]).map(|_| ())
        })?;
        self.truncate()
    }

    /// Deletes keys that nothing is sealed with any more; says how many.
    pub(crate) fn drop_keys(&mut self, ids: &[KeyId]) -> Result<usize, StoreError> {
        let dropped = self.change(|tx| {
            let mut delete = tx.prepare_cached("DELETE FROM subject_key WHERE id = ?1")?;
            let mut dropped = 0;
            for id in ids {
                dropped += delete.execute([id])?;
            }
            Ok(dropped)
        })?;
        if dropped > 0 {
            self.truncate()?;
        }
        Ok(dropped)
    }

    /// The keys of a tenant's nobody up to a day, itself included.
    pub(crate) fn nobody_until(&self, tenant: u64, day: u64) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = ?1 AND day <= ?2";
        let read = || {
            let mut rows = self.conn.prepare_cached(sql)?;
            let values = params![tenant.cast_signed(), day.cast_signed()];
            rows.query_map(values, |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::database(&self.path))
    }

    /// A page of people's keys that were made up to a time, in order of their names.
    pub(crate) fn made_until(
        &self,
        tenant: u64,
        until_ms: u64,
        after: Option<KeyId>,
    ) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = ?1 AND created_ms <= ?2 AND id > ?3
                   AND day IS NULL ORDER BY id LIMIT 1000";
        let after = after.map_or(Vec::new(), |id| id.to_vec());
        let read = || {
            let mut rows = self.conn.prepare_cached(sql)?;
            let until = i64::try_from(until_ms).unwrap_or(i64::MAX);
            let values = params![tenant.cast_signed(), until, after];
            rows.query_map(values, |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::database(&self.path))
    }

    /// Requests to forget: those that are not finished, or all.
    pub(crate) fn intents(&self, unfinished: bool) -> Result<Vec<Intent>, StoreError> {
        let sql = "SELECT tenant, subject, request, requested_ms FROM erasure
                   WHERE NOT ?1 OR erased_ms IS NULL ORDER BY requested_ms";
        let read = || {
            let mut rows = self.conn.prepare_cached(sql)?;
            let intents = rows.query_map([unfinished], |row| {
                let tenant = row.get::<_, i64>(0)?.cast_unsigned();
                let (subject, request) = (row.get(1)?, row.get(2)?);
                let requested_ms = row.get::<_, i64>(3)?.cast_unsigned();
                Ok(Intent { tenant, subject, request, requested_ms })
            })?;
            intents.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::database(&self.path))
    }

    /// When somebody was first forgotten since the keys were last replaced, and when that was.
    pub(crate) fn since_rotation(&self) -> Result<(Option<u64>, u64), StoreError> {
        let sql = "SELECT erased_ms, rotated_ms FROM vault";
        let read = self.conn.query_row(sql, [], |row| {
            let (erased, rotated): (Option<i64>, i64) = (row.get(0)?, row.get(1)?);
            Ok((erased.map(i64::cast_unsigned), rotated.cast_unsigned()))
        });
        read.map_err(StoreError::database(&self.path))
    }

    /// Moves everything out of the write-ahead log, so that no deleted key stays in it.
    fn truncate(&self) -> Result<(), StoreError> {
        crate::db::truncate_wal(&self.conn).map_err(StoreError::database(&self.path))
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
        let path = self.path.clone();
        let rewrapped = self.change(|tx| next.run(tx, &old, now_ms))?;
        self.lookup = next.lookup;
        self.root = root;
        self.tenants.clear();
        if !self.external {
            let files = &self.files;
            files.finish().map_err(StoreError::file("replace the root key beside", &path))?;
        }
        self.truncate()?;
        Ok(rewrapped)
    }
}

fn wrapped_lookup(conn: &Connection) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.query_row("SELECT lookup FROM vault", [], |row| row.get(0)).optional()
}

fn right_root(
    wrapped: &[u8],
    given: Option<RootKey>,
    files: &RootFiles,
    mend: bool,
) -> Result<Secret, StoreError> {
    let opens = |root: &Secret| unwrap_secret(root, LOOKUP, wrapped).is_some();
    match given {
        Some(RootKey(given)) if opens(&given) => Ok(given),
        Some(_) => {
            let message = "the root key that was given does not open keys.db; \
                           give the one it was made or last rotated with";
            Err(StoreError::Key(message.to_owned()))
        }
        None => files.load(opens, mend),
    }
}

fn begin(
    conn: &Connection,
    root: &Secret,
    entropy: &dyn Entropy,
    after_others: bool,
) -> rusqlite::Result<Secret> {
    let lookup = draw(entropy);
    let wrapped = wrap(root, LOOKUP, lookup.as_slice(), entropy);
    let sql = "INSERT INTO vault (id, lookup, rotated_ms, legacy) VALUES (1, ?1, 0, ?2)";
    conn.execute(sql, params![wrapped, after_others])?;
    Ok(lookup)
}

fn opened<T>(secret: Option<T>, path: &Path) -> Result<T, StoreError> {
    let advice = "a key in it does not open; restore it together with the root key it belongs to";
    secret.ok_or_else(|| StoreError::damaged(path, advice))
}
