//! A provider that speaks the OpenAI chat protocol, as a [`Model`].
//!
//! **Invariant:** an exchange ends within the time the request allows, whatever the provider does,
//! and reads no more bytes than configured.
//!
//! **Invariant:** a request is sent again only if the provider cannot have begun to answer it: no
//! connection was made, or it said itself that it did not take it.

use crate::body::{UpstreamBody, vector_request};
use crate::breaker::Breaker;
use crate::config::{ConfigError, ProviderConfig};
use crate::fault::Fault;
use crate::redact::Redactor;
use crate::reply::{Proposal, read_reply};
use crate::retry::{RetryBudget, wait_asked_for};
use crate::ssrf::{Lookup, system_lookup};
use crate::stream::Accumulator;
use crate::transport::{Answer, SendError, Transport};
use crate::vectors::read_vectors;
use bytes::Bytes;
use conclave_core::Candidate;
use conclave_engine::{Embedded, Model, ModelError, ModelRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest any exchange may take, whatever is configured.
const TIME_MAX: Duration = Duration::from_secs(600);
/// A provider that had less than this cannot be blamed for being late.
const FAIR_TIME: Duration = Duration::from_secs(1);
/// How much of an error is read.
const ERROR_BYTES_MAX: usize = 4 * 1024;
/// How long an error is read: its status is known, so it is not worth the whole deadline.
const ERROR_TIME: Duration = Duration::from_millis(250);
/// How long the end of a stream is waited for, so that its connection can be used again.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Where the text of a reply goes while it is being written.
type Pieces = tokio::sync::mpsc::Sender<String>;

/// A model behind an OpenAI-compatible API. Clones share connections, breaker and retry budget.
#[derive(Clone)]
pub struct OpenAiCompatible {
    shared: Arc<Shared>,
    upstream_model: Option<Arc<str>>,
}

struct Shared {
    config: ProviderConfig,
    secrets: Vec<SecretString>,
    transport: Transport,
    breaker: Breaker,
    retries: RetryBudget,
    usage_estimates: AtomicU64,
}

impl fmt::Debug for OpenAiCompatible {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenAiCompatible")
            .field("provider", &self.shared.config.name)
            .field("upstream_model", &self.upstream_model)
            .finish_non_exhaustive()
    }
}

