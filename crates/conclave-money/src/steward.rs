//! The cost steward: knows every policy, sets money aside before a model is asked, settles after.
//!
//! **Invariant:** where no limit is in force, nothing is asked of a database and nothing is written.
//!
//! **Invariant:** what a turn cost stands in its decision, so that whatever was not settled can be
//! settled from the ledger.

use crate::accounts::{Accounts, AccountsError, Unsettled};
use crate::policies::{KnownPolicy, Policies};
use crate::purse::{Purse, PurseError, Reserve};
use crate::{Crossing, Grant, HoldAsk, Refusal, RequestSize, Runaway};
use conclave_core::{AuditId, MicroUsd, TenantId, Usage};
use conclave_govern::{Line, Period, Price, Scope, Scopes, TenantPolicy};
use conclave_ledger::{Value, tenant_number};
use conclave_ports::StoredDecision;
use conclave_ports::UsageBook;
use conclave_ports::{Archive, Clock, LedgerAlert};
use conclave_ports::{PolicyInForce, PolicySource};
use futures_util::future::{BoxFuture, FutureExt};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// How much longer than a turn its money is held.
const HOLD_GRACE: Duration = Duration::from_secs(60);
/// How many conversations are watched for running away.
const WATCHED_MAX: usize = 10_000;
/// How many alerts are shown.
const ALERTS_MAX: usize = 50;
/// How old a hold is before the ledger is asked about it.
const SETTLED_AFTER_MS: u64 = 5_000;
/// How many holds are looked up at once.
const RECONCILED_AT_ONCE: u32 = 200;

/// Why a turn may not be paid for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unpaid {
    /// One request would cost more than one may.
    #[error(
        "this request could cost up to {} micro-USD, and the request limit is {}", most.0, limit.0
    )]
    Request {
        /// What it could cost.
        most: MicroUsd,
        /// What it may.
        limit: MicroUsd,
    },
    /// A limit would be exceeded.
    #[error(
        "the {} limit of {} micro-USD a {} would be exceeded: {} are left",
        line.key.scope.as_str(), line.limit.0, line.key.period.as_str(), left.0
    )]
    Exceeded {
        /// Which.
        line: Line,
        /// What is left of it.
        left: MicroUsd,
        /// When it begins anew.
        resets_ms: u64,
    },
    /// The conversation runs away and is stopped for a while.
    #[error("this session was refused or spent too much within a minute; it may go on later")]
    RunningAway {
        /// When.
        until_ms: u64,
    },
    /// A budget is in force and nobody knows what the model costs.
    #[error("the price of the model `{0}` is not known, and a budget is in force")]
    Unpriced(String),
    /// A limit is in force and cannot be checked.
    #[error("budgets cannot be checked right now")]
    Unavailable,
}

/// What outlives a reload.
pub struct StewardState {
    accounts: Arc<dyn Accounts>,
    policies: Policies,
    archive: Arc<dyn Archive>,
    usage: Arc<dyn UsageBook>,
    clock: Arc<dyn Clock>,
    running: Mutex<HashSet<[u8; 16]>>,
    watched: Mutex<HashMap<(u64, [u8; 16]), Runaway>>,
    alerts: Mutex<VecDeque<(u64, LedgerAlert)>>,
}

