//! Moves entries from the spool into the database, for ever.
//!
//! **Invariant:** entries come from the segment files and from nowhere else, so that a restart does
//! nothing a normal day does not do.
//!
//! **Invariant:** a number that turns out to be missing is stated durably before the entries behind
//! it become part of the log.

mod database;
mod journal;
mod mark;
mod reader;
mod restore;

pub use restore::AcceptedRestore;

pub(crate) use database::{
    Acceptance, DrainError, LogDatabase, LogSource, Supply, TakeEntry, Taken,
};
pub(crate) use journal::Journal;
pub(crate) use mark::Mark;

use crate::db::{Hole, LogState};
use crate::lock::DirLock;
use crate::options::Stamps;
use crate::replica::Identity;
use crate::snapshot::Snapshots;
use crate::spool::{Intake, Job, Kept, Position, Progress, SegmentState};
use conclave_engine::AppendError;
use conclave_failpoint as failpoint;
use conclave_ledger::{Draft, Gap, Kind, Leaf, Value};
use journal::Run;
use reader::{BatchLimit, SpoolReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A batch ends when it has grown to this.
const BATCH_BYTES: usize = 4 << 20;
/// How many unfinished deliveries are looked at together.
const DELIVERY_PAGE: u32 = 500;
/// The pauses after failures, the last one again and again.
const PAUSES_MS: [u64; 5] = [50, 200, 1_000, 3_000, 10_000];
/// How often it is looked whether other replicas have handed over what has to come first.
const OTHERS: Duration = Duration::from_millis(50);

/// What a drainer is made of.
pub(crate) struct DrainerParts {
    /// The data directory.
    pub(crate) dir: PathBuf,
    pub(crate) source: Box<dyn LogSource>,
    /// The log as others read it.
    pub(crate) snapshots: Arc<dyn Snapshots>,
    /// Segments the database has taken.
    pub(crate) kept: Arc<Kept>,
    /// An operator accepts a database that was put back.
    pub(crate) accept_restore: bool,
    pub(crate) quarantine: PathBuf,
    /// Where to note how far the database has come, if that cannot be asked at every start.
    pub(crate) mark: Option<PathBuf>,
    pub(crate) intake: Arc<Intake>,
    /// Nothing is handed over or put away in a directory of somebody else.
    pub(crate) lock: Arc<DirLock>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) identity: Identity,
    /// Segments before this one were left behind by an earlier run.
    pub(crate) first_live_segment: u64,
    pub(crate) linger: Duration,
    pub(crate) entries_max: usize,
}

/// Moves entries into the database.
pub(crate) struct Drainer {
    parts: DrainerParts,
    log: Option<Box<dyn LogDatabase>>,
    /// Whether the database was compared with what was seen of it.
    is_trusted: bool,
    /// Where this replica's entries stand.
    journal: Journal,
    /// What is being handed over again, if others have to go first.
    replay: Option<restore::Replay>,
    reader: SpoolReader,
    committed: Position,
    entries: u64,
    /// The last entry of this identity that the database has.
    last: Mark,
    failures: usize,
    recovered: bool,
    settled_deliveries: i64,
}

impl Drainer {
    /// Goes on from what is known of the database; `log` is absent if it cannot be reached now.
    pub(crate) fn new(
        parts: DrainerParts,
        log: Option<Box<dyn LogDatabase>>,
        last: Mark,
        journal: Journal,
    ) -> Self {
        let reader = SpoolReader::new(parts.quarantine.clone());
        parts.kept.hold(true);
        Self {
            parts,
            reader,
            committed: Position::default(),
            entries: last.size,
            last,
            log,
            is_trusted: false,
            journal,
            replay: None,
            failures: 0,
            recovered: false,
            settled_deliveries: -1,
        }
    }

    /// Drains until the writer has ended and nothing is left, or nothing more can be done.
    pub(crate) fn run(mut self) {
        let progress = Arc::clone(&self.parts.progress);
        let _end = EndOfDrainer(Arc::clone(&progress));
        loop {
            let full = self.parts.entries_max as u64;
            let work = progress.wait_for_work(self.parts.linger, full);
            if self.parts.lock.why_lost(&progress).is_some() {
                return;
            }
            if work.look_again || work.reopen {
                self.trust(false);
            }
            if work.reopen {
                self.log = None;
                self.reader.rewind(self.committed);
            }
            match self.step(&work.segments) {
                Ok(more) => {
                    self.note_success();
                    if work.stopping && !more {
                        return;
                    }
                }
                Err(DrainError::Overtaken(why)) => progress.set_overtaken(&why),
                Err(_) if work.stopping => return,
                Err(DrainError::Waiting(why)) => {
                    progress.fail_store(why);
                    progress.wait_after_failure(OTHERS);
                }
                Err(error) => self.note_failure(&error),
            }
        }
    }

