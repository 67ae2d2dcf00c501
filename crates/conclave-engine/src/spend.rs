//! What a tenant's policy means for one turn: which model, how strictly, and who pays.
//!
//! **Invariant:** a model is asked only after the most it can cost was set aside, where a limit is in
//! force, and it is told how much it may write, so that this is really the most.

use crate::decision::{Choice, Terms};
use crate::deliver::DeliverError;
use crate::engine::Engine;
use crate::preflight::Examination;
use crate::record::said_bytes;
use crate::settings::Settings;
use crate::turn::Turn;
use conclave_core::{Candidate, GenerationFailure, MicroUsd, TenantId, Threshold};
use conclave_detect::Reading;
use conclave_govern::{Price, Scopes, TenantPolicy, Usd};
use conclave_ledger::{Body, Draft, Kind, Value as Public};
use conclave_money::{
    Crossing, RequestSize, Steward, Unpaid, cost_of_attempts, output_tokens_at_most,
    stated_output_tokens,
};
use conclave_ports::{Announcement, EventKind};
use conclave_ports::{OfferedModel, Pseudonyms};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

/// A policy as it holds for one turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct InForce {
    /// The version of the tenant's own; 0 where it has none.
    pub version: u64,
    /// What holds.
    pub policy: Arc<TenantPolicy>,
}

/// How a turn is paid for.
pub(crate) struct Spending {
    /// The model that is asked.
    pub offered: OfferedModel,
    /// What the decision says about it.
    pub terms: Terms,
    price: Price,
    /// The price of the dearest that may stand in for it.
    dearest: Price,
    /// What is set aside, if anything is.
    held: Option<[u8; 16]>,
}

impl Spending {
    /// Nothing was set aside.
    pub(crate) fn unlimited(offered: OfferedModel) -> Self {
        let price = Price {
            input_usd_per_million: Usd(offered.input_price),
            output_usd_per_million: Usd(offered.output_price),
            output_tokens_max: None,
        };
        Self { offered, terms: Terms::default(), price, dearest: price, held: None }
    }

    /// Under a price that is known better than the model's own.
    fn at(&mut self, price: Price, steward: &Steward, model: &str) {
        self.price = price;
        self.dearest = steward.dearest(model, price);
    }

    /// What the turn cost: tokens that were counted, and the most for calls whose end nobody saw.
    pub(crate) fn cost(&self, turn: &Turn, choices: &[Choice]) -> MicroUsd {
        let attempts = || choices.iter().flat_map(|choice| &choice.attempts);
        let unseen = attempts().filter(|attempt| match &attempt.candidate {
            Ok(candidate) => candidate.is_cut_off,
            Err(why) => is_unseen(*why),
        });
        let unseen = u64::try_from(unseen.count()).unwrap_or(u64::MAX);
        let known = cost_of_attempts(attempts(), &self.price);
        if unseen == 0 || self.dearest.is_free() {
            return known;
        }
        // Whoever stood in for the model may have been asked last.
        let call = size_of(turn, 1, &self.dearest).call(&self.dearest);
        known.saturating_add(MicroUsd(call.0.saturating_mul(unseen)))
    }
}

/// Whether a model may have answered, and been paid for it, although nobody saw what.
pub(crate) const fn is_unseen(failure: GenerationFailure) -> bool {
    matches!(
        failure,
        GenerationFailure::Timeout | GenerationFailure::Invalid | GenerationFailure::TooLarge
    )
}

fn size_of(turn: &Turn, attempts: u8, price: &Price) -> RequestSize {
    RequestSize::bound(&turn.body, turn.choices, attempts, price)
}

/// Tells the model how much it may write, where the client did not.
fn bound_output(turn: &mut Turn, price: &Price) {
    if stated_output_tokens(&turn.body).is_some() {
        return;
    }
    let tokens = output_tokens_at_most(&turn.body, price);
    // Models that reason before they write take the other name only.
    let reasons = turn.model.starts_with("gpt-5")
        || (turn.model.starts_with('o')
            && turn.model[1..].starts_with(|c: char| c.is_ascii_digit()));
    let name = if reasons { "max_completion_tokens" } else { "max_tokens" };
    Arc::make_mut(&mut turn.body).insert(name.to_owned(), tokens.into());
}

