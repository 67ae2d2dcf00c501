//! Reading one text for whoever asks, without anything being written: a judgement like any other, so it
//! is recorded like any other.

use crate::decision::{Choice, Delivered};
use crate::deliver::{DeliverError, Reply};
use crate::engine::Engine;
use crate::permission::Interface;
use crate::preflight::Examination;
use crate::spend::Spending;
use crate::turn::Turn;
use conclave_core::{Candidate, GenerationFailure, MicroUsd, Outcome};
use conclave_ports::{Model, ModelError, ModelRequest, OfferedModel};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Engine {
    /// Reads the person's last words and records what they were read as; no model is asked.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn moderate(&self, turn: Turn) -> Result<Reply, DeliverError> {
        self.admit(&turn)?;
        let started = Instant::now();
        let id = self.new_audit_id(self.clock.now_ms());
        let in_force = self.in_force(&turn.tenant);
        let examined = self.examine(&turn, id, &in_force.policy).await?;
        let examined = Examination { interface: Interface::Moderations, ..examined };
        let outcome = match examined.stop {
            Some(_) => Outcome::Blocked,
            None => Outcome::Delivered,
        };
        let choice = Choice {
            outcome,
            verdict: None,
            attempts: Vec::new(),
            delivered: Delivered::default(),
            model_time: Duration::ZERO,
            windows: Vec::new(),
        };
        let nobody = OfferedModel {
            model: Arc::new(Nobody),
            provider: "conclave".into(),
            input_price: MicroUsd(0),
            output_price: MicroUsd(0),
        };
        let spending = Spending::unlimited(nobody);
        let paid = (&spending, &in_force);
        self.conclude(&turn, examined, vec![choice], None, paid, started).await
    }
}

/// A model that is never asked.
struct Nobody;

impl Model for Nobody {
    fn generate(&self, _request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(std::future::ready(Err(ModelError {
            failure: GenerationFailure::Refused,
            message: "nothing is written here".to_owned(),
        })))
    }
}
