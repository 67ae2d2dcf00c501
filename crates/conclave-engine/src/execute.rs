//! The other main use-case: one run of a recipe, from the request to a recorded, measured result.
//!
//! **Invariant:** no result leaves before its decision is durable.
//! **Invariant:** what is held stays in the sealed words of its decision until people have decided.

use crate::agreed::digest;
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::run_model::NoResult;
use crate::running::{Run, Running, texts};
use conclave_core::{AuditId, GenerationFailure, MicroUsd, Outcome, SessionId, Usage, UserId};
use conclave_pii::Tokens;
use conclave_ports::AppendError;
use conclave_recipes::{
    Address, CitationReport, Guard, Intake, Measured, Passage, Phase, Recipe, Taken, Transcript,
    Work, Wrong, check_citations, evaluate, intake,
};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There is a result.
    Done,
    /// It waits for a person, under this review.
    Held {
        /// The review's id.
        review: String,
    },
    /// A guard stopped it.
    Refused {
        /// A word of a closed list.
        code: &'static str,
        /// A sentence for the client.
        message: String,
    },
    /// A guard could not be asked, and there is nobody who could decide instead.
    Unguarded,
    /// No model gave a result.
    Failed {
        /// Whether it took too long.
        late: bool,
        /// A sentence for the client.
        message: String,
    },
}

/// A run that was decided and recorded.
pub struct Executed {
    /// The decision.
    pub id: AuditId,
    /// How it ended.
    pub ending: Ending,
    /// The same, as every decision says it.
    pub outcome: Outcome,
    /// How often a model was asked.
    pub attempts: u32,
    /// The tokens of all attempts.
    pub usage: Usage,
    /// What they cost.
    pub cost: MicroUsd,
    /// The time that was added to the models' own.
    pub overhead: Duration,
    /// When it is worth while to ask again, where money was short.
    pub retry_at_ms: Option<u64>,
    /// What the client gets: `success`, `data`, `citations`, `metadata`.
    pub response: Value,
    /// The hash of the decision's leaf.
    pub leaf_hash: [u8; 32],
    /// To be told how much of it left.
    pub delivery: Delivery,
}

/// Why a run was not even begun.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// There is no such recipe.
    #[error("there is no recipe `{0}`")]
    UnknownRecipe(String),
    /// The request is wrong.
    #[error("{}: {}", .0.path, .0.message)]
    Invalid(Wrong),
    /// The context names another tenant.
    #[error("the context names a tenant that this key does not belong to")]
    OtherTenant,
    /// The decision could not be made durable, so nothing may leave.
    #[error(transparent)]
    AuditUnavailable(#[from] AppendError),
    /// What was stored cannot be read.
    #[error("{0}")]
    Unavailable(String),
}

impl Engine {
    /// Takes one run through guards, model, measures and record.
    ///
    /// # Errors
    /// When it cannot be begun, or its decision cannot be recorded. Everything else is an [`Ending`].
    pub async fn execute(&self, asked: Run) -> Result<Executed, ExecuteError> {
        let recipe = self.workshop.recipes.find(&asked.recipe);
        let recipe = recipe.ok_or_else(|| ExecuteError::UnknownRecipe(asked.recipe.clone()))?;
        checked(&recipe, &asked)?;
        self.ledger.health()?;
        let mut run = self.begin(recipe, asked).await?;
        match self.guard_before(&mut run).await {
            Passage::Closed => {
                let ending = refused(&run);
                self.conclude_run(run, ending).await
            }
            Passage::Held => self.hold(run).await,
            Passage::Open => self.work(run).await,
        }
    }

    async fn begin(&self, recipe: Arc<Recipe>, asked: Run) -> Result<Running, ExecuteError> {
        let started = Instant::now();
        let id = self.new_audit_id(self.clock.now_ms());
        let (transcripts, context) = self.transcripts_of(&asked, &recipe).await?;
        let material = digest(&transcripts);
        let agreed = match asked.approved_run {
            Some(earlier) => Some(self.agreed(&asked, earlier, &material).await?),
            None => None,
        };
        let wrong = |path: &str, error: &dyn std::fmt::Display| {
            ExecuteError::Invalid(Wrong::at(path, error.to_string()))
        };
        let subject = asked.request.context.subject().map(UserId::new).transpose();
        let subject = subject.map_err(|error| wrong("context.user_id", &error))?;
        let session = SessionId::new(format!("run-{id}")).map_err(|error| wrong("id", &error))?;
        let named = self.subjects.name(&asked.tenant, subject.as_ref(), &session).await;
        let who = named.map_err(|error| AppendError::Unwritable(error.to_string()))?;
        let model = match recipe.work {
            Work::Model => self.workshop.model(recipe.models.class).to_owned(),
            _ => "none".to_owned(),
        };
        Ok(Running {
            id,
            tenant: asked.tenant,
            key: asked.key,
            remembered: self.memory.recall(&who).await,
            who,
            input: without_transcripts(&asked.request.input),
            recipe,
            request: asked.request,
            told: context.clone(),
            context,
            material,
            transcripts,
            tokens: Tokens::new(),
            outcomes: Vec::new(),
            consent_verified: false,
            consented: Vec::new(),
            agreed,
            model,
            downgraded: false,
            reserved: None,
            retry_at_ms: None,
            attempts: Vec::new(),
            usage: Usage::default(),
            cost: MicroUsd(0),
            model_time: Duration::ZERO,
            crisis: false,
            output: None,
            report: CitationReport::default(),
            evaluation: None,
            panel: None,
            communities: Vec::new(),
            sacred: false,
            started,
        })
    }

