//! What a gateway answers, as lines for people.
//!
//! **Invariant:** what others wrote never steers the terminal.

use crate::output;
use serde_json::Value;

/// Prints one line for each row of a list.
pub fn print_rows(list: &Value, columns: &[&str]) {
    let rows = list["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        output::line("There is nothing.");
    }
    for row in rows {
        let cells = columns.iter().map(|column| match &row[*column] {
            Value::Null => "-".to_owned(),
            Value::String(text) => printable(text),
            other => printable(&other.to_string()),
        });
        output::line(&cells.collect::<Vec<_>>().join("  "));
    }
}

/// A text in which control characters are blanks.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a [31mb ");
    }
}
