//! One run of a recipe, from the request to a recorded, measured result.
//!
//! A run is a matter like any other: it is admitted here, goes past the same guards as a turn, its words
//! to people are judged by the same panel, and it is concluded by the same code. What is its own is the
//! work between the guards: a model asked for a result of a known shape, or something done without one.
//!
//! **Invariant:** no result leaves before its decision is durable.
//! **Invariant:** what is held stays in the sealed words of its decision until people have decided.

mod approval;
mod calls;
mod content;
mod cost_steward;
mod fetch;
mod history;
mod model;
mod record;
mod sentinel;
mod workshop;

pub use calls::{InterviewFocus, PlaybookBrief, RecipeCaller, ThreadMessage};
pub use fetch::FetchedRun;
pub use workshop::{RecipeSettings, Workshop, WorkshopError};

use crate::{
    Address, CitationReport, Evaluation, Intake, Measured, Recipe, RunContext, RunRequest,
    Transcript, Work, Wrong, check_citations, evaluate, intake,
};
use conclave_core::{
    AuditId, Candidate, GenerationFailure, GuardCode, GuardKind, KeyId, Message, MicroUsd, Outcome,
    PanelRun, Passage, Phase, Role, Scrutiny, Sensitivity, SessionId, TenantId, TurnContext, Usage,
    UserId,
};
use conclave_detect::Reading;
use conclave_engine::{
    ConsentQuestion, Delivery, Engine, GuardError, Matter, Payment, Purpose, Stop, read_words,
};
use conclave_pii::Tokens;
use conclave_ports::{AppendError, Records};
use content::{RunContent, texts};
use futures_util::FutureExt;
use model::NoResult;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

/// Runs recipes over an engine.
#[derive(Clone)]
pub struct RecipeRunner {
    /// What a run shares with every other matter.
    pub engine: Engine,
    /// The recipes and what they work with.
    pub workshop: Arc<Workshop>,
    /// Keeps what is counted of runs; absent where Conclave is used as a library without records.
    pub records: Option<Arc<dyn Records>>,
}

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whose.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
    /// Which recipe.
    pub recipe: String,
    /// What is asked.
    pub request: RunRequest,
    /// A run that waited for a person, with the same recipe and input; once approved, it is not held for
    /// the same reason again before the work is done. What a model makes of it is looked at anew.
    pub approved_run: Option<AuditId>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// There is a result.
    Done,
    /// It waits for a person, under this review.
    Held {
        /// The review's id.
        review: String,
    },
    /// A guard stopped it.
    Refused {
        /// Why.
        code: GuardCode,
        /// A sentence for the client.
        message: String,
    },
    /// A guard could not be asked, and there is nobody who could decide instead.
    GuardUnavailable,
    /// No model gave a result.
    Failed {
        /// Whether it took too long.
        late: bool,
        /// A sentence for the client.
        message: String,
    },
}

/// A run that was decided and recorded.
pub struct ExecutedRun {
    /// The decision.
    pub id: AuditId,
    /// How it ended.
    pub ending: RunEnding,
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

/// One run under way.
struct RunningRun {
    matter: Matter<RunContent>,
    request: RunRequest,
    /// The circumstances in force: what was asked, and what stands on stored material.
    context: RunContext,
    /// What the transcripts are, as a digest.
    material: String,
    attempts: Vec<Result<Candidate, GenerationFailure>>,
    usage: Usage,
    cost: MicroUsd,
    model_time: Duration,
    /// Whether somebody in a thread needs help: then whoever reviews the draft is asked to hurry.
    crisis: bool,
    report: CitationReport,
    evaluation: Option<Evaluation>,
    /// What the verifiers said of words that speak to a person.
    panel: Option<PanelRun>,
}

impl RunningRun {
    fn recipe(&self) -> &Recipe {
        &self.matter.content.recipe
    }

    fn spend(&mut self, cost: MicroUsd, usage: Usage) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.saturating_add(cost);
    }

    /// Whether a guard found that the material is sacred, whatever came of it.
    fn is_sacred(&self) -> bool {
        let code = Some(GuardCode::Sacred);
        self.matter.findings.iter().any(|finding| finding.counts() && finding.code == code)
    }

