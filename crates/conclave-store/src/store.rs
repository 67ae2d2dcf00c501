//! The store as a whole: opens everything in the right order and closes it again.
//!
//! **Invariant:** whoever holds a part of the store may go on holding it after the store was
//! closed: what is appended then is refused, what was appended before can still be read.

use crate::archive::SqliteArchive;
use crate::db::open_reader;
use crate::drain::{Drainer, DrainerParts, Log};
use crate::durable::make_dir;
use crate::error::StoreError;
use crate::forget::{self, Forgetter, Register, Retention, RetentionRules};
use crate::keys::{BookRing, KeyBook, Outbox, OutboxSink, Pepper};
use crate::ledger::SpoolLedger;
use crate::lock::DirLock;
use crate::options::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, Stamp, Stamps, StoreOptions};
use crate::proofs::SqliteProofs;
use crate::publish::{Desk, DeskParts, KeyFile, handovers, latest};
use crate::replica::Identity;
use crate::scrub::Scrub;
use crate::spool::{
    Fallback, Intake, Job, Progress, Recovered, Seed, SpoolStats, Writer, WriterParts, recover,
};
use crate::vault::{Adoption, RootKey, Vault};
use conclave_engine::{Archive, Entropy, KeyRing, Ledger, Proofs, Subjects};
use conclave_ledger::{Body, Draft, Kind, Rotation, Value, VerifierKey};
use rusqlite::OptionalExtension;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the keys and the notes of other processes are looked at.
const KEEPER_TICK: Duration = Duration::from_secs(1);
/// After how many ticks the last uses of keys are written down.
const USES_TICKS: u32 = 60;

/// After how many ticks it is looked what is to be forgotten: at the first, then every hour.
const FORGET_TICKS: u32 = 3_600;

/// How long closing waits for the database; what it does not take stays in the spool.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The ledger, the archive and the keys of one data directory.
pub struct Store {
    ledger: Arc<SpoolLedger>,
    archive: Arc<SqliteArchive>,
    /// For what strangers may ask, so that they never take a turn's place in line.
    public: Arc<SqliteArchive>,
    ring: Arc<BookRing>,
    book: Arc<KeyBook>,
    stamps: Arc<Stamps>,
    notes: Arc<Notes>,
    forgetter: Arc<Forgetter>,
    keeper: Arc<Keeper>,
    desk: Arc<Desk>,
    dir: PathBuf,
    identity: Identity,
    is_new: bool,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    keeper: Option<JoinHandle<()>>,
    publisher: Option<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
    drainer: Option<JoinHandle<()>>,
    lock: Option<DirLock>,
    fallback: Option<Fallback>,
}

