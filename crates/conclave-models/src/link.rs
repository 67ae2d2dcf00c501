//! One provider: its connections, its keys, its breaker and its retry budget, shared by all its models.
//!
//! **Invariant:** an exchange ends within its time, whatever the provider does, and reads no more bytes
//! than configured.
//!
//! **Invariant:** a request is sent again only if the provider cannot have begun to answer it: no
//! connection was made, or it said itself that it did not take it. Whatever is sent again is paid from
//! the retry budget, another model of the same provider included.

use crate::anthropic::MessageStream;
use crate::breaker::Breaker;
use crate::config::{ConfigError, ProviderConfig};
use crate::fault::Fault;
use crate::keys::Keys;
use crate::protocol::ProviderProtocol;
use crate::redact::Redactor;
use crate::reply::Proposal;
use crate::retry::{RetryBudget, retry_after, wait_asked_for};
use crate::ssrf::{BaseUrl, Lookup};
use crate::stream::{Accumulator, ReplyEvents};
use crate::transport::{Answer, SendError, Transport};
use crate::upstream::read_refusal;
use bytes::Bytes;
use conclave_core::Message;
use futures_util::FutureExt;
use reqwest::header::HeaderValue;
use reqwest::{StatusCode, Url};
use secrecy::SecretString;
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
pub(crate) type Pieces = tokio::sync::mpsc::Sender<String>;

/// A provider as this program is connected to it.
pub(crate) struct Link {
    pub(crate) config: ProviderConfig,
    secrets: Vec<SecretString>,
    transport: Transport,
    keys: Keys,
    breaker: Breaker,
    retries: RetryBudget,
}

/// One request to a provider.
pub(crate) struct Call<'a> {
    pub(crate) url: &'a Url,
    pub(crate) body: Bytes,
    /// How long it may take.
    pub(crate) time: Duration,
    /// How long the provider may be silent: before its answer begins, and between two pieces of it.
    pub(crate) pause: Duration,
    /// What the provider may quote in an error, and a log may not.
    pub(crate) conversation: &'a [Message],
    /// Whether the same provider was asked before for the same turn.
    pub(crate) is_again: bool,
    /// The betas of the provider's interface that are asked for.
    pub(crate) betas: Option<HeaderValue>,
    /// Where the text goes while it is being written, if somebody reads along.
    pub(crate) pieces: Option<&'a Pieces>,
}

/// What came back when all went well.
pub(crate) enum Received {
    /// A whole body.
    Body(StatusCode, Vec<u8>),
    /// A reply put together from events.
    Proposal(Proposal),
}

impl Link {
    /// Checks the configuration and makes the client; nothing is sent yet.
    pub(crate) fn new(config: ProviderConfig, lookup: Lookup) -> Result<Self, ConfigError> {
        let transport = Transport::new(&config, lookup)?;
        let keys = config.api_keys.iter().map(|key| {
            let value = config.protocol.key_value(&key.secret);
            let value = value.ok_or_else(|| ConfigError::Header {
                provider: config.name.clone(),
                header: config.protocol.key_header().to_string(),
            })?;
            Ok((value, key.weight))
        });
        let keys = Keys::new(keys.collect::<Result<Vec<_>, ConfigError>>()?);
        let headers = config.headers.iter().map(|(_, value)| value.clone());
        let secrets = config.api_keys.iter().map(|key| key.secret.clone()).chain(headers).collect();
        let breaker = Breaker::new(config.breaker);
        Ok(Self { secrets, transport, keys, breaker, retries: RetryBudget::new(), config })
    }

    /// Where the provider is.
    pub(crate) const fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// One exchange, within its time and past the breaker.
    pub(crate) async fn ask(&self, call: &Call<'_>) -> Result<Received, Fault> {
        let start = Instant::now();
        let patience = Patience {
            deadline: start + call.time.min(TIME_MAX),
            pause: call.pause.min(self.config.timeout),
        };
        let permit = self
            .breaker
            .admit(start)
            .ok_or_else(|| Fault::unreachable("it is down and is left alone for a while"))?;
        if call.is_again && !self.retries.withdraw() {
            return Err(Fault::unreachable("it was asked before, and may not be asked more often"));
        }
        let result = self.exchange(call, patience.from(start), patience).await;
        let is_outage = result.as_ref().is_err_and(|fault| fault.is_outage);
        permit.report(is_outage, Instant::now());
        result
    }

