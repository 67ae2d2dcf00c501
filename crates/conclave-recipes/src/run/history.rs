//! Runs that are over: counted, and their transcripts used again.

use super::content::texts;
use super::record::figures_of;
use super::{ExecuteError, RecipeRunner, Run, RunningRun};
use crate::{
    Recipe, Reviewed, RunContext, RunFigures, Segment, Transcript, Work, Wrong, edit_distance, kpis,
};
use conclave_core::{AuditId, TenantId};
use conclave_govern::community_id;
use conclave_ledger::tenant_number;
use conclave_ports::DecisionFilter;
use conclave_ports::StoredDecision;
use conclave_ports::pseudonym;
use conclave_ports::{Record, RecordChange, RecordKey, RecordKind, RecordQuery, RecordsError};
use serde_json::{Value, json};

/// So many of the latest runs are counted.
const COUNTED_MAX: u32 = 200;
/// How long the figures of a run are kept: a year to compare with, and a month.
pub(super) const RUN_KEPT_MS: u64 = 400 * 24 * 3_600_000;
/// So many old runs are let go at a time.
const FORGOTTEN_AT_ONCE: u32 = 500;
/// So many of the latest decisions are looked through where runs are not listed.
const SEARCHED_MAX: u32 = 500;

fn unreachable(error: &dyn std::fmt::Display) -> ExecuteError {
    ExecuteError::Unavailable(error.to_string())
}

impl RecipeRunner {
    pub(super) async fn stored_run(
        &self,
        tenant: &TenantId,
        id: AuditId,
    ) -> Result<Option<StoredDecision>, ExecuteError> {
        let entries = self.engine.archive.find(tenant_number(tenant.as_str()), id).await;
        let stored = StoredDecision::from_entries(entries.map_err(|error| unreachable(&error))?);
        let stored = stored.map_err(|error| unreachable(&error))?;
        Ok(stored.filter(|stored| stored.public("recipe").is_some()))
    }

