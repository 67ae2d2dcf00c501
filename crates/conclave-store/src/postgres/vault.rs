//! The keys of people in PostgreSQL, shared by all replicas, and those that wait for it.
//!
//! **Invariant:** a key is durable before anything is sealed with it: in the database, or, while that
//! is away, in `keys.db` of the data directory. What waits there is handed over before the entries
//! that were sealed with it are.
//!
//! **Invariant:** a key that was deleted does not come back: what is handed over twice is refused
//! where a request to forget it stands.
//!
//! **Invariant:** what was given to the database lately is kept in `keys.db` too, and given back when the
//! database turns out to be older than that.

use super::epoch::{self, key_id, stored};
use super::idle;
use super::link::{Conn, Connector, LinkError, Param};
use super::session::Session;
use crate::error::StoreError;
use crate::vault::{
    By, HOUSE_DAY, Intent, KeyId, KeyTables, NewStoredKey, Rotation, Secret, SqliteKeys, StoredKey,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long a newcomer waits for the database before a key is made without it.
const PATIENCE: Duration = Duration::from_secs(1);
/// So long nobody asks a database again that did not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// The lock under which newcomers are entered: "conclavk" as a number.
const NEWCOMER_LOCK: i64 = 0x636f_6e63_6c61_766b;
/// How long one statement of a rotation may take.
const ROTATION_PATIENCE: Duration = Duration::from_secs(60);
/// How many keys of one person are looked for: one for each replica that met them alone.
const ALL_MAX: i64 = 64;
/// How many keys are looked for with one statement.
const MISSING_PAGE: usize = 10_000;
/// How many of the latest requests to forget are looked at every second.
const NEWS: i64 = 1_000;

/// Keys that were made while the database was away.
#[derive(Clone)]
pub(crate) struct WaitingKeys(Arc<Inner>);

struct Inner {
    local: Mutex<SqliteKeys>,
    /// Whether something may be waiting.
    some: AtomicBool,
    /// When the database last did not answer.
    away_since: Mutex<Option<Instant>>,
    /// Whether the database is known to have what is kept here; before that, what is kept counts.
    is_given_back: AtomicBool,
    /// Of which rotation what waits is; changes only while `local` is held.
    generation: AtomicI64,
    reads_only: bool,
}

/// What the server says about the vault: the look-up, the rotation, and whether the log is older than
/// the keys.
type SharedVault = (Vec<u8>, i64, bool);

impl WaitingKeys {
    /// Looks only, for who checks a ledger.
    pub(crate) fn beside(dir: &Path) -> Option<Self> {
        Some(Self::over(SqliteKeys::open_to_read(dir)?, true))
    }

    /// Opens what an earlier run may have left.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::over(SqliteKeys::open(dir)?, false))
    }

    fn over(local: SqliteKeys, reads_only: bool) -> Self {
        let generation = AtomicI64::new(local.generation().ok().flatten().unwrap_or(0));
        let (local, some) = (Mutex::new(local), AtomicBool::new(true));
        let (away_since, is_given_back) = (Mutex::default(), AtomicBool::new(reads_only));
        Self(Arc::new(Inner { local, some, away_since, is_given_back, generation, reads_only }))
    }

    fn generation(&self) -> i64 {
        self.0.generation.load(Ordering::Acquire)
    }

    fn local(&self) -> MutexGuard<'_, SqliteKeys> {
        self.0.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over everything that waits. The connection must not be in a transaction.
    ///
    /// # Errors
    /// When either database refuses; what was not handed over goes on waiting.
    pub(crate) fn hand_over(&self, conn: &Conn) -> Result<(), StoreError> {
        if !self.0.some.load(Ordering::Acquire) {
            return Ok(());
        }
        loop {
            // Not held while the server is asked: whoever needs a key now must not wait for it.
            let (page, generation) = {
                let local = self.local();
                let page = local.page(&[])?;
                if page.is_empty() {
                    self.0.some.store(false, Ordering::Release);
                    return Ok(());
                }
                (page, self.generation())
            };
            let done = conn.change(|conn| epoch::take_in(conn, (&page, generation), insert));
            done.map_err(|error| conn.connector().named(&error))?;
            let ids: Vec<_> = page.iter().map(|new| new.key.id).collect();
            self.local().put_away(&ids)?;
        }
    }

    /// Gives back what is kept here and the database may have lost; says how many keys were looked at.
    fn give_back(&self, conn: &Conn, restored: bool) -> Result<usize, LinkError> {
        let store = if restored { insert_again } else { insert };
        let (mut after, mut given) = (Vec::new(), 0);
        loop {
            let (page, generation) = (self.local().kept_page(&after)?, self.generation());
            let Some(last) = page.last() else { return Ok(given) };
            after = last.key.id.to_vec();
            conn.change(|conn| epoch::take_in(conn, (&page, generation), store))?;
            given += page.len();
        }
    }

    /// Stores what waits within the transaction that takes entries which may be sealed with it. It
    /// goes on waiting until the next hand-over, when the transaction is known to have happened.
    pub(super) fn go_along(&self, conn: &Conn) -> Result<(), StoreError> {
        if !self.0.some.load(Ordering::Acquire) {
            return Ok(());
        }
        let (page, generation) = {
            let local = self.local();
            (local.page(&[])?, self.generation())
        };
        let done = epoch::take_in(conn, (&page, generation), insert);
        done.map_err(|error| conn.connector().named(&error))
    }

    /// Notes that the database does not answer, or that it does.
    pub(super) fn note_away(&self, away: bool) {
        *self.0.away_since.lock().unwrap_or_else(PoisonError::into_inner) = away.then(Instant::now);
    }

    fn is_away(&self) -> bool {
        let since = *self.0.away_since.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() < PAUSE)
    }
}

