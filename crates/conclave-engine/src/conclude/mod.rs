//! The conclusion: from one decided matter come the ledger entry, the usage and the correction in it, the
//! money settled, the review that people are asked for, the webhooks that are told, and what the caller
//! gets.
//!
//! **Invariant:** no reply leaves before its decision is durable, unless no disk takes it and the
//! operator has said that replies then leave unrecorded; such a reply has no leaf hash.
//! **Invariant:** a person always gets an answer; unverified text is never it. Crisis is one rule, in
//! [`Engine::stop`]: whatever stopped the matter, a person in crisis gets an answer of our own.

mod basis;
mod decision;
mod delivery;
pub(crate) mod entry;
pub(crate) mod spans;

pub use decision::{Choice, Decision, Delivered, Terms, Window};
pub use delivery::Delivery;
pub use entry::{DecisionWords, bars as bars_value, guard_rows, panel as panel_value, statements};
pub use spans::about_model;

use crate::deliberate::joined;
use crate::engine::Engine;
use crate::matter::{Matter, Purpose, TurnContent};
use crate::shares::OverShare;
use conclave_core::{
    Action, Category, Disposition, FinishReason, GuardCode, MicroUsd, Mode, Outcome, Passage,
    Phase, Role, Sensitivity, Usage, Verdict, Withheld,
};
use conclave_failpoint as failpoint;
use conclave_govern::{AuditFailure, CareOffer, NewReview, ReviewKind, ReviewPriority};
use conclave_ledger::{Draft, Kind, Value};
use conclave_money::BudgetRefusal;
use conclave_ports::trace::{self, SpanKind};
use conclave_ports::{Announcement, AppendError, EventKind, REVIEW_WORDS, WHY_PATH};
use conclave_voice::{FieldState, Language, Situation, Speech, guard_sentence};
use serde_json::json;
use std::sync::Arc;
use thiserror::Error;

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
    /// Where the person may ask why, where their tenant wants them to.
    pub why_url: Option<String>,
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
    /// Its caller asks for more at once than its share.
    #[error(transparent)]
    OverShare(#[from] OverShare),
    /// A limit on money forbids it, and the person's language is this.
    #[error("{0}")]
    Unpaid(BudgetRefusal, Language),
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
            Self::OverShare(_) => "over_share",
            Self::Unpaid(..) => "unpaid",
            Self::AuditUnavailable(_) => "audit_unavailable",
        }
    }
}

/// Why a matter goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The system itself answers a person in crisis.
    OwnAnswer,
    /// A guard refuses it.
    Refused(GuardCode),
    /// It waits for a person.
    Held,
    /// It belongs to a community, and nobody here can decide for it.
    NoElders,
    /// A guard could not be asked, and nobody here can decide instead.
    GuardUnavailable,
}

/// What is written down of a decided matter.
pub struct DecisionEntry<'a> {
    /// What stands in the leaf.
    pub public: Vec<(&'static str, Value)>,
    /// The words beside it.
    pub words: DecisionWords<'a>,
    /// The review that people are asked for.
    pub review: Option<NewReview>,
    /// What the matter cost.
    pub cost: MicroUsd,
}

/// A decision that was written down.
pub struct RecordedDecision {
    /// The hash of its leaf; none if no disk took it and it may leave all the same.
    pub leaf_hash: Option<[u8; 32]>,
    /// To be told how much of the reply left.
    pub delivery: Delivery,
    /// The review that was opened.
    pub review_id: Option<String>,
}