    /// Whether the result is so far from what it must be that a person decides.
    fn is_critical(&self) -> bool {
        let failed = self.evaluation.as_ref().is_some_and(|done| !done.critical.is_empty());
        failed || self.panel.as_ref().is_some_and(|panel| !panel.consensus.delivers())
    }
}

impl RecipeRunner {
    /// Takes one run through guards, work, guards, panel and record.
    ///
    /// # Errors
    /// When it cannot be begun, or its decision cannot be recorded. Everything else is a [`RunEnding`].
    pub async fn execute(&self, asked: Run) -> Result<ExecutedRun, ExecuteError> {
        let recipe = self.workshop.recipes.find(&asked.recipe);
        let recipe = recipe.ok_or_else(|| ExecuteError::UnknownRecipe(asked.recipe.clone()))?;
        check_request(&recipe, &asked)?;
        self.engine.ledger.health()?;
        let mut run = self.admit(recipe, asked).await?;
        match self.engine.guard(&mut run.matter, Phase::Before).await {
            Passage::Open => self.work(run).await,
            Passage::Held | Passage::Closed => self.conclude_stopped(run).await,
        }
    }

    async fn admit(&self, recipe: Arc<Recipe>, asked: Run) -> Result<RunningRun, ExecuteError> {
        let started = Instant::now();
        let engine = &self.engine;
        let id = engine.new_audit_id(engine.clock.now_ms());
        let (transcripts, context) = self.transcripts_of(&asked, &recipe).await?;
        let material = approval::digest(&transcripts)?;
        let approval = match asked.approved_run {
            Some(earlier) => Some(self.approval(&asked, earlier, &material).await?),
            None => None,
        };
        let wrong = |path: &str, error: &dyn std::fmt::Display| {
            ExecuteError::Invalid(Wrong::at(path, error.to_string()))
        };
        let subject = asked.request.context.subject().map(UserId::new).transpose();
        let subject = subject.map_err(|error| wrong("context.user_id", &error))?;
        let session = SessionId::new(format!("run-{id}")).map_err(|error| wrong("id", &error))?;
        let named = engine.subjects.name(&asked.tenant, subject.as_ref(), &session).await;
        let who = named.map_err(|error| AppendError::Unwritable(error.to_string()))?;
        let policy = engine.policies.in_force(&asked.tenant);
        let asks_model = recipe.work == Work::Model;
        let model = asks_model.then(|| self.workshop.model(recipe.models.class).to_owned());
        let fallback = recipe.models.fallback.filter(|_| asks_model);
        let fallback = fallback.map(|class| self.workshop.model(class).to_owned());
        let stated = self.workshop.settings.regions.iter().chain(&policy.policy.regions);
        let remembered = engine.memory.recall(&who).await;
        let mut matter = Matter {
            id,
            tenant: asked.tenant,
            key: asked.key,
            who,
            purpose: Purpose::Recipe(recipe.name.as_str().into()),
            context: turn_context(&context, &transcripts),
            rules: recipe.guards.clone(),
            consent: consent_question(&recipe, &context, &transcripts, &asked.request.input),
            regions: stated.cloned().collect(),
            approval,
            fallback: fallback.filter(|next| Some(next) != model.as_ref()),
            model,
            is_judged_elsewhere: recipe.prose.iter().any(|place| place.address == Address::To),
            reading: Arc::new(Reading::empty(conclave_core::Mode::Normal)),
            remembered,
            drift_before: conclave_detect::DriftState::default(),
            scrutiny: Scrutiny::Normal,
            is_established: false,
            refused: Arc::default(),
            findings: Vec::new(),
            looked: Vec::new(),
            hold: None,
            tokens: Tokens::new(),
            consented: Vec::new(),
            payment: Payment::default(),
            // What is long of a run takes its place text by text.
            is_long: false,
            started,
            policy,
            content: RunContent {
                recipe,
                input: without_transcripts(&asked.request.input),
                transcripts,
                told: context.clone(),
                output: None,
            },
        };
        matter.consent.is_required |= matter.policy().requires_consent(matter.purpose.as_str());
        matter.payment = engine.unreserved_payment(&matter);
        matter.scrutiny = scrutiny(&matter, false);
        Ok(RunningRun {
            matter,
            request: asked.request,
            context,
            material,
            attempts: Vec::new(),
            usage: Usage::default(),
            cost: MicroUsd(0),
            model_time: Duration::ZERO,
            crisis: false,
            report: CitationReport::default(),
            evaluation: None,
            panel: None,
        })
    }

