//! Text to words: folded, spelled one way, with the sentence, clause and quotation of each.
//!
//! Latin words become one token each; kana and Han characters one token per character, so that one
//! matcher serves languages with and without spaces.
//!
//! **Invariant:** linear in the text; every token belongs to exactly one sentence.

use conclave_detect::WordTable;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// A word the data files never mention.
pub const UNKNOWN: u32 = 0;
/// Any number that no phrase names.
pub const NUMBER: u32 = 1;
/// "not": no gap of a phrase reaches across it.
pub const NOT: u32 = 2;
/// "never": no gap of a phrase reaches across it.
pub const NEVER: u32 = 3;
/// Numbers that phrases name, such as 911, have ids of their own up to here: a phrase that says 119
/// means 119.
const NAMED_NUMBERS_END: u32 = NEVER + 1 + 64;

/// The words data files use, and their spellings.
#[derive(Debug)]
pub struct Vocabulary {
    words: WordTable,
    /// The id of each of the words.
    ids: Vec<u32>,
    numbers: HashMap<Box<str>, u32>,
    respelled: WordTable,
    /// How each of the respelled is spelled.
    spellings: Vec<Box<[Box<str>]>>,
    next: u32,
}

impl Vocabulary {
    /// Nothing known but the spellings.
    #[must_use]
    pub fn new(spelled: HashMap<Box<str>, Box<[Box<str>]>>) -> Self {
        let (mut respelled, mut spellings) = (WordTable::default(), Vec::new());
        for (word, spelling) in spelled {
            respelled.insert(&word);
            spellings.push(spelling);
        }
        let mut words = WordTable::default();
        let ids = [("not", NOT), ("never", NEVER)].map(|(word, id)| {
            words.insert(word);
            id
        });
        let (ids, numbers) = (ids.to_vec(), HashMap::new());
        Self { words, ids, numbers, respelled, spellings, next: NAMED_NUMBERS_END }
    }

    /// The id of a folded word, made if new.
    pub fn intern(&mut self, word: &str) -> u32 {
        if is_number(word) {
            return self.intern_number(word);
        }
        if let Some(id) = self.id(word) {
            return id;
        }
        let id = self.next;
        self.next += 1;
        self.words.insert(word);
        self.ids.push(id);
        id
    }

    fn intern_number(&mut self, word: &str) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).saturating_add(NEVER + 1);
        if next >= NAMED_NUMBERS_END && !self.numbers.contains_key(word) {
            return NUMBER;
        }
        *self.numbers.entry(word.into()).or_insert(next)
    }

    fn id(&self, word: &str) -> Option<u32> {
        self.words.number(word).and_then(|number| self.ids.get(number)).copied()
    }

    fn known(&self, word: &str) -> bool {
        self.id(word).is_some() || self.respelled.number(word).is_some()
    }

    /// Gives a raw folded word in its canonical spelling, one or more words at a time.
    pub fn spell(&self, word: &str, each: &mut dyn FnMut(&str)) {
        let respelled = self.respelled.number(word).and_then(|at| self.spellings.get(at));
        if let Some(words) = respelled {
            words.iter().for_each(|word| each(word));
            return;
        }
        match split_suffix(word) {
            Some((stem, suffix)) => {
                each(stem);
                each(suffix);
            }
            None => each(&self.unstretched(word)),
        }
    }

    /// "sooo" is "so" and "yeahhh" is "yeah", where the short form is a word we know.
    fn unstretched<'w>(&self, word: &'w str) -> std::borrow::Cow<'w, str> {
        if self.known(word) || !has_run_of_three(word) {
            return word.into();
        }
        [2, 1]
            .into_iter()
            .map(|keep| squeeze(word, keep))
            .find(|short| self.known(short))
            .map_or(word.into(), Into::into)
    }

    fn lookup(&self, word: &str) -> u32 {
        if is_number(word) {
            return self.numbers.get(word).copied().unwrap_or(NUMBER);
        }
        self.id(word).unwrap_or(UNKNOWN)
    }
}

