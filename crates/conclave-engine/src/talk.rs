//! The use-cases of a conversation: deliver, stream, verify, moderate, embed, and contact with somebody
//! who was refused for another reason than what they say.
//!
//! Each is the same walk: admit, guard, deliberate, guard, conclude. They differ in what is done between
//! the guards.

use crate::conclude::{Choice, DeliverError, Delivered, Reply, Stop};
use crate::deliberate::{Course, Progress};
use crate::engine::Engine;
use crate::matter::history::{HistoryLines, read_history};
use crate::matter::reading::{self, MessagesToRead};
use crate::matter::{
    ConsentQuestion, HistoryReading, Matter, MatterContent, Purpose, Turn, TurnContent, TurnWork,
};
use crate::shares::{self, Load, OverShare, WorkPlace, aside};
use conclave_core::{
    Attempt, Candidate, Disposition, Finding, GenerationFailure, GuardCode, GuardKind, Mode,
    Outcome, Passage, Phase, Scrutiny, Threshold, Usage, Verdict, Withheld,
};
use conclave_detect::{Detector, Reading};
use conclave_failpoint as failpoint;
use conclave_govern::OnDoubt;
use conclave_ports::trace::{self, SpanKind, SpanReport};
use conclave_ports::{
    AppendError, Embedded, Model, ModelError, ModelRequest, OfferedModel, PolicyInForce,
};
use conclave_voice::{FieldState, Language};
use futures_util::future::{BoxFuture, join_all};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};

/// So much of the beginning and of the end of what somebody says is heard where the whole cannot be read.
const HEARD_BYTES: usize = 8 << 10;

/// What texts became, as a client that asked for vectors is told.
pub struct Vectors {
    /// The decision, and the promise to note what became of it.
    pub reply: Reply,
    /// What the model answered.
    pub embedded: Option<Embedded>,
}

impl Engine {
    /// Takes one turn through guards, deliberation and guards, and records it.
    ///
    /// # Errors
    /// When the model is unknown, a limit forbids it, or the decision cannot be recorded.
    pub async fn deliver(&self, turn: Turn) -> Result<Reply, DeliverError> {
        self.answer(turn, None).await
    }

    /// The same, and lets parts of the reply leave as soon as the panel has passed them and that is
    /// durable, where the policy and the turn permit it.
    ///
    /// # Errors
    /// As [`Engine::deliver`].
    pub async fn stream(
        &self,
        turn: Turn,
        released: UnboundedSender<Progress>,
    ) -> Result<Reply, DeliverError> {
        self.answer(turn, Some(released)).await
    }

    async fn answer(
        &self,
        turn: Turn,
        released: Option<UnboundedSender<Progress>>,
    ) -> Result<Reply, DeliverError> {
        let work = TurnWork::Write { attempts_max: self.settings.attempts_max };
        let is_long = shares::is_long(&turn, work);
        aside(is_long, self.answer_turn(turn, released, work)).await
    }

    async fn answer_turn(
        &self,
        turn: Turn,
        released: Option<UnboundedSender<Progress>>,
        work: TurnWork,
    ) -> Result<Reply, DeliverError> {
        let policy = self.policies.in_force(&turn.tenant);
        let offered = self.find_model(&turn, &policy)?;
        self.check_ledger(&turn)?;
        let place = match self.begin_work(&turn, work).await {
            Ok(place) => place,
            Err(refusal) => return self.contact_in_short(turn, refusal).await,
        };
        failpoint::reach("turn.accepted");
        let attempts_max = self.settings.attempts_max;
        let preflight = async {
            // Boxed, because it is handed on from here through everything that waits.
            let mut matter = Box::new(self.admit(turn, Purpose::Chat, work, policy).await?);
            self.guard(&mut *matter, Phase::Before).await;
            Ok::<_, DeliverError>(matter)
        };
        let report = |_: &_| SpanReport::default();
        let mut matter = trace::span("preflight", SpanKind::Internal, preflight, report).await?;
        if matter.passage() != Passage::Open {
            return self.conclude_stopped(&mut matter, offered.provider).await;
        }
        drop(place);
        let offered = match &matter.payment.downgraded_to {
            Some(model) => self.models.find(model).unwrap_or(offered),
            None => offered,
        };
        let field = self.sense(&matter);
        let attempts_max = matter.payment.attempts.unwrap_or(attempts_max);
        let course = Course::new(self, &matter, &*offered.model, field.clone(), attempts_max);
        let released = released.filter(|_| self.may_release(&matter));
        let choices = match released {
            Some(released) => {
                vec![Box::pin(self.deliberate_in_windows(&course, released)).await]
            }
            None => {
                let wanted = 0..matter.content.turn.choices.max(1);
                join_all(wanted.map(|index| self.deliberate(&course, index))).await
            }
        };
        matter.content.choices = choices;
        let _place = self.resume_work(&matter).await;
        self.guard_replies(&mut matter).await;
        self.conclude(&matter, offered.provider, Some(field)).await
    }

