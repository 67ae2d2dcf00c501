//! A few practical answers, so that an everyday question need not be sent away.

use crate::lexicon::{Lexicon, fold};
use crate::{Language, VoiceError, error};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HowtoFile {
    howto: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    en: Side,
    ja: Side,
}

/// One answer in one language.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    /// Of each group, one word has to occur.
    needs: Vec<Vec<String>>,
    answer: String,
}

/// The answers of one language and the words that call for them.
#[derive(Clone, Debug)]
struct Shelf {
    lexicon: Lexicon,
    /// For each answer, the numbers of its groups.
    groups: Vec<Vec<usize>>,
    answers: Vec<String>,
}

/// The practical answers.
#[derive(Clone, Debug)]
pub(super) struct Howtos {
    english: Shelf,
    japanese: Shelf,
}

impl Howtos {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, VoiceError> {
        let entries: HowtoFile = error::parse(file, text)?;
        let (english, japanese): (Vec<_>, Vec<_>) =
            entries.howto.into_iter().map(|entry| (entry.en, entry.ja)).unzip();
        Ok(Self { english: Shelf::build(file, english)?, japanese: Shelf::build(file, japanese)? })
    }

    /// The answer that fits best: all its groups occur, and no other has more of them.
    pub(super) fn find(&self, language: Language, text: &str) -> Option<usize> {
        let shelf = self.shelf(language);
        let found: Vec<usize> =
            shelf.lexicon.scan_all(&fold(text)).iter().map(|hit| hit.list).collect();
        shelf
            .groups
            .iter()
            .enumerate()
            .filter(|(_, groups)| groups.iter().all(|group| found.contains(group)))
            .max_by_key(|(at, groups)| (groups.len(), usize::MAX - at))
            .map(|(at, _)| at)
    }

    pub(super) fn answer(&self, language: Language, at: usize) -> &str {
        self.shelf(language).answers.get(at).map_or("", String::as_str)
    }

    const fn shelf(&self, language: Language) -> &Shelf {
        match language {
            Language::English => &self.english,
            Language::Japanese => &self.japanese,
        }
    }
}

impl Shelf {
    fn build(file: &str, sides: Vec<Side>) -> Result<Self, VoiceError> {
        let mut words: Vec<(usize, String)> = Vec::new();
        let (mut groups, mut answers, mut next) = (Vec::new(), Vec::new(), 0);
        for side in sides {
            if side.needs.is_empty() || side.answer.trim().is_empty() {
                return Err(VoiceError::missing(file, "needs or answer of a how-to"));
            }
            let first = next;
            for group in side.needs {
                words.extend(group.into_iter().map(|word| (next, word)));
                next += 1;
            }
            groups.push((first..next).collect());
            answers.push(side.answer);
        }
        let words = words.iter().map(|(group, word)| (*group, word.as_str()));
        Ok(Self { lexicon: Lexicon::build(file, words)?, groups, answers })
    }
}
