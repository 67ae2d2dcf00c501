//! Runs that are over: fetched once people have decided, counted, and their transcripts used again.

use crate::engine::Engine;
use crate::execute::{ExecuteError, given};
use crate::ports::DecisionFilter;
use crate::pseudonym::pseudonym;
use crate::records::{Record, RecordChange, RecordKey, RecordKind, RecordQuery, RecordsError};
use crate::reviews::review_id_of;
use crate::run_record::figures_of;
use crate::running::{Run, Running, texts};
use crate::stored::StoredDecision;
use conclave_core::{AuditId, TenantId};
use conclave_ledger::{Body, Draft, Kind, Value as Public, tenant_number};
use conclave_recipes::{
    Recipe, Reviewed, RunFigures, RunRequest, Segment, Transcript, Work, Wrong, edit_distance, kpis,
};
use serde_json::{Value, json};

/// So many of the latest runs are counted.
const COUNTED_MAX: u32 = 200;
/// So many of the latest decisions are looked through where runs are not listed.
const SEARCHED_MAX: u32 = 500;

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
    /// What came of it.
    Ended(Box<Value>),
}

fn unreachable(error: &dyn std::fmt::Display) -> ExecuteError {
    ExecuteError::Unavailable(error.to_string())
}

impl Engine {
    /// A run of a tenant; what was held is given out once it was approved, and that is recorded first.
    ///
    /// # Errors
    /// When the archive or the records do not answer, or the handing out cannot be recorded.
    pub async fn fetch_run(
        &self,
        tenant: &TenantId,
        id: AuditId,
        reader: &str,
    ) -> Result<FetchedRun, ExecuteError> {
        let Some(stored) = self.stored_run(tenant, id).await? else {
            return Ok(FetchedRun::Missing);
        };
        let mut response = stored.words("response").unwrap_or_default();
        response["metadata"]["leaf_hash"] = json!(hex::encode(stored.leaf_hash));
        if stored.text("outcome") != "held" {
            return Ok(FetchedRun::Ended(Box::new(response)));
        }
        let (review, state, edited) = self.ruling(tenant, id).await?;
        match (review, state.as_str()) {
            (Some(review), "approved") if response["data"].is_null() => {
                Ok(FetchedRun::MayGoOn { review })
            }
            (Some(review), "approved") => {
                if let Some(edited) = edited {
                    self.put_edited(&stored, &mut response, edited);
                }
                response["metadata"]["review_id"] = json!(review);
                self.note_handed_out(tenant, id, reader).await?;
                Ok(FetchedRun::Ended(Box::new(response)))
            }
            (Some(review), "rejected") => Ok(FetchedRun::Rejected { review }),
            (review, _) => Ok(FetchedRun::Waiting { review, state }),
        }
    }

    async fn stored_run(
        &self,
        tenant: &TenantId,
        id: AuditId,
    ) -> Result<Option<StoredDecision>, ExecuteError> {
        let entries = self.archive.find(tenant_number(tenant.as_str()), id).await;
        let stored = StoredDecision::from_entries(entries.map_err(|error| unreachable(&error))?);
        let stored = stored.map_err(|error| unreachable(&error))?;
        Ok(stored.filter(|stored| stored.public("recipe").is_some()))
    }

    /// The review of a held run, where it stands, and what a reviewer made of the result.
    async fn ruling(
        &self,
        tenant: &TenantId,
        id: AuditId,
    ) -> Result<(Option<String>, String, Option<Value>), ExecuteError> {
        let pending = || "pending".to_owned();
        let run = self.kept(RecordKind::Run, tenant, &id.to_string()).await?;
        let review = run.and_then(|run| run.data["review"].as_str().map(str::to_owned));
        // A run that nobody noted may have its review all the same: its id follows from the run's.
        let noted = review.clone();
        let review = review.unwrap_or_else(|| review_id_of(id));
        let record = self.kept(RecordKind::Review, tenant, &review).await?;
        let Some(record) = record else { return Ok((noted, pending(), None)) };
        let edited = record.data.get("edited").filter(|edited| !edited.is_null()).cloned();
        Ok((Some(review), record.state, edited))
    }