impl Engine {
    /// What follows for a matter that guards do not let pass.
    pub async fn stop(&self, matter: &Matter) -> Stop {
        let talks = matches!(matter.purpose, Purpose::Chat | Purpose::Verify);
        if talks && matter.crisis().is_crisis() {
            return Stop::OwnAnswer;
        }
        let gravest = matter.gravest();
        let code = gravest.and_then(|finding| finding.code).unwrap_or(GuardCode::GuardFailed);
        if matter.passage() == Passage::Closed {
            return Stop::Refused(code);
        }
        // Vectors are kept for nobody: there is nothing that a decision could release later.
        if matter.purpose != Purpose::Embeddings && self.is_decidable(matter).await {
            return Stop::Held;
        }
        match code {
            GuardCode::Cultural | GuardCode::Sacred if self.governance.is_some() => Stop::NoElders,
            // What nobody can decide is refused, not held for ever.
            GuardCode::JurisdictionUnknown => Stop::Refused(GuardCode::Jurisdiction),
            _ => Stop::GuardUnavailable,
        }
    }

    /// What the person gets where a matter was stopped.
    pub(crate) fn stopped_choice(&self, matter: &Matter<TurnContent>, stop: Stop) -> Choice {
        let filtered = FinishReason::ContentFilter;
        let (outcome, text, finish) = match stop {
            // `stop`, not `content_filter`: some clients hide filtered text, and this must be read.
            Stop::OwnAnswer => (
                Outcome::SafeCompletion,
                self.say(matter, Situation::SafeCompletion, None),
                FinishReason::Stop,
            ),
            Stop::Refused(code) => (Outcome::Blocked, self.say_refusal(matter, code), filtered),
            Stop::Held => {
                (Outcome::Held, self.say_waiting(matter, Situation::HoldNotice), filtered)
            }
            Stop::NoElders => {
                (Outcome::Blocked, self.say(matter, Situation::NoElders, None), filtered)
            }
            Stop::GuardUnavailable => (
                Outcome::GuardUnavailable,
                self.say(matter, Situation::GuardUnavailable, None),
                filtered,
            ),
        };
        Choice::undeliberated(outcome, own_words(text, finish))
    }

    /// What the person gets where no reply was good enough.
    pub(crate) async fn withheld(
        &self,
        matter: &Matter<TurnContent>,
        withheld: Withheld,
    ) -> (Outcome, Delivered) {
        if matter.crisis().is_crisis() {
            let text = self.say(matter, Situation::SafeCompletion, None);
            return (Outcome::SafeCompletion, own_words(text, FinishReason::Stop));
        }
        let (outcome, text) = match withheld {
            Withheld::Escalated if self.is_on_duty(&matter.tenant).await => {
                (Outcome::Escalated, self.say_waiting(matter, Situation::EscalationNotice))
            }
            Withheld::Escalated => {
                (Outcome::Escalated, self.say(matter, Situation::EscalationNotice, None))
            }
            Withheld::Exhausted => {
                (Outcome::Exhausted, self.say(matter, Situation::Exhausted, None))
            }
            Withheld::GuardUnavailable => {
                (Outcome::GuardUnavailable, self.say(matter, Situation::GuardUnavailable, None))
            }
            Withheld::Failed(_) => return (Outcome::Failed, Delivered::default()),
        };
        (outcome, own_words(text, FinishReason::ContentFilter))
    }

    /// The system's own words, in the person's language. The voice alone decides whether they name where
    /// help is.
    fn say(
        &self,
        matter: &Matter<TurnContent>,
        situation: Situation,
        category: Option<Category>,
    ) -> String {
        self.voices.of(&matter.tenant).say(&Speech { category, ..speech(matter, situation) })
    }

    /// The same of what people decide about: only where there is somebody who can.
    fn say_waiting(&self, matter: &Matter<TurnContent>, situation: Situation) -> String {
        self.voices.of(&matter.tenant).say(&Speech { staffed: true, ..speech(matter, situation) })
    }

    fn say_refusal(&self, matter: &Matter<TurnContent>, code: GuardCode) -> String {
        match code {
            GuardCode::Harmful => {
                let speech = speech(matter, Situation::Refusal);
                // Where help is, is named even where the subject is too much of a guess to be.
                let is_self_harm = matter.reading.gravest() == Some(Category::SelfHarm);
                let in_crisis = speech.in_crisis || is_self_harm;
                let category = matter.reading.subject();
                self.voices.of(&matter.tenant).say(&Speech { category, in_crisis, ..speech })
            }
            GuardCode::Injection => self.say(matter, Situation::Refusal, Some(Category::Injection)),
            code => guard_sentence(code, language(matter)).to_owned(),
        }
    }