/// The reading under a stricter line, where the policy has one.
pub(crate) fn tighten(policy: &TenantPolicy, mut input: Reading) -> Reading {
    if let Some(Ok(own)) = policy.harm_threshold.map(Threshold::new) {
        input.threshold = input.threshold.min(own);
    }
    input
}

/// The settings with what the policy raises.
pub(crate) fn raised<'a>(policy: &TenantPolicy, settings: &'a Settings) -> Cow<'a, Settings> {
    if policy.scrutiny_min.is_none() && !policy.block_injection {
        return Cow::Borrowed(settings);
    }
    let mut own = settings.clone();
    own.scrutiny_min = own.scrutiny_min.max(policy.scrutiny_min.unwrap_or_default());
    own.block_injection |= policy.block_injection;
    Cow::Owned(own)
}

impl Engine {
    /// What holds for a tenant now.
    pub(crate) fn in_force(&self, tenant: &TenantId) -> InForce {
        let Some(steward) = &self.steward else { return InForce::default() };
        let (version, policy) = steward.policy(tenant);
        InForce { version, policy }
    }

    /// Refuses what the tenant's policy does not permit, before anything is read.
    ///
    /// # Errors
    /// When the model or the mode is not permitted.
    pub(crate) fn permit(&self, turn: &Turn, policy: &TenantPolicy) -> Result<(), DeliverError> {
        let mode = turn.context.mode;
        if policy.modes.as_ref().is_some_and(|modes| !modes.contains(&mode)) {
            let why = format!("this tenant's policy does not allow the mode `{}`", mode.as_str());
            return Err(DeliverError::Forbidden(why));
        }
        if policy.permits(&turn.model) {
            return Ok(());
        }
        if policy.blocked_models.contains(&turn.model) {
            let why = format!("this tenant's policy blocks the model `{}`", turn.model);
            return Err(DeliverError::Forbidden(why));
        }
        Err(DeliverError::UnknownModel(turn.model.clone()))
    }

    /// Sets aside what the turn can cost at most; may choose the cheaper model.
    ///
    /// # Errors
    /// When a limit forbids it or cannot be checked.
    pub(crate) async fn pay(
        &self,
        turn: &mut Turn,
        examined: &Examination,
        in_force: &InForce,
        offered: OfferedModel,
    ) -> Result<Spending, Unpaid> {
        let mut spending = Spending::unlimited(offered);
        let Some(steward) = &self.steward else { return Ok(spending) };
        let policy = &*in_force.policy;
        spending.terms.policy_version = (in_force.version > 0).then_some(in_force.version);
        let known = steward.price(policy, &turn.model);
        spending.at(known.unwrap_or(spending.price), steward, &turn.model);
        let watches = policy.limits_money() || policy.breaker.spend_per_minute_usd.is_some();
        if !watches {
            return Ok(spending);
        }
        let (now_ms, session) = (self.clock.now_ms(), session_of(&examined.who));
        if let Some(until_ms) = steward.state.stopped_until(session, now_ms) {
            return Err(Unpaid::RunningAway { until_ms });
        }
        if !policy.limits_money() {
            return Ok(spending);
        }
        let price = known.ok_or_else(|| Unpaid::Unpriced(turn.model.clone()))?;
        let paid = self.set_aside(steward, turn, (examined, policy), price, now_ms).await;
        match paid {
            Ok(paid) => {
                self.choose(steward, turn, policy, &mut spending, paid);
                Ok(spending)
            }
            Err((unpaid, crossing)) => {
                crossing.iter().for_each(|crossing| self.note_crossing(&turn.tenant, crossing));
                if steward.state.note_refused(session, now_ms, policy) {
                    tracing::warn!(audit_id = %examined.id, "a session that ran away is stopped");
                }
                Err(unpaid)
            }
        }
    }

    /// Sets aside what reading the turn once can cost; nothing is written in answer, and nobody judges.
    ///
    /// # Errors
    /// When a limit forbids it or cannot be checked.
    pub(crate) async fn pay_for_reading(
        &self,
        turn: &Turn,
        examined: &Examination,
        in_force: &InForce,
        offered: OfferedModel,
    ) -> Result<Spending, Unpaid> {
        let mut spending = Spending::unlimited(offered);
        let Some(steward) = &self.steward else { return Ok(spending) };
        let policy = &*in_force.policy;
        spending.terms.policy_version = (in_force.version > 0).then_some(in_force.version);
        let known = steward.price(policy, &turn.model);
        spending.at(known.unwrap_or(spending.price), steward, &turn.model);
        if !policy.limits_money() {
            return Ok(spending);
        }
        let price = known.ok_or_else(|| Unpaid::Unpriced(turn.model.clone()))?;
        let most = size_of(turn, 1, &price).call(&spending.dearest);
        self.set_aside_once(turn, examined, policy, most, spending).await
    }