    async fn work(&self, mut run: RunningRun) -> Result<ExecutedRun, ExecuteError> {
        let made = match run.recipe().work {
            Work::Model => self.ask_models(&mut run).await,
            Work::ConsentIntake => self.take_in(&mut run),
            Work::GovernanceSentinel => self.inspect(&run).await,
            Work::CostSteward => self.advise_on_cost(&run).await,
        };
        let made = made.and_then(|result| {
            let problems = run.recipe().output.problems(&result);
            if problems.is_empty() { Ok(result) } else { Err(NoResult::Shape(problems)) }
        });
        match made {
            Ok(result) => run.matter.content.output = Some(result),
            Err(NoResult::Unread(why)) => {
                self.engine.note_failure(&mut run.matter, GuardKind::Toxicity, Phase::After, why);
                return self.conclude_stopped(run).await;
            }
            Err(why) => return self.conclude(run, why.into_ending()).await,
        }
        if let Err(GuardError(why)) = self.measure(&mut run).await {
            self.engine.note_failure(&mut run.matter, GuardKind::Toxicity, Phase::After, why);
        }
        // Verifiers may be elsewhere: they see a result once nothing speaks against showing it.
        if self.engine.guard(&mut run.matter, Phase::After).await == Passage::Open {
            let voted = AssertUnwindSafe(self.vote(&mut run)).catch_unwind().await;
            let panicked = |_| Err(GuardError("the panel panicked".to_owned()));
            if let Err(GuardError(why)) = voted.unwrap_or_else(panicked) {
                self.engine.note_failure(&mut run.matter, GuardKind::Toxicity, Phase::After, why);
            }
        }
        let is_draft = run.recipe().human_in_loop && self.engine.governance.is_some();
        match run.matter.passage() {
            Passage::Open if !run.is_critical() && !is_draft => {
                self.conclude(run, RunEnding::Done).await
            }
            _ => self.conclude_stopped(run).await,
        }
    }

    /// A run that goes no further, or whose result waits for a person where there is one.
    async fn conclude_stopped(&self, mut run: RunningRun) -> Result<ExecutedRun, ExecuteError> {
        let stop = self.engine.stop(&run.matter).await;
        let ending = match stop {
            Stop::Held => RunEnding::Held { review: String::new() },
            Stop::Refused(code) => RunEnding::Refused { code, message: self.sentence(&run, code) },
            Stop::NoElders => {
                let code = GuardCode::NoElders;
                RunEnding::Refused { code, message: self.sentence(&run, code) }
            }
            Stop::GuardUnavailable | Stop::OwnAnswer => RunEnding::GuardUnavailable,
        };
        if !matches!(ending, RunEnding::Held { .. } | RunEnding::GuardUnavailable) {
            run.matter.content.output = None;
        }
        self.conclude(run, ending).await
    }

    /// What the client is told about the guard that closed the way: what is missing, where a guard can say
    /// it without repeating anybody's words, else the sentence of the code.
    fn sentence(&self, run: &RunningRun, code: GuardCode) -> String {
        let gravest = run.matter.gravest().filter(|finding| finding.code == Some(code));
        match (code, gravest) {
            (GuardCode::Toxicity | GuardCode::PersonalData | GuardCode::Sacred, _)
            | (GuardCode::Cultural | GuardCode::NoElders, _)
            | (_, None) => conclave_voice::guard_sentence(code, "en").to_owned(),
            (_, Some(finding)) => finding.detail.clone(),
        }
    }

