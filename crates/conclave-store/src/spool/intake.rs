//! The queue in front of the writer.
//!
//! **Invariant:** what waits is bounded in bytes. Who needs an answer waits for room; who does not
//! is turned away and counted.
//!
//! **Invariant:** entries leave in the order in which they came, whether somebody waits for them or
//! not, so that a delivery never overtakes its decision.

use conclave_engine::{AppendError, Appended};
use conclave_ledger::{Body, Draft, LaidOut, LeafError, SealingKey};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// What one permit of the queue stands for.
const PERMIT_BYTES: usize = 1_024;
/// What an entry takes beside its texts: the draft, the frame, the acknowledgement.
const ENTRY_BYTES: usize = 1_024;

/// So many entries are written at once, however lately others were.
pub(crate) const GATHERED: usize = 16;

/// Where an entry came to stand, or why nowhere.
pub(crate) type Settled = Result<Appended, AppendError>;

/// Tells who waits for an entry where it came to stand.
#[derive(Debug)]
pub(crate) enum Ack {
    /// Somebody who awaits it.
    Task(oneshot::Sender<Settled>),
    /// A thread of the store's own.
    Thread(mpsc::Sender<Settled>),
}

impl Ack {
    /// Whoever no longer waits does not hear the answer.
    pub(crate) fn send(self, settled: Settled) {
        match self {
            Self::Task(task) => drop(task.send(settled)),
            Self::Thread(thread) => drop(thread.send(settled)),
        }
    }
}

/// The texts of an entry and what they will be sealed with.
#[derive(Debug)]
pub(crate) struct Sealing {
    pub(crate) words: LaidOut,
    pub(crate) key: Arc<SealingKey>,
}

/// One entry on its way to the writer; its texts are hashed and laid out already, by whoever brought
/// it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) draft: Draft,
    pub(crate) sealing: Option<Sealing>,
    /// How long its leaf can become.
    pub(crate) leaf_bytes_max: usize,
    pub(crate) permits: u32,
    pub(crate) ack: Option<Ack>,
}

impl Job {
    /// Prepares an entry without texts.
    ///
    /// # Errors
    /// When it could not be read back from the log.
    pub(crate) fn new(draft: Draft) -> Result<Self, LeafError> {
        draft.check()?;
        let leaf_bytes_max = draft.check_length(&[])?;
        Ok(Self { draft, sealing: None, leaf_bytes_max, permits: 0, ack: None })
    }

    /// Prepares an entry with the texts of a body, laid out.
    ///
    /// # Errors
    /// When it could not be read back from the log.
    pub(crate) fn sealed(draft: Draft, body: &Body, sealing: Sealing) -> Result<Self, LeafError> {
        body.check()?;
        draft.check()?;
        let leaf_bytes_max = draft.check_length(sealing.words.commitments())?;
        Ok(Self { draft, sealing: Some(sealing), leaf_bytes_max, permits: 0, ack: None })
    }

    /// How many bytes its texts take.
    pub(crate) fn words_bytes(&self) -> usize {
        self.sealing.as_ref().map_or(0, |sealing| sealing.words.len())
    }

    fn weight(&self) -> u32 {
        let permits = (ENTRY_BYTES + self.words_bytes()).div_ceil(PERMIT_BYTES);
        u32::try_from(permits).unwrap_or(u32::MAX)
    }
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: Vec<Job>,
    pushed: u64,
    urgent: bool,
    oldest: Option<Instant>,
    idle: bool,
    /// Whether the writer waits for more to come, so as to write them together.
    gathering: bool,
    closed: bool,
}

/// Where entries wait for the writer.
#[derive(Debug)]
pub(crate) struct Intake {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    room: Semaphore,
    permits: u32,
    dropped: AtomicU64,
}

/// The answer to an entry of the store itself.
#[derive(Debug)]
pub(crate) struct Answer(mpsc::Receiver<Settled>);

impl Answer {
    /// Waits for it.
    pub(crate) fn wait(self) -> Settled {
        self.0.recv().map_err(|_| closed())?
    }
}

fn closed() -> AppendError {
    AppendError::Refused("the ledger is shut down".to_owned())
}

