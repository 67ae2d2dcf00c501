//! The one thread that writes to the spool.
//!
//! **Invariant:** numbers are given in the order of the queue and never twice. Numbers of entries
//! that could not be written stay used, and the next entry that can be written says which they are.
//!
//! **Invariant:** between the sync and the acknowledgement it is looked whether the data directory is
//! still ours. Whoever took it over read the spool after that, or not at all.

use super::disk::{Disk, SegmentSink, uninterrupted, write_all};
use super::frame::{OVERHEAD_BYTES, Seed, write_frame};
use super::high_water::HighWater;
use super::intake::{Ack, Intake, Job, Sealing, Settled};
use super::kept::Kept;
use super::progress::{Position, Progress};
use super::segment::SegmentName;
use crate::lock::{DirLock, LockTrouble};
use crate::options::Stamps;
use crate::replica::Identity;
use crate::vault::KeyId;
use conclave_engine::{AppendError, Appended, Clock};
use conclave_failpoint as failpoint;
use conclave_ledger::{Draft, EntryId, Gap, Kind, Leaf, Value, leaf_hash};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A batch is written out when it has grown to this.
const BATCH_BYTES: usize = 4 << 20;
/// A buffer that grew larger than this is not kept.
const BUFFER_BYTES_KEPT: usize = 1 << 20;
/// How often a writer in trouble looks whether it has passed.
const RETRY: Duration = Duration::from_secs(1);
/// How long the other directory is preferred after one has failed.
const AVOID: Duration = Duration::from_secs(60);

/// What a writer is made of.
pub(crate) struct WriterParts {
    /// What may go when the disk is full.
    pub(crate) kept: Arc<Kept>,
    /// Remembers how far entries were acknowledged.
    pub(crate) high_water: Arc<HighWater>,
    /// Proves that nobody else writes here.
    pub(crate) lock: Arc<DirLock>,
    /// Where segments are made: the spool's own directory, then the one for bad days.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) keys: Arc<dyn LivingKeys>,
    pub(crate) identity: Identity,
    pub(crate) seed: Seed,
    pub(crate) segment_bytes: u64,
    pub(crate) patience: Duration,
    pub(crate) next_index: u64,
    pub(crate) next_n: u64,
    pub(crate) last_ts_ms: u64,
}

struct Segment {
    name: SegmentName,
    sink: Box<dyn SegmentSink>,
    end: u64,
    /// Which of the directories it stands in.
    place: usize,
}

/// One entry of the batch that is being written.
struct Written {
    ack: Option<Ack>,
    appended: Appended,
}

/// Writes entries into segments.
pub(crate) struct Writer {
    parts: WriterParts,
    current: Option<Segment>,
    spare: Option<Segment>,
    buffer: Vec<u8>,
    batch: Vec<Written>,
    permits: usize,
    settled: u64,
    lost: Option<(u64, u64)>,
    gap_stated: bool,
    no_room: bool,
    /// Where everything that is durable ends.
    durable: Position,
    /// Whether something failed behind that place: the next segment then says that it is void.
    is_void_behind: bool,
    /// The directory that failed last, and when.
    failed_place: Option<(usize, Instant)>,
}

/// Knows which keys were deleted: nothing is sealed with one of those.
pub(crate) trait LivingKeys: Send + Sync {
    /// Whether a key was not deleted.
    fn is_alive(&self, id: KeyId) -> bool;
}

/// Syncs begin no sooner after one another than this, unless many entries wait: where many clients ask at
/// once, a few share one, and the rest of the machine has more time for them. Who asks alone never waits.
const BREATH: Duration = Duration::from_millis(1);

/// What the flag of a clock that went back adds to a leaf at most.
const CLOCK_FLAG_BYTES: usize = 32;

impl Writer {
    /// Prepares the first segment, so that a full or read-only disk shows before anything is
    /// accepted.
    ///
    /// # Errors
    /// When the segment cannot be made.
    pub(crate) fn open(parts: WriterParts) -> io::Result<Self> {
        let before = Position { segment: parts.next_index.saturating_sub(1), offset: u64::MAX };
        let mut writer = Self {
            durable: before,
            is_void_behind: false,
            failed_place: None,
            parts,
            current: None,
            spare: None,
            buffer: Vec::new(),
            batch: Vec::new(),
            permits: 0,
            settled: 0,
            lost: None,
            gap_stated: false,
            no_room: false,
        };
        writer.advance()?;
        writer.look_ahead();
        Ok(writer)
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let intake = Arc::clone(&self.parts.intake);
        let _end = EndOfWriter(Arc::clone(&intake), Arc::clone(&self.parts.progress));
        let (mut jobs, mut not_before) = (Vec::new(), Instant::now());
        loop {
            let tick = self.in_trouble().then_some(RETRY);
            if !intake.take(&mut jobs, not_before, self.parts.patience, tick) {
                break;
            }
            not_before = Instant::now() + BREATH;
            if jobs.is_empty() && self.lost.is_some() {
                self.state_gap();
            }
            jobs.drain(..).for_each(|job| self.add(job));
            self.commit();
            self.look_ahead();
        }
        if self.lost.is_some() {
            // A last try: whoever opens the directory next does not know these numbers.
            self.state_gap();
            self.commit();
        }
        self.put_away();
        if let Err(error) = self.parts.high_water.sync() {
            tracing::warn!(%error, "how far entries were acknowledged could not be noted");
        }
    }