/// Whether an id is that of a number, named by a phrase or not.
pub const fn is_number_id(id: u32) -> bool {
    id == NUMBER || (NEVER < id && id < NAMED_NUMBERS_END)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

fn split_suffix(word: &str) -> Option<(&str, &'static str)> {
    const SUFFIXES: [(&str, &str); 7] = [
        ("n't", "not"),
        ("'re", "are"),
        ("'m", "am"),
        ("'ll", "will"),
        ("'ve", "have"),
        ("'d", "would"),
        ("'s", "'s"),
    ];
    SUFFIXES.iter().find_map(|(suffix, word_of)| {
        let stem = word.strip_suffix(suffix)?;
        (!stem.is_empty()).then_some((stem, *word_of))
    })
}

fn has_run_of_three(word: &str) -> bool {
    let mut run = (None, 0);
    word.chars().any(|letter| {
        run = if run.0 == Some(letter) { (run.0, run.1 + 1) } else { (Some(letter), 1) };
        run.1 == 3
    })
}

fn squeeze(word: &str, keep: usize) -> String {
    let mut out = String::with_capacity(word.len());
    let mut run = (None, 0);
    for letter in word.chars() {
        run = if run.0 == Some(letter) { (run.0, run.1 + 1) } else { (Some(letter), 1) };
        if run.1 <= keep {
            out.push(letter);
        }
    }
    out
}

/// What stands between a token and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// Nothing but space.
    None,
    /// A comma or the like.
    Clause,
    /// The end of a sentence.
    Sentence,
}

/// One sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its first token.
    pub start: usize,
    /// One past its last token.
    pub end: usize,
    /// Whether it ends in a question mark, or asks as Japanese does without one.
    pub question: bool,
    /// Whether it opens a list item: "1." or "-".
    pub item: bool,
    /// Whether its line opens with somebody's name, as in a play: "Captain:" or "[Captain]".
    pub voice: bool,
}

/// A text in words.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The words.
    pub ids: Vec<u32>,
    /// What stands before each.
    pub before: Vec<Edge>,
    /// Whether each stands within quotation marks.
    pub quoted: Vec<bool>,
    /// The sentence of each.
    pub sentence_of: Vec<usize>,
    /// The sentences.
    pub sentences: Vec<Sentence>,
    /// Letters and digits, counted before spelling.
    pub letters: usize,
    /// Of these, kana.
    pub kana: usize,
    /// Of these, Han characters.
    pub han: usize,
    /// Of these, basic Latin.
    pub latin: usize,
    /// Lines within fenced code.
    pub code_lines: usize,
}

impl Tokens {
    /// Reads a text.
    #[must_use]
    pub fn read(text: &str, vocabulary: &Vocabulary) -> Self {
        let mut reader = Reader::new(vocabulary);
        let mut fenced = false;
        for line in text.split(['\n', '\r']) {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            reader.tokens.code_lines += usize::from(fenced);
            reader.line(line);
        }
        reader.finish()
    }

    /// Whether any edge of at least this strength lies between two positions.
    #[must_use]
    pub fn parted(&self, from: usize, to: usize, edge: Edge) -> bool {
        self.before[from..=to.min(self.before.len().saturating_sub(1))]
            .iter()
            .any(|before| *before >= edge)
    }

    /// How much of it stands in quotation marks, in hundredths.
    #[must_use]
    pub fn quoted_share(&self) -> usize {
        let quoted = self.quoted.iter().filter(|quoted| **quoted).count();
        quoted * 100 / self.quoted.len().max(1)
    }
}

/// Folds a text the way both texts and data are folded.
pub fn fold(text: &str) -> impl Iterator<Item = char> + '_ {
    // Plain letters have one form already; most texts are nothing else.
    let (plain, other) = if text.is_ascii() { (text, "") } else { ("", text) };
    let plain = plain.chars().map(|letter| match letter.to_ascii_lowercase() {
        '`' => '\'',
        letter => letter,
    });
    plain.chain(other.nfkc().flat_map(fold_char))
}

fn fold_char(letter: char) -> impl Iterator<Item = char> {
    let plain = match letter {
        '\u{2018}' | '\u{2019}' | '\u{02bc}' | '`' | '\u{00b4}' => '\'',
        other => other,
    };
    plain.to_lowercase()
}

/// Whether a character is a token of its own.
#[must_use]
pub const fn is_solitary(letter: char) -> bool {
    is_kana(letter) || is_han(letter) || is_hangul(letter)
}

/// Whether a character is part of a word: a letter, a digit, or a sign that belongs to a letter.
#[must_use]
pub fn is_wordly(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '\u{0900}'..='\u{0dff}' | '\u{0300}'..='\u{036f}')
}

