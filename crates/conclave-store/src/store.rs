//! The store as a whole: opens everything in the right order and closes it again.
//!
//! **Invariant:** whoever holds a part of the store may go on holding it after the store was
//! closed: what is appended then is refused, what was appended before can still be read.

use crate::accounts::StoredAccounts;
use crate::archive::ReadSide;
use crate::backing::{Backing, MakeStored};
use crate::drain::{AcceptedRestore, Drainer, DrainerParts, Journal, LogDatabase, LogSource, Mark};
use crate::durable::make_dir;
use crate::error::StoreError;
use crate::forget::{Forgetter, Register, Retention, RetentionRules, WordTables};
use crate::keeper::{Keeper, Notes};
use crate::keys::{BookDesk, BookRing, KeyBook, OutboxSink};
use crate::ledger::SpoolLedger;
use crate::lock::DirLock;
use crate::options::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, Stamps, StoreOptions};
use crate::pages::PageCheck;
use crate::people::{PeopleBook, PersonRecord};
use crate::postgres::Heart;
use crate::proofs::Shown;
use crate::publish::{Desk, DeskParts, Handover, KeyFile};
use crate::records::RecordBook;
use crate::replica::Identity;
use crate::scrub::Scrub;
use crate::sentry::{Round, Sentry, SentryParts};
use crate::snapshot::{Snapshots, ask};
use crate::spool::{
    Fallback, HighWater, Intake, Kept, Progress, Recovered, Seed, SpoolStats, Writer, WriterParts,
    recover,
};
use crate::usage::{AddedUp, UsageSource};
use crate::vault::{RootKey, Vault};
use crate::watch::Watch;
use conclave_engine::{
    Archive, Clock, Entropy, KeyDesk, KeyRing, Ledger, Proofs, Records, Stamp, Subjects, UsageBook,
};
use conclave_ledger::{Body, Draft, Gap, Kind, Rotation, Value, VerifierKey};
use conclave_money::Accounts;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How many questions about proofs are answered at once.
const PROOFS_AT_ONCE: usize = 2;