impl Store {
    /// Opens a data directory: takes its lock, recovers what a crash left behind, starts the
    /// threads.
    ///
    /// # Errors
    /// When the directory is in use, cannot be written or is damaged; the error says what to do.
    #[expect(clippy::needless_pass_by_value, reason = "options are for one store")]
    pub fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let lock = DirLock::take(&options.dir)?;
        let (dir, spool) = (options.dir.as_path(), options.dir.join("spool"));
        make_dir(&spool)?;
        let log = Log::open(&dir.join("ledger.db"))?;
        let known = log.state.taken.keys().next_back().copied();
        let identity = Identity::load(dir, known, &*options.entropy)?;
        let fallback = Fallback::take(dir, options.spool_fallback.as_deref(), identity)?;
        let spools: Vec<_> =
            std::iter::once(spool).chain(fallback.as_ref().map(|it| it.dir.clone())).collect();
        let recovered = recover(&spools, &dir.join("quarantine"), identity)?;
        report_recovery(&recovered);
        let pepper = Pepper::load(dir, &*options.entropy)?;
        let vault = Arc::new(open_vault(&options, &pepper, &log)?);
        let book = Arc::new(KeyBook::open(dir, pepper.clone())?);
        let ring = Arc::new(BookRing::open(dir, pepper, Arc::clone(&options.clock))?);
        let outbox = Outbox::open(dir)?;
        make_signing_key(&options, &log, identity)?;
        let is_new = log.state.range.size() == 0 && recovered.segments.is_empty();
        let new_epoch = known.filter(|known| known.epoch != identity.epoch);
        let last = new_epoch.map(|known| (known, log.state.taken.get(&known).copied()));
        let core = Core::start(&options, spools, identity, log, recovered, vault)?;
        let desk = Arc::new(Desk::new(DeskParts {
            dir: dir.to_owned(),
            clock: Arc::clone(&options.clock),
            anchor: options.anchor.clone(),
            progress: Arc::clone(&core.ledger.progress),
        }));
        if let Some((known, last_n)) = last {
            core.declare_epoch(identity, known, last_n.unwrap_or(0));
        }
        let ringed = (ring, book, outbox);
        let store = core.into_store(ringed, desk, identity, is_new, (lock, fallback))?;
        // Nothing is served before what was to be forgotten is forgotten. Where a long spool has to be
        // drained first, the keys are gone already, and the rest follows.
        match store.forgetter.resume() {
            Ok(0) => {}
            Ok(again) => tracing::warn!(again, "people who had been erased were forgotten again"),
            Err(error @ StoreError::Unsettled(_)) => {
                tracing::warn!(%error, "an erasure is finished later; its words are not shown");
            }
            Err(error) => return Err(error),
        }
        Ok(store)
    }

    /// The names people have, and the way to be forgotten.
    #[must_use]
    pub fn subjects(&self) -> Arc<dyn Subjects> {
        Arc::new(Register(Arc::clone(&self.forgetter)))
    }

    /// Says how long words are kept.
    pub fn set_retention(&self, rules: RetentionRules) {
        self.forgetter.retention.set(rules);
    }

    /// Deletes what is due now, instead of within the hour. Blocks; says how many bodies.
    ///
    /// # Errors
    /// When the database or the ledger refuses.
    pub fn purge_due(&self) -> Result<u64, StoreError> {
        self.forgetter.purge_due()
    }

    /// Replaces every key that wraps others now: the root key, or the one that is given, and those of
    /// all tenants. Blocks; says how many keys of people were wrapped anew.
    ///
    /// # Errors
    /// When the keys cannot be read or written.
    pub fn rotate_keys(&self, root_key: Option<RootKey>) -> Result<u64, StoreError> {
        self.forgetter.rotate(root_key)
    }

    /// Replaces them if somebody was erased long enough ago. Blocks; says whether.
    ///
    /// # Errors
    /// When the keys cannot be read or written.
    pub fn rotate_keys_if_due(&self) -> Result<bool, StoreError> {
        self.forgetter.rotate_if_due()
    }

    /// Where entries are written.
    #[must_use]
    pub fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.ledger) as _
    }

    /// Where entries are read.
    #[must_use]
    pub fn archive(&self) -> Arc<dyn Archive> {
        Arc::clone(&self.archive) as _
    }

    /// What is shown to those who do not trust us.
    #[must_use]
    pub fn proofs(&self) -> Arc<dyn Proofs> {
        let (archive, desk) = (Arc::clone(&self.public), Arc::clone(&self.desk));
        Arc::new(SqliteProofs { archive, desk, dir: self.dir.clone() })
    }

    /// Signs a checkpoint now, instead of within a second, if the log grew. Blocks.
    ///
    /// # Errors
    /// When it must not or cannot be signed.
    pub fn publish(&self) -> Result<Option<String>, StoreError> {
        let published = self.desk.publish().map_err(StoreError::Key)?;
        Ok(published.map(|published| published.note))
    }

    /// Hands the signing of checkpoints over to a new key; both keys sign from now on. Blocks.
    ///
    /// # Errors
    /// When the key file or the ledger refuses.
    pub fn rotate_key(
        &self,
        entropy: &dyn Entropy,
    ) -> Result<(VerifierKey, VerifierKey), StoreError> {
        self.settle(SHUTDOWN_PATIENCE)?;
        let database = self.dir.join("ledger.db");
        let told = told_handovers(&database)?;
        let (old, new) = KeyFile::load(&self.dir)?.add(&told, entropy)?;
        let rotation = Rotation::new(&old, &new);
        let appended = self.notes.append(Kind::KeyRotate, 0, rotation.to_public());
        appended.map_err(StoreError::Key)?;
        self.settle(SHUTDOWN_PATIENCE)?;
        self.publish()?;
        Ok((rotation.old, rotation.new))
    }

    /// Forgets the seed of the key before; only the one in force signs from now on. Says whether
    /// there was one.
    ///
    /// # Errors
    /// When the key file refuses.
    pub fn end_key_overlap(&self) -> Result<bool, StoreError> {
        let told = told_handovers(&self.dir.join("ledger.db"))?;
        KeyFile::load(&self.dir)?.end_overlap(&told)
    }

    /// Which keys open what.
    #[must_use]
    pub fn keys(&self) -> Arc<dyn KeyRing> {
        Arc::clone(&self.ring) as _
    }

    /// Names readers, and conversations of people without an id.
    #[must_use]
    pub fn pseudonym_key(&self) -> [u8; 32] {
        self.book.digest(PSEUDONYMS)
    }

    /// Where keys are made and withdrawn.
    #[must_use]
    pub fn key_book(&self) -> Arc<KeyBook> {
        Arc::clone(&self.book)
    }

    /// Who this installation is in the log.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the log had no entry when it was opened: its first should be the genesis.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// What the spool has done since it was opened.
    #[must_use]
    pub fn stats(&self) -> SpoolStats {
        self.ledger.progress.stats()
    }

    /// Changes what the store's own entries say about the program, when the policy has changed.
    pub fn set_stamp(&self, stamp: Stamp) {
        self.stamps.set(stamp);
    }

    /// Turns notes of other processes into entries and reads the keys again, now instead of within
    /// a second. Blocks; says how many entries were made.
    ///
    /// # Errors
    /// When the database or the ledger refuses.
    pub fn sync_keys(&self) -> Result<usize, StoreError> {
        let refreshed = self.ring.refresh().map_err(|error| StoreError::Key(error.to_string()));
        refreshed.and_then(|()| self.notes.pump().map_err(StoreError::Key))
    }

    /// What was found wrong with the stored log. Nothing may be signed over it while there is such.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        self.ledger.progress.damage()
    }

    /// Reads the last entries of the stored log again, or all of them, now instead of in an hour or a
    /// week. Blocks; says what is wrong.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn scrub(&self, whole: bool) -> Result<Option<String>, StoreError> {
        let database = &self.notes.database;
        let mut scrub = Scrub::new(database.clone(), Arc::clone(&self.ledger.progress));
        scrub.walk_now(whole).map_err(StoreError::database(database))
    }

    /// Waits until everything appended so far is in the database. Blocks.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn settle(&self, patience: Duration) -> Result<(), StoreError> {
        let pushed = self.ledger.intake.hurry();
        let settled = self.ledger.progress.wait_drained(pushed, patience);
        settled.map_err(StoreError::Unsettled)
    }

    /// Writes and drains everything that was accepted, ends the threads and gives the directory
    /// free. Blocks; calling it again does nothing.
    pub fn shutdown(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.keeper.stop();
        join("keeper", running.keeper.take());
        self.desk.stop();
        join("publisher", running.publisher.take());
        if running.writer.is_some() && self.settle(SHUTDOWN_PATIENCE).is_err() {
            tracing::warn!("not everything could be drained; the rest stays in the spool");
        }
        self.ledger.intake.close();
        join("spool writer", running.writer.take());
        self.archive.close_idle();
        self.public.close_idle();
        join("drainer", running.drainer.take());
        drop(running.fallback.take());
        let first = running.lock.take();
        // What came in since the last tick gets its checkpoint now, so that its receipts exist.
        if first.is_some() && self.desk.publish().is_err() {
            tracing::warn!("the last entries have no checkpoint yet");
        }
        if let Some(Err(error)) = first.is_some().then(|| self.ring.write_uses()) {
            tracing::warn!(%error, "the last uses of keys could not be written");
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// The key is made before the log begins, so that no entry is without somebody to sign for it.
fn make_signing_key(
    options: &StoreOptions,
    log: &Log,
    identity: Identity,
) -> Result<(), StoreError> {
    let dir = &options.dir;
    let stored = latest(&log.conn).map_err(StoreError::database(&dir.join("ledger.db")))?;
    let was_signed = stored.is_some() || dir.join("checkpoint").exists();
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
    Ok(())
}

fn told_handovers(database: &Path) -> Result<Vec<crate::publish::Handover>, StoreError> {
    let failed = StoreError::database(database);
    let conn = open_reader(database).map_err(&failed)?;
    handovers(&conn, u64::MAX >> 1).map_err(&failed)
}

fn join(name: &str, thread: Option<JoinHandle<()>>) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!(name, "a thread of the store ended badly");
    }
}

