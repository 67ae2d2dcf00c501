//! What a gateway answers, as lines for people.
//!
//! **Invariant:** what others wrote never steers the terminal: control characters become blanks.

use crate::output;
use conclave_govern::{date_of, day_of};
use serde_json::Value;
use std::fmt::Write;

/// Prints an answer: everything for machines, and what `print_plain` makes of it for people.
pub fn print_answer(answer: &Value, as_json: bool, print_plain: impl FnOnce(&Value)) {
    if as_json {
        output::json(answer);
    } else {
        print_plain(answer);
    }
}

/// Prints one line for each row of a list; a column is a field, or a path such as `withdrawn/at_ms`.
pub fn print_rows(list: &Value, columns: &[&str]) {
    let rows = list["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        output::line("There is nothing.");
    }
    for row in rows {
        let cells: Vec<_> = columns.iter().map(|column| cell(row, column)).collect();
        output::line(&cells.join("  "));
    }
}

fn cell(row: &Value, column: &str) -> String {
    let value = row.pointer(&format!("/{column}")).unwrap_or(&Value::Null);
    match moment_in(column, value) {
        // Without its name nobody knows what happens at that moment.
        Some(moment) => {
            let field = column.split('/').next().unwrap_or(column);
            format!("{} {moment}", name_of(field))
        }
        None => scalar(value).unwrap_or_else(|| "-".to_owned()),
    }
}

/// Prints the fields of an object, one a line; what is empty is left out.
pub fn print_fields(object: &Value) {
    let mut lines = String::new();
    write_fields(&mut lines, object, 0);
    output::line(lines.trim_end());
}

fn write_fields(lines: &mut String, object: &Value, depth: usize) {
    for (field, value) in object.as_object().into_iter().flatten() {
        // The kind of an object is for programs; whoever asked knows it.
        if field != "object" {
            write_field(lines, field, value, depth);
        }
    }
}

fn write_field(lines: &mut String, field: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let name = name_of(field);
    let text = moment_in(field, value).or_else(|| scalar(value));
    if let Some(text) = text {
        let _ = writeln!(lines, "{indent}{name}: {text}");
        return;
    }
    let mut below = String::new();
    match value {
        Value::Object(_) => write_fields(&mut below, value, depth + 1),
        Value::Array(items) => {
            for item in items {
                let mut block = String::new();
                write_fields(&mut block, item, depth + 2);
                // The first line of each item carries the mark, in the place of its own indent.
                let mark = format!("{indent}  - ");
                below.push_str(&block.replacen(&"  ".repeat(depth + 2), &mark, 1));
            }
        }
        Value::String(text) => {
            for line in text.lines() {
                let _ = writeln!(below, "{indent}  {}", printable(line));
            }
        }
        _ => {}
    }
    if !below.is_empty() {
        let _ = write!(lines, "{indent}{name}:\n{below}");
    }
}

/// A value that fits on a line; `None` where it is empty or has lines or fields of its own.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if !text.is_empty() && !text.contains('\n') => Some(printable(text)),
        Value::Array(items) if !items.is_empty() => {
            let texts: Option<Vec<_>> = items.iter().map(scalar).collect();
            texts.map(|texts| texts.join(", "))
        }
        _ => None,
    }
}

/// The name of a field. It is what stands in files and answers, so that it can be found there; only
/// the unit goes with the number it was for.
fn name_of(field: &str) -> String {
    printable(field.strip_suffix("_ms").unwrap_or(field))
}

/// The moment in a field of milliseconds since 1970, by its name.
fn moment_in(field: &str, value: &Value) -> Option<String> {
    value.as_u64().filter(|_| field.ends_with("_ms")).map(moment)
}

/// A moment as a date and a time, in UTC.
pub fn moment(ms: u64) -> String {
    let minutes = ms / 60_000;
    let hour = minutes / 60 % 24;
    format!("{} {hour:02}:{:02} UTC", date_of(day_of(ms)), minutes % 60)
}

/// A text in which control characters are blanks.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a [31mb ");
    }

    #[test]
    fn milliseconds_are_read_as_a_moment() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(1_800_000_900_000), "2027-01-15 08:15 UTC");
    }

    #[test]
    fn objects_become_lines_that_people_can_read() {
        let object = json!({
            "object": "review", "approvals_needed": 2, "author": null, "claim": {"token": 7},
            "four_eyes": true, "issues": ["a", "b"], "others": [], "until_ms": 0,
            "rulings": [{"by": "Ana", "notes": "no"}, {"by": "Ben"}],
            "words": "first\nsecond\u{1b}",
        });
        let mut lines = String::new();
        write_fields(&mut lines, &object, 0);
        let wanted = "approvals_needed: 2\nclaim:\n  token: 7\nfour_eyes: yes\nissues: a, b\n\
                      until: 1970-01-01 00:00 UTC\n\
                      rulings:\n  - by: Ana\n    notes: no\n  - by: Ben\nwords:\n  first\n  second \n";
        assert_eq!(lines, wanted);
    }
}
