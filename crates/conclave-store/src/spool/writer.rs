//! The one thread that writes to the spool.
//!
//! **Invariant:** numbers are given in the order of the queue and never twice. Numbers of entries
//! that could not be written stay used, and the next entry that can be written says which they are.

use super::disk::{Disk, SegmentSink};
use super::frame::{OVERHEAD_BYTES, Seed, write_frame};
use super::intake::{Ack, Intake, Job, Sealing, Settled};
use super::progress::Progress;
use super::segment::SegmentName;
use crate::options::Stamps;
use crate::replica::Identity;
use crate::vault::Vault;
use conclave_engine::{AppendError, Appended, Clock};
use conclave_ledger::{EntryId, Gap, Kind, Leaf, leaf_hash};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A batch is written out when it has grown to this.
const BATCH_BYTES: usize = 4 << 20;
/// A buffer that grew larger than this is not kept.
const BUFFER_BYTES_KEPT: usize = 8 << 20;
/// How often a writer in trouble looks whether it has passed.
const RETRY: Duration = Duration::from_secs(1);

/// What a writer is made of.
pub(crate) struct WriterParts {
    pub(crate) dir: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) vault: Arc<Vault>,
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
}

impl Writer {
    /// Prepares the first segment, so that a full or read-only disk shows before anything is
    /// accepted.
    ///
    /// # Errors
    /// When the segment cannot be made.
    pub(crate) fn open(parts: WriterParts) -> io::Result<Self> {
        let mut writer = Self {
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
        Ok(writer)
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let intake = Arc::clone(&self.parts.intake);
        let _end = EndOfWriter(Arc::clone(&intake), Arc::clone(&self.parts.progress));
        let mut jobs = Vec::new();
        loop {
            let tick = self.in_trouble().then_some(RETRY);
            if !intake.take(&mut jobs, self.parts.patience, tick) {
                break;
            }
            if jobs.is_empty() && self.lost.is_some() {
                self.state_gap();
            }
            jobs.drain(..).for_each(|job| self.add(job));
            self.commit();
            self.look_ahead();
        }
        self.put_away();
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
        let too_large = || AppendError("the entry is larger than a spool segment".to_owned());
        if self.lost.is_some() && !self.gap_stated {
            self.state_gap();
        }
        if (job.words_bytes() + OVERHEAD_BYTES) as u64 > self.parts.segment_bytes {
            return Err(too_large());
        }
        let (begin, n) = (self.buffer.len(), self.parts.next_n);
        let appended = self.encode(job)?;
        if (self.buffer.len() - begin) as u64 > self.parts.segment_bytes {
            self.buffer.truncate(begin);
            self.parts.next_n = n;
            return Err(too_large());
        }
        self.make_room(begin);
        Ok(appended)
    }

    /// Appends the frame of an entry to the buffer and gives it its number and time.
    fn encode(&mut self, job: Job) -> Result<Appended, AppendError> {
        let parts = &mut self.parts;
        let Identity { replica, epoch } = parts.identity;
        let id = EntryId { replica, epoch, n: parts.next_n };
        let Job { draft, sealing, .. } = job;
        let (commitments, body) = match sealing {
            None => (Vec::new(), Vec::new()),
            Some(Sealing { words, key }) => {
                // The last moment: a key that was deleted since seals nothing any more.
                if !parts.vault.is_alive(key.id()) {
                    return Err(AppendError("the person's words were erased meanwhile".to_owned()));
                }
                let sealed = words.seal(&key, id, draft.tenant);
                sealed.map_err(|error| AppendError(error.to_string()))?
            }
        };
        parts.next_n += 1;
        parts.last_ts_ms = parts.last_ts_ms.max(parts.clock.now_ms());
        let ts_ms = parts.last_ts_ms;
        let write = |out: &mut Vec<u8>| Leaf::write(out, id, ts_ms, &draft, &commitments);
        let leaf = write_frame(&mut self.buffer, parts.seed, (id, ts_ms), write, &body);
        Ok(Appended { id, leaf_hash: leaf_hash(&self.buffer[leaf]) })
    }

    /// Writes out what stands before the newest frame if that no longer fits into the segment with
    /// it.
    fn make_room(&mut self, newest: usize) {
        let end = self.current.as_ref().map_or(0, |segment| segment.end);
        if newest > 0 && end + self.buffer.len() as u64 > self.parts.segment_bytes {
            let frame = self.buffer.split_off(newest);
            self.commit();
            self.buffer.extend_from_slice(&frame);
        }
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
                Err(error) => self.fail(&error),
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
        if std::mem::take(&mut self.gap_stated) {
            self.lost = None;
        }
        for written in self.batch.drain(..) {
            answer(written.ack, Ok(written.appended));
        }
    }

    fn fail(&mut self, error: &io::Error) {
        let message = format!("the spool cannot be written: {error}");
        tracing::error!(entries = self.batch.len(), %error, "entries could not be made durable");
        self.parts.progress.fail_write(message.clone());
        self.gap_stated = false;
        if let (Some(first), Some(last)) = (self.batch.first(), self.batch.last()) {
            let from = self.lost.map_or(first.appended.id.n, |(from, _)| from);
            self.lost = Some((from, last.appended.id.n));
        }
        for written in self.batch.drain(..) {
            answer(written.ack, Err(AppendError(message.clone())));
        }
    }

    /// One write, one sync. If either fails, once more into a new segment; returns where the data
    /// ends.
    fn write_out(&mut self) -> io::Result<u64> {
        match self.write_once() {
            Ok(end) => Ok(end),
            Err(Failure::NoSegment(error)) => Err(error),
            Err(Failure::Poisoned(error)) => {
                tracing::error!(%error, "a spool segment failed; writing to a new one");
                self.write_once().map_err(Failure::into_error)
            }
        }
    }

    fn write_once(&mut self) -> Result<u64, Failure> {
        let length = self.buffer.len() as u64;
        let fits = |segment: &Segment| segment.end + length <= self.parts.segment_bytes;
        if !self.current.as_ref().is_some_and(fits) {
            self.advance().map_err(Failure::NoSegment)?;
        }
        let Some(segment) = &mut self.current else {
            return Err(Failure::NoSegment(io::ErrorKind::NotFound.into()));
        };
        let written = segment.sink.write_at(&self.buffer, segment.end);
        match written.and_then(|()| segment.sink.sync()) {
            Ok(()) => {
                segment.end += length;
                Ok(segment.end)
            }
            Err(error) => {
                // The drainer reads no further than what was durable before; see the module's
                // invariant.
                self.seal();
                Err(Failure::Poisoned(error))
            }
        }
    }

    /// Goes on to the next segment.
    fn advance(&mut self) -> io::Result<()> {
        let segment = match self.spare.take() {
            Some(spare) => spare,
            None => self.create()?,
        };
        self.seal();
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
            let _ = std::fs::remove_file(&segment.name.path);
        }
    }