    /// An answer that comes in pieces has to begin by `begun_by`, one that comes whole has to be there.
    async fn exchange(
        &self,
        call: &Call<'_>,
        begun_by: Instant,
        patience: Patience,
    ) -> Result<Received, Fault> {
        let late = |_elapsed| patience.fault();
        let answer = timeout_at(begun_by, self.send(call, begun_by)).await.map_err(late)??;
        if !answer.status().is_success() {
            let refused = timeout_at(begun_by, self.refusal(answer, call.conversation)).await;
            return Err(refused.unwrap_or_else(late));
        }
        if answer.is_packed() {
            return Err(Fault::invalid("the answer is packed, which was not asked for"));
        }
        if (self.config.stream_upstream || call.pieces.is_some()) && answer.is_events() {
            let listener = Listener { pieces: call.pieces, has_heard: false };
            return self.read_events(answer, begun_by, patience, listener).await;
        }
        let status = answer.status();
        let body = timeout_at(begun_by, answer.body(self.config.response_bytes_max)).await;
        Ok(Received::Body(status, body.map_err(late)??))
    }

    /// Sends the request, a second time where that is safe and the budget allows it.
    async fn send(&self, call: &Call<'_>, deadline: Instant) -> Result<Answer, Fault> {
        if !call.is_again {
            self.retries.deposit();
        }
        let key = self.keys.choose(Instant::now());
        let first = self.post(call, key).await;
        match self.second_try(&first, key, deadline) {
            Some((wait, key)) if self.retries.withdraw() => {
                drop(first);
                tokio::time::sleep(wait).await;
                let second = self.post(call, key).await;
                if let (Ok(answer), Some(key)) = (&second, key) {
                    self.keys.heed(key, answer.status(), answer.headers(), Instant::now());
                }
                second
            }
            _ => first,
        }
        .map_err(SendError::into_fault)
    }

    async fn post(&self, call: &Call<'_>, key: Option<usize>) -> Result<Answer, SendError> {
        let value = key.and_then(|key| self.keys.value(key));
        self.transport.post(call.url, value, call.betas.as_ref(), call.body.clone()).await
    }

    /// After which wait and with which key a request may be sent once more, if at all.
    fn second_try(
        &self,
        first: &Result<Answer, SendError>,
        key: Option<usize>,
        deadline: Instant,
    ) -> Option<(Duration, Option<usize>)> {
        let answer = match first {
            Ok(answer) => answer,
            Err(SendError::Connect) => return Some((Duration::ZERO, key)),
            Err(SendError::Forbidden | SendError::Broken) => return None,
        };
        let now = Instant::now();
        if let Some(refused) = key
            && self.keys.heed(refused, answer.status(), answer.headers(), now)
            && let Some(other) = self.keys.another(refused, now)
        {
            return Some((Duration::ZERO, Some(other)));
        }
        let wait = wait_asked_for(answer.status(), answer.headers())?;
        (now + wait < deadline).then_some((wait, key))
    }

    /// Puts a reply together that comes as events, and hands its text on meanwhile.
    async fn read_events(
        &self,
        answer: Answer,
        begun_by: Instant,
        patience: Patience,
        mut listener: Listener<'_>,
    ) -> Result<Received, Fault> {
        let mut events: Box<dyn ReplyEvents> = match self.config.protocol {
            ProviderProtocol::Anthropic => Box::<MessageStream>::default(),
            ProviderProtocol::OpenAi | ProviderProtocol::Azure { .. } => {
                Box::<Accumulator>::default()
            }
        };
        let stream = EventStream {
            answer,
            bytes_max: self.config.response_bytes_max,
            due: begun_by,
            patience,
        };
        let read = stream.feed(&mut *events, &mut listener).await;
        // Another model cannot go on where this one stopped, once somebody has read its words.
        read.and_then(|()| events.finish())
            .map(Received::Proposal)
            .map_err(|fault| if listener.has_heard { fault.conclusive() } else { fault })
    }

