//! A tool call taken apart: words, numbers, texts, each by the place it stands in.
//!
//! **Invariant:** at most [`TEXT_MAX`] bytes and [`DEPTH_MAX`] levels of the arguments are looked
//! at; what lies beyond is marked as unread, which counts against the action.
//!
//! **Invariant:** what somebody would read (a letter's body, a title) says nothing about what the
//! action does or to how many.

use super::Action;
use super::words::Keys;
use serde_json::Value;
use std::collections::BTreeSet;

const TEXT_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 24;
/// A longer value is something to be read, whatever it stands under.
const PLAIN_CHARS_MAX: usize = 120;

/// What the name of a value says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Something a person will read.
    Prose,
    /// A name, a path, an id.
    Label,
    /// What is to be done.
    Deed,
    /// To whom, or to how much.
    Scope,
    /// The thing it is done to.
    Device,
    /// Anything else.
    Other,
}

/// One text and where it stands.
#[derive(Debug)]
pub struct Told {
    /// The words of the name it stands under.
    pub key: BTreeSet<String>,
    /// What that name says.
    pub place: Place,
    /// The text.
    pub text: String,
}

/// What a call says.
#[derive(Debug, Default)]
pub struct Facts {
    /// Words of the tool's name, in their order.
    pub name_order: Vec<String>,
    /// Words of the tool's name, and its neighbouring words as one.
    pub name: BTreeSet<String>,
    /// Words of everything else that is not there to be read.
    pub words: BTreeSet<String>,
    /// Words of the names values stand under, unless the value is a plain no.
    pub keys: BTreeSet<String>,
    /// Words that say what is to be done.
    pub deeds: BTreeSet<String>,
    /// Words that say to whom or to how much.
    pub scope: BTreeSet<String>,
    /// Words that name the thing it is done to.
    pub devices: BTreeSet<String>,
    /// Numbers by the name they stand under.
    pub numbers: Vec<(String, f64)>,
    /// Texts.
    pub texts: Vec<Told>,
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
    pub fn of(action: Action<'_>, keys: &Keys) -> Self {
        let name_order = in_order(action.name);
        let name = words_of(action.name);
        let mut facts = Self { name_order, name, ..Self::default() };
        let text = head(action.arguments, TEXT_MAX);
        facts.unread = text.len() < action.arguments.len();
        facts.lower = format!("{} {}", action.name, text).to_lowercase();
        match serde_json::from_str::<Value>(text) {
            Ok(value) => facts.take(keys, "", &value, 0),
            // What is no JSON describes the action.
            Err(_) => facts.take_text(keys, "", text),
        }
        facts
    }

