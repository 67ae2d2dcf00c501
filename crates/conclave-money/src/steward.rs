//! The cost steward: knows every policy, reserves money before a model is asked, settles after.
//!
//! **Invariant:** where no limit is in force, nothing is asked of a database and nothing is written.
//!
//! **Invariant:** what a turn cost stands in its decision, so that whatever was not settled can be
//! settled from the ledger.

use crate::accounts::{Accounts, AccountsError};
use crate::likely::RecentCosts;
use crate::page::{CheaperOption, CostBound, Crossing, Reservation, ReservationOrder};
use crate::policies::{KnownPolicy, Policies};
use crate::refusal::BudgetRefusal;
use crate::runaway::RunawayBreaker;
use crate::size::RequestSize;
use conclave_core::{AuditId, MicroUsd, TenantId, Usage};
use conclave_govern::{Price, Scopes, TenantPolicy};
use conclave_ledger::{Value, tenant_number};
use conclave_ports::{
    Archive, ArchiveError, Clock, LedgerAlert, PolicyInForce, PolicySource, StoredDecision,
    StoredEntry, StoredError, UsageBook,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// How much longer than a turn may take its reservation waits to be settled.
const SETTLE_GRACE: Duration = Duration::from_secs(60);
/// How many payers are watched for running away.
const WATCHED_MAX: usize = 10_000;
/// How many alerts are shown.
const ALERTS_MAX: usize = 50;
/// How old a reservation is before the ledger is asked about it.
const RECONCILED_AFTER_MS: u64 = 5_000;
/// How many reservations are looked up at once.
const RECONCILED_AT_ONCE: u32 = 200;

/// What a request asks to have reserved.
#[derive(Clone, Copy, Debug)]
pub struct ReservationRequest<'a> {
    /// That of the decision the money is for: the same id asked for twice is one reservation.
    pub id: [u8; 16],
    /// The policy in force.
    pub policy: &'a TenantPolicy,
    /// Whose accounts it counts towards.
    pub scopes: &'a Scopes,
    /// What the request with its verifiers and regenerations can cost.
    pub cost: CostBound,
    /// The same with a cheaper model, where another may be asked.
    pub cheaper: Option<CostBound>,
    /// Who is watched for running away.
    pub payer: Payer,
    /// The time the request came, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Who is watched for running away: a conversation, or whoever asks for the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Payer {
    /// The tenant's number.
    pub tenant: u64,
    /// A pseudonym within the tenant.
    pub id: [u8; 16],
}

/// Why money could not be settled from the ledger.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The accounts did not answer.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The ledger did not answer.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// What outlives a reload.
pub struct StewardState {
    accounts: Arc<dyn Accounts>,
    policies: Policies,
    archive: Arc<dyn Archive>,
    usage: Arc<dyn UsageBook>,
    clock: Arc<dyn Clock>,
    /// Reservations of turns that run here, and when nobody is believed to settle them any more.
    running: Mutex<HashMap<[u8; 16], u64>>,
    watched: Mutex<HashMap<Payer, RunawayBreaker>>,
    recent: RecentCosts,
    alerts: Mutex<VecDeque<ShownAlert>>,
}

struct ShownAlert {
    until_ms: u64,
    alert: LedgerAlert,
}

impl StewardState {
    /// Over accounts, records and the ledger.
    #[must_use]
    pub fn new(
        accounts: Arc<dyn Accounts>,
        policies: Policies,
        archive: Arc<dyn Archive>,
        usage: Arc<dyn UsageBook>,
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
            recent: RecentCosts::default(),
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
        alerts.retain(|shown| now_ms < shown.until_ms);
        alerts.iter().map(|shown| shown.alert.clone()).collect()
    }

