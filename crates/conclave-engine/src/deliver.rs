//! The main use-case: one turn from the request to a recorded, verified reply.
//!
//! **Invariant:** no reply leaves before its decision is durable, unless no disk takes it and the
//! operator has said that replies then leave unrecorded; such a reply has no leaf hash.
//! **Invariant:** a person always gets an answer; unverified text is never it.

use crate::decision::{Choice, Decision, Delivered};
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::off_thread;
use crate::permission::Interface;
use crate::preflight::{self, Examination, Input, Stop, is_crisis};
use crate::release::Progress;
use crate::spans;
use crate::spend::{self, InForce, Spending};
use crate::turn::Turn;
use crate::turn::seed_of;
use crate::unread::{Patience, Unread};
use crate::verdicts::Grounds;
use conclave_core::{
    Action, AuditId, Ballot, Candidate, Deliberation, FinishReason, GenerationFailure, Limits,
    MicroUsd, Outcome, Reason, Step, Usage, Verdict, Withheld,
};
use conclave_detect::{Course as Standing, Reading};
use conclave_failpoint as failpoint;
use conclave_govern::TenantPolicy;
use conclave_money::Unpaid;
use conclave_ports::trace::{self, SpanKind, SpanReport};
use conclave_ports::{AppendError, Model, ModelError, ModelRequest, OfferedModel};
use conclave_verifiers::Case;
use conclave_voice::{FieldState, Situation, Speech};
use futures_util::future::{BoxFuture, join_all};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout, timeout_at};

/// A decided turn: what to tell the client, and the promise to note what became of it.
pub struct Reply {
    /// Everything that was judged.
    pub decision: Arc<Decision>,
    /// The RFC 6962 hash of the decision's leaf; none if the decision could not be recorded.
    pub leaf_hash: Option<[u8; 32]>,
    /// To be told how much of the reply left.
    pub delivery: Delivery,
    /// The review it waits in, where it waits for a person.
    pub review_id: Option<String>,
}

/// Why a turn could not be decided at all.
#[derive(Debug, Error)]
pub enum DeliverError {
    /// Nobody offers this model.
    #[error("the model `{0}` does not exist here")]
    UnknownModel(String),
    /// The tenant's policy does not permit it.
    #[error("{0}")]
    Forbidden(String),
    /// A limit on money forbids it.
    #[error(transparent)]
    Unpaid(#[from] Unpaid),
    /// The decision could not be made durable, so nothing may leave.
    #[error(transparent)]
    AuditUnavailable(#[from] AppendError),
}

impl DeliverError {
    /// Its kind, as a name.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::UnknownModel(_) => "unknown_model",
            Self::Forbidden(_) => "forbidden",
            Self::Unpaid(_) => "unpaid",
            Self::AuditUnavailable(_) => "audit_unavailable",
        }
    }
}

/// Time kept back for the panel's last word and for recording it.
const RECORDING_RESERVE: Duration = Duration::from_millis(200);

/// What every deliberation of a turn shares.
pub(crate) struct Course<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) examined: &'a Examination,
    pub(crate) model: &'a dyn Model,
    field: Arc<FieldState>,
    pub(crate) limits: Limits,
    pub(crate) deadline: Instant,
    seed: u64,
    policy_version: u64,
}

impl Engine {
    /// Takes one turn through preflight, deliberation and postflight, and records it.
    ///
    /// # Errors
    /// When the model is unknown or the decision cannot be recorded.
    pub async fn deliver(&self, turn: Turn) -> Result<Reply, DeliverError> {
        self.answer(turn, None).await
    }

    /// The same, and lets parts of the reply leave as soon as the panel has passed them and that is
    /// durable, where the policy and the turn permit it.
    ///
    /// # Errors
    /// When the model is unknown or the decision cannot be recorded.
    pub async fn stream(
        &self,
        turn: Turn,
        released: UnboundedSender<Progress>,
    ) -> Result<Reply, DeliverError> {
        self.answer(turn, Some(released)).await
    }

