//! The words of replies as somebody reads them: what was proposed, what was said about it, what was sent.
//!
//! **Invariant:** nothing of a withheld reply is read here while its review keeps it closed, and neither are
//! the reasonings about it, which may quote it.

use crate::reviews::{DecisionReader, ReviewStanding, is_withheld_choice};
use conclave_ledger::Value;
use conclave_ports::StoredDecision;
use serde_json::Value as Json;

/// The words of a decision's replies, for one reader.
pub(super) struct ReplyWords<'a> {
    stored: &'a StoredDecision,
    reader: DecisionReader,
    standing: ReviewStanding,
}

impl<'a> ReplyWords<'a> {
    pub(super) const fn new(
        stored: &'a StoredDecision,
        reader: DecisionReader,
        standing: ReviewStanding,
    ) -> Self {
        Self { stored, reader, standing }
    }

    /// Whether the reader may read words at all.
    pub(super) fn are_shown(&self) -> bool {
        self.reader == DecisionReader::Words
    }

    /// What a model proposed.
    pub(super) fn candidate(&self, c: usize, a: usize) -> Option<Json> {
        self.is_open(c).then(|| self.stored.words(&format!("candidate.{c}.{a}"))).flatten()
    }

    /// What verifiers said beside their votes: their reasons from the catalogue, and what they wrote only
    /// where the reply itself may be read.
    pub(super) fn statements(&self, c: usize, a: usize) -> Option<Json> {
        if !self.are_shown() {
            return None;
        }
        let mut said = self.stored.words(&format!("votes.{c}.{a}"))?;
        if !self.is_open(c) {
            for one in said.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
                one.remove("reasoning");
                one.remove("flagged_patterns");
            }
        }
        Some(said)
    }

    /// What was sent. Held runs of earlier versions have their result here, which was not.
    pub(super) fn delivered(&self, c: usize) -> Option<Json> {
        if !self.are_shown() || is_unsent_result(self.stored, c) {
            return None;
        }
        self.stored.words(&format!("delivered.{c}"))
    }

    fn is_open(&self, c: usize) -> bool {
        // A choice that is not there has nothing to hide; one whose outcome cannot be read is withheld.
        let is_withheld = self.stored.choices().get(c).is_some_and(is_withheld_choice);
        self.are_shown() && !(is_withheld && self.standing.is_closed())
    }
}

/// Whether what stands as sent is the result of a run that did not pass.
pub(super) fn is_unsent_result(stored: &StoredDecision, c: usize) -> bool {
    let is_run = stored.public("recipe").is_some_and(|recipe| *recipe != Value::Null);
    is_run && stored.choices().get(c).is_none_or(is_withheld_choice)
}
