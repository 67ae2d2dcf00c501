//! Owns the mentions of names that are known: where such a word is the person, and where it is only
//! the word.
//!
//! **Invariant:** a name that is a word too (`Will`, `Rose`, 森) counts only where its case and its
//! place in the sentence show a person.

use super::Reader;
use super::cues::{Cues, is_particle};
use super::known::KnownNames;
use super::labels::labels;
use super::speakers::{begins_with_honorific, is_wide_letter};
use super::words::{Case, Gap, Lexicon, Role, Word};
use crate::finder::Place;
use crate::kind::Kind;
use crate::text::Text;
use std::ops::Range;

/// How sure it is that a known name means its bearer.
pub(crate) const KNOWN_CONFIDENCE: f32 = 0.92;
/// The same for a name that labels what its bearer says.
const LABEL_CONFIDENCE: f32 = 0.96;
/// The most words of a known name.
const NAME_WORDS_MAX: usize = 6;

impl Reader<'_> {
    /// How many words from here on are a known name.
    pub(super) fn known_length(&self, at: usize) -> usize {
        if !self.is_mention(at) {
            return 0;
        }
        let mut length = 1;
        let mut end = at + 1;
        while let Some(word) = self.word(end).filter(|_| end - at < NAME_WORDS_MAX) {
            let is_known = self.is_known_word(word) && self.looks_capital(word);
            let is_link = word.is_initial() || is_particle(word);
            if word.gap != Gap::Space || !(is_known || is_link) {
                break;
            }
            end += 1;
            if is_known {
                length = end - at;
            }
        }
        length
    }

    fn is_known_word(&self, word: &Word) -> bool {
        self.known.has_latin(&word.key)
    }

    fn is_mention(&self, at: usize) -> bool {
        let Some(word) = self.word(at).filter(|word| self.is_known_word(word)) else {
            return false;
        };
        if is_word_too(word) {
            return self.is_person_here(at, word);
        }
        match word.case {
            Case::Title | Case::Upper => true,
            Case::Lower => !self.cased || (word.is_sure_first() && word.key.len() > 3),
        }
    }

    /// Whether a word that is a name too means the person.
    fn is_person_here(&self, at: usize, word: &Word) -> bool {
        if !self.cased || word.case != Case::Title {
            return false;
        }
        let next = self.word(at + 1);
        let owns = self.text[word.end..].starts_with("'s");
        let full = next.is_some_and(|next| {
            next.gap == Gap::Space && next.is_capital() && self.is_known_word(next)
        });
        let acts = next.is_some_and(|next| next.gap == Gap::Space && is_past(next));
        if owns || full || acts {
            return true;
        }
        let Some(before) = at.checked_sub(1).and_then(|at| self.word(at)) else { return false };
        if Cues::is_title(before) && word.gap == Gap::Space {
            return true;
        }
        let in_heading = before.is_capital()
            && before.marks.ordinary
            && next.is_some_and(|next| next.gap == Gap::Space && next.is_capital());
        let is_thing = before.marks.roles.has(Role::Determiner) || in_heading;
        let goes_on = next.is_some_and(|next| next.gap == Gap::Space && next.case == Case::Lower);
        // What is said begins with a capital too: `Jon: Will you come?`
        let opens = word.gap == Gap::Start || (word.gap == Gap::Colon && goes_on);
        !opens && !is_thing
    }
}

fn is_word_too(word: &Word) -> bool {
    word.marks.ordinary || word.marks.ambiguous || word.marks.roles.has(Role::WordName)
}

/// Whether a word tells what somebody did: `Will lost`, but not `Will you`.
fn is_past(word: &Word) -> bool {
    let key = word.key.as_str();
    word.case == Case::Lower
        && (word.marks.roles.has(Role::Past)
            || (key.len() > 4 && key.ends_with("ed"))
            || (word.marks.roles.has(Role::Deed)
                && !matches!(key, "and" | "who" | "can" | "will" | "would")))
}