impl OpenAiCompatible {
    /// Checks the configuration and makes the client; nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ProviderConfig) -> Result<Self, ConfigError> {
        Self::with_lookup(config, system_lookup())
    }

    fn with_lookup(config: ProviderConfig, lookup: Lookup) -> Result<Self, ConfigError> {
        let transport = Transport::new(&config, lookup)?;
        let headers = config.headers.iter().map(|(_, value)| value.clone());
        let secrets = config.api_key.iter().cloned().chain(headers).collect();
        let upstream_model = config.upstream_model.as_deref().map(Arc::from);
        Ok(Self {
            upstream_model,
            shared: Arc::new(Shared {
                secrets,
                transport,
                breaker: Breaker::new(config.breaker),
                retries: RetryBudget::new(),
                usage_estimates: AtomicU64::new(0),
                config,
            }),
        })
    }

    /// Another model of the same provider, over the same connections.
    #[must_use]
    pub fn with_model(&self, upstream_model: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), upstream_model: Some(upstream_model.into()) }
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.shared.config.name
    }

    /// How many replies came without a believable count of tokens, so that ours was taken.
    #[must_use]
    pub fn usage_estimates(&self) -> u64 {
        self.shared.usage_estimates.load(Ordering::Relaxed)
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        pieces: Option<&Pieces>,
    ) -> Result<Candidate, Fault> {
        let shared = &*self.shared;
        let start = Instant::now();
        let time = request.timeout.min(shared.config.timeout).min(TIME_MAX);
        let deadline = start + time;
        let permit = shared
            .breaker
            .admit(start)
            .ok_or_else(|| Fault::unreachable("it is down and is left alone for a while"))?;
        let result = timeout_at(deadline, self.exchange(request, deadline, pieces))
            .await
            .unwrap_or_else(|_| Err(Fault::timeout(time >= FAIR_TIME)));
        let is_outage = result.as_ref().is_err_and(|fault| fault.is_outage);
        permit.report(is_outage, Instant::now());
        result
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        deadline: Instant,
        pieces: Option<&Pieces>,
    ) -> Result<Candidate, Fault> {
        let streams = self.shared.config.stream_upstream || pieces.is_some();
        let answer = self.send(self.body(request, streams)?, deadline).await?;
        let proposal = if answer.status().is_success() {
            self.read(answer, streams, pieces).await?
        } else {
            return Err(self.refusal(answer, request).await);
        };
        Ok(self.settle(request, proposal))
    }

    fn body(&self, request: &ModelRequest, stream: bool) -> Result<Bytes, Fault> {
        let config = &self.shared.config;
        let body = UpstreamBody {
            request,
            model: self.upstream_model.as_deref(),
            stream,
            temperature: request
                .temperature
                .filter(|_| config.temperature.applies(request.attempt)),
        };
        serde_json::to_vec(&body)
            .map(Bytes::from)
            .map_err(|_| Fault::invalid("the request has no JSON form"))
    }

    /// Sends the request, a second time where that is safe and the budget allows it.
    async fn send(&self, body: Bytes, deadline: Instant) -> Result<Answer, Fault> {
        let shared = &*self.shared;
        shared.retries.deposit();
        let first = shared.transport.post(body.clone()).await;
        let wait = match &first {
            Ok(answer) => wait_asked_for(answer.status(), answer.headers())
                .filter(|wait| Instant::now() + *wait < deadline),
            Err(SendError::Connect) => Some(Duration::ZERO),
            Err(SendError::Forbidden | SendError::Broken) => None,
        };
        match wait {
            Some(wait) if shared.retries.withdraw() => {
                drop(first);
                tokio::time::sleep(wait).await;
                shared.transport.post(body).await
            }
            _ => first,
        }
        .map_err(SendError::into_fault)
    }

    async fn vectors(
        &self,
        request: &Map<String, Value>,
        timeout: Duration,
    ) -> Result<Embedded, Fault> {
        let shared = &*self.shared;
        let start = Instant::now();
        let permit = shared
            .breaker
            .admit(start)
            .ok_or_else(|| Fault::unreachable("it is down and is left alone for a while"))?;
        let time = timeout.min(shared.config.timeout).min(TIME_MAX);
        let result = timeout_at(start + time, self.exchange_for_vectors(request))
            .await
            .unwrap_or_else(|_| Err(Fault::timeout(time >= FAIR_TIME)));
        let is_outage = result.as_ref().is_err_and(|fault| fault.is_outage);
        permit.report(is_outage, Instant::now());
        result
    }

    async fn exchange_for_vectors(&self, request: &Map<String, Value>) -> Result<Embedded, Fault> {
        let body = vector_request(request, self.upstream_model.as_deref());
        let body = serde_json::to_vec(&body)
            .map_err(|_| Fault::invalid("the request has no JSON form"))?;
        let sent = self.shared.transport.post_for_vectors(Bytes::from(body)).await;
        let answer = sent.map_err(SendError::into_fault)?;
        let status = answer.status();
        if !status.is_success() {
            let message = format!("status {}", status.as_u16());
            return Err(Fault::refused(message, status.is_server_error()));
        }
        if answer.is_packed() {
            return Err(Fault::invalid("the answer is packed, which was not asked for"));
        }
        read_vectors(&answer.body(self.shared.config.response_bytes_max).await?)
    }

    async fn read(
        &self,
        answer: Answer,
        streams: bool,
        pieces: Option<&Pieces>,
    ) -> Result<Proposal, Fault> {
        let bytes_max = self.shared.config.response_bytes_max;
        if answer.is_packed() {
            return Err(Fault::invalid("the answer is packed, which was not asked for"));
        }
        if streams && answer.is_events() {
            read_events(answer, bytes_max, pieces).await
        } else {
            read_reply(&answer.body(bytes_max).await?)
        }
    }

    async fn refusal(&self, answer: Answer, request: &ModelRequest) -> Fault {
        let status = answer.status();
        if status.is_redirection() {
            return Fault::refused(format!("status {} is not followed", status.as_u16()), false);
        }
        let (body, is_cut) = answer.beginning(ERROR_BYTES_MAX, ERROR_TIME).await;
        let redactor =
            Redactor { secrets: &self.shared.secrets, conversation: &request.conversation };
        let snippet = redactor.snippet(&body, is_cut);
        let message = format!("status {}: {snippet}", status.as_u16());
        Fault::refused(message, status.is_server_error())
    }

    fn settle(&self, request: &ModelRequest, proposal: Proposal) -> Candidate {
        let mut candidate = proposal.candidate;
        let (usage, is_estimate) = proposal.claim.settle(request, &candidate);
        if is_estimate {
            self.shared.usage_estimates.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(provider = self.provider(), "usage was counted locally");
        }
        candidate.usage = usage;
        if candidate.model.is_empty() {
            candidate.model = self.asked_model(request).to_owned();
        }
        candidate
    }

    fn asked_model<'a>(&'a self, request: &'a ModelRequest) -> &'a str {
        let visible = || request.body.get("model").and_then(Value::as_str);
        self.upstream_model.as_deref().or_else(visible).unwrap_or_default()
    }
}