/// Separates the key of pseudonyms from the keyed hashes of API keys.
pub(crate) const PSEUDONYMS: &str = "conclave.pseudonyms.v1";

/// Opens the keys of people. Whoever has words from before people had keys keeps the pseudonym of
/// that time.
fn open_vault(options: &StoreOptions, pepper: &Pepper, log: &Log) -> Result<Vault, StoreError> {
    let database = options.dir.join("ledger.db");
    let ports = (Arc::clone(&options.clock), Arc::clone(&options.entropy));
    let began = log.state.range.size() > 0;
    let has_words: Adoption = Box::new(move |tenant, subject| {
        let looked = open_reader(&database).and_then(|c| forget::has_words(&c, tenant, subject));
        looked.unwrap_or_else(|error| {
            tracing::error!(%error, "it cannot be seen whether a person was here before");
            false
        })
    });
    let key = pepper.digest(PSEUDONYMS);
    Vault::open(&options.dir, options.root_key.clone(), ports, key, (began, has_words))
}

fn report_recovery(recovered: &Recovered) {
    let (segments, torn) = (recovered.segments.len(), recovered.torn_bytes);
    if segments > 0 || torn > 0 {
        tracing::info!(segments, torn_bytes = torn, "the spool of an earlier run is drained first");
    }
}

