//! Recipes: jobs with a known shape, what guards them, and how their results are measured.
//!
//! **Invariant:** what a recipe file says is data; a tenant adds its own without recompiling. Everything but
//! `run` is pure: no clock, no file, no network.

mod citation;
mod empathy;
mod kpi;
mod prompt;
mod recipe;
mod request;
mod run;
mod schema;
mod thresholds;
mod transcript;
mod work;

pub use citation::{
    CLAIMS_MAX, Citation, CitationFault, CitationReport, ClaimPlace, check as check_citations,
    check_one,
};
pub use empathy::{Address, Empathy, EmpathyActs};
pub use kpi::{NAMES as KPI_NAMES, Reviewed, RunFigures, edit_distance, kpis};
pub use prompt::{Prompt, Template, answered, correction, prompt};
pub use recipe::{
    Extract, ModelClass, ModelClasses, ProsePlace, RECIPE_BYTES_MAX, Recipe, RecipeError, Recipes,
    TokenLimits, Work,
};
pub use request::{RunContext, RunOptions, RunRequest, Wrong};
pub use run::{
    ExecuteError, ExecutedRun, FetchedRun, InterviewFocus, PlaybookBrief, RecipeCaller,
    RecipeRunner, RecipeSettings, Run, RunEnding, ThreadMessage, Workshop, WorkshopError,
};
pub use schema::{PROBLEMS_MAX, Problem, Schema, SchemaError};
pub use thresholds::{Evaluation, Measured, Metric, OwnThresholds, Thresholds, evaluate};
pub use transcript::{SEGMENTS_MAX, Segment, TEXT_BYTES_MAX, TRANSCRIPTS_MAX, Transcript, shown};
pub use work::{
    Books, Consent, Culture, Intake, Offer, SentinelReading, cluster_purity, extract_insights,
    extract_interview, extract_playbook, extract_reply, intake, sentinel, steward,
};
