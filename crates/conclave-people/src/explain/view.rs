//! A stored decision as JSON, for people and programs.
//!
//! **Invariant:** the consensus is run again from its ballots: nothing is shown that was merely claimed.

use super::correction::corrections;
use super::fraction;
use super::guard_rows::guard_views;
use super::reply_words::ReplyWords;
use crate::reviews::{DecisionReader, ReviewStanding, held_text_of};
use conclave_core::{Ballot, Cast, DirectiveId, decide};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array, ballot_of};
use serde_json::{Value as Json, json};

/// A stored decision as JSON, as far as a reader may see it: words for those who may read them, and what was
/// withheld as its review has it.
#[must_use]
pub fn decision_view(
    stored: &StoredDecision,
    reader: DecisionReader,
    standing: ReviewStanding,
) -> Json {
    let words = &ReplyWords::new(stored, reader, standing);
    let draft = &stored.leaf.draft;
    let score = stored.public("score").and_then(Value::as_u64);
    let mut view = json!({
        "id": draft.audit.map(|id| uuid::Uuid::from_bytes(id).to_string()),
        "seq": stored.seq,
        "entry_id": stored.leaf.id.to_string(),
        "leaf_hash": hex::encode(stored.leaf_hash),
        "timestamp_ms": stored.leaf.ts_ms,
        "outcome": stored.text("outcome"),
        "action": stored.text("action"),
        "safety_score": score.map(fraction),
        "attempts": stored.number("attempts"),
        "crisis": stored.public("crisis").and_then(Value::as_bool),
        "care": stored.public("care").and_then(Value::as_bool).unwrap_or(false),
        "scrutiny": stored.text("scrutiny"),
        "mode": stored.text("mode"),
        "escalating": stored.public("escalating").and_then(Value::as_bool),
        "drift": stored.public("drift").and_then(Value::as_str),
        "directive": directive_name(stored.public("directive")),
        "model": stored.text("model"),
        "latency_ms": stored.number("latency_ms"),
        "downgraded_from": stored.public("downgraded_from").and_then(Value::as_str),
        "policy_version": stored.public("policy_version").and_then(Value::as_u64),
        "cost_microusd": stored.number("cost"),
        "tokens": {"input": stored.number("tokens_in"), "output": stored.number("tokens_out")},
        "input": {
            "harm": hundredths(stored, "harm"),
            "crisis": hundredths(stored, "crisis_score"),
            "injection": hundredths(stored, "injection"),
            "threshold": hundredths(stored, "threshold"),
        },
        "policy_digest": hex::encode(draft.policy),
        "directives_digest": hex::encode(draft.directives),
        "build": draft.build,
        "delivery": stored.delivery.as_ref().map(delivery),
        "choices": stored.choices().iter().enumerate()
            .map(|(c, choice)| choice_view(stored, c, choice, words)).collect::<Vec<_>>(),
    });
    view["guards"] = guard_views(stored, "guards");
    view["monitored"] = guard_views(stored, "monitored");
    view["erased"] = json!(stored.is_erased());
    if words.are_shown() {
        view["conversation"] = stored.words("request").unwrap_or_default();
        view["who"] = stored.words("who").unwrap_or_default();
        view["reading"] = stored.words("reading").unwrap_or_default();
        view["field_state"] = stored.words("field").unwrap_or_default();
        let over_time = stored.over_time();
        view["trend"] = json!(over_time.trend);
        view["drift_alerts"] = json!(over_time.drift_alerts);
        view["corrections"] = json!(corrections(stored, standing));
    }
    if standing != ReviewStanding::Unasked {
        let text = held_text_of(stored);
        let text = text.as_ref().and_then(|text| text.open_decided(standing, reader));
        view["held"] = json!({"review": standing, "text": text});
    }
    view
}

fn delivery(leaf: &conclave_ledger::Leaf) -> Json {
    let public = &leaf.draft.public;
    json!({
        "status": public.get("status").and_then(Value::as_str),
        "bytes": public.get("bytes").and_then(Value::as_u64),
        "timestamp_ms": leaf.ts_ms,
    })
}

fn hundredths(stored: &StoredDecision, name: &str) -> f64 {
    fraction(stored.number(name).saturating_mul(100))
}

