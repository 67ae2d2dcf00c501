//! Providers and the models they run.

use super::SecretRef;
use super::named::Named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server that runs models.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// A name for `[[models]]` to refer to; the key where it is written as `[providers.NAME]`.
    #[serde(default)]
    pub name: String,
    /// What it speaks.
    #[serde(default)]
    pub kind: ProviderKind,
    /// Its address: up to and including `/v1`, or an Azure resource's without a path.
    pub base_url: String,
    /// `env:NAME` or `file:PATH`.
    #[serde(default)]
    pub api_key: Option<SecretRef>,
    /// Several keys instead of one, between which requests are shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ProviderKey>,
    /// The version of Azure's interface, such as `2024-10-21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Permits a private address other than loopback.
    #[serde(default)]
    pub allow_private: bool,
    /// Bytes of one reply.
    #[serde(default = "reply_bytes_max")]
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub reply_bytes_max: usize,
    /// Tokens of one reply where the client does not say; only Anthropic must be told.
    #[serde(default = "reply_tokens_max", skip_serializing_if = "is_usual_tokens")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub reply_tokens_max: u32,
    /// Milliseconds one exchange may take.
    #[serde(default = "timeout_ms", skip_serializing_if = "is_usual_timeout")]
    #[schemars(range(min = 100, max = 600_000))]
    pub timeout_ms: u64,
    /// Outages in a row after which it is left alone; 0 never leaves it alone.
    #[serde(default = "breaker_failures", skip_serializing_if = "is_usual_failures")]
    #[schemars(range(max = 1_000))]
    pub breaker_failures: u32,
    /// Milliseconds it is left alone before one request tries again.
    #[serde(default = "breaker_pause_ms", skip_serializing_if = "is_usual_pause")]
    #[schemars(range(min = 100, max = 3_600_000))]
    pub breaker_pause_ms: u64,
    /// When the temperature that suits the conversation is sent, where the client sets none.
    #[serde(default, skip_serializing_if = "Temperature::is_usual")]
    pub temperature: Temperature,
}

/// When a temperature is suggested to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// At every attempt, except to models that are known to refuse one.
    #[default]
    Always,
    /// Only when an attempt was withheld before.
    Retries,
    /// Never.
    Never,
}

impl Temperature {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

const fn reply_bytes_max() -> usize {
    2 * 1024 * 1024
}

const fn reply_tokens_max() -> u32 {
    4096
}

const fn timeout_ms() -> u64 {
    120_000
}

const fn breaker_failures() -> u32 {
    10
}

const fn breaker_pause_ms() -> u64 {
    5_000
}

// What stands at its default is left out of the digest that names a configuration in the ledger, so
// that a new setting does not change the name of an old file.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
const fn is_usual_tokens(value: &u32) -> bool {
    *value == reply_tokens_max()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
const fn is_usual_timeout(value: &u64) -> bool {
    *value == timeout_ms()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
const fn is_usual_failures(value: &u32) -> bool {
    *value == breaker_failures()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
const fn is_usual_pause(value: &u64) -> bool {
    *value == breaker_pause_ms()
}

impl Named for Provider {
    fn name_mut(&mut self) -> &mut String {
        &mut self.name
    }
}

/// One of several keys.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderKey {
    /// `env:NAME` or `file:PATH`.
    pub api_key: SecretRef,
    /// Its share of the requests, compared with the other keys.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: u16,
}

const fn one() -> u16 {
    1
}

/// What a provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI's chat interface, as spoken by OpenAI, vLLM, Ollama, llama.cpp and many others.
    #[default]
    Openai,
    /// The same as Azure serves it.
    Azure,
    /// Anthropic's Messages.
    Anthropic,
}

/// A model offered to clients.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The name clients ask for; the key where it is written as `[models.NAME]`.
    #[serde(default)]
    pub name: String,
    /// The provider that runs it.
    pub provider: String,
    /// Its name there, if another; with Azure, the name of the deployment.
    #[serde(default)]
    pub upstream_model: Option<String>,
    /// Models that stand in for it when it cannot answer, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Dollars per million tokens read; without one, the table compiled in is asked.
    #[serde(default)]
    pub input_usd_per_million: Option<f64>,
    /// Dollars per million tokens written; without one, the table compiled in is asked.
    #[serde(default)]
    pub output_usd_per_million: Option<f64>,
    /// Tokens it can write in one reply; a budget sets aside so much, and tells the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub output_tokens_max: Option<u64>,
}

impl Named for ModelConfig {
    fn name_mut(&mut self) -> &mut String {
        &mut self.name
    }
}
