//! What a verifier is shown.

use crate::acts::{Acts, Lexicon};
use conclave_core::{Candidate, Message, Role, TurnContext};
use conclave_detect::Reading;
use std::sync::{Arc, OnceLock};

/// One candidate in the light of its conversation.
///
/// **Invariant:** it holds no ballot, so that verifiers are blind to each other by type.
/// **Invariant:** a clone forgets what was read, so that a clone with another candidate is read
/// anew.
#[derive(Debug)]
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
    read: OnceLock<Arc<Acts>>,
}

impl Clone for Case {
    fn clone(&self) -> Self {
        Self::new(
            Arc::clone(&self.conversation),
            self.candidate.clone(),
            self.context.clone(),
            Arc::clone(&self.input),
            self.reply.clone(),
        )
    }
}

impl Case {
    /// Puts a case together; nothing is read before a verifier asks.
    #[must_use]
    pub const fn new(
        conversation: Arc<[Message]>,
        candidate: Candidate,
        context: TurnContext,
        input: Arc<Reading>,
        reply: Reading,
    ) -> Self {
        Self { conversation, candidate, context, input, reply, read: OnceLock::new() }
    }

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

    /// What the reply does and what the person's turn is, read once for every verifier that shares
    /// a lexicon.
    pub(crate) fn acts(&self, lexicon: &Arc<Lexicon>) -> Arc<Acts> {
        let read = self.read.get_or_init(|| Arc::new(Acts::read(self, lexicon)));
        if read.is_of(lexicon) {
            return Arc::clone(read);
        }
        Arc::new(Acts::read(self, lexicon))
    }
}