/// Adds the labels of a text whose names are known. Here a name counts wherever it is a word too.
pub(crate) fn find_labels(
    lexicon: &Lexicon,
    text: &Text<'_>,
    known: &KnownNames,
    places: &mut Vec<Place>,
) {
    for label in labels(text.as_str()) {
        // A label whose colon comes after a cut was no label yet when its beginning left.
        if label.speech.start <= text.fence(label.name.start) {
            find_in_field(lexicon, text.as_str(), label.name, known, places);
        }
    }
}

/// Adds the known names in a part of a text that holds nothing else.
pub(crate) fn find_in_field(
    lexicon: &Lexicon,
    text: &str,
    field: Range<usize>,
    known: &KnownNames,
    places: &mut Vec<Place>,
) {
    let shift = field.start;
    let mut last: Option<Place> = None;
    for word in lexicon.words(&text[field.clone()]) {
        if !known.has_latin(&word.key) {
            continue;
        }
        let start = shift + word.start;
        let end = shift + word.end;
        // First and last name are one value, together with what stands between them.
        let goes_on = last.filter(|place| is_link(&text[place.end..start]));
        if let Some(place) = goes_on {
            last = Some(Place { end, ..place });
        } else {
            places.extend(last);
            let (kind, confidence) = (Kind::PersonName, LABEL_CONFIDENCE);
            last = Some(Place { kind, start, end, confidence });
        }
    }
    places.extend(last);
    find_japanese(&text[field], known, true, &mut |start, end| {
        let (kind, confidence) = (Kind::PersonName, LABEL_CONFIDENCE);
        places.push(Place { kind, start: shift + start, end: shift + end, confidence });
    });
}

/// Blanks, initials and particles between the words of one name.
fn is_link(between: &str) -> bool {
    between.len() <= 12
        && between.starts_with(' ')
        && between.ends_with(' ')
        && between.chars().all(|sign| sign.is_alphabetic() || matches!(sign, ' ' | '.'))
}

/// Adds the known names in Japanese script.
pub(crate) fn find_japanese_mentions(text: &Text<'_>, known: &KnownNames, places: &mut Vec<Place>) {
    find_japanese(text.as_str(), known, false, &mut |start, end| {
        let (kind, confidence) = (Kind::PersonName, KNOWN_CONFIDENCE);
        places.push(Place { kind, start, end, confidence });
    });
}

fn find_japanese(
    text: &str,
    known: &KnownNames,
    is_field: bool,
    take: &mut dyn FnMut(usize, usize),
) {
    if !known.has_japanese() {
        return;
    }
    let mut before = None;
    let mut from = 0;
    for (at, sign) in text.char_indices() {
        if at >= from && is_wide_letter(sign) {
            let rest = &text[at..];
            let mut names = known.japanese_at(rest);
            if let Some(name) =
                names.find(|name| stands_alone(before, name, &rest[name.len()..], is_field))
            {
                from = at + name.len();
                take(at, from);
            }
        }
        before = Some(sign);
    }
}

/// Whether a name is not a part of a longer word. One sign, or letters that are used for all words,
/// need an honorific after them.
fn stands_alone(before: Option<char>, name: &str, after: &str, is_field: bool) -> bool {
    let (Some(first), Some(last)) = (name.chars().next(), name.chars().next_back()) else {
        return false;
    };
    if is_field {
        return true;
    }
    let is_called = begins_with_honorific(after);
    let next = after.chars().next();
    let apart_before = before.is_none_or(|sign| script_of(sign) != script_of(first));
    let apart_after = next.is_none_or(|sign| script_of(sign) != script_of(last));
    let is_common = first == last || script_of(first) == Some(Script::Hiragana);
    apart_before && (is_called || (apart_after && !is_common))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Hiragana,
    Katakana,
    Kanji,
}

fn script_of(sign: char) -> Option<Script> {
    match sign as u32 {
        0x3041..=0x309f => Some(Script::Hiragana),
        0x30a1..=0x30ff => Some(Script::Katakana),
        0x3005 | 0x4e00..=0x9fff => Some(Script::Kanji),
        _ => None,
    }
}
