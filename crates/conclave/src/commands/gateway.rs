//! Asks a running gateway, for every command that does.
//!
//! **Invariant:** nothing is decided here; every rule is the gateway's, and the same as for everybody
//! who asks it over HTTP. A refusal is a [`GatewayRefusal`] whichever command it met, so that one place
//! turns it into an exit code.

use super::plain::printable;
use crate::cli::gateway::GatewayArgs;
use anyhow::{Context, anyhow};
use conclave_models::WebClient;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A gateway was reached and said no: a status from 400 to 499.
#[derive(Debug)]
pub struct GatewayRefusal {
    status: u16,
    reason: String,
}

impl fmt::Display for GatewayRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the gateway refused ({}): {}", self.status, self.reason)
    }
}

impl std::error::Error for GatewayRefusal {}

/// What a gateway answered.
pub struct GatewayAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl GatewayAnswer {
    /// What a gateway answers about something it does not have.
    pub fn not_found() -> Self {
        Self { status: 404, body: Vec::new() }
    }

    /// The error that this answer is, in the gateway's own words.
    pub fn to_error(&self) -> anyhow::Error {
        let document: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = document.as_ref().and_then(|document| document["error"]["message"].as_str());
        self.to_error_because(&message.map_or("it gave no reason".to_owned(), printable))
    }

    /// The error that this answer is, where the command knows better what to do about it.
    pub fn to_error_because(&self, reason: &str) -> anyhow::Error {
        let status = self.status;
        if (400..500).contains(&status) {
            return GatewayRefusal { status, reason: reason.to_owned() }.into();
        }
        anyhow!("the gateway answered {status}: {reason}")
    }
}

/// Speaks to one gateway.
pub struct GatewayClient {
    client: WebClient,
    key: Option<String>,
    runtime: tokio::runtime::Runtime,
}

impl GatewayClient {
    /// Prepares to ask a gateway; opens no connection yet.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(gateway: &GatewayArgs, patience: Duration) -> anyhow::Result<Self> {
        // Whoever types a URL here may reach what they can reach anyhow.
        let client = WebClient::new(&gateway.url, true, patience)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { client, key: gateway.key.clone(), runtime })
    }

    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Fetches what stands at a path, with the key if there is one.
    ///
    /// # Errors
    /// When there is no answer, or too much of it.
    pub fn fetch(&self, path: &str, bytes_max: usize) -> anyhow::Result<GatewayAnswer> {
        let answer = self.client.get(path, self.key.as_deref(), bytes_max);
        let (status, body) =
            self.runtime.block_on(answer).with_context(|| format!("GET /{path}"))?;
        Ok(GatewayAnswer { status, body })
    }

    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> anyhow::Result<GatewayAnswer> {
        let key = self.key.as_deref();
        let key = key.ok_or_else(|| anyhow!("give an API key with --key or in CONCLAVE_KEY"))?;
        let body = body.map(|body| body.to_string().into_bytes());
        let answer = self.client.ask(method, path, key, body, ANSWER_BYTES_MAX);
        let (status, body) =
            self.runtime.block_on(answer).context("the gateway does not answer")?;
        Ok(GatewayAnswer { status, body })
    }
}

/// Asks a gateway for something that only a key opens.
///
/// # Errors
/// When it cannot be reached, or its answer is not what was asked for; a [`GatewayRefusal`] when it
/// says no.
pub fn ask_gateway(
    gateway: &GatewayArgs,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> anyhow::Result<Value> {
    let answer = GatewayClient::new(gateway, PATIENCE)?.ask(method, path, body)?;
    if !(200..300).contains(&answer.status) {
        return Err(answer.to_error());
    }
    serde_json::from_slice(&answer.body)
        .with_context(|| format!("what answers at {} is no gateway", gateway.url))
}

/// Percent-encodes a name, so that it cannot become another path or query.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_part_of_a_path() {
        assert_eq!(escape("River/People ?é"), "River%2FPeople%20%3F%C3%A9");
    }
}
