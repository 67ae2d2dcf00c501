//! What somebody has agreed to, and whether that covers what is asked.

use serde::{Deserialize, Serialize};

/// What would be done with the words of somebody, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentAsk {
    /// Whose words: a pseudonym, or the id of the storyteller as the tenant knows them.
    pub subject: String,
    /// Everything that would be done, such as `research`; all of it must be covered.
    pub scopes: Vec<String>,
    /// What for; consent is given for a purpose.
    pub purpose: String,
    /// Who would be given the result, if somebody else.
    pub party: Option<String>,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Whether it is covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConsentState {
    /// By this record.
    Granted {
        /// Its id.
        record: String,
    },
    /// Nobody has agreed to anything.
    Missing,
    /// It was, and was taken back.
    Withdrawn {
        /// The record's id.
        record: String,
        /// When.
        at_ms: u64,
    },
    /// It was, for a time that is over.
    Expired {
        /// The record's id.
        record: String,
        /// When it ended.
        at_ms: u64,
    },
    /// There is consent, but not to this.
    NotCovered {
        /// What is missing: scopes, the purpose or the party, in plain words.
        missing: Vec<String>,
    },
}

impl ConsentState {
    /// Whether it may be done.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        matches!(self, Self::Granted { .. })
    }
}
