//! What was used, added up: the port to whoever keeps `ai_usage_events`.
//!
//! **Invariant:** every request counts once, also one that was refused, blocked or failed.

use crate::archive::ArchiveError;
use futures_util::future::BoxFuture;

/// By what sums are parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// The day, in UTC.
    Day,
    /// The model that was asked for.
    Model,
    /// The person, by pseudonym.
    User,
    /// The conversation, by pseudonym.
    Session,
    /// The recipe, or `chat`, `embeddings`, `verify`, `moderations`.
    Recipe,
    /// The API key, by its id.
    Key,
    /// Who runs the model.
    Provider,
    /// How it ended; also `refused` and `abandoned`.
    Outcome,
}

impl UsageBy {
    /// Every way.
    pub const ALL: [Self; 8] = [
        Self::Day,
        Self::Model,
        Self::User,
        Self::Session,
        Self::Recipe,
        Self::Key,
        Self::Provider,
        Self::Outcome,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::User => "user",
            Self::Session => "session",
            Self::Recipe => "recipe",
            Self::Key => "key",
            Self::Provider => "provider",
            Self::Outcome => "outcome",
        }
    }

    /// Finds the way with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == name)
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageAsk {
    /// Whose (see [`conclave_ledger::tenant_number`]).
    pub tenant: u64,
    /// From this time on.
    pub from_ms: u64,
    /// Up to this time, not included.
    pub to_ms: u64,
    /// By what, in this order; one sum of everything where empty.
    pub by: Vec<UsageBy>,
    /// Only of this person.
    pub subject: Option<[u8; 16]>,
    /// Leaves out so many rows.
    pub offset: u32,
    /// At most this many rows.
    pub limit: u32,
}

/// Sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// Requests.
    pub requests: u64,
    /// Those whose reply was a model's.
    pub delivered: u64,
    /// Those that were blocked before a model was asked.
    pub blocked: u64,
    /// Those that no model answered.
    pub failed: u64,
    /// Those that went out with a mark.
    pub flagged: u64,
    /// How often a model was asked.
    pub attempts: u64,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// What all of it cost, in millionths of a dollar.
    pub cost_microusd: u64,
    /// The slowest of the fastest 95 % of those that were decided; absent where none was.
    pub p95_ms: Option<u64>,
}

/// One row: what it is about, in the order that was asked for, and its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageRow {
    /// Days since 1970 as digits, names, or pseudonyms in hexadecimal; empty where there is none.
    pub of: Vec<String>,
    /// The sums.
    pub sums: UsageSums,
}

/// A page of rows, and the sums of all pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePage {
    /// In the order of what they are about.
    pub rows: Vec<UsageRow>,
    /// Of everything in the time, also of rows on other pages.
    pub total: UsageSums,
}

/// Adds up what was used.
pub trait UsageBook: Send + Sync {
    /// Adds up; sees everything that was decided before the call.
    fn sums(&self, ask: UsageAsk) -> BoxFuture<'_, Result<UsagePage, ArchiveError>>;
}
