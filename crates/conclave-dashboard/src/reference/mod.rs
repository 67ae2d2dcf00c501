//! The reference of the interface, made of its OpenAPI description.
//!
//! **Invariant:** nothing is said here that the description does not say: a test holds the description to
//! the routes, and another holds this page to the description.

mod shape;

use askama::Template;
use askama::filters::HtmlSafe;
use serde_json::{Map, Value};
use shape::{Kind, kind_of, rows_of};
use std::sync::LazyLock;

/// The description, as it is also served at `/openapi.json`.
const DESCRIPTION: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json"));

/// The reference; made once.
pub(crate) static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    let description = serde_json::from_str(DESCRIPTION).unwrap_or_default();
    Reference::of(&description)
});

/// Everything the page shows.
pub(crate) struct Reference {
    pub(crate) version: String,
    pub(crate) about: Vec<Prose>,
    pub(crate) groups: Vec<Group>,
    pub(crate) shapes: Vec<Shape>,
}

/// Operations that belong together.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) about: Prose,
    pub(crate) operations: Vec<Operation>,
}

/// One method on one path.
pub(crate) struct Operation {
    pub(crate) anchor: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) summary: Prose,
    pub(crate) about: Vec<Prose>,
    pub(crate) parameters: Vec<Row>,
    pub(crate) request: Vec<Content>,
    pub(crate) answers: Vec<Answer>,
}

/// What may be sent or come back, in one form.
pub(crate) struct Content {
    pub(crate) media: String,
    pub(crate) kind: Kind,
    pub(crate) example: Option<String>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: String,
    pub(crate) about: Prose,
    pub(crate) contents: Vec<Content>,
}

/// A named shape of JSON.
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) about: Vec<Prose>,
    pub(crate) kind: Kind,
    pub(crate) rows: Vec<Row>,
}

/// A parameter or a field.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) place: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) kind: Kind,
    pub(crate) about: Prose,
}

/// A paragraph.
#[derive(Default, Template)]
#[template(path = "parts/prose.html")]
pub(crate) struct Prose(Vec<Piece>);

impl HtmlSafe for Prose {}

/// A piece of a paragraph.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Plain(String),
    Strong(String),
    Code(String),
}

impl Prose {
    /// Text with code between backquotes and what matters between pairs of stars.
    fn of(text: &str) -> Self {
        let mut pieces = Vec::new();
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 {
                pieces.push(Piece::Code(part.to_owned()));
                continue;
            }
            let words = part.split("**").map(str::to_owned).enumerate();
            pieces.extend(words.map(|(at, words)| match at % 2 {
                1 => Piece::Strong(words),
                _ => Piece::Plain(words),
            }));
        }
        pieces.retain(|piece| *piece != Piece::Plain(String::new()));
        Self(pieces)
    }

    fn paragraphs(text: &str) -> Vec<Self> {
        text.split("\n\n").filter(|part| !part.trim().is_empty()).map(Self::of).collect()
    }
}

impl Reference {
    fn of(whole: &Value) -> Self {
        let tags = whole["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
        let operations = operations(whole);
        let mut groups: Vec<_> = tags
            .iter()
            .map(|tag| Group {
                name: text(&tag["name"]).to_owned(),
                about: Prose::of(text(&tag["description"])),
                operations: Vec::new(),
            })
            .collect();
        for (tag, operation) in operations {
            if let Some(group) = groups.iter_mut().find(|group| group.name == tag) {
                group.operations.push(operation);
            }
        }
        groups.retain(|group| !group.operations.is_empty());
        let schemas = whole["components"]["schemas"].as_object();
        Self {
            version: text(&whole["info"]["version"]).to_owned(),
            about: Prose::paragraphs(text(&whole["info"]["description"])),
            groups,
            shapes: schemas
                .into_iter()
                .flatten()
                .map(|(name, schema)| shape(name, schema))
                .collect(),
        }
    }
}

fn shape(name: &str, schema: &Value) -> Shape {
    Shape {
        name: name.to_owned(),
        about: Prose::paragraphs(text(&schema["description"])),
        kind: kind_of(schema),
        rows: rows_of(schema),
    }
}

/// Every operation with the first of its tags.
fn operations(whole: &Value) -> Vec<(String, Operation)> {
    let paths = whole["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.filter(|(name, _)| name.as_str() != "parameters").map(move |(method, operation)| {
            let tag = text(&operation["tags"][0]).to_owned();
            (tag, one(whole, path, method, operation, &methods_parameters(whole, path)))
        })
    });
    all.collect()
}

