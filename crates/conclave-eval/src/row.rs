//! One labelled row: what is true of it, beside what is judged.
//!
//! **Invariant:** a row without a label is an error, never a guess: a wrong label is a wrong figure.

use crate::chance::hash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Characters of a text that are kept to be shown.
pub const EXCERPT_CHARS_MAX: usize = 200;
/// Of those, what a reply's prompt may take.
const PROMPT_CHARS_MAX: usize = 70;

/// What is true of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// It ought to be flagged.
    Harmful,
    /// It ought to pass.
    Safe,
}

/// What a row asks of the judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A request to a model.
    #[default]
    Prompt,
    /// A stand-alone text.
    Text,
    /// A reply, judged in the light of its conversation.
    Response,
    /// A conversation whose harm shows across turns.
    MultiTurn,
    /// Whether the person needs help.
    Crisis,
    /// Whether it tries to override instructions.
    Injection,
    /// Whether it holds identifying data.
    Pii,
}

impl Task {
    /// Every task, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Prompt,
        Self::Text,
        Self::Response,
        Self::MultiTurn,
        Self::Crisis,
        Self::Injection,
        Self::Pii,
    ];

    /// As files spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Text => "text",
            Self::Response => "response",
            Self::MultiTurn => "multi_turn",
            Self::Crisis => "crisis",
            Self::Injection => "injection",
            Self::Pii => "pii",
        }
    }

    /// The tasks whose scores mean the same and may be pooled under one name.
    #[must_use]
    pub const fn scope(self) -> &'static str {
        match self {
            Self::Prompt | Self::Text => "prompt+text",
            other => other.as_str(),
        }
    }

    /// Whether it is an input in which harm is looked for.
    #[must_use]
    pub const fn is_input(self) -> bool {
        matches!(self, Self::Prompt | Self::Text)
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.as_str() == name)
    }
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct RowError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub message: String,
}

/// What a row says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, empty where it has none.
    pub id: String,
    /// What is true of it.
    pub label: Label,
    /// What it asks.
    pub task: Task,
    /// Its facets.
    pub categories: Vec<String>,
    /// ISO 639-1, or `und`.
    pub language: String,
    /// Where it comes from.
    pub source: String,
    /// The beginning of its text.
    pub excerpt: String,
    /// What it shares with its twins, rows of other labels and nearly the same words.
    pub pair: Option<String>,
    /// A hash of all that is said in it: two rows with the same words have the same.
    pub words: u64,
}

impl Row {
    /// Reads what a line says about itself; the text to judge is read elsewhere.
    ///
    /// # Errors
    /// When the label is missing or a field has the wrong shape.
    pub fn from_line(line: &Map<String, Value>) -> Result<Self, RowError> {
        Ok(Self {
            id: given(line, "id").map(shown).unwrap_or_default(),
            label: label(line)?,
            task: task(line)?,
            categories: categories(line)?,
            language: name(line, "language", "und")?,
            source: name(line, "source", "unnamed")?,
            excerpt: excerpt(line),
            pair: given(line, "pair").map(shown),
            words: words(line),
        })
    }
}

#[cfg(test)]
impl Row {
    /// A row of which nothing else matters.
    pub(crate) fn made_up(label: Label, task: Task) -> Self {
        Self {
            id: String::new(),
            label,
            task,
            categories: vec![],
            language: "en".into(),
            source: "s".into(),
            excerpt: String::new(),
            pair: None,
            words: 0,
        }
    }
}

fn wrong(field: &'static str, message: impl Into<String>) -> RowError {
    RowError { field, message: message.into() }
}

fn given<'a>(line: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    line.get(field).filter(|value| !value.is_null())
}

fn shown(name: &Value) -> String {
    match name {
        Value::String(name) => clipped(name, EXCERPT_CHARS_MAX),
        other => clipped(&other.to_string(), EXCERPT_CHARS_MAX),
    }
}

fn words(line: &Map<String, Value>) -> u64 {
    let said = ["text", "turns", "response"].map(|field| given(line, field));
    hash(&said.map(|said| said.map_or_else(String::new, Value::to_string)).join("\n"))
}

fn label(line: &Map<String, Value>) -> Result<Label, RowError> {
    match given(line, "label") {
        Some(Value::String(label)) if label == "harmful" => Ok(Label::Harmful),
        Some(Value::String(label)) if label == "safe" => Ok(Label::Safe),
        Some(other) => {
            let shown = clipped(&other.to_string(), 40);
            Err(wrong("label", format!("must be `harmful` or `safe`, not {shown}")))
        }
        None => Err(wrong("label", "is missing: say `harmful` or `safe`")),
    }
}

fn task(line: &Map<String, Value>) -> Result<Task, RowError> {
    let task = match given(line, "task") {
        None => Some(Task::default()),
        Some(Value::String(name)) => Task::parse(name),
        Some(_) => None,
    };
    let known = Task::ALL.map(Task::as_str).join(", ");
    task.ok_or_else(|| wrong("task", format!("must be one of {known}")))
}