    fn take_in(&self, run: &mut RunningRun) -> Result<Value, NoResult> {
        let finder = self.engine.personal_data.finder().map_err(|GuardError(why)| {
            tracing::error!(%why, "identifying data cannot be found");
            NoResult::Unread(why)
        })?;
        let content = &run.matter.content;
        let source = &content.input["source_metadata"];
        let given = source["source_id"].as_str().map(str::to_owned);
        let by = source["ingested_by"].as_str().map(str::to_owned);
        let context = &run.context;
        let id = context.transcript_id.clone().or(given);
        let with = Intake {
            finder,
            source_id: id.unwrap_or_else(|| run.matter.id.to_string()),
            ingested_by: by.or_else(|| context.user_id.clone()).unwrap_or_default(),
            now_ms: self.engine.clock.now_ms(),
            consent_verified: run.matter.is_consent_verified(),
            wanted: &context.consent_scope,
        };
        Ok(intake(&content.input, &with, &mut run.matter.tokens))
    }

    /// Citations, empathy and the latest runs, held against the limits in force.
    async fn measure(&self, run: &mut RunningRun) -> Result<(), GuardError> {
        let Some(mut output) = run.matter.content.output.take() else { return Ok(()) };
        let transcripts = &run.matter.content.transcripts;
        run.report = check_citations(&output, &run.recipe().claims, transcripts);
        let empathy = self.empathy_of(run, &output).await;
        if let (Ok(Some(tenths)), true) = (&empathy, output.get("empathy_score").is_some()) {
            // Whatever the model says about itself, this is what was measured.
            output["empathy_score"] = json!(f64::from(*tenths) / 10.0);
        }
        run.matter.content.output = Some(output);
        let lately = self.workshop.lately(&run.recipe().name);
        let measured = Measured {
            empathy: empathy.clone()?,
            hallucination: run.report.hallucination(),
            citations: run.report.coverage(),
            invented_quotes: u32::try_from(run.report.faults.len()).unwrap_or(u32::MAX),
            sacred_detection: sacred_detection(run),
            p95_ms: lately.map(|latest| latest.p95_ms),
            errors: lately.map(|latest| latest.errors_e4),
        };
        let limits = run.recipe().thresholds(run.context.sensitivity_level);
        run.evaluation = Some(evaluate(measured, limits));
        run.crisis = self.hears_crisis(run).await?;
        run.matter.scrutiny = scrutiny(&run.matter, run.crisis);
        Ok(())
    }

    /// The lowest score of all that speaks to or about people.
    async fn empathy_of(&self, run: &RunningRun, output: &Value) -> Result<Option<u8>, GuardError> {
        let mut lowest = None;
        for place in &run.recipe().prose {
            let spoken = spoken_words(output, &place.at, &place.member);
            if spoken.is_empty() {
                continue;
            }
            let text = spoken.join("\n");
            let manner = match place.address {
                Address::To => {
                    let read = read_words(&self.engine, &run.matter, text.clone(), Phase::After);
                    read.await?.as_reply
                }
                Address::About => None,
            };
            let manner = manner.as_ref().map(|reply| &reply.manner);
            let score = self.workshop.empathy.score(&text, place.address, manner);
            lowest = Some(lowest.map_or(score, |other: u8| other.min(score)));
        }
        Ok(lowest)
    }

    async fn hears_crisis(&self, run: &RunningRun) -> Result<bool, GuardError> {
        let thread = &run.request.input["ticket_thread"];
        if thread.is_null() {
            return Ok(false);
        }
        let text = texts(thread).join("\n");
        let read = read_words(&self.engine, &run.matter, text, Phase::Before).await?;
        Ok(read.crisis.is_crisis())
    }

    /// Has the verifiers vote on words that speak to somebody; nothing is asked where there are none.
    async fn vote(&self, run: &mut RunningRun) -> Result<(), GuardError> {
        let Some(output) = &run.matter.content.output else { return Ok(()) };
        let to_people = run.recipe().prose.iter().filter(|place| place.address == Address::To);
        let said: Vec<_> =
            to_people.flat_map(|place| spoken_words(output, &place.at, &place.member)).collect();
        if said.is_empty() {
            return Ok(());
        }
        let candidate = Candidate { text: said.join("\n\n"), ..Candidate::default() };
        let conversation = conversation(&run.matter.content.input);
        let judged = self.engine.judge_words(&run.matter, conversation, candidate, run.crisis);
        let panel = judged.await?;
        let cost = panel.ballots.iter().fold(MicroUsd(0), |sum, one| sum.saturating_add(one.cost));
        run.cost = run.cost.saturating_add(cost);
        run.panel = Some(panel);
        Ok(())
    }
}