impl StewardState {
    /// Over accounts, records and the ledger.
    #[must_use]
    pub fn new(
        accounts: Arc<dyn Accounts>,
        policies: Policies,
        (archive, usage): (Arc<dyn Archive>, Arc<dyn UsageBook>),
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            accounts,
            policies,
            archive,
            usage,
            clock,
            running: Mutex::default(),
            watched: Mutex::default(),
            alerts: Mutex::default(),
        }
    }

    /// The policies.
    #[must_use]
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What was used, day by day.
    #[must_use]
    pub fn usage(&self) -> &dyn UsageBook {
        &*self.usage
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &dyn Accounts {
        &*self.accounts
    }

    /// What a person should know about budgets, of periods that are not over.
    #[must_use]
    pub fn alerts(&self) -> Vec<LedgerAlert> {
        let now_ms = self.clock.now_ms();
        let mut alerts = lock(&self.alerts);
        alerts.retain(|(until_ms, _)| now_ms < *until_ms);
        alerts.iter().map(|(_, alert)| alert.clone()).collect()
    }

    /// Settles holds whose decision is in the ledger; says how many. Whoever has none yet may still
    /// run, and is charged in full when its time is over.
    ///
    /// # Errors
    /// When the accounts do not answer.
    pub async fn reconcile(&self) -> Result<u32, AccountsError> {
        let before_ms = self.clock.now_ms().saturating_sub(SETTLED_AFTER_MS);
        let mut settled = 0;
        for hold in self.accounts.unsettled(before_ms, RECONCILED_AT_ONCE).await? {
            if lock(&self.running).contains(&hold.id) {
                continue;
            }
            if let Some(cost) = self.cost_of(&hold).await {
                self.accounts.settle(hold.id, cost, Vec::new()).await?;
                settled += 1;
            }
        }
        Ok(settled)
    }

    async fn cost_of(&self, hold: &Unsettled) -> Option<MicroUsd> {
        let id = AuditId(Uuid::from_bytes(hold.id));
        let entries = self.archive.find(hold.tenant, id).await.ok()?;
        let decision = StoredDecision::from_entries(entries).ok()??;
        match decision.public("cost") {
            Some(Value::Uint(cost)) => Some(MicroUsd(*cost)),
            _ => None,
        }
    }

    fn watch<T>(
        &self,
        key: (u64, [u8; 16]),
        now_ms: u64,
        look: impl FnOnce(&mut Runaway) -> T,
    ) -> Option<T> {
        let mut watched = lock(&self.watched);
        if watched.len() >= WATCHED_MAX && !watched.contains_key(&key) {
            watched.retain(|_, run| !run.is_over(now_ms));
            if watched.len() >= WATCHED_MAX {
                return None;
            }
        }
        Some(look(watched.entry(key).or_default()))
    }

    /// When a conversation that is stopped may go on.
    pub fn stopped_until(&self, key: (u64, [u8; 16]), now_ms: u64) -> Option<u64> {
        lock(&self.watched).get(&key).and_then(|run| run.stopped_until(now_ms))
    }

    /// Counts a refusal; says whether that stops the conversation.
    pub fn note_refused(&self, key: (u64, [u8; 16]), now_ms: u64, policy: &TenantPolicy) -> bool {
        self.watch(key, now_ms, |run| run.note_refused(now_ms, &policy.breaker)).unwrap_or(false)
    }

    /// Counts what was spent; says whether that stops the conversation.
    pub fn note_spent(&self, key: (u64, [u8; 16]), spent: MicroUsd, policy: &TenantPolicy) -> bool {
        if policy.breaker.spend_per_minute_usd.is_none() {
            return false;
        }
        let now_ms = self.clock.now_ms();
        let noted = self.watch(key, now_ms, |run| run.note_spent(now_ms, spent, &policy.breaker));
        noted.unwrap_or(false)
    }

    /// Sets money aside and remembers that its turn runs.
    pub async fn hold(&self, ask: HoldAsk) -> Result<crate::HoldAnswer, AccountsError> {
        let id = ask.id;
        lock(&self.running).insert(id);
        let answer = self.accounts.hold(ask).await;
        if !matches!(answer, Ok(Ok(_))) {
            lock(&self.running).remove(&id);
        }
        answer
    }

    /// Hands the settlement over at once; the future only waits for what became of it.
    pub fn settle(
        self: &Arc<Self>,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> impl Future<Output = Vec<Crossing>> + Send + use<> {
        lock(&self.running).remove(&id);
        let state = Arc::clone(self);
        async move {
            state.accounts.settle(id, spent, alerts).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a request is settled from the ledger later");
                Vec::new()
            })
        }
    }

    /// Shows an alert until its period is over.
    pub fn show(&self, crossing: &Crossing) {
        let key = &crossing.line.key;
        let message = format!(
            "A {} limit has reached {} per cent in this {}.",
            key.scope.as_str(),
            crossing.percent,
            key.period.as_str()
        );
        let mut alerts = lock(&self.alerts);
        if alerts.len() >= ALERTS_MAX {
            alerts.pop_front();
        }
        let until_ms = key.period.end_ms(key.number);
        alerts.push_back((until_ms, LedgerAlert { code: "budget", message }));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Policies merged with the configuration's, by tenant.
type Merged = HashMap<TenantId, (KnownPolicy, Arc<TenantPolicy>)>;

/// What one verifier that is asked elsewhere can cost for one candidate.
#[derive(Clone, Copy, Debug)]
pub struct Fee {
    /// How often it is asked.
    pub calls: u64,
    /// A fixed price for each call.
    pub per_call: MicroUsd,
    /// The price of its tokens.
    pub price: Price,
    /// What it is told besides the turn and the candidate.
    pub input_tokens: u64,
    /// What it may answer.
    pub output_tokens: u64,
}

impl Fee {
    fn most(&self, size: &RequestSize) -> MicroUsd {
        let read = size.prompt_tokens.saturating_add(size.output_tokens);
        let usage = Usage {
            input_tokens: read.saturating_add(self.input_tokens),
            output_tokens: self.output_tokens,
        };
        let call = self.per_call.saturating_add(self.price.cost(usage));
        MicroUsd(call.0.saturating_mul(self.calls))
    }
}

/// The steward of one configuration.
pub struct Steward {
    /// What outlives a reload.
    pub state: Arc<StewardState>,
    defaults: BTreeMap<TenantId, Arc<TenantPolicy>>,
    prices: BTreeMap<String, Price>,
    /// Where another model may stand in, the dearest of them.
    dearest: BTreeMap<String, Price>,
    /// What verifiers cost that are asked elsewhere.
    fees: Vec<Fee>,
    hold_for: Duration,
    open: Arc<TenantPolicy>,
    merged: RwLock<Merged>,
}

impl Steward {
    /// With the configuration's policies by tenant, the prices of the models offered, and how long a
    /// turn may take.
    #[must_use]
    pub fn new(
        state: Arc<StewardState>,
        defaults: BTreeMap<TenantId, TenantPolicy>,
        prices: BTreeMap<String, Price>,
        turn_deadline: Duration,
    ) -> Self {
        let defaults = defaults.into_iter().map(|(name, policy)| (name, Arc::new(policy)));
        Self {
            state,
            defaults: defaults.collect(),
            prices,
            dearest: BTreeMap::new(),
            fees: Vec::new(),
            hold_for: turn_deadline + HOLD_GRACE,
            open: Arc::default(),
            merged: RwLock::default(),
        }
    }

    /// What holds for a tenant now, and the version of its own policy.
    #[must_use]
    pub fn policy(&self, tenant: &TenantId) -> (u64, Arc<TenantPolicy>) {
        let own = self.state.policies.of(tenant);
        let stated = self.defaults.get(tenant);
        match (own.version, stated) {
            (0, None) => (0, Arc::clone(&self.open)),
            (0, Some(stated)) => (0, Arc::clone(stated)),
            (version, None) => (version, own.policy),
            (version, Some(stated)) => (version, self.merge(tenant, own, stated)),
        }
    }

    fn merge(
        &self,
        tenant: &TenantId,
        own: KnownPolicy,
        stated: &Arc<TenantPolicy>,
    ) -> Arc<TenantPolicy> {
        let merged = self.merged.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, both)) = merged.get(tenant)
            && *of == own
        {
            return Arc::clone(both);
        }
        drop(merged);
        let both = Arc::new((*own.policy).clone().over(stated));
        let mut merged = self.merged.write().unwrap_or_else(PoisonError::into_inner);
        merged.insert(tenant.clone(), (own, Arc::clone(&both)));
        both
    }

    /// What a model costs a tenant; `None` if nobody knows.
    #[must_use]
    pub fn price(&self, policy: &TenantPolicy, model: &str) -> Option<Price> {
        let stated = self.prices.get(model).copied();
        let own = policy.prices.get(model).copied();
        // How much it can write is a fact about the model, whoever states the price.
        let writes = own.or(stated)?.output_tokens_max.or(stated.and_then(|p| p.output_tokens_max));
        own.or(stated).map(|price| Price { output_tokens_max: writes, ..price })
    }

    /// Knows what those cost who may stand in for a model: the dearest of each chain.
    #[must_use]
    pub fn with_dearest(self, dearest: BTreeMap<String, Price>) -> Self {
        Self { dearest, ..self }
    }

    /// Knows what verifiers cost that are asked elsewhere.
    #[must_use]
    pub fn with_fees(self, fees: Vec<Fee>) -> Self {
        Self { fees, ..self }
    }

    /// The price under which a model is paid for in advance: whoever stands in for it may be dearer.
    pub fn dearest(&self, model: &str, own: Price) -> Price {
        let Some(dearest) = self.dearest.get(model) else { return own };
        Price {
            input_usd_per_million: own.input_usd_per_million.max(dearest.input_usd_per_million),
            output_usd_per_million: own.output_usd_per_million.max(dearest.output_usd_per_million),
            ..own
        }
    }

    /// Whether judging costs nothing.
    pub const fn judges_for_free(&self) -> bool {
        self.fees.is_empty()
    }

    /// What judging one candidate can cost at most.
    pub fn judging(&self, size: &RequestSize) -> MicroUsd {
        self.fees.iter().fold(MicroUsd(0), |sum, fee| sum.saturating_add(fee.most(size)))
    }

    /// Puts together what the accounts are asked.
    pub fn ask(
        &self,
        policy: &TenantPolicy,
        (id, scopes): ([u8; 16], &Scopes),
        most: MicroUsd,
        cheaper: Option<MicroUsd>,
        now_ms: u64,
    ) -> HoldAsk {
        let tenant = tenant_number(scopes.tenant.as_str());
        let hold_ms = u64::try_from(self.hold_for.as_millis()).unwrap_or(u64::MAX);
        HoldAsk {
            id,
            tenant,
            lines: policy.lines(tenant, scopes, now_ms),
            most,
            cheaper: cheaper.map(|most| (most, policy.downgrade_at_percent)),
            now_ms,
            expires_ms: now_ms.saturating_add(hold_ms),
        }
    }

    /// Sets money aside under a tenant's policy. `None` where no limit is in force.
    ///
    /// # Errors
    /// When a limit would be exceeded or cannot be checked; with it the alert that is due.
    pub async fn set_aside(
        &self,
        policy: &TenantPolicy,
        ask: HoldAsk,
    ) -> Result<Option<Grant>, (Unpaid, Option<Crossing>)> {
        if let Some(limit) = policy.max_cost_per_request_usd {
            let least = ask.cheaper.map_or(ask.most, |(most, _)| most.min(ask.most));
            if least > limit.0 {
                return Err((Unpaid::Request { most: least, limit: limit.0 }, None));
            }
        }
        if ask.lines.is_empty() || ask.most.0 == 0 {
            return Ok(None);
        }
        match self.state.hold(ask).await {
            Ok(Ok(grant)) => Ok(Some(grant)),
            Ok(Err((Refusal { line, left }, crossing))) => {
                let resets_ms = line.key.period.end_ms(line.key.number);
                Err((Unpaid::Exceeded { line, left, resets_ms }, crossing))
            }
            Err(error) => {
                tracing::error!(%error, "a budget could not be checked");
                Err((Unpaid::Unavailable, None))
            }
        }
    }
}