    const fn in_trouble(&self) -> bool {
        self.lost.is_some() || self.no_room
    }

    fn add(&mut self, mut job: Job) {
        let (ack, permits) = (job.ack.take(), job.permits as usize);
        match self.place(job) {
            Ok(appended) => self.batch.push(Written { ack, appended }),
            Err(refused) => answer(ack, Err(refused)),
        }
        // Counted only now: an earlier part of the batch may have been written out on the way.
        self.permits += permits;
        self.settled += 1;
        if self.buffer.len() >= BATCH_BYTES {
            self.commit();
        }
    }

    /// Gives an entry its number, time and bytes, unless no segment could hold it or the key of its
    /// words was deleted.
    fn place(&mut self, job: Job) -> Result<Appended, AppendError> {
        let bytes_max = job.leaf_bytes_max + job.words_bytes() + OVERHEAD_BYTES + CLOCK_FLAG_BYTES;
        if bytes_max as u64 > self.parts.segment_bytes {
            let message = "the entry is larger than a spool segment".to_owned();
            return Err(AppendError::Refused(message));
        }
        // At most: behind other entries, behind the statement of a gap, alone. What stands before it is
        // written out first where both would not fit; only then it gets its number, because that is
        // another one if the writing fails and a gap is to be stated.
        for _ in 0..2 {
            self.state_gap_once();
            if self.buffer.is_empty() || self.fits_segment(bytes_max) {
                break;
            }
            self.commit();
        }
        self.state_gap_once();
        self.encode(job)
    }

    fn state_gap_once(&mut self) {
        if self.lost.is_some() && !self.gap_stated {
            self.state_gap();
        }
    }

    /// Whether everything encoded so far, and so many bytes more, fit into the current segment.
    fn fits_segment(&self, more: usize) -> bool {
        let end = self.current.as_ref().map_or(0, |segment| segment.end);
        end + (self.buffer.len() + more) as u64 <= self.parts.segment_bytes
    }

    /// Appends the frame of an entry to the buffer and gives it its number and time.
    fn encode(&mut self, job: Job) -> Result<Appended, AppendError> {
        let parts = &mut self.parts;
        let Identity { replica, epoch } = parts.identity;
        let id = EntryId { replica, epoch, n: parts.next_n };
        let Job { mut draft, sealing, .. } = job;
        let (commitments, body) = match sealing {
            None => (Vec::new(), Vec::new()),
            Some(Sealing { words, key }) => {
                // The last moment: a key that was deleted since seals nothing any more.
                if !parts.keys.is_alive(key.id()) {
                    let message = "the person's words were erased meanwhile".to_owned();
                    return Err(AppendError::Refused(message));
                }
                let sealed = words.seal(&key, id, draft.tenant);
                sealed.map_err(|error| AppendError::Refused(error.to_string()))?
            }
        };
        parts.next_n += 1;
        let now_ms = parts.clock.now_ms();
        if now_ms < parts.last_ts_ms {
            parts.progress.note_clock_behind();
            flag_clock(&mut draft, now_ms);
        }
        parts.last_ts_ms = parts.last_ts_ms.max(now_ms);
        let ts_ms = parts.last_ts_ms;
        let write = |out: &mut Vec<u8>| Leaf::write(out, id, ts_ms, &draft, &commitments);
        let leaf = write_frame(&mut self.buffer, parts.seed, (id, ts_ms), write, &body);
        Ok(Appended { id, leaf_hash: leaf_hash(&self.buffer[leaf]) })
    }

    /// States which entries are missing, as the first entry after them.
    fn state_gap(&mut self) {
        let Some((from, to)) = self.lost else { return };
        let Identity { replica, epoch } = self.parts.identity;
        let gap = Gap { replica, epoch, from, to, reason: "spool_failed".to_owned() };
        let mut draft = self.parts.stamps.draft(Kind::CoverageGap);
        draft.public = gap.to_public();
        let encoded = Job::new(draft).ok().and_then(|job| self.encode(job).ok());
        if let Some(appended) = encoded {
            self.batch.push(Written { ack: None, appended });
            self.gap_stated = true;
        }
    }

