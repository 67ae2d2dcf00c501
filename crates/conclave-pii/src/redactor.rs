//! Owns the redaction of texts on their way to or from a model: what identifies somebody becomes a
//! token, what is a token already stays.
//!
//! **Invariant:** text that was redacted before is not changed by redacting it again.
//! **Invariant:** a token that a text brought along is never given to another value of the same set.
//! **Invariant:** a text up to a [`crate::last_safe_cut`], redacted by itself, is the beginning of the
//! whole text redacted at once.

use crate::finder::{Finder, Place};
use crate::json::{JsonValue, LAYERS_MAX, is_document, json_pieces, member_words};
use crate::kind::{Classes, IDENTIFYING_MIN};
use crate::names::KnownNames;
use crate::shape::token_spans;
use crate::text::Text;
use crate::tokens::{LookAlikes, TokenWriter, Tokens};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static NO_NAMES: LazyLock<KnownNames> = LazyLock::new(KnownNames::new);

/// Puts tokens in the place of what identifies somebody. It borrows what it needs, so that one can
/// be made for each request.
///
/// ```
/// use conclave_pii::{Finder, KnownNames, Redactor, Tokens};
/// # fn main() -> Result<(), conclave_pii::BuildError> {
/// let finder = Finder::builtin()?;
/// let mut names = KnownNames::new();
/// finder.learn_speakers("Mara Lopez: we moved in June.", &mut names);
/// let redactor = Redactor::new(&finder).with_names(&names);
/// let mut tokens = Tokens::new();
/// let asked = redactor.redact_text("Mara lost work. Write to mara@example.org.", &mut tokens);
/// assert_eq!(asked.as_deref(), Some("[PERSON_NAME_1] lost work. Write to [EMAIL_1]."));
///
/// // A reply: what the person wrote is put back, what the model brought up stays hidden.
/// let written = tokens.clone();
/// let reply = "I wrote to [EMAIL_1] and to jon@example.org.";
/// let safe = redactor.redact_text(reply, &mut tokens).unwrap_or_else(|| reply.to_owned());
/// assert_eq!(written.restore(&safe), "I wrote to mara@example.org and to [EMAIL_2].");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Redactor<'a> {
    finder: &'a Finder,
    names: &'a KnownNames,
    classes: Classes,
}

impl<'a> Redactor<'a> {
    /// Of everything that this finder finds and that identifies somebody.
    #[must_use]
    pub fn new(finder: &'a Finder) -> Self {
        Self { finder, names: &NO_NAMES, classes: finder.classes() }
    }

    /// With names that are known from the same material.
    #[must_use]
    pub fn with_names(self, names: &'a KnownNames) -> Self {
        Self { names, ..self }
    }

    /// Of these classes only.
    #[must_use]
    pub fn with_classes(self, classes: Classes) -> Self {
        Self { classes, ..self }
    }

    /// The text with tokens; `None` where nothing in it identifies anybody.
    #[must_use]
    pub fn redact_text(&self, text: &str, tokens: &mut Tokens) -> Option<String> {
        self.redact_unless(text, tokens, &|_| false)
    }

    /// The same without the values that `is_spared` lets stay, such as numbers of help lines.
    #[must_use]
    pub fn redact_unless(
        &self,
        text: &str,
        tokens: &mut Tokens,
        is_spared: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        let read = self.finder.text(text);
        let places = self.finder.places(&read, self.names);
        let part = Part { text, read: &read, start: 0 };
        self.write(&part, &places, tokens, is_spared)
    }

    /// A field that holds the name of a speaker and nothing else, with tokens.
    #[must_use]
    pub fn redact_speaker(&self, speaker: &str, tokens: &mut Tokens) -> Option<String> {
        let read = self.finder.text(speaker);
        let places = self.finder.speaker_places(&read, self.names);
        let part = Part { text: speaker, read: &read, start: 0 };
        self.write(&part, &places, tokens, &|_| false)
    }

    /// As [`Redactor::redact_text`]; in a text that is JSON as a whole, strings and numbers are read as
    /// they are meant, with the names of their members, so that escapes hide nothing. JSON inside
    /// strings is opened too. Names of members stay.
    #[must_use]
    pub fn redact_document(&self, text: &str, tokens: &mut Tokens) -> Option<String> {
        if !is_document(text) {
            return self.redact_text(text, tokens);
        }
        self.redact_json(text, String::new(), tokens, 0)
    }