    async fn refusal(&self, answer: Answer, conversation: &[Message]) -> Fault {
        let status = answer.status();
        if status.is_redirection() {
            return Fault::refused(format!("status {} is not followed", status.as_u16()), false);
        }
        let asked_wait = retry_after(answer.headers());
        let (body, is_cut) = answer.beginning(ERROR_BYTES_MAX, ERROR_TIME).await;
        let redactor = Redactor { secrets: &self.secrets, conversation };
        let snippet = redactor.snippet(&body, is_cut);
        let message = format!("status {}: {snippet}", status.as_u16());
        let stated = read_refusal(status, &body, asked_wait);
        let fault = Fault::refused(message, status.is_server_error()).stating(stated);
        // What is wrong with the request is wrong with it elsewhere too; nor is a filter shopped around.
        let is_the_request = matches!(status.as_u16(), 400 | 413 | 422);
        if is_the_request { fault.conclusive() } else { fault }
    }
}

/// How long a provider is waited for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// The whole exchange ends by then.
    deadline: Instant,
    /// How long it may be silent.
    pause: Duration,
}

impl Patience {
    /// Until when something has to come that has not come at this moment.
    fn from(self, moment: Instant) -> Instant {
        self.deadline.min(moment + self.pause)
    }

    /// It took too long.
    fn fault(self) -> Fault {
        Fault::timeout(self.pause >= FAIR_TIME)
    }
}

/// Whoever reads a reply while it is being written.
struct Listener<'a> {
    pieces: Option<&'a Pieces>,
    /// Whether any text reached them.
    has_heard: bool,
}

impl Listener<'_> {
    async fn tell(&mut self, events: &mut dyn ReplyEvents) {
        if let Some(pieces) = self.pieces
            && let Some(text) = events.fresh_text()
        {
            // Whoever does not listen any more still gets the whole.
            self.has_heard |= pieces.send(text).await.is_ok();
        }
    }
}

/// An answer that comes as events.
struct EventStream {
    answer: Answer,
    bytes_max: usize,
    /// When the next piece of the reply has to be there.
    due: Instant,
    patience: Patience,
}

impl EventStream {
    /// Reads it to its end. Comments and pings keep a connection alive; they are no pieces of a reply, while what a
    /// model thinks before it writes is.
    async fn feed(
        mut self,
        events: &mut dyn ReplyEvents,
        listener: &mut Listener<'_>,
    ) -> Result<(), Fault> {
        let mut bytes = 0;
        loop {
            let piece = match timeout_at(self.due, self.answer.piece()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => return Ok(()),
                // What breaks after the reply was complete takes nothing away from it.
                Ok(Err(_)) | Err(_) if events.is_complete() => return Ok(()),
                Ok(Err(fault)) => return Err(fault),
                Err(_elapsed) => return Err(self.patience.fault()),
            };
            bytes += piece.len();
            if bytes > self.bytes_max {
                let most = self.bytes_max;
                return Err(Fault::too_large(format!("the stream has more than {most} bytes")));
            }
            let before = events.progress();
            let is_done = events.feed(&piece)?;
            listener.tell(events).await;
            if is_done {
                drain(self.answer);
                return Ok(());
            }
            if events.progress() > before {
                self.due = self.patience.from(Instant::now());
            }
        }
    }
}

/// Reads what is left after the last event; a connection can only be used again once it is read
/// out.
fn drain(mut answer: Answer) {
    if let Some(Ok(None) | Err(_)) = answer.piece().now_or_never() {
        return;
    }
    tokio::spawn(answer.beginning(ERROR_BYTES_MAX, DRAIN_TIME));
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