    /// Looks at replies that the panel has passed; what may not leave is replaced by words of our own. After
    /// what may, a person in crisis gets the places to find help, and one who is near it one sentence.
    pub(crate) async fn guard_replies(&self, matter: &mut Matter<TurnContent>) {
        if matter.content.choices.iter().any(|choice| choice.outcome.is_verified()) {
            let passage = self.guard(matter, Phase::After).await;
            if passage != Passage::Open {
                let stop = self.stop(matter).await;
                let own = self.stopped_choice(matter, stop);
                for choice in &mut matter.content.choices {
                    if choice.outcome.is_verified() {
                        choice.outcome = own.outcome;
                        choice.delivered = own.delivered.clone();
                    }
                }
            }
        }
        let is_redacted = matter.is_redacted_after();
        let in_crisis = matter.crisis().is_crisis();
        let offers_care = self.offers_care(matter);
        let resources = self.voices.of(&matter.tenant).resources();
        let language = language(matter).to_owned();
        let country = matter.context.country.clone();
        for choice in &mut matter.content.choices {
            if choice.outcome.is_verified() {
                if is_redacted {
                    choice.outcome = Outcome::Redacted;
                }
                if in_crisis {
                    let text = &choice.delivered.text;
                    choice.delivered.text = resources.append(text, country.as_deref(), &language);
                }
                if offers_care && takes_sentence(&choice.delivered) {
                    let text = &choice.delivered.text;
                    let cared = resources.append_care(text, country.as_deref(), &language);
                    choice.has_care = cared.len() > text.len();
                    choice.delivered.text = cared;
                }
            }
            // What has left by windows cannot be taken back; whatever else is said follows it.
            if !choice.released.is_empty() {
                let text = std::mem::take(&mut choice.delivered.text);
                choice.delivered.text = joined(&choice.released, text);
            }
        }
    }

    /// Whether replies to a person who is not in crisis, but near it, end with a sentence that offers help;
    /// once for each message, however many replies a model needs for it.
    fn offers_care(&self, matter: &Matter<TurnContent>) -> bool {
        let is_off = matter.policy().care == Some(CareOffer::Off);
        let is_for_children = matter.reading.mode == Mode::ChildSafe;
        if !self.detectors.of(&matter.tenant).calls_for_care(&matter.reading)
            || (is_off && !is_for_children)
        {
            return false;
        }
        let since = matter.content.turn.conversation.iter().rev();
        let mut since = since.take_while(|message| message.role != Role::User);
        let country = matter.context.country.as_deref();
        let resources = self.voices.of(&matter.tenant).resources();
        !since.any(|message| {
            message.role == Role::Assistant
                && resources.offers_care(&message.content.as_text(), country, language(matter))
        })
    }

