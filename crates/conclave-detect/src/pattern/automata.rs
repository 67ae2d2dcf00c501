//! The automata that find all words in one pass: one for plain letters, one for all other scripts.
//!
//! **Invariant:** a text of plain letters never meets the words of other scripts, so that it is scanned
//! with the smaller automaton alone.

use crate::DetectError;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Finds words, which are numbered in the order in which they were given, plain ones first.
#[derive(Debug)]
pub(crate) struct Automata {
    plain: AhoCorasick,
    other: AhoCorasick,
    /// How many words are plain; the others are numbered after them.
    plain_words: usize,
}

impl Automata {
    /// Both together; the words of the second are numbered after those of the first.
    pub(super) fn new(plain: AhoCorasick, other: AhoCorasick) -> Self {
        Self { plain_words: plain.patterns_len(), plain, other }
    }

    /// Calls back with the number, start and end of every word found, overlapping ones too.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, usize, usize)) {
        for one in self.plain.find_overlapping_iter(text) {
            found(one.pattern().as_usize(), one.start(), one.end());
        }
        if !text.is_ascii() {
            for one in self.other.find_overlapping_iter(text) {
                found(one.pattern().as_usize() + self.plain_words, one.start(), one.end());
            }
        }
    }
}

/// The automaton that finds these words.
pub(super) fn automaton(words: &[&str]) -> Result<AhoCorasick, DetectError> {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .match_kind(MatchKind::Standard)
        .prefilter(false)
        .build(words)
        .map_err(|error| DetectError::Automaton(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_scripts_keep_their_numbers() {
        let [plain, other] =
            [["kill", "skill"], ["自殺", "殺"]].map(|words| automaton(&words).unwrap());
        let automata = Automata::new(plain, other);
        let found = |text: &str| {
            let mut all = Vec::new();
            automata.each(text, |word, start, end| all.push((word, start, end)));
            all.sort_unstable();
            all
        };
        assert_eq!(found("skill"), [(0, 1, 5), (1, 0, 5)]);
        assert_eq!(found("kill 自殺"), [(0, 0, 4), (2, 5, 11), (3, 8, 11)]);
        assert_eq!(found(""), []);
    }
}