    /// Judges a reply that was made elsewhere: one attempt, nothing is asked of a model. Whatever else the
    /// input asks for, the reply is judged; but not what belongs to a community.
    ///
    /// # Errors
    /// When a limit forbids it or the decision cannot be recorded.
    pub async fn verify(&self, turn: Turn, reply: Candidate) -> Result<Reply, DeliverError> {
        let calls = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let reply_bytes = reply.text.len() + calls.sum::<usize>();
        let work = TurnWork::Judge { reply_bytes };
        aside(shares::is_long(&turn, work), self.verify_turn(turn, reply, work)).await
    }

    async fn verify_turn(
        &self,
        turn: Turn,
        reply: Candidate,
        work: TurnWork,
    ) -> Result<Reply, DeliverError> {
        let policy = self.policies.in_force(&turn.tenant);
        self.check_ledger(&turn)?;
        let place = self.begin_work(&turn, work).await?;
        let mut matter = self.admit(turn, Purpose::Verify, work, policy).await?;
        let provider: Arc<str> = "external".into();
        if self.guard(&mut matter, Phase::Before).await != Passage::Open {
            return self.conclude_stopped(&mut matter, provider).await;
        }
        drop(place);
        let field = self.sense(&matter);
        let given = GivenReply(reply);
        let course = Course::new(self, &matter, &given, field.clone(), 1);
        matter.content.choices = vec![self.deliberate(&course, 0).await];
        let _place = self.resume_work(&matter).await;
        self.guard_replies(&mut matter).await;
        self.conclude(&matter, provider, Some(field)).await
    }

