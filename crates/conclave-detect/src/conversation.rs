//! What was seen in a conversation.

use crate::{Reading, Trend};
use serde::Serialize;

/// A conversation's readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversationReading {
    /// The last user message, alone.
    pub last: Reading,
    /// All user messages together: the highest scores, and every signal. Its spans count in the user
    /// messages joined by single line breaks.
    pub whole: Reading,
    /// Whether the risk escalated at any message.
    pub escalating: bool,
    /// How the risk moved.
    pub trend: Trend,
}
