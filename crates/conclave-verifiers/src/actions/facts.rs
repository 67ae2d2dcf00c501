//! A tool call taken apart: words, numbers, texts, each by the place it stands in.
//!
//! **Invariant:** what somebody would read (a letter's body, a title) says nothing about what the
//! action does or to how many.

use super::Action;
use super::gather::Gathering;
use super::numbers;
use super::words::Keys;
use crate::call::split_words;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of a description, and of what the person said, is looked at.
const ABOUT_BYTES_MAX: usize = 8 * 1024;

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
    pub key: Arc<BTreeSet<String>>,
    /// What that name says.
    pub place: Place,
    /// The text.
    pub text: String,
}

/// The numbers that stand under one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
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
    /// Words of what the application says that the tool does.
    pub about: BTreeSet<String>,
    /// Numbers of what the person asked for.
    pub asked_numbers: Vec<f64>,
    /// Numbers by the name they stand under.
    pub numbers: BTreeMap<String, Span>,
    /// Texts.
    pub texts: Vec<Told>,
    /// Yes and no by the name they stand under.
    pub flags: BTreeSet<(String, bool)>,
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
        let mut facts = Self {
            name_order: split_words(action.name),
            name: words_of(action.name),
            about: words_of(head(action.description, ABOUT_BYTES_MAX)),
            asked_numbers: numbers::all_in(head(action.asked, ABOUT_BYTES_MAX)),
            ..Self::default()
        };
        Gathering::new(&mut facts, keys).take_arguments(action);
        facts
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
        under.map(|(_, span)| span.most).max_by(f64::total_cmp)
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

/// The words of a text, and its neighbouring words as one: what is written "turn_off" is "turnoff".
pub fn words_of(text: &str) -> BTreeSet<String> {
    let order = split_words(text);
    let pairs = order.windows(2).map(<[String]>::concat).collect::<Vec<_>>();
    let runs = text.split(|c: char| !c.is_alphanumeric() && c != '*').map(str::to_lowercase);
    runs.filter(|run| !run.is_empty()).chain(pairs).chain(order).collect()
}

/// The beginning of a text, at most so many bytes.
pub fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::super::gather::TEXT_BYTES_MAX;
    use super::super::words::Words;
    use super::*;

    fn facts(name: &str, arguments: &str) -> Facts {
        let action = Action { name, arguments, ..Action::default() };
        Facts::of(action, &Words::builtin().unwrap().keys)
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
        assert!(facts.flags.contains(&("dry_run".to_owned(), false)));
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
    fn depth_and_length_are_read_and_what_lies_beyond_is_marked() {
        let nested = |depth: usize| format!("{}\"pump\"{}", "[".repeat(depth), "]".repeat(depth));
        let deep = facts("x", &nested(60));
        assert!(deep.words.contains("pump") && !deep.unread);
        assert!(facts("x", &nested(200)).unread);
        let long = format!(r#"{{"body":"{}","device":"pump"}}"#, "a b c ".repeat(350_000));
        let read = facts("x", &long);
        assert!(read.devices.contains("pump") && !read.unread);
        assert!(facts("x", &"a".repeat(TEXT_BYTES_MAX + 1)).unread);
        let many = serde_json::to_string(&(0..20_000).map(|n| format!("w{n}")).collect::<Vec<_>>());
        assert!(facts("x", &many.unwrap()).unread, "more words than are kept");
    }

    #[test]
    fn encoded_values_and_keys_are_read() {
        for arguments in [
            r#"{"cmd":"dHVybiBvZmYgcHVtcA=="}"#,
            r#"{"q":"{\"power\":\"off\",\"device\":\"pump\"}"}"#,
            r#"{"q":"turn%20off%20pump"}"#,
            r#"{"dHVybiBvZmYgcHVtcA==":true}"#,
        ] {
            let facts = facts("x", arguments);
            assert!(facts.has(&["pump".into()]) && facts.has(&["off".into()]), "{arguments}");
        }
    }
}
