//! Forgetting: erasing a person, deleting what is due, replacing keys.
//!
//! **Invariant:** keys go first and bodies with the entry that says so: the drainer deletes bodies in
//! the transaction that takes the entry into the log, so that neither is ever seen without the other.
//!
//! **Invariant:** what was begun is finished, after a crash too; only then is it called done.

mod erase;
mod retention;
mod words;

pub(crate) use erase::Register;
pub(crate) use retention::Retention;
pub use retention::{RetentionRules, TenantRetention};
pub(crate) use words::{Due, Purging, SESSIONS_MAX, WordTables};

use crate::error::StoreError;
use crate::ledger::SpoolLedger;
use crate::options::Stamps;
use crate::spool::{Job, Kept};
use crate::vault::{RootKey, Vault};
use crate::watch::Watch;
use conclave_engine::{Appended, Clock, Entropy};
use conclave_ledger::{Draft, Kind, Value};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keys are replaced so long after an erasure: a day before the seven that a receipt promises.
const ROTATE_AFTER_MS: u64 = 6 * 24 * 3600 * 1000;

/// Forgets on behalf of one data directory.
pub(crate) struct Forgetter {
    pub(crate) vault: Arc<Vault>,
    pub(crate) ledger: Arc<SpoolLedger>,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) words: Arc<dyn WordTables>,
    pub(crate) patience: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the clock can be believed.
    pub(crate) watch: Watch,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// One thing is forgotten at a time.
    pub(crate) turn: Mutex<()>,
    /// How far this replica has let go of idle keys.
    pub(crate) idle: Mutex<LetGo>,
}

/// How far a replica has let go of keys that are about to be deleted.
#[derive(Default)]
pub(crate) struct LetGo {
    /// Up to this number it has, and has said so.
    seen: i64,
    /// Up to this number it has; it says so when the spool is drained this far.
    pending: Option<(i64, u64)>,
}

impl Forgetter {
    /// Waits until everything appended so far is in the database.
    fn drained(&self) -> Result<(), StoreError> {
        let pushed = self.ledger.intake.hurry();
        let drained = self.ledger.progress.wait_drained(pushed, self.patience);
        drained.map_err(StoreError::Unsettled)
    }

    fn append(&self, draft: Draft) -> Result<Appended, StoreError> {
        let job = Job::new(draft).map_err(|error| StoreError::Key(error.to_string()))?;
        let settled = self.ledger.intake.submit(job).wait();
        settled.map_err(|error| StoreError::Key(error.to_string()))
    }

    /// Looks whether the clock can be believed, and says so where it matters.
    pub(crate) fn look_at_clock(&self, kept: &Kept) {
        let doubt = self.watch.now_ms().err();
        kept.doubt_clock(doubt.is_some());
        self.ledger.progress.set_clock_doubt(doubt);
    }

    /// Does what has to follow when a database came back older: forgets again who was erased, and gives it
    /// the keys it lost.
    pub(crate) fn mend(&self) -> Result<(), StoreError> {
        let again = self.resume()?;
        let given = self.vault.give_back(true)?;
        tracing::warn!(again, given, "the database was put back; the erased are forgotten again");
        self.ledger.progress.set_forgotten();
        Ok(())
    }

    /// Replaces every key that wraps others, if it is time. Says whether it was.
    pub(crate) fn rotate_if_due(&self) -> Result<bool, StoreError> {
        let (erased_ms, _) = self.vault.book().tables().since_rotation()?;
        let due = |erased: u64| self.clock.now_ms() >= erased.saturating_add(ROTATE_AFTER_MS);
        if !erased_ms.is_some_and(due) {
            return Ok(false);
        }
        if self.vault.book().is_external() {
            tracing::warn!(
                "somebody was erased and the root key is kept elsewhere: replace it with \
                 `conclave keys rotate-epoch --new-root-key`, or copies made before stay readable"
            );
        }
        match self.rotate(None) {
            // Another replica was faster.
            Err(StoreError::Replaced) => Ok(false),
            rotated => rotated.map(|_| true),
        }
    }

    /// Replaces every key that wraps others now; says how many keys of people were wrapped anew.
    pub(crate) fn rotate(&self, given: Option<RootKey>) -> Result<u64, StoreError> {
        let rewrapped = self.vault.rotate(given)?;
        let public = Value::map([("keys", rewrapped.into())]);
        self.append(Draft { public, ..self.stamps.draft(Kind::KeyEpoch) })?;
        tracing::info!(rewrapped, "the keys that wrap others were replaced");
        Ok(rewrapped)
    }
}

#[cfg(test)]
mod legacy_tests;