    /// Reads the person's last words and records what they were read as; no model is asked.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn moderate(&self, turn: Turn) -> Result<Reply, DeliverError> {
        aside(shares::is_long(&turn, TurnWork::Read), self.moderate_turn(turn)).await
    }

    async fn moderate_turn(&self, turn: Turn) -> Result<Reply, DeliverError> {
        let policy = self.policies.in_force(&turn.tenant);
        self.check_ledger(&turn)?;
        let _place = self.begin_work(&turn, TurnWork::Read).await?;
        let mut matter = self.admit(turn, Purpose::Moderations, TurnWork::Read, policy).await?;
        let outcome = match self.guard(&mut matter, Phase::Before).await {
            Passage::Open => Outcome::Delivered,
            Passage::Held | Passage::Closed => Outcome::Blocked,
        };
        matter.content.choices = vec![Choice::undeliberated(outcome, Delivered::default())];
        self.conclude(&matter, "conclave".into(), None).await
    }

    /// Has a model turn texts into vectors; the texts are the turn's conversation, and its body is the
    /// request. What they say is not judged.
    ///
    /// # Errors
    /// When no model does that here, a limit forbids it, or it cannot be recorded.
    pub async fn embed(&self, turn: Turn) -> Result<Vectors, DeliverError> {
        let policy = self.policies.in_force(&turn.tenant);
        let offered = self.find_model(&turn, &policy)?;
        self.check_ledger(&turn)?;
        let mut matter = self.admit(turn, Purpose::Embeddings, TurnWork::Embed, policy).await?;
        if self.guard(&mut matter, Phase::Before).await != Passage::Open {
            matter.hold = None;
            let reply = self.conclude_stopped(&mut matter, offered.provider).await?;
            return Ok(Vectors { reply, embedded: None });
        }
        let asked = Instant::now();
        let whole = self.settings.turn_deadline;
        let answering = offered.model.embed(matter.content.turn.body.clone(), whole);
        let mut upstream = None;
        let answered = match timeout(whole, answering).await {
            Ok(Some(Ok(embedded))) => Ok(embedded),
            Ok(Some(Err(error))) => {
                let model = &matter.content.turn.model;
                tracing::warn!(%model, %error, "the model gave no vectors");
                upstream = error.upstream.map(|stated| *stated);
                Err(error.failure)
            }
            Ok(None) => {
                // Nothing was asked of anybody: what was reserved is given back.
                self.settle(&matter, conclave_core::MicroUsd(0));
                return Err(DeliverError::UnknownModel(matter.content.turn.model));
            }
            Err(_late) => Err(GenerationFailure::Timeout),
        };
        let choice = vector_choice(&answered, asked.elapsed());
        matter.content.choices = vec![Choice { upstream, ..choice }];
        let reply = self.conclude(&matter, offered.provider, None).await?;
        Ok(Vectors { reply, embedded: answered.ok() })
    }

    /// Our own words with places to find help, recorded like any decision, if the person seems to be in
    /// crisis; `None` if not. No model is asked, and of somebody who is not in crisis nothing is kept.
    ///
    /// # Errors
    /// When the model is unknown or the decision cannot be recorded.
    pub async fn contact(&self, turn: Turn) -> Result<Option<Reply>, DeliverError> {
        let policy = self.policies.in_force(&turn.tenant);
        let offered = self.find_model(&turn, &policy)?;
        let messages = MessagesToRead::since(&turn, 0);
        let read = move |detector: &Detector| messages.read(detector);
        let is_long = shares::is_long(&turn, TurnWork::Read);
        let load = if is_long { Load::Long } else { Load::Short };
        let detector = self.detectors.of(&turn.tenant);
        let heard = self.shares.read(detector, turn.sharer(), load, read).await;
        if !heard.last().is_some_and(|last| last.reading.crisis.is_crisis()) {
            return Ok(None);
        }
        self.check_ledger(&turn)?;
        let mut matter = self.admit(turn, Purpose::Chat, TurnWork::Read, policy).await?;
        let choice = self.stopped_choice(&matter, Stop::OwnAnswer);
        matter.content.choices = vec![choice];
        self.conclude(&matter, offered.provider, None).await.map(Some)
    }

    /// What somebody gets whose long text could not be read in time: help, where its beginning or its end says
    /// that they need it.
    async fn contact_in_short(
        &self,
        turn: Turn,
        refusal: OverShare,
    ) -> Result<Reply, DeliverError> {
        match self.contact(turn.in_short(HEARD_BYTES)).await? {
            Some(reply) => Ok(reply),
            None => Err(refusal.into()),
        }
    }

    /// A place for a long turn to begin in; none where it is short.
    async fn begin_work(
        &self,
        turn: &Turn,
        work: TurnWork,
    ) -> Result<Option<WorkPlace>, OverShare> {
        if !shares::is_long(turn, work) {
            return Ok(None);
        }
        self.shares.begin(&turn.sharer()).await.map(Some)
    }

    /// A place for a long matter to go on in; none where it is short.
    pub(crate) async fn resume_work<C: ?Sized>(&self, matter: &Matter<C>) -> Option<WorkPlace> {
        if !matter.is_long {
            return None;
        }
        Some(self.shares.resume(&matter.sharer()).await)
    }

    /// Refuses a mode or a model that the tenant's policy does not permit, before anything is read.
    fn find_model(
        &self,
        turn: &Turn,
        policy: &PolicyInForce,
    ) -> Result<OfferedModel, DeliverError> {
        let policy = &policy.policy;
        let mode = turn.context.mode;
        if policy.modes.as_ref().is_some_and(|modes| !modes.contains(&mode)) {
            let why = format!("this tenant's policy does not allow the mode `{}`", mode.as_str());
            return Err(DeliverError::Forbidden(why));
        }
        if policy.blocked_models.contains(&turn.model) {
            let why = format!("this tenant's policy blocks the model `{}`", turn.model);
            return Err(DeliverError::Forbidden(why));
        }
        let offered = self.models.find(&turn.model).filter(|_| policy.permits(&turn.model));
        offered.ok_or_else(|| DeliverError::UnknownModel(turn.model.clone()))
    }

    /// Admits a turn: names who speaks, recalls what was before, reads what is new, and sets how strictly
    /// it is treated.
    async fn admit(
        &self,
        turn: Turn,
        purpose: Purpose,
        work: TurnWork,
        policy: PolicyInForce,
    ) -> Result<Matter<TurnContent>, DeliverError> {
        let started = Instant::now();
        let is_long = shares::is_long(&turn, work);
        let id = self.new_audit_id(self.clock.now_ms());
        let named = self.subjects.name(&turn.tenant, turn.user.as_ref(), &turn.session).await;
        // Whoever cannot be named cannot be recorded either.
        let who = named.map_err(|error| AppendError::Unwritable(error.to_string()))?;
        let mut remembered = self.memory.recall(&who).await;
        let drift_before =
            remembered.course.as_ref().map(conclave_detect::Course::state).unwrap_or_default();
        let reading = match purpose {
            // Nothing of what becomes a vector is judged.
            Purpose::Embeddings => Reading::empty(turn.context.mode),
            _ => {
                remembered.keep_own_doubts(&turn.conversation);
                // A line past the floor is none: the default, which is stricter, then holds.
                let threshold = policy.policy.harm_threshold.map(Threshold::new);
                let threshold = threshold.and_then(Result::ok);
                self.read_turn(&turn, id, threshold, &mut remembered).await
            }
        };
        let mut content = TurnContent::new(turn, work);
        let history = match purpose {
            Purpose::Chat => self.read_history(&content, &policy, &reading, &remembered).await,
            _ => ReadHistory::default(),
        };
        content.replace(Phase::Before, history.shown.replacements);
        let turn = &content.turn;
        let raised_by_history =
            if history.findings.is_empty() { Scrutiny::Normal } else { Scrutiny::Raised };
        let scrutiny = reading::scrutiny(&turn.context, &reading, &remembered)
            .max(raised_by_history)
            .max(self.settings.scrutiny_min)
            .max(policy.policy.scrutiny_min.unwrap_or_default());
        let asks_model = matches!(purpose, Purpose::Chat | Purpose::Embeddings);
        let mut matter = Matter {
            id,
            tenant: turn.tenant.clone(),
            key: turn.key.clone(),
            who,
            context: turn.context.clone(),
            rules: Vec::new(),
            consent: consent_question(turn, &purpose, &policy),
            regions: policy.policy.regions.clone(),
            approval: None,
            model: asks_model.then(|| turn.model.clone()),
            fallback: None,
            is_judged_elsewhere: purpose == Purpose::Chat,
            reading: Arc::new(reading),
            is_established: scrutiny == Scrutiny::Normal && remembered.is_established(),
            remembered,
            drift_before,
            scrutiny,
            refused: history.shown.refused,
            findings: history.findings,
            looked: Vec::new(),
            hold: None,
            tokens: conclave_pii::Tokens::default(),
            consented: Vec::new(),
            payment: crate::guards::Payment::default(),
            is_long,
            started,
            purpose,
            policy,
            content,
        };
        matter.payment = self.unreserved_payment(&matter);
        Ok(matter)
    }

    /// Reads what the person said since we last heard them, and takes it into what is remembered.
    async fn read_turn(
        &self,
        turn: &Turn,
        id: conclave_core::AuditId,
        threshold: Option<Threshold>,
        remembered: &mut crate::Remembered,
    ) -> Reading {
        let messages = MessagesToRead::since(turn, remembered.trend.messages);
        let skipped = messages.skipped;
        let is_new = messages.is_new;
        let read = move |detector: &Detector| messages.read(detector);
        let load = Load::within(shares::is_long(turn, TurnWork::Read));
        let detector = self.detectors.of(&turn.tenant);
        let mut heard = self.shares.read(detector, turn.sharer(), load, read).await;
        if let Some(own) = threshold {
            heard.iter_mut().for_each(|message| message.lower_threshold(own));
        }
        // What is too long ago to be read was said all the same, and is not brought up again.
        remembered.trend.messages = remembered.trend.messages.saturating_add(skipped);
        let last = heard.pop();
        heard.iter().for_each(|message| remembered.observe_earlier(message));
        let Some(last) = last else { return Reading::empty(effective_mode(turn)) };
        if is_new {
            remembered.observe(&last, self.clock.now_ms(), id);
        }
        last.asks()
    }

    /// Reads what a model would be shown besides what is asked now.
    async fn read_history(
        &self,
        content: &TurnContent,
        policy: &PolicyInForce,
        reading: &Reading,
        remembered: &crate::Remembered,
    ) -> ReadHistory {
        let texts = content.history();
        if texts.iter().all(Option::is_none) {
            return ReadHistory::default();
        }
        let turn = &content.turn;
        let tenant = turn.tenant.clone();
        let policy = &policy.policy;
        let on_doubt = policy.on_doubt.max(Some(self.settings.on_doubt));
        let stated = turn.context.language.as_deref();
        let lines = HistoryLines {
            mode: reading.mode,
            threshold: policy.harm_threshold.map(Threshold::new).and_then(Result::ok),
            refuses_doubts: reading.mode == Mode::ChildSafe
                || on_doubt == Some(OnDoubt::Block)
                || remembered.trend.refuses_doubts(),
            refuses_injection: self.settings.block_injection || policy.block_injection,
            floor_alone: false,
            language: Language::of_tag(stated.unwrap_or(&reading.language)),
        };
        let guard = self.guards.iter().find(|one| one.guard.kind() == GuardKind::Interpretation);
        let monitor =
            guard.is_none_or(|entry| entry.monitor) || policy.monitors(GuardKind::Interpretation);
        let known = self.readings.clone();
        let read = move |detector: &Detector| {
            let read = |lines: &_| read_history(detector, &known, &tenant, &texts, lines);
            let found = read(&lines);
            let shown = if monitor {
                read(&HistoryLines { floor_alone: true, ..lines })
            } else {
                found.clone()
            };
            (found, shown)
        };
        let (detector, sharer) = (self.detectors.of(&turn.tenant), turn.sharer());
        let load = Load::within(shares::is_long(turn, TurnWork::Read));
        let (found, shown) = self.shares.read(detector, sharer, load, read).await;
        let finding =
            (!found.is_clean()).then(|| history_finding(&found, monitor && shown.is_clean()));
        ReadHistory { shown, findings: finding.into_iter().collect() }
    }

    fn sense(&self, matter: &Matter<TurnContent>) -> Arc<FieldState> {
        let turn = &matter.content.turn;
        Arc::new(self.field.sense(&turn.conversation, matter.crisis(), turn.seed()))
    }

    /// Concludes a matter that guards do not let pass. Where only money stands in the way it is no
    /// judgement of anybody's words, and the client is told to ask again.
    async fn conclude_stopped(
        &self,
        matter: &mut Matter<TurnContent>,
        provider: Arc<str>,
    ) -> Result<Reply, DeliverError> {
        let stop = self.stop(matter).await;
        if stop != Stop::OwnAnswer
            && let Some(refusal) = matter.payment.refusal.take()
        {
            let stated = matter.context.language.as_deref();
            let language = Language::of_tag(stated.unwrap_or(&matter.reading.language));
            return Err(DeliverError::Unpaid(refusal, language));
        }
        matter.content.choices = vec![self.stopped_choice(matter, stop)];
        self.conclude(matter, provider, None).await
    }
}

