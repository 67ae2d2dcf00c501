//! What every route shares.

use crate::admission::body::BodyRoom;
use crate::admission::idempotency::{RunningAnswers, remove_expired};
use crate::admission::limits::GatewayLimits;
use crate::admission::rates::RateLimiter;
use crate::connection::serve::ServerState;
use crate::error::ApiError;
use crate::observation::metrics::{Metrics, ServerGauges};
use crate::observation::refusals::RefusalLog;
use conclave_core::TenantId;
use conclave_engine::trace::SpanSink;
use conclave_engine::{Engine, KeyDesk, KeyRing, Post, Proofs, Records};
use conclave_govern::Rates;
use conclave_people::{Appeals, GuardedHandOut, People};
use conclave_recipes::RecipeRunner;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Says why a provider may not be asked to fetch from an address that a client names.
#[derive(Clone, Copy, Debug)]
pub struct LinkCheck(pub fn(&str) -> Result<(), String>);

impl Default for LinkCheck {
    fn default() -> Self {
        Self(|_| Err("no address is permitted".to_owned()))
    }
}

/// How the gateway answers, where configuration has a say.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewaySettings {
    /// A blocked input is answered with 200 and `content_filter` instead of an error.
    pub reply_on_input_block: bool,
    /// The `conclave` key is left out of replies, for clients that refuse unknown fields.
    pub omit_own_fields: bool,
    /// Whether a provider may be asked to fetch from an address that a client names; the error says why not.
    pub link_check: LinkCheck,
    /// How fast anybody may ask.
    pub rates: Rates,
    /// How many requests a minute without a valid key are looked at; 0 for all.
    pub keyless_requests_per_minute: u32,
}

/// What a configuration wires together; a reload replaces all of it.
#[derive(Clone)]
pub struct Services {
    /// Answers turns.
    pub engine: Arc<Engine>,
    /// Runs recipes.
    pub recipes: Arc<RecipeRunner>,
    /// Knows what people agree to, lay down and decide.
    pub people: Arc<People>,
    /// Takes appeals in, and knows who may file one.
    pub appeals: Arc<Appeals>,
    /// Hands out what was held.
    pub hand_out: Arc<GuardedHandOut>,
    /// Sends to places that tenants named, under guard.
    pub post: Arc<dyn Post>,
    /// Makes and withdraws API keys.
    pub key_desk: Arc<dyn KeyDesk>,
    /// How to answer.
    pub settings: GatewaySettings,
}

/// How many may wait for their words to be looked at, for somebody in crisis, beyond a limit.
const LOOKS_WAITING_MAX: usize = 256;

/// What every route shares.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayParts>,
}

struct GatewayParts {
    services: RwLock<Services>,
    keys: Arc<dyn KeyRing>,
    proofs: Arc<dyn Proofs>,
    limits: GatewayLimits,
    room: BodyRoom,
    metrics: Metrics,
    refusals: RefusalLog,
    turns: Arc<Semaphore>,
    spans: OnceLock<Arc<dyn SpanSink>>,
    server: ServerState,
    limiter: RateLimiter,
    looks: Semaphore,
    looks_waiting: Semaphore,
    running_answers: RunningAnswers,
}

/// Turns beyond a limit whose words are looked at together: half of the machine stays with those within.
fn looks_max() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

