//! One request, parsed and permitted.

use conclave_core::{KeyId, Message, Role, SessionId, TenantId, TurnContext, UserId};
use serde_json::{Map, Value};
use std::sync::Arc;

/// One request: who asks, what was said so far, and in which circumstances.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Whose application.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
    /// Which person; anonymous when absent.
    pub user: Option<UserId>,
    /// Which conversation.
    pub session: SessionId,
    /// The model asked for.
    pub model: String,
    /// How many replies are wanted.
    pub choices: u8,
    /// The conversation as it is judged.
    pub conversation: Arc<[Message]>,
    /// The client's request in OpenAI chat form, for the provider.
    pub body: Arc<Map<String, Value>>,
    /// The circumstances.
    pub context: TurnContext,
    /// What the interface wants back later; sealed beside the decision, and forgotten with it.
    pub kept: Option<Arc<Value>>,
}

impl Turn {
    /// The person's last words.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        last_of(&self.conversation, Role::User)
    }
}

pub(crate) fn last_of(conversation: &[Message], role: Role) -> String {
    conversation
        .iter()
        .rev()
        .find(|message| message.role == role)
        .map(|message| message.content.as_text().into_owned())
        .unwrap_or_default()
}

/// How much of what was said before a reply is looked at with it, in bytes from the end.
const SAID_BYTES_MAX: usize = 6000;

/// What the person and the model said so far: the light in which a reply is read.
pub(crate) fn said_before(conversation: &[Message]) -> String {
    let spoken =
        conversation.iter().filter(|turn| matches!(turn.role, Role::User | Role::Assistant));
    let texts: Vec<_> = spoken.map(|turn| turn.content.as_text()).collect();
    let mut said = texts.join("\n");
    let start = said.ceil_char_boundary(said.len().saturating_sub(SAID_BYTES_MAX));
    said.split_off(start)
}
