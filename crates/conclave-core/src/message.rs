//! The conversation so far.

use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The tenant's instructions.
    System,
    /// The tenant's instructions, by the newer name.
    Developer,
    /// The person.
    User,
    /// The model, earlier.
    Assistant,
    /// The result of a tool, or a file: data, never instructions.
    Tool,
}

impl Role {
    /// Whether the tenant wrote it: not judged for harm or crisis.
    #[must_use]
    pub const fn is_tenant(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }

    /// Finds the role with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => return None,
        })
    }

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl Message {
    /// A message of plain text.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: Content::Text(text.into()) }
    }
}

/// What a message holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Several parts.
    Parts(Vec<Part>),
}

impl Content {
    /// All text, parts joined by line breaks.
    #[must_use]
    pub fn as_text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text { text } | Part::Document { text } => Some(text.as_str()),
                    Part::Unjudged { .. } => None,
                })
                .collect::<Vec<_>>()
                .join("\n")
                .into(),
        }
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text, judged.
    Text {
        /// The text.
        text: String,
    },
    /// A file that is text: judged like text, and data for a model rather than anybody's words.
    Document {
        /// The text.
        text: String,
    },
    /// An image, sound or file: passed on and marked, not judged.
    Unjudged {
        /// The type the client gave it.
        kind: String,
    },
}
