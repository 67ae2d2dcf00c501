//! The thread that looks after what is not entries: keys, notes, forgetting, leases and the stored log.
//!
//! **Invariant:** what cannot be done now is logged and done later; nobody waits for it.

use crate::backing::ChangeLookup;
use crate::error::StoreError;
use crate::forget::Forgetter;
use crate::keys::{BookRing, Outbox, OutboxSink};
use crate::ledger::SpoolLedger;
use crate::lock::DirLock;
use crate::options::Stamps;
use crate::postgres::Heart;
use crate::scrub::Scrub;
use crate::spool::{Job, Kept, Progress};
use conclave_ledger::{Draft, Kind, Value};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the keys and the notes of other processes are looked at.
const KEEPER_TICK: Duration = Duration::from_secs(1);
/// After how many ticks the last uses of keys are written down.
const USES_TICKS: u32 = 60;
/// After how many ticks the lease of a replica is renewed.
const BEAT_TICKS: u32 = 3;
/// So many ticks after a database came back older it is looked which keys nobody has given back to it.
const LOST_TICKS: u32 = 60;
/// After how many ticks it is looked what is to be forgotten: at the first, then every hour.
const FORGET_TICKS: u32 = 3_600;

/// The way from notes to entries.
pub(crate) struct Notes {
    pub(crate) outbox: Mutex<Outbox>,
    pub(crate) ledger: Arc<SpoolLedger>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) changes: ChangeLookup,
    pub(crate) patience: Duration,
}

impl Notes {
    pub(crate) fn pump(&self) -> Result<usize, String> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).pump(self)
    }
}

impl OutboxSink for Notes {
    fn has(&self, id: [u8; 16]) -> Result<bool, String> {
        let pushed = self.ledger.intake.hurry();
        self.ledger.progress.wait_drained(pushed, self.patience)?;
        (self.changes)(id)
    }

    fn append(&self, kind: Kind, tenant: u64, public: Value) -> Result<(), String> {
        let draft = Draft { tenant, public, ..self.stamps.draft(kind) };
        let job = Job::new(draft).map_err(|error| error.to_string())?;
        let settled = self.ledger.intake.submit(job).wait();
        settled.map(|_| ()).map_err(|error| error.to_string())
    }
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

/// Lets go of keys that no replica has given back to a database that lost them.
fn let_go_of_lost(forgetter: &Forgetter) {
    match forgetter.vault.let_go_of_lost() {
        Ok(0) => {}
        Ok(lost) => {
            tracing::error!(lost, "keys of people were lost with the database's newest part");
        }
        Err(error) => tracing::warn!(%error, "it could not be seen whether keys were lost"),
    }
}

/// Removes what was kept long enough of what the database was given.
fn look_after_kept(kept: &Kept, forgetter: &Forgetter) {
    if let Some((now_ms, before_ms)) = kept.prune() {
        let pruned = forgetter.vault.book().tables().prune_copies(now_ms, before_ms);
        if let Err(error) = pruned {
            tracing::warn!(%error, "copies of keys could not be removed");
        }
    }
}

/// Looks after keys, notes, forgetting and the stored log once a second.
pub(crate) struct Keeper {
    stopped: Mutex<bool>,
    wake: Condvar,
    heart: Mutex<Option<Heart>>,
}

impl Keeper {
    pub(crate) fn new(heart: Option<Heart>) -> Self {
        Self { stopped: Mutex::new(false), wake: Condvar::new(), heart: Mutex::new(heart) }
    }

    /// Does something with the lease, where there is one.
    pub(crate) fn lease(
        &self,
        progress: &Progress,
        act: impl FnOnce(&mut Heart) -> Result<(), StoreError>,
    ) {
        let mut heart = self.heart.lock().unwrap_or_else(PoisonError::into_inner);
        match heart.as_mut().map(act) {
            Some(Err(StoreError::Overtaken(why))) => progress.set_overtaken(&why),
            Some(Err(error)) => {
                tracing::warn!(%error, "the lease of this replica could not be looked after");
            }
            Some(Ok(())) | None => {}
        }
    }

    pub(crate) fn stop(&self) {
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

    pub(crate) fn run(
        &self,
        lock: &DirLock,
        (ring, kept): (&BookRing, &Kept),
        notes: &Notes,
        forgetter: &Forgetter,
        mut scrub: Scrub,
    ) {
        let (mut ticks, mut more) = (0_u32, false);
        let (mut is_given_back, mut look_for_lost) = (false, None);
        let progress = &notes.ledger.progress;
        loop {
            if lock.why_lost(progress).is_some() {
                // Whatever it would change belongs to somebody else.
                if self.wait() {
                    continue;
                }
                return;
            }
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
            forgetter.look_at_clock(kept);
            if ticks.is_multiple_of(BEAT_TICKS) {
                self.lease(progress, Heart::beat);
            }
            if let Err(error) = forgetter.vault.look_after() {
                tracing::warn!(%error, "the keys of people could not be looked after");
            }
            if let Err(error) = forgetter.let_go_of_idle() {
                tracing::warn!(%error, "keys that are not needed any more have to wait");
            }
            if forgetter.ledger.progress.must_forget() {
                match forgetter.mend() {
                    Ok(()) => (is_given_back, look_for_lost) = (true, Some(ticks + LOST_TICKS)),
                    Err(error) => tracing::error!(%error, "the erased have to be forgotten again"),
                }
            } else if !is_given_back && forgetter.ledger.progress.is_whole() {
                // An earlier run may have ended between the two.
                match forgetter.vault.give_back(false) {
                    Ok(_) => is_given_back = true,
                    Err(error) => tracing::warn!(%error, "keys could not be compared yet"),
                }
            }
            if look_for_lost.is_some_and(|due| ticks >= due) {
                look_for_lost = None;
                let_go_of_lost(forgetter);
            }
            if more || ticks % FORGET_TICKS == 1 {
                more = look_after_forgetting(forgetter);
            }
            let written = if ticks.is_multiple_of(USES_TICKS) {
                look_after_kept(kept, forgetter);
                ring.write_uses()
            } else {
                Ok(())
            };
            if let Err(error) = written.and_then(|()| ring.refresh()) {
                tracing::warn!(%error, "the API keys could not be looked after");
            }
        }
    }
}