impl Gateway {
    /// A gateway before an engine, with nothing in flight.
    #[must_use]
    pub fn new(
        services: Services,
        keys: Arc<dyn KeyRing>,
        proofs: Arc<dyn Proofs>,
        limits: GatewayLimits,
    ) -> Self {
        let turns = Arc::new(Semaphore::new(limits.turns_max));
        let room = BodyRoom::new(&limits);
        let shared = GatewayParts {
            services: RwLock::new(services),
            keys,
            proofs,
            limits,
            room,
            metrics: Metrics::default(),
            refusals: RefusalLog::default(),
            turns,
            spans: OnceLock::new(),
            server: ServerState::default(),
            limiter: RateLimiter::default(),
            looks: Semaphore::new(looks_max()),
            looks_waiting: Semaphore::new(LOOKS_WAITING_MAX),
            running_answers: RunningAnswers::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What is in force; a request keeps what it began with.
    #[must_use]
    pub fn services(&self) -> Services {
        self.in_force().clone()
    }

    /// The engine in force.
    #[must_use]
    pub fn engine(&self) -> Arc<Engine> {
        self.in_force().engine.clone()
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> GatewaySettings {
        self.in_force().settings
    }

    fn in_force(&self) -> RwLockReadGuard<'_, Services> {
        self.shared.services.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a configuration that was refused while running.
    pub fn note_refused_reload(&self) {
        self.server().counters().reloaded(false);
    }

    /// What is known where connections come in.
    #[must_use]
    pub fn server(&self) -> &ServerState {
        &self.shared.server
    }

    /// What the page of metrics needs to know from here.
    pub(crate) fn server_gauges(&self, version: &str) -> ServerGauges {
        let limits = &self.shared.limits;
        ServerGauges {
            turns: limits.turns_max.saturating_sub(self.shared.turns.available_permits()),
            turns_max: limits.turns_max,
            connections_max: limits.connections_max,
            is_draining: self.server().is_draining(),
            spans: self.span_sink().map(|sink| sink.counted()),
            version: version.to_owned(),
        }
    }

    /// Puts what a new configuration wires in force for requests that come from now on.
    pub fn reload(&self, services: Services) {
        self.server().counters().reloaded(true);
        *self.shared.services.write().unwrap_or_else(PoisonError::into_inner) = services;
    }

    /// Says where spans go; only the first word on it counts.
    pub fn collect_spans(&self, sink: Arc<dyn SpanSink>) {
        // Fails where spans go somewhere already.
        let _ = self.shared.spans.set(sink);
    }

    /// Writes summed-up refusals; called every second and at the end.
    pub fn flush_refusals(&self) {
        self.shared.refusals.flush(&self.engine());
    }

    /// Resolves when no turn is in flight any more: also those whose clients have gone away.
    pub async fn wait_until_idle(&self) {
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

    pub(crate) fn limiter(&self) -> &RateLimiter {
        &self.shared.limiter
    }

    /// How fast a tenant may ask: the operator's word and the tenant's own, whichever is stricter.
    pub(crate) fn rates(&self, tenant: &TenantId) -> Rates {
        let Services { engine, settings, .. } = self.services();
        settings.rates.strictest(engine.policies.in_force(tenant).policy.rates)
    }

    /// A place to look at the words of a turn that a limit refuses; `None` where too many wait already.
    pub(crate) async fn look(&self) -> Option<SemaphorePermit<'_>> {
        let waiting = self.shared.looks_waiting.try_acquire().ok()?;
        let look = self.shared.looks.acquire().await.ok();
        drop(waiting);
        look
    }

    /// Removes kept replies and counted runs whose time is over; called every minute.
    pub async fn remove_expired(&self) {
        if let Some(records) = self.records() {
            remove_expired(&*records, self.engine().clock.now_ms()).await;
        }
        self.services().recipes.forget_old_runs().await;
    }

    /// Where answers and runs are kept, if anywhere.
    pub(crate) fn records(&self) -> Option<Arc<dyn Records>> {
        self.in_force().recipes.records.clone()
    }

    pub(crate) fn running_answers(&self) -> &RunningAnswers {
        &self.shared.running_answers
    }

    pub(crate) fn limits(&self) -> &GatewayLimits {
        &self.shared.limits
    }

    /// What all large bodies may hold together.
    pub(crate) fn room(&self) -> &BodyRoom {
        &self.shared.room
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn refusals(&self) -> &RefusalLog {
        &self.shared.refusals
    }

    pub(crate) fn span_sink(&self) -> Option<&Arc<dyn SpanSink>> {
        self.shared.spans.get()
    }

    pub(crate) fn turns(&self) -> &Arc<Semaphore> {
        &self.shared.turns
    }

    /// A place among the turns in flight. Beyond their limit nobody waits in line: that would hide the
    /// overload.
    pub(crate) fn enter_turn(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())
    }
}
