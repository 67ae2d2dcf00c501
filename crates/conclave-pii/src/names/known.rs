//! Owns the names that are known to be somebody's: of those who speak in a material, so that they
//! are found wherever they are spoken of.
//!
//! **Invariant:** a name is learnt from a speaker's label or field, never from a sentence.
//! **Invariant:** the debug form never shows a name, and there are at most [`NAMES_MAX`].

use super::words::fold_key;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The most names that are remembered; a material with more speakers is not one conversation.
pub const NAMES_MAX: usize = 4_096;

/// Names of those who speak, collected over all texts of one material before any of them is
/// searched. It is as personal as the texts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// Words of Latin script, in small letters and without accents.
    latin: HashSet<String>,
    /// Names in Japanese script by their first sign, the longest first.
    japanese: HashMap<char, Vec<String>>,
    japanese_count: usize,
}

impl KnownNames {
    /// No names yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many names and parts of names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.latin.len() + self.japanese_count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn add_latin(&mut self, written: &str) {
        if self.len() < NAMES_MAX {
            self.latin.insert(fold_key(written));
        }
    }

    pub(crate) fn add_japanese(&mut self, name: &str) {
        let Some(first) = name.chars().next().filter(|_| self.len() < NAMES_MAX) else { return };
        let names = self.japanese.entry(first).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
            names.sort_by_key(|known| std::cmp::Reverse(known.len()));
            self.japanese_count += 1;
        }
    }

    pub(crate) fn has_latin(&self, key: &str) -> bool {
        self.latin.contains(key)
    }

    pub(crate) fn has_japanese(&self) -> bool {
        self.japanese_count > 0
    }

    /// The names that a text begins with, the longest first.
    pub(crate) fn japanese_at<'n>(&'n self, text: &'n str) -> impl Iterator<Item = &'n str> {
        let names = text.chars().next().and_then(|first| self.japanese.get(&first));
        names.into_iter().flatten().map(String::as_str).filter(|name| text.starts_with(name))
    }
}

impl fmt::Debug for KnownNames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KnownNames({})", self.len())
    }
}
