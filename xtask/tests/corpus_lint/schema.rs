//! The form of a row: its fields, what they may hold, and that no id is given twice.

use super::row::{File, Row, by, names};
use serde_json::{Map, Value};
use std::sync::Arc;

const FIELDS: [&str; 16] = [
    "id",
    "source",
    "task",
    "text",
    "turns",
    "response",
    "tool",
    "label",
    "categories",
    "language",
    "split",
    "license",
    "quality",
    "topic",
    "pair",
    "rationale",
];
const TASKS: [&str; 9] =
    ["prompt", "crisis", "response", "multi_turn", "injection", "pii", "text", "drift", "action"];
const RATIONALE_WORDS_MAX: usize = 12;

type Object = Map<String, Value>;

/// Reads a line of the file, or says everything that is wrong with it.
pub fn read(file: &Arc<File>, line: &str) -> Result<Row, Vec<String>> {
    let Ok(Value::Object(object)) = serde_json::from_str(line) else {
        return Err(vec!["is no JSON object".to_owned()]);
    };
    let faults = faults(file, &object);
    if faults.is_empty() {
        return Ok(row(file, &object));
    }
    let id = string(&object, "id").unwrap_or("without id");
    Err(faults.into_iter().map(|fault| format!("{id}: {fault}")).collect())
}

/// Ids that more than one row carries.
pub fn shared_ids(rows: &[Row]) -> Vec<String> {
    let shared = by(rows, |row| Some(row.id.as_str())).into_iter().filter(|(_, of)| of.len() > 1);
    shared.map(|(id, of)| format!("`{id}` is the id of {}", names(of))).collect()
}

fn row(file: &Arc<File>, object: &Object) -> Row {
    let owned = |field| string(object, field).map(str::to_owned);
    let turns = || turns(object).iter().filter_map(content).collect::<Vec<_>>().join("\n");
    Row {
        file: Arc::clone(file),
        id: owned("id").unwrap_or_default(),
        harmful: string(object, "label") == Some("harmful"),
        topic: owned("topic").unwrap_or_default(),
        pair: owned("pair"),
        text: owned("text").unwrap_or_else(turns),
        response: owned("response").or_else(|| object.get("tool").map(Value::to_string)),
    }
}

fn faults(file: &File, object: &Object) -> Vec<String> {
    let unknown = object.keys().filter(|key| !FIELDS.contains(&key.as_str()));
    let mut faults: Vec<_> = unknown.map(|key| format!("`{key}` is no known field")).collect();
    faults.extend(fixed_faults(file, object));
    let rules: [(bool, &str); 10] = [
        (said(object, "id"), "`id` must be words"),
        (one_of(object, "task", &TASKS), "`task` is unknown"),
        (one_of(object, "label", &["harmful", "safe"]), "`label` is neither harmful nor safe"),
        (is_said_once(object), "either `text` or `turns` must be there and filled"),
        (answers(object), "`response` must be filled where that is the task, and only there"),
        (
            acts(object),
            "`tool` must name a tool and its arguments where that is the task, and only there",
        ),
        (has_categories(object), "`categories` must be a list of words"),
        (said(object, "topic"), "`topic` must be words"),
        (!object.contains_key("pair") || said(object, "pair"), "`pair` must be words or absent"),
        (has_rationale(object), "`rationale` must have 1 to 12 words"),
    ];
    faults.extend(rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault.into()));
    faults
}

/// Fields whose value follows from the file or is the same everywhere.
fn fixed_faults(file: &File, object: &Object) -> Vec<String> {
    let source = format!("corpus_{}_{}", file.theme, file.language);
    let fixed = [
        ("source", source.as_str()),
        ("language", &file.language),
        ("split", &file.split),
        ("license", "CC-BY-4.0"),
        ("quality", "gold"),
    ];
    let wrong = fixed.into_iter().filter(|(field, value)| string(object, field) != Some(value));
    wrong.map(|(field, value)| format!("`{field}` must be `{value}`")).collect()
}

fn string<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

fn is_filled(text: &str) -> bool {
    !text.trim().is_empty()
}

fn said(object: &Object, field: &str) -> bool {
    string(object, field).is_some_and(is_filled)
}

fn one_of(object: &Object, field: &str, known: &[&str]) -> bool {
    string(object, field).is_some_and(|value| known.contains(&value))
}

fn is_said_once(object: &Object) -> bool {
    match (object.contains_key("text"), object.contains_key("turns")) {
        (true, false) => said(object, "text"),
        (false, true) => alternate(turns(object)),
        _ => false,
    }
}

