//! The last guard of a run: whether the money is there, set aside before anything is spent.
//!
//! **Invariant:** under a limit no model is asked whose price nobody knows, and no cheaper one that the
//! tenant's policy, the sensitivity or a rule of a country does not permit.

use crate::engine::Engine;
use crate::guards::answer;
use crate::running::Running;
use conclave_core::{Candidate, MicroUsd, Usage};
use conclave_govern::{Price, Scopes, TenantPolicy, Usd};
use conclave_ledger::sha256;
use conclave_money::{
    GUIDANCE_TOKENS_MAX, Grant, MESSAGE_TOKENS, Purse, PurseError, RequestSize, Reserve, Unpaid,
};
use conclave_ports::GovernError;
use conclave_recipes::{Guard, GuardAction, Phase, Ruling, Taken, Work, prompt};

/// What a run can cost, with the recipe's model and with a cheaper one.
struct Bound {
    most: MicroUsd,
    cheaper: Option<(String, MicroUsd)>,
}

/// The most that one call for a run reads and writes: a token for each byte that it is told, and as much
/// for what was wrong with an earlier answer as for any other guidance.
pub(crate) fn at_most(run: &Running) -> Usage {
    let told = prompt(&run.recipe, &run.told, &run.input, &run.transcripts);
    let told = told.map_or(0, |told| told.system.len() + told.user.len());
    let told = u64::try_from(told).unwrap_or(u64::MAX);
    Usage {
        input_tokens: told.saturating_add(3 * MESSAGE_TOKENS).saturating_add(GUIDANCE_TOKENS_MAX),
        output_tokens: u64::from(run.recipe.limits.output_tokens_max),
    }
}

impl Engine {
    /// Sets money aside for everything the run may cost; where that is too much, or the budget comes to
    /// its end, for a cheaper model if the recipe or the tenant's policy says so.
    pub(crate) async fn guard_budget(&self, run: &mut Running) {
        let at = (Guard::Budget, Phase::Pre);
        let Some(purse) = self.governed.purse.clone() else {
            if run.recipe.guard(Guard::Budget).is_some() {
                run.found(at, Taken::Flagged, "no_purse", "No budget is kept.");
            }
            return;
        };
        if run.recipe.work != Work::Model {
            return;
        }
        let policy = self.in_force(&run.tenant).policy;
        let bound = match self.bound(run, &policy) {
            Ok(bound) => bound,
            Err(unpaid) => return refuse(run, &unpaid),
        };
        match self.set_aside_for_run(&*purse, run, &bound).await {
            Ok(grant) => match bound.cheaper.filter(|_| grant.is_cheaper) {
                Some((model, _)) => {
                    let why = format!("`{model}` is asked instead of `{}`.", run.model);
                    run.model = model;
                    run.downgraded = true;
                    run.found(at, Taken::Downgraded, "downgraded", why);
                }
                None => run.passed(Guard::Budget, Phase::Pre),
            },
            Err(PurseError::Unavailable(why)) => {
                run.found(at, Taken::Failed, "guard_failed", why);
            }
            Err(error) => self.short(run, error, &policy),
        }
    }

    /// What the run can cost at most.
    ///
    /// # Errors
    /// When whoever asks runs away, or a limit is in force and nobody knows the price.
    fn bound(&self, run: &Running, policy: &TenantPolicy) -> Result<Bound, Unpaid> {
        let stopped = self
            .steward
            .as_ref()
            .and_then(|steward| steward.state.stopped_until(caller_of(run), self.clock.now_ms()));
        if let Some(until_ms) = stopped {
            return Err(Unpaid::RunningAway { until_ms });
        }
        match self.most(run, policy, &run.model) {
            Some(most) => Ok(Bound { most, cheaper: self.cheaper_for_run(run, policy, most) }),
            None if policy.limits_money() => Err(Unpaid::Unpriced(run.model.clone())),
            None => Ok(Bound { most: MicroUsd(0), cheaper: None }),
        }
    }

