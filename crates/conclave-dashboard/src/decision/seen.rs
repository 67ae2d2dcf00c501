//! The engine's view of a decision, with types.
//!
//! **Invariant:** what stands in the leaf must have its form; what stands beside it, in the words,
//! may be missing or of any form without spoiling the page.

use serde::Deserialize;
use serde_json::Value as Json;

/// The whole view.
#[derive(Deserialize)]
pub(super) struct Seen {
    pub(super) id: Option<String>,
    pub(super) seq: u64,
    pub(super) entry_id: String,
    pub(super) leaf_hash: String,
    pub(super) timestamp_ms: u64,
    pub(super) outcome: String,
    pub(super) action: String,
    pub(super) safety_score: Option<f64>,
    pub(super) attempts: u64,
    pub(super) crisis: Option<bool>,
    pub(super) scrutiny: String,
    pub(super) mode: String,
    pub(super) model: String,
    pub(super) latency_ms: u64,
    pub(super) cost_microusd: u64,
    pub(super) tokens: Tokens,
    pub(super) input: Scores,
    pub(super) policy_digest: String,
    pub(super) directives_digest: String,
    pub(super) build: String,
    #[serde(default)]
    pub(super) directive: Option<String>,
    pub(super) delivery: Option<Delivery>,
    #[serde(default)]
    pub(super) guards: Vec<Guarded>,
    #[serde(default)]
    pub(super) monitored: Vec<Guarded>,
    pub(super) choices: Vec<Choice>,
    #[serde(default)]
    pub(super) conversation: Json,
    #[serde(default)]
    pub(super) who: Json,
    #[serde(default)]
    pub(super) reading: Json,
    #[serde(default)]
    pub(super) field_state: Json,
}

/// Tokens of the whole turn.
#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
}

/// How the input was read.
#[derive(Deserialize)]
pub(super) struct Scores {
    pub(super) harm: f64,
    pub(super) crisis: f64,
    pub(super) injection: f64,
    pub(super) threshold: f64,
}

/// What a guard did.
#[derive(Deserialize)]
pub(super) struct Guarded {
    #[serde(default)]
    pub(super) guard: Option<String>,
    #[serde(default)]
    pub(super) outcome: Option<String>,
}

/// What became of the reply.
#[derive(Deserialize)]
pub(super) struct Delivery {
    pub(super) status: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) timestamp_ms: u64,
}

/// One reply's deliberation.
#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) outcome: Option<String>,
    pub(super) attempts: Vec<Attempt>,
    #[serde(default)]
    pub(super) delivered: Json,
}

/// One attempt.
#[derive(Deserialize)]
pub(super) struct Attempt {
    pub(super) failure: Option<String>,
    pub(super) panels: Vec<Panel>,
    #[serde(default)]
    pub(super) candidate: Json,
}

/// One run of the panel.
#[derive(Deserialize)]
pub(super) struct Panel {
    pub(super) approved: bool,
    pub(super) safety_score: f64,
    pub(super) assurance: f64,
    pub(super) votes_cast: u64,
    pub(super) bars: Bars,
    pub(super) shortfalls: Vec<String>,
    pub(super) verifying_agents: Vec<Ballot>,
}

/// What had to be reached, the last two in hundredths.
#[derive(Deserialize)]
pub(super) struct Bars {
    pub(super) quorum: u8,
    pub(super) score: u8,
    pub(super) assurance: u8,
}

/// One verifier's ballot.
#[derive(Deserialize)]
pub(super) struct Ballot {
    pub(super) agent: String,
    pub(super) vote: String,
    pub(super) confidence: Option<f64>,
    pub(super) abstained_because: Option<String>,
    pub(super) priority: u8,
    pub(super) weight: u64,
    pub(super) required: bool,
    pub(super) monitor: bool,
    pub(super) veto: bool,
    pub(super) latency_ms: u64,
    #[serde(default)]
    pub(super) reasoning: Json,
    #[serde(default)]
    pub(super) reasons: Json,
    #[serde(default)]
    pub(super) flagged_patterns: Json,
}

/// The strings of an array; none of anything else.
pub(super) fn strings(value: &Json) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Json::as_str)
}