    /// Sets aside what judging a reply that was made elsewhere can cost; whoever made it is paid elsewhere.
    ///
    /// # Errors
    /// When a limit forbids it or cannot be checked.
    pub(crate) async fn pay_for_judging(
        &self,
        turn: &Turn,
        examined: &Examination,
        in_force: &InForce,
        (given, reply): (OfferedModel, &Candidate),
    ) -> Result<Spending, Unpaid> {
        let mut spending = Spending::unlimited(given);
        let Some(steward) = &self.steward else { return Ok(spending) };
        let policy = &*in_force.policy;
        spending.terms.policy_version = (in_force.version > 0).then_some(in_force.version);
        if !policy.limits_money() {
            return Ok(spending);
        }
        let calls = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let written = reply.text.len() + calls.sum::<usize>();
        let tokens = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let judging = steward.judging(&RequestSize {
            prompt_tokens: tokens(said_bytes(&turn.conversation)),
            output_tokens: tokens(written),
            choices: 1,
            attempts: 1,
        });
        // A panel may run twice on it.
        let most = judging.saturating_add(judging);
        self.set_aside_once(turn, examined, policy, most, spending).await
    }

    async fn set_aside_once(
        &self,
        turn: &Turn,
        examined: &Examination,
        policy: &TenantPolicy,
        most: MicroUsd,
        mut spending: Spending,
    ) -> Result<Spending, Unpaid> {
        let Some(steward) = &self.steward else { return Ok(spending) };
        let (now_ms, session) = (self.clock.now_ms(), session_of(&examined.who));
        if let Some(until_ms) = steward.state.stopped_until(session, now_ms) {
            return Err(Unpaid::RunningAway { until_ms });
        }
        let (id, scopes) = (examined.id.0.into_bytes(), scopes(turn, &examined.who));
        let ask = steward.ask(policy, (id, &scopes), most, None, now_ms);
        match steward.set_aside(policy, ask).await {
            Ok(grant) => {
                spending.held = grant.map(|_| id);
                Ok(spending)
            }
            Err((unpaid, crossing)) => {
                crossing.iter().for_each(|crossing| self.note_crossing(&turn.tenant, crossing));
                steward.state.note_refused(session, now_ms, policy);
                Err(unpaid)
            }
        }
    }

    async fn set_aside(
        &self,
        steward: &Steward,
        turn: &Turn,
        (examined, policy): (&Examination, &TenantPolicy),
        price: Price,
        now_ms: u64,
    ) -> Result<Paid, (Unpaid, Option<Crossing>)> {
        let attempts = self.settings.attempts_max;
        let most = |model: &str, price: Price| {
            let price = steward.dearest(model, price);
            let size = size_of(turn, attempts, &price);
            size.most(&price, steward.judging(&size))
        };
        let cheaper = policy.downgrade_model.as_deref().zip(self.cheaper(steward, turn, policy));
        let cheaper = cheaper.map(|(model, price)| most(model, price));
        let id = examined.id.0.into_bytes();
        let scopes = scopes(turn, &examined.who);
        let ask = steward.ask(policy, (id, &scopes), most(&turn.model, price), cheaper, now_ms);
        let too_dear = policy.max_cost_per_request_usd.is_some_and(|limit| ask.most > limit.0);
        let grant = steward.set_aside(policy, ask).await?;
        Ok(Paid {
            held: grant.map(|_| id),
            downgrade: cheaper.is_some()
                && (too_dear || grant.is_some_and(|grant| grant.is_cheaper)),
        })
    }

    /// The price of the model that is asked when money becomes scarce, if there is one for this turn.
    fn cheaper(&self, steward: &Steward, turn: &Turn, policy: &TenantPolicy) -> Option<Price> {
        let name = policy.downgrade_model.as_ref().filter(|_| policy.auto_downgrade_enabled)?;
        let other = *name != turn.model && policy.permits(name);
        (other && self.models.find(name).is_some()).then(|| steward.price(policy, name))?
    }

