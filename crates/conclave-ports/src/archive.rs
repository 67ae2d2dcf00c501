//! The read side of the ledger.

use conclave_core::AuditId;
use futures_util::future::BoxFuture;
use serde::Serialize;
use thiserror::Error;

/// One entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its position in the log.
    pub seq: u64,
    /// The exact bytes of the leaf.
    pub leaf: Vec<u8>,
    /// The body beside it, opened; absent when there is none or it was erased.
    pub body: Option<Vec<u8>>,
}

/// Whose decision is looked for, by pseudonym.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of a conversation.
    Session([u8; 16]),
    /// That of a person.
    Subject([u8; 16]),
}

/// Which decisions to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct DecisionFilter {
    /// Only this tenant (see [`conclave_ledger::tenant_number`]).
    pub tenant: Option<u64>,
    /// Only this outcome.
    pub outcome: Option<String>,
    /// Only this action.
    pub action: Option<String>,
    /// Only this subject pseudonym.
    pub subject: Option<[u8; 16]>,
    /// Only decisions older than this one.
    pub before: Option<AuditId>,
    /// At most this many.
    pub limit: u32,
}

/// One line of the list of decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionRow {
    /// Its id.
    pub id: AuditId,
    /// Position in the log.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// How it ended.
    pub outcome: String,
    /// What was done.
    pub action: String,
    /// In `0..=1`; absent where no panel sat.
    pub safety_score: Option<f64>,
    /// How often a model was asked.
    pub attempts: u32,
    /// Whether the person was in crisis.
    pub crisis: bool,
    /// How strictly it was treated.
    pub scrutiny: String,
    /// The model asked for.
    pub model: String,
    /// How long the turn took.
    pub latency_ms: u32,
    /// Whose, see [`conclave_ledger::tenant_number`].
    #[serde(skip)]
    pub tenant: u64,
}

/// Counts for the overview.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Decisions by outcome.
    pub outcomes: Vec<(String, u64)>,
    /// Decisions by hour: (hour start in ms, delivered, withheld).
    pub hours: Vec<(u64, u64, u64)>,
    /// Entries in the log.
    pub entries: u64,
    /// The root of the log's tree.
    pub root: [u8; 32],
}

/// Why the archive could not answer.
#[derive(Clone, Debug, Error)]
#[error("the archive could not answer: {0}")]
pub struct ArchiveError(pub String);

/// The read side of the ledger. Reads see everything appended before the call.
pub trait Archive: Send + Sync {
    /// All entries of one decision (the decision first, then its delivery), of this tenant only.
    fn find(
        &self,
        tenant: u64,
        id: AuditId,
    ) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>>;
    /// A page of decisions, newest first.
    fn list(&self, filter: DecisionFilter)
    -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>>;
    /// The latest decision of a conversation or a person of this tenant, or the latest at a position under
    /// `before`; needs not see the newest entries.
    fn latest(
        &self,
        tenant: u64,
        whose: Whose,
        before: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>>;
    /// Counts since a time, for this tenant or all.
    fn tally(
        &self,
        tenant: Option<u64>,
        since_ms: u64,
    ) -> BoxFuture<'_, Result<Tally, ArchiveError>>;
    /// Whether the store behind it answers; the sentence says what is wrong.
    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>>;
}
