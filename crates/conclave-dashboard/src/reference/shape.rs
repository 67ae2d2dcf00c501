//! Shapes of JSON in words.

use super::{Prose, Row, text};
use serde_json::Value;

/// What a value may be: words, and the named shape it is made of, if it has a name.
pub(crate) struct Kind {
    pub(crate) words: String,
    pub(crate) named: Option<String>,
}

/// How many choices are spelled out.
const CHOICES_MAX: usize = 12;

pub(super) fn kind_of(schema: &Value) -> Kind {
    if let Some(name) = name_of(schema) {
        return Kind { words: String::new(), named: Some(name) };
    }
    if schema["type"] == "array"
        && let Some(name) = name_of(&schema["items"])
    {
        return Kind { words: "list of".to_owned(), named: Some(name) };
    }
    Kind { words: words(schema), named: None }
}

/// The fields of an object.
pub(super) fn rows_of(schema: &Value) -> Vec<Row> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .map(|(name, field)| Row {
            name: name.clone(),
            place: None,
            is_required: required.iter().any(|one| one == name.as_str()),
            kind: kind_of(field),
            about: Prose::of(text(&field["description"])),
        })
        .collect()
}

fn name_of(schema: &Value) -> Option<String> {
    schema["$ref"].as_str()?.rsplit('/').next().map(str::to_owned)
}

fn words(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let shown: Vec<_> = choices.iter().take(CHOICES_MAX).map(plain).collect();
        let more = if choices.len() > CHOICES_MAX { ", …" } else { "" };
        return format!("{}{more}", shown.join(", "));
    }
    if !schema["const"].is_null() {
        return plain(&schema["const"]);
    }
    if let Some(either) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let all: Vec<_> =
            either.iter().map(|one| name_of(one).unwrap_or_else(|| words(one))).collect();
        return all.join(" or ");
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(plain).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    };
    let kind = if kind == "array" { format!("list of {}", words(&schema["items"])) } else { kind };
    let mut limits = Vec::new();
    for (name, said) in [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least, in characters:"),
        ("maxLength", "at most, in characters:"),
        ("maxItems", "at most:"),
        ("default", "if not given:"),
    ] {
        if !schema[name].is_null() {
            limits.push(format!("{said} {}", plain(&schema[name])));
        }
    }
    if limits.is_empty() { kind } else { format!("{kind}, {}", limits.join(", ")) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shapes_are_said_in_words() {
        for (schema, expected) in [
            (json!({"type": "integer", "minimum": 1, "maximum": 5}), "integer, from 1, to 5"),
            (json!({"enum": ["a", "b"]}), "a, b"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"type": "array", "items": {"type": "string"}}), "list of string"),
            (json!({"anyOf": [{"$ref": "#/x/Turn"}, {"type": "null"}]}), "Turn or null"),
            (json!({"const": true}), "true"),
            (json!({}), "anything"),
        ] {
            assert_eq!(kind_of(&schema).words, expected, "{schema}");
        }
        let list =
            kind_of(&json!({"type": "array", "items": {"$ref": "#/components/schemas/Vote"}}));
        assert_eq!((list.words.as_str(), list.named.as_deref()), ("list of", Some("Vote")));
    }
}
