//! A model that a provider runs, as a [`Model`].

use crate::anthropic;
use crate::body::{UpstreamBody, vector_request};
use crate::config::{ConfigError, ProviderConfig, is_reasoning_model, takes_temperature};
use crate::fault::Fault;
use crate::link::{Call, Link, Pieces, Received};
use crate::protocol::ProviderProtocol;
use crate::reply::{Proposal, read_reply};
use crate::ssrf::{Lookup, system_lookup};
use crate::vectors::read_vectors;
use bytes::Bytes;
use conclave_core::{Candidate, Usage};
use conclave_engine::{Embedded, Model, ModelError, ModelRequest};
use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A provider. Clones share connections, keys, breaker and retry budget.
#[derive(Clone)]
pub struct Provider {
    pub(crate) link: Arc<Link>,
    usage_estimates: Arc<AtomicU64>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Provider").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Provider {
    /// Checks the configuration and makes the client; nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ProviderConfig) -> Result<Self, ConfigError> {
        Self::with_lookup(config, system_lookup())
    }

    fn with_lookup(config: ProviderConfig, lookup: Lookup) -> Result<Self, ConfigError> {
        let link = Arc::new(Link::new(config, lookup)?);
        Ok(Self { link, usage_estimates: Arc::default() })
    }

    /// One of its models, by the name the provider gives it.
    #[must_use]
    pub fn model(&self, upstream_model: &str) -> HostedModel {
        HostedModel::of(self.clone(), Some(upstream_model.into()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.link.config.name
    }
}

/// A model behind a provider's API.
#[derive(Clone)]
pub struct HostedModel {
    provider: Provider,
    upstream_model: Option<Arc<str>>,
    url: Url,
}

impl fmt::Debug for HostedModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostedModel")
            .field("provider", &self.provider.name())
            .field("upstream_model", &self.upstream_model)
            .finish_non_exhaustive()
    }
}

