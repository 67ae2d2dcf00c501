//! Word pieces: the longest known pieces of each word, from its beginning.
//!
//! **Invariant:** at most [`TOKENS_MAX`] tokens, whatever the text; a text of any script gives tokens.

use crate::ClassifyError;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// More of a text is not cut into pieces: its start and its end are enough.
const TOKENS_MAX: usize = 4096;
/// A longer word is nothing the vocabulary knows.
const WORD_CHARS_MAX: usize = 100;

pub(super) struct WordPieces {
    beginnings: HashMap<Box<str>, u32>,
    continuations: HashMap<Box<str>, u32>,
    unknown: u32,
    start: u32,
    end: u32,
}

impl WordPieces {
    /// Takes the vocabulary: one piece a line.
    pub(super) fn new(vocabulary: &str) -> Result<Self, ClassifyError> {
        let mut beginnings = HashMap::new();
        let mut continuations = HashMap::new();
        for (piece, number) in vocabulary.lines().zip(0u32..) {
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => continuations.insert(rest.into(), number),
                _ => beginnings.insert(piece.into(), number),
            };
        }
        let special = |name: &str| {
            let missing = || ClassifyError::Description(format!("the vocabulary has no {name}"));
            beginnings.get(name).copied().ok_or_else(missing)
        };
        let (unknown, start, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        Ok(Self { beginnings, continuations, unknown, start, end })
    }

    pub(super) const fn start(&self) -> u32 {
        self.start
    }

    pub(super) const fn end(&self) -> u32 {
        self.end
    }

    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut word = String::new();
        for c in text.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
            if tokens.len() >= TOKENS_MAX {
                return tokens;
            }
            if c.is_alphanumeric() && !stands_alone(c) {
                word.push(c);
                continue;
            }
            self.word(&mut word, &mut tokens);
            if !c.is_whitespace() && !c.is_control() {
                word.push(c);
                self.word(&mut word, &mut tokens);
            }
        }
        self.word(&mut word, &mut tokens);
        tokens
    }

    /// The share of tokens that are known.
    pub(super) fn known_share(&self, tokens: &[u32]) -> f32 {
        let known = tokens.iter().filter(|token| **token != self.unknown).count();
        #[expect(clippy::cast_precision_loss, reason = "some thousand at most")]
        let share = known as f32 / tokens.len().max(1) as f32;
        share
    }

    fn word(&self, word: &mut String, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let mut rest = word.as_str();
        if rest.chars().nth(WORD_CHARS_MAX).is_some() {
            tokens.push(self.unknown);
            rest = "";
        }
        while !rest.is_empty() {
            let pieces =
                if tokens.len() == before { &self.beginnings } else { &self.continuations };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let longest = ends.into_iter().find_map(|end| Some((end, *pieces.get(&rest[..end])?)));
            let Some((end, number)) = longest else {
                tokens.truncate(before);
                tokens.push(self.unknown);
                break;
            };
            tokens.push(number);
            rest = &rest[end..];
        }
        word.clear();
    }
}

/// Characters of scripts without blanks are words of their own.
const fn stands_alone(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces() -> WordPieces {
        WordPieces::new("[UNK]\n[CLS]\n[SEP]\nkill\n##ing\nthe\n?\n死\ncafe").unwrap()
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        let pieces = pieces();
        assert_eq!(pieces.tokens("Killing the Café?"), [3, 4, 5, 8, 6]);
        assert_eq!(pieces.tokens("killer"), [0]);
        assert_eq!(pieces.tokens("死死"), [7, 7]);
        assert_eq!(pieces.tokens(""), [0u32; 0]);
        assert!((pieces.known_share(&pieces.tokens("kill him")) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn endless_text_is_bounded() {
        let pieces = pieces();
        assert!(pieces.tokens(&"a".repeat(1_000_000)).len() <= TOKENS_MAX);
        assert!(pieces.tokens(&"? ".repeat(100_000)).len() <= TOKENS_MAX);
    }

    #[test]
    fn a_vocabulary_without_the_special_pieces_is_refused() {
        assert!(WordPieces::new("kill\nthe").is_err());
    }
}
