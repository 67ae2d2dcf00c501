//! Adapters to what proposes replies, and to what judges them elsewhere: providers that speak OpenAI's,
//! Azure's or Anthropic's protocol, the built-in responder, and verifiers that are models or services.
//!
//! **Invariant:** where a request goes and with which key is decided by configuration alone;
//! nothing a client sends can choose a host or a key, nor a header but the one that names Anthropic's betas.
//!
//! **Invariant:** everything a provider sends is bounded in size and time, and only the fields that
//! are judged leave this crate: text, tool calls, why it stopped, what it cost.
//!
//! **Invariant:** no secret stands in an error, in `Debug` output or in a log line.

mod anthropic;
mod body;
mod breaker;
mod builtin;
mod calls;
mod chain;
mod config;
mod content;
mod fault;
#[cfg(test)]
mod fixture;
mod hosted;
mod keys;
mod link;
mod logprobs;
mod mend;
mod protocol;
mod redact;
mod registry;
mod reply;
mod retry;
mod sse;
mod ssrf;
mod stream;
mod transport;
mod upstream;
mod usage;
mod vectors;
mod verifiers;
mod web;

pub use breaker::BreakerLimits;
pub use builtin::Builtin;
pub use chain::{Chain, PricedModel};
pub use config::{ApiKey, ConfigError, ProviderConfig, TemperaturePolicy};
pub use hosted::{HostedModel, Provider};
pub use protocol::ProviderProtocol;
pub use registry::{DuplicateModel, Entry, Models};
pub use ssrf::{AddressError, AddressPolicy, BaseUrl, Lookup, check_fetched_url, system_lookup};
pub use verifiers::{
    GUARD_TOKENS, GuardModel, GuardTemplate, HttpVerifier, JUDGE_TOKENS, ModelJudge, Moderation,
    OutsideSeat,
};
pub use web::{WebClient, WebError};
