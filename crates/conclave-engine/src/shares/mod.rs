//! Shares of the processor: long work of one caller keeps nobody else waiting.
//!
//! Work is short or long by the size of its texts. Long work has places of its own, half as many as there are
//! cores, so that short work never waits behind it; for both kinds [`ShareQueue`] says who is next. A long turn
//! holds a place while it computes, and none while it waits for a model.
//!
//! **Invariant:** a turn that cannot begin within [`Shares::wait_max`] is refused before anything of it was read,
//! reserved or recorded; one that was begun waits for its next place as long as it takes.
//! **Invariant:** a long turn computes on no thread that answers others.

mod queue;

pub use queue::Sharer;
pub(crate) use queue::Stage;
use queue::{ShareQueue, Ticket};

use crate::matter::{Turn, TurnWork};
use conclave_detect::Detector;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Work about more text than this is long.
pub const LONG_BYTES: usize = 64 << 10;
/// So many long turns of one key wait at once; more are refused at the door.
const WAITING_MAX: usize = 64;
/// How long a turn waits to begin where nobody said.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Whoever is refused is asked to wait so many seconds at most.
const RETRY_AFTER_MAX_S: u64 = 60;

/// A caller asks for more at once than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("too many long texts of this key are waiting to be read; try again in {retry_after_s} s")]
pub struct OverShare {
    /// When it is worth while to ask again.
    pub retry_after_s: u32,
}

/// How work takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Short work.
    Short,
    /// Long work, which has no place yet.
    Long,
    /// Long work of a turn that holds a place.
    Held,
}

impl Load {
    /// Work about so much text.
    pub(crate) const fn of_text(bytes: usize) -> Self {
        if bytes > LONG_BYTES { Self::Long } else { Self::Short }
    }

    /// Work within a turn.
    pub(crate) const fn within(is_long: bool) -> Self {
        if is_long { Self::Held } else { Self::Short }
    }
}

/// Who may compute, and when.
#[derive(Clone)]
pub struct Shares {
    short: Arc<ShareGate>,
    long: Arc<ShareGate>,
    /// How long a turn waits to begin.
    pub wait_max: Duration,
}

impl Default for Shares {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self {
            short: Arc::new(ShareGate::new(cores)),
            long: Arc::new(ShareGate::new((cores / 2).max(1))),
            wait_max: WAIT_MAX,
        }
    }
}

impl Shares {
    /// The same places, with another patience.
    #[must_use]
    pub fn with_wait_max(self, wait_max: Duration) -> Self {
        Self { wait_max, ..self }
    }

    /// A place for a long turn to begin in.
    pub(crate) async fn begin(&self, sharer: &Sharer) -> Result<WorkPlace, OverShare> {
        let gate = &self.long;
        if gate.lock().queue.waiting_of(sharer) >= WAITING_MAX {
            return Err(gate.refusal(sharer));
        }
        let waiting = Arc::clone(gate).enter(sharer.clone(), Stage::New);
        timeout(self.wait_max, waiting).await.map_err(|_late| gate.refusal(sharer))
    }

    /// A place for a long turn to go on in.
    pub(crate) async fn resume(&self, sharer: &Sharer) -> WorkPlace {
        Arc::clone(&self.long).enter(sharer.clone(), Stage::Begun).await
    }

    /// Lets a detector do some work: on the spot if it answers in microseconds and the work is short, else on a
    /// thread where nobody is kept waiting.
    pub(crate) async fn read<R: Send + 'static>(
        &self,
        detector: &Arc<Detector>,
        sharer: Sharer,
        load: Load,
        work: impl Fn(&Detector) -> R + Send + Sync + 'static,
    ) -> R {
        let place = match load {
            Load::Short if !detector.may_be_slow() => return work(detector),
            Load::Short => Some(Arc::clone(&self.short).enter(sharer, Stage::Begun).await),
            Load::Long => Some(Arc::clone(&self.long).enter(sharer, Stage::Begun).await),
            Load::Held => None,
        };
        let work = Arc::new(work);
        let (there, elsewhere) = (detector.clone(), work.clone());
        let done = move || {
            // Given up only here: a reading nobody waits for any more goes on, and takes its core.
            let _place = place;
            elsewhere(&there)
        };
        match tokio::task::spawn_blocking(done).await {
            Ok(read) => read,
            // No thread is to be had while the runtime ends: what must be read is read here.
            Err(_) => work(detector),
        }
    }
}