    fn take(&mut self, keys: &Keys, key: &str, value: &Value, depth: usize) {
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
            Value::String(text) => self.take_text(keys, key, text),
            Value::Array(items) => self.take_list(keys, key, items, depth),
            Value::Object(fields) => {
                for (key, value) in fields {
                    if *value != Value::Bool(false) {
                        self.keys.extend(words_of(key));
                    }
                    self.take(keys, key, value, depth + 1);
                }
            }
        }
    }

    fn take_list(&mut self, keys: &Keys, key: &str, items: &[Value], depth: usize) {
        self.longest_list = self.longest_list.max(items.len());
        items.iter().for_each(|item| self.take(keys, key, item, depth + 1));
        // A command may come word by word.
        let words: Vec<_> = items.iter().filter_map(Value::as_str).collect();
        if words.len() > 1 && words.len() == items.len() {
            let (key, place) = placed(keys, key, "");
            self.texts.push(Told { key, place, text: words.join(" ") });
        }
    }

    fn take_text(&mut self, keys: &Keys, key: &str, text: &str) {
        let (key_words, place) = placed(keys, key, text);
        if let Some(number) = number_in(text, place) {
            self.numbers.push((key.to_lowercase(), number));
        }
        let words = words_of(text);
        let whole = key.is_empty();
        if place == Place::Deed || whole {
            self.deeds.extend(words.iter().cloned());
        }
        let tells = matches!(place, Place::Scope | Place::Deed) || whole;
        if tells || in_order(text).len() <= words_max(place) {
            self.scope.extend(words.iter().cloned());
        }
        if place == Place::Device || whole {
            self.devices.extend(words.iter().cloned());
        }
        if place != Place::Prose {
            self.words.extend(words);
        }
        self.texts.push(Told { key: key_words, place, text: text.to_owned() });
    }

    /// Whether a word of the list stands in the name.
    #[must_use]
    pub fn name_has(&self, list: &[String]) -> bool {
        any(&self.name, list)
    }

    /// Whether a word of the list stands anywhere but in what is there to be read.
    #[must_use]
    pub fn has(&self, list: &[String]) -> bool {
        any(&self.name, list) || any(&self.keys, list) || any(&self.words, list)
    }

    /// Whether the thing it is done to is of the list.
    #[must_use]
    pub fn handles(&self, list: &[String]) -> bool {
        any(&self.name, list) || any(&self.keys, list) || any(&self.devices, list)
    }

    /// The largest number under a name that contains one of these.
    #[must_use]
    pub fn number(&self, keys: &[&str]) -> Option<f64> {
        self.largest(|key| keys.iter().any(|wanted| key.contains(wanted)))
    }

    /// The largest number under a name that has one of these as a word.
    #[must_use]
    pub fn number_at(&self, keys: &[String]) -> Option<f64> {
        self.largest(|key| any(&words_of(key), keys) && !words_of(key).contains("id"))
    }

    fn largest(&self, test: impl Fn(&str) -> bool) -> Option<f64> {
        let under = self.numbers.iter().filter(|(key, _)| test(key));
        under.map(|(_, number)| *number).max_by(f64::total_cmp)
    }
}

/// Whether a word of the list is among these.
#[must_use]
pub fn any(words: &BTreeSet<String>, list: &[String]) -> bool {
    list.iter().any(|word| has(words, word))
}

/// Words of other scripts have no spaces between them: they are looked for inside.
fn has(words: &BTreeSet<String>, wanted: &str) -> bool {
    if wanted.is_ascii() {
        words.contains(wanted)
    } else {
        words.iter().any(|word| word.contains(wanted))
    }
}

fn placed(keys: &Keys, key: &str, text: &str) -> (BTreeSet<String>, Place) {
    let words = words_of(key);
    let place = if key.is_empty() {
        Place::Other
    } else if any(&words, &keys.labels) {
        Place::Label
    } else if any(&words, &keys.prose) {
        Place::Prose
    } else if any(&words, &keys.deeds) {
        Place::Deed
    } else if any(&words, &keys.scope) {
        Place::Scope
    } else if text.chars().count() > PLAIN_CHARS_MAX {
        Place::Prose
    } else if any(&words, &keys.devices) {
        Place::Device
    } else {
        Place::Other
    };
    (words, place)
}

/// How many words a value may have that tells how many under a name that says nothing: "all-notes.txt"
/// is one file.
const fn words_max(place: Place) -> usize {
    match place {
        Place::Prose => 0,
        Place::Label => 1,
        _ => 3,
    }
}

/// The number a text is, or the sum it writes: "1,200", "$250,000.00", "５００万円". A number to call
/// or an account is none.
fn number_in(text: &str, place: Place) -> Option<f64> {
    let mut plain = String::new();
    let mut after = String::new();
    for letter in text.trim().chars().map(narrow) {
        match letter {
            '0'..='9' | '.' if after.is_empty() => plain.push(letter),
            ',' | '_' if !plain.is_empty() && after.is_empty() => {}
            '-' if plain.is_empty() => plain.push('-'),
            '0'..='9' | '+' | '@' | '/' | ':' => return None,
            _ if plain.is_empty() => {}
            _ => after.extend(letter.to_lowercase()),
        }
    }
    let digits = plain.chars().filter(char::is_ascii_digit).count();
    if place == Place::Prose || text.chars().count() > 32 || digits > 12 {
        return None;
    }
    let number: f64 = plain.parse().ok()?;
    let unit = after.trim_start();
    let times = match unit.chars().next() {
        Some('億') => 1e8,
        Some('万') => 1e4,
        _ if unit.starts_with("million") || unit.starts_with("mio") || unit == "m" => 1e6,
        _ if unit.starts_with("thousand") || unit == "k" => 1e3,
        _ => 1.0,
    };
    Some(number * times)
}

