//! What people have agreed to before: an earlier run that waited, and why it did.
//!
//! **Invariant:** a yes counts for what was asked: the same recipe, input, context and material, for the
//! same reason and the same communities. What a model writes afterwards nobody has seen yet, so it is
//! looked at anew.

use crate::engine::Engine;
use crate::execute::ExecuteError;
use crate::running::{Run, Running};
use conclave_core::AuditId;
use conclave_govern::{NewReview, community_id};
use conclave_recipes::{Phase, RunRequest, Transcript, Wrong};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The name under which a decision keeps what its transcripts were.
pub(crate) const MATERIAL: &str = "material";

/// A review that people have approved.
#[derive(Clone, Debug)]
pub(crate) struct Agreed(NewReview);

impl Agreed {
    fn covers(&self, code: &str, communities: &[String]) -> bool {
        let asked = self.0.community.iter().chain(&self.0.others);
        let asked: Vec<_> = asked.map(|community| community_id(community)).collect();
        self.0.issues.iter().any(|issue| issue.code == code)
            && communities.iter().all(|community| asked.contains(&community_id(community)))
    }
}

impl Running {
    /// Whether the right people have said yes to this very thing.
    pub(crate) fn is_agreed(&self, phase: Phase, code: &str, communities: &[String]) -> bool {
        let is_seen = phase == Phase::Pre || self.attempts.is_empty();
        is_seen && self.agreed.as_ref().is_some_and(|agreed| agreed.covers(code, communities))
    }
}

/// What the transcripts of a run are: those that are named by an id may be others tomorrow.
pub(crate) fn digest(transcripts: &[Transcript]) -> String {
    let written = serde_json::to_vec(transcripts).unwrap_or_default();
    hex::encode(Sha256::digest(written))
}

impl Engine {
    /// What people agreed to when they approved an earlier run of the same recipe with the same input.
    pub(crate) async fn agreed(
        &self,
        asked: &Run,
        earlier: AuditId,
        material: &str,
    ) -> Result<Agreed, ExecuteError> {
        let wrong = |why: &str| Err(ExecuteError::Invalid(Wrong::at("approved_run", why)));
        let Some(stored) = self.stored_run(&asked.tenant, earlier).await? else {
            return wrong("is not a run of this tenant");
        };
        let before: Option<RunRequest> =
            stored.words("run").and_then(|run| serde_json::from_value(run).ok());
        let same = before.is_some_and(|before| {
            before.input == asked.request.input && before.context == asked.request.context
        });
        let known = stored.words(MATERIAL);
        let same = same && known.as_ref().and_then(Value::as_str) == Some(material);
        if stored.text("recipe") != asked.recipe || !same {
            return wrong("was a run of another recipe, input or context");
        }
        let ruling = self.ruling(&asked.tenant, earlier).await?;
        if ruling.state != "approved" {
            return wrong("was not approved");
        }
        if ruling.edited.is_some() {
            return wrong("was answered by a person in other words: fetch those");
        }
        let response = stored.words("response").unwrap_or_default();
        if !response["data"].is_null() {
            return wrong("has a result already: fetch that");
        }
        let review = stored.words(conclave_ports::REVIEW_WORDS);
        match review.and_then(|review| serde_json::from_value(review).ok()) {
            Some(review) => Ok(Agreed(review)),
            None => wrong("has lost what people were asked"),
        }
    }
}
