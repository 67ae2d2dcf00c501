//! A decision as a ledger entry: what may be kept for ever in the leaf, the words in the body.
//!
//! **Invariant:** no free text, name or address stands in the leaf.
//! **Invariant:** the leaf alone is enough to run the consensus again.

use crate::decision::{Choice, Decision};
use crate::deliver::DeliverError;
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::memory;
use crate::permission::Interface;
use crate::rests_on;
use crate::settings::AuditFailure;
use crate::turn::Turn;
use conclave_core::{Attempt, Ballot, Bars, Cast, PanelRun, Role, Sensitivity};
use conclave_detect::Course;
use conclave_govern::NewReview;
use conclave_instinct::Instinct;
use conclave_ledger::{Body, Draft, Kind, Value};
use conclave_ports::{AppendError, Pseudonyms};
use conclave_recipes::GuardOutcome;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

impl Engine {
    /// Makes the decision durable and promises its delivery entry.
    pub(crate) async fn record(
        &self,
        turn: &Turn,
        who: &Pseudonyms,
        decision: &Decision,
        review: Option<&NewReview>,
    ) -> Result<(Option<[u8; 32]>, Delivery), DeliverError> {
        let draft = Draft {
            kind: Kind::Decision,
            audit: Some(decision.id.0.into_bytes()),
            tenant: who.tenant,
            subject: who.subject,
            session: Some(who.session),
            parent: None,
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: public_part(decision, &self.instinct),
        };
        let mut promise = draft.clone();
        let appended = match self.ledger.append(draft, self.words(turn, decision, review)).await {
            Err(error @ AppendError::Unwritable(_)) if self.delivers_unrecorded(turn) => {
                tracing::error!(audit_id = %decision.id, %error, "a reply leaves unrecorded");
                return Ok((None, Delivery::unrecorded(self.ledger.clone())));
            }
            appended => appended?,
        };
        promise.parent = Some(appended.id);
        self.memory.keep(who, &decision.remembered);
        // Whoever was erased meanwhile must not come back through memory. Names are given up before
        // memory is cleared, so one of the two sees the other.
        if let Some(subject) = who.subject.filter(|subject| !self.subjects.is_current(*subject)) {
            self.memory.forget(subject, &[who.session]);
        }
        Ok((Some(appended.leaf_hash), Delivery::new(self.ledger.clone(), promise)))
    }

    /// Refuses a turn whose decision is known beforehand not to be recorded, before it costs anything.
    ///
    /// # Errors
    /// When the ledger is in trouble and the reply would be held.
    pub(crate) fn admit(&self, turn: &Turn) -> Result<(), DeliverError> {
        match self.ledger.health() {
            Err(trouble) if !self.delivers_unrecorded(turn) => Err(trouble.into()),
            _ => Ok(()),
        }
    }

    /// Whether a reply to this turn may leave although nothing could be recorded: the operator must
    /// say so and the tenant must not object. Where most is at stake it may not, whatever they said.
    fn delivers_unrecorded(&self, turn: &Turn) -> bool {
        let grave = matches!(turn.context.sensitivity, Sensitivity::High | Sensitivity::Sacred);
        let tenant = self.in_force(&turn.tenant).policy.audit_failure;
        let strictest = tenant.max(Some(self.settings.audit_failure));
        strictest == Some(AuditFailure::DeliverAndAlert) && !grave
    }

    fn words(&self, turn: &Turn, decision: &Decision, review: Option<&NewReview>) -> Body {
        let mut body = Body::empty();
        let mut add = |name: String, text: Vec<u8>| {
            let mut salt = [0; 32];
            self.entropy.fill(&mut salt);
            body.push(name, salt, text);
        };
        let who = json!({"user": turn.user, "session": turn.session, "context": turn.context});
        add("who".into(), encode(&who));
        add("request".into(), encode(&decision.conversation));
        add("reading".into(), encode(&decision.input));
        add(memory::WORDS.into(), encode(&decision.remembered));
        if let Some(field) = &decision.field {
            add("field".into(), encode(field));
        }
        if !decision.guard_outcomes.is_empty() {
            add("guards".into(), encode(&decision.guard_outcomes));
        }
        if let Some(review) = review {
            add(conclave_ports::REVIEW_WORDS.into(), encode(review));
        }
        if let Some(kept) = &turn.kept {
            add("kept".into(), encode(kept));
        }
        for (c, choice) in decision.choices.iter().enumerate() {
            for (a, attempt) in choice.attempts.iter().enumerate() {
                if let Ok(candidate) = &attempt.candidate {
                    add(format!("candidate.{c}.{a}"), encode(candidate));
                }
                let spoken = spoken(attempt);
                if !spoken.is_empty() {
                    add(format!("votes.{c}.{a}"), encode(&spoken));
                }
            }
            add(format!("delivered.{c}"), encode(&choice.delivered));
            if !choice.windows.is_empty() {
                add(format!("windows.{c}"), encode(&choice.windows));
            }
        }
        body
    }
}