impl HostedModel {
    /// A provider and its model in one; nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: ProviderConfig) -> Result<Self, ConfigError> {
        Self::with_lookup(config, system_lookup())
    }

    fn with_lookup(config: ProviderConfig, lookup: Lookup) -> Result<Self, ConfigError> {
        let model = config.upstream_model.as_deref().map(Arc::from);
        Ok(Self::of(Provider::with_lookup(config, lookup)?, model))
    }

    fn of(provider: Provider, upstream_model: Option<Arc<str>>) -> Self {
        let link = &provider.link;
        let url = link.config.protocol.endpoint(link.base(), upstream_model.as_deref());
        Self { provider, upstream_model, url }
    }

    /// Who runs it.
    #[must_use]
    pub fn provider_name(&self) -> &str {
        self.provider.name()
    }

    /// Another model of the same provider, over the same connections.
    #[must_use]
    pub fn with_model(&self, upstream_model: &str) -> Self {
        self.provider.model(upstream_model)
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.provider.name()
    }

    /// How many replies of the provider came without a believable count of tokens, so that ours was
    /// taken.
    #[must_use]
    pub fn usage_estimates(&self) -> u64 {
        self.provider.usage_estimates.load(Ordering::Relaxed)
    }

    /// Whether both are run by the same provider.
    pub(crate) fn shares_provider(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.provider.link, &other.provider.link)
    }

    /// Asks for a candidate. `is_again` says that the same provider was asked before for this turn.
    pub(crate) async fn ask(
        &self,
        request: &ModelRequest,
        is_again: bool,
        pieces: Option<&Pieces>,
    ) -> Result<Candidate, Fault> {
        let call = Call {
            url: &self.url,
            pieces,
            body: self.body(request, pieces.is_some())?,
            time: request.timeout,
            pause: request.pause,
            conversation: &request.conversation,
            is_again,
            betas: self.betas(request),
        };
        let proposal = match self.provider.link.ask(&call).await? {
            Received::Proposal(proposal) => proposal,
            Received::Body(_, bytes) => self.understand(&bytes)?,
        };
        Ok(self.settle(request, proposal))
    }

    fn protocol(&self) -> &ProviderProtocol {
        &self.provider.link.config.protocol
    }

    /// Asks for vectors; `None` where the provider has none.
    async fn vectors(
        &self,
        request: &Map<String, Value>,
        time: Duration,
    ) -> Option<Result<Embedded, Fault>> {
        let link = &self.provider.link;
        let url = self.protocol().vectors(link.base(), self.upstream_model.as_deref())?;
        let body = vector_request(request, self.upstream_model.as_deref());
        let said = body.get("input").map_or(0, |input| input.to_string().len());
        let Ok(body) = serde_json::to_vec(&body) else {
            return Some(Err(Fault::invalid("the request has no JSON form")));
        };
        let body = Bytes::from(body);
        let call = Call {
            url: &url,
            body,
            time,
            pause: time,
            conversation: &[],
            is_again: false,
            betas: None,
            pieces: None,
        };
        Some(match link.ask(&call).await {
            Ok(Received::Body(_, bytes)) => read_vectors(&bytes, Usage::tokens_of(said)),
            Ok(Received::Proposal(_)) => Err(Fault::invalid("the answer holds no vectors")),
            Err(fault) => Err(fault),
        })
    }

    fn understand(&self, bytes: &[u8]) -> Result<Proposal, Fault> {
        match self.protocol() {
            ProviderProtocol::OpenAi | ProviderProtocol::Azure { .. } => read_reply(bytes),
            ProviderProtocol::Anthropic => anthropic::read_reply(bytes),
        }
    }

    /// The header that names betas, where the provider knows it.
    fn betas(&self, request: &ModelRequest) -> Option<HeaderValue> {
        let names = anthropic::betas(&request.body)?;
        // Names were checked when they came in; what is no header value names none.
        HeaderValue::try_from(names)
            .ok()
            .filter(|_| *self.protocol() == ProviderProtocol::Anthropic)
    }

    fn body(&self, request: &ModelRequest, in_pieces: bool) -> Result<Bytes, Fault> {
        let config = &self.provider.link.config;
        let model = self.asked_model(request);
        let takes = takes_temperature(model, &request.body);
        let temperature =
            request.temperature.filter(|_| takes && config.temperature.applies(request.attempt));
        if config.protocol == ProviderProtocol::Anthropic {
            let stream = config.stream_upstream || in_pieces;
            let tokens_max = config.reply_tokens_max;
            return anthropic::body(request, (model, stream), tokens_max, temperature);
        }
        let body = UpstreamBody {
            request,
            model: self.upstream_model.as_deref(),
            stream: config.stream_upstream || in_pieces,
            temperature,
            is_reasoning: is_reasoning_model(model),
        };
        serde_json::to_vec(&body)
            .map(Bytes::from)
            .map_err(|_| Fault::invalid("the request has no JSON form"))
    }

    fn settle(&self, request: &ModelRequest, proposal: Proposal) -> Candidate {
        let mut candidate = proposal.candidate;
        let (usage, is_estimate) = proposal.claim.settle(request, &candidate);
        if is_estimate {
            self.provider.usage_estimates.fetch_add(1, Ordering::Relaxed);
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

impl Model for HostedModel {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            let result = self.ask(&request, false, None).await;
            result.map_err(|fault| fault.into_error(self.provider()))
        })
    }

    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        pieces: Pieces,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            let result = self.ask(&request, false, Some(&pieces)).await;
            result.map_err(|fault| fault.into_error(self.provider()))
        })
    }

    fn embed(
        &self,
        request: Arc<Map<String, Value>>,
        timeout: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        Box::pin(async move {
            let result = self.vectors(&request, timeout).await?;
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
        let model = HostedModel::with_lookup(public.clone(), rebinding()).unwrap();
        let error = model.generate(request_saying("hi")).await.unwrap_err();
        assert_eq!(error.failure, GenerationFailure::Unreachable);
        assert!(error.message.contains("permitted"), "{error}");
        assert_eq!(mock.connections(), 0);

        let private = ProviderConfig { allow_private: true, ..public };
        let model = HostedModel::with_lookup(private, rebinding()).unwrap();
        let candidate = model.generate(request_saying("hi")).await.unwrap();
        assert_eq!(candidate.text, "inside");
    }
}