    async fn work(&self, mut run: Running) -> Result<Executed, ExecuteError> {
        let made = match run.recipe.work {
            Work::Model => self.ask_models(&mut run).await,
            Work::ConsentIntake => Ok(self.take_in(&mut run)),
            Work::GovernanceSentinel => Ok(self.stand_guard(&mut run).await),
            Work::CostSteward => self.keep_house(&run).await,
        };
        let made = made.and_then(|result| {
            let problems = run.recipe.output.problems(&result);
            if problems.is_empty() { Ok(result) } else { Err(NoResult::Shape(problems)) }
        });
        match made {
            Ok(result) => run.output = Some(result),
            Err(why) => {
                let ending = failed(&why);
                return self.conclude_run(run, ending).await;
            }
        }
        self.measure(&mut run).await;
        let mut passage = self.guard_after(&mut run).await;
        // Verifiers may be elsewhere: they see a result once nothing speaks against showing it.
        if passage == Passage::Open {
            let voted = AssertUnwindSafe(self.vote(&mut run)).catch_unwind().await;
            let voted = voted.unwrap_or_else(|_| Err("the panel panicked".to_owned()));
            if let Err(why) = voted {
                run.found((Guard::Toxicity, Phase::Post), Taken::Failed, "guard_failed", why);
                passage = Passage::Held;
            }
        }
        match passage {
            Passage::Closed => {
                run.output = None;
                let ending = refused(&run);
                self.conclude_run(run, ending).await
            }
            Passage::Held => self.hold(run).await,
            Passage::Open if is_critical(&run) => self.hold(run).await,
            Passage::Open if run.recipe.human_in_loop && self.governed.governance.is_some() => {
                self.hold(run).await
            }
            Passage::Open => self.conclude_run(run, Ending::Done).await,
        }
    }

    /// Waits for a person, where there is one who can be asked.
    async fn hold(&self, mut run: Running) -> Result<Executed, ExecuteError> {
        let ending = match self.governed.governance {
            None => Ending::Unguarded,
            Some(_) if self.is_decidable(&run).await => Ending::Held { review: String::new() },
            Some(_) => {
                run.output = None;
                Ending::Refused { code: "no_elders", message: NO_ELDERS.to_owned() }
            }
        };
        self.conclude_run(run, ending).await
    }

    fn take_in(&self, run: &mut Running) -> Value {
        let context = &run.context;
        let given = run.input["source_metadata"]["source_id"].as_str().map(str::to_owned);
        let by = run.input["source_metadata"]["ingested_by"].as_str().map(str::to_owned);
        let with = Intake {
            finder: self.workshop.finder(),
            source_id: context
                .transcript_id
                .clone()
                .or(given)
                .unwrap_or_else(|| run.id.to_string()),
            ingested_by: by.or_else(|| context.user_id.clone()).unwrap_or_default(),
            now_ms: self.clock.now_ms(),
            consent_verified: run.consent_verified,
            wanted: &context.consent_scope,
        };
        intake(&run.input, &with, &mut run.tokens)
    }

    /// Citations, empathy and the latest runs, held against the limits in force.
    async fn measure(&self, run: &mut Running) {
        let Some(mut output) = run.output.take() else { return };
        run.report = check_citations(&output, &run.recipe.claims, &run.transcripts);
        let empathy = self.empathy_of(&run.recipe, &output).await;
        if let Some(tenths) = empathy.filter(|_| output.get("empathy_score").is_some()) {
            // Whatever the model says about itself, this is what was measured.
            output["empathy_score"] = json!(f64::from(tenths) / 10.0);
        }
        let lately = self.workshop.lately(&run.recipe.name);
        let invented = run.report.faults.len();
        let measured = Measured {
            empathy,
            hallucination: run.report.hallucination(),
            citations: run.report.coverage(),
            invented_quotes: u32::try_from(invented).unwrap_or(u32::MAX),
            sacred_detection: sacred_detection(run),
            p95_ms: lately.map(|(p95, _)| p95),
            errors: lately.map(|(_, errors)| errors),
        };
        let limits = run.recipe.thresholds(run.context.sensitivity_level);
        run.evaluation = Some(evaluate(measured, limits));
        run.crisis = self.hears_crisis(run).await;
        run.output = Some(output);
    }

