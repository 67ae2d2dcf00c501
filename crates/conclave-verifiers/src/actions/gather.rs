//! How a call is taken apart: every value, every key, and what strings encode.
//!
//! **Invariant:** linear in the call: the name of a value is looked at once, however many values stand under it.
//! **Invariant:** at most [`TEXT_BYTES_MAX`] bytes, [`WORDS_MAX`] words and the depth of the parser are looked at;
//! what lies beyond is marked as unread, which counts against the action.

use super::Action;
use super::facts::{Facts, Place, Span, Told, any, head, words_of};
use super::numbers::number_in;
use super::words::Keys;
use crate::call::decode::{Decoded, decode};
use crate::call::tree::{Field, Tree, is_too_deep};
use crate::call::{ENCODINGS_MAX, split_words};
use std::collections::BTreeSet;
use std::sync::Arc;

/// So much of the arguments is looked at.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// So many words are kept; texts that are there to be read do not count.
const WORDS_MAX: usize = 10_000;
/// A longer value is something to be read, whatever it stands under.
const PLAIN_CHARS_MAX: usize = 120;

/// The name of a value.
struct Key {
    lower: String,
    words: Arc<BTreeSet<String>>,
    /// What it says about a short value.
    place: Place,
    /// Whether a long value under it is there to be read.
    may_be_prose: bool,
}

/// A call being taken apart.
pub struct Gathering<'a> {
    facts: &'a mut Facts,
    keys: &'a Keys,
    words_left: usize,
}

impl<'a> Gathering<'a> {
    /// Begins to fill these facts.
    pub const fn new(facts: &'a mut Facts, keys: &'a Keys) -> Self {
        Self { facts, keys, words_left: WORDS_MAX }
    }

    /// Takes the arguments apart.
    pub fn take_arguments(&mut self, action: Action<'_>) {
        let text = head(action.arguments, TEXT_BYTES_MAX);
        self.facts.lower = format!("{} {}", action.name, text).to_lowercase();
        let top = self.key("");
        match Tree::parse(text) {
            Some(tree) => self.take(&top, &tree, 0),
            // What is no JSON describes the action.
            None => {
                self.facts.unread |= is_too_deep(text);
                self.take_text(&top, text, 0);
            }
        }
        self.facts.unread |= text.len() < action.arguments.len() || self.words_left == 0;
    }

    fn key(&mut self, key: &str) -> Key {
        let words = words_of(key);
        let place = place_of(self.keys, key, &words);
        let is_fixed = [Place::Label, Place::Prose, Place::Deed, Place::Scope].contains(&place);
        Key {
            lower: key.to_lowercase(),
            place,
            may_be_prose: !key.is_empty() && !is_fixed,
            words: Arc::new(words),
        }
    }

    fn take(&mut self, key: &Key, tree: &Tree, encodings: usize) {
        match tree {
            Tree::Empty => {}
            Tree::Flag(flag) => {
                self.facts.flags.insert((key.lower.clone(), *flag));
            }
            Tree::Number(number) => self.take_number(key, *number),
            Tree::Text(text) => self.take_text(key, text, encodings),
            Tree::List(items) => self.take_list(key, items, encodings),
            Tree::Fields(fields) => {
                for field in fields {
                    self.take_field(field, encodings);
                }
            }
        }
    }

    fn take_field(&mut self, Field { key, value }: &Field, encodings: usize) {
        let decoded = decode(key).filter(|_| encodings < ENCODINGS_MAX);
        if let Some(Decoded::Text(text)) = decoded {
            let top = self.key("");
            self.take_text(&top, &text, encodings + 1);
        }
        let key = self.key(key);
        if *value != Tree::Flag(false) {
            let kept = self.kept(key.words.iter().cloned());
            self.facts.keys.extend(kept);
        }
        self.take(&key, value, encodings);
    }

    fn take_list(&mut self, key: &Key, items: &[Tree], encodings: usize) {
        self.facts.longest_list = self.facts.longest_list.max(items.len());
        items.iter().for_each(|item| self.take(key, item, encodings));
        // A command may come word by word.
        let text =
            |item: &Tree| if let Tree::Text(text) = item { Some(text.clone()) } else { None };
        let words: Option<Vec<_>> = items.iter().map(text).collect();
        if let Some(words) = words.filter(|words| words.len() > 1) {
            let (key, place) = (Arc::clone(&key.words), key.place);
            self.facts.texts.push(Told { key, place, text: words.join(" ") });
        }
    }

    fn take_number(&mut self, key: &Key, number: f64) {
        let span = self.facts.numbers.entry(key.lower.clone());
        let span = span.or_insert(Span { least: number, most: number });
        span.least = span.least.min(number);
        span.most = span.most.max(number);
    }

    fn take_text(&mut self, key: &Key, text: &str, encodings: usize) {
        match decode(text).filter(|_| encodings < ENCODINGS_MAX) {
            Some(Decoded::Tree(tree)) => self.take(key, &tree, encodings + 1),
            Some(Decoded::Text(inner)) => {
                self.take_plain(key, text);
                self.take_text(key, &inner, encodings + 1);
            }
            None => self.take_plain(key, text),
        }
    }

    fn take_plain(&mut self, key: &Key, text: &str) {
        let is_long = key.may_be_prose && text.chars().nth(PLAIN_CHARS_MAX).is_some();
        let place = if is_long { Place::Prose } else { key.place };
        if let Some(number) = number_in(text, place) {
            self.take_number(key, number);
        }
        self.facts.texts.push(Told { key: Arc::clone(&key.words), place, text: text.to_owned() });
        if place == Place::Prose {
            return;
        }
        let is_whole = key.lower.is_empty();
        let found = words_of(text);
        let words: BTreeSet<_> = self.kept(found.into_iter()).collect();
        let is_named = matches!(place, Place::Scope | Place::Deed) || is_whole;
        if place == Place::Deed || is_whole {
            self.facts.deeds.extend(words.iter().cloned());
        }
        if is_named || split_words(text).len() <= words_max(place) {
            self.facts.scope.extend(words.iter().cloned());
        }
        if place == Place::Device || is_whole {
            self.facts.devices.extend(words.iter().cloned());
        }
        self.facts.words.extend(words);
    }

    /// As many of these words as there is still room for.
    fn kept(&mut self, words: impl Iterator<Item = String>) -> std::vec::IntoIter<String> {
        let kept: Vec<_> = words.take(self.words_left).collect();
        self.words_left -= kept.len();
        kept.into_iter()
    }
}

fn place_of(keys: &Keys, key: &str, words: &BTreeSet<String>) -> Place {
    let lists = [
        (&keys.labels, Place::Label),
        (&keys.prose, Place::Prose),
        (&keys.deeds, Place::Deed),
        (&keys.scope, Place::Scope),
        (&keys.devices, Place::Device),
    ];
    let named = lists.into_iter().find(|(list, _)| !key.is_empty() && any(words, list));
    named.map_or(Place::Other, |(_, place)| place)
}

/// How many words a value may have that tells how many under a name that says nothing: "all-notes.txt"
/// is one file.
const fn words_max(place: Place) -> usize {
    match place {
        Place::Prose => 0,
        Place::Label => 1,
        _ => 3,
    }
}