async fn read_events(
    mut answer: Answer,
    bytes_max: usize,
    pieces: Option<&Pieces>,
) -> Result<Proposal, Fault> {
    let mut accumulator = Accumulator::default();
    let mut bytes = 0;
    loop {
        let piece = match answer.piece().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            // A connection that breaks after the reply was complete takes nothing away from it.
            Err(_) if accumulator.is_complete() => break,
            Err(fault) => return Err(fault),
        };
        bytes += piece.len();
        if bytes > bytes_max {
            return Err(Fault::too_large(format!("the stream has more than {bytes_max} bytes")));
        }
        let is_done = accumulator.feed(&piece)?;
        if let Some(pieces) = pieces
            && let Some(text) = accumulator.fresh_text()
        {
            // Whoever does not listen any more still gets the whole.
            let _ = pieces.send(text).await;
        }
        if is_done {
            drain(answer);
            break;
        }
    }
    accumulator.finish()
}

/// Reads what is left after the last event; a connection can only be used again once it is read
/// out.
fn drain(mut answer: Answer) {
    if let Some(Ok(None) | Err(_)) = answer.piece().now_or_never() {
        return;
    }
    tokio::spawn(answer.beginning(ERROR_BYTES_MAX, DRAIN_TIME));
}

impl Model for OpenAiCompatible {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            let result = self.ask(&request, None).await;
            result.map_err(|fault| fault.into_error(self.provider()))
        })
    }

    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        pieces: Pieces,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            let result = self.ask(&request, Some(&pieces)).await;
            result.map_err(|fault| fault.into_error(self.provider()))
        })
    }

    fn embed(
        &self,
        request: Arc<Map<String, Value>>,
        timeout: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        Box::pin(async move {
            let result = self.vectors(&request, timeout).await;
            Some(result.map_err(|fault| fault.into_error(self.provider())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request_saying;
    use conclave_core::GenerationFailure;
    use conclave_testkit::{Behaviour, MockModel, Script};

    /// Resolves every name to this machine, as a hostile name server would.
    fn rebinding() -> Lookup {
        Arc::new(|_| Box::pin(async { Ok(vec![([127, 0, 0, 1], 0).into()]) }))
    }

    #[tokio::test]
    async fn a_name_that_points_inside_is_not_connected_to() {
        let mock =
            MockModel::scripted(Script::always(Behaviour::Reply("inside".into()))).await.unwrap();
        let url = format!("http://api.example:{}/v1", mock.address().port());
        let public = ProviderConfig::new("public", &url);
        let model = OpenAiCompatible::with_lookup(public.clone(), rebinding()).unwrap();
        let error = model.generate(request_saying("hi")).await.unwrap_err();
        assert_eq!(error.failure, GenerationFailure::Unreachable);
        assert!(error.message.contains("permitted"), "{error}");
        assert_eq!(mock.connections(), 0);

        let private = ProviderConfig { allow_private: true, ..public };
        let model = OpenAiCompatible::with_lookup(private, rebinding()).unwrap();
        let candidate = model.generate(request_saying("hi")).await.unwrap();
        assert_eq!(candidate.text, "inside");
    }
}
