//! A decision as a ledger entry: what may be kept for ever in the leaf, the words in the body.
//!
//! **Invariant:** no free text, name or address stands in the leaf.
//! **Invariant:** the leaf alone is enough to run the consensus again.
//! **Invariant:** what cannot be written is an error; nothing empty stands in its place.

use super::basis;
use super::{Choice, Decision};
use crate::engine::Engine;
use crate::matter::{Matter, Purpose, TurnContent};
use conclave_core::{Attempt, Ballot, Bars, Cast, Finding, PanelRun, Role};
use conclave_detect::Course;
use conclave_instinct::Instinct;
use conclave_ledger::{Body, Value};
use conclave_ports::{AppendError, Entropy, MEMORY_WORDS};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// The words beside a decision, each with a salt of its own.
pub struct DecisionWords<'a> {
    body: Body,
    entropy: &'a dyn Entropy,
}

impl<'a> DecisionWords<'a> {
    /// None yet.
    #[must_use]
    pub fn new(entropy: &'a dyn Entropy) -> Self {
        Self { body: Body::empty(), entropy }
    }

    /// Adds one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        value: &impl Serialize,
    ) -> Result<(), AppendError> {
        let name = name.into();
        let text = serde_json::to_vec(value).map_err(|error| {
            AppendError::Refused(format!("`{name}` cannot be written: {error}"))
        })?;
        let mut salt = [0; 32];
        self.entropy.fill(&mut salt);
        self.body.push(name, salt, text);
        Ok(())
    }

    /// All of them.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }
}

impl Engine {
    /// The words of a turn's decision.
    pub(super) fn words(
        &self,
        matter: &Matter<TurnContent>,
        decision: &Decision,
    ) -> Result<DecisionWords<'_>, AppendError> {
        let turn = &matter.content.turn;
        let mut words = DecisionWords::new(&*self.entropy);
        let who = json!({"user": turn.user, "session": turn.session, "context": turn.context});
        words.add("who", &who)?;
        words.add("request", &decision.conversation)?;
        words.add("reading", &decision.input)?;
        words.add(MEMORY_WORDS, &decision.remembered)?;
        if let Some(field) = &decision.field {
            words.add("field", field)?;
        }
        if !decision.findings.is_empty() {
            words.add("guards", &decision.findings)?;
        }
        if !matter.tokens.is_empty() {
            words.add("tokens", &matter.tokens)?;
        }
        if let Some(kept) = &turn.kept {
            words.add("kept", kept)?;
        }
        for (c, choice) in decision.choices.iter().enumerate() {
            for (a, attempt) in choice.attempts.iter().enumerate() {
                if let Ok(candidate) = &attempt.candidate {
                    words.add(format!("candidate.{c}.{a}"), candidate)?;
                }
                let statements = statements(&attempt.panels);
                if !statements.is_empty() {
                    words.add(format!("votes.{c}.{a}"), &statements)?;
                }
            }
            words.add(format!("delivered.{c}"), &choice.delivered)?;
            if !choice.windows.is_empty() {
                words.add(format!("windows.{c}"), &choice.windows)?;
            }
        }
        Ok(words)
    }
}

/// What a verifier said beside its vote.
#[derive(Serialize)]
pub struct VerifierStatement<'a> {
    panel: usize,
    verifier: &'a str,
    reasoning: &'a str,
    reasons: &'a [conclave_core::Reason],
    flagged_patterns: &'a [String],
}

/// What the verifiers of panels said beside their votes, where they said anything.
#[must_use]
pub fn statements(panels: &[PanelRun]) -> Vec<VerifierStatement<'_>> {
    let all = panels.iter().enumerate().flat_map(|(panel, run)| {
        run.ballots.iter().map(move |ballot| VerifierStatement {
            panel,
            verifier: &ballot.seat.verifier,
            reasoning: &ballot.reasoning,
            reasons: &ballot.reasons,
            flagged_patterns: &ballot.flagged_patterns,
        })
    });
    all.filter(|one| !one.reasoning.is_empty() || !one.reasons.is_empty()).collect()
}

/// What stands in the leaf of a turn's decision.
pub(super) fn public_fields(
    decision: &Decision,
    instinct: &Instinct,
) -> Vec<(&'static str, Value)> {
    let input = &decision.input;
    let mut pairs = vec![
        ("outcome", Value::from(decision.outcome.as_str())),
        ("action", Value::from(decision.action.as_str())),
        ("attempts", uint(decision.attempts())),
        ("crisis", Value::Bool(input.crisis.is_crisis())),
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
    if decision.purpose != Purpose::Chat {
        pairs.push(("agent", Value::from(decision.purpose.as_str())));
    }
    pairs.extend(guard_rows(&decision.findings));
    if decision.has_care() {
        pairs.push(("care", Value::Bool(true)));
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
    pairs
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

fn uint(number: impl Into<u64>) -> Value {
    Value::Uint(number.into())
}

/// The bars in force: quorum, score, assurance.
#[must_use]
pub fn bars(bars: Bars) -> Value {
    Value::Array(vec![uint(bars.quorum), uint(bars.score), uint(bars.assurance)])
}

/// `[guard, phase, what was done, code]` for each finding. What guards found that only watch stands apart,
/// so that nobody who reads `guards` takes it for what was done.
#[must_use]
pub fn guard_rows(findings: &[Finding]) -> Vec<(&'static str, Value)> {
    let row = |finding: &Finding| {
        let names = [
            finding.guard.as_str(),
            finding.phase.as_str(),
            finding.disposition.as_str(),
            finding.code_name(),
        ];
        Value::Array(names.into_iter().map(Value::from).collect())
    };
    let rows = |monitor: bool| -> Vec<_> {
        findings.iter().filter(|one| one.monitor == monitor).map(row).collect()
    };
    let named = [("guards", rows(false)), ("monitored", rows(true))];
    let filled = named.into_iter().filter(|(_, rows)| !rows.is_empty());
    filled.map(|(name, rows)| (name, Value::Array(rows))).collect()
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
    if let Some(directive) = basis::for_veto(instinct, attempt) {
        pairs.push(("directive", uint(directive.0)));
    }
    Value::map(pairs)
}

/// A panel as a leaf keeps it.
#[must_use]
pub fn panel(run: &PanelRun) -> Value {
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