    /// Makes one decision of a turn, records it and tells everybody who must know.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(crate) async fn conclude(
        &self,
        matter: &Matter<TurnContent>,
        provider: Arc<str>,
        field: Option<Arc<FieldState>>,
    ) -> Result<Reply, DeliverError> {
        let decision = Arc::new(self.decision(matter, provider, field));
        failpoint::reach("turn.decided");
        trace::about(|| {
            let model = &matter.content.turn.model;
            let offered = self.models.find(model).map(|_| model.as_str());
            spans::about_decision(&decision, &matter.who, offered)
        });
        let entry = DecisionEntry {
            public: entry::public_fields(&decision, &self.instinct),
            words: self.words(matter, &decision)?,
            review: self.review_of_turn(matter, &decision),
            cost: decision.cost,
        };
        let recorded = self.record(matter, entry).await?;
        self.tell_of_drift(matter).await;
        let RecordedDecision { leaf_hash, delivery, review_id } = recorded;
        let why_url = leaf_hash.and_then(|_| self.why_url(matter));
        Ok(Reply { decision, leaf_hash, delivery, review_id, why_url })
    }

    /// The link under which the person may ask why. What could not be recorded cannot be shown either.
    fn why_url(&self, matter: &Matter<TurnContent>) -> Option<String> {
        if matter.policy().why_url != Some(true) {
            return None;
        }
        let token = self.governance.as_ref()?.why_token(&matter.tenant, matter.id)?;
        let base = self.settings.public_url.as_deref().unwrap_or_default();
        Some(format!("{base}{WHY_PATH}{token}"))
    }

    fn decision(
        &self,
        matter: &Matter<TurnContent>,
        provider: Arc<str>,
        field: Option<Arc<FieldState>>,
    ) -> Decision {
        let choices = &matter.content.choices;
        let latency = matter.started.elapsed();
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let outcome = overall_outcome(choices);
        let size = matter.content.size_of_call(matter.payment.dearest.output_tokens_max);
        let version = matter.policy.version;
        Decision {
            id: matter.id,
            timestamp_ms: self.clock.now_ms().saturating_sub(latency_ms),
            outcome,
            action: action(outcome, matter),
            directive: self.directive_for(matter),
            model: matter.model.clone().unwrap_or_else(|| matter.content.turn.model.clone()),
            provider,
            scrutiny: matter.scrutiny,
            bars: self.bars(matter),
            remembered: matter.remembered.clone(),
            input: matter.reading.clone(),
            field,
            conversation: matter.content.turn.conversation.clone(),
            cost: matter.payment.cost(&size, choices),
            usage: total_usage(choices),
            terms: Terms {
                policy_version: (version > 0).then_some(version),
                downgraded_from: matter.payment.downgraded_from.clone(),
            },
            purpose: matter.purpose.clone(),
            refusal: refusal(outcome, matter),
            key: matter.key.clone(),
            guards: matter.looked.clone(),
            findings: noted(matter),
            model_time: choices.iter().map(|choice| choice.model_time).max().unwrap_or_default(),
            choices: choices.clone(),
            latency,
        }
    }

    /// Makes a decision durable, settles its money and opens the review it needs, in this order.
    ///
    /// # Errors
    /// When it cannot be recorded and may not leave unrecorded.
    pub async fn record<C: ?Sized>(
        &self,
        matter: &Matter<C>,
        entry: DecisionEntry<'_>,
    ) -> Result<RecordedDecision, AppendError> {
        let DecisionEntry { public, mut words, review, cost } = entry;
        if let Some(review) = &review {
            // What the review shall be stands in the decision, so that it can be opened later where
            // nobody can be asked now.
            words.add(REVIEW_WORDS, review)?;
        }
        let draft = Draft {
            audit: Some(matter.id.0.into_bytes()),
            subject: matter.who.subject,
            session: Some(matter.who.session),
            public: Value::map(public),
            ..self.settings.draft(Kind::Decision, matter.who.tenant)
        };
        let mut promise = draft.clone();
        let appending = self.ledger.append(draft, words.into_body());
        let report = |done: &Result<_, _>| spans::about_recording(done.is_ok());
        let appended = trace::span("recording", SpanKind::Internal, appending, report).await;
        failpoint::reach("turn.recorded");
        // Money was spent whether or not it could be recorded.
        self.settle(matter, cost);
        let appended = match appended {
            Err(error @ AppendError::Unwritable(_)) if self.delivers_unrecorded(matter) => {
                tracing::error!(audit_id = %matter.id, %error, "a reply leaves unrecorded");
                let delivery = Delivery::unrecorded(self.ledger.clone());
                return Ok(RecordedDecision { leaf_hash: None, delivery, review_id: None });
            }
            appended => appended?,
        };
        promise.parent = Some(appended.id);
        if !matter.purpose.is_recipe() {
            self.memory.keep(&matter.who, &matter.remembered);
            // Whoever was erased meanwhile must not come back through memory. Names are given up before
            // memory is cleared, so one of the two sees the other.
            let erased = matter.who.subject.filter(|one| !self.subjects.is_current(*one));
            if let Some(subject) = erased {
                self.memory.forget(subject, &[matter.who.session]);
            }
        }
        Ok(RecordedDecision {
            leaf_hash: Some(appended.leaf_hash),
            delivery: Delivery::new(self.ledger.clone(), promise),
            review_id: self.open_review(review).await,
        })
    }

    /// Refuses a matter whose decision is known beforehand not to be recorded, before it costs anything.
    pub(crate) fn check_ledger(&self, turn: &crate::Turn) -> Result<(), DeliverError> {
        match self.ledger.health() {
            // Whoever lost the right to write answers nobody: no policy speaks for another's ledger.
            Err(lost @ AppendError::Refused(_)) => Err(lost.into()),
            Err(trouble) => {
                let policy = self.policies.in_force(&turn.tenant).policy;
                let tenant = policy.audit_failure;
                if self.may_leave_unrecorded(tenant, turn.context.sensitivity) {
                    return Ok(());
                }
                Err(trouble.into())
            }
            Ok(()) => Ok(()),
        }
    }

    fn delivers_unrecorded<C: ?Sized>(&self, matter: &Matter<C>) -> bool {
        let tenant = matter.policy().audit_failure;
        !matter.purpose.is_recipe() && self.may_leave_unrecorded(tenant, matter.context.sensitivity)
    }

    /// Whether a reply may leave although nothing could be recorded: the operator must say so and the
    /// tenant must not object. Where most is at stake it may not, whatever they said.
    fn may_leave_unrecorded(&self, tenant: Option<AuditFailure>, sensitivity: Sensitivity) -> bool {
        let is_grave = matches!(sensitivity, Sensitivity::High | Sensitivity::Sacred);
        let strictest = tenant.max(Some(self.settings.audit_failure));
        strictest == Some(AuditFailure::DeliverAndAlert) && !is_grave
    }

    /// The review a turn's decision needs, where a person must decide.
    fn review_of_turn(
        &self,
        matter: &Matter<TurnContent>,
        decision: &Decision,
    ) -> Option<NewReview> {
        self.governance.as_ref()?;
        let hold = matter.hold.clone().filter(|_| decision.outcome == Outcome::Held);
        let is_escalated = decision.action == Action::Escalate && self.settings.staffed;
        if hold.is_none() && !is_escalated {
            return None;
        }
        let hold = hold.unwrap_or_default();
        let is_grave = matter.crisis().is_crisis() || hold.sacred;
        let mut communities = hold.communities.into_iter();
        let community = communities.next();
        Some(NewReview {
            kind: match community {
                Some(_) => ReviewKind::ElderReview,
                None => ReviewKind::Escalation,
            },
            tenant: matter.tenant.clone(),
            content_type: "chat".to_owned(),
            four_eyes: hold.sacred,
            community,
            others: communities.collect(),
            issues: hold.issues,
            priority: if is_grave { ReviewPriority::Urgent } else { ReviewPriority::High },
            audit_id: Some(matter.id),
            author: matter.key.as_ref().map(|key| key.as_str().to_owned()),
            subject: matter.who.subject,
        })
    }

    /// Has a decision wait for a person; the review's id. Where nobody can be asked now, somebody is
    /// later: nothing has left meanwhile.
    async fn open_review(&self, review: Option<NewReview>) -> Option<String> {
        let governance = self.governance.as_deref()?;
        let review = review?;
        let audit_id = review.audit_id.map(|id| id.to_string());
        match governance.submit(review).await {
            Ok(id) => Some(id),
            Err(error) => {
                tracing::error!(audit_id, %error, "a review could not be opened yet");
                None
            }
        }
    }

    /// Tells webhooks when somebody has begun to drift.
    async fn tell_of_drift(&self, matter: &Matter<TurnContent>) {
        let Some(governance) = self.governance.as_deref() else { return };
        let course = matter.remembered.course.as_ref();
        let state = course.map(conclave_detect::Course::state).unwrap_or_default();
        let before = matter.drift_before;
        if state == before || state == conclave_detect::DriftState::default() {
            return;
        }
        let data = json!({
            "state": state.as_str(), "before": before.as_str(), "audit_id": matter.id.to_string(),
        });
        let announcement = Announcement { kind: EventKind::DriftAlert, data };
        if let Err(error) = governance.announce(&matter.tenant, announcement).await {
            tracing::error!(%error, "nobody could be told of drift");
        }
    }
}

