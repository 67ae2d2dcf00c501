//! Owns the tokens that stand for found values, and the way back.
//!
//! **Invariant:** `restore(redact(text)) == text` for every text and every set of places. What
//! looks like a token in the text itself gets a token of its own, so that it is never taken for
//! one of ours.
//! **Invariant:** a value that was put back is never read again, even where it looks like a token.
//! **Invariant:** the debug form of [`Tokens`] never shows a value.

use crate::kind::{Found, Kind};
use crate::shape::{LITERAL, TokenSpan, token_spans};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// One token and what it stands for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    token: String,
    /// The value as first seen, then other spellings of the same.
    spellings: Vec<String>,
}

/// The values behind tokens, kept apart from the text. It is as personal as the text itself.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Tokens {
    entries: Vec<Entry>,
    /// For texts in which a value is spelt in more than one way: which spelling stands where.
    spelt: BTreeMap<String, Vec<usize>>,
    /// Tokens that a text brought along: they stand for nothing here and are given to no value.
    reserved: BTreeSet<String>,
    by_value: HashMap<(String, String), usize>,
    by_token: HashMap<String, usize>,
    counts: HashMap<String, usize>,
}

/// The stored form: the indexes are made again on reading.
#[derive(Serialize, Deserialize)]
struct Stored {
    entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spelt: BTreeMap<String, Vec<usize>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    reserved: BTreeSet<String>,
}

impl Tokens {
    /// No tokens yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value behind a token, as first seen.
    #[must_use]
    pub fn value(&self, token: &str) -> Option<&str> {
        self.spelling(token, 0)
    }

    /// Every token, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.token.as_str())
    }

    /// Keeps the tokens that a text brings along from being given to a value. Where several texts
    /// are redacted with one set, reserve all of them first.
    pub fn reserve(&mut self, text: &str) {
        for span in token_spans(text) {
            self.reserve_token(span);
        }
    }

    fn reserve_token(&mut self, span: TokenSpan) {
        if !self.by_token.contains_key(&span.token) {
            self.reserved.insert(span.token);
        }
    }

    pub(crate) fn knows(&self, token: &str) -> bool {
        self.by_token.contains_key(token)
    }

    /// The token of a value, and which of its spellings this is.
    fn token(&mut self, label: &str, value: &str) -> (String, usize) {
        let key = (label.to_owned(), sameness(label, value));
        let at = match self.by_value.get(&key) {
            Some(at) => *at,
            None => self.add(key),
        };
        let entry = &mut self.entries[at];
        let known = entry.spellings.iter().position(|one| one == value);
        let spelling = known.unwrap_or_else(|| {
            entry.spellings.push(value.to_owned());
            entry.spellings.len() - 1
        });
        (entry.token.clone(), spelling)
    }

    fn add(&mut self, key: (String, String)) -> usize {
        let count = self.counts.entry(key.0.clone()).or_default();
        let token = loop {
            *count += 1;
            let token = format!("[{}_{count}]", key.0);
            if !self.reserved.contains(&token) {
                break token;
            }
        };
        let at = self.entries.len();
        self.by_token.insert(token.clone(), at);
        self.by_value.insert(key, at);
        self.entries.push(Entry { token, spellings: Vec::new() });
        at
    }

    fn spelling(&self, token: &str, spelling: usize) -> Option<&str> {
        let spellings = &self.entries.get(*self.by_token.get(token)?)?.spellings;
        spellings.get(spelling).or_else(|| spellings.first()).map(String::as_str)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

impl From<Tokens> for Stored {
    fn from(tokens: Tokens) -> Self {
        Self { entries: tokens.entries, spelt: tokens.spelt, reserved: tokens.reserved }
    }
}

impl From<Stored> for Tokens {
    fn from(stored: Stored) -> Self {
        let mut tokens = Self { spelt: stored.spelt, reserved: stored.reserved, ..Self::default() };
        for entry in stored.entries {
            let Some((label, number)) = parts(&entry.token) else { continue };
            let Some(first) = entry.spellings.first() else { continue };
            let at = tokens.entries.len();
            tokens.by_value.insert((label.to_owned(), sameness(label, first)), at);
            tokens.by_token.insert(entry.token.clone(), at);
            let count = tokens.counts.entry(label.to_owned()).or_default();
            *count = number.max(*count);
            tokens.entries.push(entry);
        }
        tokens
    }
}

fn parts(token: &str) -> Option<(&str, usize)> {
    let (label, number) = token.strip_prefix('[')?.strip_suffix(']')?.rsplit_once('_')?;
    Some((label, number.parse().ok()?))
}

/// The form in which two spellings of one value are equal: case does not matter in an e-mail
/// address.
fn sameness(label: &str, value: &str) -> String {
    if label == Kind::Email.label() { value.to_lowercase() } else { value.to_owned() }
}

/// The text with a token in place of each found value. Places must be in order, as
/// [`crate::Finder::find`] gives them; at the first that is outside the text or overlaps an
/// earlier one the rest is left as it is.
#[must_use]
pub fn redact(text: &str, found: &[Found], tokens: &mut Tokens) -> String {
    let mut writer = TokenWriter::new(tokens, LookAlikes::Replace, text.len());
    let mut rest = Rest { text, scalar: 0 };
    for place in found {
        let Some((between, value)) = rest.split(place) else { break };
        writer.push_text(between);
        writer.push_value(place.kind, value);
    }
    writer.push_text(rest.text);
    writer.finish()
}

/// What is left of a text, and how many scalar values have been read.
struct Rest<'t> {
    text: &'t str,
    scalar: usize,
}