const fn is_hangul(letter: char) -> bool {
    matches!(letter, '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}')
}

const fn is_kana(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{309f}' | '\u{30a0}'..='\u{30ff}')
}

const fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '々')
}

struct Reader<'v> {
    vocabulary: &'v Vocabulary,
    tokens: Tokens,
    word: String,
    edge: Edge,
    sentence_start: usize,
    item: bool,
    voice: bool,
    double_open: bool,
    bracket_depth: usize,
    single_open: bool,
}

impl<'v> Reader<'v> {
    fn new(vocabulary: &'v Vocabulary) -> Self {
        Self {
            vocabulary,
            tokens: Tokens::default(),
            word: String::new(),
            edge: Edge::Sentence,
            sentence_start: 0,
            item: false,
            voice: false,
            double_open: false,
            bracket_depth: 0,
            single_open: false,
        }
    }

    fn line(&mut self, line: &str) {
        let (item, line) = strip_item(line.trim_start());
        self.item = item;
        self.voice = !item && opens_with_name(line);
        let mut letters = fold(line).peekable();
        let mut last = ' ';
        while let Some(letter) = letters.next() {
            self.letter(letter, last, letters.peek().copied());
            last = letter;
        }
        self.end_word();
        self.end_sentence(false);
        // A quotation left open must not swallow the rest of the text.
        self.double_open = false;
        self.single_open = false;
        self.bracket_depth = 0;
    }

    fn letter(&mut self, letter: char, last: char, next: Option<char>) {
        if is_solitary(letter) || letter == 'ー' {
            self.end_word();
            self.count(letter);
            self.push_char(letter);
        } else if is_wordly(letter) {
            self.count(letter);
            self.word.push(letter);
        } else if letter == '\'' {
            self.apostrophe(last, next);
        } else {
            self.end_word();
            self.mark(letter, next);
        }
    }

    fn count(&mut self, letter: char) {
        self.tokens.letters += 1;
        self.tokens.kana += usize::from(is_kana(letter));
        self.tokens.han += usize::from(is_han(letter));
        self.tokens.latin += usize::from(letter.is_ascii());
    }

    fn apostrophe(&mut self, last: char, next: Option<char>) {
        let joins = next.is_some_and(char::is_alphanumeric);
        if last.is_alphanumeric() && joins {
            self.word.push('\'');
            return;
        }
        self.end_word();
        if self.single_open {
            self.single_open = false;
        } else if joins && !last.is_alphanumeric() {
            self.single_open = true;
        }
    }

    fn mark(&mut self, letter: char, next: Option<char>) {
        match letter {
            '.' if next.is_some_and(char::is_alphanumeric) => {}
            '.' | '!' | '。' | '…' | '｡' => self.end_sentence(false),
            '?' => self.end_sentence(true),
            '"' => self.double_open = !self.double_open,
            '“' => self.double_open = true,
            '”' => self.double_open = false,
            '「' | '『' => self.bracket_depth += 1,
            '」' | '』' => self.bracket_depth = self.bracket_depth.saturating_sub(1),
            ',' | ';' | ':' | '、' | '—' | '–' | '(' | ')' | '~' => {
                self.edge_at_least(Edge::Clause);
            }
            _ => {}
        }
    }

    fn edge_at_least(&mut self, edge: Edge) {
        self.edge = self.edge.max(edge);
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let vocabulary = self.vocabulary;
        vocabulary.spell(&word, &mut |word| self.push(vocabulary.lookup(word)));
        self.word = word;
        self.word.clear();
    }

    fn push_char(&mut self, letter: char) {
        let id = self.vocabulary.id(letter.encode_utf8(&mut [0; 4]));
        self.push(id.unwrap_or(UNKNOWN));
    }

    fn push(&mut self, id: u32) {
        let quoted = self.double_open || self.single_open || self.bracket_depth > 0;
        self.tokens.ids.push(id);
        self.tokens.before.push(self.edge);
        self.tokens.quoted.push(quoted);
        self.tokens.sentence_of.push(self.tokens.sentences.len());
        self.edge = Edge::None;
    }

