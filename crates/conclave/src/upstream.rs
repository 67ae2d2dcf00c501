//! Wiring of what is asked over the network: providers, the models they run, and verifiers elsewhere.

use crate::config::{
    Config, GuardTemplate, ModelConfig, OUTSIDE_TIMEOUT_MS, OnFailure, Provider, ProviderKind,
    SeatChange, SecretRef, Temperature, VerifierKind, stand_ins,
};
use crate::prices::{Prices, micro_usd};
use anyhow::{Context, anyhow};
use conclave_core::{MicroUsd, Priority, Seat};
use conclave_engine::{Entropy, Model, Verifier, WhenFailing};
use conclave_govern::Price;
use conclave_models::{
    ApiKey, BreakerLimits, Builtin, Chain, Entry, GuardModel, HttpVerifier, ModelJudge, Models,
    Moderation, OutsideSeat, PricedModel, ProviderConfig, ProviderProtocol, TemperaturePolicy,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The moderation model that is asked for where none is named.
const MODERATION_MODEL: &str = "omni-moderation-latest";

/// Providers and their models, connected: each provider once, however many ask it.
pub struct Upstream<'a> {
    config: &'a Config,
    providers: BTreeMap<&'a str, conclave_models::Provider>,
    models: BTreeMap<&'a str, PricedModel>,
}

impl<'a> Upstream<'a> {
    /// Makes the clients; nothing is sent yet.
    ///
    /// # Errors
    /// When a secret cannot be had or an address is refused.
    pub fn connect(config: &'a Config, prices: &Prices) -> anyhow::Result<Self> {
        let mut providers = BTreeMap::new();
        for provider in &config.providers {
            let settings = provider_config(provider, config.telemetry.tell_providers)?;
            let connected = conclave_models::Provider::new(settings)?;
            providers.insert(provider.name.as_str(), connected);
        }
        let mut models = BTreeMap::new();
        for model in &config.models {
            let provider = providers
                .get(model.provider.as_str())
                .ok_or_else(|| anyhow!("there is no provider `{}`", model.provider))?;
            let price = prices.counted(&model.name);
            models.insert(model.name.as_str(), priced(model, provider, price));
        }
        Ok(Self { config, providers, models })
    }

    /// What clients may ask for.
    ///
    /// # Errors
    /// When two have the same name, or data files are broken.
    pub fn offered(&self) -> anyhow::Result<Models> {
        let by_name = self.config.models.iter().map(|model| (model.name.as_str(), model)).collect();
        let mut entries = vec![builtin()?];
        for model in &self.config.models {
            let own = self.model(&model.name)?;
            let others = stand_ins(model, &by_name).unwrap_or_default();
            let others: Vec<_> =
                others.into_iter().filter_map(|name| self.models.get(name).cloned()).collect();
            let stand_ins = others.iter().map(|other| other.model.provider().into()).collect();
            entries.push(Entry {
                stand_ins,
                name: model.name.clone(),
                upstream: upstream_name(model).to_owned(),
                provider: model.provider.as_str().into(),
                input_price: own.input_price,
                output_price: own.output_price,
                model: with_stand_ins(own, others),
            });
        }
        Ok(Models::new(entries)?)
    }

    /// The verifiers that are not built in.
    ///
    /// # Errors
    /// When a secret cannot be had or an address is refused.
    pub fn verifiers(&self, entropy: &Arc<dyn Entropy>) -> anyhow::Result<Vec<Arc<dyn Verifier>>> {
        let outside =
            self.config.verifiers.iter().filter(|(_, seat)| seat.kind != VerifierKind::Builtin);
        outside.map(|(name, seat)| self.verifier(name, seat, entropy)).collect()
    }

    fn verifier(
        &self,
        name: &str,
        seat: &SeatChange,
        entropy: &Arc<dyn Entropy>,
    ) -> anyhow::Result<Arc<dyn Verifier>> {
        let place = place(name, seat);
        let price = micro_usd(seat.usd_per_call.unwrap_or(0.0));
        let model = || self.model(seat.model.as_deref().unwrap_or_default());
        Ok(match seat.kind {
            VerifierKind::Builtin => return Err(anyhow!("the verifier `{name}` is built in")),
            VerifierKind::Judge => Arc::new(ModelJudge::new(place, model()?, entropy.clone())),
            VerifierKind::Guard => Arc::new(GuardModel::new(
                place,
                model()?,
                template(seat.template.unwrap_or_default()),
            )),
            VerifierKind::Moderation => {
                let provider = seat.provider.as_deref().unwrap_or_default();
                let provider = self.providers.get(provider).cloned();
                let provider = provider.ok_or_else(|| anyhow!("`{name}` has no provider"))?;
                let model = seat.upstream_model.as_deref().unwrap_or(MODERATION_MODEL);
                Arc::new(Moderation::new(place, provider, model, price))
            }
            VerifierKind::Http => {
                let api_key = seat.api_key.as_ref().map(|key| secret(key, name)).transpose()?;
                let settings = ProviderConfig {
                    api_keys: api_key.into_iter().map(ApiKey::new).collect(),
                    allow_private: seat.allow_private,
                    response_bytes_max: 64 * 1024,
                    tells_trace: self.config.telemetry.tell_providers,
                    ..ProviderConfig::new(name, seat.url.as_deref().unwrap_or_default())
                };
                Arc::new(HttpVerifier::new(place, settings, price)?)
            }
        })
    }

