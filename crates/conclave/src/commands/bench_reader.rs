//! What the whole reader costs a text, and how often it asks its slower tiers.

use super::bench::{SENTENCES, rate};
use super::checker;
use crate::config::SecondTier;
use crate::output;
use conclave_core::{Mode, Role};
use conclave_detect::{Detector, TextClassifier};
use serde::Serialize;
use std::sync::Arc;

/// Words of a text.
const WORDS: usize = 60;
/// Japanese is written without blanks; a word of ordinary prose has about two characters.
const JAPANESE_CHARS: usize = WORDS * 2;
/// Texts of each language.
const TEXTS: usize = 16;
/// The sentences of a language begin with so many in which nothing is to be found.
const ORDINARY_SENTENCES: usize = 8;

/// What was measured with every tier at hand.
#[derive(Clone, Debug, Serialize)]
pub struct ReaderSpeed {
    /// Milliseconds of a core for an English text of 60 words.
    pub english_60_words_ms: f64,
    /// Milliseconds of a core for a Japanese text of about 60 words.
    pub japanese_60_words_ms: f64,
    /// How often each tier was asked for those texts, read once; empty where that is not counted.
    pub tiers: Vec<TierUse>,
}

/// How often a tier was asked.
#[derive(Clone, Debug, Serialize)]
pub struct TierUse {
    tier: &'static str,
    asked_per_100_texts: f64,
}

/// Measures the reader as `check` uses it.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn measure() -> anyhow::Result<ReaderSpeed> {
    let trained = Arc::new(checker::classifier(SecondTier::Unsure)?);
    let detector = checker::detector_with(trained.clone())?;
    let english = english_texts();
    let japanese = japanese_texts();
    let tiers = count_tiers(&*trained, &detector, &[english.as_slice(), &japanese].concat());
    Ok(ReaderSpeed {
        english_60_words_ms: 1e3 / rate(&detector, &english),
        japanese_60_words_ms: 1e3 / rate(&detector, &japanese),
        tiers,
    })
}

/// Nothing has been read before, so that all that is counted is of these texts.
fn count_tiers(
    trained: &dyn TextClassifier,
    detector: &Detector,
    texts: &[String],
) -> Vec<TierUse> {
    for text in texts {
        let turns = [(Role::User, text.as_str())];
        std::hint::black_box(detector.read_conversation(&turns, Mode::Normal));
    }
    let hundreds = f64::from(u32::try_from(texts.len()).unwrap_or(u32::MAX)) / 100.0;
    let used = |asked: u64| f64::from(u32::try_from(asked).unwrap_or(u32::MAX)) / hundreds;
    let counts = trained.tier_counts().into_iter();
    counts.map(|one| TierUse { tier: one.tier, asked_per_100_texts: used(one.asked) }).collect()
}

impl ReaderSpeed {
    /// Prints a line a figure.
    pub fn print(&self) {
        for (name, figure) in [
            ("every tier, 60 English words, one core", self.english_60_words_ms),
            ("every tier, 60 Japanese words, one core", self.japanese_60_words_ms),
        ] {
            output::line(&format!("{name:<40}{:>10}", format!("{figure:.2} ms")));
        }
        for TierUse { tier, asked_per_100_texts } in &self.tiers {
            let name = format!("{tier}, asked for 100 ordinary texts");
            output::line(&format!("{name:<40}{asked_per_100_texts:>10.1}"));
        }
    }
}

fn ordinary_sentences(is_wanted: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let lines = SENTENCES.lines().filter(|line| !line.is_empty() && is_wanted(line));
    lines.take(ORDINARY_SENTENCES).collect()
}

/// The sentences once around, from another one for each text.
fn from_sentence<'a>(sentences: &'a [&'a str], start: usize) -> impl Iterator<Item = &'a str> {
    sentences.iter().copied().cycle().skip(start % ORDINARY_SENTENCES)
}

fn english_texts() -> Vec<String> {
    let sentences = ordinary_sentences(str::is_ascii);
    let text = |start| {
        // Every second round begins within a sentence, so that no two texts are the same.
        let words = from_sentence(&sentences, start).flat_map(str::split_whitespace);
        words.skip(start / ORDINARY_SENTENCES).take(WORDS).collect::<Vec<_>>().join(" ")
    };
    (0..TEXTS).map(text).collect()
}

/// An English text of 60 words.
pub fn sixty_words() -> String {
    english_texts().swap_remove(0)
}

fn japanese_texts() -> Vec<String> {
    let sentences = ordinary_sentences(|line| !line.is_ascii());
    let text = |start| {
        let letters = from_sentence(&sentences, start).flat_map(str::chars);
        letters.skip(start / ORDINARY_SENTENCES).take(JAPANESE_CHARS).collect()
    };
    (0..TEXTS).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_detect::{AsReply, ClassifierError, Estimate, TierCount};
    use std::collections::BTreeSet;

    #[test]
    fn texts_have_their_length_and_differ() {
        let english = english_texts();
        assert!(english.iter().all(|text| text.split(' ').count() == WORDS && text.is_ascii()));
        let japanese = japanese_texts();
        assert!(japanese.iter().all(|text| text.chars().count() == JAPANESE_CHARS));
        let all: BTreeSet<_> = english.iter().chain(&japanese).collect();
        assert_eq!(all.len(), 2 * TEXTS);
    }

    struct CountsThree;

    impl TextClassifier for CountsThree {
        fn name(&self) -> &'static str {
            "three"
        }

        fn tier_counts(&self) -> Vec<TierCount> {
            vec![TierCount { tier: "second", asked: 3 }]
        }

        fn text(&self, _: &str, _: &str) -> Result<Estimate, ClassifierError> {
            Err(ClassifierError("it only counts".into()))
        }

        fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
            Err(ClassifierError("it only counts".into()))
        }
    }

    #[test]
    fn a_classifier_that_counts_is_asked_for_its_tiers() {
        let detector = Detector::builtin().unwrap();
        let texts = vec!["hello".to_owned(); 4];
        let tiers = count_tiers(&CountsThree, &detector, &texts);
        assert_eq!((tiers[0].tier, tiers[0].asked_per_100_texts), ("second", 75.0));
    }
}