/// How long closing waits for the database; what it does not take stays in the spool.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The ledger, the archive and the keys of one data directory.
pub struct Store {
    ledger: Arc<SpoolLedger>,
    archive: Arc<dyn ReadSide>,
    ring: Arc<BookRing>,
    book: Arc<KeyBook>,
    people: Arc<PeopleBook>,
    people_known: Option<Vec<PersonRecord>>,
    records: RecordBook,
    stamps: Arc<Stamps>,
    notes: Arc<Notes>,
    forgetter: Arc<Forgetter>,
    keeper: Arc<Keeper>,
    sentry: Arc<Sentry>,
    page_check: Arc<PageCheck>,
    desk: Arc<Desk>,
    accounts: Arc<StoredAccounts>,
    usage: Arc<UsageSource>,
    snapshots: Arc<dyn Snapshots>,
    dir: PathBuf,
    identity: Identity,
    is_new: bool,
    /// What the database has taken, for a while.
    kept: Arc<Kept>,
    /// Makes what reads the stored log again.
    stored: MakeStored,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    keeper: Option<JoinHandle<()>>,
    publisher: Option<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
    drainer: Option<JoinHandle<()>>,
    sentry: Option<JoinHandle<()>>,
    page_check: Option<JoinHandle<()>>,
    lock: Option<Arc<DirLock>>,
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
        let lock = Arc::new(DirLock::take(&options.dir)?);
        let (dir, spool) = (options.dir.as_path(), options.dir.join("spool"));
        make_dir(&spool)?;
        let backing = Backing::open(&options)?;
        let fallback = Fallback::take(dir, options.spool_fallback.as_deref(), backing.identity)?;
        let spools: Vec<_> =
            std::iter::once(spool).chain(fallback.as_ref().map(|it| it.dir.clone())).collect();
        let mut recovered = recover(&spools, &dir.join("quarantine"), backing.identity)?;
        report_recovery(&recovered);
        let memory = Memory::open(&options, &spools, backing.identity, &mut recovered)?;
        let is_reached = backing.log.is_some();
        let high_water = Arc::new(HighWater::open(dir, backing.identity)?);
        let hold = Hold { lock, high_water };
        let store = Self::start(&options, backing, (recovered, spools, memory), (hold, fallback))?;
        if !is_reached {
            tracing::warn!("who was erased meanwhile is seen when the database is back");
            return Ok(store);
        }
        // Nothing is served before what was to be forgotten is forgotten. Where a long spool has to be
        // drained first, the keys are gone already, and the rest follows.
        match store.forgetter.resume() {
            Ok(0) => {}
            Ok(again) => tracing::warn!(again, "people who had been erased were forgotten again"),
            Err(error @ (StoreError::Unsettled(_) | StoreError::Unreachable { .. })) => {
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

    /// The replicas that share the keys of people and still have the root key from before they were
    /// last replaced. Until each of them has been started once, or its `root.key` destroyed, a copy
    /// made before goes together with that. Blocks.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub fn replicas_behind(&self) -> Result<Vec<[u8; 8]>, StoreError> {
        self.forgetter.vault.book().tables().behind()
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
        let archive: Arc<dyn ReadSide> = Arc::clone(&self.archive);
        archive
    }

    /// Where money is held and settled.
    #[must_use]
    pub fn accounts(&self) -> Arc<dyn Accounts> {
        Arc::clone(&self.accounts) as _
    }

    /// Charges money that nobody settled in time, now instead of within seconds. Blocks.
    pub fn charge_expired(&self) {
        self.accounts.charge_expired();
    }

    /// What was used, added up.
    #[must_use]
    pub fn usage(&self) -> Arc<dyn UsageBook> {
        Arc::new(AddedUp {
            source: Arc::clone(&self.usage),
            intake: Arc::clone(&self.ledger.intake),
            progress: Arc::clone(&self.ledger.progress),
            patience: self.notes.patience,
        })
    }

    /// What is shown to those who do not trust us.
    #[must_use]
    pub fn proofs(&self) -> Arc<dyn Proofs> {
        Arc::new(Shown {
            snapshots: Arc::clone(&self.snapshots),
            desk: Arc::clone(&self.desk),
            dir: self.dir.clone(),
            intake: Arc::clone(&self.ledger.intake),
            progress: Arc::clone(&self.ledger.progress),
            patience: self.notes.patience,
            lane: Arc::new(Semaphore::new(PROOFS_AT_ONCE)),
        })
    }

    /// Signs a checkpoint now, instead of within a second, if the log grew. Blocks.
    ///
    /// # Errors
    /// When it must not or cannot be signed.
    pub fn publish(&self) -> Result<Option<String>, StoreError> {
        let published = self.desk.publish().map_err(StoreError::Key)?;
        Ok(published.map(|published| published.note))
    }

    /// Puts the line of a witness, which must have been checked, below the note it is about. Blocks.
    ///
    /// # Errors
    /// When it cannot be kept for the next start; it is shown all the same.
    pub fn cosign(&self, size: u64, note: &str, line: &str) -> Result<(), StoreError> {
        self.ledger.progress.note_witness(Some(size));
        self.desk.cosigned.add(size, note, line)
    }

    /// Counts that a witness did not cosign.
    pub fn note_witness_failure(&self) {
        self.ledger.progress.note_witness(None);
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
        let told = self.told_handovers()?;
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
        let told = self.told_handovers()?;
        KeyFile::load(&self.dir)?.end_overlap(&told)
    }

    fn told_handovers(&self) -> Result<Vec<Handover>, StoreError> {
        ask(&*self.snapshots, |log| log.handovers(u64::MAX >> 1))
    }

    /// Which keys open what.
    #[must_use]
    pub fn keys(&self) -> Arc<dyn KeyRing> {
        Arc::clone(&self.ring) as _
    }

    /// Names readers, and conversations of people without an id.
    #[must_use]
    pub fn pseudonym_key(&self) -> [u8; 32] {
        self.book.digest(crate::backing::PSEUDONYMS)
    }

    /// Where keys are made and withdrawn.
    #[must_use]
    pub fn key_book(&self) -> Arc<KeyBook> {
        Arc::clone(&self.book)
    }

    /// The same for a running house: what changes is known at once.
    #[must_use]
    pub fn key_desk(&self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Arc<dyn KeyDesk> {
        let (book, ring) = (Arc::clone(&self.book), Arc::clone(&self.ring));
        Arc::new(BookDesk { book, ring, clock, entropy })
    }

    /// Where people who may sign in are entered.
    #[must_use]
    pub fn people_book(&self) -> Arc<PeopleBook> {
        Arc::clone(&self.people)
    }

    /// Everyone who may sign in; as they were at the last contact, if the database is away.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        match (self.people.list(), &self.people_known) {
            (Err(StoreError::Unreachable { .. }), Some(known)) => Ok(known.clone()),
            (listed, _) => listed,
        }
    }

