//! A decision as a ledger entry: what may be kept for ever in the leaf, the words in the body.
//!
//! **Invariant:** no free text, name or address stands in the leaf.
//! **Invariant:** the leaf alone is enough to run the consensus again.

use crate::decision::{Choice, Decision};
use crate::deliver::DeliverError;
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::memory;
use crate::ports::{AppendError, Pseudonyms};
use crate::settings::AuditFailure;
use crate::turn::Turn;
use conclave_core::{Attempt, Ballot, Bars, Cast, Consensus, PanelRun, Sensitivity};
use conclave_ledger::{Body, Draft, Kind, Value};
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
            public: public_part(decision),
        };
        let mut promise = draft.clone();
        let appended = match self.ledger.append(draft, self.words(turn, decision)).await {
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

    /// Whether a reply to this turn may leave although nothing could be recorded. Where most is at
    /// stake, it may not, whatever the operator said.
    fn delivers_unrecorded(&self, turn: &Turn) -> bool {
        let grave = matches!(turn.context.sensitivity, Sensitivity::High | Sensitivity::Sacred);
        self.settings.audit_failure == AuditFailure::DeliverAndAlert && !grave
    }

    fn words(&self, turn: &Turn, decision: &Decision) -> Body {
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

fn public_part(decision: &Decision) -> Value {
    let input = &decision.input;
    let mut pairs = vec![
        ("outcome", Value::from(decision.outcome.as_str())),
        ("action", Value::from(decision.action.as_str())),
        ("attempts", uint(decision.attempts())),
        ("crisis", Value::Bool(input.is_crisis())),
        ("scrutiny", Value::from(decision.scrutiny.as_str())),
        ("model", Value::from(decision.model.as_str())),
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
        ("choices", Value::Array(decision.choices.iter().map(choice).collect())),
    ];
    if let Some(course) = &decision.remembered.course {
        pairs.push(("drift", Value::from(course.state().as_str())));
    }
    if let Some(score) = decision.safety_score_e4() {
        pairs.push(("score", uint(score)));
    }
    if let Some(directive) = decision.directive {
        pairs.push(("directive", uint(directive.0)));
    }
    Value::map(pairs)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn uint(number: impl Into<u64>) -> Value {
    Value::Uint(number.into())
}

fn bars(bars: Bars) -> Value {
    Value::Array(vec![uint(bars.quorum), uint(bars.score), uint(bars.assurance)])
}

fn choice(choice: &Choice) -> Value {
    Value::map([
        ("outcome", Value::from(choice.outcome.as_str())),
        ("attempts", Value::Array(choice.attempts.iter().map(attempt).collect())),
    ])
}

fn attempt(attempt: &Attempt) -> Value {
    let panels = Value::Array(attempt.panels.iter().map(panel).collect());
    match &attempt.candidate {
        Ok(_) => Value::map([("panels", panels)]),
        Err(failure) => Value::map([("failure", Value::from(failure.as_str()))]),
    }
}

pub(crate) fn panel(run: &PanelRun) -> Value {
    Value::map([
        ("sums", sums(&run.consensus)),
        ("ballots", Value::Array(run.ballots.iter().map(ballot).collect())),
    ])
}

/// `[S, D, W, votes cast, delivers]`: what a replay must come to again.
pub(crate) fn sums(consensus: &Consensus) -> Value {
    Value::Array(vec![
        uint(consensus.safe_mass),
        uint(consensus.dissent_mass),
        uint(consensus.seated_weight),
        uint(consensus.votes_cast),
        Value::Bool(consensus.delivers()),
    ])
}

/// `[verifier, cast, hundredths or cause, priority, weight, required, monitor, latency in ms]`.
fn ballot(ballot: &Ballot) -> Value {
    let (cast, detail) = match ballot.cast {
        Cast::Voted { vote, confidence } => (vote.as_str(), uint(confidence.hundredths())),
        Cast::Abstained(cause) => ("abstained", Value::from(cause.as_str())),
        Cast::NotApplicable => ("not_applicable", Value::Null),
    };
    Value::Array(vec![
        Value::from(&*ballot.seat.verifier),
        Value::from(cast),
        detail,
        uint(ballot.seat.priority.number()),
        uint(ballot.seat.weight),
        Value::Bool(ballot.seat.required),
        Value::Bool(ballot.seat.monitor),
        uint(ballot.latency_ms),
    ])
}
