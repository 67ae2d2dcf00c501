//! The section `recipes`: which models they use, where words may go, and recipes of one's own.

use conclave_recipes::RecipeSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which models recipes use, where words may go, and recipes of one's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecipeSection {
    /// A directory with recipe files of your own, `*.toml`.
    pub dir: Option<PathBuf>,
    /// The model of the class `large`; `builtin` without one.
    pub large: Option<String>,
    /// The model of the class `small`; `builtin` without one.
    pub small: Option<String>,
    /// The only models for material of high or sacred sensitivity; any where empty.
    pub sensitive_models: Vec<String>,
    /// Where what is made is kept: countries by ISO 3166, or `EEA`.
    pub regions: Vec<String>,
    /// Where providers run, by their names: a country, or `EEA`.
    pub provider_regions: BTreeMap<String, String>,
}

impl RecipeSection {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What the engine is told.
    #[must_use]
    pub fn settings(&self) -> RecipeSettings {
        RecipeSettings {
            large: self.large.clone(),
            small: self.small.clone(),
            regions: self.regions.clone(),
        }
    }

    /// Everything in it that cannot be: (path, message).
    pub(super) fn faults(&self, models: &[&str], providers: &[&str]) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let classes = [("large", &self.large), ("small", &self.small)];
        let named = classes.into_iter().filter_map(|(name, model)| Some((name, model.as_deref()?)));
        let sensitive =
            self.sensitive_models.iter().map(|model| ("sensitive_models", model.as_str()));
        for (name, model) in named.chain(sensitive) {
            if model != "builtin" && !models.contains(&model) {
                faults.push((format!("recipes.{name}"), format!("there is no model `{model}`")));
            }
        }
        let regions = self.regions.iter().map(|region| ("recipes.regions".to_owned(), region));
        let of_providers = self
            .provider_regions
            .iter()
            .map(|(name, region)| (format!("recipes.provider_regions.{name}"), region));
        for (path, region) in regions.chain(of_providers) {
            let code = region.len() == 2 && region.bytes().all(|sign| sign.is_ascii_uppercase());
            if !code && region != "EEA" {
                faults.push((path, format!("`{region}` is no country code, nor `EEA`")));
            }
        }
        for name in self.provider_regions.keys().filter(|name| !providers.contains(&name.as_str()))
        {
            let message = format!("there is no provider `{name}`");
            faults.push((format!("recipes.provider_regions.{name}"), message));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_checked() {
        let section = RecipeSection {
            large: Some("gone".into()),
            small: Some("builtin".into()),
            regions: vec!["NZ".into(), "EEA".into(), "Europe".into()],
            provider_regions: [("nobody".into(), "us".into())].into(),
            ..RecipeSection::default()
        };
        let faults = section.faults(&["own"], &["house"]);
        let paths: Vec<_> = faults.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "recipes.large",
                "recipes.regions",
                "recipes.provider_regions.nobody",
                "recipes.provider_regions.nobody",
            ]
        );
    }
}
