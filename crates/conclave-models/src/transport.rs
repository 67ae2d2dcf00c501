//! HTTP to one provider.
//!
//! **Invariant:** no redirect is followed and no proxy of the environment is used: bytes and keys
//! go to the configured host or nowhere.
//!
//! **Invariant:** a body is read piece by piece against a limit; a declared length is never
//! believed except to refuse early.

use crate::config::{ConfigError, ProviderConfig};
use crate::fault::Fault;
use crate::ssrf::{AddressError, AddressPolicy, BaseUrl, CheckedResolver, Lookup};
use bytes::Bytes;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, Request, Response, StatusCode, Url, redirect, retry};
use secrecy::{ExposeSecret, SecretString};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// The most headers a reply may have.
const HEADERS_MAX: usize = 100;

/// Headers that belong to the connection or say where a request goes.
const RESERVED_HEADERS: [&str; 6] =
    ["host", "connection", "content-length", "transfer-encoding", "upgrade", "te"];

const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// A pool of connections to one provider.
pub(crate) struct Transport {
    client: Client,
    base: BaseUrl,
    headers: HeaderMap,
    key_header: HeaderName,
    tells_trace: bool,
}

/// Why no answer began.
#[derive(Debug)]
pub(crate) enum SendError {
    /// No connection: nothing was sent, so it may be tried again.
    Connect,
    /// The host has no address it may have.
    Forbidden,
    /// The connection broke after the request may have been seen.
    Broken,
}

impl SendError {
    pub(crate) fn into_fault(self) -> Fault {
        Fault::unreachable(match self {
            Self::Connect => "no connection could be opened",
            Self::Forbidden => "its host has no address that is permitted",
            Self::Broken => "the connection broke before an answer began",
        })
    }
}

impl Transport {
    /// Makes the pool; opens no connection yet.
    pub(crate) fn new(config: &ProviderConfig, lookup: Lookup) -> Result<Self, ConfigError> {
        let base = BaseUrl::parse(&config.base_url, config.allow_private)
            .map_err(|error| ConfigError::Address { provider: config.name.clone(), error })?;
        let client = client(config, &base, lookup).map_err(|error| ConfigError::Client {
            provider: config.name.clone(),
            message: error.without_url().to_string(),
        })?;
        warn_if_exposed(config, &base);
        let key_header = config.protocol.key_header();
        let (headers, tells_trace) = (headers(config)?, config.tells_trace);
        Ok(Self { client, base, headers, key_header, tells_trace })
    }

