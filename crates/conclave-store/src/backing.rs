//! What stands behind the spool: SQLite in the data directory, or PostgreSQL somewhere else.
//!
//! **Invariant:** a data directory belongs to one of them. Which one is found out here, before
//! anything is written, and a directory that belongs to the other is refused with a sentence.

use crate::accounts::{AccountTables, SqliteAccounts};
use crate::archive::{ReadSide, SqliteArchive};
use crate::db::{LogState, SqliteLog, SqliteSnapshots, SqliteStored, SqliteWords, open_reader};
use crate::drain::{LogDatabase, LogSource, Mark};
use crate::error::StoreError;
use crate::forget::{Retention, WordTables};
use crate::keys::{BookRing, KeyBook, NoteTable, Outbox, Pepper, SqliteBooks, SqliteNotes};
use crate::options::StoreOptions;
use crate::people::{PeopleBook, PersonRecord};
use crate::postgres::{
    Connector, DatabaseUrl, Heart, Lease, PgAccounts, PgArchive, PgBooks, PgKeys, PgNotes,
    PgRecords, PgSnapshots, PgSource, PgStored, PgVault, PgWords, Session, WaitingKeys, has_change,
    is_bound,
};
use crate::publish::KeyFile;
use crate::records::{RecordTables, SqliteRecords};
use crate::replica::Identity;
use crate::scrub::StoredLog;
use crate::snapshot::Snapshots;
use crate::spool::{Intake, Progress};
use crate::usage::UsageSource;
use crate::vault::{Adoption, KeyTables, SqliteKeys, Vault};
use rusqlite::OptionalExtension;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long looking up a note may take.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);
/// The copy of keys and people that a replica starts from when its database is away.
const COPY: &str = "cache.db";

/// Says whether the log has the entry of a note.
pub(crate) type ChangeLookup = Box<dyn Fn([u8; 16]) -> Result<bool, String> + Send + Sync>;

/// Makes the read side once the spool runs.
pub(crate) type MakeArchive =
    Box<dyn FnOnce(Arc<Intake>, Arc<Progress>, Arc<Vault>, Reading) -> Arc<dyn ReadSide>>;

/// Makes what reads the stored log again.
pub(crate) type MakeStored = Box<dyn Fn() -> Box<dyn StoredLog> + Send + Sync>;

/// How many readers there are, and how long one waits.
type Reading = (usize, Duration);

/// Everything that stands behind the spool.
pub(crate) struct Backing {
    pub(crate) identity: Identity,
    pub(crate) source: Box<dyn LogSource>,
    /// Absent if the database cannot be reached now.
    pub(crate) log: Option<Box<dyn LogDatabase>>,
    pub(crate) mark: Mark,
    pub(crate) mark_path: Option<PathBuf>,
    /// The last identity before this one and its last number, if numbering begins anew.
    pub(crate) earlier: Option<(Identity, u64)>,
    /// Whether the log has no entry and it is ours to begin it.
    pub(crate) begins: bool,
    pub(crate) archive: MakeArchive,
    pub(crate) ring: BookRing,
    pub(crate) book: KeyBook,
    pub(crate) people: PeopleBook,
    /// People as they were when the database was last reached, if it cannot be now.
    pub(crate) people_known: Option<Vec<PersonRecord>>,
    pub(crate) outbox: Outbox,
    pub(crate) records: Box<dyn RecordTables>,
    pub(crate) changes: ChangeLookup,
    pub(crate) heart: Option<Heart>,
    pub(crate) snapshots: Arc<dyn Snapshots>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) words: Arc<dyn WordTables>,
    pub(crate) retention: Arc<Retention>,
    /// Makes what reads the log again from time to time.
    pub(crate) stored: MakeStored,
    /// Where decisions are added up.
    pub(crate) usage: UsageSource,
    /// Accounts and reservations.
    pub(crate) accounts: Box<dyn AccountTables>,
}