    /// Settles reservations whose decision is in the ledger; says how many. Whoever has none yet may
    /// still run, and is charged in full when its time is over.
    ///
    /// # Errors
    /// When the accounts or the ledger do not answer.
    pub async fn reconcile(&self) -> Result<u32, ReconcileError> {
        let now_ms = self.clock.now_ms();
        lock(&self.running).retain(|_, expires_ms| now_ms < *expires_ms);
        let before_ms = now_ms.saturating_sub(RECONCILED_AFTER_MS);
        let mut settled = 0;
        for open in self.accounts.unsettled(before_ms, RECONCILED_AT_ONCE).await? {
            if lock(&self.running).contains_key(&open.id) {
                continue;
            }
            let id = AuditId(Uuid::from_bytes(open.id));
            let cost = match recorded_cost(self.archive.find(open.tenant, id).await?) {
                Ok(Some(cost)) => cost,
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(%id, %error, "what a decision cost cannot be read");
                    continue;
                }
            };
            match self.accounts.settle(open.id, cost, Vec::new()).await {
                Ok(_) => settled += 1,
                Err(AccountsError::Unreadable(error)) => tracing::error!(%error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(settled)
    }

    /// Where as many are watched as can be, nobody else is: `false`.
    fn watch(
        &self,
        payer: Payer,
        now_ms: u64,
        count: impl FnOnce(&mut RunawayBreaker) -> bool,
    ) -> bool {
        let mut watched = lock(&self.watched);
        if watched.len() >= WATCHED_MAX && !watched.contains_key(&payer) {
            watched.retain(|_, breaker| !breaker.is_idle(now_ms));
            if watched.len() >= WATCHED_MAX {
                return false;
            }
        }
        count(watched.entry(payer).or_default())
    }

    fn stopped_until(&self, payer: Payer, now_ms: u64) -> Option<u64> {
        lock(&self.watched).get(&payer).and_then(|breaker| breaker.stopped_until(now_ms))
    }

    fn count_refusal(&self, payer: Payer, now_ms: u64, policy: &TenantPolicy) {
        let stops = |breaker: &mut RunawayBreaker| breaker.count_refusal(now_ms, &policy.breaker);
        if self.watch(payer, now_ms, stops) {
            tracing::warn!(tenant = payer.tenant, "whoever was refused too often is stopped");
        }
    }

    fn count_spending(&self, payer: Payer, spent: MicroUsd, policy: &TenantPolicy) {
        if policy.breaker.spend_per_minute_usd.is_none() {
            return;
        }
        let now_ms = self.clock.now_ms();
        let stops =
            |breaker: &mut RunawayBreaker| breaker.count_spending(now_ms, spent, &policy.breaker);
        if self.watch(payer, now_ms, stops) {
            tracing::warn!(tenant = payer.tenant, "whoever spent too fast is stopped");
        }
    }

    async fn reserve(&self, order: ReservationOrder) -> Result<Reservation, BudgetRefusal> {
        let expires_ms = order.expires_ms;
        match self.accounts.reserve(order).await {
            Ok(outcome) => {
                let reservation = outcome.map_err(BudgetRefusal::LineExceeded)?;
                // Only now: whoever stops waiting for an answer would never be settled here.
                lock(&self.running).insert(reservation.id, expires_ms);
                Ok(reservation)
            }
            Err(error) => {
                tracing::error!(%error, "a budget could not be checked");
                Err(BudgetRefusal::Unavailable)
            }
        }
    }

    async fn settle(&self, id: [u8; 16], spent: MicroUsd, alerts: Vec<u8>) -> Vec<Crossing> {
        let settled = self.accounts.settle(id, spent, alerts).await;
        lock(&self.running).remove(&id);
        settled.unwrap_or_else(|error| {
            let id = Uuid::from_bytes(id);
            tracing::error!(%id, %error, "a request is settled from the ledger later");
            Vec::new()
        })
    }

    /// Shows an alert until its period is over.
    pub fn show_alert(&self, crossing: &Crossing) {
        let key = &crossing.line.key;
        let message = format!(
            "Of the {} limit of {} a {}, {} are spent: {} per cent are reached.",
            key.scope.as_str(),
            crossing.line.limit,
            key.period.as_str(),
            crossing.spent,
            crossing.percent
        );
        let mut alerts = lock(&self.alerts);
        if alerts.len() >= ALERTS_MAX {
            alerts.pop_front();
        }
        let alert = LedgerAlert { code: "budget", message };
        alerts.push_back(ShownAlert { until_ms: key.ends_ms(), alert });
    }
}

/// What a decision says it cost; `None` where there is no decision yet.
fn recorded_cost(entries: Vec<StoredEntry>) -> Result<Option<MicroUsd>, StoredError> {
    let Some(decision) = StoredDecision::from_entries(entries)? else { return Ok(None) };
    match decision.public("cost") {
        Some(Value::Uint(cost)) => Ok(Some(MicroUsd(*cost))),
        _ => Err(StoredError::Field("cost")),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Policies merged with the configuration's, by tenant.
type Merged = HashMap<TenantId, (KnownPolicy, Arc<TenantPolicy>)>;

/// What one verifier that is asked elsewhere charges for one candidate.
#[derive(Clone, Debug)]
pub struct VerifierFee {
    /// How often it is asked.
    pub calls: u64,
    /// A fixed price for each call.
    pub per_call: MicroUsd,
    /// The model whose tokens are charged, where it is one.
    pub model: Option<String>,
    /// Tokens it is told besides the turn and the candidate.
    pub input_tokens: u64,
    /// Tokens it may answer with.
    pub output_tokens: u64,
}

/// The steward of one configuration.
pub struct Steward {
    /// What outlives a reload.
    pub state: Arc<StewardState>,
    defaults: BTreeMap<TenantId, Arc<TenantPolicy>>,
    prices: BTreeMap<String, Price>,
    /// Who may stand in for a model, by its name.
    stand_ins: BTreeMap<String, Vec<String>>,
    /// What verifiers charge that are asked elsewhere.
    fees: Vec<VerifierFee>,
    /// How long a reservation waits to be settled before it is charged in full.
    settled_within: Duration,
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
            stand_ins: BTreeMap::new(),
            fees: Vec::new(),
            settled_within: turn_deadline + SETTLE_GRACE,
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

    /// Knows who may stand in for each model.
    #[must_use]
    pub fn with_stand_ins(self, stand_ins: BTreeMap<String, Vec<String>>) -> Self {
        Self { stand_ins, ..self }
    }

    /// Knows what verifiers charge that are asked elsewhere.
    #[must_use]
    pub fn with_fees(self, fees: Vec<VerifierFee>) -> Self {
        Self { fees, ..self }
    }

    /// What a model costs a tenant; `None` if nobody knows.
    #[must_use]
    pub fn price(&self, policy: &TenantPolicy, model: &str) -> Option<Price> {
        let stated = self.prices.get(model);
        let price = *policy.prices.get(model).or(stated)?;
        // How much it can write is a fact about the model, whoever states the price.
        let writes = price.output_tokens_max.or_else(|| stated?.output_tokens_max);
        Some(Price { output_tokens_max: writes, ..price })
    }

    /// The highest price that a request for this model can be charged at: whoever stands in for it may
    /// be dearer.
    ///
    /// # Errors
    /// When nobody knows what the model costs, or one that may stand in for it.
    pub fn price_at_most(
        &self,
        policy: &TenantPolicy,
        model: &str,
    ) -> Result<Price, BudgetRefusal> {
        let own = self.price(policy, model);
        let mut highest = own.ok_or_else(|| BudgetRefusal::unpriced(model))?;
        for name in self.stand_ins.get(model).into_iter().flatten() {
            // A stand-in is charged at the configuration's price, whatever the policy says.
            let other = self.prices.get(name).ok_or_else(|| BudgetRefusal::unpriced(name))?;
            highest = Price {
                input_usd_per_million: highest
                    .input_usd_per_million
                    .max(other.input_usd_per_million),
                output_usd_per_million: highest
                    .output_usd_per_million
                    .max(other.output_usd_per_million),
                ..highest
            };
        }
        Ok(highest)
    }

    /// Whether no verifier charges anything.
    #[must_use]
    pub const fn judges_for_free(&self) -> bool {
        self.fees.is_empty()
    }

    /// What all panels of a request can cost at most.
    ///
    /// # Errors
    /// When nobody knows what a verifier's model costs.
    pub fn judging_cost(&self, size: &RequestSize) -> Result<MicroUsd, BudgetRefusal> {
        let read = size.prompt_tokens.saturating_add(size.output_tokens);
        let mut panel = MicroUsd(0);
        for fee in &self.fees {
            let usage = Usage {
                input_tokens: read.saturating_add(fee.input_tokens),
                output_tokens: fee.output_tokens,
            };
            let tokens = match &fee.model {
                Some(model) => {
                    let price = self.prices.get(model);
                    price.ok_or_else(|| BudgetRefusal::unpriced(model))?.cost(usage)
                }
                None => MicroUsd(0),
            };
            let call = fee.per_call.saturating_add(tokens);
            panel = panel.saturating_add(MicroUsd(call.0.saturating_mul(fee.calls)));
        }
        Ok(MicroUsd(panel.0.saturating_mul(size.panels)))
    }

    /// What a request can cost, by its bound and by what the tenant's latest with the same model did cost.
    #[must_use]
    pub fn estimate(&self, tenant: &TenantId, model: &str, most: MicroUsd) -> CostBound {
        let likely = self.state.recent.likely(tenant_number(tenant.as_str()), model, most);
        CostBound { most, likely }
    }

    /// Learns what a request did cost that could cost so much at most.
    pub fn learn_cost(&self, tenant: &TenantId, model: &str, most: MicroUsd, spent: MicroUsd) {
        self.state.recent.learn(tenant_number(tenant.as_str()), model, most, spent);
    }

    /// Reserves what a request can cost at most, or what is left where it is likely to cost less; `None` where no limit is in force.
    ///
    /// # Errors
    /// When a limit would be exceeded or cannot be checked, or whoever asks runs away. Being over a limit
    /// counts towards running away.
    pub async fn reserve(
        &self,
        request: ReservationRequest<'_>,
    ) -> Result<Option<Reservation>, BudgetRefusal> {
        let ReservationRequest { policy, payer, now_ms, .. } = request;
        if !policy.limits_money() && policy.breaker.spend_per_minute_usd.is_none() {
            return Ok(None);
        }
        if let Some(until_ms) = self.state.stopped_until(payer, now_ms) {
            return Err(BudgetRefusal::RunningAway { until_ms });
        }
        if !policy.limits_money() {
            return Ok(None);
        }
        let reserved = self.reserve_within_limits(&request).await;
        if reserved.as_ref().is_err_and(BudgetRefusal::is_over_limit) {
            self.state.count_refusal(payer, now_ms, policy);
        }
        reserved.map(Some)
    }

    async fn reserve_within_limits(
        &self,
        request: &ReservationRequest<'_>,
    ) -> Result<Reservation, BudgetRefusal> {
        let ReservationRequest { id, policy, scopes, now_ms, .. } = *request;
        let limit = policy.max_cost_per_request_usd.map_or(MicroUsd(u64::MAX), |limit| limit.0);
        let cheaper = request.cheaper.filter(|cost| cost.likely <= limit);
        let own = Some(request.cost).filter(|cost| cost.likely <= limit);
        let is_too_dear = own.is_none();
        let Some(cost) = own.or(cheaper) else {
            let all = request.cheaper.into_iter().chain([request.cost]);
            let likely = all.map(|cost| cost.likely).min().unwrap_or_default();
            return Err(BudgetRefusal::RequestLimit { likely, limit });
        };
        let tenant = tenant_number(scopes.tenant.as_str());
        let lines = policy.lines(tenant, scopes, now_ms);
        if lines.is_empty() || cost.most.0 == 0 {
            return Ok(Reservation {
                id,
                amount: cost.most,
                left: cost.most.min(limit),
                is_cheaper: is_too_dear,
                is_counted: false,
            });
        }
        let wait_ms = u64::try_from(self.settled_within.as_millis()).unwrap_or(u64::MAX);
        let from_percent = policy.downgrade_at_percent;
        let order = ReservationOrder {
            id,
            tenant,
            lines,
            cost,
            cheaper: cheaper
                .filter(|_| !is_too_dear)
                .map(|cost| CheaperOption { cost, from_percent }),
            now_ms,
            expires_ms: now_ms.saturating_add(wait_ms),
        };
        let reservation = self.state.reserve(order).await?;
        let left = reservation.left.min(limit);
        Ok(Reservation { left, is_cheaper: is_too_dear || reservation.is_cheaper, ..reservation })
    }

    /// Counts what a request spent and frees the rest of its reservation. It counts towards running away
    /// before this returns; the future waits for the accounts and says which alerts are due. What they do
    /// not take is settled from the ledger later.
    pub fn settle(
        &self,
        reservation: Option<Reservation>,
        spent: MicroUsd,
        policy: &TenantPolicy,
        payer: Payer,
    ) -> impl Future<Output = Vec<Crossing>> + Send + use<> {
        self.state.count_spending(payer, spent, policy);
        let state = Arc::clone(&self.state);
        let alerts = policy.alert_at_percent.clone();
        async move {
            match reservation.filter(|reservation| reservation.is_counted) {
                Some(reservation) => state.settle(reservation.id, spent, alerts).await,
                None => Vec::new(),
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

#[cfg(test)]
#[path = "steward_tests.rs"]
mod tests;
