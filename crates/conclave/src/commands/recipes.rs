//! `conclave recipes`: which there are, running one here, and what is counted of their runs.

use super::data_directory::{open_or_begin_store, require_data};
use super::serve::begin_log;
use super::{Answer, lines};
use crate::assemble;
use crate::cli::{OpenArgs, RecipesCommand, RecipesKpisArgs, RecipesRunArgs};
use crate::config;
use crate::system::{SystemClock, SystemEntropy};
use crate::{governing, output};
use anyhow::{Context, bail};
use conclave_core::{AuditId, TenantId};
use conclave_engine::Clock;
use conclave_recipes::{RecipeRunner, Run, RunEnding, RunRequest};
use conclave_store::Store;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// Runs the command.
///
/// # Errors
/// When a file or the data directory cannot be used.
pub fn run(command: &RecipesCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        RecipesCommand::List(args) => list(args.config.as_deref(), as_json),
        RecipesCommand::Show { name, list } => show(name, list.config.as_deref()),
        RecipesCommand::Run(args) => runtime()?.block_on(execute(args)),
        RecipesCommand::Kpis(args) => runtime()?.block_on(count_runs(args)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn list(file: Option<&Path>, as_json: bool) -> anyhow::Result<Answer> {
    let workshop = assemble::workshop(&config::load(file)?)?;
    if as_json {
        let all: Vec<_> = workshop.recipes.iter().map(|recipe| recipe.view(false)).collect();
        output::json(&all);
        return Ok(Answer::Yes);
    }
    for recipe in workshop.recipes.iter() {
        let human = if recipe.human_in_loop { "  (a person approves)" } else { "" };
        output::line(&format!("{:<20} {}{human}", recipe.name, recipe.title));
    }
    Ok(Answer::Yes)
}

fn show(name: &str, file: Option<&Path>) -> anyhow::Result<Answer> {
    let workshop = assemble::workshop(&config::load(file)?)?;
    let Some(recipe) = workshop.recipes.find(name) else {
        bail!("there is no recipe `{name}`; `conclave recipes list` names them");
    };
    output::json(&recipe.view(true));
    Ok(Answer::Yes)
}

/// An engine on a data directory that no gateway is using, and what must be closed afterwards.
struct Workbench {
    recipes: Arc<RecipeRunner>,
    store: Store,
}

async fn open_workbench(args: &OpenArgs) -> anyhow::Result<Workbench> {
    let mut config = config::load(args.config.as_deref())?;
    config.server.data.clone_from(&args.data.data);
    let instead = "ask the gateway itself: POST /v1/agents/NAME/execute";
    let store = open_or_begin_store(args, &config, instead)?;
    begin_log(&store, &config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let steward = governing::begin(&store, &config, clock.clone()).await;
    let ground = assemble::ground(&store, steward, None, clock, Arc::new(SystemEntropy));
    governing::know_protocols(&ground.people, &store, &config.server.data).await;
    Ok(Workbench { recipes: assemble::services(&config, &ground)?.recipes, store })
}

async fn execute(args: &RecipesRunArgs) -> anyhow::Result<Answer> {
    let run = read_request(args)?;
    let Workbench { recipes, store } = open_workbench(&args.open).await?;
    let done = recipes.execute(run).await;
    let printed = done.map(|mut done| {
        done.delivery.complete();
        if let RunEnding::Held { review } = &done.ending {
            done.response["review_id"] = json!(review);
        }
        output::json(&done.response);
        if done.ending == RunEnding::Done { Answer::Yes } else { Answer::No }
    });
    drop(recipes);
    tokio::task::spawn_blocking(move || store.shutdown()).await?;
    Ok(printed?)
}

fn read_request(args: &RecipesRunArgs) -> anyhow::Result<Run> {
    let text = std::fs::read(&args.file)
        .with_context(|| format!("cannot read {}", args.file.display()))?;
    if text.len() > lines::LINE_BYTES_MAX {
        bail!("{} is larger than {} bytes", args.file.display(), lines::LINE_BYTES_MAX);
    }
    let body: Map<String, Value> = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a JSON object", args.file.display()))?;
    let request: RunRequest = serde_json::from_value(Value::Object(body))
        .with_context(|| format!("{} is not a request to a recipe", args.file.display()))?;
    let named = args.recipe.clone().or_else(|| request.agent_name.clone());
    let recipe = named.context("the file has no `agent_name`; name the recipe with --recipe")?;
    let approved = args.approved_run.as_deref();
    let approved_run =
        approved.map(|id| AuditId::parse(id).context("--approved-run is not the id of a run"));
    Ok(Run {
        tenant: TenantId::new(args.tenant.as_str())?,
        key: None,
        recipe,
        request,
        approved_run: approved_run.transpose()?,
    })
}

async fn count_runs(args: &RecipesKpisArgs) -> anyhow::Result<Answer> {
    let tenant = TenantId::new(args.tenant.as_str())?;
    require_data(&args.open.data.data)?;
    let Workbench { recipes, store } = open_workbench(&args.open).await?;
    let mut figures = Map::new();
    for recipe in recipes.workshop.recipes.iter() {
        if args.name.as_ref().is_none_or(|name| *name == recipe.name) {
            let counted = recipes.recipe_kpis(&tenant, recipe).await;
            figures.insert(recipe.name.clone(), counted?);
        }
    }
    drop(recipes);
    tokio::task::spawn_blocking(move || store.shutdown()).await?;
    if figures.is_empty() {
        bail!("there is no such recipe; `conclave recipes list` names them");
    }
    output::json(&figures);
    Ok(Answer::Yes)
}