    /// The lowest score of all that speaks to or about people.
    async fn empathy_of(&self, recipe: &Recipe, output: &Value) -> Option<u8> {
        let mut lowest = None;
        for place in &recipe.prose {
            let spoken: Vec<_> = spoken(output, &place.at, &place.member);
            if spoken.is_empty() {
                continue;
            }
            let text = spoken.join("\n");
            let manner = match place.address {
                // A failure is noticed by the guard that reads the whole result.
                Address::To => {
                    let read = self.read_words(text.clone(), Phase::Post).await;
                    read.ok().and_then(|reading| reading.as_reply)
                }
                Address::About => None,
            };
            let manner = manner.as_ref().map(|reply| &reply.manner);
            let score = self.workshop.empathy.score(&text, place.address, manner);
            lowest = Some(lowest.map_or(score, |other: u8| other.min(score)));
        }
        lowest
    }

    /// Whether somebody in a thread needs help: then whoever reviews the draft is asked to hurry.
    async fn hears_crisis(&self, run: &Running) -> bool {
        let thread = &run.request.input["ticket_thread"];
        if thread.is_null() {
            return false;
        }
        let read = self.read_words(texts(thread).join("\n"), Phase::Pre).await;
        read.is_ok_and(|reading| reading.is_crisis())
    }
}

/// Told where what waits belongs to a community that nobody here speaks for.
const NO_ELDERS: &str =
    "This belongs to a community, and nobody is here who could decide for it; nothing is returned.";

/// Marked passages must have been noticed by whoever guards culture.
fn sacred_detection(run: &Running) -> Option<u32> {
    let marked = run.transcripts.iter().flat_map(|one| &one.segments).any(|one| one.sacred);
    marked.then_some(if run.sacred { 10_000 } else { 0 })
}

pub(crate) fn is_critical(run: &Running) -> bool {
    let failed = run.evaluation.as_ref().is_some_and(|done| !done.critical.is_empty());
    failed || run.panel.as_ref().is_some_and(|panel| !panel.consensus.delivers())
}

fn checked(recipe: &Recipe, asked: &Run) -> Result<(), ExecuteError> {
    let request = &asked.request;
    request.check().map_err(ExecuteError::Invalid)?;
    if request.agent_name.as_ref().is_some_and(|name| *name != recipe.name) {
        let other = Wrong::at("agent_name", "is not the recipe of the path");
        return Err(ExecuteError::Invalid(other));
    }
    if request.context.tenant_id.as_ref().is_some_and(|name| name != asked.tenant.as_str()) {
        return Err(ExecuteError::OtherTenant);
    }
    match recipe.input.problems(&request.input).into_iter().next() {
        None => Ok(()),
        Some(problem) => {
            let dot = if problem.path.is_empty() { "" } else { "." };
            let path = format!("input{dot}{}", problem.path);
            Err(ExecuteError::Invalid(Wrong::at(path, problem.message)))
        }
    }
}

/// The input without the transcripts, which are kept beside it.
fn without_transcripts(input: &Value) -> Value {
    let mut input = input.clone();
    if let Value::Object(members) = &mut input {
        members.remove("transcripts");
    }
    input
}

pub(crate) fn spoken(output: &Value, at: &str, member: &str) -> Vec<String> {
    let item = |item: &Value| item.get(member).and_then(Value::as_str).map(str::to_owned);
    match output.pointer(at) {
        Some(Value::Array(items)) => items.iter().filter_map(item).collect(),
        Some(one) => item(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// What the client is told about the guard that closed the way.
fn refused(run: &Running) -> Ending {
    let Some(gravest) = run.gravest() else {
        return Ending::Unguarded;
    };
    let message = match gravest.code {
        "toxicity" => "What was asked for, or what would be said, would harm somebody.".to_owned(),
        "pii" => "It holds data that identifies somebody, and this recipe returns none.".to_owned(),
        _ => gravest.detail.clone(),
    };
    Ending::Refused { code: gravest.code, message }
}

fn failed(why: &NoResult) -> Ending {
    match why {
        NoResult::Upstream(GenerationFailure::Timeout) => {
            Ending::Failed { late: true, message: "The model did not answer in time.".to_owned() }
        }
        NoResult::Upstream(_) => {
            Ending::Failed { late: false, message: "The model could not answer.".to_owned() }
        }
        NoResult::Shape(problems) => {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            let message = format!("The model's result has the wrong shape: {first}.");
            Ending::Failed { late: false, message }
        }
        NoResult::NoBooks => Ending::Failed {
            late: false,
            message: "The accounts cannot be reached right now.".to_owned(),
        },
        NoResult::NoModel => {
            let message = "This recipe needs a model; set `recipes.large`.".to_owned();
            Ending::Failed { late: false, message }
        }
    }
}

/// The transcripts an input brings, told apart by their ids.
pub(crate) fn given(asked: &Run) -> Result<Vec<Transcript>, ExecuteError> {
    let wrong = |why: String| ExecuteError::Invalid(Wrong::at("input.transcripts", why));
    Transcript::given(&asked.request.input).map_err(wrong)
}
