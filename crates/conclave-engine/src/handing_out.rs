//! What was kept and is handed out later: results and replies that people have approved.
//!
//! **Invariant:** handing out is an entry first; and what was agreed to then must still be agreed to now.
//! **Invariant:** where a guard could not look before, it looks before anything is handed out.

use crate::engine::Engine;
use crate::execute::ExecuteError;
use crate::guards::answer;
use crate::permission::{Interface, Refusal};
use crate::protocols::Caller;
use crate::reviews::review_id_of;
use crate::running::{Running, texts};
use crate::unasked;
use conclave_core::{AuditId, Sensitivity, TenantId};
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview};
use conclave_ledger::{Body, Draft, Kind, Value as Public, tenant_number};
use conclave_ports::RecordKind;
use conclave_ports::StoredDecision;
use conclave_ports::pseudonym;
use conclave_ports::{AppendError, KeyRole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name under which a decision keeps who had agreed, and to what.
pub(crate) const CONSENTED: &str = "consented";

/// Who had agreed to a run, and to what.
#[derive(Serialize, Deserialize)]
pub(crate) struct Consented {
    subjects: Vec<String>,
    scopes: Vec<String>,
    purpose: String,
    /// Who is given the result, where it was said.
    #[serde(default)]
    party: Option<String>,
}

impl Consented {
    pub(crate) fn of(run: &Running) -> Self {
        Self {
            subjects: run.consented.clone(),
            scopes: run.context.consent_scope.clone(),
            purpose: run.context.purpose.clone(),
            party: run.context.party.clone(),
        }
    }
}

/// Why something that was approved is not handed out after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// Somebody has not agreed, or not any more.
    Refused(Refusal),
    /// Now that the protocols answer, it is for elders to decide.
    Elders,
}

/// Where the review of a held run stands.
pub(crate) struct Ruling {
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
    Refused(Refusal),
    /// What came of it.
    Ended(Box<Value>),
}