/// Stores a key, unless it is there or was forgotten.
pub(super) fn insert(conn: &Conn, new: &NewStoredKey) -> Result<(), LinkError> {
    write_key(conn, new, "NOTHING")
}

/// The same, where one that is there may be wrapped by a tenant's key that the database lost.
fn insert_again(conn: &Conn, new: &NewStoredKey) -> Result<(), LinkError> {
    write_key(conn, new, "UPDATE SET epoch = excluded.epoch, wrapped = excluded.wrapped")
}

fn write_key(conn: &Conn, new: &NewStoredKey, or_else: &str) -> Result<(), LinkError> {
    let sql = format!(
        "INSERT INTO subject_key (id, tenant, epoch, wrapped, name, lookup, day, created_ms)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8
         WHERE NOT EXISTS (SELECT 1 FROM erasure WHERE subject = $1)
         ON CONFLICT (id) DO {or_else}"
    );
    let NewStoredKey { key, name, lookup, day, created_ms } = new;
    let (tenant, created) = (key.tenant.cast_signed(), created_ms.cast_signed());
    let lookup = lookup.as_ref().map(<[u8; 32]>::as_slice);
    let values: [Param<'_>; 8] = [
        (&key.id.as_slice(), Type::BYTEA),
        (&tenant, Type::INT8),
        (&key.epoch, Type::INT8),
        (&key.wrapped, Type::BYTEA),
        (name, Type::BYTEA),
        (&lookup, Type::BYTEA),
        (day, Type::INT8),
        (&created, Type::INT8),
    ];
    conn.execute(&sql, &values).map(|_| ())
}

/// Looks for a key of a rotation. The oldest wins where several replicas met somebody while the
/// database was away.
fn find(conn: &Conn, by: By, generation: i64) -> Result<Option<StoredKey>, LinkError> {
    let (column, value) = match &by {
        By::Id(id) => ("id", id.as_slice()),
        By::Lookup(hash) => ("lookup", hash.as_slice()),
    };
    let sql = format!(
        "SELECT v.generation, k.id IS NOT NULL, k.id, k.tenant, k.epoch, k.wrapped,
                EXISTS (SELECT 1 FROM idle_key i WHERE i.id = k.id)
         FROM vault v LEFT JOIN LATERAL (
             SELECT * FROM subject_key WHERE {column} = $1 ORDER BY created_ms, id LIMIT 1) k
         ON true"
    );
    let Some(row) = conn.row(&sql, &[(&value, Type::BYTEA)])? else { return Ok(None) };
    epoch::same(&row, generation)?;
    if !row.try_get::<_, bool>(1)? {
        return Ok(None);
    }
    if row.try_get(6)? {
        // Read again behind it: it may have been deleted before the mark was taken away.
        idle::unmark(conn, key_id(&row, 2)?)?;
        return find(conn, by, generation);
    }
    stored(&row, 2).map(Some)
}

