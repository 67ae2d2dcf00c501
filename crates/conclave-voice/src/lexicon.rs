//! Finding listed words in a text, in linear time.
//!
//! **Invariant:** a text is folded and cut to [`LETTERS_MAX`] before it is searched, so that the
//! work for one message is bounded however long it is.

use crate::VoiceError;
use aho_corasick::AhoCorasick;

/// How much of a message is looked at: its beginning and its end.
pub(crate) const LETTERS_MAX: usize = 4_000;

/// Lists of words, each word with the number of its list.
#[derive(Clone, Debug)]
pub(crate) struct Lexicon {
    automaton: AhoCorasick,
    words: Vec<Word>,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    list: usize,
    /// Latin words are found whole only; `*` at the end leaves the end open.
    whole_start: bool,
    whole_end: bool,
}

/// A word that was found, in bytes of the folded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) list: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Lexicon {
    /// Builds the automaton of all words; `file` is named in the error.
    pub(crate) fn build<'a>(
        file: &str,
        words: impl IntoIterator<Item = (usize, &'a str)>,
    ) -> Result<Self, VoiceError> {
        let (words, patterns): (Vec<_>, Vec<_>) = words
            .into_iter()
            .map(|(list, word)| (Word::new(list, word), fold(word.trim_end_matches('*'))))
            .unzip();
        if patterns.iter().any(String::is_empty) {
            return Err(VoiceError::malformed(file, &"an empty word"));
        }
        let automaton =
            AhoCorasick::new(&patterns).map_err(|error| VoiceError::malformed(file, &error))?;
        Ok(Self { automaton, words })
    }

    /// Every word in a folded text, in order, without those that lie within a longer one.
    pub(crate) fn scan(&self, folded: &str) -> Vec<Hit> {
        drop_inner(self.scan_all(folded))
    }

    /// Every word in a folded text, in order, the longest first where several begin.
    pub(crate) fn scan_all(&self, folded: &str) -> Vec<Hit> {
        let mut hits: Vec<_> = self
            .automaton
            .find_overlapping_iter(folded)
            .filter_map(|found| {
                let word = self.words.get(found.pattern().as_usize())?;
                let (start, end) = (found.start(), found.end());
                word.stands(folded, start, end).then_some(Hit { list: word.list, start, end })
            })
            .collect();
        hits.sort_by_key(|hit| (hit.start, usize::MAX - hit.end));
        hits
    }
}

impl Word {
    fn new(list: usize, word: &str) -> Self {
        let latin = |letter: Option<char>| letter.is_some_and(is_latin);
        Self {
            list,
            whole_start: latin(word.chars().next()),
            whole_end: latin(word.chars().next_back()),
        }
    }

    fn stands(self, text: &str, start: usize, end: usize) -> bool {
        let before = text.get(..start).and_then(|text| text.chars().next_back());
        let after = text.get(end..).and_then(|text| text.chars().next());
        !(self.whole_start && before.is_some_and(is_latin)
            || self.whole_end && after.is_some_and(is_latin))
    }
}

fn is_latin(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '\u{C0}'..='\u{24F}')
}

/// Keeps the hits that no longer hit encloses; they come sorted by start, the longest first.
fn drop_inner(hits: Vec<Hit>) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        let inner = kept.last().is_some_and(|outer| {
            hit.end <= outer.end && (hit.start, hit.end) != (outer.start, outer.end)
        });
        if !inner {
            kept.push(hit);
        }
    }
    kept
}

/// Lower case, ordinary apostrophes and widths, one blank for each run of white space, cut to size.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len().min(LETTERS_MAX * 4));
    for letter in cut(text) {
        match plain(letter) {
            letter if letter.is_whitespace() => {
                if !folded.is_empty() && !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            letter => folded.extend(letter.to_lowercase()),
        }
    }
    if folded.ends_with(' ') {
        folded.pop();
    }
    folded
}

/// The beginning and the end of a text that is too long to be read whole.
fn cut(text: &str) -> Box<dyn Iterator<Item = char> + '_> {
    let half = LETTERS_MAX / 2;
    let tail = text.char_indices().rev().nth(half - 1).map(|(at, _)| at);
    let head = text.char_indices().nth(half).map(|(at, _)| at);
    match (head, tail) {
        (Some(head), Some(tail)) if head < tail => {
            let start = text.get(..head).unwrap_or_default();
            let end = text.get(tail..).unwrap_or_default();
            Box::new(start.chars().chain(std::iter::once(' ')).chain(end.chars()))
        }
        _ => Box::new(text.chars()),
    }
}

fn plain(letter: char) -> char {
    match letter {
        '\u{2018}' | '\u{2019}' | '\u{02BC}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        '\u{3000}' => ' ',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon {
        let words = [(0, "sad"), (1, "not sad"), (2, "tire*"), (3, "悲し"), (4, "i'm")];
        Lexicon::build("test", words).unwrap()
    }

    fn lists(text: &str) -> Vec<usize> {
        lexicon().scan(&fold(text)).iter().map(|hit| hit.list).collect()
    }

    #[test]
    fn latin_words_are_found_whole_and_japanese_anywhere() {
        for (text, found) in [
            ("I am SAD.", vec![0]),
            ("Saddle up", vec![]),
            ("tired, tiresome", vec![2, 2]),
            ("entire", vec![]),
            ("とても悲しいです", vec![3]),
            ("not  sad", vec![1]),
            ("I’m ｓａｄ", vec![4, 0]),
        ] {
            assert_eq!(lists(text), found, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_at_both_ends() {
        let long = format!("sad {} sad", "x ".repeat(100_000));
        assert_eq!(lists(&long), [0, 0]);
        assert!(fold(&long).chars().count() <= LETTERS_MAX + 1);
        assert_eq!(fold(&"あ".repeat(LETTERS_MAX)).chars().count(), LETTERS_MAX);
    }

    #[test]
    fn an_empty_word_is_refused() {
        assert!(Lexicon::build("mine.toml", [(0, "*")]).is_err());
    }
}