    fn redact_json(
        &self,
        text: &str,
        mut name: String,
        tokens: &mut Tokens,
        layer: usize,
    ) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut is_changed = false;
        for piece in json_pieces(text) {
            let other = match &piece.value {
                JsonValue::Nothing => None,
                JsonValue::Name(meant) => {
                    name.clone_from(meant);
                    None
                }
                JsonValue::Text(inner) if layer < LAYERS_MAX && is_document(inner) => {
                    self.redact_json(inner, name.clone(), tokens, layer + 1)
                }
                JsonValue::Text(meant) => self.redact_under(&name, meant, tokens),
                JsonValue::Number => self.redact_under(&name, piece.written, tokens),
            };
            is_changed |= other.is_some();
            match other {
                Some(other) => out.push_str(&Value::from(other).to_string()),
                None => out.push_str(piece.written),
            }
        }
        is_changed.then_some(out)
    }

    /// A string, read with the name of its member on a line before it.
    fn redact_under(&self, name: &str, text: &str, tokens: &mut Tokens) -> Option<String> {
        let words = member_words(name);
        if words.is_empty() {
            return self.redact_text(text, tokens);
        }
        let whole = format!("{words}:\n{text}");
        let read = self.finder.text(&whole);
        let places = self.finder.places(&read, self.names);
        let part = Part { text: &whole, read: &read, start: whole.len() - text.len() };
        self.write(&part, &places, tokens, &|_| false)
    }

    fn write(
        &self,
        part: &Part<'_>,
        places: &BTreeMap<usize, Place>,
        tokens: &mut Tokens,
        is_spared: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        let wanted: Vec<Place> =
            places.values().filter(|place| self.is_wanted(place)).copied().collect();
        let mut values = part.originals(&wanted);
        values.retain(|value| !is_spared(&part.text[value.start..value.end]));
        let values = part.without_tokens(&values, tokens);
        let whole = &part.text[part.start..];
        if values.is_empty() {
            tokens.reserve(whole);
            return None;
        }
        let mut writer = TokenWriter::new(tokens, LookAlikes::Keep, whole.len());
        let mut at = part.start;
        for value in values {
            writer.push_text(&part.text[at..value.start]);
            writer.push_value(value.kind, &part.text[value.start..value.end]);
            at = value.end;
        }
        writer.push_text(&part.text[at..]);
        Some(writer.finish())
    }

    fn is_wanted(&self, place: &Place) -> bool {
        place.kind.is_identifying()
            && place.confidence >= IDENTIFYING_MIN
            && self.classes.contains(place.kind.class())
    }
}

/// A text, the reading of it that found the places, and where what is written begins.
struct Part<'t> {
    text: &'t str,
    read: &'t Text<'t>,
    start: usize,
}

impl Part<'_> {
    /// The places that touch what is written, in bytes of the text itself.
    fn originals(&self, places: &[Place]) -> Vec<Place> {
        let moved = self.read.unfolded(self.text, places).into_iter();
        let inside = moved.map(|place| Place { start: place.start.max(self.start), ..place });
        inside.filter(|place| place.start < place.end).collect()
    }

    /// The values without the tokens that stand inside them, as in a web address that was redacted
    /// before. What has no letter or digit left hides nobody.
    fn without_tokens(&self, values: &[Place], tokens: &Tokens) -> Vec<Place> {
        let mut left = Vec::with_capacity(values.len());
        let spans = token_spans(&self.text[self.start..]);
        let mut spans =
            spans.filter(|span| span.is_short() || tokens.knows(&span.token)).peekable();
        for value in values {
            let mut start = value.start;
            while let Some(span) = spans.peek() {
                let from = self.start + span.start;
                let upto = self.start + span.end;
                if from >= value.end {
                    break;
                }
                left.push(Place { start, end: from.max(start), ..*value });
                start = start.max(upto);
                if upto > value.end {
                    break;
                }
                spans.next();
            }
            left.push(Place { start, end: value.end.max(start), ..*value });
        }
        left.retain(|value| self.text[value.start..value.end].contains(char::is_alphanumeric));
        left
    }
}
