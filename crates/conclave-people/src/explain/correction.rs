//! How a reply was mended: what was first proposed, what was objected to, what was said instead, and what
//! could be learned from it.
//!
//! **Invariant:** read from the ledger alone, so that a correction can be shown as long as its words are kept.
//! **Invariant:** of a reply that people keep closed there is no correction: it would show what was proposed.
//! **Invariant:** a proposal names reasons of the catalogue, never what anybody said.

use super::reply_words::ReplyWords;
use crate::reviews::{DecisionReader, ReviewStanding};
use conclave_core::{Outcome, Reason};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array, objections};
use serde::Serialize;
use serde_json::Value as Json;

/// One mended reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// Which of the replies that were asked for.
    pub choice: usize,
    /// What the model first proposed.
    pub original: String,
    /// What was objected to on the way, by whom.
    pub concerns: Vec<Concern>,
    /// What was delivered in the end; absent where no reply was good enough.
    pub corrected: Option<String>,
    /// What could be learned; a person decides whether it is.
    pub learning_proposal: LearningProposal,
}

/// One objection to one attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Concern {
    /// From 0: which attempt.
    pub attempt: usize,
    /// Who objected.
    pub verifier: String,
    /// Its reasons, from the catalogue.
    pub reasons: Vec<Reason>,
    /// What it said about them.
    pub reasoning: String,
}

/// What a correction suggests for later prompts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LearningProposal {
    /// `prompt_hint` where a later attempt passed, `review` where none did.
    pub kind: &'static str,
    /// What the model should have been told from the start.
    pub reasons: Vec<Reason>,
    /// The same in plain words.
    pub hints: Vec<&'static str>,
    /// Always `proposed`: nothing is learned without a person.
    pub status: &'static str,
}

/// The corrections of a decision: one for each reply that was not good enough at first.
#[must_use]
pub fn corrections(stored: &StoredDecision, standing: ReviewStanding) -> Vec<Correction> {
    let words = ReplyWords::new(stored, DecisionReader::Words, standing);
    let choices = stored.choices().iter().enumerate();
    choices.filter_map(|(c, choice)| correction(stored, &words, c, choice)).collect()
}

fn correction(
    stored: &StoredDecision,
    words: &ReplyWords<'_>,
    c: usize,
    choice: &Value,
) -> Option<Correction> {
    let attempts = array(choice.get("attempts")).len();
    let outcome = choice.get("outcome").and_then(Value::as_str).and_then(Outcome::parse);
    let passed = outcome.is_some_and(Outcome::is_verified);
    // The attempt that passed drew no objection that mattered; of a withheld reply all did.
    let objected = if passed { attempts.saturating_sub(1) } else { attempts };
    let text = |words: Option<Json>| Some(words?["text"].as_str()?.to_owned());
    let original = (0..objected).find_map(|a| text(words.candidate(c, a)))?;
    let concerns: Vec<_> = (0..objected).flat_map(|a| concerns(stored, c, a)).collect();
    let mut reasons: Vec<Reason> = Vec::new();
    for reason in concerns.iter().flat_map(|concern| &concern.reasons) {
        if !reasons.contains(reason) {
            reasons.push(*reason);
        }
    }
    Some(Correction {
        choice: c,
        original,
        concerns,
        corrected: passed.then(|| text(words.delivered(c))).flatten(),
        learning_proposal: LearningProposal {
            kind: if passed { "prompt_hint" } else { "review" },
            hints: reasons.iter().map(|reason| reason.plain()).collect(),
            reasons,
            status: "proposed",
        },
    })
}

fn concerns(stored: &StoredDecision, c: usize, a: usize) -> Vec<Concern> {
    let concern = |said: &Json| {
        let reasons = reasons_named(&said["reasons"]);
        let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
        (!reasons.is_empty()).then(|| Concern {
            attempt: a,
            verifier: text("verifier"),
            reasons,
            reasoning: text("reasoning"),
        })
    };
    objections(stored, c, a).iter().filter_map(concern).collect()
}

/// The reasons of the catalogue that a list of codes names.
pub(super) fn reasons_named(codes: &Json) -> Vec<Reason> {
    let codes = codes.as_array().into_iter().flatten().filter_map(Json::as_str);
    codes.filter_map(|code| Reason::ALL.iter().copied().find(|one| one.code() == code)).collect()
}
