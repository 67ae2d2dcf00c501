//! Owns names of persons: from titles and introductions, from lists of first names and surnames,
//! and from the words around them.
//!
//! **Invariant:** a capital alone never makes a name: a list, an ending, a title or a context does.

mod cues;
mod figures;
mod japanese;
mod known;
mod labels;
mod mentions;
mod reader;
mod speakers;
mod words;

use crate::finder::Place;
use crate::text::Text;
use cues::Cues;
use figures::Figures;
use japanese::Japanese;
pub use known::{KnownNames, NAMES_MAX};
use reader::Reader;
use speakers::Speakers;
use words::{CasesSeen, Lexicon, Word};

/// So few words do not show their language.
const FEW_WORDS: usize = 5;
/// One of so many words of an English text is on the list of ordinary words, or more.
const ENGLISH_SHARE: usize = 4;

/// Finds names of persons.
#[derive(Debug)]
pub(crate) struct NameFinder {
    lexicon: Lexicon,
    cues: Cues,
    figures: Figures,
    japanese: Japanese,
    speakers: Speakers,
}

impl NameFinder {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            lexicon: Lexicon::new(),
            cues: Cues::new(),
            figures: Figures::new(),
            japanese: Japanese::new()?,
            speakers: Speakers::new(),
        })
    }

    /// Adds the names of those who speak in a text.
    pub(crate) fn learn_text(&self, text: &str, names: &mut KnownNames) {
        self.speakers.learn(&self.lexicon, text, names);
    }

    /// Adds the name that a field for the speaker holds.
    pub(crate) fn learn_speaker(&self, speaker: &str, names: &mut KnownNames) {
        self.speakers.learn_field(&self.lexicon, speaker, names);
    }

    /// Adds the known names in a field for the speaker to its places.
    pub(crate) fn find_in_speaker(&self, field: &str, known: &KnownNames, out: &mut Vec<Place>) {
        mentions::find_in_field(&self.lexicon, field, 0..field.len(), known, out);
    }

    /// Adds the names of a text to its places.
    pub(crate) fn find(&self, text: &Text<'_>, known: &KnownNames, places: &mut Vec<Place>) {
        if text.as_str().chars().any(|sign| sign as u32 >= 0x3040) {
            self.japanese.find(text, places);
            mentions::find_japanese_mentions(text, known, places);
        }
        if !known.is_empty() {
            mentions::find_labels(&self.lexicon, text, known, places);
        }
        let mut seen = CasesSeen::default();
        let words = self.lexicon.words(text.as_str());
        let mut at = 0;
        while at < words.len() {
            let fence = text.fence(words[at].start);
            let end = at + words[at..].partition_point(|word| word.start < fence);
            let block = &words[at..end];
            for word in block {
                seen.add(&text.as_str()[word.start..word.end]);
            }
            // A name is read with all words before it, but never with those after the next cut.
            let reader = Reader {
                text: text.as_str(),
                words: &words[..end],
                cues: &self.cues,
                figures: &self.figures,
                known,
                cased: seen.is_cased(),
                is_english: is_english(block),
            };
            reader.find_from(at, places);
            at = end;
        }
    }
}

fn is_english(words: &[Word]) -> bool {
    let ordinary = words.iter().filter(|word| word.marks.ordinary).count();
    words.len() <= FEW_WORDS || ordinary * ENGLISH_SHARE >= words.len()
}
