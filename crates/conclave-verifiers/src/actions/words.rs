//! The word lists of `actions.toml`.

use crate::VerifierDataError;
use serde::Deserialize;
use std::collections::HashMap;

/// What an action does, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Makes all of it disappear.
    Reset,
    /// Makes something disappear.
    Delete,
    /// Switches something off.
    Disable,
    /// Opens what was closed.
    Open,
    /// Moves money.
    Pay,
    /// Gives somebody rights.
    Grant,
    /// Makes something public.
    Publish,
    /// Tells somebody.
    Send,
    /// Moves or sets a device.
    Control,
    /// Runs a program.
    Execute,
    /// Changes something.
    Change,
    /// Prepares something.
    Draft,
    /// Looks.
    Read,
}

/// The lists.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// By what an action does.
    pub effects: HashMap<Effect, Vec<String>>,
    /// By what it touches.
    pub objects: Objects,
    /// By how many.
    pub quantities: Quantities,
    /// By the rights it gives.
    pub access: Access,
    /// By what must not leave.
    pub secrets: Secrets,
}

/// What an action touches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// What keeps people safe.
    pub safety: Vec<String>,
    /// What can injure.
    pub hazard: Vec<String>,
    /// What keeps people alive.
    pub medical: Vec<String>,
    /// Doors and locks.
    pub entry: Vec<String>,
    /// Data whose loss hurts.
    pub precious: Vec<String>,
    /// Where many people are.
    pub crowd: Vec<String>,
}

/// How many are touched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantities {
    /// Many.
    pub many: Vec<String>,
}

/// Rights.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// To do anything.
    pub powerful: Vec<String>,
    /// For anyone.
    pub open: Vec<String>,
}

/// What must not leave.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Signs of a secret in a text.
    pub marks: Vec<String>,
    /// Files that hold secrets.
    pub paths: Vec<String>,
    /// Files the system stands on.
    pub system_paths: Vec<String>,
    /// Signs of personal data.
    pub personal: Vec<String>,
}

impl Words {
    /// The built-in lists.
    ///
    /// # Errors
    /// When the built-in file is broken.
    pub fn builtin() -> Result<Self, VerifierDataError> {
        toml::from_str(include_str!("../../../../data/verifiers/actions.toml")).map_err(|source| {
            VerifierDataError::Shape { file: "actions.toml".into(), source: Box::new(source) }
        })
    }
}
