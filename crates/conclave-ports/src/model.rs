//! What proposes replies, and which models there are.

use conclave_core::{Candidate, GenerationFailure, Message, MicroUsd, Reason, Score, Usage};
use conclave_voice::FieldState;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;

/// One question to a model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The client's request in OpenAI chat form: unknown fields pass through untouched.
    pub body: Arc<Map<String, Value>>,
    /// The conversation as it is judged.
    pub conversation: Arc<[Message]>,
    /// What the system adds: how to shape the reply, and what was wrong with the last one.
    pub guidance: Option<String>,
    /// Sampling temperature the field suggests, where the client set none.
    pub temperature: Option<f32>,
    /// How the turn was sensed: drives the built-in responder.
    pub field: Arc<FieldState>,
    /// Whether the person is in crisis.
    pub crisis: Score,
    /// What was wrong with the last attempt.
    pub reasons: Vec<Reason>,
    /// From 0: which attempt of the turn this is.
    pub attempt: u8,
    /// Makes the built-in responder deterministic.
    pub seed: u64,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long it may take to begin, and between two pieces of it. An answer that does not come in pieces begins
    /// when it is there.
    pub pause: Duration,
}

/// Why a model gave no candidate, with a sentence for the log that holds no secret and no transcript.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, as the deliberation counts it.
    pub failure: GenerationFailure,
    /// What happened.
    pub message: String,
    /// What the provider said of the request, where it refused it.
    pub upstream: Option<Box<UpstreamRefusal>>,
}

impl ModelError {
    /// An error that no provider's answer stands behind.
    #[must_use]
    pub fn new(failure: GenerationFailure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into(), upstream: None }
    }
}

/// What a provider said of a request that it refused, as far as a client may know: words of its catalogue and
/// numbers, no sentence, because nobody judges those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamRefusal {
    /// The status: 400, 404, 413 or 429.
    pub status: u16,
    /// Its code, such as `context_length_exceeded`.
    pub code: Option<String>,
    /// The field it is about.
    pub param: Option<String>,
    /// How long to wait before asking again.
    pub retry_after_s: Option<u32>,
}

/// Something that proposes replies.
pub trait Model: Send + Sync {
    /// Asks for one candidate.
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>>;
    /// Asks for one candidate and hands on its text while it is being written. A model that only answers
    /// whole hands nothing on. What was handed on, joined, is the beginning of the candidate's text.
    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        _pieces: mpsc::Sender<String>,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        self.generate(request)
    }
    /// Turns texts into vectors; `None` where the model cannot. Nothing of it is judged.
    fn embed(
        &self,
        _request: Arc<Map<String, Value>>,
        _timeout: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        Box::pin(std::future::ready(None))
    }
}

/// What texts became.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One for each text, in order.
    pub vectors: Vec<Embedding>,
    /// Tokens that were read.
    pub input_tokens: u64,
}

/// One text as a vector.
#[derive(Clone, Debug, PartialEq)]
pub enum Embedding {
    /// Numbers.
    Numbers(Vec<f64>),
    /// The same packed, as the client asked for it.
    Packed(String),
}

/// One model as clients know it.
#[derive(Clone)]
pub struct OfferedModel {
    /// What answers.
    pub model: Arc<dyn Model>,
    /// Who runs it.
    pub provider: Arc<str>,
    /// Its price per million tokens read.
    pub input_price: MicroUsd,
    /// Its price per million tokens written.
    pub output_price: MicroUsd,
}

impl OfferedModel {
    /// What these tokens cost.
    #[must_use]
    pub const fn cost(&self, usage: Usage) -> MicroUsd {
        MicroUsd::for_tokens(usage.input_tokens, self.input_price)
            .saturating_add(MicroUsd::for_tokens(usage.output_tokens, self.output_price))
    }
}

/// Which models there are.
pub trait ModelDirectory: Send + Sync {
    /// The model with this name.
    fn find(&self, name: &str) -> Option<OfferedModel>;
    /// Every name, with who runs it, sorted.
    fn names(&self) -> Vec<(String, Arc<str>)>;
    /// Everybody who may be asked under this name: who runs it, and who stands in.
    fn providers(&self, name: &str) -> Vec<Arc<str>> {
        self.find(name).map(|offered| offered.provider).into_iter().collect()
    }
}
