//! Texts that become vectors: passed on without a judgement of what they say, but permitted, paid for and
//! recorded like any other request.
//!
//! **Invariant:** what belongs to a community, needs consent or may not go there is not sent. Nothing
//! waits for a person here, because nobody could hand out vectors later: what would wait is refused.
//! **Invariant:** what is remembered of a person stays as it was; documents are not their words.

use crate::decision::{Choice, Delivered};
use crate::deliver::{DeliverError, Reply};
use crate::engine::Engine;
use crate::permission::Interface;
use crate::preflight::{self, Examination, Stop};
use crate::spend::{InForce, Spending};
use crate::turn::Turn;
use conclave_core::{
    Attempt, AuditId, Candidate, GenerationFailure, MicroUsd, Outcome, Usage, Verdict, Withheld,
};
use conclave_detect::Reading;
use conclave_ports::{AppendError, Embedded, ModelError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A recorded request for vectors, and the vectors where there are any.
pub struct Vectors {
    /// The decision, and the promise to note what became of it.
    pub reply: Reply,
    /// What the model answered.
    pub embedded: Option<Embedded>,
}

impl Engine {
    /// Has a model turn texts into vectors; the texts are the turn's conversation, and its body is the
    /// request.
    ///
    /// # Errors
    /// When no model does that here, a limit forbids it, or it cannot be recorded.
    pub async fn embed(&self, turn: Turn) -> Result<Vectors, DeliverError> {
        let in_force = self.in_force(&turn.tenant);
        self.permit(&turn, &in_force.policy)?;
        let offered = self.models.find(&turn.model);
        let offered = offered.ok_or_else(|| DeliverError::UnknownModel(turn.model.clone()))?;
        self.admit(&turn)?;
        let started = Instant::now();
        let mut examined = self.unread(&turn, self.new_audit_id(self.clock.now_ms())).await?;
        self.guard_permission(&turn, &in_force.policy, &mut examined).await;
        self.guard_input(&turn, &mut examined).await;
        if let Some(stop) = examined.stop {
            let stop = if stop == Stop::Held { Stop::NoElders } else { stop };
            examined.hold = None;
            let choice = self.stopped(&turn, &examined, stop);
            let spending = Spending::unlimited(offered);
            let paid = (&spending, &in_force);
            let reply = self.conclude(&turn, examined, vec![choice], None, paid, started).await?;
            return Ok(Vectors { reply, embedded: None });
        }
        let spending = self.pay_for_reading(&turn, &examined, &in_force, offered).await?;
        let asked = Instant::now();
        let whole = self.settings.turn_deadline;
        let answering = spending.offered.model.embed(turn.body.clone(), whole);
        let answered = match timeout(whole, answering).await {
            Ok(Some(answered)) => answered.map_err(|error| failed(&turn, &error)),
            Ok(None) => return Err(self.not_a_model_for_it(&turn, &examined, &in_force, &spending)),
            Err(_late) => Err(GenerationFailure::Timeout),
        };
        let choice = choice_of(answered.as_ref(), asked.elapsed());
        let paid = (&spending, &in_force);
        let reply = self.conclude(&turn, examined, vec![choice], None, paid, started).await?;
        Ok(Vectors { reply, embedded: answered.ok() })
    }

    /// Who asks, and nothing read of what they send.
    async fn unread(&self, turn: &Turn, id: AuditId) -> Result<Examination, DeliverError> {
        let named = self.subjects.name(&turn.tenant, turn.user.as_ref(), &turn.session).await;
        let who = named.map_err(|error| AppendError::Unwritable(error.to_string()))?;
        let remembered = self.memory.recall(&who).await;
        let before = remembered.course.as_ref().map(conclave_detect::Course::state);
        let input = Reading::empty(turn.context.mode);
        let examined =
            preflight::examine(&self.instinct, &self.settings, turn, (id, who), input, remembered);
        let drift_before = before.unwrap_or_default().as_str();
        Ok(Examination { interface: Interface::Embeddings, drift_before, ..examined })
    }

    /// Nothing was asked of anybody: what was set aside is given back.
    fn not_a_model_for_it(
        &self,
        turn: &Turn,
        examined: &Examination,
        in_force: &InForce,
        spending: &Spending,
    ) -> DeliverError {
        self.settle(turn, &examined.who, in_force, spending, MicroUsd(0));
        DeliverError::UnknownModel(turn.model.clone())
    }
}

fn failed(turn: &Turn, error: &ModelError) -> GenerationFailure {
    tracing::warn!(model = %turn.model, %error, "the model gave no vectors");
    error.failure
}

fn choice_of(answered: Result<&Embedded, &GenerationFailure>, model_time: Duration) -> Choice {
    let (outcome, verdict, candidate) = match answered {
        Ok(embedded) => {
            let usage = Usage { input_tokens: embedded.input_tokens, output_tokens: 0 };
            (Outcome::Delivered, None, Ok(Candidate { usage, ..Candidate::default() }))
        }
        Err(failure) => {
            let verdict = Verdict::Withhold(Withheld::Failed(*failure));
            (Outcome::Failed, Some(verdict), Err(*failure))
        }
    };
    Choice {
        outcome,
        verdict,
        attempts: vec![Attempt { candidate, panels: Vec::new() }],
        delivered: Delivered::default(),
        model_time,
        windows: Vec::new(),
    }
}