    async fn kept(
        &self,
        kind: RecordKind,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<Record>, ExecuteError> {
        let Some(records) = &self.governed.records else { return Ok(None) };
        let key = RecordKey { kind, tenant: tenant.clone(), id: id.to_owned() };
        records.get(key).await.map_err(|error| unreachable(&error))
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

    async fn note_handed_out(
        &self,
        tenant: &TenantId,
        id: AuditId,
        reader: &str,
    ) -> Result<(), ExecuteError> {
        let reader = pseudonym(&self.settings.pseudonym_key, b"reader", tenant.as_str(), reader);
        let draft = Draft {
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Public::map([
                ("what", Public::from("run.delivered")),
                ("decision", Public::Bytes(id.0.into_bytes().to_vec())),
                ("reader", Public::Bytes(reader.to_vec())),
            ]),
            ..Draft::new(Kind::AdminAction, tenant_number(tenant.as_str()))
        };
        self.ledger.append(draft, Body::empty()).await?;
        Ok(())
    }

    /// Whether people approved an earlier run of the same recipe with the same input.
    pub(crate) async fn was_approved(
        &self,
        asked: &Run,
        earlier: AuditId,
    ) -> Result<bool, ExecuteError> {
        let wrong = |why: &str| Err(ExecuteError::Invalid(Wrong::at("approved_run", why)));
        let Some(stored) = self.stored_run(&asked.tenant, earlier).await? else {
            return wrong("is not a run of this tenant");
        };
        let before: Option<RunRequest> =
            stored.words("run").and_then(|run| serde_json::from_value(run).ok());
        let same = before.is_some_and(|before| {
            before.input == asked.request.input && before.context == asked.request.context
        });
        if stored.text("recipe") != asked.recipe || !same {
            return wrong("was a run of another recipe, input or context");
        }
        let (_, state, _) = self.ruling(&asked.tenant, earlier).await?;
        if state == "approved" { Ok(true) } else { wrong("was not approved") }
    }

    /// The transcripts of a run: those it brings, and stored ones that it names.
    pub(crate) async fn transcripts_of(
        &self,
        asked: &Run,
        recipe: &Recipe,
    ) -> Result<Vec<Transcript>, ExecuteError> {
        let mut all = given(asked)?;
        let named = asked.request.input.get("transcript_ids").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        for (at, id) in named.enumerate() {
            if all.iter().any(|one| one.id == id) {
                continue;
            }
            let Some(found) = self.stored_transcript(&asked.tenant, id).await? else {
                let why = "is neither in `transcripts` nor stored by an earlier consent-intake";
                let path = format!("input.transcript_ids[{at}]");
                return Err(ExecuteError::Invalid(Wrong::at(path, why)));
            };
            all.push(found);
        }
        let wrong = |why: String| ExecuteError::Invalid(Wrong::at("input.transcripts", why));
        Transcript::check(&all).map_err(wrong)?;
        let needs = recipe.work == Work::Model
            && recipe.input_schema["properties"].get("transcript_ids").is_some();
        if needs && all.is_empty() {
            return Err(wrong("needs at least one transcript, here or by id".to_owned()));
        }
        Ok(all)
    }

    fn transcript_key(&self, tenant: &TenantId, id: &str) -> RecordKey {
        let name = pseudonym(&self.settings.pseudonym_key, b"transcript", tenant.as_str(), id);
        let id = format!("transcript:{}", hex::encode(name));
        RecordKey { kind: RecordKind::Run, tenant: tenant.clone(), id }
    }

    /// Where the transcript of an intake stands from now on; its words stay in the decision.
    pub(crate) async fn transcript_record(&self, run: &Running) -> Option<RecordChange> {
        let records = self.governed.records.as_ref()?;
        let id = run.output.as_ref()?["provenance"]["source_id"].as_str()?.to_owned();
        let key = self.transcript_key(&run.tenant, &id);
        let known = records.get(key.clone()).await.ok()?;
        let record = Record {
            key,
            version: known.map_or(0, |known| known.version),
            state: "stored".to_owned(),
            owner: "transcript".to_owned(),
            rank: 0,
            due_ms: None,
            changed_ms: self.clock.now_ms(),
            subject: None,
            data: json!({"run": run.id.to_string()}),
        };
        Some(RecordChange { record, entry: None })
    }

    async fn stored_transcript(
        &self,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<Transcript>, ExecuteError> {
        let key = self.transcript_key(tenant, id);
        let Some(record) = self.kept(key.kind, tenant, &key.id).await? else { return Ok(None) };
        let run = record.data["run"].as_str().and_then(AuditId::parse);
        let Some(run) = run else { return Ok(None) };
        let Some(stored) = self.stored_run(tenant, run).await? else { return Ok(None) };
        let response = stored.words("response").unwrap_or_default();
        let segments: Option<Vec<Segment>> =
            serde_json::from_value(response["data"]["segments"].clone()).ok();
        let request = stored.words("run").unwrap_or_default();
        let context = &request["context"];
        let storyteller = [&context["storyteller_id"], &context["user_id"]];
        let storyteller = storyteller.iter().find_map(|name| name.as_str()).map(str::to_owned);
        Ok(segments.map(|segments| Transcript {
            id: id.to_owned(),
            storyteller_id: storyteller,
            segments,
        }))
    }

    /// What is counted of a recipe's latest runs for a tenant.
    ///
    /// # Errors
    /// When neither records nor archive answer.
    pub async fn recipe_kpis(
        &self,
        tenant: &TenantId,
        recipe: &Recipe,
    ) -> Result<Value, ExecuteError> {
        let runs = match &self.governed.records {
            Some(records) => {
                let query = RecordQuery {
                    kind: RecordKind::Run,
                    tenant: Some(tenant.clone()),
                    states: Vec::new(),
                    owner: Some(recipe.name.clone()),
                    due_before_ms: None,
                    offset: 0,
                    limit: COUNTED_MAX,
                };
                let listed = records.list(query).await;
                self.counted(tenant, listed).await?
            }
            None => self.searched(tenant, &recipe.name).await?,
        };
        Ok(kpis(&recipe.kpis, &runs))
    }

    async fn counted(
        &self,
        tenant: &TenantId,
        listed: Result<Vec<Record>, RecordsError>,
    ) -> Result<Vec<RunFigures>, ExecuteError> {
        let mut runs = Vec::new();
        for record in listed.map_err(|error| unreachable(&error))? {
            let figures = record.data.get("figures").cloned().unwrap_or_default();
            let Ok(mut figures) = serde_json::from_value::<RunFigures>(figures) else { continue };
            if let Some(review) = record.data["review"].as_str() {
                let review = self.kept(RecordKind::Review, tenant, review).await?;
                figures.review = review.as_ref().and_then(reviewed);
                if let (Some(made), Some(review)) = (&mut figures.review, &review) {
                    made.edit_distance = self.edited_by(tenant, &record, review).await?;
                }
            }
            runs.push(figures);
        }
        Ok(runs)
    }

    /// How much of a result a reviewer changed; `None` where it was not let out, or its words are gone.
    async fn edited_by(
        &self,
        tenant: &TenantId,
        run: &Record,
        review: &Record,
    ) -> Result<Option<u32>, ExecuteError> {
        if review.state != "approved" {
            return Ok(None);
        }
        let Some(edited) = review.data["edited"].as_str() else { return Ok(Some(0)) };
        let Some(id) = AuditId::parse(&run.key.id) else { return Ok(None) };
        let stored = self.stored_run(tenant, id).await?;
        let held = stored.and_then(|stored| stored.words("response"));
        let Some(held) = held.filter(|held| !held["data"].is_null()) else { return Ok(None) };
        let edited: Value = serde_json::from_str(edited).unwrap_or_else(|_| json!(edited));
        let [before, after] = [&held["data"], &edited].map(|made| texts(made).join("\n"));
        Ok(Some(edit_distance(&before, &after)))
    }

    /// Without records, the ledger itself is looked through.
    async fn searched(
        &self,
        tenant: &TenantId,
        recipe: &str,
    ) -> Result<Vec<RunFigures>, ExecuteError> {
        let filter = DecisionFilter {
            tenant: Some(tenant_number(tenant.as_str())),
            limit: SEARCHED_MAX,
            ..DecisionFilter::default()
        };
        let rows = self.archive.list(filter).await.map_err(|error| unreachable(&error))?;
        let mut runs = Vec::new();
        for row in rows {
            let stored = self.stored_run(tenant, row.id).await?;
            let stored = stored.filter(|stored| stored.text("recipe") == recipe);
            runs.extend(stored.map(|stored| figures_of(&stored.leaf.draft.public)));
        }
        Ok(runs)
    }
}

/// What a reviewer found; nothing before they have decided.
fn reviewed(review: &Record) -> Option<Reviewed> {
    let agreed = match review.state.as_str() {
        "approved" => true,
        "rejected" => false,
        _ => return None,
    };
    Some(Reviewed {
        agreed,
        edit_distance: None,
        pii_missed: review.data.get("pii_missed").and_then(Value::as_bool),
    })
}