    async fn answer(
        &self,
        mut turn: Turn,
        released: Option<UnboundedSender<Progress>>,
    ) -> Result<Reply, DeliverError> {
        let in_force = self.in_force(&turn.tenant);
        self.permit(&turn, &in_force.policy)?;
        let offered = self
            .models
            .find(&turn.model)
            .ok_or_else(|| DeliverError::UnknownModel(turn.model.clone()))?;
        self.admit(&turn)?;
        failpoint::reach("turn.accepted");
        let started = Instant::now();
        let id = self.new_audit_id(self.clock.now_ms());
        let preflight = async {
            let mut examined = self.examine(&turn, id, &in_force.policy).await?;
            self.guard_permission(&turn, &in_force.policy, &mut examined).await;
            self.guard_input(&turn, &mut examined).await;
            Ok::<_, DeliverError>(examined)
        };
        let told = |_: &_| SpanReport::default();
        let examined = trace::span("preflight", SpanKind::Internal, preflight, told).await;
        let mut examined = examined?;
        let crisis = is_crisis(examined.input.crisis);
        let (spending, stop) = match examined.stop {
            Some(stop) => (Spending::unlimited(offered), Some(stop)),
            None => match self.pay(&mut turn, &examined, &in_force, offered.clone()).await {
                Ok(spending) => (spending, None),
                // Contact is never a question of money: the system itself answers.
                Err(_) if crisis => (Spending::unlimited(offered), Some(Stop::CrisisWithMeans)),
                Err(unpaid) => return Err(unpaid.into()),
            },
        };
        let paid = (&spending, &in_force);
        if let Some(stop) = stop {
            let choice = self.stopped(&turn, &examined, stop);
            return self.conclude(&turn, examined, vec![choice], None, paid, started).await;
        }
        let field = self.sense(&turn, &examined);
        let (model, rules) =
            (&*spending.offered.model, (self.settings.attempts_max, in_force.version));
        let course = self.course(&turn, &examined, model, &field, rules, started);
        let released = released.filter(|_| self.may_release(&turn, &examined));
        let choices = match released {
            Some(released) => vec![self.deliberate_in_windows(&course, released).await],
            None => {
                let wanted = (0..turn.choices.max(1)).map(|index| self.deliberate(&course, index));
                join_all(wanted).await
            }
        };
        let choices = self.guard_replies(&turn, &mut examined, choices).await;
        self.conclude(&turn, examined, choices, Some(field), paid, started).await
    }

    /// Judges a reply that was made elsewhere: one attempt, nothing is asked of a model.
    ///
    /// # Errors
    /// When the decision cannot be recorded.
    pub async fn verify(&self, turn: Turn, reply: Candidate) -> Result<Reply, DeliverError> {
        let in_force = self.in_force(&turn.tenant);
        self.admit(&turn)?;
        let started = Instant::now();
        let id = self.new_audit_id(self.clock.now_ms());
        let mut examined = self.examine(&turn, id, &in_force.policy).await?;
        examined.interface = Interface::Verify;
        // Whatever else the input asks for, the reply is judged; but not what belongs to a community.
        let asked_for = examined.stop.take();
        self.guard_input(&turn, &mut examined).await;
        let field = self.sense(&turn, &examined);
        let given = OfferedModel {
            model: Arc::new(Given(reply.clone())),
            provider: "external".into(),
            input_price: MicroUsd(0),
            output_price: MicroUsd(0),
        };
        let spending = match examined.stop {
            Some(_) => Spending::unlimited(given.clone()),
            None => {
                let made = (given.clone(), &reply);
                self.pay_for_judging(&turn, &examined, &in_force, made).await?
            }
        };
        let paid = (&spending, &in_force);
        if let Some(stop) = examined.stop {
            let choice = self.stopped(&turn, &examined, stop);
            return self.conclude(&turn, examined, vec![choice], Some(field), paid, started).await;
        }
        examined.stop = asked_for;
        let rules = (1, in_force.version);
        let course = self.course(&turn, &examined, &*given.model, &field, rules, started);
        let choices = vec![self.deliberate(&course, 0).await];
        let choices = self.guard_replies(&turn, &mut examined, choices).await;
        self.conclude(&turn, examined, choices, Some(field), paid, started).await
    }

