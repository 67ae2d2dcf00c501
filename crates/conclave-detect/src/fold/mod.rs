//! Folding: one plain form for the many ways to write the same words.
//!
//! **Invariant:** every byte of a folded text knows the scalar value of the original it came from, so
//! that a signal always points at what the person wrote.
//! **Invariant:** folding never fails, is linear, and a folded text is at most a small factor longer
//! than its source.

mod base;
pub(crate) mod chars;
mod confusable;
mod decode;
mod repair;
mod sound;
mod transform;
mod word_table;

pub(crate) use base::fold;
pub(crate) use decode::decode;
pub(crate) use repair::{Vocabulary, repair};
pub(crate) use transform::{
    caesar, reversed, rot13, rot13_word, tag_text, tags_in_place, without_signs_between,
};
pub use word_table::WordTable;

/// What was noticed while folding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Invisible characters between the letters of a word.
    pub(crate) hidden_in_words: u32,
    /// Letters of the tag block that are not part of a flag.
    pub(crate) tags: u32,
    /// Words that mixed look-alike scripts.
    pub(crate) mixed_words: u32,
    /// A word holds a digit or sign among its letters, or letters stand apart.
    pub(crate) repairable: bool,
}

/// A text in plain form, with the way back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folded {
    /// The plain form: lower case, single spaces, no disguise of letters.
    pub(crate) text: String,
    /// For each byte of `text`, the scalar value of the original it came from.
    starts: Vec<u32>,
    /// How many scalar values the original has.
    total: u32,
    backwards: bool,
    /// What was noticed on the way.
    pub(crate) traces: Traces,
}

impl Folded {
    fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            starts: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    fn push(&mut self, c: char, origin: u32) {
        self.text.push(c);
        self.starts.resize(self.text.len(), origin);
    }

    fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
        self.starts.truncate(bytes);
    }

    /// The origin of the character that starts at this byte.
    fn origin(&self, byte: usize) -> u32 {
        self.starts.get(byte).copied().unwrap_or(self.total)
    }

    /// Each character with the scalar value it came from.
    fn origins(&self) -> impl DoubleEndedIterator<Item = (char, u32)> + '_ {
        self.text.char_indices().map(|(byte, c)| (c, self.origin(byte)))
    }

    /// An empty text that maps into the same original.
    fn sibling(&self) -> Self {
        Self {
            total: self.total,
            backwards: self.backwards,
            traces: self.traces,
            ..Self::with_capacity(self.text.len())
        }
    }

    /// The span of the original, in scalar values, that these bytes came from.
    pub(crate) fn span(&self, start: usize, end: usize) -> (usize, usize) {
        let first = self.origin(start);
        let last = self.origin(end.saturating_sub(1).max(start));
        let (from, to) = if self.backwards || last < first {
            (first.min(last), first.max(last).saturating_add(1))
        } else {
            (first, self.origin(end).max(last.saturating_add(1)))
        };
        let total = self.total as usize;
        let from = (from as usize).min(total);
        (from, (to as usize).clamp(from, total))
    }
}

/// The plain form of a text alone.
pub(crate) fn plain_text(text: &str) -> String {
    fold(text).text
}

/// The plain form of a text and its language: what a trained classifier reads.
#[must_use]
pub fn plain_form(text: &str) -> (String, &'static str) {
    let folded = fold(text);
    let language = crate::language::identify(&folded.text);
    (folded.text, language)
}
