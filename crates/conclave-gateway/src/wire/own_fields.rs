//! What Conclave adds to a reply: one key in the body, and headers.

use conclave_core::{Content, Message, Part};
use conclave_engine::Reply;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::Duration;

/// The value of the `conclave` key.
pub(crate) fn own_fields(reply: &Reply) -> Value {
    let decision = &*reply.decision;
    let categories: Vec<_> = decision.input.categories.keys().map(|c| c.as_str()).collect();
    let mut fields = json!({
        "audit_id": decision.id.to_string(),
        "outcome": decision.outcome.as_str(),
        "action": decision.action.as_str(),
        "verified": decision.outcome.is_verified(),
        "safety_score": decision.safety_score_e4().map(fraction),
        "attempts": decision.attempts(),
        "categories": categories,
        "scrutiny": decision.scrutiny.as_str(),
        "directive": decision.directive.map(|directive| directive.to_string()),
        "receipt_url": format!("/v1/decisions/{}/receipt", decision.id),
        "leaf_hash": reply.leaf_hash.map(hex::encode),
        "cost_usd": decision.cost.dollars(),
        "unjudged": unjudged(&decision.conversation),
    });
    if let Some(model) = &decision.terms.downgraded_from {
        fields["downgraded_from"] = model.as_str().into();
    }
    if let Some(review) = &reply.review_id {
        fields["review_id"] = review.as_str().into();
    }
    fields
}

/// How many kinds of unjudged parts are named, and how long a name may be.
const KINDS_MAX: usize = 16;
const KIND_BYTES_MAX: usize = 64;

/// The kinds of parts that were passed on without being judged: images, sound, files.
pub(crate) fn unjudged(conversation: &[Message]) -> Vec<&str> {
    let parts = conversation.iter().flat_map(|message| match &message.content {
        Content::Parts(parts) => parts.as_slice(),
        Content::Text(_) => &[],
    });
    let mut kinds: Vec<&str> = Vec::new();
    for part in parts {
        if let Part::Unjudged { kind } = part
            && kinds.len() < KINDS_MAX
            && !kinds.contains(&kind.as_str())
        {
            kinds.push(&kind[..kind.floor_char_boundary(KIND_BYTES_MAX)]);
        }
    }
    kinds
}

/// Ten-thousandths as a number within 0..=1.
pub(crate) fn fraction(e4: u16) -> f64 {
    f64::from(e4) / 1e4
}

/// The time Conclave added to the model's.
pub(crate) fn overhead(reply: &Reply) -> Duration {
    reply.decision.latency.saturating_sub(reply.decision.model_time)
}

/// Adds the `x-conclave-*` headers.
pub(crate) fn add_headers(headers: &mut HeaderMap, reply: &Reply) {
    let decision = &*reply.decision;
    let overhead_ms = overhead(reply).as_secs_f64() * 1e3;
    let mut add = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    add("x-conclave-audit-id", decision.id.to_string());
    add("x-conclave-outcome", decision.outcome.as_str().to_owned());
    if let Some(hash) = reply.leaf_hash {
        add("x-conclave-leaf", hex::encode(hash));
    }
    add("x-conclave-overhead-duration-ms", format!("{overhead_ms:.3}"));
    add("x-conclave-response-cost", format!("{:.6}", decision.cost.dollars()));
    if let Some(model) = &decision.terms.downgraded_from {
        add("x-conclave-downgraded-from", model.clone());
    }
    add("x-conclave-applied-guardrails", decision.guards.join(","));
}
