//! What is told of a turn, in the terms of OpenTelemetry's conventions for generative AI.
//!
//! **Invariant:** a text that a client or a provider chose is told only where it names something that
//! the configuration knows, or after it was cut down to a plain name.

use super::Decision;
use conclave_core::{Ballot, Candidate, Cast, GenerationFailure};
use conclave_ports::Pseudonyms;
use conclave_ports::trace::{Attributes, SpanReport, TraceValue};

/// The event that tells of one vote.
const VOTE: &str = "gen_ai.evaluation.result";
/// The longest name a provider may give itself.
const NAME_CHARS_MAX: usize = 96;

/// A question to a model.
#[must_use]
pub fn about_model(
    model: &str,
    attempt: u8,
    answered: &Result<Candidate, GenerationFailure>,
) -> SpanReport {
    let mut attributes: Attributes = vec![
        ("gen_ai.operation.name", "chat".into()),
        ("gen_ai.request.model", model.into()),
        ("conclave.attempt", u64::from(attempt).saturating_add(1).into()),
    ];
    let mut failure = None;
    match answered {
        Ok(candidate) => {
            attributes.extend([
                ("gen_ai.response.model", plain(&candidate.model)),
                ("gen_ai.response.finish_reasons", one(candidate.finish.as_str())),
                ("gen_ai.usage.input_tokens", candidate.usage.input_tokens.into()),
                ("gen_ai.usage.output_tokens", candidate.usage.output_tokens.into()),
            ]);
        }
        Err(why) => {
            attributes.push(("error.type", why.as_str().into()));
            failure = Some(why.as_str());
        }
    }
    SpanReport { name: Some(format!("chat {model}")), attributes, events: Vec::new(), failure }
}

/// A panel, with one event for each vote.
pub(crate) fn about_panel(ballots: &[Ballot], is_known: bool) -> SpanReport {
    let seated = ballots.iter().filter(|ballot| ballot.cast != Cast::NotApplicable);
    SpanReport {
        attributes: vec![
            ("conclave.panel.ballots", count(ballots.len())),
            ("conclave.panel.known", TraceValue::Flag(is_known)),
        ],
        events: seated.map(|ballot| (VOTE, vote(ballot))).collect(),
        ..SpanReport::default()
    }
}

fn vote(ballot: &Ballot) -> Attributes {
    let mut told: Attributes = vec![("gen_ai.evaluation.name", (&*ballot.seat.verifier).into())];
    let label = match ballot.cast {
        Cast::Voted { vote, confidence } => {
            let score = TraceValue::Hundredths(confidence.hundredths());
            told.push(("gen_ai.evaluation.score.value", score));
            vote.as_str()
        }
        Cast::Abstained(why) | Cast::Excused(why) => {
            told.push(("error.type", why.as_str().into()));
            if matches!(ballot.cast, Cast::Excused(_)) { "excused" } else { "abstained" }
        }
        Cast::NotApplicable => "not_applicable",
    };
    told.push(("gen_ai.evaluation.score.label", label.into()));
    if !ballot.reasons.is_empty() {
        // Reasons are codes of the catalogue; what a verifier wrote may quote the reply.
        let codes: Vec<_> = ballot.reasons.iter().map(|reason| reason.code()).collect();
        told.push(("gen_ai.evaluation.explanation", codes.join(",").as_str().into()));
    }
    told.push(("conclave.verifier.weight", u64::from(ballot.seat.weight).into()));
    told.push(("conclave.verifier.monitor", TraceValue::Flag(ballot.seat.monitor)));
    told.push(("conclave.verifier.latency_ms", u64::from(ballot.latency_ms).into()));
    told
}

/// The writing of a decision.
pub(crate) fn about_recording(is_durable: bool) -> SpanReport {
    SpanReport { failure: (!is_durable).then_some("not_recorded"), ..SpanReport::default() }
}

/// The whole turn. `offered` is the model's name where the configuration knows it.
pub(crate) fn about_decision(
    decision: &Decision,
    who: &Pseudonyms,
    offered: Option<&str>,
) -> (String, Attributes) {
    let operation = decision.purpose.as_str();
    let finishes = decision.choices.iter().map(|choice| choice.delivered.finish.as_str());
    let mut told: Attributes = vec![
        ("gen_ai.operation.name", operation.into()),
        ("gen_ai.provider.name", (&*decision.provider).into()),
        ("gen_ai.response.id", decision.id.to_string().as_str().into()),
        (
            "gen_ai.response.finish_reasons",
            TraceValue::Texts(finishes.map(str::to_owned).collect()),
        ),
        ("gen_ai.usage.input_tokens", decision.usage.input_tokens.into()),
        ("gen_ai.usage.output_tokens", decision.usage.output_tokens.into()),
        // The pseudonym that stands in the ledger; a client's own name for it may name a person.
        ("gen_ai.conversation.id", hex::encode(who.session).as_str().into()),
        ("conclave.audit_id", decision.id.to_string().as_str().into()),
        ("conclave.outcome", decision.outcome.as_str().into()),
        ("conclave.action", decision.action.as_str().into()),
        ("conclave.scrutiny", decision.scrutiny.as_str().into()),
        ("conclave.attempts", u64::from(decision.attempts()).into()),
        ("conclave.cost_microusd", decision.cost.0.into()),
    ];
    if let Some(score) = decision.safety_score_e4() {
        let hundredths = u8::try_from(score / 100).unwrap_or(100);
        told.push(("conclave.safety_score", TraceValue::Hundredths(hundredths)));
    }
    let written = decision.choices.iter().flat_map(|choice| &choice.attempts).rev();
    if let Some(candidate) = written.filter_map(|attempt| attempt.candidate.as_ref().ok()).next() {
        told.push(("gen_ai.response.model", plain(&candidate.model)));
    }
    let name = offered.map_or_else(|| operation.to_owned(), |model| format!("{operation} {model}"));
    if let Some(model) = offered {
        told.push(("gen_ai.request.model", model.into()));
    }
    (name, told)
}

fn one(name: &str) -> TraceValue {
    TraceValue::Texts(vec![name.to_owned()])
}

fn count(number: usize) -> TraceValue {
    TraceValue::Whole(u64::try_from(number).unwrap_or(u64::MAX))
}

/// A name a provider gave: plain letters only, and not too many.
fn plain(name: &str) -> TraceValue {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.:/@".contains(*letter);
    TraceValue::Text(name.chars().filter(is_plain).take(NAME_CHARS_MAX).collect())
}