fn ids(conn: &Conn, sql: &str, values: &[Param<'_>]) -> Result<Vec<KeyId>, LinkError> {
    conn.query(sql, values)?.iter().map(|row| key_id(row, 0)).collect()
}

/// The shared tables, and what waits for them.
pub(crate) struct PgVault {
    session: Session,
    connector: Connector,
    shown: PathBuf,
    dir: PathBuf,
    waiting: WaitingKeys,
    /// Who we are; absent for who only looks.
    replica: Option<[u8; 8]>,
    /// What the server last said about the vault.
    shared: Option<SharedVault>,
}

impl PgVault {
    /// Connects when it is first used.
    pub(crate) fn later(
        connector: Connector,
        dir: &Path,
        waiting: WaitingKeys,
        replica: Option<[u8; 8]>,
    ) -> Self {
        let (shown, dir) = (connector.shown(), dir.to_owned());
        let session = Session::new(connector.clone(), PATIENCE);
        Self { session, connector, shown, dir, waiting, replica, shared: None }
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&Conn) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        if self.waiting.is_away() {
            let message = "it did not answer a moment ago".to_owned();
            return Err(StoreError::Unreachable { path: self.shown.clone(), message });
        }
        let done = self.session.with(work);
        self.waiting.note_away(matches!(done, Err(StoreError::Unreachable { .. })));
        done
    }
}

impl KeyTables for PgVault {
    fn place(&self) -> PathBuf {
        self.shown.clone()
    }

    fn wrong_root(&self) -> StoreError {
        StoreError::Foreign(format!(
            "the root key of {} does not open the keys of people in {}: all replicas need the same; \
             copy the file `root.key` from the data directory of another replica, or give all of \
             them the same `root_key` in [storage]. A database from a backup that was made before the \
             keys were last replaced opens only with the root key of that time",
            self.dir.display(),
            self.shown.display()
        ))
    }

    fn lookup(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let there = self.with(|conn| {
            let row = conn.row("SELECT lookup, generation, legacy FROM vault", &[])?;
            let read = |row: Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
            row.map(read).transpose()
        });
        match there {
            Ok(there) => {
                self.shared = there;
                Ok(self.shared.as_ref().map(|(lookup, ..)| lookup.clone()))
            }
            Err(error @ StoreError::Unreachable { .. }) => {
                self.waiting.local().lookup()?.map_or(Err(error), |lookup| Ok(Some(lookup)))
            }
            Err(error) => Err(error),
        }
    }

    fn settled(&mut self) -> Result<(Option<Vec<u8>>, bool), StoreError> {
        let mut local = self.waiting.local();
        Ok((local.lookup()?, !local.page(&[])?.is_empty()))
    }

    fn root_steps(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        match self.with(epoch::steps) {
            Err(StoreError::Unreachable { .. }) => Ok(Vec::new()),
            steps => steps,
        }
    }

    fn go_over(&mut self, next: &Rotation<'_>, old: &Secret) -> Result<(), StoreError> {
        // Without the database nothing is known but what is here already.
        let Some((lookup, generation, legacy)) = &self.shared else { return Ok(()) };
        let mut local = self.waiting.local();
        if !self.waiting.0.reads_only {
            local.go_over(next, old, (lookup, *generation, *legacy))?;
        }
        self.waiting.0.generation.store(*generation, Ordering::Release);
        Ok(())
    }

    fn note_holder(&mut self) -> Result<(), StoreError> {
        let (generation, replica) = (self.waiting.generation(), self.replica);
        let (Some(replica), Some(_)) = (replica, &self.shared) else { return Ok(()) };
        match self.with(|conn| epoch::note_holder(conn, replica, generation)) {
            Err(StoreError::Unreachable { .. }) => Ok(()),
            noted => noted,
        }
    }

    fn behind(&mut self) -> Result<Vec<[u8; 8]>, StoreError> {
        self.session.with(epoch::behind)
    }

    fn begin(&mut self, wrapped: &[u8], legacy: bool) -> Result<(), StoreError> {
        let sql = "INSERT INTO vault (id, lookup, rotated_ms, legacy) VALUES (1, $1, 0, $2)
                   ON CONFLICT DO NOTHING";
        self.with(|conn| conn.execute(sql, &[(&wrapped, Type::BYTEA), (&legacy, Type::BOOL)]))
            .map(|_| ())
    }

    fn is_legacy(&mut self) -> Result<bool, StoreError> {
        self.waiting.local().is_legacy()
    }