/// Spool, drainer and archive, running.
struct Core {
    ledger: Arc<SpoolLedger>,
    archive: Arc<SqliteArchive>,
    public: Arc<SqliteArchive>,
    forgetter: Arc<Forgetter>,
    stamps: Arc<Stamps>,
    database: PathBuf,
    patience: Duration,
    writer: JoinHandle<()>,
    drainer: JoinHandle<()>,
}

/// What the parts of a store share.
struct Shared {
    intake: Arc<Intake>,
    progress: Arc<Progress>,
    stamps: Arc<Stamps>,
    retention: Arc<Retention>,
    vault: Arc<Vault>,
}

impl Shared {
    fn writer(
        &self,
        options: &StoreOptions,
        (spools, segment_bytes): (Vec<PathBuf>, u64),
        identity: Identity,
        (next_index, next_n, last_ts_ms): (u64, u64, u64),
    ) -> Result<Writer, StoreError> {
        let spool = options.dir.join("spool");
        let mut seed = [0; 8];
        options.entropy.fill(&mut seed);
        let writer = Writer::open(WriterParts {
            dirs: spools,
            disk: Arc::clone(&options.disk),
            clock: Arc::clone(&options.clock),
            intake: Arc::clone(&self.intake),
            progress: Arc::clone(&self.progress),
            stamps: Arc::clone(&self.stamps),
            keys: self.vault.clone(),
            identity,
            seed: Seed(u64::from_be_bytes(seed)),
            segment_bytes,
            patience: options.soon,
            next_index,
            next_n,
            last_ts_ms,
        });
        writer.map_err(StoreError::file("prepare the spool in", &spool))
    }

    fn drainer(
        &self,
        options: &StoreOptions,
        identity: Identity,
        first_live_segment: u64,
        log: Log,
    ) -> Drainer {
        let parts = DrainerParts {
            database: options.dir.join("ledger.db"),
            quarantine: options.dir.join("quarantine"),
            intake: Arc::clone(&self.intake),
            progress: Arc::clone(&self.progress),
            stamps: Arc::clone(&self.stamps),
            retention: Arc::clone(&self.retention),
            identity,
            first_live_segment,
            linger: options.drain_linger,
            entries_max: options.drain_entries_max.max(1),
        };
        Drainer::new(parts, log)
    }

    fn archive(&self, options: &StoreOptions) -> SqliteArchive {
        SqliteArchive::new(
            options.dir.join("ledger.db"),
            Arc::clone(&self.intake),
            Arc::clone(&self.progress),
            Arc::clone(&self.vault),
            (options.readers, options.read_patience),
        )
    }