/// What a verifier said beside its vote.
#[derive(Serialize)]
pub(crate) struct Spoken<'a> {
    panel: usize,
    verifier: &'a str,
    reasoning: &'a str,
    reasons: &'a [conclave_core::Reason],
    flagged_patterns: &'a [String],
}

pub(crate) fn spoken(attempt: &Attempt) -> Vec<Spoken<'_>> {
    let all = attempt.panels.iter().enumerate().flat_map(|(panel, run)| {
        run.ballots.iter().map(move |ballot| Spoken {
            panel,
            verifier: &ballot.seat.verifier,
            reasoning: &ballot.reasoning,
            reasons: &ballot.reasons,
            flagged_patterns: &ballot.flagged_patterns,
        })
    });
    all.filter(|spoken| !spoken.reasoning.is_empty() || !spoken.reasons.is_empty()).collect()
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn public_part(decision: &Decision, instinct: &Instinct) -> Value {
    let input = &decision.input;
    let mut pairs = vec![
        ("outcome", Value::from(decision.outcome.as_str())),
        ("action", Value::from(decision.action.as_str())),
        ("attempts", uint(decision.attempts())),
        ("crisis", Value::Bool(input.is_crisis())),
        ("scrutiny", Value::from(decision.scrutiny.as_str())),
        ("model", Value::from(decision.model.as_str())),
        ("provider", Value::from(&*decision.provider)),
        ("exchange", uint(exchange(decision))),
        ("latency_ms", Value::Uint(millis(decision.latency))),
        ("cost", Value::Uint(decision.cost.0)),
        ("tokens_in", Value::Uint(decision.usage.input_tokens)),
        ("tokens_out", Value::Uint(decision.usage.output_tokens)),
        ("bars", bars(decision.bars)),
        ("harm", uint(input.harm.hundredths())),
        ("crisis_score", uint(input.crisis.hundredths())),
        ("injection", uint(input.injection.hundredths())),
        ("threshold", uint(input.threshold.hundredths())),
        ("mode", Value::from(input.mode.as_str())),
        ("escalating", Value::Bool(decision.remembered.trend.now.any())),
        (
            "choices",
            Value::Array(decision.choices.iter().map(|one| choice(one, instinct)).collect()),
        ),
    ];
    if decision.interface != Interface::Chat {
        pairs.push(("agent", Value::from(decision.interface.as_str())));
    }
    if !decision.guard_outcomes.is_empty() {
        let rows = decision.guard_outcomes.iter().map(guard_row).collect();
        pairs.push(("guards", Value::Array(rows)));
    }
    if let Some(key) = &decision.key {
        pairs.push(("key", Value::from(key.as_str())));
    }
    if let Some(refusal) = decision.refusal {
        pairs.push(("refusal", Value::from(refusal.as_str())));
    }
    if let Some(version) = decision.terms.policy_version {
        pairs.push(("policy_version", Value::Uint(version)));
    }
    if let Some(model) = &decision.terms.downgraded_from {
        pairs.push(("downgraded_from", Value::from(model.as_str())));
    }
    // Where a person stands is not said where it could not be looked up.
    if let Some(course) =
        decision.remembered.course.as_ref().filter(|_| decision.remembered.is_known)
    {
        pairs.push(("drift", Value::from(course.state().as_str())));
        pairs.extend(drift_alerts(course).map(|alerts| ("drift_alerts", alerts)));
    }
    if let Some(score) = decision.safety_score_e4() {
        pairs.push(("score", uint(score)));
    }
    if let Some(directive) = decision.directive {
        pairs.push(("directive", uint(directive.0)));
    }
    Value::map(pairs)
}

/// How often the person has spoken in this conversation.
fn exchange(decision: &Decision) -> u64 {
    decision.conversation.iter().filter(|message| message.role == Role::User).count() as u64
}

