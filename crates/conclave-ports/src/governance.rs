//! What the guards ask of those who keep consent, protocols and reviews.

use conclave_core::{AuditId, TenantId};
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview};
use futures_util::future::{BoxFuture, FutureExt, ready};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;

/// Why a guard got no answer; whatever asked is held then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct GovernError(pub String);

/// How long somebody who is asked may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// An answer, or why there is none: whoever takes too long or panics has not answered, and must not take
/// down who asked.
///
/// # Errors
/// When there is no answer.
pub async fn answer_in_time<T>(
    asked: impl Future<Output = Result<T, GovernError>> + Send,
) -> Result<T, GovernError> {
    match timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => Err(GovernError("who was asked panicked".to_owned())),
        Err(_late) => Err(GovernError("who was asked did not answer in time".to_owned())),
    }
}

/// Where links lead under which people may ask why; the rest is a token.
pub const WHY_PATH: &str = "/why/";

/// What webhooks can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// Something waits for a person.
    #[serde(rename = "review.created")]
    ReviewCreated,
    /// Half of the time of a review is over, or it is due.
    #[serde(rename = "review.reminder")]
    ReviewReminder,
    /// A review is overdue, and the council is called.
    #[serde(rename = "review.overdue")]
    ReviewOverdue,
    /// A review was decided.
    #[serde(rename = "review.decided")]
    ReviewDecided,
    /// An appeal was decided.
    #[serde(rename = "appeal.decided")]
    AppealDecided,
    /// A budget is nearly or wholly spent.
    #[serde(rename = "budget.alert")]
    BudgetAlert,
    /// The latest runs of a recipe take longer than they should.
    #[serde(rename = "latency.alert")]
    LatencyAlert,
    /// The ledger is in trouble.
    #[serde(rename = "ledger.alert")]
    LedgerAlert,
    /// A person is drifting.
    #[serde(rename = "drift.alert")]
    DriftAlert,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::ReviewCreated,
        Self::ReviewReminder,
        Self::ReviewOverdue,
        Self::ReviewDecided,
        Self::AppealDecided,
        Self::BudgetAlert,
        Self::LatencyAlert,
        Self::LedgerAlert,
        Self::DriftAlert,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReviewCreated => "review.created",
            Self::ReviewReminder => "review.reminder",
            Self::ReviewOverdue => "review.overdue",
            Self::ReviewDecided => "review.decided",
            Self::AppealDecided => "appeal.decided",
            Self::BudgetAlert => "budget.alert",
            Self::LatencyAlert => "latency.alert",
            Self::LedgerAlert => "ledger.alert",
            Self::DriftAlert => "drift.alert",
        }
    }

    /// Finds the kind with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Something that happened, without a word of anybody.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// What.
    pub kind: EventKind,
    /// Ids, numbers and names of closed lists.
    pub data: Value,
}

/// Knows what people and communities have said.
pub trait Governance: Send + Sync {
    /// Whether somebody has agreed, as of the latest change.
    fn consent<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>>;
    /// What the protocols of the tenant's communities say.
    fn look<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>>;
    /// Has something wait for a person; durable when this resolves. Returns the review's id.
    fn submit(&self, review: NewReview) -> BoxFuture<'_, Result<String, GovernError>>;
    /// Whether somebody could decide for a community; what nobody can decide is refused, not held for
    /// ever.
    fn has_elders<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _community: &'a str,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        Box::pin(ready(Ok(true)))
    }
    /// Whether a tenant has anybody who decides what belongs to no community. Nobody is told that a person
    /// will look where there is none.
    fn has_reviewers<'a>(
        &'a self,
        _tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        Box::pin(ready(Ok(true)))
    }
    /// A link under which the person may ask why about a decision; `None` where none can be made.
    fn why_token(&self, _tenant: &TenantId, _audit: AuditId) -> Option<String> {
        None
    }

    /// Tells the webhooks of a tenant that something happened; queued durably when this resolves.
    fn announce<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _announcement: Announcement,
    ) -> BoxFuture<'a, Result<(), GovernError>> {
        Box::pin(ready(Ok(())))
    }
}