    fn model(&self, name: &str) -> anyhow::Result<PricedModel> {
        self.models.get(name).cloned().ok_or_else(|| anyhow!("there is no model `{name}`"))
    }
}

fn with_stand_ins(own: PricedModel, others: Vec<PricedModel>) -> Arc<dyn Model> {
    if others.is_empty() { Arc::new(own.model) } else { Arc::new(Chain::new(own, others)) }
}

fn priced(model: &ModelConfig, provider: &conclave_models::Provider, price: Price) -> PricedModel {
    PricedModel {
        name: model.name.as_str().into(),
        model: provider.model(upstream_name(model)),
        input_price: price.input_usd_per_million.0,
        output_price: price.output_usd_per_million.0,
    }
}

fn upstream_name(model: &ModelConfig) -> &str {
    model.upstream_model.as_deref().unwrap_or(&model.name)
}

fn builtin() -> anyhow::Result<Entry> {
    Ok(Entry {
        name: Builtin::NAME.into(),
        upstream: Builtin::NAME.into(),
        model: Arc::new(Builtin::new().context("responder files")?),
        provider: "conclave".into(),
        stand_ins: Vec::new(),
        input_price: MicroUsd(0),
        output_price: MicroUsd(0),
    })
}

fn provider_config(provider: &Provider, tells_trace: bool) -> anyhow::Result<ProviderConfig> {
    let one = provider.api_key.iter().map(|reference| (reference, 1));
    let several = provider.keys.iter().map(|key| (&key.api_key, key.weight));
    let keys = one.chain(several).map(|(reference, weight)| {
        let secret = secret(reference, &provider.name)?;
        Ok(ApiKey { weight, ..ApiKey::new(secret) })
    });
    Ok(ProviderConfig {
        protocol: match provider.kind {
            ProviderKind::Openai => ProviderProtocol::OpenAi,
            ProviderKind::Anthropic => ProviderProtocol::Anthropic,
            ProviderKind::Azure => ProviderProtocol::Azure {
                api_version: provider.api_version.clone().unwrap_or_default(),
            },
        },
        api_keys: keys.collect::<anyhow::Result<_>>()?,
        timeout: Duration::from_millis(provider.timeout_ms),
        allow_private: provider.allow_private,
        response_bytes_max: provider.reply_bytes_max,
        reply_tokens_max: provider.reply_tokens_max,
        breaker: BreakerLimits {
            failures: provider.breaker_failures,
            pause: Duration::from_millis(provider.breaker_pause_ms),
        },
        temperature: match provider.temperature {
            Temperature::Always => TemperaturePolicy::Always,
            Temperature::Retries => TemperaturePolicy::Retries,
            Temperature::Never => TemperaturePolicy::Never,
        },
        tells_trace,
        ..ProviderConfig::new(&provider.name, &provider.base_url)
    })
}

fn secret(reference: &SecretRef, of: &str) -> anyhow::Result<String> {
    reference.resolve().map_err(|why| anyhow!("the key of `{of}`: {why}"))
}

fn place(name: &str, seat: &SeatChange) -> OutsideSeat {
    let priority = seat.priority.and_then(Priority::from_number).unwrap_or(Priority::Middle);
    let own = Seat::new(name, priority);
    OutsideSeat {
        seat: Seat {
            weight: seat.weight.unwrap_or(own.weight),
            required: seat.required.unwrap_or(false),
            monitor: seat.monitor.unwrap_or(false),
            ..own
        },
        timeout: Duration::from_millis(seat.timeout_ms.unwrap_or(OUTSIDE_TIMEOUT_MS)),
        when_failing: match seat.on_failure.unwrap_or_default() {
            OnFailure::Dissent => WhenFailing::Dissents,
            OnFailure::LeaveOut => WhenFailing::LeftOut,
        },
        always: seat.always.unwrap_or(false),
    }
}

const fn template(template: GuardTemplate) -> conclave_models::GuardTemplate {
    match template {
        GuardTemplate::Chat => conclave_models::GuardTemplate::Chat,
        GuardTemplate::Prompt => conclave_models::GuardTemplate::Prompt,
    }
}
