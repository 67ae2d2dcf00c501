//! A model with others that stand in for it.
//!
//! **Invariant:** whoever answered is named in the candidate, with the cost at their own price.
//!
//! **Invariant:** another model is asked only where that may help: not after a refusal of the request
//! itself, nor after a provider's own filter withheld the reply.
//!
//! **Invariant:** a provider that runs several models of a chain is not asked more often than its retry
//! budget allows.

use crate::fault::Fault;
use crate::hosted::HostedModel;
use crate::link::Pieces;
use conclave_core::{Candidate, MicroUsd, StandIn, Usage};
use conclave_engine::{Embedded, Model, ModelError, ModelRequest};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A model with its price.
#[derive(Clone)]
pub struct PricedModel {
    /// The name it is offered under.
    pub name: Arc<str>,
    /// What answers.
    pub model: HostedModel,
    /// Price per million tokens read.
    pub input_price: MicroUsd,
    /// Price per million tokens written.
    pub output_price: MicroUsd,
}

impl fmt::Debug for PricedModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PricedModel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PricedModel {
    /// What these tokens cost.
    #[must_use]
    pub const fn cost(&self, usage: Usage) -> MicroUsd {
        MicroUsd::for_tokens(usage.input_tokens, self.input_price)
            .saturating_add(MicroUsd::for_tokens(usage.output_tokens, self.output_price))
    }
}

/// Models that are asked one after another until one answers.
#[derive(Debug)]
pub struct Chain {
    first: PricedModel,
    others: Vec<PricedModel>,
}

impl Chain {
    /// A model and who stands in for it, in order.
    #[must_use]
    pub const fn new(first: PricedModel, others: Vec<PricedModel>) -> Self {
        Self { first, others }
    }

    async fn ask(
        &self,
        mut request: ModelRequest,
        pieces: Option<&Pieces>,
    ) -> Result<Candidate, ModelError> {
        let deadline = Instant::now() + request.timeout;
        let begun_by = Instant::now() + request.pause.min(request.timeout);
        let mut asked: Vec<&HostedModel> = Vec::new();
        let mut error = None;
        let links = std::iter::once(&self.first).chain(&self.others);
        for (at, link) in links.enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let silent = begun_by.saturating_duration_since(Instant::now());
            if (left.is_zero() || silent.is_zero()) && at > 0 {
                break;
            }
            // Somebody who may still be asked needs time too.
            let is_last = at == self.others.len();
            request.timeout = left;
            request.pause = if is_last { silent } else { silent / 2 };
            let is_again = asked.iter().any(|model| model.shares_provider(&link.model));
            asked.push(&link.model);
            match link.model.ask(&request, is_again, pieces).await {
                Ok(candidate) if at == 0 => return Ok(candidate),
                Ok(candidate) => return Ok(signed(link, candidate)),
                Err(fault) => {
                    let is_conclusive = fault.is_conclusive;
                    error = Some(self.noted(link, fault, is_last || is_conclusive));
                    if is_conclusive {
                        break;
                    }
                }
            }
        }
        Err(error.unwrap_or_else(|| Fault::timeout(false).into_error(self.first.model.provider())))
    }

    /// The last error is told by whoever asked the chain; those before it would be lost.
    fn noted(&self, link: &PricedModel, fault: Fault, is_last: bool) -> ModelError {
        let error = fault.into_error(link.model.provider());
        if !is_last {
            let (model, asked) = (&*link.name, &*self.first.name);
            tracing::warn!(model, asked, %error, "another model stands in");
        }
        error
    }
}

fn signed(link: &PricedModel, candidate: Candidate) -> Candidate {
    let cost = link.cost(candidate.usage);
    let stand_in = StandIn { model: link.name.to_string(), cost };
    Candidate { stand_in: Some(stand_in), ..candidate }
}

impl Model for Chain {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(self.ask(request, None))
    }

    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        pieces: Pieces,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move { self.ask(request, Some(&pieces)).await })
    }

    /// Vectors of different models cannot be compared, so nobody stands in.
    fn embed(
        &self,
        request: Arc<Map<String, Value>>,
        timeout: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        self.first.model.embed(request, timeout)
    }
}
