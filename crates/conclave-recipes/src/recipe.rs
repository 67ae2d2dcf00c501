//! Owns recipe files: read once, checked whole, and from then on nothing in them can fail.
//!
//! **Invariant:** a file that names a guard twice, gives it an action that is not its own, or shows a model
//! less than the rules of ownership and citation, is refused.

use crate::citation::ClaimPlace;
use crate::empathy::Address;
use crate::prompt::Template;
use crate::schema::Schema;
use crate::thresholds::{OwnThresholds, Thresholds};
use conclave_core::Sensitivity;
use conclave_core::{GuardKind, GuardRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// The largest recipe file.
pub const RECIPE_BYTES_MAX: usize = 256 << 10;
/// A name that a path needs for itself.
const RESERVED: &str = "runs";

const BUILTIN: [(&str, &str); 7] = [
    ("consent-intake", include_str!("../../../data/recipes/consent-intake.toml")),
    ("interview-analyzer", include_str!("../../../data/recipes/interview-analyzer.toml")),
    ("de-escalator", include_str!("../../../data/recipes/de-escalator.toml")),
    ("insight-synthesizer", include_str!("../../../data/recipes/insight-synthesizer.toml")),
    ("playbook-composer", include_str!("../../../data/recipes/playbook-composer.toml")),
    ("governance-sentinel", include_str!("../../../data/recipes/governance-sentinel.toml")),
    ("cost-steward", include_str!("../../../data/recipes/cost-steward.toml")),
];

/// Why a recipe file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("recipe {file}: {why}")]
pub struct RecipeError {
    file: String,
    why: String,
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A model, under guards.
    Model,
    /// This program: takes in content with its consent.
    ConsentIntake,
    /// This program: looks at a request or a result.
    GovernanceSentinel,
    /// This program: looks at prices and budgets.
    CostSteward,
}

/// What can be cut out of the material where no model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extract {
    /// Themes and quotes of interviews.
    Interview,
    /// A draft that says what the person wrote.
    Reply,
    /// Clusters over interviews.
    Insights,
    /// Steps for goals.
    Playbook,
}

/// Which models are asked, by class; configuration says which they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelClasses {
    /// The first.
    pub class: ModelClass,
    /// Where that one fails or costs too much.
    #[serde(default)]
    pub fallback: Option<ModelClass>,
}

/// A class of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelClass {
    /// Able and dear.
    Large,
    /// Quick and cheap.
    Small,
}

/// How much goes in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenLimits {
    /// Read.
    pub input_tokens_max: u32,
    /// Written.
    pub output_tokens_max: u32,
}

/// Where a result speaks to or about people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProsePlace {
    /// A JSON pointer to an object, or to a list of them.
    pub at: String,
    /// The member that holds the words.
    pub member: String,
    /// Whom it speaks to.
    pub address: Address,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    work: Work,
    #[serde(default)]
    extract: Option<Extract>,
    human_in_loop: bool,
    #[serde(default)]
    kpis: Vec<String>,
    models: ModelClasses,
    limits: TokenLimits,
    #[serde(default)]
    guards: Vec<GuardRule>,
    #[serde(default)]
    thresholds: OwnThresholds,
    #[serde(default)]
    claims: Vec<ClaimPlace>,
    #[serde(default)]
    prose: Vec<ProsePlace>,
    #[serde(default)]
    prompt: Option<PromptText>,
    schema: SchemaTexts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptText {
    user: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaTexts {
    input: String,
    output: String,
}

/// A job with a known shape.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub title: String,
    /// Who does the work.
    pub work: Work,
    /// What can be had without a model.
    pub extract: Option<Extract>,
    /// Whether a person approves every result.
    pub human_in_loop: bool,
    /// What is counted of its runs.
    pub kpis: Vec<String>,
    /// Which models are asked.
    pub models: ModelClasses,
    /// How much goes in and out.
    pub limits: TokenLimits,
    /// Who looks, in the order in which they look.
    pub guards: Vec<GuardRule>,
    /// What it asks for beyond its sensitivity.
    pub own_thresholds: OwnThresholds,
    /// Where its claims stand.
    pub claims: Vec<ClaimPlace>,
    /// Where it speaks to or about people.
    pub prose: Vec<ProsePlace>,
    /// What a model is told.
    pub prompt: Option<Template>,
    /// What the input must look like.
    pub input: Schema,
    /// What the output must look like.
    pub output: Schema,
    /// The input's schema as it was written.
    pub input_schema: Value,
    /// The output's schema as it was written.
    pub output_schema: Value,
}

impl Recipe {
    /// Reads a recipe file.
    ///
    /// # Errors
    /// When it cannot be used; the error says why.
    pub fn read(file: &str, text: &str) -> Result<Self, RecipeError> {
        let wrong = |why: String| RecipeError { file: file.to_owned(), why };
        if text.len() > RECIPE_BYTES_MAX {
            return Err(wrong(format!("is larger than {RECIPE_BYTES_MAX} bytes")));
        }
        let read: File = toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        Self::made(read).map_err(wrong)
    }

