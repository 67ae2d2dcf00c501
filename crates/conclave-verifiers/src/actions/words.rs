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
    /// How a tool's name is read.
    pub names: Names,
    /// What the name of a value says about it.
    pub keys: Keys,
    /// By what it touches.
    pub objects: Objects,
    /// By how many.
    pub quantities: Quantities,
    /// By the rights it gives.
    pub access: Access,
    /// By what must not leave.
    pub secrets: Secrets,
}

/// How a tool's name is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Words that are things as often as deeds: another word of the name says what is done.
    pub things: Vec<String>,
    /// Words that join two deeds, so that the first does not stand for both.
    pub joins: Vec<String>,
    /// Words of paper: what is written down moves nothing.
    pub paper: Vec<String>,
    /// What is set back without loss.
    pub trifles: Vec<String>,
}

/// What the name of a value says about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// A person will read it.
    pub prose: Vec<String>,
    /// A name, a path, an id.
    pub labels: Vec<String>,
    /// What is to be done.
    pub deeds: Vec<String>,
    /// To whom, or to how much.
    pub scope: Vec<String>,
    /// The thing it is done to.
    pub devices: Vec<String>,
    /// How many.
    pub counts: Vec<String>,
}

/// What an action touches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// What keeps people safe.
    pub safety: Vec<String>,
    /// What can injure.
    pub hazard: Vec<String>,
    /// What many depend on while it runs.
    pub vital: Vec<String>,
    /// What an alarm is when it only wakes somebody.
    pub clock: Vec<String>,
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
    /// Many, in what is done.
    pub many_deeds: Vec<String>,
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
    /// Names of a secret, when its value follows.
    pub named: Vec<String>,
    /// Names of a number that is a secret, when digits follow.
    pub numbered: Vec<String>,
    /// Files that hold secrets.
    pub paths: Vec<String>,
    /// Files the system stands on.
    pub system_paths: Vec<String>,
    /// Signs of where somebody lives, when digits stand in the text.
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
