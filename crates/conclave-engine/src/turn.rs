//! One request, parsed and permitted.

use conclave_core::{KeyId, Message, Role, SessionId, TenantId, TurnContext, UserId};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
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

/// What tools and files brought last: everything since the person spoke, and the whole of the last block,
/// because several may have been asked at once. What was brought before was read in its own turn.
pub(crate) fn brought(conversation: &[Message]) -> Vec<String> {
    let is_tool = |message: &Message| message.role == Role::Tool;
    let Some(last) = conversation.iter().rposition(is_tool) else { return Vec::new() };
    let block = conversation[..last].iter().rposition(|one| !is_tool(one)).map_or(0, |at| at + 1);
    let spoke = conversation.iter().rposition(|message| message.role == Role::User);
    let start = spoke.map_or(block, |at| block.min(at + 1));
    let all = conversation[start..=last].iter().filter(|message| is_tool(message));
    let mut texts: Vec<_> = all.map(|one| one.content.as_text().into_owned()).collect();
    texts.split_off(texts.len().saturating_sub(BROUGHT_MAX))
}

/// How many of them are read.
const BROUGHT_MAX: usize = 64;

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

/// The same conversation is sensed and answered the same way.
pub(crate) fn seed_of(turn: &Turn) -> u64 {
    let mut hash = Sha256::new();
    hash.update(turn.session.as_str());
    hash.update(turn.conversation.len().to_be_bytes());
    let digest = hash.finalize();
    digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
}