    fn choose(
        &self,
        steward: &Steward,
        turn: &mut Turn,
        policy: &TenantPolicy,
        spending: &mut Spending,
        paid: Paid,
    ) {
        spending.held = paid.held;
        let cheaper = policy.downgrade_model.as_ref().filter(|_| paid.downgrade);
        if let Some((name, offered)) =
            cheaper.and_then(|name| Some((name, self.models.find(name)?)))
        {
            spending.terms.downgraded_from = Some(std::mem::replace(&mut turn.model, name.clone()));
            spending.offered = offered;
            let price = steward.price(policy, name).unwrap_or(spending.price);
            spending.at(price, steward, name);
        }
        bound_output(turn, &spending.price);
    }

    /// Says what the turn cost. Nobody waits for it: what is lost on the way is found in the ledger.
    pub(crate) fn settle(
        &self,
        turn: &Turn,
        who: &Pseudonyms,
        in_force: &InForce,
        spending: &Spending,
        cost: MicroUsd,
    ) {
        let Some(steward) = &self.steward else { return };
        if steward.state.note_spent(session_of(who), cost, &in_force.policy) {
            tracing::warn!("a session that spent too fast is stopped for a minute");
        }
        let Some(id) = spending.held else { return };
        let settled = steward.state.settle(id, cost, in_force.policy.alert_at_percent.clone());
        let (engine, tenant) = (self.clone(), turn.tenant.clone());
        tokio::spawn(async move {
            settled.await.iter().for_each(|crossing| engine.note_crossing(&tenant, crossing));
        });
    }

    /// Tells everybody who should know that a limit comes near: once in each period and scope.
    pub(crate) fn note_crossing(&self, tenant: &TenantId, crossing: &Crossing) {
        let Some(steward) = &self.steward else { return };
        let Crossing { line, percent, spent } = crossing;
        let (scope, period) = (line.key.scope.as_str(), line.key.period.as_str());
        tracing::warn!(%tenant, scope, period, percent, limit = line.limit.0, "a limit comes near");
        steward.state.show(crossing);
        let draft = Draft {
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Public::map([
                ("scope", Public::from(scope)),
                ("period", Public::from(period)),
                ("number", Public::Uint(line.key.number.into())),
                ("percent", Public::Uint((*percent).into())),
                ("limit", Public::Uint(line.limit.0)),
                ("spent", Public::Uint(spent.0)),
            ]),
            ..Draft::new(Kind::Other("budget.alert".to_owned()), line.key.tenant)
        };
        self.ledger.append_soon(draft, Body::empty());
        self.tell_of_crossing(tenant, crossing);
    }

    /// Tells the tenant's webhooks; nobody waits for it.
    fn tell_of_crossing(&self, tenant: &TenantId, crossing: &Crossing) {
        let Some(governance) = self.governed.governance.clone() else { return };
        let Crossing { line, percent, spent } = crossing;
        let data = json!({
            "scope": line.key.scope.as_str(),
            "period": line.key.period.as_str(),
            "percent": percent,
            "limit_microusd": line.limit.0,
            "spent_microusd": spent.0,
            "resets_at_ms": line.key.period.end_ms(line.key.number),
        });
        let (tenant, kind) = (tenant.clone(), EventKind::BudgetAlert);
        tokio::spawn(async move {
            let told = governance.announce(&tenant, Announcement { kind, data }).await;
            if let Err(error) = told {
                tracing::error!(%error, "nobody could be told of a budget");
            }
        });
    }
}

/// What was set aside.
#[derive(Clone, Copy)]
struct Paid {
    held: Option<[u8; 16]>,
    downgrade: bool,
}

const fn session_of(who: &Pseudonyms) -> (u64, [u8; 16]) {
    (who.tenant, who.session)
}

fn scopes(turn: &Turn, who: &Pseudonyms) -> Scopes {
    Scopes {
        tenant: turn.tenant.clone(),
        key: turn.key.as_ref().map(|key| key.as_str().to_owned()),
        user: who.subject.map(hex::encode),
        session: Some(hex::encode(who.session)),
        recipe: None,
    }
}