    fn tenant(&mut self, tenant: u64) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
        let sql = "SELECT v.generation, t.epoch, t.wrapped
                   FROM vault v LEFT JOIN tenant_key t ON t.tenant = $1";
        let (number, generation) = (tenant.cast_signed(), self.waiting.generation());
        let there = self.with(|conn| {
            let Some(row) = conn.row(sql, &[(&number, Type::INT8)])? else { return Ok(None) };
            epoch::same(&row, generation)?;
            let epoch: Option<i64> = row.try_get(1)?;
            Ok(epoch.zip(row.try_get::<_, Option<Vec<u8>>>(2)?))
        });
        match there {
            Ok(Some((epoch, wrapped))) => {
                if !self.waiting.0.reads_only {
                    self.waiting.local().add_tenant(tenant, epoch, &wrapped)?;
                }
                Ok(Some((epoch, wrapped)))
            }
            Err(error @ StoreError::Unreachable { .. }) => {
                let known = self.waiting.local().tenant(tenant)?;
                known.map_or(Err(error), |known| Ok(Some(known)))
            }
            there => there,
        }
    }

    fn add_tenant(&mut self, tenant: u64, epoch: i64, wrapped: &[u8]) -> Result<(), StoreError> {
        let sql = "INSERT INTO tenant_key (tenant, epoch, wrapped) VALUES ($1, $2, $3)
                   ON CONFLICT DO NOTHING";
        let (number, generation) = (tenant.cast_signed(), self.waiting.generation());
        let values: [Param<'_>; 3] =
            [(&number, Type::INT8), (&epoch, Type::INT8), (&wrapped, Type::BYTEA)];
        self.with(|conn| {
            conn.change(|conn| {
                epoch::guard(conn, generation)?;
                conn.execute(sql, &values).map(|_| ())
            })
        })
    }

    fn find(&mut self, by: By) -> Result<Option<StoredKey>, StoreError> {
        // What waits here is what this replica seals with until it is handed over.
        if self.waiting.0.some.load(Ordering::Acquire)
            && let Some(key) = self.waiting.local().find(by)?
        {
            return Ok(Some(key));
        }
        let generation = self.waiting.generation();
        let found = self.with(|conn| find(conn, by, generation))?;
        if found.is_none() && !self.waiting.0.is_given_back.load(Ordering::Acquire) {
            return self.waiting.local().find_copy(by);
        }
        Ok(found)
    }

    fn find_all(&mut self, by: By) -> Result<Vec<KeyId>, StoreError> {
        let mut all: Vec<KeyId> = self.find(by)?.map(|key| key.id).into_iter().collect();
        if let By::Lookup(hash) = by {
            let generation = self.waiting.generation();
            let sql = "SELECT v.generation, k.id FROM vault v, subject_key k WHERE k.lookup = $1
                       ORDER BY k.created_ms, k.id LIMIT $2";
            let there = self.with(|conn| {
                let values: [Param<'_>; 2] =
                    [(&hash.as_slice(), Type::BYTEA), (&ALL_MAX, Type::INT8)];
                let rows = conn.query(sql, &values)?;
                let ids = rows.iter().map(|row| {
                    epoch::same(row, generation)?;
                    key_id(row, 1)
                });
                ids.collect::<Result<Vec<_>, _>>()
            })?;
            for id in there {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
        }
        Ok(all)
    }

    fn wants_copies(&self) -> bool {
        !self.waiting.0.reads_only
    }

    fn keep(&mut self, copies: &[NewStoredKey]) -> Result<(), StoreError> {
        self.waiting.local().keep_copies(copies)
    }

    fn give_back(&mut self, restored: bool) -> Result<usize, StoreError> {
        let waiting = self.waiting.clone();
        let given = self.with(|conn| waiting.give_back(conn, restored))?;
        self.waiting.0.is_given_back.store(true, Ordering::Release);
        Ok(given)
    }

    fn drop_copies(&mut self, ids: &[KeyId]) -> Result<(), StoreError> {
        if self.waiting.0.reads_only || ids.is_empty() {
            return Ok(());
        }
        self.waiting.local().drop_keys(ids).map(|_| ())
    }

    fn prune_copies(&mut self, now_ms: u64, before_ms: u64) -> Result<(), StoreError> {
        self.waiting.local().prune_copies(now_ms, before_ms)
    }

    fn missing(&mut self, ids: &[KeyId]) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT wanted FROM unnest($1::bytea[]) AS wanted
                   WHERE NOT EXISTS (SELECT 1 FROM subject_key WHERE id = wanted)";
        let waiting = self.waiting.clone();
        self.with(|conn| {
            waiting.hand_over(conn)?;
            let mut missing = Vec::new();
            for page in ids.chunks(MISSING_PAGE) {
                let names: Vec<&[u8]> = page.iter().map(<[u8; 16]>::as_slice).collect();
                missing.extend(self::ids(conn, sql, &[(&names, Type::BYTEA_ARRAY)])?);
            }
            Ok(missing)
        })
    }

    fn add(&mut self, keys: &[NewStoredKey]) -> Result<Vec<StoredKey>, StoreError> {
        let generation = self.waiting.generation();
        let added = self.with(|conn| {
            conn.change(|conn| {
                epoch::guard(conn, generation)?;
                // So that two replicas do not make two keys for one person.
                conn.query("SELECT pg_advisory_xact_lock($1)", &[(&NEWCOMER_LOCK, Type::INT8)])?;
                let mut stored = Vec::with_capacity(keys.len());
                for new in keys {
                    let by = new.lookup.map_or(By::Id(new.key.id), By::Lookup);
                    let there = match find(conn, by, generation)? {
                        Some(there) => Some(there),
                        None => {
                            insert(conn, new)?;
                            find(conn, by, generation)?
                        }
                    };
                    let gone = || LinkError::Told("the person was erased".to_owned());
                    stored.push(there.ok_or_else(gone)?);
                }
                Ok(stored)
            })
        });
        match added {
            // Whether it was committed is not known; if it was, this is the same person's second key. A
            // house must not have two: every replica reads what it laid down.
            Err(StoreError::Unreachable { .. })
                if !keys.iter().any(|new| new.day == Some(HOUSE_DAY)) =>
            {
                let mut local = self.waiting.local();
                let stored = local.add(keys)?;
                self.waiting.0.some.store(true, Ordering::Release);
                drop(local);
                Ok(stored)
            }
            added => added,
        }
    }

    fn forget(&mut self, intent: Intent) -> Result<bool, StoreError> {
        let Intent { tenant, subject, request, requested_ms } = intent;
        let (tenant, when) = (tenant.cast_signed(), requested_ms.cast_signed());
        let waiting = self.waiting.clone();
        let gone = self.with(|conn| {
            waiting.hand_over(conn)?;
            conn.change(|conn| {
                let sql = "DELETE FROM subject_key WHERE id = $1 AND tenant = $2";
                let subject = subject.as_slice();
                let values: [Param<'_>; 2] = [(&subject, Type::BYTEA), (&tenant, Type::INT8)];
                if conn.execute(sql, &values)? == 0 {
                    return Ok(false);
                }
                let sql = "INSERT INTO erasure (subject, tenant, request, requested_ms)
                           VALUES ($1, $2, $3, $4)
                           ON CONFLICT (subject) DO UPDATE
                           SET request = $3, requested_ms = $4, erased_ms = NULL";
                let values: [Param<'_>; 4] = [
                    (&subject, Type::BYTEA),
                    (&tenant, Type::INT8),
                    (&request.as_slice(), Type::BYTEA),
                    (&when, Type::INT8),
                ];
                conn.execute(sql, &values).map(|_| true)
            })
        })?;
        self.waiting.local().drop_keys(&[subject])?;
        Ok(gone)
    }

    fn settle(&mut self, request: [u8; 16], erased_ms: u64) -> Result<(), StoreError> {
        let erased = erased_ms.cast_signed();
        self.with(|conn| {
            conn.change(|conn| {
                let sql = "UPDATE erasure SET erased_ms = $2 WHERE request = $1";
                let values: [Param<'_>; 2] =
                    [(&request.as_slice(), Type::BYTEA), (&erased, Type::INT8)];
                conn.execute(sql, &values)?;
                let sql = "UPDATE vault SET erased_ms = $1 WHERE erased_ms IS NULL";
                conn.execute(sql, &[(&erased, Type::INT8)]).map(|_| ())
            })
        })
    }

    fn drop_keys(&mut self, ids: &[KeyId]) -> Result<usize, StoreError> {
        let names: Vec<&[u8]> = ids.iter().map(<[u8; 16]>::as_slice).collect();
        let sql = "DELETE FROM subject_key WHERE id = ANY($1::bytea[])";
        let dropped = self.with(|conn| conn.execute(sql, &[(&names, Type::BYTEA_ARRAY)]))?;
        self.waiting.local().drop_keys(ids)?;
        Ok(usize::try_from(dropped).unwrap_or(usize::MAX))
    }

    fn nobody_until(&mut self, tenant: u64, day: u64) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = $1 AND day <= $2";
        let (tenant, day) = (tenant.cast_signed(), day.cast_signed());
        self.with(|conn| ids(conn, sql, &[(&tenant, Type::INT8), (&day, Type::INT8)]))
    }

    fn made_until(
        &mut self,
        tenant: u64,
        until_ms: u64,
        after: Option<KeyId>,
    ) -> Result<Vec<KeyId>, StoreError> {
        let sql = "SELECT id FROM subject_key WHERE tenant = $1 AND created_ms <= $2 AND id > $3
                   AND day IS NULL ORDER BY id LIMIT 1000";
        let (tenant, until) = (tenant.cast_signed(), i64::try_from(until_ms).unwrap_or(i64::MAX));
        let after = after.map_or(Vec::new(), |id| id.to_vec());
        let values: [Param<'_>; 3] =
            [(&tenant, Type::INT8), (&until, Type::INT8), (&after, Type::BYTEA)];
        self.with(|conn| ids(conn, sql, &values))
    }

    /// While the database is away nobody is known to be forgotten; [`KeyTables::news`] says it later.
    fn intents(&mut self, unfinished: bool) -> Result<Vec<Intent>, StoreError> {
        let sql = "SELECT tenant, subject, request, requested_ms FROM erasure
                   WHERE NOT $1 OR erased_ms IS NULL ORDER BY requested_ms";
        let found = self.with(|conn| {
            let rows = conn.query(sql, &[(&unfinished, Type::BOOL)])?;
            let intents = rows.iter().map(|row| {
                let (tenant, requested_ms): (i64, i64) = (row.try_get(0)?, row.try_get(3)?);
                Ok(Intent {
                    tenant: tenant.cast_unsigned(),
                    subject: key_id(row, 1)?,
                    request: key_id(row, 2)?,
                    requested_ms: requested_ms.cast_unsigned(),
                })
            });
            intents.collect()
        });
        match found {
            Err(StoreError::Unreachable { .. }) => Ok(Vec::new()),
            found => found,
        }
    }

    fn since_rotation(&mut self) -> Result<(Option<u64>, u64), StoreError> {
        self.with(|conn| {
            let row = conn.row("SELECT erased_ms, rotated_ms FROM vault", &[])?;
            let Some(row) = row else { return Ok((None, 0)) };
            let (erased, rotated): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok((erased.map(i64::cast_unsigned), rotated.cast_unsigned()))
        })
    }

    fn rotate(
        &mut self,
        next: &Rotation<'_>,
        old: &Secret,
        now_ms: u64,
    ) -> Result<u64, StoreError> {
        let conn = self.connector.connect(ROTATION_PATIENCE);
        let conn = conn.map_err(|error| self.connector.named(&error))?;
        self.waiting.note_away(false);
        self.waiting.hand_over(&conn)?;
        let (lookup, generation) = (next.wrapped_lookup(), self.waiting.generation());
        let now = (generation, lookup.as_slice(), now_ms);
        let rewrapped = conn.change(|conn| epoch::replace(conn, next, old, now));
        let rewrapped = rewrapped.map_err(|error| self.connector.named(&error))?;
        let legacy = self.is_legacy()?;
        self.shared = Some((lookup, generation + 1, legacy));
        self.go_over(next, old)?;
        Ok(rewrapped)
    }

    fn idle_since(&mut self, seen: i64) -> Result<(Vec<KeyId>, i64), StoreError> {
        self.with(|conn| idle::since(conn, seen))
    }

    fn acknowledge_idle(&mut self, seen: i64) -> Result<(), StoreError> {
        let Some(replica) = self.replica else { return Ok(()) };
        self.with(|conn| idle::acknowledge(conn, replica, seen))
    }

    fn news(&mut self) -> Result<Vec<KeyId>, StoreError> {
        let waiting = self.waiting.clone();
        // More than since the last look: what was committed late has an earlier number.
        let sql = "SELECT subject FROM erasure ORDER BY n DESC LIMIT $1";
        self.with(|conn| {
            let row = conn.row("SELECT generation FROM vault", &[])?;
            row.map_or(Ok(()), |row| epoch::same(&row, waiting.generation()))?;
            waiting.hand_over(conn)?;
            ids(conn, sql, &[(&NEWS, Type::INT8)])
        })
    }
}
