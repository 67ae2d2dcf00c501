//! The cost-steward recipe: what a request would cost, under the accounts and the policy that are in force.
//!
//! **Invariant:** what the caller states about money can only make it less.

use crate::engine::Engine;
use crate::run_model::NoResult;
use crate::running::Running;
use conclave_govern::{AccountKey, Line, Scopes, TenantPolicy};
use conclave_ledger::tenant_number;
use conclave_money::Account;
use conclave_recipes::{Books, Offer, steward};
use serde_json::Value;
use std::collections::BTreeMap;

/// So many accounts of a tenant are read.
const ACCOUNTS_MAX: u32 = 10_000;

impl Engine {
    /// What the steward says of the request that a run asks about.
    ///
    /// # Errors
    /// When a limit is in force and the accounts cannot be read.
    pub(crate) async fn keep_house(&self, run: &Running) -> Result<Value, NoResult> {
        let policy = self.in_force(&run.tenant).policy;
        let named = self.models.names().into_iter();
        let permitted = named.filter(|(model, _)| self.may_be_asked(run, &policy, model));
        let offers: Vec<_> = permitted
            .filter_map(|(model, _)| {
                let price = self.price_for_run(&policy, &model)?;
                let (input_price, output_price) =
                    (price.input_usd_per_million.0, price.output_usd_per_million.0);
                Some(Offer { model, input_price, output_price })
            })
            .collect();
        let tightest = self.tightest(run, &policy).await?;
        let now_ms = self.clock.now_ms();
        let books = Books {
            per_request: policy.max_cost_per_request_usd.map(|limit| limit.0.0),
            remaining: tightest.as_ref().map(|(_, left)| *left),
            resets_in_s: tightest.map(|(line, _)| {
                let end_ms = line.key.period.end_ms(line.key.number);
                end_ms.saturating_sub(now_ms).div_ceil(1_000)
            }),
            downgrade: policy.downgrade_model.clone().filter(|_| policy.auto_downgrade_enabled),
            p95_ms: self.workshop.lately(&run.recipe.name).map(|(p95_ms, _)| p95_ms),
            slo_ms: run.recipe.thresholds(run.context.sensitivity_level).p95_ms,
        };
        Ok(steward(&run.input, &offers, &books))
    }

    /// The limit under which least is left, and how much; `None` where no limit is in force.
    async fn tightest(
        &self,
        run: &Running,
        policy: &TenantPolicy,
    ) -> Result<Option<(Line, u64)>, NoResult> {
        let Some(steward) = &self.steward else { return Ok(None) };
        let (tenant, now_ms) = (tenant_number(run.tenant.as_str()), self.clock.now_ms());
        let scopes = Scopes {
            tenant: run.tenant.clone(),
            key: run.key.as_ref().map(|key| key.as_str().to_owned()),
            user: run.who.subject.map(hex::encode),
            session: None,
            recipe: Some(run.recipe.name.clone()),
        };
        let lines = policy.lines(tenant, &scopes, now_ms);
        if lines.is_empty() {
            return Ok(None);
        }
        let known = steward.state.accounts().balances(tenant, now_ms, ACCOUNTS_MAX).await;
        let known: BTreeMap<AccountKey, Account> = known
            .map_err(|error| {
                tracing::error!(%error, "what is left of a budget cannot be read");
                NoResult::NoBooks
            })?
            .into_iter()
            .collect();
        let left = lines.into_iter().map(|line| {
            let used = known.get(&line.key).map_or(0, Account::used);
            let left = line.limit.0.saturating_sub(used);
            (line, left)
        });
        Ok(left.min_by_key(|(_, left)| *left))
    }
}