    fn made(read: File) -> Result<Self, String> {
        check_name(&read.name)?;
        let mut guards = read.guards;
        guards.sort_by_key(|rule| rule.guard);
        check_guards(&guards)?;
        let prompt = read.prompt.map(|prompt| Template::compile(&prompt.user)).transpose()?;
        if (read.work == Work::Model) != prompt.is_some() {
            return Err("a recipe has a prompt if, and only if, a model does the work".into());
        }
        if let Some(kpi) = read.kpis.iter().find(|kpi| !crate::kpi::NAMES.contains(&kpi.as_str())) {
            return Err(format!("there is no KPI `{kpi}`"));
        }
        let parse = |which: &str, text: &str| {
            let schema: Value = serde_json::from_str(text)
                .map_err(|error| format!("schema.{which} is not JSON: {error}"))?;
            let made = Schema::compile(&schema).map_err(|error| format!("{which} {error}"))?;
            Ok::<_, String>((made, schema))
        };
        let (input, input_schema) = parse("input", &read.schema.input)?;
        let (output, output_schema) = parse("output", &read.schema.output)?;
        Ok(Self {
            name: read.name,
            title: read.title,
            work: read.work,
            extract: read.extract,
            human_in_loop: read.human_in_loop,
            kpis: read.kpis,
            models: read.models,
            limits: read.limits,
            guards,
            own_thresholds: read.thresholds,
            claims: read.claims,
            prose: read.prose,
            prompt,
            input,
            output,
            input_schema,
            output_schema,
        })
    }

    /// How this recipe wants a guard, if it wants it.
    #[must_use]
    pub fn guard(&self, guard: GuardKind) -> Option<&GuardRule> {
        self.guards.iter().find(|rule| rule.guard == guard)
    }

    /// The limits in force at a sensitivity.
    #[must_use]
    pub fn thresholds(&self, sensitivity: Sensitivity) -> Thresholds {
        Thresholds::of(sensitivity).with(self.own_thresholds)
    }

    /// The recipe for people and programs; `whole` adds the schemas.
    #[must_use]
    pub fn view(&self, whole: bool) -> Value {
        let mut view = json!({
            "name": self.name, "title": self.title, "work": self.work,
            "needs_model": self.work == Work::Model, "human_in_loop": self.human_in_loop,
            "models": self.models, "limits": self.limits, "guards": self.guards, "kpis": self.kpis,
        });
        if whole {
            view["input_schema"] = self.input_schema.clone();
            view["output_schema"] = self.output_schema.clone();
            view["thresholds"] = json!({
                "default": self.thresholds(Sensitivity::Low),
                "high": self.thresholds(Sensitivity::High),
                "sacred": self.thresholds(Sensitivity::Sacred),
            });
        }
        view
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = name.bytes().all(|sign| sign.is_ascii_lowercase() || sign == b'-');
    if !plain || !(3..=64).contains(&name.len()) || name == RESERVED {
        return Err("a name has 3 to 64 lower-case letters and dashes, and is not `runs`".into());
    }
    Ok(())
}

fn check_guards(guards: &[GuardRule]) -> Result<(), String> {
    if let Some(pair) = guards.windows(2).find(|pair| pair[0].guard == pair[1].guard) {
        return Err(format!("the guard `{}` stands there twice", pair[0].guard.as_str()));
    }
    for rule in guards {
        let (guard, action) = (rule.guard.as_str(), rule.action.as_str());
        if !rule.action.suits(rule.guard) {
            return Err(format!("the guard `{guard}` cannot `{action}`"));
        }
        if rule.threshold.is_some_and(|line| !(1..=70).contains(&line)) {
            return Err(format!("the threshold of `{guard}` must be 1 to 70 hundredths"));
        }
    }
    Ok(())
}

/// Every recipe there is: the built-in ones, and an organisation's own beside them.
#[derive(Clone, Debug)]
pub struct Recipes {
    all: BTreeMap<String, Arc<Recipe>>,
}

impl Recipes {
    /// The built-in recipes.
    ///
    /// # Errors
    /// When a file is broken; a test makes sure that none is.
    pub fn builtin() -> Result<Self, RecipeError> {
        Self::with(&[])
    }

    /// The built-in recipes, and others given as (name of the file, text).
    ///
    /// # Errors
    /// When a file is broken, takes the name of another, or wants work that only this program does.
    pub fn with(own: &[(String, String)]) -> Result<Self, RecipeError> {
        let mut all = BTreeMap::new();
        for (file, text) in BUILTIN {
            let recipe = Recipe::read(file, text)?;
            all.insert(recipe.name.clone(), Arc::new(recipe));
        }
        for (file, text) in own {
            let recipe = Recipe::read(file, text)?;
            let wrong = |why: &str| RecipeError { file: file.clone(), why: why.to_owned() };
            if recipe.work != Work::Model {
                return Err(wrong("`work` must be `model` in a recipe of your own"));
            }
            if all.contains_key(&recipe.name) {
                return Err(wrong("there is a recipe of this name already"));
            }
            all.insert(recipe.name.clone(), Arc::new(recipe));
        }
        Ok(Self { all })
    }

    /// The recipe of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Recipe>> {
        self.all.get(name).cloned()
    }

    /// Every recipe, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Recipe>> {
        self.all.values()
    }
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