fn categories(line: &Map<String, Value>) -> Result<Vec<String>, RowError> {
    let named = |value: &Value| value.as_str().map(|name| clipped(name, 60));
    let all = match given(line, "categories") {
        None => Some(Vec::new()),
        Some(Value::Array(names)) => names.iter().map(named).collect(),
        Some(_) => None,
    };
    let mut all = all.ok_or_else(|| wrong("categories", "must be an array of strings"))?;
    all.sort();
    all.dedup();
    Ok(all)
}

fn name(
    line: &Map<String, Value>,
    field: &'static str,
    otherwise: &str,
) -> Result<String, RowError> {
    match given(line, field) {
        None => Ok(otherwise.to_owned()),
        Some(Value::String(name)) => Ok(clipped(name, 60)),
        Some(_) => Err(wrong(field, "must be a string")),
    }
}

/// What a person needs to see to know the row: the reply after its prompt, else the last words said.
fn excerpt(line: &Map<String, Value>) -> String {
    let said = given(line, "text").and_then(Value::as_str).or_else(|| last_turn(line));
    let said = said.unwrap_or_default();
    match given(line, "response").and_then(Value::as_str) {
        None => clipped(said, EXCERPT_CHARS_MAX),
        Some(reply) => {
            let shown = format!("{} → {reply}", clipped(said, PROMPT_CHARS_MAX));
            clipped(&shown, EXCERPT_CHARS_MAX)
        }
    }
}

fn last_turn(line: &Map<String, Value>) -> Option<&str> {
    let turns = given(line, "turns")?.as_array()?;
    turns.last()?.get("content")?.as_str()
}

/// The text, cut to a number of characters; the last of them says so.
#[must_use]
pub fn clipped(text: &str, chars_max: usize) -> String {
    let mut places = text.char_indices().skip(chars_max.saturating_sub(1));
    match (places.next(), places.next()) {
        (Some((cut, _)), Some(_)) => format!("{}…", &text[..cut]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(line: &Value) -> Result<Row, RowError> {
        Row::from_line(line.as_object().unwrap())
    }

    #[test]
    fn a_row_needs_its_label_and_little_else() {
        let row = read(&json!({"text": "hello", "label": "safe"})).unwrap();
        assert_eq!((row.task, row.label), (Task::Prompt, Label::Safe));
        assert_eq!((row.language.as_str(), row.source.as_str()), ("und", "unnamed"));
        assert_eq!((row.id.as_str(), row.excerpt.as_str()), ("", "hello"));
        let full = read(&json!({
            "id": 7, "text": "a", "response": "b", "label": "harmful", "task": "response",
            "categories": ["x", "w", "x"], "language": "ja", "source": "s",
        }));
        let full = full.unwrap();
        assert_eq!((full.id.as_str(), full.excerpt.as_str()), ("7", "a → b"));
        assert_eq!(full.categories, ["w", "x"]);
        assert_eq!(full.task.scope(), "response");
    }

    #[test]
    fn twins_share_their_pair_and_copies_their_words() {
        let one = read(&json!({"text": "a", "label": "safe", "pair": "p", "id": 1})).unwrap();
        let copy = read(&json!({"text": "a", "label": "harmful", "pair": 7})).unwrap();
        let other = read(&json!({"text": "a", "response": "b", "label": "safe"})).unwrap();
        assert_eq!((one.pair.as_deref(), copy.pair.as_deref()), (Some("p"), Some("7")));
        assert_eq!((one.words == copy.words, one.words == other.words), (true, false));
    }

    #[test]
    fn wrong_rows_name_the_field() {
        for (line, field) in [
            (json!({"text": "a"}), "label"),
            (json!({"text": "a", "label": null}), "label"),
            (json!({"text": "a", "label": "bad"}), "label"),
            (json!({"text": "a", "label": 1}), "label"),
            (json!({"text": "a", "label": "safe", "task": "poem"}), "task"),
            (json!({"text": "a", "label": "safe", "task": 1}), "task"),
            (json!({"text": "a", "label": "safe", "categories": "x"}), "categories"),
            (json!({"text": "a", "label": "safe", "categories": [1]}), "categories"),
            (json!({"text": "a", "label": "safe", "source": []}), "source"),
            (json!({"text": "a", "label": "safe", "language": 3}), "language"),
        ] {
            assert_eq!(read(&line).unwrap_err().field, field, "{line}");
        }
    }

    #[test]
    fn texts_are_cut_by_characters_not_bytes() {
        assert_eq!(clipped("日本語", 3), "日本語");
        assert_eq!(clipped("日本語だ", 3), "日本…");
        assert_eq!(clipped("", 3), "");
        let long = "あ".repeat(500);
        let row = read(&json!({"turns": [{"role": "user", "content": long}], "label": "safe"}));
        assert_eq!(row.unwrap().excerpt.chars().count(), EXCERPT_CHARS_MAX);
    }
}
