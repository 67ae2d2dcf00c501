//! Which models clients may ask for, who answers, and at what price.
//!
//! **Invariant:** a name means one model; two entries with the same name are an error, not a
//! choice.

use conclave_core::MicroUsd;
use conclave_engine::{Model, ModelDirectory, OfferedModel};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// One model that is offered.
#[derive(Clone)]
pub struct Entry {
    /// What clients call it.
    pub name: String,
    /// What the provider calls it.
    pub upstream: String,
    /// Who runs it.
    pub provider: Arc<str>,
    /// Who runs the models that stand in for it.
    pub stand_ins: Vec<Arc<str>>,
    /// What answers.
    pub model: Arc<dyn Model>,
    /// Price per million tokens read.
    pub input_price: MicroUsd,
    /// Price per million tokens written.
    pub output_price: MicroUsd,
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Entry")
            .field("name", &self.name)
            .field("upstream", &self.upstream)
            .field("provider", &self.provider)
            .field("input_price", &self.input_price)
            .field("output_price", &self.output_price)
            .finish_non_exhaustive()
    }
}

/// A name was given to two models.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the model {0} is configured twice")]
pub struct DuplicateModel(pub String);

/// All models that are offered.
#[derive(Clone, Debug, Default)]
pub struct Models {
    entries: BTreeMap<String, Entry>,
}

impl Models {
    /// Takes the entries of a configuration.
    ///
    /// # Errors
    /// When two have the same name.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Result<Self, DuplicateModel> {
        let mut models = Self::default();
        for entry in entries {
            let name = entry.name.clone();
            if models.entries.insert(name.clone(), entry).is_some() {
                return Err(DuplicateModel(name));
            }
        }
        Ok(models)
    }

    /// The model with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// Every model, by name.
    pub fn list(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

impl ModelDirectory for Models {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        let entry = self.get(name)?;
        Some(OfferedModel {
            model: Arc::clone(&entry.model),
            provider: Arc::clone(&entry.provider),
            input_price: entry.input_price,
            output_price: entry.output_price,
        })
    }

    fn providers(&self, name: &str) -> Vec<Arc<str>> {
        let asked = |entry: &Entry| {
            std::iter::once(&entry.provider).chain(&entry.stand_ins).cloned().collect()
        };
        self.get(name).map(asked).unwrap_or_default()
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        self.list().map(|entry| (entry.name.clone(), Arc::clone(&entry.provider))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::Builtin;
    use conclave_core::Usage;

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.into(),
            upstream: format!("upstream-{name}"),
            provider: "somebody".into(),
            stand_ins: vec!["another".into()],
            model: Arc::new(Builtin::new().unwrap()),
            input_price: MicroUsd(2_000_000),
            output_price: MicroUsd(8_000_000),
        }
    }

    #[test]
    fn models_are_found_by_their_visible_name() {
        let models = Models::new([entry("large"), entry("fast")]).unwrap();
        assert_eq!(models.get("fast").unwrap().upstream, "upstream-fast");
        assert!(models.find("upstream-fast").is_none());
        let asked = models.providers("fast");
        assert_eq!(asked, ["somebody".into(), "another".into()], "stand-ins are asked too");
        let names: Vec<String> = models.names().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["fast", "large"]);
    }

    #[test]
    fn a_name_means_one_model() {
        let error = Models::new([entry("fast"), entry("fast")]).unwrap_err();
        assert_eq!(error, DuplicateModel("fast".into()));
    }

    #[test]
    fn a_model_has_its_price() {
        let models = Models::new([entry("fast")]).unwrap();
        let usage = Usage { input_tokens: 1_000, output_tokens: 500 };
        assert_eq!(models.find("fast").unwrap().cost(usage), MicroUsd(6_000));
    }
}
