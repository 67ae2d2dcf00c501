//! The write side of the ledger: the engine's port in front of the spool.
//!
//! **Invariant:** texts are hashed and laid out by the caller's thread; the writer's thread only
//! numbers, seals, writes and syncs.
//!
//! **Invariant:** a text never reaches the writer without the key it will be sealed with.

use crate::spool::{Intake, Job, Progress, Sealing};
use crate::vault::{Owner, Vault};
use conclave_engine::{AppendError, Appended, Entropy, Ledger, LedgerState};
use conclave_ledger::{Body, Draft, SealingKey};
use futures_util::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// Appends through the spool.
pub(crate) struct SpoolLedger {
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl SpoolLedger {
    /// Whose key seals the words of an entry.
    fn owner(&self, draft: &Draft) -> Owner {
        draft.subject.map_or_else(|| self.vault.nobody(), Owner::Pseudonym)
    }

    fn job(&self, draft: Draft, body: &Body, key: Arc<SealingKey>) -> Result<Job, AppendError> {
        let mut nonce = [0; 24];
        self.entropy.fill(&mut nonce);
        let sealing = Sealing { words: body.lay_out(key.id(), &nonce), key };
        Job::sealed(draft, body, sealing).map_err(|error| AppendError::Refused(error.to_string()))
    }

    async fn append_words(&self, draft: Draft, body: Body) -> Result<Appended, AppendError> {
        let (tenant, owner) = (draft.tenant, self.owner(&draft));
        let key = match self.vault.held(tenant, &owner) {
            Some(key) => key,
            None => {
                let vault = Arc::clone(&self.vault);
                let made = tokio::task::spawn_blocking(move || vault.ensure(tenant, owner, None));
                let made = made.await.unwrap_or_else(|error| Err(error.to_string()));
                made.map_err(AppendError::Unwritable)?
            }
        };
        self.intake.append(self.job(draft, &body, key)?).await
    }
}

impl Ledger for SpoolLedger {
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>> {
        if !body.is_empty() {
            return self.append_words(draft, body).boxed();
        }
        let job = Job::new(draft).map_err(|error| AppendError::Refused(error.to_string()));
        async move { self.intake.append(job?).await }.boxed()
    }

    fn append_soon(&self, draft: Draft, body: Body) {
        let job = if body.is_empty() {
            Job::new(draft).map_err(|error| AppendError::Refused(error.to_string()))
        } else {
            // This may not wait for a key, so it must be in memory.
            let missing =
                || AppendError::Unwritable("the key of its words is not at hand".to_owned());
            let key = self.vault.held(draft.tenant, &self.owner(&draft)).ok_or_else(missing);
            key.and_then(|key| self.job(draft, &body, key))
        };
        match job {
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
        if let Some(why) = self.progress.overtaken() {
            return Err(AppendError::Refused(why));
        }
        self.progress
            .spool_trouble()
            .map_or(Ok(()), |trouble| Err(AppendError::Unwritable(trouble)))
    }

    fn state(&self) -> LedgerState {
        self.progress.ledger_state()
    }
}
