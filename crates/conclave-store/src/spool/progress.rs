//! How far the writer and the drainer have come, and who waits for them.
//!
//! **Invariant:** the durable position never runs ahead of the disk, and the drained position never
//! ahead of the database's last commit.

use super::pressure::{Ages, Counts, Pressure};
use super::segment::SegmentName;
use crate::drain::AcceptedRestore;
use conclave_engine::LedgerState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why nothing is recorded while the keys of people are missing.
const NO_KEYS: &str =
    "keys.db was removed or replaced while in use: what is recorded now could never be read";

/// More spool files that were removed are not named one by one.
const LOST_SEGMENTS_MAX: usize = 16;

/// A place in the spool; places of later segments are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// What the drainer may read of a segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentState {
    pub(crate) name: SegmentName,
    pub(crate) durable_end: u64,
    pub(crate) sealed: bool,
}

/// What the spool has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolStats {
    /// Entries made durable.
    pub entries: u64,
    /// Syncs that made them so.
    pub syncs: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Transactions that moved entries into the database.
    pub batches: u64,
    /// Entries moved into the database.
    pub drained: u64,
}

#[derive(Debug, Default)]
struct State {
    segments: VecDeque<SegmentState>,
    durable: Position,
    drained: Position,
    settled: u64,
    undrained: u64,
    waiters: usize,
    recovered: bool,
    drainer_rests: bool,
    writer_done: bool,
    drainer_done: bool,
    write_error: Option<String>,
    room_error: Option<String>,
    store_error: Option<String>,
    stats: SpoolStats,
    ages: Ages,
    counts: Counts,
    damage: Option<String>,
    /// What is known of a database that was put back from an older copy.
    restored: Option<String>,
    /// Why the clock is not believed.
    clock_doubt: Option<String>,
    /// Why nothing may be promised any more.
    overtaken: Option<String>,
    /// Files that were removed or replaced while they were in use.
    missing: Vec<String>,
    /// Whether the keys of people are among them.
    are_keys_missing: bool,
    /// Spool files that somebody removed since the start. What stood in them stays gone, so they stay told.
    lost_segments: BTreeSet<String>,
    /// What is wrong with the pages of which database.
    pages: BTreeMap<&'static str, String>,
    /// The database is not the file it was.
    reopen: bool,
    /// Somebody has seen that the database is not what it was.
    look_again: bool,
    /// How many entries the log has, as far as the drainer knows.
    log_size: u64,
    accepted: Option<AcceptedRestore>,
    must_forget: bool,
}

/// Shared by the writer, the drainer and everybody who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    moved: Condvar,
    bytes_max: u64,
}

/// What the drainer has to do next.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) segments: Vec<SegmentState>,
    pub(crate) stopping: bool,
    /// Somebody has seen that the database is not what it was.
    pub(crate) look_again: bool,
    /// The database is not the file it was.
    pub(crate) reopen: bool,
}

impl Progress {
    /// Starts with the segments that an earlier run left behind; all segments together may take
    /// `bytes_max`.
    pub(crate) fn new(left_behind: Vec<SegmentState>, bytes_max: u64) -> Self {
        let mut state = State { segments: left_behind.into(), ..State::default() };
        if state.has_work() {
            state.ages.note(Position::default(), Instant::now());
        }
        Self { state: Mutex::new(state), bytes_max, ..Self::default() }
    }

    /// Whether one more segment would still be within the limit.
    pub(crate) fn has_room_for(&self, segment_bytes: u64) -> bool {
        let segments = self.lock().segments.len() as u64 + 1;
        segments.saturating_mul(segment_bytes) <= self.bytes_max
    }

    /// The writer begins a segment.
    pub(crate) fn begin_segment(&self, name: SegmentName) {
        let mut state = self.lock();
        state.durable = Position { segment: name.index, offset: 0 };
        state.segments.push_back(SegmentState { name, durable_end: 0, sealed: false });
    }