impl Engine {
    /// A run of a tenant, for who asked for it or the owner; what was held is given out once it was
    /// approved, and that is recorded first.
    ///
    /// # Errors
    /// When the archive or the records do not answer, or the handing out cannot be recorded.
    pub async fn fetch_run(
        &self,
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
        let mut response = stored.words("response").unwrap_or_default();
        response["metadata"]["leaf_hash"] = json!(hex::encode(stored.leaf_hash));
        if stored.text("outcome") != "held" {
            return match self.hindrance(tenant, &stored, Vec::new()).await? {
                Some(Hindrance::Refused(refusal)) if !response["data"].is_null() => {
                    Ok(FetchedRun::Refused(refusal))
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
                match self.hindrance(tenant, &stored, words).await? {
                    Some(Hindrance::Refused(refusal)) => return Ok(FetchedRun::Refused(refusal)),
                    Some(Hindrance::Elders) => return Ok(FetchedRun::Rejected { review }),
                    None => {}
                }
                response["metadata"]["review_id"] = json!(review);
                response["metadata"]["conditions"] = ruling.conditions;
                self.note_handed_out(tenant, &stored, id, &caller.holder).await?;
                Ok(FetchedRun::Ended(Box::new(response)))
            }
            (Some(review), "rejected") => Ok(FetchedRun::Rejected { review }),
            (review, _) => Ok(FetchedRun::Waiting { review, state: ruling.state }),
        }
    }

    /// The review of a held run, where it stands, and what a reviewer made of the result.
    pub(crate) async fn ruling(
        &self,
        tenant: &TenantId,
        id: AuditId,
    ) -> Result<Ruling, ExecuteError> {
        let run = self.kept(RecordKind::Run, tenant, &id.to_string()).await?;
        let noted = run.and_then(|run| run.data["review"].as_str().map(str::to_owned));
        // A run that nobody noted may have its review all the same: its id follows from the run's.
        let review = noted.clone().unwrap_or_else(|| review_id_of(id));
        let record = self.kept(RecordKind::Review, tenant, &review).await?;
        let Some(record) = record else {
            let state = "pending".to_owned();
            return Ok(Ruling { review: noted, state, edited: None, conditions: json!([]) });
        };
        let edited = record.data.get("edited").filter(|edited| !edited.is_null()).cloned();
        let conditions = record.data.get("conditions").cloned().unwrap_or_else(|| json!([]));
        Ok(Ruling { review: Some(review), state: record.state, edited, conditions })
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

    /// Records that words of a decision leave after all, before they do.
    pub(crate) async fn note_handed_out(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        id: AuditId,
        reader: &str,
    ) -> Result<(), AppendError> {
        let what =
            if stored.public("recipe").is_some() { "run.delivered" } else { "reply.released" };
        let reader = pseudonym(&self.settings.pseudonym_key, b"reader", tenant.as_str(), reader);
        let draft = Draft {
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Public::map([
                ("what", Public::from(what)),
                ("decision", Public::Bytes(id.0.into_bytes().to_vec())),
                ("reader", Public::Bytes(reader.to_vec())),
            ]),
            ..Draft::new(Kind::AdminAction, tenant_number(tenant.as_str()))
        };
        self.ledger.append(draft, Body::empty()).await?;
        Ok(())
    }

    /// What stands in the way of handing these words of a decision out now.
    pub(crate) async fn hindrance(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        words: Vec<String>,
    ) -> Result<Option<Hindrance>, ExecuteError> {
        let unavailable = ExecuteError::Unavailable;
        if let Some(refusal) = self.no_longer_agreed(tenant, stored).await.map_err(unavailable)? {
            return Ok(Some(Hindrance::Refused(refusal)));
        }
        let elders = self.is_for_elders(tenant, stored, words).await.map_err(unavailable)?;
        Ok(elders.then_some(Hindrance::Elders))
    }

    /// Consent as it stands now, where there had to be some.
    async fn no_longer_agreed(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
    ) -> Result<Option<Refusal>, String> {
        let Some(governance) = &self.governed.governance else { return Ok(None) };
        let consented = if stored.public("recipe").is_some() {
            stored.words(CONSENTED).and_then(|words| serde_json::from_value(words).ok())
        } else {
            self.consented_to_chat(tenant, stored)
        };
        let Some(Consented { subjects, scopes, purpose, party }) = consented else {
            return Ok(None);
        };
        for subject in subjects {
            let ask = ConsentAsk {
                subject,
                scopes: scopes.clone(),
                purpose: purpose.clone(),
                party: party.clone(),
                now_ms: self.clock.now_ms(),
            };
            match answer(async { governance.consent(tenant, ask).await }).await? {
                ConsentState::Granted { .. } => {}
                ConsentState::Withdrawn { .. } => return Ok(Some(Refusal::ConsentWithdrawn)),
                _ => return Ok(Some(Refusal::ConsentRequired)),
            }
        }
        Ok(None)
    }

    /// What a person must have agreed to for a conversation, where the tenant asks for it.
    fn consented_to_chat(&self, tenant: &TenantId, stored: &StoredDecision) -> Option<Consented> {
        let chat = Interface::Chat;
        // Other ways in name themselves, and ask for no consent of their own.
        if stored.public("agent").is_some()
            || !self.in_force(tenant).policy.requires_consent(chat.as_str())
        {
            return None;
        }
        let user = stored.words("who")?["user"].as_str()?.to_owned();
        let (scopes, purpose) = (vec![chat.as_str().to_owned()], chat.purpose().to_owned());
        Some(Consented { subjects: vec![user], scopes, purpose, party: None })
    }

    /// Whether protocols that could not be asked before say now that elders must decide.
    async fn is_for_elders(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        texts: Vec<String>,
    ) -> Result<bool, String> {
        let Some(governance) = &self.governed.governance else { return Ok(false) };
        let review = stored.words(unasked::WORDS);
        let review: Option<NewReview> = review.and_then(|one| serde_json::from_value(one).ok());
        let unasked = review.is_some_and(|review| {
            let failed = |code: &str| matches!(code, "guard_failed" | "guard_unavailable");
            review.issues.iter().any(|issue| failed(&issue.code))
        });
        if !unasked || texts.is_empty() {
            return Ok(false);
        }
        let Stated { sensitivity, affiliations, labels, audience } = stored
            .words("who")
            .and_then(|who| serde_json::from_value(who["context"].clone()).ok())
            .unwrap_or_default();
        let now_ms = self.clock.now_ms();
        let ask = CulturalAsk { texts, sensitivity, affiliations, labels, audience, now_ms };
        let found = answer(async { governance.look(tenant, ask).await }).await?;
        Ok(matches!(found, CulturalFinding::Hold { .. }))
    }
}

/// What was said of the words; turns and runs name it differently.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stated {
    #[serde(alias = "sensitivity_level")]
    sensitivity: Sensitivity,
    #[serde(alias = "cultural_affiliations")]
    affiliations: Vec<String>,
    labels: Vec<String>,
    audience: Option<String>,
}