    fn forgetter(&self, options: &StoreOptions, ledger: &Arc<SpoolLedger>) -> Forgetter {
        Forgetter {
            vault: Arc::clone(&self.vault),
            ledger: Arc::clone(ledger),
            stamps: Arc::clone(&self.stamps),
            retention: Arc::clone(&self.retention),
            database: options.dir.join("ledger.db"),
            patience: options.read_patience,
            clock: Arc::clone(&options.clock),
            entropy: Arc::clone(&options.entropy),
            turn: Mutex::default(),
        }
    }
}

impl Core {
    fn start(
        options: &StoreOptions,
        spools: Vec<PathBuf>,
        identity: Identity,
        log: Log,
        recovered: Recovered,
        vault: Arc<Vault>,
    ) -> Result<Self, StoreError> {
        let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        let spool_bytes_max = options.spool_bytes_max.max(3 * segment_bytes);
        let taken = log.state.taken.get(&identity).copied().unwrap_or(0);
        let last_n = recovered.last_n.max(taken);
        let last_ts_ms = recovered.last_ts_ms.max(log.state.ts_ms);
        let shared = Shared {
            intake: Arc::new(Intake::new(options.queue_bytes)),
            progress: Arc::new(Progress::new(recovered.segments, spool_bytes_max)),
            stamps: Arc::new(Stamps::new(options.stamp.clone())),
            retention: Arc::default(),
            vault,
        };
        let first_live_segment = recovered.next_index;
        let begin = (first_live_segment, last_n + 1, last_ts_ms);
        let writer = shared.writer(options, (spools, segment_bytes), identity, begin)?;
        let drainer = shared.drainer(options, identity, first_live_segment, log);
        let archive = Arc::new(shared.archive(options));
        let public = Arc::new(shared.archive(options));
        let writer = spawn("spool-writer", move || writer.run())?;
        // A writer without a drainer must not go on for ever.
        let drainer =
            spawn("drainer", move || drainer.run()).inspect_err(|_| shared.intake.close())?;
        let ledger = Arc::new(SpoolLedger {
            intake: Arc::clone(&shared.intake),
            progress: Arc::clone(&shared.progress),
            vault: Arc::clone(&shared.vault),
            entropy: Arc::clone(&options.entropy),
        });
        let forgetter = Arc::new(shared.forgetter(options, &ledger));
        let (database, patience) = (options.dir.join("ledger.db"), options.read_patience);
        let stamps = shared.stamps;
        Ok(Self { writer, drainer, ledger, archive, public, forgetter, stamps, database, patience })
    }

    /// Says that numbering begins anew, and up to where the old one is known.
    fn declare_epoch(&self, identity: Identity, known: Identity, last_n: u64) {
        let public = Value::map([
            ("epoch", identity.epoch.into()),
            ("last_epoch", known.epoch.into()),
            ("last_n", last_n.into()),
        ]);
        let kind = Kind::Other("replica.epoch".to_owned());
        let draft = Draft { public, ..self.stamps.draft(kind) };
        self.ledger.append_soon(draft, Body::empty());
    }

    fn into_store(
        self,
        (ring, book, outbox): (Arc<BookRing>, Arc<KeyBook>, Outbox),
        desk: Arc<Desk>,
        identity: Identity,
        is_new: bool,
        (lock, fallback): (DirLock, Option<Fallback>),
    ) -> Result<Store, StoreError> {
        let keeper = Arc::new(Keeper::default());
        let dir = self.database.parent().map(Path::to_owned).unwrap_or_default();
        let notes = Arc::new(Notes {
            outbox: Mutex::new(outbox),
            ledger: Arc::clone(&self.ledger),
            stamps: Arc::clone(&self.stamps),
            database: self.database,
            patience: self.patience,
        });
        let (writer, drainer) = (Some(self.writer), Some(self.drainer));
        let running = Mutex::new(Running {
            writer,
            drainer,
            lock: Some(lock),
            fallback,
            ..Running::default()
        });
        let store = Store {
            ledger: self.ledger,
            archive: self.archive,
            public: self.public,
            stamps: self.stamps,
            ring,
            book,
            notes,
            forgetter: self.forgetter,
            keeper,
            desk,
            dir,
            identity,
            is_new,
            running,
        };
        let (keeper, ring) = (Arc::clone(&store.keeper), Arc::clone(&store.ring));
        let notes = Arc::clone(&store.notes);
        let forgetter = Arc::clone(&store.forgetter);
        let scrub = Scrub::new(notes.database.clone(), Arc::clone(&notes.ledger.progress));
        let thread = spawn("keeper", move || keeper.run(&ring, &notes, &forgetter, scrub))?;
        let desk = Arc::clone(&store.desk);
        let publisher = spawn("publisher", move || desk.run())?;
        let mut running = store.running.lock().unwrap_or_else(PoisonError::into_inner);
        (running.keeper, running.publisher) = (Some(thread), Some(publisher));
        drop(running);
        Ok(store)
    }
}

