//! Asking a model for a result of a known shape.
//!
//! **Invariant:** a wrong shape is told to the model once, by place and expectation; then the run has failed.
//! **Invariant:** nothing of an answer reaches the next prompt.

use crate::engine::Engine;
use crate::guard_budget::at_most;
use crate::running::Running;
use crate::spans;
use crate::spend::is_unseen;
use crate::workshop::BUILTIN;
use conclave_core::{Candidate, FinishReason, GenerationFailure, Message, MicroUsd, Role, Score};
use conclave_ports::trace::{self, SpanKind};
use conclave_ports::{ModelRequest, OfferedModel};
use conclave_recipes::{
    Extract, Problem, Prompt, answered, correction, extract_insights, extract_interview,
    extract_playbook, extract_reply, prompt,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often a model is asked for one run: each model of the recipe twice.
pub(crate) const ATTEMPTS_MAX: u8 = 4;
/// How often one model is asked.
const TRIES: u8 = 2;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// No model answered.
    Upstream(GenerationFailure),
    /// What they answered does not fit.
    Shape(Vec<Problem>),
    /// Without a model there is nothing to be had.
    NoModel,
    /// What is left of a budget cannot be read.
    NoBooks,
}

impl Engine {
    /// The result of the recipe's model, of its fallback, or an extract where there is no model.
    pub(crate) async fn ask_models(&self, run: &mut Running) -> Result<Value, NoResult> {
        let first = run.model.clone();
        let answer = self.ask_one(run, &first).await;
        let policy = self.in_force(&run.tenant).policy;
        let Some(other) = self.fallback_of(run, &policy, &first) else { return answer };
        // An extract is no substitute for an answer that was paid for.
        match answer {
            Err(NoResult::Upstream(_)) if other != BUILTIN => {
                run.model.clone_from(&other);
                self.ask_one(run, &other).await
            }
            answer => answer,
        }
    }

    async fn ask_one(&self, run: &mut Running, model: &str) -> Result<Value, NoResult> {
        if model == BUILTIN {
            return self.extract(run).ok_or(NoResult::NoModel);
        }
        let Some(offered) = self.models.find(model) else {
            return Err(NoResult::Upstream(GenerationFailure::Unreachable));
        };
        let context = &run.told;
        let Some(told) = prompt(&run.recipe, context, &run.input, &run.transcripts) else {
            return Err(NoResult::NoModel);
        };
        let policy = self.in_force(&run.tenant).policy;
        let mut problems = Vec::new();
        for attempt in 0..TRIES {
            let asked = self.model_request(run, model, &told, &problems, attempt);
            let began = Instant::now();
            let answer = ask(&offered, asked, self.run_deadline(run));
            let told = |answer: &_| spans::about_model((model, attempt), answer);
            let answer = trace::span("chat", SpanKind::Client, answer, told).await;
            run.model_time += began.elapsed();
            run.attempts.push(answer.clone());
            let candidate = answer.map_err(|failure| {
                if is_unseen(failure) {
                    // Nobody saw the end of the call, so the most it can come to counts.
                    let most = self.most_of_call(&policy, model, at_most(run));
                    run.cost = run.cost.saturating_add(most.unwrap_or(MicroUsd(0)));
                }
                NoResult::Upstream(failure)
            })?;
            run.spend(self.cost_of_answer(&policy, model, &candidate), candidate.usage);
            match shaped(run, &candidate) {
                Ok(result) => return Ok(result),
                Err(found) => problems = found,
            }
        }
        Err(NoResult::Shape(problems))
    }

    fn run_deadline(&self, run: &Running) -> Instant {
        let asked = run.request.options.timeout.map(Duration::from_millis);
        run.started + asked.unwrap_or(self.settings.turn_deadline)
    }

    fn model_request(
        &self,
        run: &Running,
        model: &str,
        told: &Prompt,
        problems: &[Problem],
        attempt: u8,
    ) -> ModelRequest {
        let mut messages = vec![
            Message::text(Role::System, told.system.as_str()),
            Message::text(Role::User, told.user.as_str()),
        ];
        if !problems.is_empty() {
            messages.push(Message::text(Role::User, correction(problems)));
        }
        let options = &run.request.options;
        let limit = run.recipe.limits.output_tokens_max;
        let mut body = Map::new();
        body.insert("model".into(), json!(model));
        body.insert("response_format".into(), json!({"type": "json_object"}));
        body.insert("max_tokens".into(), json!(options.max_tokens.unwrap_or(limit).min(limit)));
        if let Some(heat) = options.temperature {
            body.insert("temperature".into(), json!(heat));
        }
        let left = self.run_deadline(run).saturating_duration_since(Instant::now());
        ModelRequest {
            field: Arc::new(self.field.sense(&messages, Score::ZERO, 0)),
            body: Arc::new(body),
            conversation: messages.into(),
            guidance: None,
            temperature: None,
            crisis: Score::ZERO,
            reasons: Vec::new(),
            attempt,
            seed: 0,
            timeout: left,
        }
    }

    fn extract(&self, run: &Running) -> Option<Value> {
        Some(match run.recipe.extract? {
            Extract::Interview => extract_interview(&run.input, &run.transcripts),
            Extract::Reply => extract_reply(&run.input),
            Extract::Insights => {
                extract_insights(&run.transcripts, &self.workshop.empathy, run.consent_verified)
            }
            Extract::Playbook => extract_playbook(&run.input),
        })
    }
}

async fn ask(
    offered: &OfferedModel,
    request: ModelRequest,
    deadline: Instant,
) -> Result<Candidate, GenerationFailure> {
    match timeout_at(deadline, offered.model.generate(request)).await {
        Ok(Ok(candidate)) => Ok(candidate),
        Ok(Err(error)) => {
            tracing::warn!(provider = %offered.provider, %error, "the model gave no result");
            Err(error.failure)
        }
        Err(_elapsed) => Err(GenerationFailure::Timeout),
    }
}

/// The result in an answer, if it has the recipe's shape. Calls of tools are no result.
fn shaped(run: &Running, candidate: &Candidate) -> Result<Value, Vec<Problem>> {
    let whole = |message: &str| vec![Problem { path: String::new(), message: message.to_owned() }];
    if candidate.finish == FinishReason::Length {
        return Err(whole("was cut off; it must be shorter"));
    }
    let result = answered(&candidate.text).ok_or_else(|| whole("must be one JSON object"))?;
    let problems = run.recipe.output.problems(&result);
    if problems.is_empty() { Ok(result) } else { Err(problems) }
}