/// How strictly a run is treated.
fn scrutiny(matter: &Matter<RunContent>, crisis: bool) -> Scrutiny {
    let own = match matter.context.sensitivity {
        Sensitivity::Sacred => Scrutiny::Strict,
        _ if crisis => Scrutiny::Strict,
        Sensitivity::High => Scrutiny::Raised,
        Sensitivity::Low | Sensitivity::Medium => Scrutiny::Normal,
    };
    own.max(matter.policy().scrutiny_min.unwrap_or_default())
}

/// The circumstances in the words of a turn. A marked passage is as sacred as the whole.
fn turn_context(context: &RunContext, transcripts: &[Transcript]) -> TurnContext {
    let is_marked = transcripts.iter().flat_map(|one| &one.segments).any(|one| one.sacred);
    TurnContext {
        country: context.country.clone(),
        sensitivity: if is_marked { Sensitivity::Sacred } else { context.sensitivity_level },
        affiliations: context.cultural_affiliations.clone(),
        labels: context.labels.clone(),
        audience: context.audience.clone(),
        ..TurnContext::default()
    }
}

fn consent_question(
    recipe: &Recipe,
    context: &RunContext,
    transcripts: &[Transcript],
    input: &Value,
) -> ConsentQuestion {
    let is_intake = recipe.work == Work::ConsentIntake;
    ConsentQuestion {
        is_required: recipe.guard(GuardKind::Consent).is_some(),
        subjects: subjects(context, transcripts).into_iter().collect(),
        scopes: context.consent_scope.clone(),
        purpose: context.purpose.clone(),
        party: context.party.clone(),
        stated: is_intake.then(|| states_consent(input)),
        passes_unverified: true,
    }
}

/// Whether content comes with consent of its own: an intake is where that is first written down.
fn states_consent(input: &Value) -> bool {
    let said = |kind: &str| input["provided_consent"][kind].as_bool().unwrap_or(false);
    said("written") || said("verbal")
}

/// Everybody whose words would be used.
fn subjects(context: &RunContext, transcripts: &[Transcript]) -> BTreeSet<String> {
    let of_run = context.subject();
    let mut all: BTreeSet<String> =
        transcripts.iter().filter_map(|one| one.storyteller_id.clone()).collect();
    let is_unnamed = transcripts.iter().any(|one| one.storyteller_id.is_none());
    if is_unnamed || transcripts.is_empty() {
        all.extend(of_run.map(str::to_owned));
        // A transcript of nobody cannot have been agreed to.
        if of_run.is_none() {
            all.clear();
        }
    }
    all
}

/// Marked passages must have been noticed by whoever guards culture.
fn sacred_detection(run: &RunningRun) -> Option<u32> {
    let segments = run.matter.content.transcripts.iter().flat_map(|one| &one.segments);
    let is_marked = segments.into_iter().any(|one| one.sacred);
    is_marked.then_some(if run.is_sacred() { 10_000 } else { 0 })
}

fn check_request(recipe: &Recipe, asked: &Run) -> Result<(), ExecuteError> {
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

fn spoken_words(output: &Value, at: &str, member: &str) -> Vec<String> {
    let item = |item: &Value| item.get(member).and_then(Value::as_str).map(str::to_owned);
    match output.pointer(at) {
        Some(Value::Array(items)) => items.iter().filter_map(item).collect(),
        Some(one) => item(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// What the person wrote, message by message; else whatever was given.
fn conversation(input: &Value) -> Arc<[Message]> {
    let thread = input.get("ticket_thread").and_then(Value::as_array);
    let said = thread.into_iter().flatten().filter_map(|one| one.get("text")?.as_str());
    let messages: Vec<_> = said.map(|text| Message::text(Role::User, text)).collect();
    if messages.is_empty() {
        return [Message::text(Role::User, texts(input).join("\n"))].into();
    }
    messages.into()
}
