//! What votes on replies.
//!
//! **Invariant:** a verifier is shown the case and nothing else: no ballot of anybody.

use conclave_core::{MicroUsd, Opinion, Seat};
use conclave_verifiers::Case;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why a verifier could not judge.
#[derive(Clone, Debug, Error)]
#[error("verifier failed: {0}")]
pub struct VerifierError(pub String);

/// What a verifier answered, and what asking it cost.
#[derive(Clone, Debug)]
pub struct Hearing {
    /// Its opinion, nothing to judge, or why it could not.
    pub answer: Result<Option<Opinion>, VerifierError>,
    /// What was spent, also where no opinion came of it.
    pub cost: MicroUsd,
}

/// Where a verifier sends what it judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Who runs it.
    pub provider: Arc<str>,
    /// The model that reads it, or the verifier's own name where it is no model.
    pub model: Arc<str>,
}

/// What it counts as when a verifier gives no valid vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFailing {
    /// Full dissent.
    #[default]
    Dissents,
    /// Nothing: the others decide. Never for a verifier that is required.
    LeftOut,
}

/// Something that votes. It is shown the case and nothing else: no ballot of anybody.
pub trait Verifier: Send + Sync {
    /// Its place on the panel.
    fn seat(&self) -> &Seat;
    /// How long it may take.
    fn timeout(&self) -> Duration;
    /// Its opinion, or `None` when there is nothing in its field to judge.
    fn judge(&self, case: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>>;
    /// The same with what it cost; this is what the panel asks.
    fn hear(&self, case: Arc<Case>) -> BoxFuture<'_, Hearing> {
        Box::pin(async move { Hearing { answer: self.judge(case).await, cost: MicroUsd(0) } })
    }
    /// The most that hearing it on a case can cost: charged where nobody saw the end of the call.
    fn most(&self, _case: &Case) -> MicroUsd {
        MicroUsd(0)
    }
    /// What a failure counts as.
    fn when_failing(&self) -> WhenFailing {
        WhenFailing::Dissents
    }
    /// Whether it need not be asked about people who are long known and calm.
    fn may_be_spared(&self) -> bool {
        false
    }
    /// Whether it answers at once, here, and costs nothing: then nobody need remember what it said.
    fn is_quick(&self) -> bool {
        false
    }
    /// Who is shown the case besides this program; nobody where it stays here.
    fn elsewhere(&self) -> Option<Elsewhere> {
        None
    }
    /// The digest of the fixed instructions it judges by, where it has any.
    fn basis(&self) -> Option<[u8; 32]> {
        None
    }
}