    /// The writer will write no more into a segment.
    pub(crate) fn seal_segment(&self, index: u64) {
        let mut state = self.lock();
        let found = state.segments.iter_mut().find(|segment| segment.name.index == index);
        if let Some(segment) = found {
            segment.sealed = true;
        }
    }

    /// The writer gives up a segment in which nothing is durable.
    pub(crate) fn forget_segment(&self, index: u64) {
        self.lock().segments.retain(|segment| segment.name.index != index);
    }

    /// A batch is durable up to `end` of the last segment.
    pub(crate) fn commit(&self, end: u64, entries: u64, bytes: u64) {
        let mut state = self.lock();
        let from = state.durable;
        state.ages.note(from, Instant::now());
        if let Some(segment) = state.segments.back_mut() {
            segment.durable_end = end;
            state.durable = Position { segment: segment.name.index, offset: end };
        }
        state.undrained += entries;
        state.stats.entries += entries;
        state.stats.syncs += 1;
        state.stats.bytes += bytes;
        state.write_error = None;
        self.wake_drainer(&mut state);
    }

    /// The writer is done with this many entries more, one way or the other.
    pub(crate) fn settle(&self, entries: u64) {
        let mut state = self.lock();
        state.settled += entries;
        if state.waiters > 0 {
            self.moved.notify_all();
        }
    }

    /// The last write failed; so many numbers are lost by it.
    pub(crate) fn fail_write(&self, message: String, lost: u64) {
        let mut state = self.lock();
        state.write_error = Some(message);
        state.counts.lost_entries += lost;
        state.counts.gap_open |= lost > 0;
    }

    /// The numbers that were lost are stated in the log.
    pub(crate) fn state_gap(&self) {
        self.lock().counts.gap_open = false;
    }

    /// A segment was given up.
    pub(crate) fn fail_segment(&self) {
        self.lock().counts.failed_segments += 1;
    }

    /// Whether the second directory is written to now.
    pub(crate) fn set_on_fallback(&self, on_fallback: bool) {
        self.lock().counts.on_fallback = on_fallback;
    }

    /// An entry was written while the clock stood behind the entry before.
    pub(crate) fn note_clock_behind(&self) {
        self.lock().counts.clock_behind += 1;
    }

    /// What is wrong with the stored log, as far as anybody looked; `None` takes it back.
    pub(crate) fn set_damage(&self, damage: Option<String>) {
        self.lock().damage = damage;
    }

    /// Why the clock is not believed; `None` when it is.
    pub(crate) fn set_clock_doubt(&self, doubt: Option<String>) {
        let mut state = self.lock();
        if let (Some(doubt), None) = (&doubt, &state.clock_doubt) {
            tracing::error!("{doubt}");
        }
        state.clock_doubt = doubt;
    }

