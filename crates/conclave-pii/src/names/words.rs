//! Owns the cutting of a text into words, with what the case and the lists say about each.
//!
//! **Invariant:** words are Latin letters only; other scripts separate them.

use super::cues::ROLES;
use crate::breaks::is_short_word;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;
use unicode_normalization::UnicodeNormalization;

const FIRST_NAMES: &str = include_str!("../../data/first_names.txt");
const AMBIGUOUS: &str = include_str!("../../data/ambiguous.txt");
const LAST_NAMES: &str = include_str!("../../data/last_names.txt");
const ORDINARY: &str = include_str!("../../data/ordinary.txt");

/// Endings that make a word a surname in some language.
const ENDINGS: &[&str] = &[
    "ova", "kova", "eva", "ovic", "evic", "ivic", "avic", "owski", "ewski", "inski", "ynski",
    "wicz", "czyk", "czak", "enko", "chuk", "shvili", "adze", "inen", "onen", "anen", "unen",
    "ynen", "sson", "dottir", "ssen", "nsen", "rsen", "ksen", "lsen", "gaard", "strom", "qvist",
    "quist", "lund", "berg", "stein", "mann", "hauer", "huber", "meier", "meyer", "opoulos",
    "poulou", "idis", "akis", "escu", "oglu", "ndez", "guez", "eira", "elli", "etti", "ucci",
    "acci", "ozzi", "moto", "mura", "yama", "gawa", "kawa", "zaki", "guchi", "hashi", "wala",
    "swamy", "ovich", "evich", "ovna", "evna", "dijk", "lainen", "ov", "ev", "sky", "ska", "ski",
    "oyan", "aryan", "nyan", "halmi", "falvi",
];

/// What a word does beside a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Title,
    Thing,
    Deed,
    Speech,
    Request,
    Work,
    Label,
    Belonging,
    Pronoun,
    Place,
    Degree,
    Fame,
    WordName,
    Past,
    Determiner,
}

/// The roles that a word can play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles(u16);

impl Roles {
    pub(crate) fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u16) != 0
    }

    fn add(&mut self, role: Role) {
        self.0 |= 1 << role as u16;
    }
}

/// What the lists say about a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) first: bool,
    pub(crate) ambiguous: bool,
    pub(crate) last: bool,
    pub(crate) ordinary: bool,
    pub(crate) roles: Roles,
}

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Title,
    Upper,
}

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Only a space, or a point and a space after an initial or a title.
    Space,
    Comma,
    Colon,
    /// A new line, the end of a sentence, or the start of the text.
    Start,
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) key: String,
    pub(crate) case: Case,
    pub(crate) gap: Gap,
    pub(crate) marks: Marks,
}

impl Word {
    pub(crate) fn is_capital(&self) -> bool {
        self.case != Case::Lower
    }

    /// A first name that is hardly ever anything else.
    pub(crate) fn is_sure_first(&self) -> bool {
        self.marks.first && !self.marks.ambiguous && !self.marks.ordinary
    }

    pub(crate) fn is_initial(&self) -> bool {
        self.key.len() == 1 && self.case != Case::Lower && self.key != "i"
    }

    /// A surname from the list or by its ending.
    pub(crate) fn is_surname(&self) -> bool {
        (self.marks.last && !self.marks.ordinary) || self.has_surname_ending()
    }

    pub(crate) fn has_surname_ending(&self) -> bool {
        let key = self.key.as_str();
        let gaelic = key.len() >= 6
            && (key.starts_with("mc") || key.starts_with("o'") || key.starts_with("fitz"));
        let ends = || {
            ENDINGS
                .iter()
                .any(|ending| key.ends_with(ending) && key.len() >= ending.len().max(2) + 3)
        };
        !self.marks.ordinary && (gaelic || ends())
    }

    pub(crate) fn length(&self) -> usize {
        self.end - self.start
    }
}

/// The lists in one table.
#[derive(Debug)]
pub(crate) struct Lexicon(HashMap<&'static str, Marks>);

impl Lexicon {
    pub(crate) fn new() -> Self {
        let mut table: HashMap<&'static str, Marks> = HashMap::new();
        let mut mark = |list: &'static str, set: fn(&mut Marks)| {
            for word in entries(list) {
                set(table.entry(word).or_default());
            }
        };
        mark(FIRST_NAMES, |marks| marks.first = true);
        mark(AMBIGUOUS, |marks| marks.ambiguous = true);
        mark(LAST_NAMES, |marks| marks.last = true);
        mark(ORDINARY, |marks| marks.ordinary = true);
        for (role, list) in ROLES {
            for word in entries(list) {
                table.entry(word).or_default().roles.add(*role);
            }
        }
        Self(table)
    }

    fn marks(&self, key: &str) -> Marks {
        let whole = self.0.get(key).copied().unwrap_or_default();
        match key.split_once('-') {
            Some((head, tail)) if whole == Marks::default() => {
                let is_first = |part: &str| self.0.get(part).is_some_and(|marks| marks.first);
                Marks { first: is_first(head) && is_first(tail), ..Marks::default() }
            }
            _ => whole,
        }
    }

    /// The words of a text.
    pub(crate) fn words(&self, text: &str) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::with_capacity(text.len() / 6);
        for span in WordSpans::new(text) {
            let after = words.last().map_or(0, |word| word.end);
            let gap = gap(&text[after..span.start], words.last());
            words.push(self.word(&text[span.clone()], span, gap));
        }
        words
    }

    fn word(&self, written: &str, span: Range<usize>, gap: Gap) -> Word {
        let key = fold_key(written);
        // Short words of languages with many accents fold to short names by chance.
        let by_chance = !written.is_ascii() && key.len() <= 3;
        let marks = if by_chance { Marks::default() } else { self.marks(&key) };
        Word { start: span.start, end: span.end, case: case_of(written), key, gap, marks }
    }
}

