//! What an administrator says about a provider.

use crate::breaker::BreakerLimits;
use crate::protocol::ProviderProtocol;
use crate::ssrf::AddressError;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// Largest reply that is read unless configured otherwise.
const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Tokens a reply may have where the client does not say and the protocol wants to know.
const REPLY_TOKENS_MAX: u32 = 4096;

/// One provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// Its name, for logs and the ledger.
    pub name: String,
    /// What it speaks.
    pub protocol: ProviderProtocol,
    /// Where it is, up to but without `/chat/completions`, `/messages` or `/openai/deployments`.
    pub base_url: String,
    /// Its keys; requests are shared between them.
    pub api_keys: Vec<ApiKey>,
    /// What it calls the model; the name the client used where there is none.
    pub upstream_model: Option<String>,
    /// The longest it may be silent, whatever the request allows: before an answer begins, and between two pieces
    /// of it. An answer that comes whole has to be there by then.
    pub timeout: Duration,
    /// The longest a connection may take to open.
    pub connect_timeout: Duration,
    /// The largest reply that is read.
    pub response_bytes_max: usize,
    /// How many tokens a reply may have where the client does not say and the protocol asks.
    pub reply_tokens_max: u32,
    /// Sent with every request, as other providers want their keys.
    pub headers: Vec<(String, SecretString)>,
    /// Permits private addresses; loopback is permitted anyway where the URL names it.
    pub allow_private: bool,
    /// Reads the reply as events instead of in one piece.
    pub stream_upstream: bool,
    /// When the field's temperature is sent.
    pub temperature: TemperaturePolicy,
    /// When it counts as down.
    pub breaker: BreakerLimits,
    /// Whether it is told which trace a request belongs to.
    pub tells_trace: bool,
}

impl ProviderConfig {
    /// A provider with this name at this URL, and defaults for the rest.
    #[must_use]
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            protocol: ProviderProtocol::default(),
            api_keys: Vec::new(),
            upstream_model: None,
            timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(5),
            response_bytes_max: RESPONSE_BYTES_MAX,
            reply_tokens_max: REPLY_TOKENS_MAX,
            headers: Vec::new(),
            allow_private: false,
            stream_upstream: false,
            temperature: TemperaturePolicy::default(),
            breaker: BreakerLimits::default(),
            tells_trace: true,
        }
    }
}

/// A key and its share of the requests.
#[derive(Clone)]
pub struct ApiKey {
    /// The key itself.
    pub secret: SecretString,
    /// Its share, compared with the other keys; at least 1.
    pub weight: u16,
}

impl ApiKey {
    /// A key with an ordinary share.
    #[must_use]
    pub fn new(secret: impl Into<SecretString>) -> Self {
        Self { secret: secret.into(), weight: 1 }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiKey").field("weight", &self.weight).finish_non_exhaustive()
    }
}

/// The URL is left out: a password may have been put into it by mistake.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("protocol", &self.protocol)
            .field("upstream_model", &self.upstream_model)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_bytes_max", &self.response_bytes_max)
            .field("allow_private", &self.allow_private)
            .field("stream_upstream", &self.stream_upstream)
            .field("temperature", &self.temperature)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// When the temperature the field suggests is sent, where the client set none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TemperaturePolicy {
    /// Never: some models refuse the field.
    Never,
    /// Only when an attempt has failed before: another try should differ.
    Retries,
    /// At every attempt, unless the model is known to refuse it or the client samples otherwise.
    #[default]
    Always,
}

impl TemperaturePolicy {
    /// Whether it is sent at this attempt, counted from 0.
    pub(crate) const fn applies(self, attempt: u8) -> bool {
        match self {
            Self::Never => false,
            Self::Retries => attempt > 0,
            Self::Always => true,
        }
    }
}

/// Whether OpenAI's model of this name reasons before it writes; `model` is the provider's own name for
/// it, with or without a prefix. Such a model answers a temperature or `max_tokens` with an error.
pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    ["o1", "o3", "o4", "gpt-5"].iter().any(|family| name.starts_with(family))
}

/// Whether a model would take a temperature beside what the client asks for: several refuse it beside
/// another way of sampling.
pub(crate) fn takes_temperature(model: &str, body: &Map<String, Value>) -> bool {
    let others = ["top_p", "top_k", "thinking", "reasoning", "reasoning_effort"];
    let set = |field: &&str| body.get(*field).is_some_and(|value| !value.is_null());
    !is_reasoning_model(model) && !others.iter().any(set)
}

/// Why a provider cannot be used as configured.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Its URL.
    #[error("provider {provider}: {error}")]
    Address {
        /// Which provider.
        provider: String,
        /// What is wrong.
        error: AddressError,
    },
    /// A header, or the key, holds what no header may hold.
    #[error("provider {provider}: the header {header} cannot be sent")]
    Header {
        /// Which provider.
        provider: String,
        /// Which header.
        header: String,
    },
    /// The HTTP client could not be made, mostly for want of root certificates.
    #[error("provider {provider}: no HTTP client: {message}")]
    Client {
        /// Which provider.
        provider: String,
        /// What the client said.
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_temperature_is_not_suggested_where_it_would_be_refused() {
        for (model, body, expected) in [
            ("gpt-4o", json!({}), true),
            ("llama3.2:3b", json!({"top_p": null}), true),
            ("o3-mini", json!({}), false),
            ("openai/gpt-5-nano", json!({}), false),
            ("claude-x", json!({"top_p": 0.9}), false),
            ("claude-x", json!({"thinking": {"type": "enabled"}}), false),
            ("m", json!({"reasoning_effort": "low"}), false),
        ] {
            let taken = takes_temperature(model, body.as_object().unwrap());
            assert_eq!(taken, expected, "{model} {body}");
        }
    }
}