    /// The right to write is lost, and with it everything that follows from it, until the program is
    /// started again.
    pub(crate) fn set_overtaken(&self, why: &str) {
        let mut state = self.lock();
        if state.overtaken.is_none() {
            tracing::error!("{why}; nothing is answered any more that would have to be recorded");
            state.overtaken = Some(why.to_owned());
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Why nothing may be promised any more.
    pub(crate) fn overtaken(&self) -> Option<String> {
        self.lock().overtaken.clone()
    }

    /// Which files are missing that are in use, and whether the keys of people are among them.
    pub(crate) fn set_missing(&self, missing: Vec<String>, are_keys_missing: bool) {
        let mut state = self.lock();
        if missing != state.missing {
            if missing.is_empty() {
                tracing::info!("every file is in its place again");
            } else {
                let files = missing.join(", ");
                tracing::error!(files, "files were removed or replaced while in use");
            }
        }
        (state.missing, state.are_keys_missing) = (missing, are_keys_missing);
    }

    /// What is wrong with the pages of a database; `None` when nothing is.
    pub(crate) fn set_page_trouble(&self, database: &'static str, problem: Option<String>) {
        let mut state = self.lock();
        let Some(problem) = problem else {
            state.pages.remove(database);
            return;
        };
        if state.pages.get(database) != Some(&problem) {
            tracing::error!(database, problem, "a database is damaged");
        }
        state.pages.insert(database, problem);
    }

    /// A spool file was removed or replaced by somebody else.
    pub(crate) fn note_lost_segment(&self, path: &Path) {
        let Some(name) = path.file_name() else { return };
        let name = format!("spool/{}", name.to_string_lossy());
        let mut state = self.lock();
        if state.lost_segments.len() < LOST_SEGMENTS_MAX && state.lost_segments.insert(name.clone())
        {
            tracing::error!(file = name, "a spool file was removed or replaced while in use");
        }
    }

    /// Where the segments stand that are not drained yet, or are written.
    pub(crate) fn segment_paths(&self) -> Vec<PathBuf> {
        self.lock().segments.iter().map(|segment| segment.name.path.clone()).collect()
    }

    /// Lets the drainer open the database again: the file is not the one that was opened.
    pub(crate) fn reopen(&self) {
        self.lock().reopen = true;
        self.moved.notify_all();
    }

    /// What was found wrong with the stored log.
    pub(crate) fn damage(&self) -> Option<String> {
        self.lock().damage.clone()
    }

    /// What is known of a database that was put back from an older copy; `None` when all is well.
    /// Says whether all was well before.
    pub(crate) fn set_restored(&self, restored: Option<String>) -> bool {
        let mut state = self.lock();
        let was_well = state.restored.is_none();
        // Keys and words that had been deleted came back with it.
        state.must_forget |= restored.is_none() && state.restored.is_some();
        state.restored = restored;
        drop(state);
        self.moved.notify_all();
        was_well
    }

    /// Whether the database came back from an older copy, and who was erased is not forgotten again yet.
    pub(crate) fn must_forget(&self) -> bool {
        self.lock().must_forget
    }

    /// Whether the database is the one it was, and has what an earlier run left behind.
    pub(crate) fn is_whole(&self) -> bool {
        let state = self.lock();
        state.recovered && state.restored.is_none()
    }

    /// Who was erased is forgotten again.
    pub(crate) fn set_forgotten(&self) {
        self.lock().must_forget = false;
        self.moved.notify_all();
    }

    /// Waits as [`Self::wait_drained`] does, and until nothing can be read that was to be forgotten.
    ///
    /// # Errors
    /// When that takes longer than `patience`, or the store is shut down.
    pub(crate) fn wait_readable(&self, pushed: u64, patience: Duration) -> Result<(), String> {
        self.wait_drained(pushed, patience)?;
        let until = |state: &mut State| state.must_forget && !state.drainer_done;
        let waited = self.moved.wait_timeout_while(self.lock(), patience, until);
        if waited.unwrap_or_else(PoisonError::into_inner).0.must_forget {
            return Err("the database was put back, and who was erased is forgotten first".into());
        }
        Ok(())
    }

    /// A restored database was accepted.
    pub(crate) fn set_accepted(&self, accepted: AcceptedRestore) {
        self.lock().accepted = Some(accepted);
    }

    /// What was accepted of a restored database since the start.
    pub(crate) fn accepted(&self) -> Option<AcceptedRestore> {
        self.lock().accepted
    }

    /// A witness has cosigned the checkpoint over so many entries, or has not cosigned.
    pub(crate) fn note_witness(&self, size: Option<u64>) {
        let mut state = self.lock();
        match size {
            Some(size) => state.counts.witnessed_size = state.counts.witnessed_size.max(size),
            None => state.counts.witness_failures += 1,
        }
    }

    /// How many entries the log has, as far as the drainer knows.
    pub(crate) fn log_size(&self) -> u64 {
        self.lock().log_size
    }

    /// The drainer knows that the log has so many entries.
    pub(crate) fn set_log_size(&self, size: u64) {
        self.lock().log_size = size;
    }

    /// Lets the drainer compare the database with what it remembers, also if there is nothing to drain.
    pub(crate) fn look_again(&self) {
        self.lock().look_again = true;
        self.moved.notify_all();
    }

    /// How the spool is doing, for people and monitoring.
    pub(crate) fn ledger_state(&self) -> LedgerState {
        let state = self.lock();
        let pressure = Pressure {
            waiting_bytes: state.waiting_bytes(),
            bytes_max: self.bytes_max,
            oldest: state.ages.oldest(Instant::now()),
            counts: state.counts,
            damage: state.damage.clone(),
            restored: state.restored.clone(),
            clock_doubt: state.clock_doubt.clone(),
            overtaken: state.overtaken.clone(),
            missing: state.missing.iter().chain(&state.lost_segments).cloned().collect(),
            pages: state.pages.clone(),
            write_error: state.write_error.clone(),
            room_error: state.room_error.clone(),
            store_error: state.store_error.clone(),
        };
        drop(state);
        pressure.state()
    }

    /// There is no room for another segment, or there is again.
    pub(crate) fn set_room(&self, error: Option<String>) {
        self.lock().room_error = error;
    }

    /// The database failed; the next batch that is drained says that it works again.
    pub(crate) fn fail_store(&self, error: String) {
        self.lock().store_error = Some(error);
    }

    /// What is wrong with taking entries.
    pub(crate) fn spool_trouble(&self) -> Option<String> {
        let state = self.lock();
        let trouble = state.write_error.clone().or_else(|| state.room_error.clone());
        trouble.or_else(|| state.are_keys_missing.then(|| NO_KEYS.to_owned()))
    }

    /// What is wrong with the database.
    pub(crate) fn store_trouble(&self) -> Option<String> {
        self.lock().store_error.clone()
    }

    /// What was done so far.
    pub(crate) fn stats(&self) -> SpoolStats {
        self.lock().stats
    }

    /// The writer has ended; nothing more will become durable.
    pub(crate) fn end_writer(&self) {
        let mut state = self.lock();
        state.writer_done = true;
        state.segments.iter_mut().for_each(|segment| segment.sealed = true);
        self.moved.notify_all();
    }

    /// The drainer has ended; nobody need wait for it any more.
    pub(crate) fn end_drainer(&self) {
        self.lock().drainer_done = true;
        self.moved.notify_all();
    }

    /// The drainer has dealt with everything an earlier run left behind.
    pub(crate) fn set_recovered(&self) {
        self.lock().recovered = true;
        self.moved.notify_all();
    }

    /// The segments that nobody needs any more once the drainer has committed up to here.
    pub(crate) fn finished(&self, to: Position) -> Vec<SegmentState> {
        let state = self.lock();
        let drained = state.segments.iter().take_while(|segment| is_drained(segment, to));
        drained.cloned().collect()
    }

    /// The drainer has committed up to here.
    pub(crate) fn drain(&self, to: Position, entries: u64) {
        let mut state = self.lock();
        state.drained = to;
        state.store_error = None;
        state.undrained = state.undrained.saturating_sub(entries);
        state.stats.batches += u64::from(entries > 0);
        state.stats.drained += entries;
        while state.segments.front().is_some_and(|segment| is_drained(segment, to)) {
            state.segments.pop_front();
        }
        let all = state.waiting_bytes() == 0;
        state.ages.drained(to, all);
        if state.drained == state.durable {
            // Entries of an earlier run are drained too but were never counted.
            state.undrained = 0;
        }
        self.moved.notify_all();
    }

    /// The drainer waits for something to do: until `full` entries are there, or the first has
    /// waited for `linger`, or somebody waits for the drainer.
    pub(crate) fn wait_for_work(&self, linger: Duration, full: u64) -> Work {
        let mut state = self.lock();
        let mut due = None;
        loop {
            let now = Instant::now();
            let pending = state.has_work();
            let end = if pending { Some(*due.get_or_insert(now + linger)) } else { None };
            let hurry = state.waiters > 0 || state.undrained >= full || !state.recovered;
            let is_due = end.is_some_and(|end| end <= now);
            let is_over = state.writer_done || state.overtaken.is_some();
            let is_told = state.look_again || state.reopen;
            let now_or_never = is_over || !state.recovered || is_told;
            if now_or_never || (pending && (hurry || is_due)) {
                let segments = state.segments.iter().cloned().collect();
                let look_again = std::mem::take(&mut state.look_again);
                let reopen = std::mem::take(&mut state.reopen);
                return Work { segments, stopping: state.writer_done, look_again, reopen };
            }
            state.drainer_rests = !pending;
            state = self.rest(state, end.map(|end| end - now));
            state.drainer_rests = false;
        }
    }

    /// The drainer waits after a failure; ends early when the writer has ended.
    pub(crate) fn wait_after_failure(&self, pause: Duration) {
        let end = Instant::now() + pause;
        let mut state = self.lock();
        while !state.writer_done && state.overtaken.is_none() {
            let now = Instant::now();
            if now >= end {
                return;
            }
            state = self.rest(state, Some(end - now));
        }
    }

    /// Waits until everything that had come to the writer (`pushed` entries) is in the database.
    ///
    /// # Errors
    /// When that takes longer than `patience`, or the store is shut down.
    pub(crate) fn wait_drained(&self, pushed: u64, patience: Duration) -> Result<(), String> {
        let end = Instant::now() + patience;
        let mut state = self.lock();
        state.waiters += 1;
        self.moved.notify_all();
        let mut target = None;
        let outcome = loop {
            if state.settled >= pushed && state.recovered && state.restored.is_none() {
                // Fixed once, so that a reader cannot be kept waiting by entries that came later.
                let target = *target.get_or_insert(state.durable);
                if state.drained >= target || state.is_empty_up_to(target) {
                    break Ok(());
                }
            }
            if let Some(why) = &state.overtaken {
                break Err(why.clone());
            }
            if state.drainer_done {
                break Err("the store is shut down".to_owned());
            }
            let now = Instant::now();
            if now >= end {
                break Err(state.why_late());
            }
            state = self.rest(state, Some(end - now));
        };
        state.waiters -= 1;
        outcome
    }

    fn rest<'a>(
        &self,
        state: MutexGuard<'a, State>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        match timeout {
            Some(timeout) => {
                let woken = self.moved.wait_timeout(state, timeout);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.moved.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn wake_drainer(&self, state: &mut State) {
        if state.drainer_rests || state.waiters > 0 {
            state.drainer_rests = false;
            self.moved.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_drained(segment: &SegmentState, to: Position) -> bool {
    let end = Position { segment: segment.name.index, offset: segment.durable_end };
    segment.sealed && end <= to
}

impl State {
    /// Whether a segment holds something the drainer has not seen, or only has to be put away.
    fn has_work(&self) -> bool {
        self.segments.iter().any(|segment| {
            let end = Position { segment: segment.name.index, offset: segment.durable_end };
            end > self.drained && segment.durable_end > 0 || is_drained(segment, self.drained)
        })
    }

    /// How many bytes are durable and not drained.
    fn waiting_bytes(&self) -> u64 {
        let waiting = self.segments.iter().map(|segment| {
            let index = segment.name.index;
            match index.cmp(&self.drained.segment) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => {
                    segment.durable_end.saturating_sub(self.drained.offset)
                }
                std::cmp::Ordering::Greater => segment.durable_end,
            }
        });
        waiting.sum()
    }

    /// Whether nothing at all stands between the drained position and this one.
    fn is_empty_up_to(&self, target: Position) -> bool {
        !self.segments.iter().any(|segment| {
            let end = Position { segment: segment.name.index, offset: segment.durable_end };
            let within = end.min(target);
            within.segment == end.segment && within.offset > 0 && within > self.drained
        })
    }

    fn why_late(&self) -> String {
        match (&self.store_error, &self.write_error) {
            (Some(error), _) => format!("the database does not take entries: {error}"),
            (None, Some(error)) => format!("the spool does not take entries: {error}"),
            (None, None) => "the newest entries did not arrive in time".to_owned(),
        }
    }
}
