//! What recipes work with: files, rules, finders, the models of each class, and how the latest runs went.

use conclave_core::Sensitivity;
use conclave_pii::Finder;
use conclave_recipes::{Empathy, Jurisdictions, ModelClass, Recipes};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, OnceLock, PoisonError};
use thiserror::Error;

/// So many of the latest runs of a recipe are looked at.
const WINDOW: usize = 256;
/// Fewer runs say nothing about the next.
const WINDOW_MIN: usize = 20;

/// So soon somebody is told again that a recipe is slow.
const TOLD_AGAIN_MS: u64 = 60 * 60 * 1_000;
/// So many tenants and recipes are remembered for it.
const TOLD_MAX: usize = 10_000;

/// Why there is no workshop: a file that is compiled in, or an organisation's own recipe, is broken.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub struct WorkshopError(String);

/// What an operator says about recipes.
#[derive(Clone, Debug, Default)]
pub struct RecipeSettings {
    /// The model of the class `large`; the built-in responder without one.
    pub large: Option<String>,
    /// The model of the class `small`; the built-in responder without one.
    pub small: Option<String>,
    /// The only models for material of high or sacred sensitivity; any where empty.
    pub sensitive_models: Vec<String>,
    /// Where what is made is kept, ISO 3166; empty where it has not been said.
    pub regions: Vec<String>,
    /// Where providers run, ISO 3166.
    pub provider_regions: BTreeMap<String, String>,
}

/// What recipes work with.
pub struct Workshop {
    /// Every recipe.
    pub recipes: Recipes,
    /// What an operator says.
    pub settings: RecipeSettings,
    pub(crate) empathy: Empathy,
    pub(crate) jurisdictions: Jurisdictions,
    /// Large, and only recipes look with it: made when the first does.
    finder: OnceLock<Finder>,
    latest: Mutex<HashMap<String, VecDeque<(u64, bool)>>>,
    /// When somebody was last told that a recipe is slow, by tenant and recipe.
    told: Mutex<HashMap<(u64, String), u64>>,
}

impl Workshop {
    /// The built-in recipes and an organisation's own, given as (name of the file, text).
    ///
    /// # Errors
    /// When a file cannot be used; the error names it.
    pub fn new(own: &[(String, String)], settings: RecipeSettings) -> Result<Self, WorkshopError> {
        let wrong = |error: &dyn std::fmt::Display| WorkshopError(error.to_string());
        Ok(Self {
            recipes: Recipes::with(own).map_err(|error| wrong(&error))?,
            settings,
            empathy: Empathy::builtin().map_err(|error| wrong(&error))?,
            jurisdictions: Jurisdictions::builtin().map_err(|error| wrong(&error))?,
            finder: OnceLock::new(),
            latest: Mutex::default(),
            told: Mutex::default(),
        })
    }

    /// Finds identifying data.
    #[expect(
        clippy::expect_used,
        reason = "what it is made of is compiled in, and a test makes it"
    )]
    pub(crate) fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| Finder::builtin().expect("the built-in patterns are sound"))
    }

    /// The model of a class.
    pub(crate) fn model(&self, class: ModelClass) -> &str {
        let named = match class {
            ModelClass::Large => &self.settings.large,
            ModelClass::Small => &self.settings.small,
        };
        named.as_deref().unwrap_or(BUILTIN)
    }

    /// Whether a model may see material of this sensitivity.
    pub(crate) fn permits(&self, model: &str, sensitivity: Sensitivity) -> bool {
        let listed = &self.settings.sensitive_models;
        sensitivity < Sensitivity::High
            || listed.is_empty()
            || listed.iter().any(|one| one == model)
    }

    /// Notes how long a run took and whether it failed.
    pub(crate) fn note(&self, recipe: &str, duration_ms: u64, failed: bool) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = latest.entry(recipe.to_owned()).or_default();
        if runs.len() >= WINDOW {
            runs.pop_front();
        }
        runs.push_back((duration_ms, failed));
    }

    /// The slowest of the fastest 95 % of the latest runs, and failures in hundredths of a percent.
    pub(crate) fn lately(&self, recipe: &str) -> Option<(u64, u32)> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = latest.get(recipe).filter(|runs| runs.len() >= WINDOW_MIN)?;
        let mut times: Vec<_> = runs.iter().map(|(took, _)| *took).collect();
        times.sort_unstable();
        let p95 = times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied()?;
        let failed = runs.iter().filter(|(_, failed)| *failed).count();
        let errors = u32::try_from(failed * 10_000 / runs.len()).unwrap_or(10_000);
        Some((p95, errors))
    }
}

impl Workshop {
    /// The p95 of a recipe's latest runs, where it is over the objective and nobody of the tenant was told
    /// within the hour.
    pub(crate) fn too_slow(
        &self,
        (tenant, recipe): (u64, &str),
        objective_ms: u64,
        now_ms: u64,
    ) -> Option<u64> {
        let (p95_ms, _) = self.lately(recipe).filter(|(p95_ms, _)| *p95_ms > objective_ms)?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < TOLD_AGAIN_MS);
        let key = (tenant, recipe.to_owned());
        if told.contains_key(&key) || told.len() >= TOLD_MAX {
            return None;
        }
        told.insert(key, now_ms);
        Some(p95_ms)
    }
}

/// The model that answers without any provider: recipes make extracts with it.
pub(crate) const BUILTIN: &str = "builtin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_windows_and_error_rates_are_those_of_the_latest_runs() {
        let workshop = Workshop::new(&[], RecipeSettings::default()).unwrap();
        assert_eq!(workshop.lately("x"), None);
        (0..19).for_each(|_| workshop.note("x", 10, false));
        assert_eq!(workshop.lately("x"), None, "too few to say anything");
        workshop.note("x", 9_000, true);
        assert_eq!(workshop.lately("x"), Some((10, 500)));
        (0..WINDOW).for_each(|_| workshop.note("x", 7, false));
        assert_eq!(workshop.lately("x"), Some((7, 0)), "old runs leave");
    }

    #[test]
    fn the_finder_can_be_made() {
        let workshop = Workshop::new(&[], RecipeSettings::default()).unwrap();
        assert_eq!(workshop.finder().find("Write to ana@mail.example.").len(), 1);
    }

    #[test]
    fn slowness_is_told_once_an_hour_to_each_tenant() {
        let workshop = Workshop::new(&[], RecipeSettings::default()).unwrap();
        (0..WINDOW_MIN).for_each(|_| workshop.note("x", 6_000, false));
        assert_eq!(workshop.too_slow((1, "x"), 6_000, 5), None, "as long as it may take");
        assert_eq!(workshop.too_slow((1, "x"), 5_000, 5), Some(6_000));
        assert_eq!(workshop.too_slow((1, "x"), 5_000, TOLD_AGAIN_MS), None);
        assert_eq!(workshop.too_slow((2, "x"), 5_000, TOLD_AGAIN_MS), Some(6_000));
        assert_eq!(workshop.too_slow((1, "x"), 5_000, TOLD_AGAIN_MS + 5), Some(6_000));
        assert_eq!(workshop.too_slow((1, "y"), 5_000, 5), None, "too few to say anything");
    }

    #[test]
    fn high_sensitivity_is_only_for_models_that_are_named() {
        let named = RecipeSettings { sensitive_models: vec!["own".into()], ..Default::default() };
        let workshop = Workshop::new(&[], named).unwrap();
        assert!(workshop.permits("any", Sensitivity::Medium));
        assert!(!workshop.permits("any", Sensitivity::High));
        assert!(workshop.permits("own", Sensitivity::Sacred));
    }
}