    /// Where the provider is.
    pub(crate) const fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Sends one request with this key and waits for the head of the answer.
    pub(crate) async fn post(
        &self,
        url: &Url,
        key: Option<&HeaderValue>,
        betas: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<Answer, SendError> {
        let mut request = Request::new(Method::POST, url.clone());
        *request.headers_mut() = self.headers.clone();
        if let Some(key) = key {
            request.headers_mut().insert(self.key_header.clone(), key.clone());
        }
        if let Some(betas) = betas {
            // Beside those that the operator configured.
            request.headers_mut().append(ANTHROPIC_BETA, betas.clone());
        }
        if self.tells_trace {
            tell_trace(request.headers_mut());
        }
        *request.body_mut() = Some(body.into());
        match self.client.execute(request).await {
            Ok(response) => Ok(Answer { response }),
            Err(error) => Err(classify(&error)),
        }
    }
}

/// Names the trace that this request is a part of, if it is.
fn tell_trace(headers: &mut HeaderMap) {
    let Some(onward) = conclave_engine::trace::onward() else { return };
    let parent = HeaderValue::try_from(onward.parent);
    let state = onward.state.map(HeaderValue::try_from);
    if let Ok(parent) = parent {
        headers.insert(HeaderName::from_static("traceparent"), parent);
        if let Some(Ok(state)) = state {
            headers.insert(HeaderName::from_static("tracestate"), state);
        }
    }
}

fn client(
    config: &ProviderConfig,
    base: &BaseUrl,
    lookup: Lookup,
) -> Result<Client, reqwest::Error> {
    guarded(base, lookup)
        .http1_max_headers(HEADERS_MAX)
        .tcp_nodelay(true)
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(IDLE)
        .build()
}

/// A client that goes where the operator said and nowhere else: no proxy, no redirect, no repetition, and only
/// addresses that were checked.
pub(crate) fn guarded(base: &BaseUrl, lookup: Lookup) -> ClientBuilder {
    // Fails where the program has chosen a provider already, which is just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let resolver = CheckedResolver::new(base.policy(), lookup);
    let builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .http1_only()
        .dns_resolver(Arc::new(resolver));
    if base.is_encrypted() {
        builder.https_only(true)
    } else {
        // Without encryption no root certificates are needed, and a bare container has none.
        builder.tls_certs_only([])
    }
}

fn warn_if_exposed(config: &ProviderConfig, base: &BaseUrl) {
    let has_secret = !config.api_keys.is_empty() || !config.headers.is_empty();
    let is_exposed = !base.is_encrypted() && base.policy() == AddressPolicy::Public;
    if has_secret && is_exposed {
        tracing::warn!(provider = config.name, "its key is sent without encryption");
    }
}

fn headers(config: &ProviderConfig) -> Result<HeaderMap, ConfigError> {
    let refuse = |header: &str| ConfigError::Header {
        provider: config.name.clone(),
        header: header.to_owned(),
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(config.protocol.headers());
    for (name, value) in &config.headers {
        let parsed: HeaderName = name.parse().map_err(|_| refuse(name))?;
        if RESERVED_HEADERS.contains(&parsed.as_str()) {
            return Err(refuse(name));
        }
        headers.insert(parsed, secret_value(value).ok_or_else(|| refuse(name))?);
    }
    Ok(headers)
}

fn secret_value(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn classify(error: &reqwest::Error) -> SendError {
    if is_forbidden(error) {
        SendError::Forbidden
    } else if error.is_connect() {
        SendError::Connect
    } else {
        SendError::Broken
    }
}

fn is_forbidden(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.is::<AddressError>() {
            return true;
        }
        source = inner.source();
    }
    false
}

/// An answer whose body has not been read.
pub(crate) struct Answer {
    response: Response,
}

#[cfg(test)]
impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self { response }
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Whether the body is a stream of events.
    pub(crate) fn is_events(&self) -> bool {
        let value = self.headers().get(CONTENT_TYPE);
        value.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
    }

    /// Whether the body is packed. None was asked for, and none is unpacked.
    pub(crate) fn is_packed(&self) -> bool {
        let value = self.headers().get(CONTENT_ENCODING);
        value.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
    }

    /// The next piece of the body.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        let piece = self.response.chunk().await;
        piece.map_err(|_| Fault::invalid("the answer broke off"))
    }

    /// The whole body, if it is not larger than allowed.
    pub(crate) async fn body(mut self, bytes_max: usize) -> Result<Vec<u8>, Fault> {
        let too_large = || Fault::too_large(format!("the answer has more than {bytes_max} bytes"));
        let declared = self.response.content_length().unwrap_or(0);
        let declared = usize::try_from(declared).unwrap_or(usize::MAX);
        if declared > bytes_max {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(declared.min(64 * 1024));
        while let Some(piece) = self.piece().await? {
            if body.len() + piece.len() > bytes_max {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The beginning of the body as far as it comes in time, and whether there is more.
    pub(crate) async fn beginning(mut self, bytes_max: usize, time: Duration) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        let is_whole = tokio::time::timeout(time, async {
            while body.len() <= bytes_max {
                match self.piece().await {
                    Ok(Some(piece)) => body.extend_from_slice(&piece),
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
            false
        })
        .await
        .unwrap_or(false);
        body.truncate(bytes_max);
        (body, !is_whole)
    }
}