    /// One batch; says whether there may be more.
    fn step(&mut self, segments: &[SegmentState]) -> Result<bool, DrainError> {
        self.ensure_open(segments)?;
        if self.recovered {
            return self.drain(segments);
        }
        let live = self.parts.first_live_segment;
        let left_behind = segments.partition_point(|segment| segment.name.index < live);
        if self.drain(&segments[..left_behind])? {
            return Ok(true);
        }
        self.finish_deliveries(segments)?;
        self.recovered = true;
        self.parts.progress.set_recovered();
        Ok(true)
    }

    /// Moves one batch; says whether it ended before the segments did.
    fn drain(&mut self, segments: &[SegmentState]) -> Result<bool, DrainError> {
        let limit = BatchLimit { entries: self.parts.entries_max, bytes: BATCH_BYTES };
        let outcome = self.drain_batch(segments, limit);
        if outcome.is_err() {
            // A commit that failed may still have happened: only the database knows.
            self.log = None;
            self.trust(false);
            self.reader.rewind(self.committed);
        }
        let Taken { read, inserted, size } = outcome?;
        self.entries = size;
        self.last.size = size;
        note(self.journal.confirm());
        self.parts.progress.set_log_size(size);
        self.committed = self.reader.position();
        self.put_away()?;
        self.parts.progress.drain(self.committed, inserted);
        Ok(read >= limit.entries || self.is_behind(segments))
    }

    /// Puts away the segments that are drained, after noting what was in them.
    fn put_away(&self) -> Result<(), DrainError> {
        let finished = self.parts.progress.finished(self.committed);
        if !finished.is_empty() {
            note(self.journal.sync());
        }
        if let (Some(path), false) = (&self.parts.mark, finished.is_empty()) {
            self.last.write(path)?;
        }
        if !finished.is_empty() {
            failpoint::reach("drain.before_remove");
        }
        finished.iter().for_each(|segment| self.parts.kept.keep(segment));
        Ok(())
    }

    fn is_behind(&self, segments: &[SegmentState]) -> bool {
        segments.last().is_some_and(|segment| {
            let end = Position { segment: segment.name.index, offset: segment.durable_end };
            self.committed < end
        })
    }

    fn drain_batch(
        &mut self,
        segments: &[SegmentState],
        limit: BatchLimit,
    ) -> Result<Taken, DrainError> {
        self.ensure_open(segments)?;
        let Some(log) = &mut self.log else {
            return Ok(Taken { read: 0, inserted: 0, size: self.entries });
        };
        failpoint::reach("drain.before_begin");
        let (parts, reader, last) = (&self.parts, &mut self.reader, self.last);
        let (journal, seen) = (&mut self.journal, self.entries);
        let mut feed = SpoolFeed { parts, reader, segments, limit, last, journal, seen, taken: 0 };
        let taken = log.append(&mut feed)?;
        self.last = feed.last;
        Ok(taken)
    }

    /// Notes whether the database has been compared with what was seen of it. As long as it has not, it may
    /// need what was handed over before.
    fn trust(&mut self, is_trusted: bool) {
        self.is_trusted = is_trusted;
        self.parts.kept.hold(!is_trusted);
    }

    /// Opens the database again after a failure, and sees to it that it is the one it was.
    fn ensure_open(&mut self, segments: &[SegmentState]) -> Result<(), DrainError> {
        if self.log.is_some() && self.is_trusted {
            return Ok(());
        }
        let mut log = match self.log.take() {
            Some(log) => log,
            None => {
                self.replay = None;
                self.parts.source.open()?
            }
        };
        let looked = self.look_back(&mut *log, segments);
        self.trust(looked.is_ok());
        self.entries = log.size();
        if matches!(looked, Ok(()) | Err(DrainError::Waiting(_))) {
            self.log = Some(log);
        }
        looked
    }

    /// Decisions of an earlier run whose delivery nobody recorded: whether the reply left is
    /// unknown.
    fn finish_deliveries(&mut self, segments: &[SegmentState]) -> Result<(), DrainError> {
        loop {
            self.ensure_open(segments)?;
            let Some(log) = &mut self.log else { return Ok(()) };
            let open = log.open_deliveries(self.settled_deliveries, DELIVERY_PAGE)?;
            let Some((last, _)) = open.last() else { return Ok(()) };
            let last = *last;
            let drafts = open.iter().filter_map(|(_, leaf)| self.parts.unknown_delivery(leaf));
            self.parts.append_all(drafts)?;
            self.settled_deliveries = last;
        }
    }

    fn note_success(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "the ledger's database works again");
            let public = Value::map([("failures", (self.failures as u64).into())]);
            self.parts.append_soon(Kind::StoreUp, public);
        }
        self.failures = 0;
    }

    fn note_failure(&mut self, error: &DrainError) {
        tracing::error!(%error, failures = self.failures, "the ledger's database takes no entries");
        self.parts.progress.fail_store(error.to_string());
        if self.failures == 0 {
            self.parts.append_soon(Kind::StoreDown, Value::empty_map());
        }
        let pause = PAUSES_MS.get(self.failures).or(PAUSES_MS.last()).copied().unwrap_or(1_000);
        self.failures += 1;
        self.parts.progress.wait_after_failure(Duration::from_millis(pause));
    }
}

