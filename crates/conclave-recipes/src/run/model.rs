//! Asking a model for a result of a known shape.
//!
//! **Invariant:** a wrong shape is told to the model once, by place and expectation; then the run has failed.
//! **Invariant:** nothing of an answer reaches the next prompt.

use super::{RecipeRunner, RunEnding, RunningRun};
use crate::{
    Extract, Problem, Prompt, answered, correction, extract_insights, extract_interview,
    extract_playbook, extract_reply, prompt,
};
use conclave_core::{Candidate, FinishReason, GenerationFailure, Message, MicroUsd, Role, Score};
use conclave_engine::{BUILTIN_MODEL, MatterContent, about_model, is_unseen};
use conclave_ports::trace::{self, SpanKind};
use conclave_ports::{ModelRequest, OfferedModel};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often a model is asked for one run: each model of the recipe twice.
pub(super) const CALLS_MAX: u8 = 4;
/// How often one model is asked.
const TRIES: u8 = 2;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoResult {
    /// No model answered.
    Upstream(GenerationFailure),
    /// What they answered does not fit.
    Shape(Vec<Problem>),
    /// Without a model there is nothing to be had.
    NoModel,
    /// What is left of a budget cannot be read.
    NoAccounts,
    /// DecisionWords could not be read: what nobody could judge waits for a person.
    Unread(String),
}

impl NoResult {
    pub(super) fn into_ending(self) -> RunEnding {
        let late = self == Self::Upstream(GenerationFailure::Timeout);
        let message = match self {
            Self::Upstream(GenerationFailure::Timeout) => {
                "The model did not answer in time.".to_owned()
            }
            Self::Upstream(_) => "The model could not answer.".to_owned(),
            Self::Shape(problems) => {
                let first = problems.first().map(ToString::to_string).unwrap_or_default();
                format!("The model's result has the wrong shape: {first}.")
            }
            Self::NoAccounts => "The accounts cannot be reached right now.".to_owned(),
            Self::NoModel => "This recipe needs a model; set `recipes.large`.".to_owned(),
            Self::Unread(_) => "What was written could not be read.".to_owned(),
        };
        RunEnding::Failed { late, message }
    }
}

impl RecipeRunner {
    /// The result of the recipe's model, of its fallback, or an extract where there is no model.
    pub(super) async fn ask_models(&self, run: &mut RunningRun) -> Result<Value, NoResult> {
        let Some(first) = run.matter.model.clone() else { return Err(NoResult::NoModel) };
        let answer = self.ask_one(run, &first).await;
        let fallback = run
            .matter
            .fallback
            .clone()
            .filter(|other| *other != first && self.engine.may_be_asked(&run.matter, other));
        let Some(other) = fallback else { return answer };
        // An extract is no substitute for an answer that was paid for.
        match answer {
            Err(NoResult::Upstream(_)) if other != BUILTIN_MODEL => {
                run.matter.model = Some(other.clone());
                self.ask_one(run, &other).await
            }
            answer => answer,
        }
    }

    async fn ask_one(&self, run: &mut RunningRun, model: &str) -> Result<Value, NoResult> {
        if model == BUILTIN_MODEL {
            return self.extract(run).ok_or(NoResult::NoModel);
        }
        let Some(offered) = self.engine.models.find(model) else {
            return Err(NoResult::Upstream(GenerationFailure::Unreachable));
        };
        let content = &run.matter.content;
        let told = prompt(&content.recipe, &content.told, &content.input, &content.transcripts);
        let Some(told) = told else { return Err(NoResult::NoModel) };
        let price = self.engine.price_of(run.matter.policy(), model).unwrap_or_default();
        let mut problems = Vec::new();
        for attempt in 0..TRIES {
            let asked = self.model_request(run, model, &told, &problems, attempt);
            let began = Instant::now();
            let answer = ask(&offered, asked, self.deadline(run));
            let report = |answer: &_| about_model(model, attempt, answer);
            let answer = trace::span("chat", SpanKind::Client, answer, report).await;
            run.model_time += began.elapsed();
            run.attempts.push(answer.clone());
            let candidate = match answer {
                Ok(candidate) => candidate,
                Err(failure) => {
                    if is_unseen(failure) {
                        // Nobody saw the end of the call, so the most it can come to counts.
                        let size = run.matter.content.size(None);
                        let dearest = self.engine.dearest(run.matter.policy(), model, price);
                        let most = size.call(&dearest);
                        run.cost = run.cost.saturating_add(most);
                    }
                    return Err(NoResult::Upstream(failure));
                }
            };
            let cost = candidate.stand_in.as_ref().map(|stand_in| stand_in.cost);
            let cost: MicroUsd = cost.unwrap_or_else(|| price.cost(candidate.usage));
            run.spend(cost, candidate.usage);
            match shaped(run, &candidate) {
                Ok(result) => return Ok(result),
                Err(found) => problems = found,
            }
        }
        Err(NoResult::Shape(problems))
    }

    fn deadline(&self, run: &RunningRun) -> Instant {
        let asked = run.request.options.timeout.map(Duration::from_millis);
        run.matter.started + asked.unwrap_or(self.engine.settings.turn_deadline)
    }

    fn model_request(
        &self,
        run: &RunningRun,
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
        let limit = run.recipe().limits.output_tokens_max;
        let mut body = Map::new();
        body.insert("model".into(), json!(model));
        body.insert("response_format".into(), json!({"type": "json_object"}));
        body.insert("max_tokens".into(), json!(options.max_tokens.unwrap_or(limit).min(limit)));
        if let Some(heat) = options.temperature {
            body.insert("temperature".into(), json!(heat));
        }
        let time_left = self.deadline(run).saturating_duration_since(Instant::now());
        ModelRequest {
            field: Arc::new(self.engine.field.sense(&messages, Score::ZERO, 0)),
            body: Arc::new(body),
            conversation: messages.into(),
            guidance: None,
            temperature: None,
            crisis: Score::ZERO,
            reasons: Vec::new(),
            attempt,
            seed: 0,
            timeout: time_left,
            pause: time_left,
        }
    }

    fn extract(&self, run: &RunningRun) -> Option<Value> {
        let content = &run.matter.content;
        Some(match content.recipe.extract? {
            Extract::Interview => extract_interview(&content.input, &content.transcripts),
            Extract::Reply => extract_reply(&content.input),
            Extract::Insights => {
                let is_verified = run.matter.is_consent_verified();
                extract_insights(&content.transcripts, &self.workshop.empathy, is_verified)
            }
            Extract::Playbook => extract_playbook(&content.input),
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
fn shaped(run: &RunningRun, candidate: &Candidate) -> Result<Value, Vec<Problem>> {
    let whole = |message: &str| vec![Problem { path: String::new(), message: message.to_owned() }];
    if candidate.finish == FinishReason::Length {
        return Err(whole("was cut off; it must be shorter"));
    }
    let result = answered(&candidate.text).ok_or_else(|| whole("must be one JSON object"))?;
    let problems = run.recipe().output.problems(&result);
    if problems.is_empty() { Ok(result) } else { Err(problems) }
}