fn methods_parameters(whole: &Value, path: &str) -> Vec<Value> {
    whole["paths"][path]["parameters"].as_array().cloned().unwrap_or_default()
}

fn one(whole: &Value, path: &str, method: &str, operation: &Value, shared: &[Value]) -> Operation {
    let own = operation["parameters"].as_array().into_iter().flatten();
    let parameters = shared.iter().chain(own).map(|given| {
        let parameter = resolved(whole, given);
        Row {
            name: text(&parameter["name"]).to_owned(),
            place: Some(text(&parameter["in"]).to_owned()),
            is_required: parameter["required"] == true,
            kind: kind_of(&parameter["schema"]),
            about: Prose::of(text(&parameter["description"])),
        }
    });
    let answers = operation["responses"].as_object().into_iter().flatten();
    Operation {
        anchor: text(&operation["operationId"]).to_owned(),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: Prose::of(text(&operation["summary"])),
        about: Prose::paragraphs(text(&operation["description"])),
        parameters: parameters.collect(),
        request: contents(resolved(whole, &operation["requestBody"])),
        answers: answers
            .map(|(status, answer)| {
                let answer = resolved(whole, answer);
                Answer {
                    status: status.clone(),
                    about: Prose::of(text(&answer["description"])),
                    contents: contents(answer),
                }
            })
            .collect(),
    }
}

fn contents(of: &Value) -> Vec<Content> {
    let media = of["content"].as_object().into_iter().flatten();
    media
        .map(|(media, content)| Content {
            media: media.clone(),
            kind: kind_of(&content["schema"]),
            example: example(content.as_object()),
        })
        .collect()
}

fn example(content: Option<&Map<String, Value>>) -> Option<String> {
    let content = content?;
    let first =
        content.get("examples").and_then(Value::as_object).and_then(|all| all.values().next());
    let value = content.get("example").or_else(|| first.and_then(|first| first.get("value")))?;
    match value {
        Value::String(text) => Some(text.clone()),
        value => serde_json::to_string_pretty(value).ok(),
    }
}

/// What a reference within the description points at; one that points nowhere is nothing.
fn resolved<'a>(whole: &'a Value, given: &'a Value) -> &'a Value {
    match given["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        Some(place) => whole.pointer(place).unwrap_or(&Value::Null),
        None => given,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_description_is_on_the_page_with_its_answers() {
        let whole: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let shown: Vec<_> = REFERENCE.groups.iter().flat_map(|group| &group.operations).collect();
        let mut count = 0;
        for (path, methods) in whole["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if method == "parameters" {
                    continue;
                }
                count += 1;
                let method = method.to_uppercase();
                let found = shown.iter().find(|one| one.path == *path && one.method == method);
                let found = found.unwrap_or_else(|| panic!("{method} {path} is not shown"));
                assert!(!found.anchor.is_empty() && !found.summary.0.is_empty(), "{path}");
                let answers = operation["responses"].as_object().unwrap().len();
                assert_eq!(found.answers.len(), answers, "{method} {path}");
                let described = |answer: &Answer| !answer.about.0.is_empty();
                assert!(found.answers.iter().all(described), "{method} {path}");
            }
        }
        assert_eq!(shown.len(), count);
        let schemas = whole["components"]["schemas"].as_object().unwrap();
        assert_eq!(REFERENCE.shapes.len(), schemas.len());
    }

    #[test]
    fn code_and_what_matters_are_told_apart() {
        let [plain, code, strong] = [Piece::Plain, Piece::Code, Piece::Strong];
        assert_eq!(
            Prose::of("**So** say `a**b`").0,
            [strong("So".into()), plain(" say ".into()), code("a**b".into())]
        );
        assert_eq!(Prose::paragraphs("one\n\ntwo\n\n").len(), 2);
    }
}
