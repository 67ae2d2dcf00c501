//! The cost-steward recipe: what a request would cost, under the accounts and the policy that are in force.
//!
//! **Invariant:** what the caller states about money can only make it less.

use super::model::NoResult;
use super::{RecipeRunner, RunningRun};
use crate::{Books, Offer, steward};
use conclave_govern::{AccountKey, AccountLimit, Scopes};
use conclave_ledger::tenant_number;
use conclave_money::Balance;
use serde_json::Value;
use std::collections::BTreeMap;

/// So many accounts of a tenant are read.
const ACCOUNTS_MAX: u32 = 10_000;

/// The limit under which least is left.
struct TightestLimit {
    line: AccountLimit,
    left: u64,
    /// The least limit of all, when nothing of it is spent.
    least: u64,
}

impl RecipeRunner {
    /// What the steward says of the request that a run asks about.
    pub(super) async fn advise_on_cost(&self, run: &RunningRun) -> Result<Value, NoResult> {
        let engine = &self.engine;
        let policy = run.matter.policy();
        let named = engine.models.names().into_iter();
        let permitted = named.filter(|(model, _)| engine.may_be_asked(&run.matter, model));
        let offers: Vec<_> = permitted
            .filter_map(|(model, _)| {
                let price = engine.price_of(policy, &model)?;
                Some(Offer {
                    model,
                    input_price: price.input_usd_per_million.0,
                    output_price: price.output_usd_per_million.0,
                })
            })
            .collect();
        let tightest = self.tightest_limit(run).await?;
        let now_ms = engine.clock.now_ms();
        let books = Books {
            per_request: policy.max_cost_per_request_usd.map(|limit| limit.0.0),
            remaining: tightest.as_ref().map(|tightest| tightest.left),
            period_limit: tightest.as_ref().map(|tightest| tightest.least),
            resets_in_s: tightest.map(|tightest| {
                let key = &tightest.line.key;
                key.period.end_ms(key.number).saturating_sub(now_ms).div_ceil(1_000)
            }),
            downgrade: policy.downgrade_model.clone().filter(|_| policy.auto_downgrade_enabled),
            p95_ms: self.workshop.lately(&run.recipe().name).map(|latest| latest.p95_ms),
            slo_ms: run.recipe().thresholds(run.context.sensitivity_level).p95_ms,
        };
        Ok(steward(&run.matter.content.input, &offers, &books))
    }

    /// The limit under which least is left; `None` where no limit is in force.
    async fn tightest_limit(&self, run: &RunningRun) -> Result<Option<TightestLimit>, NoResult> {
        let Some(steward) = &self.engine.steward else { return Ok(None) };
        let matter = &run.matter;
        let tenant = tenant_number(matter.tenant.as_str());
        let now_ms = self.engine.clock.now_ms();
        let scopes = Scopes {
            tenant: matter.tenant.clone(),
            key: matter.key.as_ref().map(|key| key.as_str().to_owned()),
            user: matter.who.subject.map(hex::encode),
            session: None,
            recipe: Some(run.recipe().name.clone()),
        };
        let lines = matter.policy().lines(tenant, &scopes, now_ms);
        if lines.is_empty() {
            return Ok(None);
        }
        let known = steward.state.accounts().balances(tenant, now_ms, ACCOUNTS_MAX).await;
        let known = known.map_err(|error| {
            tracing::error!(%error, "what is left of a budget cannot be read");
            NoResult::NoAccounts
        })?;
        let known: BTreeMap<AccountKey, Balance> =
            known.into_iter().map(|account| (account.key, account.balance)).collect();
        let least = lines.iter().map(|line| line.limit.0).min().unwrap_or(0);
        let left = lines.into_iter().map(|line| {
            let used = known.get(&line.key).map_or(0, Balance::used);
            TightestLimit { left: line.limit.0.saturating_sub(used), line, least }
        });
        Ok(left.min_by_key(|limit| limit.left))
    }
}
