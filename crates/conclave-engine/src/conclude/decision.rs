//! Everything that was judged of one turn.

use crate::matter::{Purpose, Remembered};
use conclave_core::{
    Action, Attempt, AuditId, Bars, Candidate, DirectiveId, Finding, GenerationFailure, GuardCode,
    GuardKind, KeyId, Message, MicroUsd, Outcome, Scrutiny, Usage, Verdict, Withheld,
};
use conclave_detect::Reading;
use conclave_ports::UpstreamRefusal;
use conclave_voice::FieldState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// One decision, complete.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// Its id.
    pub id: AuditId,
    /// When the turn began, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// How the turn ended.
    pub outcome: Outcome,
    /// What was done.
    pub action: Action,
    /// The model asked for.
    pub model: String,
    /// Who runs it.
    #[serde(skip)]
    pub provider: Arc<str>,
    /// How strictly it was treated.
    pub scrutiny: Scrutiny,
    /// The bars in force.
    pub bars: Bars,
    /// How the conversation moves and where the person stands, this message included.
    pub remembered: Remembered,
    /// How the input was read.
    pub input: Arc<Reading>,
    /// The directive a refusal rests on.
    pub directive: Option<DirectiveId>,
    /// How the turn was sensed.
    pub field: Option<Arc<FieldState>>,
    /// The conversation so far.
    pub conversation: Arc<[Message]>,
    /// One deliberation for each reply that was asked for.
    pub choices: Vec<Choice>,
    /// What the whole turn cost.
    pub cost: MicroUsd,
    /// Tokens of the whole turn.
    pub usage: Usage,
    /// Under which terms it was paid for.
    pub terms: Terms,
    /// What it was asked for.
    #[serde(skip)]
    pub purpose: Purpose,
    /// Why a guard refused it, where that is how it ended.
    pub refusal: Option<GuardCode>,
    /// With which key it was asked.
    #[serde(skip)]
    pub key: Option<KeyId>,
    /// Which guards looked at it.
    pub guards: Vec<GuardKind>,
    /// What guards found, where they did not just let it pass.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub latency: Duration,
    /// How much of that the model took.
    pub model_time: Duration,
}

/// Under which terms a turn was paid for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// The version of the tenant's own policy; absent where it has none.
    pub policy_version: Option<u64>,
    /// The model that was asked for, where a cheaper one was asked because money became scarce.
    pub downgraded_from: Option<String>,
}

/// One reply's deliberation and what was said in the end.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// How it ended.
    pub outcome: Outcome,
    /// The verdict of the deliberation; absent where none was held.
    pub verdict: Option<Verdict>,
    /// Everything that was tried.
    pub attempts: Vec<Attempt>,
    /// What the person gets.
    pub delivered: Delivered,
    /// How long the model took over all attempts.
    pub model_time: Duration,
    /// What left before the whole was decided, as a text and as windows.
    #[serde(skip)]
    pub released: String,
    /// The windows.
    pub windows: Vec<Window>,
    /// Whether a sentence that offers help was added to the reply.
    pub has_care: bool,
    /// What the provider said of the request, where it refused it and that ended the deliberation.
    #[serde(skip)]
    pub upstream: Option<UpstreamRefusal>,
}

/// A part of a reply that left once the panel had passed it with all text before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What its digest in the ledger is salted with; sealed with the words.
    pub salt: [u8; 32],
    /// The hash of the leaf that was durable before it left.
    pub leaf_hash: [u8; 32],
}

/// What the person gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// The text.
    pub text: String,
    /// Actions, only of a verified candidate.
    pub tool_calls: Vec<conclave_core::ToolCall>,
    /// Why the model stopped; `content_filter` where the text is ours.
    pub finish: conclave_core::FinishReason,
    /// The delivered candidate's tokens.
    pub usage: Usage,
    /// Whether the text is the model's own refusal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refusal: bool,
    /// How likely the model held each piece of the text, as JSON in OpenAI's form; kept nowhere.
    #[serde(skip)]
    pub logprobs: Option<String>,
}

impl From<Candidate> for Delivered {
    fn from(candidate: Candidate) -> Self {
        Self {
            text: candidate.text,
            tool_calls: candidate.tool_calls,
            finish: candidate.finish,
            usage: candidate.usage,
            is_refusal: candidate.is_refusal,
            logprobs: candidate.logprobs,
        }
    }
}

impl Delivered {
    /// How likely the model held each piece of the text, where the text is still the model's own to the byte:
    /// nothing was replaced in it and nothing added to it.
    #[must_use]
    pub fn own_logprobs(&self) -> Option<Value> {
        let stated: Value = serde_json::from_str(self.logprobs.as_deref()?).ok()?;
        let pieces = if self.is_refusal { &stated["refusal"] } else { &stated["content"] };
        let mut text = Vec::new();
        for piece in pieces.as_array()? {
            match piece["bytes"].as_array() {
                Some(bytes) => {
                    text.extend(bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()));
                }
                None => text.extend_from_slice(piece["token"].as_str()?.as_bytes()),
            }
        }
        (text == self.text.as_bytes()).then_some(stated)
    }
}

impl Decision {
    /// How often a model was asked, over all choices.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.choices.iter().map(|c| u32::try_from(c.attempts.len()).unwrap_or(u32::MAX)).sum()
    }

    /// The safety score of the last panel of the worst choice, in ten-thousandths.
    #[must_use]
    pub fn safety_score_e4(&self) -> Option<u16> {
        self.choices.iter().filter_map(Choice::safety_score_e4).min()
    }

    /// Whether a sentence that offers help was added to a reply.
    #[must_use]
    pub fn has_care(&self) -> bool {
        self.choices.iter().any(|choice| choice.has_care)
    }

    /// Why the model could not answer, if that is how it ended.
    #[must_use]
    pub fn failure(&self) -> Option<GenerationFailure> {
        self.choices.iter().find_map(|choice| match choice.verdict {
            Some(Verdict::Withhold(Withheld::Failed(failure))) => Some(failure),
            _ => None,
        })
    }
}

impl Decision {
    /// What the provider said of the request, where it refused it and nobody else answered.
    #[must_use]
    pub fn upstream_refusal(&self) -> Option<&UpstreamRefusal> {
        let refused = self.failure() == Some(GenerationFailure::Refused);
        self.choices.iter().find_map(|choice| choice.upstream.as_ref()).filter(|_| refused)
    }
}

impl Choice {
    /// A choice on which nobody deliberated.
    #[must_use]
    pub fn undeliberated(outcome: Outcome, delivered: Delivered) -> Self {
        Self {
            outcome,
            verdict: None,
            attempts: Vec::new(),
            delivered,
            model_time: Duration::ZERO,
            released: String::new(),
            windows: Vec::new(),
            has_care: false,
            upstream: None,
        }
    }

    /// The safety score of its last panel, in ten-thousandths.
    #[must_use]
    pub fn safety_score_e4(&self) -> Option<u16> {
        let panel = self.attempts.iter().rev().find_map(|attempt| attempt.panels.last())?;
        Some(panel.consensus.safety_score_e4())
    }
}
