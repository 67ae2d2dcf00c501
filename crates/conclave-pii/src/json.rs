//! Owns the walk over JSON: strings, and JSON written inside strings.
//!
//! **Invariant:** the walk ends: values nested deeper than [`DEPTH_MAX`], which no parser of ours
//! lets through, are not read, and strings inside strings deeper than [`LAYERS_MAX`] are read as
//! plain text. Member names are context: they are neither searched nor changed.

use crate::finder::{FOUND_MAX, Finder};
use crate::kind::Found;
use crate::tokens::{self, Tokens};
use serde::Serialize;
use serde_json::Value;

/// How deep arrays and objects are followed.
pub const DEPTH_MAX: usize = 128;
/// How many times a string that holds JSON is opened.
pub const LAYERS_MAX: usize = 4;
/// The longest member name that is used as context, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// One place in a JSON value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JsonFound {
    /// The JSON pointer (RFC 6901) of the string.
    pub pointer: String,
    /// Where that string holds JSON itself: the pointers inside it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// The place in the innermost string.
    pub found: Found,
}

impl Finder {
    /// What identifies somebody in the strings of a JSON value, in document order.
    #[must_use]
    pub fn find_in_json(&self, value: &Value) -> Vec<JsonFound> {
        let mut walk = Walk { finder: self, layers: Vec::new(), found: Vec::new() };
        walk.value(value, "", &mut String::new(), 0);
        walk.found
    }

    /// Replaces what is found in the strings of a JSON value by tokens. A string that holds JSON is
    /// written anew only where its escapes hid something.
    pub fn redact_json(&self, value: &mut Value, tokens: &mut Tokens) {
        self.redact_value(value, "", tokens, 0, 0);
    }

    fn redact_value(
        &self,
        value: &mut Value,
        name: &str,
        tokens: &mut Tokens,
        depth: usize,
        layer: usize,
    ) {
        match value {
            Value::String(text) => *text = self.redact_string(text, name, tokens, layer),
            Value::Array(items) if depth < DEPTH_MAX => {
                for item in items {
                    self.redact_value(item, name, tokens, depth + 1, layer);
                }
            }
            Value::Object(members) if depth < DEPTH_MAX => {
                for (name, member) in members {
                    self.redact_value(member, name, tokens, depth + 1, layer);
                }
            }
            _ => {}
        }
    }

    /// JSON inside a string is read as text, which keeps its spacing, unless its escapes or the
    /// names of its members show more; then it is written anew.
    fn redact_string(&self, text: &str, name: &str, tokens: &mut Tokens, layer: usize) -> String {
        let found = self.find_under(name, text);
        if let Some(mut inner) =
            opened(text, layer).filter(|inner| self.shows_more(inner, name, text, &found))
        {
            self.redact_value(&mut inner, name, tokens, 0, layer + 1);
            return inner.to_string();
        }
        tokens::redact_layered(text, &found, tokens, layer)
    }

    /// Whether the walk over JSON inside a string finds a value that reading it as text did not. A
    /// member name that looks like a token could not be kept apart in JSON written anew, so such
    /// is read as text.
    fn shows_more(&self, inner: &Value, name: &str, text: &str, found: &[Found]) -> bool {
        let mut walk = Walk { finder: self, layers: Vec::new(), found: Vec::new() };
        walk.value(inner, name, &mut String::new(), 0);
        let hidden: usize = found.iter().map(|place| place.end - place.start).sum();
        let shown: usize = walk.found.iter().map(|place| place.found.end - place.found.start).sum();
        let escaped = text.contains('\\') && !walk.found.is_empty();
        (shown > hidden || escaped) && !tokens::has_token_name(inner)
    }

    /// What is found in a string, read with the name of its member before it.
    fn find_under(&self, name: &str, text: &str) -> Vec<Found> {
        let lead = lead(name);
        let shift = lead.chars().count();
        if shift == 0 {
            return self.find(text);
        }
        let found = self.find(&format!("{lead}{text}")).into_iter();
        let inside = found.filter(|place| place.end > shift);
        let moved = |place: Found| Found {
            start: place.start.saturating_sub(shift),
            end: place.end - shift,
            ..place
        };
        inside.map(moved).collect()
    }
}

/// Puts values back into a JSON value that [`Finder::redact_json`] changed.
pub fn restore_json(value: &mut Value, tokens: &Tokens) {
    restore_value(value, tokens, 0);
}

fn restore_value(value: &mut Value, tokens: &Tokens, depth: usize) {
    match value {
        Value::String(text) => *text = tokens::restore(text, tokens),
        Value::Array(items) if depth < DEPTH_MAX => {
            items.iter_mut().for_each(|item| restore_value(item, tokens, depth + 1));
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            members.values_mut().for_each(|member| restore_value(member, tokens, depth + 1));
        }
        _ => {}
    }
}

/// A member name as words before a value: `homePhone` becomes `home phone: `.
fn lead(name: &str) -> String {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return String::new();
    }
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_small = false;
    for sign in name.chars() {
        if sign.is_uppercase() && was_small {
            words.push(' ');
        }
        was_small = sign.is_lowercase() || sign.is_ascii_digit();
        let plain = if matches!(sign, '_' | '-' | '.') { ' ' } else { sign };
        words.extend(plain.to_lowercase());
    }
    words + ": "
}

/// The JSON that a string holds, if it is an array or object and may still be opened.
fn opened(text: &str, layer: usize) -> Option<Value> {
    let may_open = layer < LAYERS_MAX && text.trim_start().starts_with(['{', '[']);
    let value: Value = may_open.then(|| serde_json::from_str(text).ok()).flatten()?;
    (value.is_object() || value.is_array()).then_some(value)
}

struct Walk<'f> {
    finder: &'f Finder,
    layers: Vec<String>,
    found: Vec<JsonFound>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, name: &str, pointer: &mut String, depth: usize) {
        if self.found.len() >= FOUND_MAX || depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::String(text) => self.string(text, name, pointer),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.member(item, name, pointer, &at.to_string(), depth);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    self.member(member, name, pointer, &step, depth);
                }
            }
            _ => {}
        }
    }

    fn member(
        &mut self,
        value: &Value,
        name: &str,
        pointer: &mut String,
        step: &str,
        depth: usize,
    ) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(step);
        self.value(value, name, pointer, depth + 1);
        pointer.truncate(length);
    }

    fn string(&mut self, text: &str, name: &str, pointer: &str) {
        if let Some(inner) = opened(text, self.layers.len()) {
            self.layers.push(pointer.to_owned());
            self.value(&inner, name, &mut String::new(), 0);
            self.layers.pop();
            return;
        }
        let room = FOUND_MAX - self.found.len();
        let found = self.finder.find_under(name, text);
        self.found
            .extend(found.into_iter().take(room).map(|found| place(&self.layers, pointer, found)));
    }
}

fn place(layers: &[String], pointer: &str, found: Found) -> JsonFound {
    let mut path =
        layers.iter().map(String::as_str).chain(std::iter::once(pointer)).map(str::to_owned);
    JsonFound { pointer: path.next().unwrap_or_default(), inside: path.collect(), found }
}
