//! The data files, read and compiled once.
//!
//! **Invariant:** a file with an unknown name, a broken phrase or a rule said twice is an error;
//! what was read is never changed.

use super::kind::{Marker, RuleLabel};
use super::matcher::Matcher;
use super::phrase::{Compiler, Slots};
use super::scope::Modes;
use super::token::Vocabulary;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// A data file of the verifiers that cannot be used.
#[derive(Debug, Error)]
pub enum VerifierDataError {
    /// It is no TOML of the right shape.
    #[error("{file}: {source}")]
    Shape {
        /// Which file.
        file: String,
        /// What is wrong.
        source: Box<toml::de::Error>,
    },
    /// One of its rules is broken.
    #[error("{file}: rule {rule}: {message}")]
    Rule {
        /// Which file.
        file: String,
        /// Which rule.
        rule: String,
        /// What is wrong.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: String,
    #[serde(default)]
    words: BTreeMap<String, String>,
    #[serde(default)]
    slots: Slots,
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: String,
    is: String,
    #[serde(default)]
    weight: Option<u8>,
    #[serde(default)]
    reach: Option<u8>,
    #[serde(default)]
    keep: Vec<String>,
    phrases: Vec<String>,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, e.g. `en/isolates/need-no-friends`.
    pub id: Box<str>,
    /// What it is about.
    pub label: RuleLabel,
    /// How much it says, in hundredths.
    pub weight: u8,
    /// How many words away a marker still acts.
    pub reach: usize,
    /// In which ways of speaking it still counts.
    pub keep: Modes,
    /// Whether it is for languages that are not read in full: its words may mean something else in
    /// those that are.
    pub foreign: bool,
}

/// Every rule of every language.
#[derive(Debug)]
pub struct Lexicon {
    pub(super) vocabulary: Vocabulary,
    pub(super) rules: Vec<Rule>,
    pub(super) of_replies: Matcher,
    pub(super) of_people: Matcher,
}

const WEIGHT_DEFAULT: u8 = 80;
/// How the names of rules for languages that are not read in full begin.
const FOREIGN: &str = "more/";
const REACH_DEFAULT: u8 = 3;

const BUILTIN: [(&str, &str); 3] = [
    ("en.toml", include_str!("../../../../data/verifiers/en.toml")),
    ("ja.toml", include_str!("../../../../data/verifiers/ja.toml")),
    ("more.toml", include_str!("../../../../data/verifiers/more.toml")),
];

impl Lexicon {
    /// The built-in data, read once for everybody.
    ///
    /// # Errors
    /// When a built-in file is broken.
    pub fn shared() -> Result<Arc<Self>, VerifierDataError> {
        static SHARED: OnceLock<Arc<Lexicon>> = OnceLock::new();
        if let Some(shared) = SHARED.get() {
            return Ok(Arc::clone(shared));
        }
        let read = Arc::new(Self::builtin()?);
        Ok(Arc::clone(SHARED.get_or_init(|| read)))
    }

    /// The built-in English and Japanese data.
    ///
    /// # Errors
    /// When a built-in file is broken.
    pub fn builtin() -> Result<Self, VerifierDataError> {
        Self::from_files(&BUILTIN)
    }

    /// Data of these files, each a name and its text.
    ///
    /// # Errors
    /// When a file is broken.
    pub fn from_files(files: &[(&str, &str)]) -> Result<Self, VerifierDataError> {
        let files =
            files.iter().map(|(name, text)| parse(name, text)).collect::<Result<Vec<_>, _>>()?;
        let mut lexicon = Self {
            vocabulary: Vocabulary::new(spellings(&files)),
            rules: Vec::new(),
            of_replies: Matcher::default(),
            of_people: Matcher::default(),
        };
        let mut seen = BTreeSet::new();
        for (name, file) in files {
            for raw in file.rule {
                let id = format!("{}/{}/{}", file.language, raw.is, raw.id);
                let broken = |message| VerifierDataError::Rule {
                    file: name.clone(),
                    rule: id.clone(),
                    message,
                };
                if !seen.insert(id.clone()) {
                    return Err(broken("is there twice".into()));
                }
                lexicon.add(&id, &raw, &file.slots).map_err(broken)?;
            }
        }
        Ok(lexicon)
    }

    fn add(&mut self, id: &str, raw: &RawRule, slots: &Slots) -> Result<(), String> {
        let label = RuleLabel::parse(&raw.is).ok_or_else(|| format!("nothing is {:?}", raw.is))?;
        let number = self.rules.len();
        for (line, text) in raw.phrases.iter().enumerate() {
            let mut compiler = Compiler { vocabulary: &mut self.vocabulary, slots };
            for phrase in compiler.phrases(text)? {
                if !matches!(label, RuleLabel::Cue(_)) {
                    self.of_replies.add(number, line + 1, phrase.clone());
                }
                if !matches!(label, RuleLabel::Act(_)) {
                    self.of_people.add(number, line + 1, phrase);
                }
            }
        }
        self.rules.push(Rule {
            id: id.into(),
            label,
            weight: raw.weight.unwrap_or(WEIGHT_DEFAULT).min(100),
            reach: usize::from(raw.reach.unwrap_or(REACH_DEFAULT)),
            keep: Modes::parse(&raw.keep)?,
            foreign: id.starts_with(FOREIGN),
        });
        Ok(())
    }

    pub(super) fn marker(&self, rule: usize) -> Option<Marker> {
        match self.rules[rule].label {
            RuleLabel::Marker(marker) => Some(marker),
            RuleLabel::Act(_) | RuleLabel::Cue(_) => None,
        }
    }
}

fn parse(name: &str, text: &str) -> Result<(String, File), VerifierDataError> {
    let file = toml::from_str(text).map_err(|source| VerifierDataError::Shape {
        file: name.to_owned(),
        source: Box::new(source),
    })?;
    Ok((name.to_owned(), file))
}

fn spellings(files: &[(String, File)]) -> HashMap<Box<str>, Box<[Box<str>]>> {
    files
        .iter()
        .flat_map(|(_, file)| &file.words)
        .map(|(from, to)| (from.as_str().into(), to.split_whitespace().map(Into::into).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Lexicon::from_files(&[("test.toml", text)]).unwrap_err().to_string()
    }

    #[test]
    fn the_built_in_data_compiles() {
        let lexicon = Lexicon::builtin().unwrap();
        assert!(lexicon.rules.len() > 100);
    }

    #[test]
    fn broken_data_is_named() {
        for (text, part) in [
            ("nonsense", "test.toml"),
            ("language='xx'\n[[rule]]\nid='a'\nis='b'\nphrases=['c']", "xx/b/a"),
            ("language='xx'\n[[rule]]\nid='a'\nis='shames'\nphrases=['(c']", "never closed"),
            ("language='xx'\n[[rule]]\nid='a'\nis='shames'\nkeep=['z']\nphrases=['c']", "\"z\""),
            ("language='xx'\ncolour='red'", "colour"),
        ] {
            let message = error_of(text);
            assert!(message.contains(part), "{message}");
        }
        let rule = "[[rule]]\nid='a'\nis='shames'\nphrases=['c']\n";
        assert!(error_of(&format!("language='xx'\n{rule}{rule}")).contains("twice"));
    }
}
