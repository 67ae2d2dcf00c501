//! What people have agreed to before: an earlier run that waited, and why it did.
//!
//! **Invariant:** a yes counts for what was asked: the same recipe, input, context and material, for the
//! same reason and the same communities. What a model writes afterwards nobody has seen yet, so it is
//! looked at anew.

use super::{ExecuteError, RecipeRunner, Run};
use crate::{RunRequest, Transcript, Wrong};
use conclave_core::AuditId;
use conclave_engine::PriorApproval;
use conclave_ports::{AppendError, REVIEW_WORDS};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The name under which a decision keeps what its transcripts were.
pub(super) const MATERIAL: &str = "material";

/// What the transcripts of a run are: those that are named by an id may be others tomorrow.
pub(super) fn digest(transcripts: &[Transcript]) -> Result<String, AppendError> {
    let written = serde_json::to_vec(transcripts);
    let written = written.map_err(|error| AppendError::Refused(error.to_string()))?;
    Ok(hex::encode(Sha256::digest(written)))
}

impl RecipeRunner {
    /// What people agreed to when they approved an earlier run of the same recipe with the same input.
    pub(super) async fn approval(
        &self,
        asked: &Run,
        earlier: AuditId,
        material: &str,
    ) -> Result<PriorApproval, ExecuteError> {
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
        let response = stored.held_result().unwrap_or_default();
        if !response["data"].is_null() {
            return wrong("has a result already: fetch that");
        }
        let review = stored.words(REVIEW_WORDS);
        match review.and_then(|review| serde_json::from_value(review).ok()) {
            Some(review) => Ok(PriorApproval(review)),
            None => wrong("has lost what people were asked"),
        }
    }
}