impl Backing {
    /// Opens what the options name.
    ///
    /// # Errors
    /// When it cannot be used; a PostgreSQL that is only away is no error for a directory that knows
    /// it.
    pub(crate) fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        let pepper = Pepper::load(&options.dir, &*options.entropy)?;
        match &options.database {
            Some(url) => Self::postgres(options, url, pepper),
            None => Self::sqlite(options, pepper),
        }
    }

    fn sqlite(options: &StoreOptions, pepper: Pepper) -> Result<Self, StoreError> {
        let dir = options.dir.as_path();
        refuse_bound(dir)?;
        refuse_lost(dir)?;
        let database = dir.join("ledger.db");
        let retention = Arc::<Retention>::default();
        let log = SqliteLog::open(&database, Arc::clone(&retention), &*options.entropy)?;
        let known = log.state.taken.keys().next_back().copied();
        let identity = Identity::load(dir, known, &*options.entropy)?;
        let earlier = known.filter(|known| known.epoch != identity.epoch);
        let earlier = earlier.map(|known| (known, taken(&log.state, known)));
        let was_signed = log.was_signed().map_err(StoreError::database(&database))?;
        make_signing_key(options, identity, was_signed)?;
        let tables = SqliteBooks::open(dir)?;
        let ring =
            BookRing::over(Box::new(tables), Vec::new(), pepper.clone(), options.clock.clone());
        ring.refresh()?;
        let snapshots = Arc::new(SqliteSnapshots::new(&database));
        let words: Arc<dyn WordTables> = Arc::new(SqliteWords(database.clone()));
        let began = log.state.range.size() > 0;
        let keys = Box::new(SqliteKeys::open(dir)?);
        let vault = open_vault(options, &pepper, keys, (began, &words))?;
        let (archive, changes) = (database.clone(), database.clone());
        Ok(Self {
            identity,
            stored: {
                let database = database.clone();
                Box::new(move || Box::new(SqliteStored(database.clone())))
            },
            source: Box::new(log.source(&database)),
            mark: mark_of(&log.state, identity),
            mark_path: None,
            earlier,
            begins: log.state.range.size() == 0,
            log: Some(Box::new(log)),
            archive: Box::new(move |intake, progress, vault, reading| {
                Arc::new(SqliteArchive::new(archive, intake, progress, vault, reading))
            }),
            ring,
            book: KeyBook::over(Box::new(SqliteBooks::open(dir)?), pepper),
            people: PeopleBook::over(Box::new(SqliteBooks::open(dir)?)),
            people_known: None,
            records: Box::new(SqliteRecords::open(dir)?),
            outbox: Outbox::over(Box::new(SqliteNotes::open(dir)?) as Box<dyn NoteTable>),
            changes: Box::new(move |id| {
                sqlite_has_change(&changes, id).map_err(|error| error.to_string())
            }),
            heart: None,
            accounts: Box::new(SqliteAccounts::open(dir)?),
            usage: UsageSource::File(dir.join("ledger.db")),
            snapshots,
            vault: Arc::new(vault),
            words,
            retention,
        })
    }

    fn postgres(
        options: &StoreOptions,
        url: &DatabaseUrl,
        pepper: Pepper,
    ) -> Result<Self, StoreError> {
        let dir = options.dir.as_path();
        refuse_unmoved(dir)?;
        let connector = Connector::new(url)?;
        let identity = Identity::load(dir, None, &*options.entropy)?;
        let lease = Lease::of(dir, identity.replica, &*options.entropy)?;
        let source = PgSource {
            connector: connector.clone(),
            lease: lease.clone(),
            dir: dir.to_owned(),
            pepper: pepper.clone(),
            entropy: options.entropy.clone(),
            waiting: WaitingKeys::open(dir)?,
            retention: Arc::default(),
        };
        let reached = match source.reach() {
            Err(error @ StoreError::Unreachable { .. }) if is_bound(dir) => {
                tracing::error!(%error, "starting without the database, from what is known of it");
                None
            }
            reached => Some(reached?),
        };
        let mark_path = dir.join("drained");
        let mark = Mark::read(&mark_path, identity);
        let key = source.signing_key(options, identity, reached.is_some())?;
        tracing::debug!(origin = key.origin(), "checkpoints are signed under this name");
        let (log, mark, begins) = match reached {
            Some((log, state, begins)) => {
                let there = mark_of(&state, identity);
                let begins = begins && state.range.size() == 0;
                // What was noted wins where the database has less: then it went back.
                let mark = Mark {
                    n: mark.n.max(there.n),
                    ts_ms: mark.ts_ms.max(there.ts_ms),
                    size: mark.size.max(there.size),
                    ..mark
                };
                (Some(Box::new(log) as Box<dyn LogDatabase>), mark, begins)
            }
            None => (None, mark, false),
        };
        Self::over_postgres(options, connector, pepper, source, (identity, lease))
            .map(|backing| Self { log, mark, mark_path: Some(mark_path), begins, ..backing })
    }

    /// The parts that need no connection yet.
    fn over_postgres(
        options: &StoreOptions,
        connector: Connector,
        pepper: Pepper,
        source: PgSource,
        (identity, lease): (Identity, Lease),
    ) -> Result<Self, StoreError> {
        let dir = options.dir.as_path();
        let copied = crate::keys::BookTables::keys(&mut SqliteBooks::open_file(dir, COPY)?)?;
        let people_known =
            crate::keys::BookTables::people(&mut SqliteBooks::open_file(dir, COPY)?)?;
        let keys = PgKeys::new(connector.clone(), SqliteBooks::open_file(dir, COPY)?);
        let ring = BookRing::over(Box::new(keys), copied, pepper.clone(), options.clock.clone());
        if let Err(error) = ring.refresh() {
            tracing::warn!(%error, "the API keys are those of the last contact");
        }
        let words: Arc<dyn WordTables> = Arc::new(PgWords::later(connector.clone()));
        let waiting = source.waiting.clone();
        let keys = PgVault::later(connector.clone(), dir, waiting, Some(identity.replica));
        let vault = open_vault(options, &pepper, Box::new(keys), (false, &words))?;
        let (retention, scrubbed) = (Arc::clone(&source.retention), connector.clone());
        let (read, changes) =
            (connector.clone(), Mutex::new(Session::new(connector.clone(), LOOKUP_PATIENCE)));
        Ok(Self {
            identity,
            source: Box::new(source),
            log: None,
            mark: Mark::default(),
            mark_path: None,
            earlier: None,
            begins: false,
            archive: Box::new(move |intake, progress, vault, reading| {
                Arc::new(PgArchive::new(read, intake, progress, vault, reading))
            }),
            ring,
            book: KeyBook::over(Box::new(PgBooks::later(connector.clone())), pepper),
            people: PeopleBook::over(Box::new(PgBooks::later(connector.clone()))),
            people_known: Some(people_known),
            records: Box::new(PgRecords::later(connector.clone())),
            outbox: Outbox::over(Box::new(PgNotes::new(connector.clone(), identity.replica))),
            changes: Box::new(move |id| {
                let mut session = changes.lock().unwrap_or_else(PoisonError::into_inner);
                has_change(&mut session, id).map_err(|error| error.to_string())
            }),
            snapshots: Arc::new(PgSnapshots::later(connector.clone())),
            accounts: Box::new(PgAccounts::later(connector.clone())),
            usage: UsageSource::Server(Mutex::new(Session::new(
                connector.clone(),
                options.read_patience,
            ))),
            heart: Some(Heart::new(connector, lease)),
            vault: Arc::new(vault),
            words,
            retention,
            stored: Box::new(move || Box::new(PgStored::later(scrubbed.clone()))),
        })
    }
}