fn spawn(
    name: &'static str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|source| StoreError::Thread { name, source })
}

/// The way from notes to entries.
struct Notes {
    outbox: Mutex<Outbox>,
    ledger: Arc<SpoolLedger>,
    stamps: Arc<Stamps>,
    database: PathBuf,
    patience: Duration,
}

impl Notes {
    fn pump(&self) -> Result<usize, String> {
        let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        outbox.pump(self).map_err(|error| error.to_string())
    }
}

impl OutboxSink for Notes {
    fn has(&self, id: [u8; 16]) -> Result<bool, String> {
        let pushed = self.ledger.intake.hurry();
        self.ledger.progress.wait_drained(pushed, self.patience)?;
        has_change(&self.database, id).map_err(|error| error.to_string())
    }

    fn append(&self, kind: Kind, tenant: u64, public: Value) -> Result<(), String> {
        let draft = Draft { tenant, public, ..self.stamps.draft(kind) };
        let job = Job::new(draft).map_err(|error| error.to_string())?;
        let settled = self.ledger.intake.submit(job).wait();
        settled.map(|_| ()).map_err(|error| error.to_string())
    }
}

fn has_change(database: &Path, id: [u8; 16]) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM log_change WHERE id = ?1";
    let found = open_reader(database)?.query_row(sql, [id], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

/// Deletes what is due, replaces keys when it is time, and finishes what could not be finished. Says
/// whether there was something to delete, and so perhaps more.
fn look_after_forgetting(forgetter: &Forgetter) -> bool {
    let (resumed, purged) = (forgetter.resume(), forgetter.purge_due());
    let rotated = forgetter.rotate_if_due();
    let more = matches!(purged, Ok(purged) if purged > 0);
    for error in [resumed.err(), purged.err(), rotated.err()].into_iter().flatten() {
        tracing::warn!(%error, "something to be forgotten has to wait");
    }
    more
}

/// Looks after keys, notes, forgetting and the stored log once a second.
#[derive(Default)]
struct Keeper {
    stopped: Mutex<bool>,
    wake: Condvar,
}

impl Keeper {
    fn stop(&self) {
        *self.lock() = true;
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next tick; `false` when it is time to end.
    fn wait(&self) -> bool {
        let pause = self.wake.wait_timeout_while(self.lock(), KEEPER_TICK, |stopped| !*stopped);
        !*pause.unwrap_or_else(PoisonError::into_inner).0
    }

    fn run(&self, ring: &BookRing, notes: &Notes, forgetter: &Forgetter, mut scrub: Scrub) {
        let (mut ticks, mut more) = (0_u32, false);
        loop {
            if let Err(error) = notes.pump() {
                tracing::warn!(error, "changes of keys could not be entered into the ledger yet");
            }
            if !self.wait() {
                return;
            }
            if let Err(error) = scrub.step() {
                tracing::warn!(%error, "the stored log could not be read again");
            }
            ticks = ticks.wrapping_add(1);
            if more || ticks % FORGET_TICKS == 1 {
                more = look_after_forgetting(forgetter);
            }
            let kept = if ticks.is_multiple_of(USES_TICKS) { ring.write_uses() } else { Ok(()) };
            if let Err(error) = kept.and_then(|()| ring.refresh()) {
                tracing::warn!(%error, "the API keys could not be looked after");
            }
        }
    }
}
