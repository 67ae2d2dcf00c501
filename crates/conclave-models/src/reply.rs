//! Reads a whole chat completion.
//!
//! **Invariant:** what comes out was understood in full; a reply that is not, is no reply. Fields
//! we do not know are dropped.

use crate::calls::{WireCall, WireFunction, read_calls};
use crate::content::Text;
use crate::fault::Fault;
use crate::logprobs::read_logprobs;
use crate::mend::mended;
use crate::usage::Claim;
use conclave_core::{Candidate, FinishReason};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest name of a model that is believed.
const MODEL_BYTES_MAX: usize = 200;

/// A candidate whose usage is still a claim.
#[derive(Debug, PartialEq)]
pub(crate) struct Proposal {
    pub(crate) candidate: Candidate,
    pub(crate) claim: Claim,
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: WireMessage<'a>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<WireCall<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<WireFunction<'a>>,
}

/// Reads the body of a 200.
pub(crate) fn read_reply(bytes: &[u8]) -> Result<Proposal, Fault> {
    match serde_json::from_slice(bytes) {
        Ok(completion) => understand(completion),
        // Some servers write what JSON does not have, in places we hardly read.
        Err(_) => match mended(bytes) {
            Cow::Borrowed(_) => Err(no_completion()),
            Cow::Owned(mended) => {
                understand(serde_json::from_slice(&mended).map_err(|_| no_completion())?)
            }
        },
    }
}

/// The parser's own words are left out: they can quote the reply.
fn no_completion() -> Fault {
    Fault::invalid("the answer is no chat completion")
}

fn understand(completion: Completion<'_>) -> Result<Proposal, Fault> {
    if completion.error.is_some() {
        return Err(Fault::refused("an error with status 200", false));
    }
    let claim = completion.usage.map(Claim::read).unwrap_or_default();
    let choice = completion
        .choices
        .and_then(|choices| choices.into_iter().next())
        .ok_or_else(|| Fault::invalid("the answer has no choices"))?;
    let message = choice.message;
    let calls = message.tool_calls.unwrap_or_default();
    let draft = Draft {
        text: message.content.0,
        refusal: message.refusal,
        tool_calls: read_calls(calls, message.function_call)?,
        finish: choice.finish_reason,
        model: completion.model,
    };
    let mut candidate = draft.into_candidate()?;
    candidate.logprobs = choice.logprobs.and_then(|raw| read_logprobs(raw, &candidate));
    Ok(Proposal { candidate, claim })
}

/// A candidate in parts, from a whole reply or from events.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) text: Option<String>,
    pub(crate) refusal: Option<String>,
    pub(crate) tool_calls: Vec<conclave_core::ToolCall>,
    pub(crate) finish: Option<String>,
    pub(crate) model: Option<String>,
}

impl Draft {
    pub(crate) fn into_candidate(self) -> Result<Candidate, Fault> {
        let finish = finish(self.finish.as_deref(), !self.tool_calls.is_empty());
        let text = self.text.filter(|text| !text.is_empty() || self.refusal.is_none());
        // A refusal is what the person would read, so it is judged as the text.
        let is_refusal = text.is_none() && self.refusal.is_some();
        let text = text.or(self.refusal);
        if text.is_none() && self.tool_calls.is_empty() {
            return Err(nothing_said(finish));
        }
        Ok(Candidate {
            text: text.unwrap_or_default(),
            tool_calls: self.tool_calls,
            finish,
            is_refusal,
            model: self.model.map(model_name).unwrap_or_default(),
            ..Candidate::default()
        })
    }
}

/// The name goes into the ledger and into metrics, so it must be short and plain.
fn model_name(name: String) -> String {
    let is_plain = name.len() <= MODEL_BYTES_MAX && !name.contains(char::is_control);
    if is_plain { name } else { String::new() }
}

fn nothing_said(finish: FinishReason) -> Fault {
    if finish == FinishReason::ContentFilter {
        Fault::refused("its own filter withheld the reply", false).conclusive()
    } else {
        Fault::invalid("the reply neither says nor does anything")
    }
}

fn finish(reason: Option<&str>, has_calls: bool) -> FinishReason {
    match reason {
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        _ if has_calls => FinishReason::ToolCalls,
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