    /// The recipe's other model where its guard says so, else that of the tenant's policy; only if it is
    /// permitted in every respect and costs less.
    fn cheaper_for_run(
        &self,
        run: &Running,
        policy: &TenantPolicy,
        most: MicroUsd,
    ) -> Option<(String, MicroUsd)> {
        let rule = run.recipe.guard(Guard::Budget);
        let by_recipe = rule.is_some_and(|rule| rule.action == GuardAction::Downgrade);
        let own = run.recipe.models.fallback.filter(|_| by_recipe);
        let own = own.map(|class| self.workshop.model(class));
        let stated = policy.downgrade_model.as_deref().filter(|_| policy.auto_downgrade_enabled);
        own.into_iter().chain(stated).find_map(|model| {
            let usable = model != run.model
                && self.may_be_asked(run, policy, model)
                && self.may_be_sent(run, policy, model);
            let less = self.most(run, policy, model).filter(|less| usable && *less < most)?;
            Some((model.to_owned(), less))
        })
    }

    /// Whether a model is offered and permitted by the policy and for the sensitivity.
    pub(crate) fn may_be_asked(&self, run: &Running, policy: &TenantPolicy, model: &str) -> bool {
        let sensitivity = run.context.sensitivity_level;
        self.models.find(model).is_some()
            && self.workshop.permits(model, sensitivity)
            && policy.permits(model)
            && (!policy.limits_money() || self.price_for_run(policy, model).is_some())
    }

    /// Whether a model that the guard of jurisdictions has not seen may be told the words.
    fn may_be_sent(&self, run: &Running, policy: &TenantPolicy, model: &str) -> bool {
        if run.recipe.guard(Guard::Jurisdiction).is_none() && policy.regions.is_empty() {
            return true;
        }
        let stated = self.workshop.settings.regions.iter().chain(&policy.regions);
        let regions: Vec<String> = stated.cloned().collect();
        let country = run.context.country.as_deref();
        self.may_go(country, &regions, &[model], &self.judges_of(run)) == Ruling::Allowed
    }

    /// Who is asked where the first model does not answer.
    pub(crate) fn fallback_of(
        &self,
        run: &Running,
        policy: &TenantPolicy,
        first: &str,
    ) -> Option<String> {
        let other = self.workshop.model(run.recipe.models.fallback?);
        (other != first && self.may_be_asked(run, policy, other)).then(|| other.to_owned())
    }

    /// What a model costs this tenant; `None` if nobody knows.
    pub(crate) fn price_for_run(&self, policy: &TenantPolicy, model: &str) -> Option<Price> {
        if let Some(steward) = &self.steward {
            return steward.price(policy, model);
        }
        let offered = self.models.find(model)?;
        Some(Price {
            input_usd_per_million: Usd(offered.input_price),
            output_usd_per_million: Usd(offered.output_price),
            output_tokens_max: None,
        })
    }

    /// The most that a call can cost, whoever stands in for the model.
    pub(crate) fn most_of_call(
        &self,
        policy: &TenantPolicy,
        model: &str,
        usage: Usage,
    ) -> Option<MicroUsd> {
        let price = self.price_for_run(policy, model)?;
        let dearest = self.steward.as_ref().map_or(price, |one| one.dearest(model, price));
        Some(dearest.cost(usage))
    }

    /// What an answer cost: at the price of whoever wrote it.
    pub(crate) fn cost_of_answer(
        &self,
        policy: &TenantPolicy,
        model: &str,
        candidate: &Candidate,
    ) -> MicroUsd {
        match (&candidate.stand_in, self.price_for_run(policy, model)) {
            (Some(stand_in), _) => stand_in.cost,
            (None, Some(price)) => price.cost(candidate.usage),
            (None, None) => MicroUsd(0),
        }
    }