/// `[pattern, state, hundredths, recommended action]` each, without what they rest on: that is words.
fn drift_alerts(course: &Course) -> Option<Value> {
    let alerts: Vec<_> = course
        .alerts()
        .iter()
        .map(|alert| {
            Value::Array(vec![
                Value::from(alert.pattern.as_str()),
                Value::from(alert.state.as_str()),
                uint(alert.confidence.hundredths()),
                Value::from(alert.recommended_action.as_str()),
            ])
        })
        .collect();
    (!alerts.is_empty()).then_some(Value::Array(alerts))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A length or a position.
pub(crate) fn length(number: usize) -> Value {
    Value::Uint(u64::try_from(number).unwrap_or(u64::MAX))
}

/// How many bytes of text a conversation has.
pub(crate) fn said_bytes(conversation: &[conclave_core::Message]) -> usize {
    conversation.iter().map(|message| message.content.as_text().len()).sum()
}

fn uint(number: impl Into<u64>) -> Value {
    Value::Uint(number.into())
}

/// The bars in force: quorum, score, assurance.
pub(crate) fn bars(bars: Bars) -> Value {
    Value::Array(vec![uint(bars.quorum), uint(bars.score), uint(bars.assurance)])
}

/// `[guard, phase, what was done, code]`.
pub(crate) fn guard_row(outcome: &GuardOutcome) -> Value {
    let words =
        [outcome.guard.as_str(), outcome.phase.as_str(), outcome.taken.as_str(), outcome.code];
    Value::Array(words.into_iter().map(Value::from).collect())
}

fn choice(choice: &Choice, instinct: &Instinct) -> Value {
    let mut pairs = vec![
        ("outcome", Value::from(choice.outcome.as_str())),
        (
            "attempts",
            Value::Array(choice.attempts.iter().map(|one| attempt(one, instinct)).collect()),
        ),
    ];
    if !choice.windows.is_empty() {
        let windows = choice.windows.iter().map(|one| Value::Bytes(one.leaf_hash.to_vec()));
        pairs.push(("windows", Value::Array(windows.collect())));
    }
    Value::map(pairs)
}

fn attempt(attempt: &Attempt, instinct: &Instinct) -> Value {
    let candidate = match &attempt.candidate {
        Ok(candidate) => candidate,
        Err(failure) => return Value::map([("failure", Value::from(failure.as_str()))]),
    };
    let mut pairs = vec![("panels", Value::Array(attempt.panels.iter().map(panel).collect()))];
    if let Some(stand_in) = &candidate.stand_in {
        pairs.push(("stand_in", Value::from(stand_in.model.as_str())));
    }
    if let Some(directive) = rests_on::of_veto(instinct, attempt) {
        pairs.push(("directive", uint(directive.0)));
    }
    Value::map(pairs)
}

pub(crate) fn panel(run: &PanelRun) -> Value {
    Value::map([
        ("sums", conclave_ports::sums(&run.consensus)),
        ("ballots", Value::Array(run.ballots.iter().map(ballot).collect())),
    ])
}

/// `[verifier, cast, hundredths or cause, priority, weight, required, monitor, latency in ms]`, and
/// for a verifier that costs something or has instructions of its own `cost` and their digest.
fn ballot(ballot: &Ballot) -> Value {
    let (cast, detail) = match ballot.cast {
        Cast::Voted { vote, confidence } => (vote.as_str(), uint(confidence.hundredths())),
        Cast::Abstained(cause) => ("abstained", Value::from(cause.as_str())),
        Cast::Excused(cause) => ("excused", Value::from(cause.as_str())),
        Cast::NotApplicable => ("not_applicable", Value::Null),
    };
    let mut fields = vec![
        Value::from(&*ballot.seat.verifier),
        Value::from(cast),
        detail,
        uint(ballot.seat.priority.number()),
        uint(ballot.seat.weight),
        Value::Bool(ballot.seat.required),
        Value::Bool(ballot.seat.monitor),
        uint(ballot.latency_ms),
    ];
    if ballot.cost.0 > 0 || ballot.basis.is_some() {
        let basis = ballot.basis.map_or(Value::Null, |basis| Value::Bytes(basis.to_vec()));
        fields.extend([uint(ballot.cost.0), basis]);
    }
    Value::Array(fields)
}