/// Separates the key of pseudonyms from the keyed hashes of API keys.
pub(crate) const PSEUDONYMS: &str = "conclave.pseudonyms.v1";

/// Opens the keys of people. Whoever has words from before people had keys keeps the pseudonym of
/// that time.
fn open_vault(
    options: &StoreOptions,
    pepper: &Pepper,
    keys: Box<dyn KeyTables>,
    (began, words): (bool, &Arc<dyn WordTables>),
) -> Result<Vault, StoreError> {
    let ports = (Arc::clone(&options.clock), Arc::clone(&options.entropy));
    let words = Arc::clone(words);
    let has_words: Adoption = Box::new(move |tenant, subject| {
        words.has_words(tenant, subject).unwrap_or_else(|error| {
            tracing::error!(%error, "it cannot be seen whether a person was here before");
            false
        })
    });
    let place = (options.dir.as_path(), keys);
    let key = pepper.digest(PSEUDONYMS);
    Vault::open(place, options.root_key.clone(), ports, key, (began, has_words))
}

/// Sees to it that there is a key to sign with.
pub(crate) fn make_signing_key(
    options: &StoreOptions,
    identity: Identity,
    was_signed: bool,
) -> Result<KeyFile, StoreError> {
    let dir = &options.dir;
    let was_signed = was_signed || dir.join("checkpoint").exists();
    let default = format!("conclave/{}", hex::encode(identity.replica));
    let origin = options.origin.as_ref().unwrap_or(&default);
    let file = KeyFile::load_or_make(dir, origin, was_signed, &*options.entropy)?;
    if options.origin.as_ref().is_some_and(|origin| origin != file.origin()) {
        let message = format!(
            "its log is called `{}`, the configuration says `{origin}`; a log keeps its name",
            file.origin()
        );
        return Err(StoreError::damaged(&dir.join("ledger.key"), message));
    }
    Ok(file)
}

