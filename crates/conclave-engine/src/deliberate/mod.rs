//! Deliberation: a model proposes, everybody on the panel judges blind, and the state machine of
//! `conclave-core` says what comes next.
//!
//! Here the steps are only carried out and timed. Whether a reply is good enough is decided in
//! `core/consensus.rs`, and what follows from that in `core/deliberation.rs`.

mod case;
mod panel;
mod stream;
mod verdicts;
mod windows;

use case::called_tools;
pub(crate) use case::{CaseMaterial, Patience};
pub use panel::{BuiltIn, Panel};
pub(crate) use stream::joined;
pub use stream::{Progress, ReleasedWindow};
pub use verdicts::Verdicts;

use crate::conclude::{Choice, spans};
use crate::engine::Engine;
use crate::guards::{GuardError, read_words};
use crate::matter::{Matter, Turn, TurnContent};
use crate::shares::Load;
use conclave_core::{
    Ballot, Candidate, Deliberation, GenerationFailure, Limits, Message, Mode, Outcome, PanelRun,
    Phase, Reason, Step, Verdict, decide,
};
use conclave_ports::trace::{self, SpanKind};
use conclave_ports::{Model, ModelError, ModelRequest, UpstreamRefusal};
use conclave_verifiers::Case;
use conclave_voice::{FieldState, Language, Shaping, doubt_advisory};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use verdicts::Grounds;

/// Time kept back for the panel's last word and for recording it.
const RECORDING_RESERVE: Duration = Duration::from_millis(200);

/// What every deliberation of a turn shares.
pub(crate) struct Course<'a> {
    pub matter: &'a Matter<TurnContent>,
    pub model: &'a dyn Model,
    pub field: Arc<FieldState>,
    pub limits: Limits,
    /// When a reply has to be there as a whole.
    pub deadline: Instant,
    /// When the first of it has to be there: a model that has said nothing by then is not asked again.
    pub begun_by: Instant,
    /// How long a model may be silent.
    pub pause: Duration,
}

impl<'a> Course<'a> {
    pub(crate) fn new(
        engine: &Engine,
        matter: &'a Matter<TurnContent>,
        model: &'a dyn Model,
        field: Arc<FieldState>,
        attempts_max: u8,
    ) -> Self {
        let crisis = matter.crisis().is_crisis();
        let settings = &engine.settings;
        let (pause, whole) = match crisis {
            true => (settings.crisis_deadline, settings.crisis_deadline),
            false => (settings.turn_deadline, settings.reply_timeout.max(settings.turn_deadline)),
        };
        let [pause, whole] = [pause, whole].map(|time| time.saturating_sub(RECORDING_RESERVE));
        Self {
            matter,
            model,
            field,
            limits: Limits { attempts_max, bars: engine.bars(matter), crisis },
            deadline: matter.started + whole,
            begun_by: matter.started + pause,
            pause,
        }
    }

    fn turn(&self) -> &'a Turn {
        &self.matter.content.turn
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// What a model is asked at an attempt.
    fn request(&self, index: u8, attempt: u8, reasons: Vec<Reason>) -> ModelRequest {
        let turn = self.turn();
        let shaping = conclave_voice::shape(&self.field, &self.matter.reading.language);
        let seed = turn.seed().wrapping_add(u64::from(index) << 8);
        ModelRequest {
            body: turn.body.clone(),
            conversation: turn.conversation.clone(),
            guidance: Some(self.guidance(&shaping, &reasons)),
            temperature: Some(shaping.temperature),
            field: self.field.clone(),
            crisis: self.matter.crisis(),
            reasons,
            attempt,
            seed: seed.wrapping_add(u64::from(attempt)),
            timeout: self.time_left(),
            pause: self.pause.min(self.time_left()),
        }
    }

