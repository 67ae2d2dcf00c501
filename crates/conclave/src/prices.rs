//! Wiring of money: what models and verifiers cost, and who watches over it.

use crate::config::{Config, ModelConfig, SeatChange, VerifierKind, stand_ins};
use anyhow::Context;
use conclave_core::{MicroUsd, TenantId};
use conclave_govern::{Price, TenantPolicy, Usd};
use conclave_models::{Builtin, GUARD_TOKENS, JUDGE_TOKENS};
use conclave_money::{PriceTable, Steward, StewardState, VerifierFee};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A judge looks at a reply with and without the question.
const JUDGE_CALLS: u64 = 2;

/// What the models of a configuration cost.
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// As the configuration states, else as the table compiled in says of this time.
    ///
    /// # Errors
    /// When the table is broken.
    pub fn of(config: &Config, now_ms: u64) -> anyhow::Result<Self> {
        let table = PriceTable::builtin()?;
        let known = config.models.iter().filter_map(|model| {
            let price = price_of(model, &table, now_ms)?;
            Some((model.name.clone(), price))
        });
        Ok(Self(known.collect()))
    }

    /// What a model is counted at: nothing where nobody knows, as the check of the file warns. Under a
    /// budget such a model is not asked at all.
    #[must_use]
    pub fn counted(&self, model: &str) -> Price {
        self.0.get(model).copied().unwrap_or_default()
    }
}

fn price_of(model: &ModelConfig, table: &PriceTable, now_ms: u64) -> Option<Price> {
    let upstream = model.upstream_model.as_ref().unwrap_or(&model.name);
    let listed = table.at(upstream, now_ms);
    let stated = model.input_usd_per_million.zip(model.output_usd_per_million);
    let stated = stated.map(|(input, output)| Price {
        input_usd_per_million: Usd(micro_usd(input)),
        output_usd_per_million: Usd(micro_usd(output)),
        output_tokens_max: listed.and_then(|listed| listed.output_tokens_max),
    });
    let known = stated.or(listed)?;
    let writes = model.output_tokens_max.or(known.output_tokens_max);
    Some(Price { output_tokens_max: writes, ..known })
}

/// The steward of a configuration. Policies were checked when the file was read.
///
/// # Errors
/// When the price table is broken or a policy is not sound.
pub fn steward(
    config: &Config,
    state: Arc<StewardState>,
    now_ms: u64,
    reply_timeout: Duration,
) -> anyhow::Result<Steward> {
    let prices = Prices::of(config, now_ms)?;
    let mut policies = BTreeMap::new();
    for (name, tenant) in &config.tenants {
        if let Some(policy) = &tenant.policy {
            let policy = TenantPolicy::parse(policy.clone()).context("a tenant's policy")?;
            policies.insert(TenantId::new(name.as_str())?, policy);
        }
    }
    let by_name = config.models.iter().map(|model| (model.name.as_str(), model)).collect();
    let mut others = BTreeMap::new();
    for model in &config.models {
        let names = stand_ins(model, &by_name)
            .with_context(|| format!("`{}` would stand in for itself", model.name))?;
        others.insert(model.name.clone(), names.into_iter().map(str::to_owned).collect());
    }
    let fees = config.verifiers.values().filter_map(fee).collect();
    let mut known = prices.0;
    known.insert(Builtin::NAME.to_owned(), Price::default());
    let steward = Steward::new(state, policies, known, reply_timeout);
    Ok(steward.with_stand_ins(others).with_fees(fees))
}

/// What one verifier that is asked elsewhere charges for one candidate.
fn fee(seat: &SeatChange) -> Option<VerifierFee> {
    let asked = |calls, (input_tokens, output_tokens)| VerifierFee {
        calls,
        per_call: MicroUsd(0),
        model: seat.model.clone(),
        input_tokens,
        output_tokens,
    };
    match seat.kind {
        VerifierKind::Builtin => None,
        VerifierKind::Judge => Some(asked(JUDGE_CALLS, JUDGE_TOKENS)),
        VerifierKind::Guard => Some(asked(1, GUARD_TOKENS)),
        VerifierKind::Moderation | VerifierKind::Http => Some(VerifierFee {
            per_call: micro_usd(seat.usd_per_call.unwrap_or(0.0)),
            model: None,
            ..asked(1, (0, 0))
        }),
    }
}

/// Dollars to millionths; the range was checked when the file was read.
pub fn micro_usd(dollars: f64) -> MicroUsd {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e12")]
    let micro = (dollars * 1e6).round() as u64;
    MicroUsd(micro)
}
