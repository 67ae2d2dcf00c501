//! Adapters to what proposes replies: providers that speak the OpenAI chat protocol, and the
//! built-in responder.
//!
//! **Invariant:** where a request goes and with which key is decided by configuration alone;
//! nothing a client sends can choose a host, a key or a header.
//!
//! **Invariant:** everything a provider sends is bounded in size and time, and only the fields that
//! are judged leave this crate: text, tool calls, why it stopped, what it cost.
//!
//! **Invariant:** no secret stands in an error, in `Debug` output or in a log line.

mod body;
mod breaker;
mod builtin;
mod calls;
mod config;
mod content;
mod fault;
#[cfg(test)]
mod fixture;
mod openai;
mod redact;
mod registry;
mod reply;
mod retry;
mod sse;
mod ssrf;
mod stream;
mod transport;
mod usage;
mod vectors;
mod web;

pub use breaker::BreakerLimits;
pub use builtin::Builtin;
pub use config::{ConfigError, ProviderConfig, TemperaturePolicy};
pub use openai::OpenAiCompatible;
pub use registry::{DuplicateModel, Entry, Models};
pub use ssrf::{AddressError, AddressPolicy, BaseUrl};
pub use web::{WebClient, WebError};
