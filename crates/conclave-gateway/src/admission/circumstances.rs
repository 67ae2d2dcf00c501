//! What a request states of the person and the circumstances, in headers and metadata.
//!
//! **Invariant:** a name that begins like ours and is none of ours is an error that says which one may be meant: a
//! misspelt `minor` would otherwise be read as nobody being one.

use crate::admission::entrance::SESSION_HEADER;
use crate::error::ApiError;
use conclave_core::{Mode, Persona, Sensitivity, TurnContext};
use http::HeaderMap;
use serde_json::{Map, Value};

/// What the names of our headers and of our metadata begin with.
const HEADER_PREFIX: &str = "x-conclave-";
const METADATA_PREFIX: &str = "conclave_";
/// What may be stated.
const STATED: [&str; 10] = [
    "mode",
    "country",
    "language",
    "persona",
    "sensitivity",
    "affiliations",
    "labels",
    "audience",
    "minor",
    "vulnerable",
];
/// Beside those, a header names the conversation.
const SESSION: &str = "session_id";
/// Names that are said again are cut here.
const NAME_BYTES_MAX: usize = 64;

/// What a request states of a person's circumstances: `x-conclave-NAME`, else `metadata.conclave_NAME`.
pub(crate) struct StatedCircumstances<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) metadata: Option<&'a Map<String, Value>>,
}

impl StatedCircumstances<'_> {
    pub(crate) fn read(&self, modes_allowed: &[Mode]) -> Result<TurnContext, ApiError> {
        self.check_names()?;
        let mode = self.parse("mode", Mode::parse)?.unwrap_or_default();
        if !modes_allowed.contains(&mode) {
            return Err(ApiError::forbidden(format!(
                "The mode `{}` is not allowed here.",
                mode.as_str()
            )));
        }
        Ok(TurnContext {
            mode,
            country: self.parse("country", parse_country)?,
            language: self.parse("language", parse_language)?,
            persona: self.parse("persona", Persona::parse)?.unwrap_or_default(),
            sensitivity: self.parse("sensitivity", Sensitivity::parse)?.unwrap_or_default(),
            affiliations: self.parse("affiliations", parse_list)?.unwrap_or_default(),
            labels: self.parse("labels", parse_list)?.unwrap_or_default(),
            audience: self.parse("audience", parse_audience)?,
            minor: self.parse("minor", parse_flag)?.unwrap_or_default(),
            vulnerable: self.parse("vulnerable", parse_flag)?.unwrap_or_default(),
        })
    }

    /// A name of ours that we do not know is an error: somebody relies on what it was meant to say.
    fn check_names(&self) -> Result<(), ApiError> {
        let mut unknown = self.headers.keys().filter_map(|name| {
            let own = name.as_str().strip_prefix(HEADER_PREFIX)?;
            let known = STATED.map(|stated| stated.replace('_', "-"));
            let is_known = name.as_str() == SESSION_HEADER || known.iter().any(|one| one == own);
            (!is_known).then(|| own.replace('-', "_"))
        });
        if let Some(own) = unknown.next() {
            let meant = nearest_name(&own, SESSION).replace('_', "-");
            let stated = format!("{HEADER_PREFIX}{}", own.replace('_', "-"));
            let message = format!(
                "`{stated}` is no header that is read here; did you mean `{HEADER_PREFIX}{meant}`?"
            );
            return Err(ApiError::invalid(stated, message));
        }
        for key in self.metadata.into_iter().flat_map(Map::keys) {
            let plain = key.to_ascii_lowercase().replace('-', "_");
            let own = plain.strip_prefix(METADATA_PREFIX);
            let is_known = own.is_some_and(|own| STATED.contains(&own)) && plain == *key;
            if let Some(own) = own.filter(|_| !is_known) {
                let meant = nearest_name(own, STATED[0]);
                let stated = &key[..key.floor_char_boundary(NAME_BYTES_MAX)];
                let message = format!(
                    "`{stated}` is nothing that is read here; did you mean \
                     `{METADATA_PREFIX}{meant}`?"
                );
                return Err(ApiError::invalid(format!("metadata.{stated}"), message));
            }
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        let header = format!("x-conclave-{}", name.replace('_', "-"));
        if let Some(value) = self.headers.get(&header) {
            let text = value
                .to_str()
                .map_err(|_| ApiError::invalid(header.clone(), "must be visible ASCII"))?;
            return Ok(Some(text.trim().to_owned()));
        }
        let key = format!("conclave_{name}");
        match self.metadata.and_then(|metadata| metadata.get(&key)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(_) => Err(ApiError::invalid(format!("metadata.{key}"), "must be a string")),
        }
    }

    fn parse<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        parse(&text).map(Some).ok_or_else(|| {
            ApiError::invalid(format!("conclave_{name}"), format!("`{text}` is not known"))
        })
    }
}

fn parse_country(text: &str) -> Option<String> {
    let letters = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    letters.then(|| text.to_ascii_uppercase())
}

fn parse_language(text: &str) -> Option<String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let primary = text.split('-').next()?;
    (plain && (2..=3).contains(&primary.len())).then(|| primary.to_ascii_lowercase())
}

fn parse_list(text: &str) -> Option<Vec<String>> {
    let items: Vec<_> = text
        .split(',')
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect();
    (items.len() <= 32).then_some(items)
}

fn parse_audience(text: &str) -> Option<String> {
    (1..=120).contains(&text.len()).then(|| text.to_owned())
}

fn parse_flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// The name that takes the fewest letters to become; `other` is a name beside the stated ones.
fn nearest_name(written: &str, other: &'static str) -> &'static str {
    let written = &written[..written.floor_char_boundary(NAME_BYTES_MAX)];
    let names = STATED.into_iter().chain([other]);
    names.min_by_key(|name| letters_apart(written, name)).unwrap_or(other)
}

/// How many letters must be added, left out or changed to make one word of another.
fn letters_apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = at;
        let mut left = at + 1;
        for (place, expected) in row.iter_mut().skip(1).zip(&other) {
            let changed = before + usize::from(letter != *expected);
            before = *place;
            left = changed.min(before + 1).min(left + 1);
            *place = left;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "circumstances_tests.rs"]
mod tests;