    /// The most that a run can cost with this model: every attempt as long as can be, also by the model
    /// that is asked next, and what judging the result can cost. `None` where a price is not known.
    fn most(&self, run: &Running, policy: &TenantPolicy, model: &str) -> Option<MicroUsd> {
        let usage = at_most(run);
        let first = self.most_of_call(policy, model, usage)?;
        let next = self.fallback_of(run, policy, model);
        let next = next.and_then(|name| self.most_of_call(policy, &name, usage));
        let once = first.max(next.unwrap_or(MicroUsd(0))).0;
        let models = once.saturating_mul(u64::from(crate::run_model::ATTEMPTS_MAX));
        let size = RequestSize {
            prompt_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            choices: 1,
            attempts: 1,
        };
        let judging = self.steward.as_ref().map(|steward| steward.judging(&size));
        Some(MicroUsd(models).saturating_add(judging.unwrap_or(MicroUsd(0))))
    }

    /// A limit would be exceeded; whoever is to be told of the first refusal is.
    fn short(&self, run: &mut Running, error: PurseError, policy: &TenantPolicy) {
        let why = error.to_string();
        if let PurseError::Exceeded { crossing, resets_ms, .. } = error {
            crossing.iter().for_each(|crossing| self.note_crossing(&run.tenant, crossing));
            run.retry_at_ms = resets_ms;
        }
        if let Some(steward) = &self.steward
            && steward.state.note_refused(caller_of(run), self.clock.now_ms(), policy)
        {
            tracing::warn!(run = %run.id, "whoever asks for runs that are refused is stopped");
        }
        run.found((Guard::Budget, Phase::Pre), Taken::Blocked, "insufficient_quota", why);
    }

    async fn set_aside_for_run(
        &self,
        purse: &dyn Purse,
        run: &mut Running,
        bound: &Bound,
    ) -> Result<Grant, PurseError> {
        let ask = Reserve {
            id: run.id.0.into_bytes(),
            scopes: Scopes {
                tenant: run.tenant.clone(),
                key: run.key.as_ref().map(|key| key.as_str().to_owned()),
                user: run.who.subject.map(hex::encode),
                session: None,
                recipe: Some(run.recipe.name.clone()),
            },
            most: bound.most,
            cheaper: bound.cheaper.as_ref().map(|(_, less)| *less),
            now_ms: self.clock.now_ms(),
        };
        let asked = async { Ok::<_, GovernError>(purse.reserve(ask).await) };
        let grant = answer(asked).await.map_err(PurseError::Unavailable)??;
        run.reserved = Some(grant.held);
        Ok(grant)
    }

    /// Says what the run cost.
    pub(crate) async fn settle_run(&self, run: &Running) {
        let policy = self.in_force(&run.tenant).policy;
        if let Some(steward) = &self.steward
            && steward.state.note_spent(caller_of(run), run.cost, &policy)
        {
            tracing::warn!(run = %run.id, "whoever spent too fast on runs is stopped for a minute");
        }
        let (Some(purse), Some(_)) = (&self.governed.purse, run.reserved) else { return };
        match purse.settle(&run.tenant, run.id.0.into_bytes(), run.cost).await {
            Ok(crossings) => {
                crossings.iter().for_each(|crossing| self.note_crossing(&run.tenant, crossing));
            }
            Err(error) => {
                tracing::error!(run = %run.id, %error, "money is settled from the ledger later");
            }
        }
    }
}

fn refuse(run: &mut Running, unpaid: &Unpaid) {
    let code = match unpaid {
        Unpaid::Unpriced(_) => "unpriced",
        _ => "insufficient_quota",
    };
    if let Unpaid::RunningAway { until_ms } = unpaid {
        run.retry_at_ms = Some(*until_ms);
    }
    run.found((Guard::Budget, Phase::Pre), Taken::Blocked, code, unpaid.to_string());
}

/// Who is watched for running away: runs have no conversation in common, so it is whoever asks for the
/// same recipe with the same key about the same person.
fn caller_of(run: &Running) -> (u64, [u8; 16]) {
    let key = run.key.as_ref().map_or("", |key| key.as_str());
    let subject = run.who.subject.unwrap_or_default();
    let parts: [&[u8]; 4] =
        [b"conclave.runs.v1", &sha256(&[key.as_bytes()]), &subject, run.recipe.name.as_bytes()];
    let mut caller = [0; 16];
    caller.copy_from_slice(&sha256(&parts)[..16]);
    (run.who.tenant, caller)
}