    pub(crate) async fn examine(
        &self,
        turn: &Turn,
        id: AuditId,
        policy: &TenantPolicy,
    ) -> Result<Examination, DeliverError> {
        let named = self.subjects.name(&turn.tenant, turn.user.as_ref(), &turn.session).await;
        // Whoever cannot be named cannot be recorded either.
        let who = named.map_err(|error| AppendError::Unwritable(error.to_string()))?;
        let mut remembered = self.memory.recall(&who).await;
        let before = remembered.course.as_ref().map(Standing::state).unwrap_or_default();
        let input = Input::of(turn, remembered.trend.messages);
        let at = (self.clock.now_ms(), id);
        let (skipped, is_new) = (input.skipped, input.is_new);
        let mut heard =
            off_thread::reading(&self.detector, move |detector| input.read(detector)).await;
        // What is too long ago to be read was said all the same, and is not brought up again.
        remembered.trend.messages = remembered.trend.messages.saturating_add(skipped);
        let last = heard.pop();
        heard.iter().for_each(|message| remembered.observe_earlier(message));
        let input = match last {
            Some(last) => {
                if is_new {
                    remembered.observe(&last, at);
                }
                last.asks()
            }
            None => Reading::empty(turn.context.mode),
        };
        let (instinct, settings) = (&*self.instinct, spend::raised(policy, &self.settings));
        let input = spend::tighten(policy, input);
        let examined = preflight::examine(instinct, &settings, turn, (id, who), input, remembered);
        Ok(Examination { drift_before: before.as_str(), ..examined })
    }

    fn sense(&self, turn: &Turn, examined: &Examination) -> Arc<FieldState> {
        Arc::new(self.field.sense(&turn.conversation, examined.input.crisis, seed_of(turn)))
    }