    /// The governed records.
    #[must_use]
    pub fn records(&self) -> Arc<dyn Records> {
        Arc::new(self.records.clone())
    }

    /// Seals a copy of what the database holds, to be kept beside it; it opens without the database.
    #[must_use]
    pub fn seal_copy(&self, name: &str, text: &[u8]) -> Vec<u8> {
        self.records.seal_copy(name, text)
    }

    /// Such a copy again; `None` where it is not what was sealed.
    #[must_use]
    pub fn open_copy(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.records.open_copy(name, sealed)
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
        self.ring.refresh()?;
        self.notes.pump().map_err(StoreError::Key)
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
        let mut scrub = Scrub::new((self.stored)(), Arc::clone(&self.ledger.progress));
        scrub.walk_now(whole)
    }

    /// What was accepted of a database that was put back, since this store was opened.
    #[must_use]
    pub fn accepted_restore(&self) -> Option<AcceptedRestore> {
        self.ledger.progress.accepted()
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
        self.accounts.stop();
        join("keeper", running.keeper.take());
        self.sentry.stop();
        self.page_check.stop();
        join("sentry", running.sentry.take());
        join("page check", running.page_check.take());
        self.desk.stop();
        join("publisher", running.publisher.take());
        let is_drained = running.writer.is_none() || self.settle(SHUTDOWN_PATIENCE).is_ok();
        if !is_drained {
            tracing::warn!("not everything could be drained; the rest stays in the spool");
        }
        self.ledger.intake.close();
        join("spool writer", running.writer.take());
        self.archive.close_idle();
        join("drainer", running.drainer.take());
        drop(running.fallback.take());
        let Some(lock) = running.lock.take() else { return };
        // A directory that is somebody else's is left alone.
        if self.ledger.progress.overtaken().is_none() {
            self.note_the_last(is_drained);
        }
        lock.release();
    }

    /// Writes down what is known at the end, while the directory is still held.
    fn note_the_last(&self, is_drained: bool) {
        // What came in since the last tick gets its checkpoint now, so that its receipts exist.
        if self.desk.publish().is_err() {
            tracing::warn!("the last entries have no checkpoint yet");
        }
        self.snapshots.close_idle();
        if let Err(error) = self.ring.write_uses() {
            tracing::warn!(%error, "the last uses of keys could not be written");
        }
        // Who still has entries to hand over is waited for by who deletes keys.
        if is_drained {
            self.keeper.lease(&self.ledger.progress, Heart::stop);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn join(name: &str, thread: Option<JoinHandle<()>>) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!(name, "a thread of the store ended badly");
    }
}

fn report_recovery(recovered: &Recovered) {
    let (segments, torn) = (recovered.segments.len(), recovered.torn_bytes);
    if segments > 0 || torn > 0 {
        tracing::info!(segments, torn_bytes = torn, "the spool of an earlier run is drained first");
    }
}

impl Store {
    fn start(
        options: &StoreOptions,
        backing: Backing,
        (recovered, spools, memory): (Recovered, Vec<PathBuf>, Memory),
        (hold, fallback): (Hold, Option<Fallback>),
    ) -> Result<Self, StoreError> {
        let Backing { identity, source, log, mark, mark_path, archive, .. } = backing;
        let reading = (options.readers, options.read_patience);
        let is_new = backing.begins && recovered.segments.is_empty() && recovered.last_n == 0;
        let forgetting = (backing.vault, backing.words, backing.retention);
        let (kept, snapshots) = (Arc::clone(&memory.kept), Arc::clone(&backing.snapshots));
        let log = LogEnd { source, log, mark, mark_path, snapshots, memory };
        let core = Core::start(options, &hold, identity, (recovered, spools), log, forgetting)?;
        let Core { ledger, stamps, .. } = &core;
        let desk = Arc::new(Desk::new(DeskParts {
            dir: options.dir.clone(),
            snapshots: Arc::clone(&backing.snapshots),
            clock: Arc::clone(&options.clock),
            anchor: options.anchor.clone(),
            lock: Arc::clone(&hold.lock),
            progress: Arc::clone(&ledger.progress),
        }));
        if let Some((known, last_n)) = backing.earlier {
            core.declare_epoch(identity, known, last_n);
        }
        let (intake, progress) = (Arc::clone(&ledger.intake), Arc::clone(&ledger.progress));
        let archive = archive(intake, progress, Arc::clone(&ledger.vault), reading);
        let notes = Arc::new(Notes {
            outbox: Mutex::new(backing.outbox),
            ledger: Arc::clone(ledger),
            stamps: Arc::clone(stamps),
            changes: backing.changes,
            patience: reading.1,
        });
        let entropy = Arc::clone(&options.entropy);
        let records = RecordBook::over(backing.records, Arc::clone(&ledger.vault), entropy);
        let running = Running {
            writer: Some(core.writer),
            drainer: Some(core.drainer),
            lock: Some(Arc::clone(&hold.lock)),
            fallback,
            ..Running::default()
        };
        let store = Self {
            ledger: core.ledger,
            usage: Arc::new(backing.usage),
            accounts: Arc::new(StoredAccounts::start(
                backing.accounts,
                Arc::clone(&options.clock),
            )?),
            desk,
            snapshots: backing.snapshots,
            dir: options.dir.clone(),
            archive,
            ring: Arc::new(backing.ring),
            book: Arc::new(backing.book),
            people: Arc::new(backing.people),
            people_known: backing.people_known,
            records,
            stamps: core.stamps,
            notes,
            forgetter: core.forgetter,
            keeper: Arc::new(Keeper::new(backing.heart)),
            sentry: Arc::new(Sentry::new()),
            page_check: Arc::new(PageCheck::new()),
            identity,
            is_new,
            kept,
            stored: backing.stored,
            running: Mutex::new(running),
        };
        store.look_after(hold)?;
        Ok(store)
    }