/// The frames of one batch, from the spool.
struct SpoolFeed<'a> {
    parts: &'a DrainerParts,
    reader: &'a mut SpoolReader,
    segments: &'a [SegmentState],
    limit: BatchLimit,
    last: Mark,
    journal: &'a mut Journal,
    /// How many entries the log had when it was last seen.
    seen: u64,
    /// The largest number the database has of this replica.
    taken: u64,
}

impl Supply for SpoolFeed<'_> {
    fn meet(&mut self, log: &LogState, awaited: u64) -> Result<(), DrainError> {
        let size = log.range.size();
        self.taken = log.taken.get(&self.parts.identity).copied().unwrap_or(0);
        if size < self.seen {
            return Err(DrainError::WentBack { from: self.seen, to: size });
        }
        if size < awaited {
            return Err(DrainError::Waiting(format!(
                "restored_database: it has {size} of {awaited} entries; another replica hands over \
                 the rest again, or is lost for good: then go on with what is there, with \
                 `conclave ledger accept-restore`"
            )));
        }
        Ok(())
    }

    fn review(&mut self, first: u64, log: &LogState) -> Result<(), DrainError> {
        let n_last = log.taken.get(&self.parts.identity).copied().unwrap_or(0);
        if n_last > self.taken {
            let (end, root) = (log.range.size(), log.range.root());
            note(self.journal.begin(Run { first, end, n_first: self.taken + 1, n_last, root }));
        }
        Ok(())
    }

    fn hand_over(&mut self, take: &mut TakeEntry<'_>) -> Result<usize, DrainError> {
        let (last, own) = (&mut self.last, self.parts.identity);
        self.reader.read(self.segments, self.limit, |frame| {
            if (Identity { replica: frame.id.replica, epoch: frame.id.epoch }) == own {
                last.n = last.n.max(frame.id.n);
            }
            last.ts_ms = last.ts_ms.max(frame.ts_ms);
            take(frame.id, frame.leaf, frame.body)
        })
    }

    fn state_gap(&mut self, (identity, from, to): Hole) -> Result<(), DrainError> {
        Ok(self.parts.state_gap(identity, from, to)?)
    }
}

impl DrainerParts {
    /// States durably that entries are missing.
    fn state_gap(&self, identity: Identity, from: u64, to: u64) -> Result<(), AppendError> {
        let Identity { replica, epoch } = identity;
        tracing::error!(from, to, "entries of the spool are missing; stating the gap");
        let reason = "spool_damaged".to_owned();
        let mut draft = self.stamps.draft(Kind::CoverageGap);
        draft.public = Gap { replica, epoch, from, to, reason }.to_public();
        self.append_all(std::iter::once(draft))
    }

    /// The delivery entry for a decision that an earlier run of this replica left without one.
    fn unknown_delivery(&self, leaf: &[u8]) -> Option<Draft> {
        let decision = Leaf::decode(leaf)
            .inspect_err(|error| {
                tracing::error!(%error, "a decision without a delivery cannot be read");
            })
            .ok()?;
        if decision.id.replica != self.identity.replica {
            return None;
        }
        Some(Draft {
            kind: Kind::Delivery,
            parent: Some(decision.id),
            build: self.stamps.draft(Kind::Delivery).build,
            public: Value::map([("status", "unknown".into())]),
            ..decision.draft
        })
    }

    /// Appends entries and waits until all of them are durable.
    fn append_all(&self, drafts: impl Iterator<Item = Draft>) -> Result<(), AppendError> {
        let mut answers = Vec::new();
        for draft in drafts {
            let job = Job::new(draft);
            let job = job.map_err(|error| AppendError::Refused(error.to_string()))?;
            answers.push(self.intake.submit(job));
        }
        answers.into_iter().try_for_each(|answer| answer.wait().map(|_| ()))
    }

    fn append_soon(&self, kind: Kind, public: Value) {
        let draft = Draft { public, ..self.stamps.draft(kind) };
        match Job::new(draft) {
            Ok(job) => self.intake.append_soon(job),
            Err(error) => tracing::error!(%error, "an entry about the store could not be written"),
        }
    }
}

/// Where entries stand is worth knowing, and not worth stopping for: a full disk gets room by draining.
fn note(written: std::io::Result<()>) {
    if let Err(error) = written {
        tracing::warn!(%error, "it could not be noted where entries stand in the log");
    }
}

/// However the drainer ends, nobody may go on waiting for it.
struct EndOfDrainer(Arc<Progress>);

impl Drop for EndOfDrainer {
    fn drop(&mut self) {
        self.0.end_drainer();
    }
}
