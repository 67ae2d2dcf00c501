//! Handing out what was kept: what a decision must carry for it, and who sees to it.
//!
//! The engine writes decisions and the use-cases of people read them back. The names they agree on stand
//! here, so that neither needs the other.

use crate::governance::GovernError;
use crate::ledger::AppendError;
use crate::stored::StoredDecision;
use conclave_core::{AuditId, TenantId};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name under which a decision keeps the review it needs.
pub const REVIEW_WORDS: &str = "review";
/// The name under which a decision keeps what waits for a person. Only a decided review opens it; whatever
/// else reads a decision passes it over.
pub const HELD_WORDS: &str = "held";
/// The name under which a decision keeps its [`ConsentBasis`].
pub const CONSENT_WORDS: &str = "consented";
/// What a person agrees to who agrees to conversations.
pub const CHAT_SCOPE: &str = "chat";
/// What conversations are for.
pub const CHAT_PURPOSE: &str = "conversation";

/// The id of the review that holds what a decision would have said. It follows from the decision, so that
/// nobody can open a second one.
#[must_use]
pub fn review_id(audit: AuditId) -> String {
    format!("rev_{}", audit.0.simple())
}

/// Whose consent a decision rested on, and to what. It is asked for again before its words leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentBasis {
    /// Everybody who had to agree.
    pub subjects: Vec<String>,
    /// To what.
    pub scopes: Vec<String>,
    /// For what.
    pub purpose: String,
    /// Who is given the result, where it was said.
    #[serde(default)]
    pub party: Option<String>,
}

/// Why a person's consent does not cover something now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentGap {
    /// There is none, not for this, or not any more.
    Required,
    /// The person has taken it back.
    Withdrawn,
}

/// Why something that was approved is not handed out after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Somebody's consent is missing.
    Consent(ConsentGap),
    /// The protocols could not be asked when it was made. They answer now, and only elders may decide.
    Elders,
}

/// Why it is not known whether something may be handed out, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandOutError {
    /// Somebody who must be asked did not answer.
    #[error(transparent)]
    Unanswered(#[from] GovernError),
    /// It could not be recorded, so it did not leave.
    #[error(transparent)]
    Unrecorded(#[from] AppendError),
}

/// Hands out what was kept.
pub trait HandOut: Send + Sync {
    /// What stands in the way of handing these words of a decision out now.
    fn hindrance<'a>(
        &'a self,
        tenant: &'a TenantId,
        stored: &'a StoredDecision,
        words: Vec<String>,
    ) -> BoxFuture<'a, Result<Option<Hindrance>, GovernError>>;
    /// The same question; where nothing stands in the way, that the words leave is durable in the ledger
    /// when this resolves.
    fn hand_out<'a>(
        &'a self,
        tenant: &'a TenantId,
        stored: &'a StoredDecision,
        words: Vec<String>,
        reader: &'a str,
    ) -> BoxFuture<'a, Result<Option<Hindrance>, HandOutError>>;
}
