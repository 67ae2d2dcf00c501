//! What was used, day by day: the port to whoever adds it up.

use crate::ports::ArchiveError;
use futures_util::future::BoxFuture;

/// What was used of one model on one day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageRow {
    /// Days since 1970-01-01.
    pub day: u32,
    /// The model that was asked.
    pub model: String,
    /// Requests that were decided.
    pub requests: u64,
    /// Those whose reply was a model's.
    pub delivered: u64,
    /// Those that were blocked before a model was asked.
    pub blocked: u64,
    /// Those that no model answered.
    pub failed: u64,
    /// How often a model was asked.
    pub attempts: u64,
    /// What all of it cost, in millionths of a dollar.
    pub cost_microusd: u64,
}

/// Adds up what was used.
pub trait UsageBook: Send + Sync {
    /// A tenant's days from `from_ms` up to `to_ms`, oldest first, by model; sees everything that was
    /// decided before the call.
    fn daily(
        &self,
        tenant: u64,
        from_ms: u64,
        to_ms: u64,
    ) -> BoxFuture<'_, Result<Vec<UsageRow>, ArchiveError>>;
}