fn own_words(text: String, finish: FinishReason) -> Delivered {
    Delivered { text, finish, ..Delivered::default() }
}

/// Whether a sentence can stand after a reply: it says something to a person, and is no JSON that a program
/// reads.
fn takes_sentence(delivered: &Delivered) -> bool {
    let is_structured = serde_json::from_str::<serde_json::Value>(&delivered.text)
        .is_ok_and(|value| value.is_object() || value.is_array());
    !delivered.text.trim().is_empty() && delivered.tool_calls.is_empty() && !is_structured
}

/// What is said in a situation, where nobody is promised.
fn speech(matter: &Matter<TurnContent>, situation: Situation) -> Speech<'_> {
    Speech {
        situation,
        persona: matter.context.persona,
        language: language(matter),
        category: None,
        staffed: false,
        country: matter.context.country.as_deref(),
        in_crisis: matter.crisis().is_crisis(),
    }
}

/// The language stated by the request, else the one that was read.
fn language(matter: &Matter<TurnContent>) -> &str {
    matter.context.language.as_deref().unwrap_or(&matter.reading.language)
}

/// The strictest outcome of the choices; a choice the model failed on counts only if all failed.
fn overall_outcome(choices: &[Choice]) -> Outcome {
    let answered = choices.iter().map(|choice| choice.outcome).filter(|o| *o != Outcome::Failed);
    answered.max_by_key(|outcome| outcome.severity()).unwrap_or(Outcome::Failed)
}