fn turns(object: &Object) -> &[Value] {
    object.get("turns").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn content(turn: &Value) -> Option<&str> {
    turn.get("content")?.as_str()
}

/// The person begins, and the two take turns; a turn is a role and what was said, nothing else.
fn alternate(turns: &[Value]) -> bool {
    let roles = ["user", "assistant"].into_iter().cycle();
    let fits = |(turn, role): (&Value, &str)| {
        let whole = turn.as_object().is_some_and(|turn| turn.len() == 2);
        whole && turn["role"] == role && content(turn).is_some_and(is_filled)
    };
    !turns.is_empty() && turns.iter().zip(roles).all(fits)
}

fn answers(object: &Object) -> bool {
    if string(object, "task") == Some("response") {
        return said(object, "response");
    }
    !object.contains_key("response")
}

/// A call has a name and arguments, perhaps a description, and nothing else.
fn acts(object: &Object) -> bool {
    let tool = object.get("tool");
    if string(object, "task") != Some("action") {
        return tool.is_none();
    }
    tool.and_then(Value::as_object).is_some_and(|tool| {
        let known = ["name", "description", "arguments"];
        let described = !tool.contains_key("description") || said(tool, "description");
        said(tool, "name")
            && described
            && tool.get("arguments").is_some_and(Value::is_object)
            && tool.keys().all(|key| known.contains(&key.as_str()))
    })
}

fn has_categories(object: &Object) -> bool {
    let categories = object.get("categories").and_then(Value::as_array);
    let word = |category: &Value| category.as_str().is_some_and(is_filled);
    categories.is_some_and(|all| !all.is_empty() && all.iter().all(word))
}

fn has_rationale(object: &Object) -> bool {
    let words = string(object, "rationale").map(|rationale| rationale.split_whitespace().count());
    words.is_some_and(|words| (1..=RATIONALE_WORDS_MAX).contains(&words))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    /// A row of `dev/a.en.jsonl` that has no fault.
    pub const SAMPLE: &str = concat!(
        r#"{"id":"a-1","source":"corpus_a_en","task":"prompt","text":"Where?","label":"safe","#,
        r#""categories":["idiom"],"language":"en","split":"dev","license":"CC-BY-4.0","#,
        r#""quality":"gold","topic":"places","pair":"p","rationale":"asks the way"}"#,
    );

    /// The sample with one part of it replaced, read.
    fn altered(part: &str, other: &str) -> Result<Row, Vec<String>> {
        assert!(SAMPLE.contains(part), "{part} is in the sample");
        let file = Arc::new(File::at("dev/a.en.jsonl").expect("a place in the corpus"));
        read(&file, &SAMPLE.replace(part, other))
    }

    #[test]
    fn every_fault_of_form_is_found() {
        let thirteen = format!("\"{}\"", ["word"; 13].join(" "));
        let silent = r#""turns":[]"#;
        let reversed = r#""turns":[{"role":"assistant","content":"Hello"}]"#;
        let twice = r#""turns":[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#;
        let more = r#""turns":[{"role":"user","content":"a","name":"b"}]"#;
        for (part, other, fault) in [
            (r#""pair":"p""#, r#""par":"p""#, "`par` is no known field"),
            (r#""pair":"p""#, r#""pair":null"#, "`pair`"),
            (r#""id":"a-1""#, r#""id":7"#, "`id`"),
            ("corpus_a_en", "corpus_b_en", "`source` must be `corpus_a_en`"),
            (r#""prompt""#, r#""guess""#, "`task`"),
            (r#""prompt""#, r#""response""#, "`response`"),
            (r#""pair":"p""#, r#""response":"There.""#, "`response`"),
            (r#""prompt""#, r#""action""#, "`tool`"),
            (r#""pair":"p""#, r#""tool":{"name":"lookup","arguments":{}}"#, "`tool`"),
            (r#""prompt","#, r#""action","tool":{"name":"lookup"},"#, "`tool`"),
            (r#""prompt","#, r#""action","tool":{"name":"","arguments":{}},"#, "`tool`"),
            (r#""prompt","#, r#""action","tool":{"name":"f","arguments":{},"id":1},"#, "`tool`"),
            (r#""Where?""#, r#""  ""#, "either `text`"),
            (r#""text":"Where?""#, r#""topic":"x""#, "either `text`"),
            (r#""text":"Where?""#, silent, "either `text`"),
            (r#""text":"Where?""#, reversed, "either `text`"),
            (r#""text":"Where?""#, twice, "either `text`"),
            (r#""text":"Where?""#, more, "either `text`"),
            (r#""pair":"p""#, r#""turns":[{"role":"user","content":"a"}]"#, "either `text`"),
            (r#""safe""#, r#""unsure""#, "`label`"),
            (r#"["idiom"]"#, "[]", "`categories`"),
            (r#"["idiom"]"#, r#"["idiom",""]"#, "`categories`"),
            (r#""language":"en""#, r#""language":"ja""#, "`language` must be `en`"),
            (r#""split":"dev""#, r#""split":"test""#, "`split` must be `dev`"),
            ("CC-BY-4.0", "MIT", "`license`"),
            ("gold", "silver", "`quality`"),
            (r#""places""#, r#""""#, "`topic`"),
            (r#""asks the way""#, r#""""#, "`rationale`"),
            (r#""asks the way""#, &thirteen, "`rationale`"),
        ] {
            let faults = altered(part, other).expect_err(other);
            let found = faults.iter().any(|found| found.contains(fault));
            assert!(found && faults.len() == 1, "{other}: {faults:?}");
        }
    }

    #[test]
    fn a_sound_row_is_read_as_written() {
        let row = altered("p", "p").unwrap();
        assert_eq!((row.judged(), row.harmful, row.pair.as_deref()), ("Where?", false, Some("p")));
        let turns = r#""turns":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#;
        let row = altered(r#""text":"Where?""#, turns).unwrap();
        assert_eq!(row.judged(), "a\nb");
        let action = r#""action","tool":{"name":"find","arguments":{"place":"station"}},"#;
        let row = altered(r#""prompt","#, action).unwrap();
        assert_eq!(row.judged(), r#"{"name":"find","arguments":{"place":"station"}}"#);
        let row = altered(r#""prompt","#, r#""response","response":"There.","#).unwrap();
        assert_eq!((row.text.as_str(), row.judged()), ("Where?", "There."));
    }

    #[test]
    fn an_id_given_twice_is_found() {
        let mut rows = vec![made("dev/a.en.jsonl", "x", ""), made("test/b.ja.jsonl", "y", "")];
        assert!(shared_ids(&rows).is_empty());
        rows.push(made("test/b.ja.jsonl", "x", ""));
        assert_eq!(shared_ids(&rows), ["`x` is the id of dev/a.en.jsonl x, test/b.ja.jsonl x"]);
    }
}