    /// Starts the threads that look after keys, notes, forgetting, checkpoints and files.
    fn look_after(&self, hold: Hold) -> Result<(), StoreError> {
        let (keeper, ring) = (Arc::clone(&self.keeper), Arc::clone(&self.ring));
        let (notes, forgetter) = (Arc::clone(&self.notes), Arc::clone(&self.forgetter));
        let scrub = Scrub::new((self.stored)(), Arc::clone(&self.ledger.progress));
        let (kept, lock) = (Arc::clone(&self.kept), Arc::clone(&hold.lock));
        let run = move || keeper.run(&lock, (&ring, &kept), &notes, &forgetter, scrub);
        let thread = spawn("keeper", run)?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.keeper = Some(thread);
        let desk = Arc::clone(&self.desk);
        running.publisher = Some(spawn("publisher", move || desk.run())?);
        let round = Round::begin(SentryParts {
            lock: hold.lock,
            high_water: hold.high_water,
            progress: Arc::clone(&self.ledger.progress),
            archive: Arc::clone(&self.archive),
            dir: self.dir.clone(),
        })?;
        let sentry = Arc::clone(&self.sentry);
        running.sentry = Some(spawn("sentry", move || sentry.run(round))?);
        let (dir, progress) = (self.dir.clone(), Arc::clone(&self.ledger.progress));
        let page_check = Arc::clone(&self.page_check);
        running.page_check = Some(spawn("page-check", move || page_check.run(&dir, &progress))?);
        Ok(())
    }
}

/// The log behind the spool: where it is, it itself, and how far it is known to have come.
struct LogEnd {
    source: Box<dyn LogSource>,
    log: Option<Box<dyn LogDatabase>>,
    mark: Mark,
    mark_path: Option<PathBuf>,
    snapshots: Arc<dyn Snapshots>,
    memory: Memory,
}

/// What proves that the directory is ours, and how far it went.
#[derive(Clone)]
struct Hold {
    lock: Arc<DirLock>,
    high_water: Arc<HighWater>,
}

/// What is known here of the log, apart from the database.
struct Memory {
    kept: Arc<Kept>,
    journal: Journal,
}

impl Memory {
    /// Opens it; numbers and segments that it knows are not given again.
    fn open(
        options: &StoreOptions,
        spools: &[PathBuf],
        identity: Identity,
        recovered: &mut Recovered,
    ) -> Result<Self, StoreError> {
        let kept = Arc::new(Kept::new(spools, options.kept, Arc::clone(&options.clock)));
        let path = options.dir.join("positions");
        let journal = Journal::open(&path, identity).map_err(StoreError::file("open", &path))?;
        let (index, n) = kept.last(identity)?;
        recovered.next_index = recovered.next_index.max(index.saturating_add(1));
        recovered.last_n = recovered.last_n.max(n).max(journal.last_n());
        Ok(Self { kept, journal })
    }
}

/// What forgetting works with.
type Forgetting = (Arc<Vault>, Arc<dyn WordTables>, Arc<Retention>);

/// Spool and drainer, running.
struct Core {
    ledger: Arc<SpoolLedger>,
    forgetter: Arc<Forgetter>,
    stamps: Arc<Stamps>,
    writer: JoinHandle<()>,
    drainer: JoinHandle<()>,
}

/// What the parts of a store share.
struct Shared {
    intake: Arc<Intake>,
    progress: Arc<Progress>,
    stamps: Arc<Stamps>,
    vault: Arc<Vault>,
    kept: Arc<Kept>,
    hold: Hold,
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
            kept: Arc::clone(&self.kept),
            high_water: Arc::clone(&self.hold.high_water),
            lock: Arc::clone(&self.hold.lock),
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
        LogEnd { source, log, mark, mark_path, snapshots, memory }: LogEnd,
    ) -> Drainer {
        let Memory { kept, journal } = memory;
        let parts = DrainerParts {
            dir: options.dir.clone(),
            source,
            snapshots,
            kept,
            accept_restore: options.accept_restore,
            quarantine: options.dir.join("quarantine"),
            mark: mark_path,
            intake: Arc::clone(&self.intake),
            lock: Arc::clone(&self.hold.lock),
            progress: Arc::clone(&self.progress),
            stamps: Arc::clone(&self.stamps),
            identity,
            first_live_segment,
            linger: options.drain_linger,
            entries_max: options.drain_entries_max.max(1),
        };
        Drainer::new(parts, log, mark, journal)
    }
}