/// What a model is shown of a history, and what was found in it.
#[derive(Default)]
struct ReadHistory {
    shown: HistoryReading,
    findings: Vec<Finding>,
}

fn history_finding(found: &HistoryReading, monitor: bool) -> Finding {
    let why = match (found.refused.len(), found.has_orders) {
        (0, _) => "What a tool or a file brought gives orders to the model; it was marked as data.",
        (_, false) => {
            "Something said earlier is over its line or was not read in time; the model is not shown it."
        }
        (_, true) => {
            "Something said earlier is over its line, and what a tool or a file brought gives orders."
        }
    };
    let (kind, phase) = (GuardKind::Interpretation, Phase::Before);
    let code = GuardCode::History;
    let finding = Finding::new(kind, phase, Disposition::Flagged, code, why.to_owned());
    Finding { monitor, ..finding }
}

/// A minor is always read in child-safe mode.
fn effective_mode(turn: &Turn) -> Mode {
    if turn.context.minor { Mode::ChildSafe } else { turn.context.mode }
}

fn consent_question(turn: &Turn, purpose: &Purpose, policy: &PolicyInForce) -> ConsentQuestion {
    let asks = matches!(purpose, Purpose::Chat | Purpose::Embeddings);
    ConsentQuestion {
        is_required: asks && policy.policy.requires_consent(purpose.as_str()),
        subjects: turn.user.iter().map(|user| user.as_str().to_owned()).collect(),
        scopes: vec![purpose.as_str().to_owned()],
        purpose: purpose.consent_purpose().to_owned(),
        ..ConsentQuestion::default()
    }
}

fn vector_choice(answered: &Result<Embedded, GenerationFailure>, model_time: Duration) -> Choice {
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
    let attempts = vec![Attempt { candidate, panels: Vec::new() }];
    let choice = Choice::undeliberated(outcome, Delivered::default());
    Choice { verdict, attempts, model_time, ..choice }
}

/// A model that says what it was given.
struct GivenReply(Candidate);

impl Model for GivenReply {
    fn generate(&self, _request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}
