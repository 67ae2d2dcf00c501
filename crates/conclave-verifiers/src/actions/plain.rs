//! An action written out as one plain text: what the trained classifier of actions reads.
//!
//! **Invariant:** the same action gives the same text for ever: the trained weights know no other. Whatever changes here
//! asks for new weights.
//! **Invariant:** at most [`TEXT_BYTES_MAX`] bytes, however large the call is.

use super::facts::head;
use super::{Action, numbers};
use crate::call::decode::{Decoded, decode};
use crate::call::tree::{Field, Tree};
use crate::call::{ENCODINGS_MAX, split_words};
use std::collections::BTreeSet;

/// What is written out.
const TEXT_BYTES_MAX: usize = 6 * 1024;
/// Of a description, and of what the person asked for.
const ABOUT_BYTES_MAX: usize = 1024;
/// Of one value.
const VALUE_BYTES_MAX: usize = 600;

/// Writes an action out: its name, every key with its value, and what is known of the tool.
pub fn write_out(action: Action<'_>) -> String {
    let asked = head(action.asked, ABOUT_BYTES_MAX);
    let mut writer = Writer {
        out: String::new(),
        asked: split_words(asked).into_iter().collect(),
        asked_numbers: numbers::all_in(asked),
        words: 0,
        known: 0,
    };
    writer.write_words(action.name);
    match Tree::parse(action.arguments) {
        Some(tree) => writer.write_tree(&tree, 0),
        None => writer.write_text(action.arguments, 0),
    }
    writer.finish(action)
}

struct Writer {
    out: String,
    asked: BTreeSet<String>,
    asked_numbers: Vec<f64>,
    /// Words among the values, and how many of them the person used as well.
    words: usize,
    known: usize,
}

impl Writer {
    fn is_full(&self) -> bool {
        self.out.len() >= TEXT_BYTES_MAX
    }

    fn write_tree(&mut self, tree: &Tree, encodings: usize) {
        if self.is_full() {
            return;
        }
        match tree {
            Tree::Empty => self.write_mark("empty"),
            Tree::Flag(flag) => self.write_mark(if *flag { "yes" } else { "no" }),
            Tree::Number(number) => self.write_number(*number),
            Tree::Text(text) => self.write_text(text, encodings),
            Tree::List(items) => {
                self.write_mark(length_mark(items.len()));
                items.iter().for_each(|item| self.write_tree(item, encodings));
            }
            Tree::Fields(fields) => {
                for Field { key, value } in fields {
                    self.write_words(key);
                    self.write_tree(value, encodings);
                }
            }
        }
    }

    fn write_text(&mut self, text: &str, encodings: usize) {
        match decode(text).filter(|_| encodings < ENCODINGS_MAX) {
            Some(Decoded::Tree(tree)) => self.write_tree(&tree, encodings + 1),
            Some(Decoded::Text(inner)) => self.write_text(&inner, encodings + 1),
            None => {
                let text = head(text, VALUE_BYTES_MAX);
                for word in split_words(text) {
                    self.words += 1;
                    self.known += usize::from(self.asked.contains(&word));
                }
                for number in numbers::all_in(text) {
                    self.compare(number);
                }
                self.write_mark(text);
            }
        }
    }

    fn write_number(&mut self, number: f64) {
        self.write_mark(&number.to_string());
        self.write_mark(size_mark(number));
        self.compare(number);
    }

    /// How a number stands to those that the person named.
    fn compare(&mut self, number: f64) {
        let Some(nearest) = self
            .asked_numbers
            .iter()
            .copied()
            .min_by(|a, b| (a - number).abs().total_cmp(&(b - number).abs()))
        else {
            return;
        };
        let mark = match number / nearest {
            _ if (number - nearest).abs() < 1e-9 => "asasked",
            ratio if ratio >= 3.0 => "farover",
            ratio if ratio > 1.0 => "overasked",
            ratio if ratio > 0.34 => "underasked",
            _ => "farunder",
        };
        self.write_mark(mark);
    }

    /// The words of a name: "turn_off" is "turn off".
    fn write_words(&mut self, name: &str) {
        let decoded = decode(name);
        let name = match &decoded {
            Some(Decoded::Text(text)) => text,
            _ => name,
        };
        let words = split_words(head(name, VALUE_BYTES_MAX)).join(" ");
        self.write_mark(&words);
    }

    fn write_mark(&mut self, mark: &str) {
        self.out.push(' ');
        self.out.push_str(mark);
    }

    fn finish(mut self, action: Action<'_>) -> String {
        let share = match (self.known * 4).checked_div(self.words) {
            _ if self.asked.is_empty() => "unasked",
            None | Some(0) => "sharenone",
            Some(1) => "sharefew",
            Some(2) => "sharesome",
            Some(_) => "sharemost",
        };
        self.write_mark(share);
        let mut out = head(self.out.trim(), TEXT_BYTES_MAX).to_owned();
        out.push_str(" ; ");
        out.push_str(head(action.description, ABOUT_BYTES_MAX));
        out
    }
}

const fn length_mark(length: usize) -> &'static str {
    match length {
        0 => "listempty",
        1..=3 => "listfew",
        4..=19 => "listsome",
        20..=99 => "listmany",
        _ => "listvast",
    }
}

fn size_mark(number: f64) -> &'static str {
    match number.abs() {
        size if size < 1e-9 => "sizezero",
        size if size < 10.0 => "sizeone",
        size if size < 100.0 => "sizeten",
        size if size < 1e3 => "sizehundred",
        size if size < 1e5 => "sizethousand",
        _ => "sizevast",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, arguments: &str, asked: &str) -> String {
        write_out(Action { name, arguments, description: "Sets a pump.", asked })
    }

    #[test]
    fn an_action_is_written_out_with_what_was_asked_in_view() {
        let asked = "Set bed 4 to 2 units.";
        for (arguments, expected) in [
            (
                r#"{"bed":"4","rateUnits":20}"#,
                "set pump bed asasked 4 rate units 20 sizeten farover sharemost ; Sets a pump.",
            ),
            (
                r#"{"all":true,"beds":[]}"#,
                "set pump all yes beds listempty sharenone ; Sets a pump.",
            ),
            (r#""dHVybiBvZmY=""#, "set pump turn off sharenone ; Sets a pump."),
        ] {
            assert_eq!(written("set_pump", arguments, asked), expected, "{arguments}");
        }
        assert!(written("x", "{}", "").contains("unasked"));
    }

    #[test]
    fn it_is_bounded() {
        let arguments = serde_json::to_string(&vec!["pump off"; 200_000]).unwrap();
        assert!(written("x", &arguments, "").len() <= TEXT_BYTES_MAX + ABOUT_BYTES_MAX + 8);
        assert!(written("x", &"[".repeat(300_000), "").len() <= TEXT_BYTES_MAX);
    }
}
