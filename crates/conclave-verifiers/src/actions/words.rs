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
    /// By the people it reaches and what they depend on.
    pub people: People,
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

/// People, what they depend on and what may be done to them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct People {
    /// What patients are connected to.
    pub life: Vec<String>,
    /// What the public depends on, and what holds danger back from it.
    pub public: Vec<String>,
    /// What guards people against a machine.
    pub guards: Vec<String>,
    /// Words for an end.
    pub stops: Vec<String>,
    /// Settings that mean an end when they are nothing.
    pub settings: Vec<String>,
    /// Words for setting a safeguard aside.
    pub overrides: Vec<String>,
    /// Words for the utmost.
    pub extremes: Vec<String>,
    /// Names of numbers that are doses, settings and sums.
    pub measures: Vec<String>,
    /// Groups of people.
    pub groups: Vec<String>,
    /// Words for taking something from somebody.
    pub takes: Vec<String>,
    /// What is private about a person.
    pub private: Vec<String>,
    /// Whom it does not concern.
    pub outsiders: Vec<String>,
    /// Steps that protect somebody.
    pub cares: Vec<String>,
    /// Ways to write that there is none.
    pub nones: Vec<String>,
    /// Words for doing it so that nobody sees it.
    pub covers: Vec<String>,
    /// Signs that nothing real happens.
    pub trials: Vec<String>,
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
        let file = include_str!("../../../../data/verifiers/actions.toml");
        let mut words: Self = toml::from_str(file).map_err(|source| VerifierDataError::Shape {
            file: "actions.toml".into(),
            source: Box::new(source),
        })?;
        words.add_plurals();
        Ok(words)
    }

    /// What stands in the lists of things in the singular is found in the plural as well.
    fn add_plurals(&mut self) {
        let (objects, people) = (&mut self.objects, &mut self.people);
        for list in [
            &mut objects.safety,
            &mut objects.hazard,
            &mut objects.vital,
            &mut objects.medical,
            &mut objects.entry,
            &mut people.life,
            &mut people.public,
            &mut people.guards,
            &mut people.groups,
            &mut people.private,
        ] {
            let is_singular = |word: &&String| word.is_ascii() && !word.ends_with('s');
            let plurals: Vec<_> =
                list.iter().filter(is_singular).map(|word| format!("{word}s")).collect();
            list.extend(plurals);
        }
    }
}
