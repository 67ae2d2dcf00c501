//! What a model proposes to say or do.

use crate::MicroUsd;
use serde::{Deserialize, Serialize};

/// One reply a model proposes: text, tool calls, both, or silence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text; empty is silence.
    pub text: String,
    /// Actions it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    #[serde(default)]
    pub finish: FinishReason,
    /// The model that wrote it, as the provider names it.
    #[serde(default)]
    pub model: String,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Usage,
    /// Who wrote it in place of the model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<StandIn>,
    /// Whether it was cut off while it was being written: nobody saw what its provider counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_off: bool,
    /// Whether the text is the model's own refusal, said where its interface has a place for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refusal: bool,
    /// How likely it held each piece of the text, as JSON in OpenAI's form; kept nowhere.
    #[serde(skip)]
    pub logprobs: Option<String>,
}

impl Candidate {
    /// Neither says nor does anything.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        self.text.trim().is_empty() && self.tool_calls.is_empty()
    }
}

/// A model that answered because the one that was asked for could not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// The name it is offered under.
    pub model: String,
    /// What its reply cost, at its own price.
    pub cost: MicroUsd,
}

/// One action a candidate asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// It ran out of tokens.
    Length,
    /// It wants tools to be called.
    ToolCalls,
    /// The provider's own filter stopped it.
    ContentFilter,
}

impl FinishReason {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// Tokens counted by the provider, or by us where it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
}

/// Bytes of text that are counted as one token where nobody counted better.
const BYTES_PER_TOKEN: usize = 4;

impl Usage {
    /// How many tokens a text of so many bytes is taken for: a quarter of them, rounded up.
    #[must_use]
    pub const fn tokens_of(bytes: usize) -> u64 {
        bytes.div_ceil(BYTES_PER_TOKEN) as u64
    }

    /// Both together, stopping at the largest number.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}
