//! The file of an export that people and scripts read: one line for each entry.
//!
//! **Invariant:** what counts is the leaf. The lines are made from leaves, and are compared with them when
//! an export is checked, so that nobody has to read the leaves to know what is in them.

use super::handover::each_leaf;
use super::tiled::TiledLog;
use anyhow::Context;
use conclave_core::AuditId;
use conclave_ledger::Leaf;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// The name of the file.
pub(super) const ENTRY_LINES: &str = "entries.jsonl";

/// A leaf has at most 64 KiB; written as text it cannot become as long as this.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// How much of a value is shown.
const SHOWN_CHARS_MAX: usize = 80;

/// What a comparison of the lines with the leaves came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineCheck {
    /// There is no such file.
    Absent,
    /// Every line says what its leaf says.
    Agree,
    /// The first that does not.
    Differ {
        /// Which entry.
        seq: u64,
        /// Where, and what it says.
        problem: String,
    },
}

/// What a leaf says, for people and scripts; the bytes that count stand in the bundle.
pub(super) fn entry_line(seq: u64, bytes: &[u8]) -> Value {
    let hash = hex::encode(conclave_ledger::leaf_hash(bytes));
    let Ok(leaf) = Leaf::decode(bytes) else {
        return json!({"seq": seq, "leaf_hash": hash});
    };
    json!({
        "seq": seq,
        "id": leaf.id.to_string(),
        "kind": leaf.draft.kind.as_str(),
        "ts_ms": leaf.ts_ms,
        "audit_id": leaf.draft.audit.map(|id| AuditId::from_bytes(id).to_string()),
        "leaf_hash": hash,
        "public": plain(&leaf.draft.public),
    })
}

/// The same value in JSON; bytes become hex.
fn plain(value: &conclave_ledger::Value) -> Value {
    use conclave_ledger::Value as Cbor;
    match value {
        Cbor::Uint(number) => json!(number),
        Cbor::Nint(number) => json!(-1 - i128::from(*number)),
        Cbor::Bytes(bytes) => json!(hex::encode(bytes)),
        Cbor::Text(text) => json!(text),
        Cbor::Bool(yes) => json!(yes),
        Cbor::Null => json!(null),
        Cbor::Array(values) => values.iter().map(plain).collect(),
        Cbor::Map(map) => map.iter().map(|(key, value)| (key.to_string(), plain(value))).collect(),
    }
}

/// Compares the lines of an export with its leaves, which must have been checked.
///
/// # Errors
/// When one of them cannot be read.
pub(super) fn check_entry_lines(
    dir: &Path,
    log: &dyn TiledLog,
    size: u64,
) -> anyhow::Result<LineCheck> {
    let path = dir.join(ENTRY_LINES);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(LineCheck::Absent),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut lines = BufReader::new(file);
    let mut found = Ok(LineCheck::Agree);
    each_leaf(log, size, &mut |seq, leaf| {
        let compared = next_line(&mut lines).map(|line| compare(&line, &entry_line(seq, leaf)));
        match compared {
            Ok(None) => true,
            Ok(Some(problem)) => {
                found = Ok(LineCheck::Differ { seq, problem });
                false
            }
            Err(error) => {
                found = Err(error);
                false
            }
        }
    })?;
    if matches!(found, Ok(LineCheck::Agree)) && !next_line(&mut lines)?.is_empty() {
        let problem = format!("{ENTRY_LINES} goes on, the log does not");
        return Ok(LineCheck::Differ { seq: size, problem });
    }
    found.with_context(|| path.display().to_string())
}

/// The next line; empty at the end. Of one that is too long only the beginning, which no leaf agrees with.
fn next_line(lines: &mut BufReader<File>) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// What is wrong with a line; nothing if it says what it should.
fn compare(line: &[u8], expected: &Value) -> Option<String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line == expected.to_string().as_bytes() {
        return None;
    }
    if line.is_empty() {
        return Some(format!("{ENTRY_LINES} has no line for it"));
    }
    let Ok(told) = serde_json::from_slice::<Value>(line) else {
        return Some(format!("its line in {ENTRY_LINES} is not JSON"));
    };
    if let Some(difference) = first_difference(&told, expected, "") {
        return Some(difference);
    }
    // The same fields in another order are as long; a name that stands there twice is not.
    (told.to_string().len() != line.len()).then(|| {
        format!("its line in {ENTRY_LINES} has spaces, or a name twice, and not as it was exported")
    })
}

/// The first field in which two values differ, and how.
fn first_difference(told: &Value, expected: &Value, place: &str) -> Option<String> {
    let within =
        |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match (told, expected) {
        (Value::Object(told), Value::Object(expected)) => {
            let names = expected.keys().chain(told.keys().filter(|it| !expected.contains_key(*it)));
            names.into_iter().find_map(|name| match (told.get(name), expected.get(name)) {
                (Some(told), Some(expected)) => first_difference(told, expected, &within(name)),
                (told, expected) => Some(sentence(&within(name), told, expected)),
            })
        }
        (Value::Array(told), Value::Array(expected)) => (0..told.len().max(expected.len()))
            .find_map(|at| match (told.get(at), expected.get(at)) {
                (Some(told), Some(expected)) => {
                    first_difference(told, expected, &within(&at.to_string()))
                }
                (told, expected) => Some(sentence(&within(&at.to_string()), told, expected)),
            }),
        (told, expected) if told == expected => None,
        (told, expected) => Some(sentence(place, Some(told), Some(expected))),
    }
}

fn sentence(place: &str, told: Option<&Value>, expected: Option<&Value>) -> String {
    let (told, expected) = (shown(told), shown(expected));
    format!("its line in {ENTRY_LINES} says {told} for `{place}`, the leaf says {expected}")
}

/// The beginning of a value, on one line.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_line_is_named_with_its_field() {
        let expected = json!({
            "seq": 3, "kind": "decision", "public": {"outcome": "blocked", "choices": [1, {"a": true}]},
        });
        let told = |line: &str| compare(format!("{line}\n").as_bytes(), &expected);
        assert_eq!(told(&expected.to_string()), None);
        let cases = [
            (
                "\"blocked\"",
                "\"delivered\"",
                "\"delivered\" for `public.outcome`, the leaf says \"blocked\"",
            ),
            ("true", "false", "false for `public.choices.1.a`"),
            ("[1,", "[", "for `public.choices.0`"),
            ("\"seq\":3", "\"seq\":4", "4 for `seq`, the leaf says 3"),
            ("\"kind\":\"decision\",", "", "nothing for `kind`"),
            ("\"seq\":3", "\"seq\":3,\"note\":\"ok\"", "for `note`, the leaf says nothing"),
            ("\"seq\":3", "\"seq\":4,\"seq\":3", "a name twice"),
            ("\"seq\":3", "\"seq\": 3", "has spaces"),
            ("{", "", "is not JSON"),
        ];
        for (from, to, said) in cases {
            let line = expected.to_string();
            assert!(line.contains(from), "{line} has no {from}");
            let problem = told(&line.replacen(from, to, 1)).unwrap();
            assert!(problem.contains(said), "{from} -> {to}: {problem}");
        }
        assert!(told("").unwrap().contains("no line"));
        let long = told(&format!("{{\"seq\":\"{}\"}}", "x".repeat(500))).unwrap();
        assert!(long.len() < 300 && long.contains("..."), "{long}");
    }
}
