//! Owns what a value must look like: the part of JSON Schema that recipes use.
//!
//! **Invariant:** a keyword that is not checked is refused when the schema is read: nobody can rely on a
//! rule that does nothing.
//! **Invariant:** a problem names a place and what is expected there; it never quotes the value.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// How deep a schema, and with it every value it accepts, may nest.
const DEPTH_MAX: usize = 32;
/// The most problems that are reported of one value.
pub const PROBLEMS_MAX: usize = 16;
/// The longest name of a member that a problem repeats.
const NAME_CHARS_MAX: usize = 60;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct SchemaError {
    path: String,
    message: String,
}

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, such as `themes[2].theme`; empty for the value itself.
    pub path: String,
    /// What is expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the value" } else { &self.path };
        write!(out, "{place} {}", self.message)
    }
}

/// The types of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    Array,
    Object,
}

impl Type {
    const ALL: [(&'static str, Self); 7] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("string", Self::Text),
        ("array", Self::Array),
        ("object", Self::Object),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("value", |(name, _)| name)
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// A compiled schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    types: Vec<Type>,
    properties: BTreeMap<String, Self>,
    required: Vec<String>,
    closed: bool,
    items: Option<Box<Self>>,
    choices: Vec<Value>,
    least: Option<f64>,
    most: Option<f64>,
    length: SizeBounds,
    count: SizeBounds,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it uses a keyword that is not checked here, or one in a wrong way.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Compiler { path: "schema".into(), depth: 0 }.compile(schema)
    }

    /// What is wrong with a value; nothing when it fits.
    #[must_use]
    pub fn problems(&self, value: &Value) -> Vec<Problem> {
        let mut found = Vec::new();
        self.check(value, "", &mut found);
        found.truncate(PROBLEMS_MAX);
        found
    }

    fn check(&self, value: &Value, path: &str, found: &mut Vec<Problem>) {
        if found.len() >= PROBLEMS_MAX {
            return;
        }
        let mut wrong = |message: String| found.push(Problem { path: path.to_owned(), message });
        if !self.types.is_empty() && !self.types.iter().any(|kind| kind.is_of(value)) {
            let names: Vec<_> = self.types.iter().map(|kind| kind.name()).collect();
            return wrong(format!("must be of type {}", names.join(" or ")));
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let names: Vec<_> = self.choices.iter().map(Value::to_string).collect();
            return wrong(format!("must be one of {}", names.join(", ")));
        }
        match value {
            Value::Number(number) => self.check_number(number.as_f64(), &mut wrong),
            Value::String(text) => {
                let fault = self.length.violated_by(text.chars().count(), "characters");
                fault.into_iter().for_each(wrong);
            }
            Value::Array(items) => {
                let fault = self.count.violated_by(items.len(), "items");
                fault.into_iter().for_each(wrong);
                self.check_items(items, path, found);
            }
            Value::Object(members) => self.check_members(members, path, found),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn check_number(&self, number: Option<f64>, wrong: &mut impl FnMut(String)) {
        let Some(number) = number else { return };
        if let Some(least) = self.least.filter(|least| number < *least) {
            wrong(format!("must be at least {least}"));
        }
        if let Some(most) = self.most.filter(|most| number > *most) {
            wrong(format!("must be at most {most}"));
        }
    }

    fn check_items(&self, items: &[Value], path: &str, found: &mut Vec<Problem>) {
        let Some(schema) = &self.items else { return };
        for (at, item) in items.iter().enumerate() {
            schema.check(item, &format!("{path}[{at}]"), found);
        }
    }

    fn check_members(&self, members: &Map<String, Value>, path: &str, found: &mut Vec<Problem>) {
        for name in self.required.iter().filter(|name| !members.contains_key(*name)) {
            found.push(Problem { path: joined(path, name), message: "is missing".into() });
        }
        for (name, member) in members {
            match self.properties.get(name) {
                Some(schema) => schema.check(member, &joined(path, name), found),
                None if self.closed => {
                    found.push(Problem {
                        path: joined(path, &shown(name)),
                        message: "is not known here".into(),
                    });
                }
                None => {}
            }
        }
    }
}

/// How many characters or items there may be.
#[derive(Clone, Copy, Debug, Default)]
struct SizeBounds {
    least: usize,
    most: Option<usize>,
}

impl SizeBounds {
    fn violated_by(self, size: usize, what: &str) -> Option<String> {
        let Self { least, most } = self;
        if size < least {
            return Some(format!("must have at least {least} {what}"));
        }
        most.filter(|most| size > *most).map(|most| format!("must have at most {most} {what}"))
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A name that somebody else chose, without what could be mistaken for words of ours.
fn shown(name: &str) -> String {
    let plain = |sign: char| if sign.is_alphanumeric() || sign == '_' { sign } else { '?' };
    name.chars().take(NAME_CHARS_MAX).map(plain).collect()
}

struct Compiler {
    path: String,
    depth: usize,
}

impl Compiler {
    fn error(&self, message: impl Into<String>) -> SchemaError {
        SchemaError { path: self.path.clone(), message: message.into() }
    }

    fn inner(&self, step: &str) -> Self {
        Self { path: format!("{}.{step}", self.path), depth: self.depth + 1 }
    }

    fn compile(&self, schema: &Value) -> Result<Schema, SchemaError> {
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("nests deeper than {DEPTH_MAX}")));
        }
        let Value::Object(keywords) = schema else {
            return Err(self.error("must be an object"));
        };
        let mut made = Schema::default();
        for (keyword, value) in keywords {
            self.keyword(&mut made, keyword, value)?;
        }
        let unknown = made.required.iter().find(|name| !made.properties.contains_key(*name));
        match unknown {
            Some(name) => Err(self.error(format!("requires `{name}`, which has no schema"))),
            None => Ok(made),
        }
    }

    fn keyword(&self, made: &mut Schema, name: &str, value: &Value) -> Result<(), SchemaError> {
        match name {
            "type" => made.types = self.types(value)?,
            "properties" => made.properties = self.properties(value)?,
            "required" => made.required = self.texts(value)?,
            "additionalProperties" => {
                let open = value.as_bool();
                made.closed = !open.ok_or_else(|| self.error("needs true or false"))?;
            }
            "items" => made.items = Some(Box::new(self.inner("items").compile(value)?)),
            "enum" => {
                let given = value.as_array().filter(|choices| !choices.is_empty());
                made.choices = given.ok_or_else(|| self.error("needs choices"))?.clone();
            }
            "minimum" => made.least = Some(self.number(value)?),
            "maximum" => made.most = Some(self.number(value)?),
            "minLength" => made.length.least = self.size(value)?,
            "maxLength" => made.length.most = Some(self.size(value)?),
            "minItems" => made.count.least = self.size(value)?,
            "maxItems" => made.count.most = Some(self.size(value)?),
            "description" | "title" => {}
            other => return Err(self.error(format!("the keyword `{other}` is not checked here"))),
        }
        Ok(())
    }

    fn types(&self, value: &Value) -> Result<Vec<Type>, SchemaError> {
        let names = if value.is_string() {
            vec![value.as_str().unwrap_or_default().to_owned()]
        } else {
            self.texts(value)?
        };
        let parse = |name: &String| {
            Type::parse(name).ok_or_else(|| self.error(format!("there is no type `{name}`")))
        };
        names.iter().map(parse).collect()
    }

    fn properties(&self, value: &Value) -> Result<BTreeMap<String, Schema>, SchemaError> {
        let Value::Object(members) = value else {
            return Err(self.error("`properties` must be an object"));
        };
        let compile = |(name, schema): (&String, &Value)| {
            Ok((name.clone(), self.inner(name).compile(schema)?))
        };
        members.iter().map(compile).collect()
    }

    fn texts(&self, value: &Value) -> Result<Vec<String>, SchemaError> {
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| self.error("needs a list of names"))
    }

    fn number(&self, value: &Value) -> Result<f64, SchemaError> {
        value.as_f64().ok_or_else(|| self.error("needs a number"))
    }

    fn size(&self, value: &Value) -> Result<usize, SchemaError> {
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| self.error("needs a whole number from 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::compile(&json!({
            "type": "object", "additionalProperties": false, "required": ["themes"],
            "properties": {
                "themes": {"type": "array", "minItems": 1, "maxItems": 2, "items": {
                    "type": "object", "required": ["theme"],
                    "properties": {
                        "theme": {"type": "string", "minLength": 1, "maxLength": 5},
                        "count": {"type": "integer", "minimum": 0, "maximum": 9},
                    },
                }},
                "mood": {"enum": ["calm", "tense"]},
                "note": {"type": ["string", "null"]},
            },
        }))
        .unwrap()
    }

    #[test]
    fn problems_name_their_place() {
        for (value, expected) in [
            (json!({"themes": [{"theme": "home", "count": 3}], "note": null}), vec![]),
            (json!([]), vec!["the value must be of type object"]),
            (json!({}), vec!["themes is missing"]),
            (json!({"themes": []}), vec!["themes must have at least 1 items"]),
            (json!({"themes": [{"count": 1}]}), vec!["themes[0].theme is missing"]),
            (
                json!({"themes": [{"theme": "", "count": 1.5}]}),
                vec![
                    "themes[0].theme must have at least 1 characters",
                    "themes[0].count must be of type integer",
                ],
            ),
            (
                json!({"themes": [{"theme": "a", "count": 10}], "mood": "odd"}),
                vec![
                    "themes[0].count must be at most 9",
                    "mood must be one of \"calm\", \"tense\"",
                ],
            ),
            (json!({"themes": [{"theme": "a"}], "x<y": 1}), vec!["x?y is not known here"]),
        ] {
            let found: Vec<_> = schema().problems(&value).iter().map(Problem::to_string).collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_checked_is_refused() {
        for (bad, why) in [
            (json!({"pattern": "^a"}), "schema: the keyword `pattern` is not checked here"),
            (json!({"type": "word"}), "schema: there is no type `word`"),
            (json!({"required": ["a"]}), "schema: requires `a`, which has no schema"),
            (json!({"properties": {"a": 3}}), "schema.a: must be an object"),
            (json!(true), "schema: must be an object"),
        ] {
            assert_eq!(Schema::compile(&bad).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn endless_nesting_and_endless_problems_end() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({"items": inner}));
        assert!(Schema::compile(&deep).is_err());
        let all_wrong = Value::Array(vec![json!(1); 10_000]);
        let words = Schema::compile(&json!({"items": {"type": "string"}})).unwrap();
        assert_eq!(words.problems(&all_wrong).len(), PROBLEMS_MAX);
    }
}
