//! What every route shares.

use crate::limits::GatewayLimits;
use crate::metrics::Metrics;
use crate::refusals::RefusalLog;
use conclave_engine::{Engine, KeyRing, Proofs};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Semaphore;

/// How the gateway answers, where configuration has a say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    /// A blocked input is answered with 200 and `content_filter` instead of an error.
    pub reply_on_input_block: bool,
    /// The `conclave` key is left out of replies, for clients that refuse unknown fields.
    pub omit_own_fields: bool,
}

/// What every route shares.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    engine: RwLock<(Arc<Engine>, Manners)>,
    keys: Arc<dyn KeyRing>,
    proofs: Arc<dyn Proofs>,
    limits: GatewayLimits,
    metrics: Metrics,
    refusals: RefusalLog,
    turns: Arc<Semaphore>,
}

impl Gateway {
    /// Wires a gateway.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        manners: Manners,
        keys: Arc<dyn KeyRing>,
        proofs: Arc<dyn Proofs>,
        limits: GatewayLimits,
    ) -> Self {
        let turns = Arc::new(Semaphore::new(limits.turns_max));
        let shared = Shared {
            engine: RwLock::new((engine, manners)),
            keys,
            proofs,
            limits,
            metrics: Metrics::default(),
            refusals: RefusalLog::default(),
            turns,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The engine in force; a request keeps the one it began with.
    #[must_use]
    pub fn engine(&self) -> Arc<Engine> {
        self.shared.engine.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// How to answer.
    #[must_use]
    pub fn manners(&self) -> Manners {
        self.shared.engine.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Puts a new engine in force for requests that come from now on.
    pub fn reload(&self, engine: Arc<Engine>, manners: Manners) {
        *self.shared.engine.write().unwrap_or_else(PoisonError::into_inner) = (engine, manners);
    }

    /// Writes summed-up refusals; called every second and at the end.
    pub fn flush_refusals(&self) {
        self.shared.refusals.flush(&self.engine());
    }

    /// Resolves when no turn is in flight any more: also those whose clients have gone away.
    pub async fn idle(&self) {
        let all = u32::try_from(self.shared.limits.turns_max).unwrap_or(u32::MAX);
        // Fails only when the semaphore is closed, and nobody closes it.
        let _ = self.shared.turns.acquire_many(all).await;
    }

    pub(crate) fn keys(&self) -> &dyn KeyRing {
        &*self.shared.keys
    }

    pub(crate) fn proofs(&self) -> &dyn Proofs {
        &*self.shared.proofs
    }

    pub(crate) fn limits(&self) -> &GatewayLimits {
        &self.shared.limits
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn refusals(&self) -> &RefusalLog {
        &self.shared.refusals
    }

    pub(crate) fn turns(&self) -> &Arc<Semaphore> {
        &self.shared.turns
    }
}