    /// Asks a model for a whole reply. A client that reads events waits as long as one flows, whether or not it is
    /// shown the pieces, so that the model is asked for them.
    fn ask(&self, request: ModelRequest) -> Asking<'_> {
        if self.turn().body.get("stream") == Some(&Value::Bool(true)) {
            let (nobody_listens, _) = mpsc::channel(1);
            let asked = self.model.generate_in_pieces(request, nobody_listens);
            return Asking { asked, patience_ends: self.deadline };
        }
        // What comes whole begins when it is there.
        let patience_ends = self.deadline.min(Instant::now() + request.pause);
        Asking { asked: self.model.generate(request), patience_ends }
    }

    /// Whether a model said nothing in all the time it had for a first word.
    fn was_silent(&self, candidate: &Result<Candidate, GenerationFailure>) -> bool {
        let is_late = matches!(candidate, Err(GenerationFailure::Timeout));
        is_late && Instant::now() >= self.begun_by
    }

    /// What a model is told beside the conversation; in doubt also what to be careful about.
    fn guidance(&self, shaping: &Shaping, reasons: &[Reason]) -> String {
        let guidance = shaping.guidance_with(reasons);
        if !self.matter.is_doubted() {
            return guidance;
        }
        let reading = &self.matter.reading;
        let stated = self.matter.context.language.as_deref();
        let language = Language::of_tag(stated.unwrap_or(&reading.language));
        let advisory = doubt_advisory(reading.subject(), language);
        if guidance.is_empty() { advisory } else { format!("{advisory}\n\n{guidance}") }
    }

    /// What a model answers, if it does in time.
    async fn answer_in_time(&self, attempt: u8, asking: Asking<'_>) -> ModelAnswer {
        let model = self.matter.model.as_deref().unwrap_or_default();
        let answered = async {
            match timeout_at(asking.patience_ends, asking.asked).await {
                Ok(Ok(candidate)) => ModelAnswer { candidate: Ok(candidate), upstream: None },
                Ok(Err(error)) => {
                    tracing::warn!(model, %error, "the model gave no candidate");
                    let upstream = error.upstream.map(|stated| *stated);
                    ModelAnswer { candidate: Err(error.failure), upstream }
                }
                Err(_elapsed) => {
                    ModelAnswer { candidate: Err(GenerationFailure::Timeout), upstream: None }
                }
            }
        };
        let report =
            |answered: &ModelAnswer| spans::about_model(model, attempt, &answered.candidate);
        trace::span("chat", SpanKind::Client, answered, report).await
    }
}

/// A question to a model, and until when its answer is waited for.
pub(crate) struct Asking<'a> {
    pub asked: BoxFuture<'a, Result<Candidate, ModelError>>,
    pub patience_ends: Instant,
}

/// What came of asking a model once.
pub(crate) struct ModelAnswer {
    pub candidate: Result<Candidate, GenerationFailure>,
    /// What its provider said of the request, where it refused it.
    pub upstream: Option<UpstreamRefusal>,
}

/// How a deliberation ended.
pub(crate) struct Deliberated {
    pub verdict: Verdict,
    pub attempts: Vec<conclave_core::Attempt>,
    pub model_time: Duration,
    /// What the provider said of the request, where it refused it the last time.
    pub upstream: Option<UpstreamRefusal>,
}

impl Deliberated {
    /// The candidate that may be delivered.
    pub(crate) fn passed(&self) -> Option<Candidate> {
        let Verdict::Deliver { attempt } = self.verdict else { return None };
        self.attempts.get(usize::from(attempt))?.candidate.as_ref().ok().cloned()
    }
}

impl Engine {
    /// The one loop: ask what comes next, do it, tell what happened.
    pub(crate) async fn deliberate(&self, course: &Course<'_>, index: u8) -> Choice {
        let mut deliberation = Deliberation::new(course.limits);
        let mut model_time = Duration::ZERO;
        let mut upstream = None;
        let verdict = loop {
            if Instant::now() >= course.deadline {
                deliberation.expire();
            }
            match deliberation.next() {
                Step::Generate { attempt, reasons } => {
                    let asked = Instant::now();
                    let asking = course.ask(course.request(index, attempt, reasons));
                    let answer = course.answer_in_time(attempt, asking).await;
                    model_time += asked.elapsed();
                    conclave_failpoint::reach("turn.answered");
                    upstream = answer.upstream;
                    if course.was_silent(&answer.candidate) {
                        deliberation.expire();
                    }
                    deliberation.generated(answer.candidate);
                }
                Step::Verify { .. } => {
                    let Some(candidate) = deliberation.last_candidate() else { continue };
                    let candidate = candidate.clone();
                    deliberation.verified(self.ballots(course, candidate).await);
                }
                Step::Finish(verdict) => break verdict,
            }
        };
        let attempts = deliberation.into_attempts();
        self.close(course, Deliberated { verdict, attempts, model_time, upstream }).await
    }