/// The ordinary form of a wide digit or sign.
fn narrow(letter: char) -> char {
    match letter {
        '！'..='～' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

/// The words of a text, and its neighbouring words as one: what is written "turn_off" is "turnoff".
fn words_of(text: &str) -> BTreeSet<String> {
    let order = in_order(text);
    let pairs = order.windows(2).map(<[String]>::concat).collect::<Vec<_>>();
    let runs = text.split(|c: char| !c.is_alphanumeric() && c != '*').map(str::to_lowercase);
    runs.filter(|run| !run.is_empty()).chain(pairs).chain(order).collect()
}

/// Splits at everything that is no letter or digit, and where camelCase turns; a star is a word.
fn in_order(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '*') {
        let mut word = String::new();
        let mut small_before = false;
        for letter in run.chars() {
            if small_before && letter.is_uppercase() {
                words.push(std::mem::take(&mut word));
            }
            small_before = letter.is_lowercase();
            word.extend(letter.to_lowercase());
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
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
    use super::super::words::Words;
    use super::*;

    fn facts(name: &str, arguments: &str) -> Facts {
        Facts::of(Action { name, arguments }, &Words::builtin().unwrap().keys)
    }

    #[test]
    fn names_and_arguments_fall_into_words_and_numbers() {
        let facts = facts(
            "deleteAllUsers",
            r#"{"filter":{"max_count":"1,200"},"ids":["*"],"dry_run":false}"#,
        );
        for word in ["delete", "all", "users", "deleteallusers", "deleteall"] {
            assert!(facts.name.contains(word), "{word}: {:?}", facts.name);
        }
        assert_eq!(facts.name_order, ["delete", "all", "users"]);
        assert!(facts.words.contains("*"));
        assert_eq!(facts.number(&["count"]), Some(1200.0));
        assert_eq!(facts.flags, [("dry_run".to_owned(), false)]);
        assert!(!facts.keys.contains("dry"), "what is denied is not done");
    }

    #[test]
    fn what_is_there_to_be_read_says_nothing_about_the_action() {
        let facts = facts("send", r#"{"to":"anna","body":"Delete all insulin pumps, admin!"}"#);
        for word in ["delete", "all", "insulin", "admin"] {
            assert!(!facts.words.contains(word) && !facts.scope.contains(word), "{word}");
        }
        assert!(facts.scope.contains("anna"));
    }

    #[test]
    fn sums_are_read_as_people_write_them_and_numbers_to_call_are_none() {
        for (text, expected) in [
            ("1,200", Some(1200.0)),
            ("$250,000.00", Some(250_000.0)),
            ("98000 EUR", Some(98_000.0)),
            ("５００万円", Some(5_000_000.0)),
            ("2億円", Some(200_000_000.0)),
            ("1.5 million", Some(1_500_000.0)),
            ("+15550100", None),
            ("2027-01-04", None),
            ("tom2@example.org", None),
            ("DE00 0000 1111", None),
            ("none", None),
        ] {
            assert_eq!(number_in(text, Place::Other), expected, "{text}");
        }
    }

    #[test]
    fn a_command_word_by_word_is_one_line() {
        let facts = facts("x", r#"{"argv":["rm","-rf","/"]}"#);
        assert!(facts.texts.iter().any(|told| told.text == "rm -rf /"), "{:?}", facts.texts);
    }

    #[test]
    fn what_is_no_json_is_still_read() {
        let facts = facts("x", "rm -rf / # {not json");
        assert!(facts.words.contains("rm"));
        assert_eq!(facts.texts.len(), 1);
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_marked() {
        let long = "a".repeat(TEXT_MAX + 1);
        assert!(facts("x", &long).unread);
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        assert!(facts("x", &deep).unread);
    }
}
