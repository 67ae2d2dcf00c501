//! The write side of the ledger: the engine's port in front of the spool.
//!
//! **Invariant:** texts are hashed and encoded by the caller's thread; the writer's thread only
//! numbers, writes and syncs.

use crate::spool::{Intake, Job, Progress};
use conclave_engine::{AppendError, Appended, Ledger, LedgerState};
use conclave_ledger::{Body, Draft};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// Appends through the spool.
pub(crate) struct SpoolLedger {
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
}

impl Ledger for SpoolLedger {
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>> {
        let job = Job::new(draft, &body).map_err(|error| AppendError::Refused(error.to_string()));
        async move { self.intake.append(job?).await }.boxed()
    }

    fn append_soon(&self, draft: Draft, body: Body) {
        match Job::new(draft, &body) {
            Ok(job) => self.intake.append_soon(job),
            Err(error) => {
                tracing::error!(%error, "an entry could not be encoded");
                self.intake.count_dropped();
            }
        }
    }

    fn dropped(&self) -> u64 {
        self.intake.dropped()
    }

    fn health(&self) -> Result<(), AppendError> {
        self.progress
            .spool_trouble()
            .map_or(Ok(()), |trouble| Err(AppendError::Unwritable(trouble)))
    }

    fn state(&self) -> LedgerState {
        self.progress.ledger_state()
    }
}