fn choice_view(stored: &StoredDecision, c: usize, choice: &Value, words: &ReplyWords<'_>) -> Json {
    let attempts: Vec<_> = array(choice.get("attempts"))
        .iter()
        .enumerate()
        .map(|(a, attempt)| attempt_view(stored, c, a, attempt, words))
        .collect();
    let mut view = json!({
        "outcome": choice.get("outcome").and_then(Value::as_str),
        "attempts": attempts,
    });
    if words.are_shown() {
        view["delivered"] = words.delivered(c).unwrap_or_default();
    }
    view
}

fn attempt_view(
    stored: &StoredDecision,
    c: usize,
    a: usize,
    attempt: &Value,
    words: &ReplyWords<'_>,
) -> Json {
    let spoken = words.statements(c, a).unwrap_or_default();
    let panels: Vec<_> = array(attempt.get("panels"))
        .iter()
        .enumerate()
        .map(|(p, panel)| panel_view(stored, p, panel, words.are_shown().then_some(&spoken)))
        .collect();
    let mut view = json!({
        "failure": attempt.get("failure").and_then(Value::as_str),
        "stand_in": attempt.get("stand_in").and_then(Value::as_str),
        "directive": directive_name(attempt.get("directive")),
        "panels": panels,
    });
    if words.are_shown() {
        view["candidate"] = words.candidate(c, a).unwrap_or_default();
    }
    view
}

fn directive_name(number: Option<&Value>) -> Option<String> {
    let number = u16::try_from(number.and_then(Value::as_u64)?).ok()?;
    Some(DirectiveId(number).to_string())
}

fn panel_view(stored: &StoredDecision, p: usize, panel: &Value, spoken: Option<&Json>) -> Json {
    let ballots: Vec<_> = array(panel.get("ballots")).iter().filter_map(ballot_of).collect();
    let consensus = replay_consensus(stored, &ballots);
    let votes: Vec<_> = ballots.iter().map(|ballot| ballot_view(ballot, p, spoken)).collect();
    json!({
        "approved": consensus.delivers(),
        "safety_score": fraction(u64::from(consensus.safety_score_e4())),
        "assurance": fraction(u64::from(consensus.assurance_e4())),
        "votes_cast": consensus.votes_cast,
        "bars": consensus.bars,
        "shortfalls": consensus.shortfalls,
        "vetoes": consensus.vetoes,
        "verifying_agents": votes,
    })
}

fn replay_consensus(stored: &StoredDecision, ballots: &[Ballot]) -> conclave_core::Consensus {
    let small = |value: Option<&Value>| {
        value.and_then(Value::as_u64).and_then(|n| u8::try_from(n).ok()).unwrap_or(u8::MAX)
    };
    let bars = array(stored.public("bars"));
    let bars = conclave_core::Bars {
        quorum: small(bars.first()),
        score: small(bars.get(1)),
        assurance: small(bars.get(2)),
    };
    let crisis = stored.public("crisis").and_then(Value::as_bool).unwrap_or(true);
    decide(ballots, bars, crisis)
}

fn ballot_view(ballot: &Ballot, p: usize, spoken: Option<&Json>) -> Json {
    let (vote, confidence, cause) = match ballot.cast {
        Cast::Voted { vote, confidence } => (vote.as_str(), Some(confidence), None),
        Cast::Abstained(cause) => ("abstained", None, Some(cause.as_str())),
        Cast::Excused(cause) => ("excused", None, Some(cause.as_str())),
        Cast::NotApplicable => ("not_applicable", None, None),
    };
    let mut view = json!({
        "agent": &*ballot.seat.verifier,
        "vote": vote,
        "confidence": confidence,
        "abstained_because": cause,
        "priority": ballot.seat.priority.number(),
        "weight": ballot.seat.weight,
        "required": ballot.seat.required,
        "monitor": ballot.seat.monitor,
        "veto": ballot.is_veto(),
        "latency_ms": ballot.latency_ms,
    });
    if ballot.cost.0 > 0 {
        view["cost_usd"] = ballot.cost.dollars().into();
    }
    if let Some(basis) = ballot.basis {
        view["instructions"] = hex::encode(basis).into();
    }
    let said = spoken.and_then(Json::as_array).and_then(|all| {
        all.iter().find(|said| said["panel"] == p && said["verifier"] == *ballot.seat.verifier)
    });
    if let Some(said) = said {
        for field in ["reasoning", "reasons", "flagged_patterns"] {
            view[field] = said[field].clone();
        }
    }
    view
}
