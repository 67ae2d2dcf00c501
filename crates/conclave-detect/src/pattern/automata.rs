//! The automata that find all words in one pass: one for plain letters, one for all other scripts.
//!
//! **Invariant:** a text of plain letters never meets the words of other scripts, so that it is scanned
//! with the smaller automaton alone.

use crate::DetectError;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Finds words, which are numbered in the order in which they were given.
#[derive(Debug)]
pub(crate) struct Automata {
    plain: AhoCorasick,
    other: AhoCorasick,
    /// How many words are plain; the others are numbered after them.
    plain_words: usize,
}

impl Automata {
    /// Both automata, built side by side; plain words must come first.
    pub(super) fn build(words: &[&str]) -> Result<Self, DetectError> {
        let plain_words = words.partition_point(|word| word.is_ascii());
        let (plain, other) = words.split_at(plain_words);
        let (plain, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| automaton(other));
            (automaton(plain), other.join())
        });
        let broken = |_| DetectError::Automaton("building it was interrupted".into());
        Ok(Self { plain: plain?, other: other.map_err(broken)??, plain_words })
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

fn automaton(words: &[&str]) -> Result<AhoCorasick, DetectError> {
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
        let automata = Automata::build(&["kill", "skill", "自殺", "殺"]).unwrap();
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