    fn course<'a>(
        &self,
        turn: &'a Turn,
        examined: &'a Examination,
        model: &'a dyn Model,
        field: &Arc<FieldState>,
        (attempts_max, policy_version): (u8, u64),
        started: Instant,
    ) -> Course<'a> {
        let crisis = is_crisis(examined.input.crisis);
        let whole =
            if crisis { self.settings.crisis_deadline } else { self.settings.turn_deadline };
        Course {
            turn,
            examined,
            model,
            field: field.clone(),
            limits: Limits { attempts_max, bars: self.settings.bars(examined.scrutiny), crisis },
            deadline: started + whole.saturating_sub(RECORDING_RESERVE),
            seed: seed_of(turn),
            policy_version,
        }
    }

    /// The one loop: ask what comes next, do it, tell what happened.
    async fn deliberate(&self, course: &Course<'_>, index: u8) -> Choice {
        let mut deliberation = Deliberation::new(course.limits);
        let mut model_time = Duration::ZERO;
        let verdict = loop {
            if Instant::now() >= course.deadline {
                deliberation.expire();
            }
            match deliberation.next() {
                Step::Generate { attempt, reasons } => {
                    let asked = Instant::now();
                    let candidate = generate(course, index, attempt, reasons).await;
                    model_time += asked.elapsed();
                    failpoint::reach("turn.answered");
                    deliberation.generated(candidate);
                }
                Step::Verify { .. } => {
                    let Some(candidate) = deliberation.last_candidate() else {
                        continue;
                    };
                    let candidate = candidate.clone();
                    deliberation.verified(self.ballots(course, candidate).await);
                }
                Step::Finish(verdict) => break verdict,
            }
        };
        Choice { model_time, ..self.closed(course, deliberation, verdict) }
    }

    /// The panel's ballots on a candidate: cast now, or known from the very same case.
    pub(crate) async fn ballots(&self, course: &Course<'_>, candidate: Candidate) -> Vec<Ballot> {
        let grounds = Grounds {
            tenant: &course.turn.tenant,
            policy: &self.settings.policy,
            policy_version: course.policy_version,
            directives: &self.settings.directives,
            scrutiny: course.examined.scrutiny,
            conversation: &course.turn.conversation,
            context: &course.turn.context,
            input: &course.examined.input,
            candidate: &candidate,
            established: course.examined.established,
        };
        // Where everybody answers at once, looking it up would take as long as asking them again.
        let is_quick = self.panel.is_quick() && !self.detector.may_be_slow();
        let key = if is_quick { None } else { grounds.key() };
        let known = key.as_ref().and_then(|key| self.verdicts.known(key));
        let is_known = known.is_some();
        let judged = async {
            if let Some(ballots) = known {
                return ballots;
            }
            let case = Arc::new(self.case(course, candidate).await);
            let left = course.deadline.saturating_duration_since(Instant::now());
            let (budget, known) =
                (self.settings.panel_deadline.min(left), course.examined.established);
            let ballots = self.panel.judge(case, budget, known).await;
            if let Some(key) = key {
                self.verdicts.keep(key, &ballots);
            }
            ballots
        };
        let told = |ballots: &Vec<Ballot>| spans::about_panel(ballots, is_known);
        trace::span("panel", SpanKind::Internal, judged, told).await
    }

    /// The case. Where every tier together would take longer than a panel may, the first alone reads it:
    /// who waits behind others for the second would otherwise not be answered at all.
    async fn case(&self, course: &Course<'_>, candidate: Candidate) -> Case {
        let (turn, examined) = (course.turn, course.examined);
        let unread = Arc::new(Unread {
            conversation: turn.conversation.clone(),
            candidate,
            context: turn.context.clone(),
            input: examined.input.clone(),
            mode: examined.input.mode,
        });
        let slowly = Arc::clone(&unread);
        let read = off_thread::reading(&self.detector, move |detector| {
            slowly.read(detector, Patience::Every)
        });
        let left = course.deadline.saturating_duration_since(Instant::now());
        match timeout(self.settings.panel_deadline.min(left), read).await {
            Ok(case) => case,
            Err(_late) => unread.read(&self.detector, Patience::Little),
        }
    }

    pub(crate) fn closed(
        &self,
        course: &Course<'_>,
        run: Deliberation,
        verdict: Verdict,
    ) -> Choice {
        let attempts = run.into_attempts();
        let (outcome, delivered) = match verdict {
            Verdict::Deliver { attempt } => {
                let passed = attempts
                    .get(usize::from(attempt))
                    .and_then(|attempt| attempt.candidate.as_ref().ok())
                    .cloned()
                    .unwrap_or_default();
                (Outcome::Delivered, self.passed(course, passed))
            }
            Verdict::Withhold(withheld) => self.withheld(course, withheld),
        };
        let (model_time, windows) = (Duration::ZERO, Vec::new());
        Choice { outcome, verdict: Some(verdict), attempts, delivered, model_time, windows }
    }

    /// A verified reply; to a person in crisis it goes with local resources.
    fn passed(&self, course: &Course<'_>, candidate: Candidate) -> Delivered {
        let text = if course.limits.crisis {
            let context = &course.turn.context;
            let language = language_of(course.turn, course.examined);
            self.resources.append(&candidate.text, context.country.as_deref(), &language)
        } else {
            candidate.text
        };
        Delivered {
            text,
            tool_calls: candidate.tool_calls,
            finish: candidate.finish,
            usage: candidate.usage,
        }
    }

    fn withheld(&self, course: &Course<'_>, withheld: Withheld) -> (Outcome, Delivered) {
        let (turn, examined) = (course.turn, course.examined);
        if course.limits.crisis {
            // `stop`, not `content_filter`: some clients hide filtered text, and this must be read.
            let text = self.message(turn, examined, Situation::SafeCompletion, None);
            return (Outcome::SafeCompletion, own_words(text, FinishReason::Stop));
        }
        let (outcome, situation) = match withheld {
            Withheld::Escalated => (Outcome::Escalated, Situation::EscalationNotice),
            Withheld::Exhausted => (Outcome::Exhausted, Situation::Exhausted),
            Withheld::GuardUnavailable => (Outcome::GuardUnavailable, Situation::GuardUnavailable),
            Withheld::Failed(_) => return (Outcome::Failed, Delivered::default()),
        };
        let text = self.message(turn, examined, situation, None);
        (outcome, own_words(text, FinishReason::ContentFilter))
    }

    pub(crate) fn stopped(&self, turn: &Turn, examined: &Examination, stop: Stop) -> Choice {
        let (outcome, situation, category, finish) = match stop {
            Stop::Harmful { category, .. } => {
                (Outcome::Blocked, Situation::Refusal, category, FinishReason::ContentFilter)
            }
            Stop::CrisisWithMeans => {
                (Outcome::SafeCompletion, Situation::SafeCompletion, None, FinishReason::Stop)
            }
            Stop::Held => (Outcome::Held, Situation::HoldNotice, None, FinishReason::ContentFilter),
            Stop::NoElders => {
                (Outcome::Blocked, Situation::NoElders, None, FinishReason::ContentFilter)
            }
            Stop::Unguarded => (
                Outcome::GuardUnavailable,
                Situation::GuardUnavailable,
                None,
                FinishReason::ContentFilter,
            ),
            Stop::Refused(_) => {
                (Outcome::Blocked, Situation::Refusal, None, FinishReason::ContentFilter)
            }
        };
        let text = match stop {
            Stop::Refused(refusal) => refusal.sentence().to_owned(),
            _ => self.message(turn, examined, situation, category),
        };
        Choice {
            outcome,
            verdict: None,
            attempts: Vec::new(),
            delivered: own_words(text, finish),
            model_time: Duration::ZERO,
            windows: Vec::new(),
        }
    }

    /// The system's own words; about self-harm they always carry local resources.
    pub(crate) fn message(
        &self,
        turn: &Turn,
        examined: &Examination,
        situation: Situation,
        category: Option<conclave_core::Category>,
    ) -> String {
        let language = language_of(turn, examined);
        let country = turn.context.country.as_deref();
        let text = self.voices.say(&Speech {
            situation,
            persona: turn.context.persona,
            language: &language,
            category,
            staffed: self.settings.staffed,
            country,
        });
        let about_self_harm = category == Some(conclave_core::Category::SelfHarm);
        if about_self_harm || is_crisis(examined.input.crisis) {
            self.resources.append(&text, country, &language)
        } else {
            text
        }
    }

    pub(crate) async fn conclude(
        &self,
        turn: &Turn,
        examined: Examination,
        choices: Vec<Choice>,
        field: Option<Arc<FieldState>>,
        (spending, in_force): (&Spending, &InForce),
        started: Instant,
    ) -> Result<Reply, DeliverError> {
        let (hold, drift_before) = (examined.hold.clone(), examined.drift_before);
        let now_ms = self.clock.now_ms();
        let latency = started.elapsed();
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let outcome = overall(&choices);
        let usage = total_usage(&choices);
        let decision = Arc::new(Decision {
            id: examined.id,
            timestamp_ms: now_ms.saturating_sub(latency_ms),
            outcome,
            action: action_of(outcome, &examined, &choices),
            guard_outcomes: examined.outcomes.clone(),
            directive: self.directive_of(&examined, &choices),
            model: turn.model.clone(),
            provider: Arc::clone(&spending.offered.provider),
            scrutiny: examined.scrutiny,
            bars: self.settings.bars(examined.scrutiny),
            guards: self.guards(&in_force.policy, examined.interface),
            interface: examined.interface,
            refusal: match examined.stop {
                Some(Stop::Refused(refusal)) => Some(refusal),
                _ => None,
            },
            key: turn.key.clone(),
            model_time: choices.iter().map(|choice| choice.model_time).max().unwrap_or_default(),
            remembered: examined.remembered,
            input: examined.input,
            field,
            conversation: turn.conversation.clone(),
            cost: spending.cost(turn, &choices),
            choices,
            terms: spending.terms.clone(),
            usage,
            latency,
        });
        failpoint::reach("turn.decided");
        trace::about(|| {
            let offered = self.models.find(&turn.model).map(|_| turn.model.as_str());
            spans::about_decision(&decision, &examined.who, offered)
        });
        let review = self.review_for(turn, &decision, examined.who.subject, hold);
        let recording = self.record(turn, &examined.who, &decision, review.as_ref());
        let told = |done: &Result<_, _>| spans::about_recording(done.is_ok());
        let recorded = trace::span("recording", SpanKind::Internal, recording, told).await;
        failpoint::reach("turn.recorded");
        // Money was spent whether or not it could be recorded.
        self.settle(turn, &examined.who, in_force, spending, decision.cost);
        let (leaf_hash, delivery) = recorded?;
        let review_id = self.call_people(review).await;
        self.tell_of_drift(turn, &decision, drift_before).await;
        Ok(Reply { decision, leaf_hash, delivery, review_id })
    }
}

