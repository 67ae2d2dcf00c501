//! Recipes as calls with names and types, for programs that use Conclave as a library.

use super::{ExecuteError, ExecutedRun, RecipeRunner, Run};
use crate::{RunContext, RunOptions, RunRequest, Transcript};
use conclave_core::TenantId;
use serde::Serialize;
use serde_json::{Value, json};

/// What an interview is looked at for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterviewFocus {
    /// What is of interest.
    pub focus_areas: Vec<String>,
    /// Whether feelings are followed.
    pub emotion_trajectory: bool,
    /// Whether risks are looked for.
    pub risk_triggers: bool,
}

/// One message of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadMessage {
    /// Who wrote it.
    pub author: String,
    /// What.
    pub text: String,
}

/// A plan that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaybookBrief {
    /// Who is meant.
    pub criteria: Vec<String>,
    /// How many they are.
    pub count: u64,
    /// What shall be reached.
    pub goals: Vec<String>,
    /// What it may cost, in millionths of a dollar.
    pub budget_microusd: Option<u64>,
}

/// Who asks, and how.
#[derive(Clone, Debug)]
pub struct RecipeCaller {
    /// Whose.
    pub tenant: TenantId,
    /// The circumstances.
    pub context: RunContext,
    /// How it is done.
    pub options: RunOptions,
}

impl RecipeRunner {
    /// Runs `interview-analyzer` on transcripts that are given or, by id, stored.
    ///
    /// # Errors
    /// As [`RecipeRunner::execute`].
    pub async fn analyze_interview(
        &self,
        ids: &[String],
        transcripts: &[Transcript],
        focus: &InterviewFocus,
        caller: RecipeCaller,
    ) -> Result<ExecutedRun, ExecuteError> {
        let mut input = material(ids, transcripts);
        input["focus_areas"] = json!(focus.focus_areas);
        input["include_emotion_trajectory"] = json!(focus.emotion_trajectory);
        input["include_risk_triggers"] = json!(focus.risk_triggers);
        self.run_for("interview-analyzer", input, caller).await
    }

    /// Runs `de-escalator` on a thread.
    ///
    /// # Errors
    /// As [`RecipeRunner::execute`].
    pub async fn de_escalate(
        &self,
        thread: &[ThreadMessage],
        caller: RecipeCaller,
    ) -> Result<ExecutedRun, ExecuteError> {
        self.run_for("de-escalator", json!({"ticket_thread": thread}), caller).await
    }

    /// Runs `insight-synthesizer` on transcripts that are given or, by id, stored.
    ///
    /// # Errors
    /// As [`RecipeRunner::execute`].
    pub async fn synthesize_insights(
        &self,
        ids: &[String],
        transcripts: &[Transcript],
        caller: RecipeCaller,
    ) -> Result<ExecutedRun, ExecuteError> {
        self.run_for("insight-synthesizer", material(ids, transcripts), caller).await
    }

    /// Runs `playbook-composer`.
    ///
    /// # Errors
    /// As [`RecipeRunner::execute`].
    pub async fn compose_playbook(
        &self,
        brief: &PlaybookBrief,
        caller: RecipeCaller,
    ) -> Result<ExecutedRun, ExecuteError> {
        let mut input = json!({
            "segment_definition": {"criteria": brief.criteria, "count": brief.count},
            "goals": brief.goals,
        });
        if let Some(most) = brief.budget_microusd {
            input["budget_envelope"] = json!({"microusd": most});
        }
        self.run_for("playbook-composer", input, caller).await
    }

    async fn run_for(
        &self,
        recipe: &str,
        input: Value,
        caller: RecipeCaller,
    ) -> Result<ExecutedRun, ExecuteError> {
        let RecipeCaller { tenant, context, options } = caller;
        let request = RunRequest { agent_name: None, context, input, options };
        let recipe = recipe.to_owned();
        self.execute(Run { tenant, key: None, recipe, request, approved_run: None }).await
    }
}

fn material(ids: &[String], transcripts: &[Transcript]) -> Value {
    let mut input = json!({});
    if !ids.is_empty() {
        input["transcript_ids"] = json!(ids);
    }
    if !transcripts.is_empty() {
        input["transcripts"] = json!(transcripts);
    }
    input
}
