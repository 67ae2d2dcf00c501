//! What recipes work with: files, rules, finders, the models of each class, and how the latest runs went.

use super::{RecipeRunner, RunningRun};
use crate::{Empathy, ModelClass, Recipes};
use conclave_engine::BUILTIN_MODEL;
use conclave_ledger::{Body, Draft, Kind, Value as Public};
use conclave_ports::{Announcement, EventKind};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
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
    /// Where what is made is kept, ISO 3166; empty where it has not been said.
    pub regions: Vec<String>,
}

/// How the latest runs of a recipe went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatestRuns {
    /// The slowest of the fastest 95 %.
    pub p95_ms: u64,
    /// Failures in hundredths of a percent.
    pub errors_e4: u32,
}

/// What recipes work with.
pub struct Workshop {
    /// Every recipe.
    pub recipes: Recipes,
    /// What an operator says.
    pub settings: RecipeSettings,
    pub(crate) empathy: Empathy,
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
            latest: Mutex::default(),
            told: Mutex::default(),
        })
    }

    /// The model of a class.
    pub(crate) fn model(&self, class: ModelClass) -> &str {
        let named = match class {
            ModelClass::Large => &self.settings.large,
            ModelClass::Small => &self.settings.small,
        };
        named.as_deref().unwrap_or(BUILTIN_MODEL)
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
    pub(crate) fn lately(&self, recipe: &str) -> Option<LatestRuns> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = latest.get(recipe).filter(|runs| runs.len() >= WINDOW_MIN)?;
        let mut times: Vec<_> = runs.iter().map(|(took, _)| *took).collect();
        times.sort_unstable();
        let p95_ms = times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied()?;
        let failed = runs.iter().filter(|(_, failed)| *failed).count();
        let errors_e4 = u32::try_from(failed * 10_000 / runs.len()).unwrap_or(10_000);
        Some(LatestRuns { p95_ms, errors_e4 })
    }
}

impl Workshop {
    /// The p95 of a recipe's latest runs, where it is over the objective and nobody of the tenant was told
    /// within the hour.
    pub(crate) fn too_slow(
        &self,
        tenant: u64,
        recipe: &str,
        objective_ms: u64,
        now_ms: u64,
    ) -> Option<u64> {
        let slow = self.lately(recipe).filter(|latest| latest.p95_ms > objective_ms)?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < TOLD_AGAIN_MS);
        let key = (tenant, recipe.to_owned());
        if told.contains_key(&key) || told.len() >= TOLD_MAX {
            return None;
        }
        told.insert(key, now_ms);
        Some(slow.p95_ms)
    }
}

impl RecipeRunner {
    /// Notes how a run went, and tells its tenant where the latest runs miss the objective.
    pub(super) fn note_duration(&self, run: &RunningRun, duration_ms: u64, failed: bool) {
        let recipe = run.recipe().name.as_str();
        self.workshop.note(recipe, duration_ms, failed);
        let objective_ms = run.recipe().thresholds(run.context.sensitivity_level).p95_ms;
        let tenant = run.matter.who.tenant;
        let now_ms = self.engine.clock.now_ms();
        let slow = self.workshop.too_slow(tenant, recipe, objective_ms, now_ms);
        let Some(p95_ms) = slow else { return };
        tracing::warn!(
            recipe,
            p95_ms,
            objective_ms,
            "the latest runs take longer than they should"
        );
        let draft = Draft {
            public: Public::map([
                ("recipe", Public::from(recipe)),
                ("p95_ms", Public::Uint(p95_ms)),
                ("objective_ms", Public::Uint(objective_ms)),
            ]),
            ..self.engine.settings.draft(Kind::Other("latency.alert".to_owned()), tenant)
        };
        self.engine.ledger.append_soon(draft, Body::empty());
        let data = json!({"recipe": recipe, "p95_ms": p95_ms, "objective_ms": objective_ms});
        let announcement = Announcement { kind: EventKind::LatencyAlert, data };
        self.engine.announce_soon(&run.matter.tenant, announcement);
    }
}

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
        let latest = LatestRuns { p95_ms: 10, errors_e4: 500 };
        assert_eq!(workshop.lately("x"), Some(latest));
        (0..WINDOW).for_each(|_| workshop.note("x", 7, false));
        let latest = LatestRuns { p95_ms: 7, errors_e4: 0 };
        assert_eq!(workshop.lately("x"), Some(latest), "old runs leave");
    }

    #[test]
    fn slowness_is_told_once_an_hour_to_each_tenant() {
        let workshop = Workshop::new(&[], RecipeSettings::default()).unwrap();
        (0..WINDOW_MIN).for_each(|_| workshop.note("x", 6_000, false));
        assert_eq!(workshop.too_slow(1, "x", 6_000, 5), None, "as long as it may take");
        assert_eq!(workshop.too_slow(1, "x", 5_000, 5), Some(6_000));
        assert_eq!(workshop.too_slow(1, "x", 5_000, TOLD_AGAIN_MS), None);
        assert_eq!(workshop.too_slow(2, "x", 5_000, TOLD_AGAIN_MS), Some(6_000));
        assert_eq!(workshop.too_slow(1, "x", 5_000, TOLD_AGAIN_MS + 5), Some(6_000));
        assert_eq!(workshop.too_slow(1, "y", 5_000, 5), None, "too few to say anything");
    }
}