    fn end_sentence(&mut self, question: bool) {
        self.edge = Edge::Sentence;
        let (start, end) = (self.sentence_start, self.tokens.ids.len());
        if start < end {
            let item = std::mem::take(&mut self.item);
            let voice = std::mem::take(&mut self.voice);
            self.tokens.sentences.push(Sentence { start, end, question, item, voice });
            self.sentence_start = end;
        } else if question && let Some(sentence) = self.tokens.sentences.last_mut() {
            // "Really?!" and "really!?" are the same question.
            sentence.question = true;
        }
    }

    fn finish(mut self) -> Tokens {
        self.end_word();
        self.end_sentence(false);
        self.tokens
    }
}

/// "[Captain]", "(Captain):" or "Captain:", in at most three short words, with something said
/// after it.
fn opens_with_name(line: &str) -> bool {
    let bracketed = line.trim_start_matches(['*', '"', '#', ' ']).starts_with(['[', '(', '{']);
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let Some(end) = line.char_indices().take(28).find(|(_, c)| matches!(c, ':' | ']' | ')' | '}'))
    else {
        return false;
    };
    let name = &line[..end.0];
    let closes = if bracketed { end.1 != ':' || name.len() < 20 } else { end.1 == ':' };
    closes
        && name.split_whitespace().count() <= 3
        && name.starts_with(char::is_uppercase)
        && line[end.0..].len() > 3
}

fn strip_item(line: &str) -> (bool, &str) {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=2).contains(&digits)
        && let Some(rest) = line[digits..].strip_prefix(['.', ')'])
    {
        return (true, rest);
    }
    match line.strip_prefix(['-', '•', '・', '*']) {
        Some(rest) if rest.starts_with(' ') || line.starts_with(['•', '・']) => (true, rest),
        _ => (false, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vocabulary(words: &[&str]) -> Vocabulary {
        let spellings = [("dont", "do not"), ("can't", "can not"), ("u", "you")]
            .into_iter()
            .map(|(from, to)| (from.into(), to.split(' ').map(Into::into).collect()))
            .collect();
        let mut vocabulary = Vocabulary::new(spellings);
        for word in words {
            vocabulary.intern(word);
        }
        vocabulary
    }

    fn ids(text: &str, vocabulary: &Vocabulary) -> Vec<u32> {
        Tokens::read(text, vocabulary).ids
    }

    #[test]
    fn spellings_of_the_same_words_are_the_same_words() {
        let vocabulary = vocabulary(&["do", "not", "you", "can", "so", "are", "is"]);
        for (one, other) in [
            ("don't", "dont"),
            ("DON’T", "do not"),
            ("u can't", "you can not"),
            ("sooo", "so"),
            ("ｙｏｕ", "you"),
            ("you're", "you are"),
            ("isn't", "is not"),
        ] {
            assert_eq!(ids(one, &vocabulary), ids(other, &vocabulary), "{one} / {other}");
        }
    }

    #[test]
    fn sentences_questions_items_and_quotations_are_seen() {
        let vocabulary = vocabulary(&["you", "are"]);
        let tokens = Tokens::read("1. He said \"you are\" so. 3.5 you?!\n- are", &vocabulary);
        let shape: Vec<_> = tokens.sentences.iter().map(|s| (s.item, s.question)).collect();
        assert_eq!(shape, [(true, false), (false, true), (true, false)]);
        assert_eq!(tokens.quoted.iter().filter(|quoted| **quoted).count(), 2);
    }

    #[test]
    fn a_quotation_ends_with_its_line_and_a_code_fence_hides_nothing() {
        let vocabulary = vocabulary(&["you"]);
        let tokens = Tokens::read("「you\nyou\n```\nyou\n```", &vocabulary);
        assert_eq!(tokens.quoted, [true, false, false]);
        assert_eq!(tokens.code_lines, 1);
    }

    proptest! {
        #[test]
        fn every_token_belongs_to_one_sentence(text in "\\PC{0,200}") {
            let tokens = Tokens::read(&text, &vocabulary(&["you"]));
            let covered: usize = tokens.sentences.iter().map(|s| s.end - s.start).sum();
            prop_assert_eq!(covered, tokens.ids.len());
            for (at, sentence) in tokens.sentence_of.iter().enumerate() {
                let sentence = tokens.sentences[*sentence];
                prop_assert!((sentence.start..sentence.end).contains(&at));
            }
        }
    }
}