fn taken(state: &LogState, identity: Identity) -> u64 {
    state.taken.get(&identity).copied().unwrap_or(0)
}

fn mark_of(state: &LogState, identity: Identity) -> Mark {
    let (epoch, n) = (identity.epoch, taken(state, identity));
    Mark { epoch, n, ts_ms: state.ts_ms, size: state.range.size() }
}

/// A directory in which a log was kept must not go on without what belongs to it: nobody would notice
/// which keys, policies and reviews are gone.
fn refuse_lost(dir: &Path) -> Result<(), StoreError> {
    let has = |name: &str| dir.join(name).exists();
    let needs = [
        (
            "ops.db",
            has("replica") && has("ledger.db"),
            "it held the API keys, people, policies, consents, reviews and budgets; restore it from a \
             backup, or, to go on without all of them, make an empty file of that name",
        ),
        (
            "keys.db",
            has("replica") && has("root.key"),
            "it held the keys of everything that people said; restore it from a backup, or, to give up \
             what was said so far, make an empty file of that name",
        ),
    ];
    match needs.into_iter().find(|(name, is_needed, _)| *is_needed && !has(name)) {
        Some((name, _, advice)) => Err(StoreError::Missing { path: dir.join(name), advice }),
        None => Ok(()),
    }
}

/// A directory whose log moved to PostgreSQL must not go on in SQLite.
pub(crate) fn refuse_bound(dir: &Path) -> Result<(), StoreError> {
    if !is_bound(dir) {
        return Ok(());
    }
    Err(StoreError::Foreign(format!(
        "the ledger of {} is in a PostgreSQL database; give its address as --database, or in \
         [storage], or choose another --data directory",
        dir.display()
    )))
}

/// A directory with a log of its own must not begin another one in PostgreSQL.
fn refuse_unmoved(dir: &Path) -> Result<(), StoreError> {
    if is_bound(dir) || !dir.join("ledger.db").is_file() {
        return Ok(());
    }
    Err(StoreError::Foreign(format!(
        "{} holds a ledger in SQLite; move it with `conclave migrate sqlite-to-postgres`, or \
         choose another --data directory",
        dir.display()
    )))
}

fn sqlite_has_change(database: &Path, id: [u8; 16]) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM log_change WHERE id = ?1";
    let found = open_reader(database)?.query_row(sql, [id], |_| Ok(())).optional()?;
    Ok(found.is_some())
}
