//! The panel: everyone judges the same case at the same time, nobody sees another's ballot.
//!
//! **Invariant:** whoever fails, is late or panics has abstained; nobody is counted safe by absence.

use crate::ports::Verifier;
use conclave_core::{Abstention, Ballot, Opinion, intake};
use conclave_verifiers::{Case, Judge};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The verifiers that sit on every panel.
#[derive(Clone)]
pub struct Panel {
    verifiers: Arc<[Arc<dyn Verifier>]>,
}

impl Panel {
    /// Seats these verifiers.
    #[must_use]
    pub fn new(verifiers: Vec<Arc<dyn Verifier>>) -> Self {
        Self { verifiers: verifiers.into() }
    }

    /// Lets everyone judge the case; answers within `budget`.
    pub async fn judge(&self, case: Arc<Case>, budget: Duration) -> Vec<Ballot> {
        join_all(self.verifiers.iter().map(|verifier| ballot(&**verifier, case.clone(), budget)))
            .await
    }

    /// Who sits, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.verifiers.iter().map(|verifier| &*verifier.seat().verifier)
    }
}

async fn ballot(verifier: &dyn Verifier, case: Arc<Case>, budget: Duration) -> Ballot {
    let started = Instant::now();
    // `async` so that a panic while the future is being made is caught as well.
    let judged = AssertUnwindSafe(async { verifier.judge(case).await }).catch_unwind();
    let answer = match timeout(verifier.timeout().min(budget), judged).await {
        Ok(Ok(Ok(opinion))) => Ok(opinion),
        Ok(Ok(Err(error))) => {
            tracing::warn!(verifier = %verifier.seat().verifier, %error, "verifier failed");
            Err(Abstention::Failed)
        }
        Ok(Err(_panic)) => Err(Abstention::Panicked),
        Err(_late) => Err(Abstention::Late),
    };
    let latency_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
    intake(verifier.seat().clone(), answer, latency_ms)
}

/// A built-in judge on the panel: it answers at once and cannot fail, but may panic.
pub struct BuiltIn {
    judge: Box<dyn Judge>,
    seat: conclave_core::Seat,
}

impl BuiltIn {
    /// Seats a judge in its own place.
    #[must_use]
    pub fn new(judge: Box<dyn Judge>) -> Self {
        let seat = judge.seat();
        Self { judge, seat }
    }

    /// Seats a judge in a place that configuration has changed.
    #[must_use]
    pub fn seated(judge: Box<dyn Judge>, seat: conclave_core::Seat) -> Self {
        Self { judge, seat }
    }
}

impl Verifier for BuiltIn {
    fn seat(&self) -> &conclave_core::Seat {
        &self.seat
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn judge(
        &self,
        case: Arc<Case>,
    ) -> BoxFuture<'_, Result<Option<Opinion>, crate::ports::VerifierError>> {
        std::future::ready(Ok(self.judge.judge(&case))).boxed()
    }
}
