//! Runs that were kept and are fetched later.
//!
//! **Invariant:** what was held leaves through the port `HandOut`, which records it first.

use super::content::texts;
use super::{ExecuteError, RecipeRunner};
use conclave_core::{AuditId, GuardCode, TenantId};
use conclave_ledger::Value as Public;
use conclave_ports::{
    Caller, ConsentGap, HandOut, HandOutError, Hindrance, KeyRole, RecordKind, StoredDecision,
    review_id,
};
use serde_json::{Value, json};

impl From<HandOutError> for ExecuteError {
    fn from(error: HandOutError) -> Self {
        match error {
            HandOutError::Unanswered(error) => Self::Unavailable(error.0),
            HandOutError::Unrecorded(error) => error.into(),
        }
    }
}

fn consent_code(gap: ConsentGap) -> GuardCode {
    match gap {
        ConsentGap::Required => GuardCode::ConsentRequired,
        ConsentGap::Withdrawn => GuardCode::ConsentWithdrawn,
    }
}

/// Where the review of a held run stands.
pub(super) struct RunRuling {
    pub review: Option<String>,
    pub state: String,
    pub edited: Option<Value>,
    pub conditions: Value,
}

/// A run as it stands.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchedRun {
    /// There is no such run.
    Missing,
    /// It waits for people.
    Waiting {
        /// The review's id, where it is known.
        review: Option<String>,
        /// Where that stands.
        state: String,
    },
    /// People decided that nothing of it leaves.
    Rejected {
        /// The review's id.
        review: String,
    },
    /// People decided that it may go on; nothing had been made yet.
    MayGoOn {
        /// The review's id.
        review: String,
    },
    /// It may not be handed out any more.
    Refused(GuardCode),
    /// What came of it.
    Ended(Box<Value>),
}

impl RecipeRunner {
    /// A run of a tenant, for who asked for it or the owner; what was held is given out once it was
    /// approved, and that is recorded first.
    ///
    /// # Errors
    /// When the archive or the records do not answer, or the handing out cannot be recorded.
    pub async fn fetch_run(
        &self,
        hand_out: &dyn HandOut,
        caller: &Caller,
        id: AuditId,
    ) -> Result<FetchedRun, ExecuteError> {
        let tenant = &caller.tenant;
        let Some(stored) = self.stored_run(tenant, id).await? else {
            return Ok(FetchedRun::Missing);
        };
        let author = stored.public("key").and_then(Public::as_str);
        let own = author.is_none_or(|author| author == caller.holder);
        if !own && caller.role != KeyRole::Owner {
            return Ok(FetchedRun::Missing);
        }
        let is_held = stored.text("outcome") == "held";
        let kept = if is_held { stored.held_result() } else { stored.words("response") };
        let mut response = kept.unwrap_or_default();
        response["metadata"]["leaf_hash"] = json!(hex::encode(stored.leaf_hash));
        if !is_held {
            let hindrance = hand_out.hindrance(tenant, &stored, Vec::new()).await;
            return match hindrance.map_err(HandOutError::from)? {
                Some(Hindrance::Consent(gap)) if !response["data"].is_null() => {
                    Ok(FetchedRun::Refused(consent_code(gap)))
                }
                _ => Ok(FetchedRun::Ended(Box::new(response))),
            };
        }
        let ruling = self.ruling(tenant, id).await?;
        match (ruling.review, ruling.state.as_str()) {
            (Some(review), "approved") if response["data"].is_null() && ruling.edited.is_none() => {
                Ok(FetchedRun::MayGoOn { review })
            }
            (Some(review), "approved") => {
                if let Some(edited) = ruling.edited {
                    self.put_edited(&stored, &mut response, edited);
                }
                let mut words = texts(&response["data"]);
                words.extend(texts(&response["edited_text"]));
                match hand_out.hand_out(tenant, &stored, words, &caller.holder).await? {
                    Some(Hindrance::Consent(gap)) => {
                        return Ok(FetchedRun::Refused(consent_code(gap)));
                    }
                    Some(Hindrance::Elders) => return Ok(FetchedRun::Rejected { review }),
                    None => {}
                }
                response["metadata"]["review_id"] = json!(review);
                response["metadata"]["conditions"] = ruling.conditions;
                Ok(FetchedRun::Ended(Box::new(response)))
            }
            (Some(review), "rejected") => Ok(FetchedRun::Rejected { review }),
            (review, _) => Ok(FetchedRun::Waiting { review, state: ruling.state }),
        }
    }

    /// The review of a held run, where it stands, and what a reviewer made of the result.
    pub(super) async fn ruling(
        &self,
        tenant: &TenantId,
        id: AuditId,
    ) -> Result<RunRuling, ExecuteError> {
        let run = self.kept(RecordKind::Run, tenant, &id.to_string()).await?;
        let noted = run.and_then(|run| run.data["review"].as_str().map(str::to_owned));
        // A run that nobody noted may have its review all the same: its id follows from the run's.
        let review = noted.clone().unwrap_or_else(|| review_id(id));
        let record = self.kept(RecordKind::Review, tenant, &review).await?;
        let Some(record) = record else {
            let state = "pending".to_owned();
            return Ok(RunRuling { review: noted, state, edited: None, conditions: json!([]) });
        };
        let edited = record.data.get("edited").filter(|edited| !edited.is_null()).cloned();
        let conditions = record.data.get("conditions").cloned().unwrap_or_else(|| json!([]));
        Ok(RunRuling { review: Some(review), state: record.state, edited, conditions })
    }

    /// Puts a reviewer's words in the place of the result, which does not leave then: as a result where
    /// they have its shape, else as they are.
    fn put_edited(&self, stored: &StoredDecision, response: &mut Value, edited: Value) {
        let parsed = match &edited {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        };
        response["metadata"]["edited"] = json!(true);
        response["citations"] = json!([]);
        if parsed.is_object() && self.fits(stored, &parsed) {
            response["data"] = parsed;
        } else {
            response["data"] = Value::Null;
            response["edited_text"] = edited;
        }
    }

    fn fits(&self, stored: &StoredDecision, edited: &Value) -> bool {
        let recipe = self.workshop.recipes.find(stored.text("recipe"));
        recipe.is_some_and(|recipe| recipe.output.problems(edited).is_empty())
    }
}