    /// Makes the batch durable and answers everybody who waits for it.
    fn commit(&mut self) {
        if !self.buffer.is_empty() {
            match self.write_out() {
                Ok(end) => self.succeed(end),
                Err(Failure::Overtaken(why)) => self.refuse_all(&why),
                Err(failure) => self.fail(&failure.into_error()),
            }
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.parts.intake.release(std::mem::take(&mut self.permits));
        self.parts.progress.settle(std::mem::take(&mut self.settled));
    }

    fn succeed(&mut self, end: u64) {
        let (entries, bytes) = (self.batch.len() as u64, self.buffer.len() as u64);
        self.parts.progress.commit(end, entries, bytes);
        if let Some(segment) = &self.current {
            self.durable = Position { segment: segment.name.index, offset: end };
        }
        self.is_void_behind = false;
        if let Some(last) = self.batch.last() {
            self.parts.high_water.note(last.appended.id.n);
        }
        if std::mem::take(&mut self.gap_stated) {
            self.lost = None;
            self.parts.progress.state_gap();
        }
        for written in self.batch.drain(..) {
            answer(written.ack, Ok(written.appended));
        }
    }

    fn fail(&mut self, error: &io::Error) {
        let message = format!("the spool cannot be written: {error}");
        tracing::error!(entries = self.batch.len(), %error, "entries could not be made durable");
        self.parts.progress.fail_write(message.clone(), self.batch.len() as u64);
        self.gap_stated = false;
        if let (Some(first), Some(last)) = (self.batch.first(), self.batch.last()) {
            let from = self.lost.map_or(first.appended.id.n, |(from, _)| from);
            self.lost = Some((from, last.appended.id.n));
        }
        for written in self.batch.drain(..) {
            answer(written.ack, Err(AppendError::Unwritable(message.clone())));
        }
    }

    /// Answers that nothing is taken here any more. What was written may be found by whoever has the
    /// directory now; nobody was told that it is there.
    fn refuse_all(&mut self, why: &str) {
        self.gap_stated = false;
        for written in self.batch.drain(..) {
            answer(written.ack, Err(AppendError::Refused(why.to_owned())));
        }
    }

    /// One write, one sync. If either fails, once more into a new segment, in the other directory if
    /// there is one; returns where the data ends.
    fn write_out(&mut self) -> Result<u64, Failure> {
        match self.write_once() {
            Err(Failure::Poisoned(error)) => {
                tracing::error!(%error, "a spool segment failed; writing to a new one");
                self.write_once()
            }
            done => done,
        }
    }

    /// Sees to it that the directory is still ours.
    fn check_lock(&self) -> Result<(), Failure> {
        if let Some(why) = self.parts.progress.overtaken() {
            return Err(Failure::Overtaken(why));
        }
        match self.parts.lock.check() {
            Ok(()) => Ok(()),
            Err(LockTrouble::Lost(why)) => {
                self.parts.progress.set_overtaken(&why);
                Err(Failure::Overtaken(why))
            }
            Err(trouble @ LockTrouble::Unclear(_)) => {
                Err(Failure::Poisoned(io::Error::other(trouble)))
            }
        }
    }

    fn write_once(&mut self) -> Result<u64, Failure> {
        // What was written last and refused may be read by whoever has the directory now; it stays.
        if let Some(why) = self.parts.progress.overtaken() {
            return Err(Failure::Overtaken(why));
        }
        let length = self.buffer.len() as u64;
        let fits = |segment: &Segment| segment.end + length <= self.parts.segment_bytes;
        if !self.current.as_ref().is_some_and(fits) {
            self.check_lock()?;
            self.advance().map_err(Failure::NoSegment)?;
        }
        let Some(segment) = &mut self.current else {
            return Err(Failure::NoSegment(io::ErrorKind::NotFound.into()));
        };
        let sink = &mut *segment.sink;
        failpoint::reach("spool.before_write");
        let written = write_all(sink, &self.buffer, segment.end);
        failpoint::reach("spool.before_sync");
        let synced = written.and_then(|()| uninterrupted(|| sink.sync()));
        // Looked at last, and first of all believed: in a directory of somebody else nothing is tried again.
        let outcome = self.check_lock().and_then(|()| synced.map_err(Failure::Poisoned));
        if matches!(outcome, Err(Failure::Poisoned(_))) {
            if let Some(segment) = self.current.as_ref().filter(|it| !it.name.path.exists()) {
                self.parts.progress.note_lost_segment(&segment.name.path);
            }
            self.give_up();
        }
        outcome?;
        failpoint::reach("spool.synced");
        let Some(segment) = &mut self.current else {
            return Err(Failure::NoSegment(io::ErrorKind::NotFound.into()));
        };
        segment.end += length;
        Ok(segment.end)
    }

    /// Uses the current segment no more, nor the spare beside it. The drainer reads no further than
    /// what was durable before, and the next segment says so to whoever comes after a crash.
    fn give_up(&mut self) {
        self.parts.progress.fail_segment();
        self.is_void_behind = true;
        self.failed_place = self.current.as_ref().map(|segment| (segment.place, Instant::now()));
        self.discard_spare();
        self.seal();
    }

    /// Goes on to the next segment.
    fn advance(&mut self) -> io::Result<()> {
        let segment = match self.spare.take() {
            Some(spare) => spare,
            None => self.create()?,
        };
        self.seal();
        self.parts.progress.set_on_fallback(segment.place > 0);
        self.parts.progress.begin_segment(segment.name.clone());
        self.current = Some(segment);
        Ok(())
    }

    /// Writes no more into the current segment. One in which nothing is durable is only in the way.
    fn seal(&mut self) {
        let Some(segment) = self.current.take() else { return };
        if segment.end > 0 {
            self.parts.progress.seal_segment(segment.name.index);
        } else {
            self.parts.progress.forget_segment(segment.name.index);
            let _ = self.parts.disk.remove(&segment.name.path);
        }
    }

    /// Makes a segment in the first directory that takes one.
    fn create(&mut self) -> io::Result<Segment> {
        if !self.parts.progress.has_room_for(self.parts.segment_bytes) {
            return Err(io::Error::other("it has grown to `spool_bytes_max`"));
        }
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        let mut is_full = false;
        for place in self.places() {
            let void_from = self.is_void_behind.then_some(self.durable);
            let parts = &mut self.parts;
            let dir = &parts.dirs[place];
            let name = SegmentName::new(dir, parts.next_index, parts.seed, void_from);
            parts.next_index += 1;
            match parts.disk.create(&name.path, parts.segment_bytes) {
                Ok(sink) => return Ok(Segment { name, sink, end: 0, place }),
                Err(error) => {
                    self.failed_place = Some((place, Instant::now()));
                    is_full |= error.kind() == io::ErrorKind::StorageFull;
                    failure = error;
                }
            }
        }
        // What the database has taken is kept only as long as nobody needs the room.
        if is_full && self.parts.kept.give_way() {
            return self.create();
        }
        Err(failure)
    }

    /// The directories in the order in which they are tried: one that failed a moment ago is last.
    fn places(&self) -> Vec<usize> {
        let failed = self.failed_place.filter(|(_, when)| when.elapsed() < AVOID);
        let mut places: Vec<_> = (0..self.parts.dirs.len()).collect();
        places.sort_by_key(|place| failed.is_some_and(|(failed, _)| failed == *place));
        places
    }

    /// Prepares the next segment before it is needed, so that a full disk shows while there is a
    /// whole segment of room for what was begun.
    fn look_ahead(&mut self) {
        if self.spare.is_some() || self.parts.progress.overtaken().is_some() {
            return;
        }
        let made = self.create();
        self.no_room = made.is_err();
        let trouble = made.as_ref().err().map(|error| format!("no room for the spool: {error}"));
        self.parts.progress.set_room(trouble);
        self.spare = made.ok();
    }

    fn put_away(&mut self) {
        self.seal();
        self.discard_spare();
    }

    /// A spare segment holds nothing and need not stay.
    fn discard_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            let _ = self.parts.disk.remove(&spare.name.path);
        }
    }
}

/// Says what the clock said, where that is not the time the entry carries.
fn flag_clock(draft: &mut Draft, now_ms: u64) {
    if !matches!(draft.public, Value::Map(_)) {
        draft.public = Value::empty_map();
    }
    if let Value::Map(public) = &mut draft.public {
        public.insert("clock_ms", now_ms);
    }
}

enum Failure {
    NoSegment(io::Error),
    Poisoned(io::Error),
    /// The directory is not ours any more.
    Overtaken(String),
}

impl Failure {
    fn into_error(self) -> io::Error {
        match self {
            Self::NoSegment(error) | Self::Poisoned(error) => error,
            Self::Overtaken(why) => io::Error::other(why),
        }
    }
}

fn answer(ack: Option<Ack>, settled: Settled) {
    if let Some(ack) = ack {
        ack.send(settled);
    }
}

/// However the writer ends, nobody may go on waiting for it.
struct EndOfWriter(Arc<Intake>, Arc<Progress>);

impl Drop for EndOfWriter {
    fn drop(&mut self) {
        self.0.close();
        self.1.end_writer();
    }
}

#[cfg(test)]
#[path = "power_tests.rs"]
mod power_tests;