/// Which cases the words of a text have so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CasesSeen {
    has_lower: bool,
    has_title: bool,
    has_upper: bool,
}

impl CasesSeen {
    pub(crate) fn add(&mut self, written: &str) {
        if written.len() > 1 {
            match case_of(written) {
                Case::Lower => self.has_lower = true,
                Case::Title => self.has_title = true,
                Case::Upper => self.has_upper = true,
            }
        }
    }

    /// Whether capitals mean something: not where everything is small or everything is large.
    pub(crate) fn is_cased(self) -> bool {
        self.has_title || (self.has_lower && self.has_upper)
    }
}

/// Where the words of a text stand.
struct WordSpans<'t> {
    text: &'t str,
    signs: Peekable<CharIndices<'t>>,
}

impl<'t> WordSpans<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, signs: text.char_indices().peekable() }
    }
}

impl Iterator for WordSpans<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let (start, sign) = self.signs.find(|(_, sign)| is_letter(*sign))?;
        let mut end = start + sign.len_utf8();
        while let Some((at, next)) =
            self.signs.next_if(|(at, next)| continues(self.text, *at, *next))
        {
            end = at + next.len_utf8();
        }
        Some(start..without_genitive(self.text, start, end))
    }
}

/// Where a word ends without the `'s` of what belongs to somebody.
fn without_genitive(text: &str, start: usize, end: usize) -> usize {
    let written = &text[start..end];
    let stem = written.strip_suffix("'s").or(written.strip_suffix("'S"));
    let contracted =
        |stem: &&str| matches!(*stem, "it" | "It" | "he" | "He" | "she" | "She" | "that" | "That");
    stem.filter(|stem| !contracted(stem)).map_or(end, |stem| start + stem.len())
}

/// The words of a list, comments left out.
pub(crate) fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace)
}

fn is_letter(sign: char) -> bool {
    sign.is_ascii_alphabetic()
        || (sign.is_alphabetic() && matches!(sign as u32, 0xc0..=0x24f | 0x1e00..=0x1eff))
}

/// Letters and marks; an apostrophe, a hyphen inside a word.
fn continues(text: &str, at: usize, sign: char) -> bool {
    let inner = || text[at + sign.len_utf8()..].chars().next().is_some_and(is_letter);
    is_letter(sign)
        || matches!(sign as u32, 0x300..=0x36f)
        || (matches!(sign, '\'' | '-') && inner())
}

fn case_of(written: &str) -> Case {
    let mut signs = written.chars();
    let first = signs.next().is_some_and(char::is_uppercase);
    let rest_upper = written.chars().skip(1).all(|sign| !sign.is_lowercase());
    match (first, rest_upper && written.len() > 1) {
        (false, _) => Case::Lower,
        (true, true) => Case::Upper,
        (true, false) => Case::Title,
    }
}

fn gap(between: &str, before: Option<&Word>) -> Gap {
    let Some(before) = before else { return Gap::Start };
    let initial =
        (before.key.len() <= 2 && !is_short_word(&before.key)) || is_abbreviation(&before.key);
    match between {
        " " | "  " => Gap::Space,
        "." | ". " | ".  " if initial => Gap::Space,
        _ if between.contains(['\n', '!', '?', '>', '\u{2022}']) || between.contains(". ") => {
            Gap::Start
        }
        _ if between.trim_end().ends_with(['"', '\u{201c}', '(', '*']) => Gap::Start,
        _ if between.trim() == "," => Gap::Comma,
        _ if between.trim_start().starts_with(':') => Gap::Colon,
        _ => Gap::Other,
    }
}

fn is_abbreviation(key: &str) -> bool {
    matches!(
        key,
        "mrs"
            | "prof"
            | "sgt"
            | "capt"
            | "rev"
            | "hon"
            | "sra"
            | "mlle"
            | "mme"
            | "messrs"
            | "attn"
    )
}

/// Lower case without accents.
pub(crate) fn fold_key(written: &str) -> String {
    if written.is_ascii() {
        return written.to_ascii_lowercase();
    }
    let mut key = String::with_capacity(written.len());
    for sign in written.nfd().filter(|sign| !matches!(*sign as u32, 0x300..=0x36f)) {
        match sign.to_lowercase().next().unwrap_or(sign) {
            'ø' => key.push('o'),
            'ł' => key.push('l'),
            'đ' | 'ð' => key.push('d'),
            'ı' => key.push('i'),
            'ß' => key.push_str("ss"),
            'æ' => key.push_str("ae"),
            'œ' => key.push_str("oe"),
            'þ' => key.push_str("th"),
            other => key.push(other),
        }
    }
    key
}
