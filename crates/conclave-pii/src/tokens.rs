//! Owns the tokens that stand for found values, and the way back.
//!
//! **Invariant:** `restore(redact(text)) == text` for every text and every set of places. What
//! looks like a token in the text itself gets a token of its own, so that it is never taken for
//! one of ours.
//! **Invariant:** the debug form of [`Tokens`] never shows a value.

use crate::kind::{Found, Kind};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::OnceLock;

/// The label of a piece of text that only looked like a token.
const LITERAL: &str = "LITERAL";

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
        let entry = self.entries.get(*self.by_token.get(token)?)?;
        entry.spellings.first().map(String::as_str)
    }

    /// Every token, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.token.as_str())
    }

    /// The token of a value, and which of its spellings this is.
    fn token(&mut self, label: &str, same: &str, value: &str) -> (String, usize) {
        let key = (label.to_owned(), same.to_owned());
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
        *count += 1;
        let token = format!("[{}_{count}]", key.0);
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
        Self { entries: tokens.entries, spelt: tokens.spelt }
    }
}

impl From<Stored> for Tokens {
    fn from(stored: Stored) -> Self {
        let mut tokens = Self { spelt: stored.spelt, ..Self::default() };
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

fn token_shape() -> Option<&'static Regex> {
    static SHAPE: OnceLock<Option<Regex>> = OnceLock::new();
    SHAPE.get_or_init(|| Regex::new(r"\[[A-Z][A-Z_]*_[0-9]+\]").ok()).as_ref()
}

/// Whether a member of a JSON value, at any depth, has a name that holds what looks like a token.
pub(crate) fn has_token_name(value: &Value) -> bool {
    let looks = |name: &str| token_shape().is_none_or(|shape| shape.is_match(name));
    match value {
        Value::Array(items) => items.iter().any(has_token_name),
        Value::Object(members) => {
            members.iter().any(|(name, member)| looks(name) || has_token_name(member))
        }
        _ => false,
    }
}

/// The text with a token in place of each found value. Places must be in order, as
/// [`crate::Finder::find`] gives them; at the first that is outside the text or overlaps an
/// earlier one the rest is left as it is.
#[must_use]
pub fn redact(text: &str, found: &[Found], tokens: &mut Tokens) -> String {
    redact_layered(text, found, tokens, 0)
}

/// As [`redact`] for a string that stands so many layers deep in JSON written inside strings.
/// Values are kept as they are written in the outermost string, so that putting them back there
/// needs no parsing.
pub(crate) fn redact_layered(
    text: &str,
    found: &[Found],
    tokens: &mut Tokens,
    layers: usize,
) -> String {
    let out = String::with_capacity(text.len());
    let mut writer = Writer { out, spelt: Vec::new(), tokens, layers };
    let mut rest = Rest { text, scalar: 0 };
    for place in found {
        let Some((between, value)) = rest.split(place) else { break };
        writer.plain(between);
        writer.value(&place.kind.label(), value);
    }
    writer.plain(rest.text);
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

struct Writer<'t> {
    out: String,
    spelt: Vec<usize>,
    tokens: &'t mut Tokens,
    layers: usize,
}

impl Writer<'_> {
    fn value(&mut self, label: &str, value: &str) {
        let value = &escape(value, self.layers);
        // Inside JSON inside a string the spelling of each place cannot be kept: there only equal
        // is same.
        let exact = || format!("\u{0}{value}");
        let same = if self.layers == 0 { sameness(label, value) } else { exact() };
        let (token, spelling) = self.tokens.token(label, &same, value);
        self.out.push_str(&token);
        self.spelt.push(spelling);
    }

    /// Text between places; what looks like a token in it is a value too.
    fn plain(&mut self, text: &str) {
        let mut from = 0;
        if text.contains('[') {
            for hit in token_shape().into_iter().flat_map(|shape| shape.find_iter(text)) {
                self.out.push_str(&text[from..hit.start()]);
                self.value(LITERAL, hit.as_str());
                from = hit.end();
            }
        }
        self.out.push_str(&text[from..]);
    }

    fn finish(self) -> String {
        if self.spelt.iter().any(|spelling| *spelling > 0) {
            self.tokens.spelt.insert(digest(&self.out), self.spelt);
        } else if !self.tokens.spelt.is_empty() {
            self.tokens.spelt.remove(&digest(&self.out));
        }
        self.out
    }
}

/// The value as it is written inside this many strings.
fn escape(value: &str, layers: usize) -> String {
    (0..layers).fold(value.to_owned(), |value, _| {
        let quoted = Value::String(value).to_string();
        quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
    })
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text with each known token replaced by its value; unknown ones stay. A text that `redact`
/// made comes back exactly; in any other text, such as a reply, a value has its first spelling.
#[must_use]
pub fn restore(text: &str, tokens: &Tokens) -> String {
    let Some(shape) = token_shape() else { return text.to_owned() };
    let exact = if tokens.spelt.is_empty() { None } else { tokens.spelt.get(&digest(text)) };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, hit) in shape.find_iter(text).enumerate() {
        let spelling = exact.and_then(|spelt| spelt.get(at)).copied().unwrap_or(0);
        out.push_str(&text[from..hit.start()]);
        out.push_str(tokens.spelling(hit.as_str(), spelling).unwrap_or(hit.as_str()));
        from = hit.end();
    }
    out.push_str(&text[from..]);
    out
}