    pub(super) async fn kept(
        &self,
        kind: RecordKind,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<Record>, ExecuteError> {
        let Some(records) = &self.records else { return Ok(None) };
        let key = RecordKey { kind, tenant: tenant.clone(), id: id.to_owned() };
        records.get(key).await.map_err(|error| unreachable(&error))
    }

    /// The transcripts of a run: those it brings, and stored ones that it names; and the circumstances in
    /// force. What was said of a transcript when it was taken in holds for whoever uses it later, also
    /// where they bring it again under the same name.
    pub(super) async fn transcripts_of(
        &self,
        asked: &Run,
        recipe: &Recipe,
    ) -> Result<(Vec<Transcript>, RunContext), ExecuteError> {
        let given = Transcript::given(&asked.request.input);
        let mut all =
            given.map_err(|why| ExecuteError::Invalid(Wrong::at("input.transcripts", why)))?;
        let mut context = asked.request.context.clone();
        for one in &all {
            let stored = self.stored_transcript(&asked.tenant, &one.id).await?;
            stored.iter().for_each(|(_, stated)| inherit(&mut context, stated));
        }
        let named = asked.request.input.get("transcript_ids").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        for (at, id) in named.enumerate() {
            if all.iter().any(|one| one.id == id) {
                continue;
            }
            let Some((found, stated)) = self.stored_transcript(&asked.tenant, id).await? else {
                let why = "is neither in `transcripts` nor stored by an earlier consent-intake";
                let path = format!("input.transcript_ids[{at}]");
                return Err(ExecuteError::Invalid(Wrong::at(path, why)));
            };
            inherit(&mut context, &stated);
            all.push(found);
        }
        let wrong = |why: String| ExecuteError::Invalid(Wrong::at("input.transcripts", why));
        Transcript::check(&all).map_err(wrong)?;
        let needs = recipe.work == Work::Model
            && recipe.input_schema["properties"].get("transcript_ids").is_some();
        if needs && all.is_empty() {
            return Err(wrong("needs at least one transcript, here or by id".to_owned()));
        }
        Ok((all, context))
    }

    fn transcript_key(&self, tenant: &TenantId, id: &str) -> RecordKey {
        let name =
            pseudonym(&self.engine.settings.pseudonym_key, b"transcript", tenant.as_str(), id);
        let id = format!("transcript:{}", hex::encode(name));
        RecordKey { kind: RecordKind::Run, tenant: tenant.clone(), id }
    }

    /// Where the transcript of an intake stands from now on; its words stay in the decision.
    pub(super) async fn transcript_record(
        &self,
        run: &RunningRun,
    ) -> Result<Option<RecordChange>, RecordsError> {
        let Some(records) = &self.records else { return Ok(None) };
        let output = run.matter.content.output.as_ref();
        let id = output.and_then(|output| output["provenance"]["source_id"].as_str());
        let Some(id) = id else { return Ok(None) };
        let key = self.transcript_key(&run.matter.tenant, id);
        let known = records.get(key.clone()).await?;
        let record = Record {
            key,
            version: known.map_or(0, |known| known.version),
            state: "stored".to_owned(),
            owner: "transcript".to_owned(),
            rank: 0,
            due_ms: None,
            changed_ms: self.engine.clock.now_ms(),
            subject: None,
            data: json!({"run": run.matter.id.to_string()}),
        };
        Ok(Some(RecordChange { record, entry: None }))
    }

    async fn stored_transcript(
        &self,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<(Transcript, RunContext)>, ExecuteError> {
        let key = self.transcript_key(tenant, id);
        let Some(record) = self.kept(key.kind, tenant, &key.id).await? else { return Ok(None) };
        let run = record.data["run"].as_str().and_then(AuditId::parse);
        let Some(run) = run else { return Ok(None) };
        let Some(stored) = self.stored_run(tenant, run).await? else { return Ok(None) };
        let response = stored.words("response").unwrap_or_default();
        let segments: Option<Vec<Segment>> =
            serde_json::from_value(response["data"]["segments"].clone()).ok();
        let stated = stored.words("who").map(|who| who["context"].clone()).unwrap_or_default();
        let Ok(stated) = serde_json::from_value::<RunContext>(stated) else { return Ok(None) };
        let storyteller_id = stated.subject().map(str::to_owned);
        Ok(segments
            .map(|segments| (Transcript { id: id.to_owned(), storyteller_id, segments }, stated)))
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
        let runs = match &self.records {
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

    /// Lets figures of runs go that are older than anybody asks for. The ledger has the runs, and what
    /// people decided about them stands in their reviews.
    pub async fn forget_old_runs(&self) {
        let Some(records) = &self.records else { return };
        let query = RecordQuery {
            kind: RecordKind::Run,
            tenant: None,
            states: Vec::new(),
            owner: None,
            due_before_ms: Some(self.engine.clock.now_ms()),
            offset: 0,
            limit: FORGOTTEN_AT_ONCE,
        };
        for record in records.list(query).await.unwrap_or_default() {
            // Another replica was faster: that is fine.
            let _ = records.remove(record.key, record.version).await;
        }
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
        let held = stored.and_then(|stored| stored.held_result());
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
        let rows = self.engine.archive.list(filter).await.map_err(|error| unreachable(&error))?;
        let mut runs = Vec::new();
        for row in rows {
            let stored = self.stored_run(tenant, row.id).await?;
            let stored = stored.filter(|stored| stored.text("recipe") == recipe);
            runs.extend(stored.map(|stored| figures_of(&stored.leaf.draft.public)));
        }
        Ok(runs)
    }
}

/// Takes over what was said of material before: the stricter counts, and nothing is left out.
fn inherit(context: &mut RunContext, stated: &RunContext) {
    context.sensitivity_level = context.sensitivity_level.max(stated.sensitivity_level);
    for label in &stated.labels {
        if !context.labels.contains(label) {
            context.labels.push(label.clone());
        }
    }
    for community in &stated.cultural_affiliations {
        let id = community_id(community);
        if !context.cultural_affiliations.iter().any(|known| community_id(known) == id) {
            context.cultural_affiliations.push(community.clone());
        }
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