    fn create(&mut self) -> io::Result<Segment> {
        let parts = &mut self.parts;
        let name = SegmentName::new(&parts.dir, parts.next_index, parts.seed);
        parts.next_index += 1;
        let sink = parts.disk.create(&name.path, parts.segment_bytes)?;
        Ok(Segment { name, sink, end: 0 })
    }

    /// Prepares the next segment before it is needed, so that a full disk shows while there is
    /// still room.
    fn look_ahead(&mut self) {
        let half = self.parts.segment_bytes / 2;
        let roomy = self.current.as_ref().is_some_and(|segment| segment.end < half);
        if self.spare.is_some() || (roomy && !self.no_room) {
            return;
        }
        let made = self.create();
        self.no_room = made.is_err();
        let trouble = made.as_ref().err().map(|error| format!("no room for the spool: {error}"));
        self.parts.progress.set_room(trouble);
        self.spare = made.ok();
    }

    /// A spare segment holds nothing and need not stay.
    fn put_away(&mut self) {
        self.seal();
        if let Some(spare) = self.spare.take() {
            let _ = std::fs::remove_file(&spare.name.path);
        }
    }
}

enum Failure {
    NoSegment(io::Error),
    Poisoned(io::Error),
}

impl Failure {
    fn into_error(self) -> io::Error {
        match self {
            Self::NoSegment(error) | Self::Poisoned(error) => error,
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