fn action(outcome: Outcome, matter: &Matter<TurnContent>) -> Action {
    let choices = &matter.content.choices;
    let is_escalated =
        choices.iter().any(|choice| choice.verdict == Some(Verdict::Withhold(Withheld::Escalated)));
    match outcome {
        Outcome::Delivered if matter.is_flagged() => Action::Flag,
        Outcome::Delivered => Action::Deliver,
        Outcome::Redacted => Action::Redact,
        Outcome::Held => Action::Hold,
        _ if is_escalated => Action::Escalate,
        Outcome::Exhausted => Action::Regenerate,
        _ => Action::Block,
    }
}

/// The code of the guard that refused, where a guard did.
fn refusal(outcome: Outcome, matter: &Matter<TurnContent>) -> Option<GuardCode> {
    if outcome != Outcome::Blocked {
        return None;
    }
    let finding = matter.gravest().filter(|one| one.disposition >= Disposition::Held)?;
    Some(match (finding.disposition, finding.code?) {
        (Disposition::Blocked, code) => code,
        (_, GuardCode::JurisdictionUnknown) => GuardCode::Jurisdiction,
        _ => GuardCode::NoElders,
    })
}

/// What is worth noting: everything but that a guard let it pass.
fn noted(matter: &Matter<TurnContent>) -> Vec<conclave_core::Finding> {
    let told = matter.findings.iter().filter(|one| one.disposition != Disposition::Passed);
    told.cloned().collect()
}

fn total_usage(choices: &[Choice]) -> Usage {
    choices
        .iter()
        .flat_map(|choice| &choice.attempts)
        .filter_map(|attempt| attempt.candidate.as_ref().ok())
        .fold(Usage::default(), |sum, candidate| sum.plus(candidate.usage))
}