/// Whether what is done with a turn is long work.
pub(crate) fn is_long(turn: &Turn, work: TurnWork) -> bool {
    let mut left = LONG_BYTES;
    let is_long_reply = matches!(work, TurnWork::Judge { reply_bytes } if reply_bytes > LONG_BYTES);
    is_long_reply || !turn.body.values().all(|value| fits(value, &mut left))
}

/// Takes the strings of a document from what is left; `false` when it is not enough.
fn fits(value: &serde_json::Value, left: &mut usize) -> bool {
    use serde_json::Value;
    let own = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => return items.iter().all(|item| fits(item, left)),
        Value::Object(map) => {
            return map.iter().all(|(name, item)| {
                let rest = left.checked_sub(name.len());
                rest.is_some_and(|rest| {
                    *left = rest;
                    fits(item, left)
                })
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return true,
    };
    left.checked_sub(own).is_some_and(|rest| {
        *left = rest;
        true
    })
}

/// Runs work of a long turn so that no thread that answers others is held up by it.
pub(crate) async fn aside<T>(is_long: bool, work: impl Future<Output = T> + Send) -> T {
    if is_long { Aside(Box::pin(work)).await } else { work.await }
}

struct Aside<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

impl<T> Future for Aside<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let work = self.0.as_mut();
        off_workers(|| work.poll(context))
    }
}

/// Computes for a while on this thread, and has another answer others meanwhile.
pub fn off_workers<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { tokio::task::block_in_place(work) } else { work() }
}

/// A queue, and everybody who waits in it.
struct ShareGate {
    inner: Mutex<GateState>,
}

struct GateState {
    queue: ShareQueue,
    called: HashMap<Ticket, oneshot::Sender<()>>,
    /// How long work had a place of late.
    usual: Duration,
}

impl ShareGate {
    fn new(places: usize) -> Self {
        let state = GateState {
            queue: ShareQueue::new(places),
            called: HashMap::new(),
            usual: Duration::ZERO,
        };
        Self { inner: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place. Whoever is dropped meanwhile has left the queue.
    async fn enter(self: Arc<Self>, sharer: Sharer, stage: Stage) -> WorkPlace {
        let (call, called) = oneshot::channel();
        let ticket = {
            let mut state = self.lock();
            let ticket = state.queue.join(&sharer, stage);
            state.called.insert(ticket, call);
            state.call_all();
            ticket
        };
        let mut place = WorkPlace { gate: self, sharer, ticket, since: None };
        // Whoever calls never goes away without calling: the queue holds every ticket until it has.
        let _ = called.await;
        place.since = Some(Instant::now());
        place
    }

    fn refusal(&self, sharer: &Sharer) -> OverShare {
        let state = self.lock();
        let ahead = u32::try_from(state.queue.waiting_of(sharer)).unwrap_or(u32::MAX);
        let seconds = state.usual.saturating_mul(ahead).as_secs().clamp(1, RETRY_AFTER_MAX_S);
        OverShare { retry_after_s: u32::try_from(seconds).unwrap_or(1) }
    }
}

impl GateState {
    fn call_all(&mut self) {
        while let Some(ticket) = self.queue.call_next() {
            if let Some(call) = self.called.remove(&ticket) {
                // Whoever does not hear it any more is about to give the place back.
                let _ = call.send(());
            }
        }
    }
}

/// A place among those who compute; given back when it is dropped.
pub(crate) struct WorkPlace {
    gate: Arc<ShareGate>,
    sharer: Sharer,
    ticket: Ticket,
    /// Since when it is held; absent while it is waited for.
    since: Option<Instant>,
}

impl Drop for WorkPlace {
    fn drop(&mut self) {
        let took = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.gate.lock();
        if self.since.is_some() {
            state.usual = (state.usual * 7 + took) / 8;
        }
        state.called.remove(&self.ticket);
        state.queue.leave(&self.sharer, self.ticket, took_ns);
        state.call_all();
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
