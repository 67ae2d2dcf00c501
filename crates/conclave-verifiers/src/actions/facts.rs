//! A tool call taken apart: words, numbers, texts.
//!
//! **Invariant:** at most [`TEXT_MAX`] bytes and [`DEPTH_MAX`] levels of the arguments are looked
//! at; what lies beyond is marked as unread, which counts against the action.

use super::Action;
use serde_json::Value;
use std::collections::BTreeSet;

const TEXT_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 24;

/// What a call says.
#[derive(Debug, Default)]
pub struct Facts {
    /// Words of the tool's name.
    pub name: BTreeSet<String>,
    /// Words of everything else.
    pub words: BTreeSet<String>,
    /// Numbers by the name they stand under.
    pub numbers: Vec<(String, f64)>,
    /// Texts by the name they stand under.
    pub texts: Vec<(String, String)>,
    /// Yes and no by the name they stand under.
    pub flags: Vec<(String, bool)>,
    /// The longest list.
    pub longest_list: usize,
    /// Everything in lower case, for lists that are found anywhere.
    pub lower: String,
    /// Whether something lay beyond the limits.
    pub unread: bool,
}

impl Facts {
    /// Takes an action apart.
    #[must_use]
    pub fn of(action: Action<'_>) -> Self {
        let mut facts = Self { name: split_words(action.name), ..Self::default() };
        let text = head(action.arguments, TEXT_MAX);
        facts.unread = text.len() < action.arguments.len();
        facts.lower = format!("{} {}", action.name, text).to_lowercase();
        match serde_json::from_str::<Value>(text) {
            Ok(value) => facts.take("", &value, 0),
            Err(_) => facts.take_text("", text),
        }
        facts
    }

    fn take(&mut self, key: &str, value: &Value, depth: usize) {
        if depth > DEPTH_MAX {
            self.unread = true;
            return;
        }
        match value {
            Value::Null => {}
            Value::Bool(flag) => self.flags.push((key.to_lowercase(), *flag)),
            Value::Number(number) => {
                self.numbers.push((key.to_lowercase(), number.as_f64().unwrap_or(f64::MAX)));
            }
            Value::String(text) => self.take_text(key, text),
            Value::Array(items) => {
                self.longest_list = self.longest_list.max(items.len());
                items.iter().for_each(|item| self.take(key, item, depth + 1));
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.words.extend(split_words(key));
                    self.take(key, value, depth + 1);
                }
            }
        }
    }

    fn take_text(&mut self, key: &str, text: &str) {
        let key = key.to_lowercase();
        if let Ok(number) = text.replace([',', '_'], "").trim().parse::<f64>() {
            self.numbers.push((key.clone(), number));
        }
        self.words.extend(split_words(text));
        self.texts.push((key, text.to_owned()));
    }

    /// Whether a word of the list stands in the name.
    #[must_use]
    pub fn name_has(&self, list: &[String]) -> bool {
        list.iter().any(|word| has(&self.name, word))
    }

    /// Whether a word of the list stands anywhere.
    #[must_use]
    pub fn has(&self, list: &[String]) -> bool {
        list.iter().any(|word| has(&self.name, word) || has(&self.words, word))
    }

    /// Whether a text of the list occurs anywhere, within words too.
    #[must_use]
    pub fn contains(&self, list: &[String]) -> bool {
        list.iter().any(|text| self.lower.contains(text.as_str()))
    }

    /// The largest number under a name that contains one of these.
    #[must_use]
    pub fn number(&self, keys: &[&str]) -> Option<f64> {
        self.numbers
            .iter()
            .filter(|(key, _)| keys.iter().any(|wanted| key.contains(wanted)))
            .map(|(_, number)| *number)
            .max_by(f64::total_cmp)
    }
}

/// Words of other scripts have no spaces between them: they are looked for inside.
fn has(words: &BTreeSet<String>, wanted: &str) -> bool {
    if wanted.is_ascii() {
        words.contains(wanted)
    } else {
        words.iter().any(|word| word.contains(wanted))
    }
}

/// Splits at everything that is no letter or digit, and where camelCase turns; a star is a word.
fn split_words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '*') {
        if run.is_empty() {
            continue;
        }
        words.insert(run.to_lowercase());
        let mut word = String::new();
        let mut small_before = false;
        for letter in run.chars() {
            if small_before && letter.is_uppercase() {
                words.insert(std::mem::take(&mut word));
            }
            small_before = letter.is_lowercase();
            word.extend(letter.to_lowercase());
        }
        words.insert(word);
    }
    words
}

fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arguments_fall_into_words_and_numbers() {
        let facts = Facts::of(Action {
            name: "deleteAllUsers",
            arguments: r#"{"filter":{"max_count":"1,200"},"ids":["*"],"dry_run":false}"#,
        });
        for word in ["delete", "all", "users", "deleteallusers"] {
            assert!(facts.name.contains(word), "{word}: {:?}", facts.name);
        }
        assert!(facts.words.contains("*"));
        assert_eq!(facts.number(&["count"]), Some(1200.0));
        assert_eq!(facts.flags, [("dry_run".to_owned(), false)]);
    }

    #[test]
    fn what_is_no_json_is_still_read() {
        let facts = Facts::of(Action { name: "x", arguments: "rm -rf / # {not json" });
        assert!(facts.words.contains("rm"));
        assert_eq!(facts.texts.len(), 1);
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_marked() {
        let long = "a".repeat(TEXT_MAX + 1);
        assert!(Facts::of(Action { name: "x", arguments: &long }).unread);
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        assert!(Facts::of(Action { name: "x", arguments: &deep }).unread);
    }
}