impl Core {
    fn start(
        options: &StoreOptions,
        hold: &Hold,
        identity: Identity,
        (recovered, spools): (Recovered, Vec<PathBuf>),
        log: LogEnd,
        (vault, words, retention): Forgetting,
    ) -> Result<Self, StoreError> {
        let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        let spool_bytes_max = options.spool_bytes_max.max(3 * segment_bytes);
        let mark = log.mark;
        let found = recovered.last_n.max(mark.n);
        let noted = hold.high_water.number();
        let noted = noted.map_err(StoreError::file("read", &options.dir.join("acknowledged")))?;
        // Whatever is noted was given and must not be given again.
        let last_n = found.max(noted);
        let last_ts_ms = recovered.last_ts_ms.max(mark.ts_ms);
        let shared = Shared {
            intake: Arc::new(Intake::new(options.queue_bytes)),
            progress: Arc::new(Progress::new(recovered.segments, spool_bytes_max)),
            stamps: Arc::new(Stamps::new(options.stamp.clone())),
            vault,
            kept: Arc::clone(&log.memory.kept),
            hold: hold.clone(),
        };
        let first_live_segment = recovered.next_index;
        let begin = (first_live_segment, last_n + 1, last_ts_ms);
        let writer = shared.writer(options, (spools, segment_bytes), identity, begin)?;
        let drainer = shared.drainer(options, identity, first_live_segment, log);
        let writer = spawn("spool-writer", move || writer.run())?;
        // A writer without a drainer must not go on for ever.
        let drainer =
            spawn("drainer", move || drainer.run()).inspect_err(|_| shared.intake.close())?;
        let ledger = Arc::new(SpoolLedger {
            intake: shared.intake,
            progress: shared.progress,
            vault: Arc::clone(&shared.vault),
            entropy: Arc::clone(&options.entropy),
        });
        let time = (Arc::clone(&options.clock), Arc::clone(&options.steady));
        let forgetter = Arc::new(Forgetter {
            vault: shared.vault,
            ledger: Arc::clone(&ledger),
            stamps: Arc::clone(&shared.stamps),
            retention,
            words,
            patience: options.read_patience,
            clock: Arc::clone(&options.clock),
            watch: Watch::open(&options.dir, time, last_ts_ms),
            entropy: Arc::clone(&options.entropy),
            turn: Mutex::default(),
            idle: Mutex::default(),
        });
        forgetter.look_at_clock(&shared.kept);
        let core = Self { writer, drainer, ledger, forgetter, stamps: shared.stamps };
        if noted > found {
            core.declare_missing(identity, found + 1, noted);
        }
        Ok(core)
    }

    /// Says that entries were acknowledged and are nowhere: somebody cut the spool off, or lost a file of it.
    fn declare_missing(&self, Identity { replica, epoch }: Identity, from: u64, to: u64) {
        tracing::error!(from, to, "entries were acknowledged and are missing; stating the gap");
        let gap = Gap { replica, epoch, from, to, reason: "spool_cut".to_owned() };
        let draft = Draft { public: gap.to_public(), ..self.stamps.draft(Kind::CoverageGap) };
        self.ledger.append_soon(draft, Body::empty());
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
}

fn spawn(
    name: &'static str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|source| StoreError::Thread { name, source })
}
