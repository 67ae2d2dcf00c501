//! Wiring of money: what models and verifiers cost, and who watches over it.

use crate::config::{Config, OfferedModel, SeatChange, VerifierKind, stand_ins};
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

    /// What a model costs; nothing if nobody knows.
    #[must_use]
    pub fn get(&self, model: &str) -> Price {
        self.0.get(model).copied().unwrap_or_default()
    }

    /// The dearest of a model and those that stand in for it; `None` if the price of one is unknown.
    fn dearest(&self, model: &OfferedModel, config: &Config) -> Option<Price> {
        let by_name = config.models.iter().map(|model| (model.name.as_str(), model)).collect();
        let others = stand_ins(model, &by_name).unwrap_or_default();
        let mut dearest = self.0.get(&model.name).copied()?;
        for other in others {
            let price = self.0.get(other)?;
            dearest.input_usd_per_million =
                dearest.input_usd_per_million.max(price.input_usd_per_million);
            dearest.output_usd_per_million =
                dearest.output_usd_per_million.max(price.output_usd_per_million);
        }
        Some(dearest)
    }
}

fn price_of(model: &OfferedModel, table: &PriceTable, now_ms: u64) -> Option<Price> {
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
    turn_deadline: Duration,
) -> anyhow::Result<Steward> {
    let prices = Prices::of(config, now_ms)?;
    let mut policies = BTreeMap::new();
    for (name, tenant) in &config.tenants {
        if let Some(policy) = &tenant.policy {
            let policy = TenantPolicy::parse(policy.clone()).context("a tenant's policy")?;
            policies.insert(TenantId::new(name.as_str())?, policy);
        }
    }
    let dearest = config
        .models
        .iter()
        .filter_map(|model| Some((model.name.clone(), prices.dearest(model, config)?)));
    let dearest = dearest.collect();
    let fees = config.verifiers.values().filter_map(|seat| fee(seat, &prices)).collect();
    let mut known = prices.0;
    known.insert(Builtin::NAME.to_owned(), Price::default());
    Ok(Steward::new(state, policies, known, turn_deadline).with_dearest(dearest).with_fees(fees))
}

/// What one verifier that is asked elsewhere can cost for one candidate.
fn fee(seat: &SeatChange, prices: &Prices) -> Option<VerifierFee> {
    let model = || prices.get(seat.model.as_deref().unwrap_or_default());
    let asked = |calls, (input, output)| VerifierFee {
        calls,
        per_call: MicroUsd(0),
        price: model(),
        input_tokens: input,
        output_tokens: output,
    };
    match seat.kind {
        VerifierKind::Builtin => None,
        VerifierKind::Judge => Some(asked(JUDGE_CALLS, JUDGE_TOKENS)),
        VerifierKind::Guard => Some(asked(1, GUARD_TOKENS)),
        VerifierKind::Moderation | VerifierKind::Http => Some(VerifierFee {
            per_call: micro_usd(seat.usd_per_call.unwrap_or(0.0)),
            price: Price::default(),
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