impl PolicySource for Steward {
    fn in_force(&self, tenant: &TenantId) -> PolicyInForce {
        let (version, policy) = self.policy(tenant);
        PolicyInForce { version, policy }
    }
}

impl Purse for Steward {
    fn reserve(&self, ask: Reserve) -> BoxFuture<'_, Result<Grant, PurseError>> {
        async move {
            let (_, policy) = self.policy(&ask.scopes.tenant);
            let (limit, cheaper) = (policy.max_cost_per_request_usd, ask.cheaper);
            // What one request may not cost is not asked for at all.
            let too_dear = cheaper.filter(|_| limit.is_some_and(|limit| ask.most > limit.0));
            let most = too_dear.unwrap_or(ask.most);
            let cheaper = cheaper.filter(|_| too_dear.is_none());
            let hold = self.ask(&policy, (ask.id, &ask.scopes), most, cheaper, ask.now_ms);
            let set = self.set_aside(&policy, hold).await.map(|grant| {
                let held = grant.map_or(most, |grant| grant.held);
                let is_cheaper = too_dear.is_some() || grant.is_some_and(|one| one.is_cheaper);
                Grant { held, is_cheaper }
            });
            set.map_err(|(unpaid, crossing)| match unpaid {
                Unpaid::Request { limit, .. } => PurseError::Exceeded {
                    scope: Scope::Request,
                    limit,
                    left: limit,
                    crossing: None,
                    resets_ms: None,
                },
                Unpaid::Exceeded { line, left, resets_ms } => PurseError::Exceeded {
                    scope: line.key.scope,
                    limit: line.limit,
                    left,
                    crossing: crossing.map(Box::new),
                    resets_ms: Some(resets_ms),
                },
                other => PurseError::Unavailable(other.to_string()),
            })
        }
        .boxed()
    }

    fn settle<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: [u8; 16],
        spent: MicroUsd,
    ) -> BoxFuture<'a, Result<Vec<Crossing>, PurseError>> {
        lock(&self.state.running).remove(&id);
        let (_, policy) = self.policy(tenant);
        let settled = self.state.accounts.settle(id, spent, policy.alert_at_percent.clone());
        let named = |error: AccountsError| PurseError::Unavailable(error.to_string());
        async move { settled.await.map_err(named) }.boxed()
    }
}

/// When a limit of a period begins anew.
#[must_use]
pub fn resets_ms(period: Period, now_ms: u64) -> u64 {
    period.end_ms(period.number_at(now_ms))
}