    /// The panel's ballots on a candidate: cast now, or known from the very same case.
    async fn ballots(&self, course: &Course<'_>, candidate: Candidate) -> Vec<Ballot> {
        let matter = course.matter;
        let tools = called_tools(&course.turn().body, &candidate);
        let grounds = Grounds {
            tenant: &matter.tenant,
            policy: &self.settings.policy,
            policy_version: matter.policy.version,
            directives: &self.settings.directives,
            scrutiny: matter.scrutiny,
            conversation: &course.turn().conversation,
            context: &matter.context,
            input: &matter.reading,
            candidate: &candidate,
            tools: &tools,
            established: matter.is_established,
        };
        // Where everybody answers at once, looking it up would take as long as asking them again.
        let is_quick = self.panel.is_quick() && !self.detectors.of(&matter.tenant).may_be_slow();
        // What was refused earlier is no part of the grounds.
        let is_looked_up = !is_quick && matter.refused.is_empty();
        let key = if is_looked_up { grounds.key() } else { None };
        let known = key.as_ref().and_then(|key| self.verdicts.known(key));
        let is_known = known.is_some();
        let judged = async {
            if let Some(ballots) = known {
                return ballots;
            }
            let place = self.resume_work(matter).await;
            let case = Arc::new(self.case(course, candidate).await);
            // Whoever waits for a verifier elsewhere computes nothing.
            let _place = place.filter(|_| self.panel.is_quick());
            let budget = self.settings.panel_deadline.min(course.time_left());
            let ballots = self.panel.judge(case, budget, matter.is_established).await;
            if let Some(key) = key {
                self.verdicts.keep(key, &ballots);
            }
            ballots
        };
        let report = |ballots: &Vec<Ballot>| spans::about_panel(ballots, is_known);
        trace::span("panel", SpanKind::Internal, judged, report).await
    }

    /// What the panel says of words that a recipe would say to a person, in the light of what the person
    /// wrote.
    ///
    /// # Errors
    /// When what the person wrote could not be read: nobody can judge an answer to it.
    pub async fn judge_words<C: ?Sized>(
        &self,
        matter: &Matter<C>,
        conversation: Arc<[Message]>,
        candidate: Candidate,
        crisis: bool,
    ) -> Result<PanelRun, GuardError> {
        let last = conversation.last().map(|one| one.content.as_text().into_owned());
        let last = last.unwrap_or_default();
        let input = read_words(self, matter, last, Phase::Before).await?;
        let material = CaseMaterial {
            conversation,
            candidate,
            context: matter.context.clone(),
            input: Arc::new(input),
            refused: Arc::default(),
            mode: Mode::Normal,
            tools: [].into(),
        };
        let (detector, load) = (self.detectors.of(&matter.tenant), Load::within(matter.is_long));
        let case = self.shares.read(detector, matter.sharer(), load, move |detector| {
            material.read(detector, Patience::Every)
        });
        let case = Arc::new(case.await);
        let ballots = self.panel.judge(case, self.settings.panel_deadline, false).await;
        let consensus = decide(&ballots, self.bars(matter), crisis);
        Ok(PanelRun { ballots, consensus })
    }

    /// The case. Where every tier together would take longer than a panel may, the first alone reads it:
    /// who waits behind others for the second would otherwise not be answered at all.
    async fn case(&self, course: &Course<'_>, candidate: Candidate) -> Case {
        let matter = course.matter;
        let tools = called_tools(&course.turn().body, &candidate);
        let material = Arc::new(CaseMaterial {
            conversation: course.turn().conversation.clone(),
            tools,
            candidate,
            context: matter.context.clone(),
            input: matter.reading.clone(),
            refused: matter.refused.clone(),
            mode: matter.reading.mode,
        });
        let slowly = Arc::clone(&material);
        let detector = self.detectors.of(&matter.tenant);
        let load = Load::within(matter.is_long);
        let read = self.shares.read(detector, matter.sharer(), load, move |detector| {
            slowly.read(detector, Patience::Every)
        });
        match timeout(self.settings.panel_deadline.min(course.time_left()), read).await {
            Ok(case) => case,
            Err(_late) => material.read(detector, Patience::Little),
        }
    }

    /// What the person gets of a deliberation: the reply that passed, or words of our own.
    async fn close(&self, course: &Course<'_>, done: Deliberated) -> Choice {
        let (outcome, delivered) = match (done.passed(), done.verdict) {
            (Some(candidate), _) => (Outcome::Delivered, candidate.into()),
            (None, Verdict::Withhold(withheld)) => self.withheld(course.matter, withheld).await,
            // A verdict that names no candidate delivers nothing.
            (None, Verdict::Deliver { .. }) => {
                self.withheld(course.matter, conclave_core::Withheld::GuardUnavailable).await
            }
        };
        Choice {
            outcome,
            verdict: Some(done.verdict),
            attempts: done.attempts,
            delivered,
            model_time: done.model_time,
            released: String::new(),
            windows: Vec::new(),
            has_care: false,
            upstream: done.upstream,
        }
    }
}
