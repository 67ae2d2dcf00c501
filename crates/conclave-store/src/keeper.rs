//! The thread that looks after what is not entries: keys, notes, forgetting, leases and the stored log.
//!
//! **Invariant:** what cannot be done now is logged and done later; nobody waits for it.

use crate::backing::ChangeLookup;
use crate::error::StoreError;
use crate::forget::Forgetter;
use crate::keys::{BookRing, Outbox, OutboxSink};
use crate::ledger::SpoolLedger;
use crate::options::Stamps;
use crate::postgres::Heart;
use crate::scrub::Scrub;
use crate::spool::{Job, Kept};
use conclave_ledger::{Draft, Kind, Value};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the keys and the notes of other processes are looked at.
const KEEPER_TICK: Duration = Duration::from_secs(1);
/// After how many ticks the last uses of keys are written down.
const USES_TICKS: u32 = 60;
/// After how many ticks the lease of a replica is renewed.
const BEAT_TICKS: u32 = 3;
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
    pub(crate) fn lease(&self, act: impl FnOnce(&mut Heart) -> Result<(), StoreError>) {
        let mut heart = self.heart.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = heart.as_mut().map(act) {
            tracing::warn!(%error, "the lease of this replica could not be looked after");
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
        (ring, kept): (&BookRing, &Kept),
        notes: &Notes,
        forgetter: &Forgetter,
        mut scrub: Scrub,
    ) {
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
            if ticks.is_multiple_of(BEAT_TICKS) {
                self.lease(Heart::beat);
            }
            if let Err(error) = forgetter.vault.look_after() {
                tracing::warn!(%error, "the keys of people could not be looked after");
            }
            if let Err(error) = forgetter.let_go_of_idle() {
                tracing::warn!(%error, "keys that are not needed any more have to wait");
            }
            if forgetter.ledger.progress.must_forget() {
                match forgetter.resume() {
                    Ok(again) => {
                        tracing::warn!(
                            again,
                            "the database was put back; the erased are forgotten again"
                        );
                        forgetter.ledger.progress.set_forgotten();
                    }
                    Err(error) => tracing::error!(%error, "the erased have to be forgotten again"),
                }
            }
            if more || ticks % FORGET_TICKS == 1 {
                more = look_after_forgetting(forgetter);
            }
            let written = if ticks.is_multiple_of(USES_TICKS) {
                kept.prune();
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