impl Intake {
    /// A queue that holds about this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let permits = u32::try_from((bytes / PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let room = Semaphore::new(permits as usize);
        let (waiting, wake, dropped) = Default::default();
        Self { waiting, wake, room, permits, dropped }
    }

    /// Queues an entry as soon as there is room and waits until it is durable.
    pub(crate) async fn append(&self, mut job: Job) -> Result<Appended, AppendError> {
        job.permits = job.weight().min(self.permits);
        let room = self.room.acquire_many(job.permits).await.map_err(|_| closed())?;
        room.forget();
        let (ack, answer) = oneshot::channel();
        job.ack = Some(Ack::Task(ack));
        self.push(job);
        answer.await.map_err(|_| closed())?
    }

    /// Queues an entry nobody waits for, unless there is no room.
    pub(crate) fn append_soon(&self, mut job: Job) {
        job.permits = job.weight().min(self.permits);
        match self.room.try_acquire_many(job.permits) {
            Ok(room) => {
                room.forget();
                self.push(job);
            }
            Err(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Queues an entry of the store itself, which may exceed the room. Waiting for the answer
    /// blocks.
    pub(crate) fn submit(&self, mut job: Job) -> Answer {
        let (ack, answer) = mpsc::channel();
        job.ack = Some(Ack::Thread(ack));
        self.push(job);
        Answer(answer)
    }

    /// Counts an entry that could not even be queued.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// How many entries were turned away.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Makes the writer take everything that waits, at once; returns how many entries ever came.
    pub(crate) fn hurry(&self) -> u64 {
        let mut waiting = self.lock();
        if !waiting.jobs.is_empty() {
            waiting.urgent = true;
            self.wake.notify_one();
        }
        waiting.pushed
    }

    /// Takes no more entries; those that wait are still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.close();
        self.wake.notify_all();
    }

    /// Gives back the room of entries that are settled.
    pub(crate) fn release(&self, permits: usize) {
        self.room.add_permits(permits);
    }

    /// Moves everything that waits into `jobs` as soon as it is due: when somebody waits for an answer, at
    /// once, but not before `not_before` unless [`GATHERED`] entries have come; else when it has waited for
    /// `patience`. Returns empty-handed after `tick`, and `false` once the queue is closed and empty.
    pub(crate) fn take(
        &self,
        jobs: &mut Vec<Job>,
        not_before: Instant,
        patience: Duration,
        tick: Option<Duration>,
    ) -> bool {
        let give_up = tick.map(|tick| Instant::now() + tick);
        let mut waiting = self.lock();
        loop {
            let now = Instant::now();
            if waiting.closed
                || waiting.urgent && (now >= not_before || waiting.jobs.len() >= GATHERED)
            {
                break;
            }
            if waiting.urgent {
                waiting.gathering = true;
                waiting = self.rest(waiting, Some(not_before - now));
                waiting.gathering = false;
                continue;
            }
            let due = waiting.oldest.map(|oldest| oldest + patience);
            if [due, give_up].into_iter().flatten().any(|end| end <= now) {
                break;
            }
            let end = [due, give_up].into_iter().flatten().min();
            waiting = self.rest(waiting, end.map(|end| end - now));
        }
        let open = !(waiting.closed && waiting.jobs.is_empty());
        std::mem::swap(&mut waiting.jobs, jobs);
        (waiting.urgent, waiting.oldest) = (false, None);
        open
    }

    fn rest<'a>(
        &self,
        mut waiting: MutexGuard<'a, Waiting>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, Waiting> {
        waiting.idle = true;
        let mut waiting = match timeout {
            Some(timeout) => {
                let woken = self.wake.wait_timeout(waiting, timeout);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner),
        };
        waiting.idle = false;
        waiting
    }

    /// Dropping a job tells who waits for it that the queue is closed.
    fn push(&self, job: Job) {
        let mut waiting = self.lock();
        if waiting.closed {
            return;
        }
        let urgent = job.ack.is_some();
        waiting.pushed += 1;
        waiting.jobs.push(job);
        let first = waiting.oldest.is_none();
        if first {
            waiting.oldest = Some(Instant::now());
        }
        waiting.urgent |= urgent;
        let worth_it = match waiting.gathering {
            true => waiting.jobs.len() >= GATHERED,
            false => urgent || first,
        };
        if waiting.idle && worth_it {
            waiting.idle = false;
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