impl<'t> Rest<'t> {
    fn split(&mut self, place: &Found) -> Option<(&'t str, &'t str)> {
        if place.start < self.scalar || place.end <= place.start {
            return None;
        }
        let start = byte_of(self.text, place.start - self.scalar)?;
        let length = byte_of(&self.text[start..], place.end - place.start)?;
        let (between, from) = self.text.split_at(start);
        let (value, rest) = from.split_at(length);
        *self = Self { text: rest, scalar: place.end };
        Some((between, value))
    }
}

/// The byte at which a scalar value starts; the end of the text counts.
fn byte_of(text: &str, scalar: usize) -> Option<usize> {
    let ends = text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()));
    ends.into_iter().nth(scalar)
}

/// What becomes of text that looks like a token already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookAlikes {
    /// It gets a token of its own, so that the text can be restored exactly.
    Replace,
    /// It stays: a model was asked to leave tokens as they are.
    Keep,
}

/// Writes a text with tokens, and remembers how each value was spelt.
pub(crate) struct TokenWriter<'t> {
    out: String,
    spelt: Vec<usize>,
    tokens: &'t mut Tokens,
    look_alikes: LookAlikes,
}

impl<'t> TokenWriter<'t> {
    pub(crate) fn new(tokens: &'t mut Tokens, look_alikes: LookAlikes, bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), spelt: Vec::new(), tokens, look_alikes }
    }

    pub(crate) fn push_value(&mut self, kind: Kind, value: &str) {
        self.push_labelled(&kind.label(), value);
    }

    fn push_labelled(&mut self, label: &str, value: &str) {
        let (token, spelling) = self.tokens.token(label, value);
        self.out.push_str(&token);
        self.spelt.push(spelling);
    }

    /// Text between values.
    pub(crate) fn push_text(&mut self, text: &str) {
        let mut from = 0;
        for span in token_spans(text) {
            let end = span.end;
            self.out.push_str(&text[from..span.start]);
            let written = &text[span.start..end];
            match self.look_alikes {
                LookAlikes::Replace => self.push_labelled(LITERAL, written),
                LookAlikes::Keep => {
                    self.out.push_str(written);
                    self.spelt.push(0);
                    self.tokens.reserve_token(span);
                }
            }
            from = end;
        }
        self.out.push_str(&text[from..]);
    }

    pub(crate) fn finish(self) -> String {
        if self.spelt.iter().any(|spelling| *spelling > 0) {
            self.tokens.spelt.insert(digest(&self.out), self.spelt);
        } else if !self.tokens.spelt.is_empty() {
            self.tokens.spelt.remove(&digest(&self.out));
        }
        self.out
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text with each known token replaced by its value; unknown ones stay. A text that `redact`
/// made comes back exactly; in any other text a value has its first spelling. For replies of a
/// model, [`Tokens::restore`] also knows JSON.
#[must_use]
pub fn restore(text: &str, tokens: &Tokens) -> String {
    let exact = if tokens.spelt.is_empty() { None } else { tokens.spelt.get(&digest(text)) };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, span) in token_spans(text).enumerate() {
        let spelling = exact.and_then(|spelt| spelt.get(at)).copied().unwrap_or(0);
        let Some(value) = tokens.spelling(&span.token, spelling) else { continue };
        out.push_str(&text[from..span.start]);
        out.push_str(value);
        from = span.end;
    }
    out.push_str(&text[from..]);
    out
}