/// A model that says what it was given.
struct Given(Candidate);

impl Model for Given {
    fn generate(&self, _request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

async fn generate(
    course: &Course<'_>,
    index: u8,
    attempt: u8,
    reasons: Vec<Reason>,
) -> Result<Candidate, GenerationFailure> {
    let asked = course.model.generate(request(course, index, attempt, reasons));
    let answered = in_time(course, asked);
    let told = |answered: &_| spans::about_model((&course.turn.model, attempt), answered);
    trace::span("chat", SpanKind::Client, answered, told).await
}

/// What a model is asked at an attempt.
pub(crate) fn request(
    course: &Course<'_>,
    index: u8,
    attempt: u8,
    reasons: Vec<Reason>,
) -> ModelRequest {
    let shaping = conclave_voice::shape(&course.field, &course.examined.input.language);
    ModelRequest {
        body: course.turn.body.clone(),
        conversation: course.turn.conversation.clone(),
        guidance: Some(shaping.guidance_with(&reasons)),
        temperature: Some(shaping.temperature),
        field: course.field.clone(),
        crisis: course.examined.input.crisis,
        reasons,
        attempt,
        seed: course.seed.wrapping_add(u64::from(index) << 8).wrapping_add(u64::from(attempt)),
        timeout: course.deadline.saturating_duration_since(Instant::now()),
    }
}

/// What a model answers, if it does in time.
pub(crate) async fn in_time(
    course: &Course<'_>,
    asked: BoxFuture<'_, Result<Candidate, ModelError>>,
) -> Result<Candidate, GenerationFailure> {
    match timeout_at(course.deadline, asked).await {
        Ok(Ok(candidate)) => Ok(candidate),
        Ok(Err(error)) => {
            tracing::warn!(model = %course.turn.model, %error, "the model gave no candidate");
            Err(error.failure)
        }
        Err(_elapsed) => Err(GenerationFailure::Timeout),
    }
}

pub(crate) fn own_words(text: String, finish: FinishReason) -> Delivered {
    Delivered { text, finish, ..Delivered::default() }
}

/// The strictest outcome of the choices; a choice the model failed on counts only if all failed.
fn overall(choices: &[Choice]) -> Outcome {
    let answered = choices.iter().map(|choice| choice.outcome).filter(|o| *o != Outcome::Failed);
    answered.max_by_key(|outcome| outcome.severity()).unwrap_or(Outcome::Failed)
}

fn action_of(outcome: Outcome, examined: &Examination, choices: &[Choice]) -> Action {
    let escalated =
        choices.iter().any(|choice| choice.verdict == Some(Verdict::Withhold(Withheld::Escalated)));
    match outcome {
        Outcome::Delivered if examined.input.is_injection() || examined.is_flagged() => {
            Action::Flag
        }
        Outcome::Delivered => Action::Deliver,
        Outcome::Redacted => Action::Redact,
        Outcome::Held => Action::Hold,
        _ if escalated => Action::Escalate,
        Outcome::Exhausted => Action::Regenerate,
        _ => Action::Block,
    }
}

fn total_usage(choices: &[Choice]) -> Usage {
    choices
        .iter()
        .flat_map(|choice| &choice.attempts)
        .filter_map(|attempt| attempt.candidate.as_ref().ok())
        .fold(Usage::default(), |sum, candidate| sum.plus(candidate.usage))
}

/// The language stated by the request, else the one that was read.
fn language_of(turn: &Turn, examined: &Examination) -> String {
    turn.context.language.clone().unwrap_or_else(|| examined.input.language.clone())
}
