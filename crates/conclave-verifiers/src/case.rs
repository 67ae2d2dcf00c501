//! What a verifier is shown.

use conclave_core::{Candidate, Message, Role, TurnContext};
use conclave_detect::Reading;
use std::sync::Arc;

/// One candidate in the light of its conversation.
///
/// **Invariant:** it holds no ballot, so that verifiers are blind to each other by type.
#[derive(Clone, Debug)]
pub struct Case {
    /// The conversation so far, without the candidate.
    pub conversation: Arc<[Message]>,
    /// The reply under judgement.
    pub candidate: Candidate,
    /// The circumstances.
    pub context: TurnContext,
    /// What the person's words were read as: the last user message in its conversation.
    pub input: Arc<Reading>,
    /// What the reply's words were read as.
    pub reply: Reading,
}

impl Case {
    /// The person's last words; empty when nobody has spoken.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        self.conversation
            .iter()
            .rev()
            .find(|message| message.role == Role::User)
            .map(|message| message.content.as_text().into_owned())
            .unwrap_or_default()
    }

    /// Which exchange this is, from 1: how often the person has spoken.
    #[must_use]
    pub fn exchange(&self) -> usize {
        self.conversation.iter().filter(|message| message.role == Role::User).count().max(1)
    }

    /// Whether the candidate asks for an action.
    #[must_use]
    pub fn has_action(&self) -> bool {
        !self.candidate.tool_calls.is_empty()
    }
}
