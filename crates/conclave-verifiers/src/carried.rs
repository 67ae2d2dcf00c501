//! The prose that a reply's actions carry: what would be mailed, posted, written or said through a tool.
//!
//! **Invariant:** whatever reaches the client in words is read, wherever in the reply it stands.

use conclave_core::Candidate;
use serde_json::Value;
use std::borrow::Cow;

/// From so many words on a text says something.
const WORDS_MIN: usize = 3;
/// From so many letters on, where a script needs no spaces.
const UNSPACED_MIN: usize = 6;

/// What a reply says, and whatever prose its actions carry, as one text.
#[must_use]
pub fn words(candidate: &Candidate) -> Cow<'_, str> {
    let carried = carried(candidate);
    if carried.is_empty() {
        return Cow::Borrowed(&candidate.text);
    }
    let said = Some(candidate.text.clone()).filter(|text| !text.trim().is_empty());
    Cow::Owned(said.into_iter().chain(carried).collect::<Vec<_>>().join("\n\n"))
}

/// Every piece of prose in the arguments of its actions. A name, a number, a path or a word or two is
/// none.
pub(crate) fn carried(candidate: &Candidate) -> Vec<String> {
    let mut carried = Vec::new();
    for call in &candidate.tool_calls {
        match serde_json::from_str(&call.arguments) {
            Ok(arguments) => gather(&arguments, &mut carried),
            // What cannot be parsed reaches the client all the same.
            Err(_) => carried.extend(is_prose(&call.arguments).then(|| call.arguments.clone())),
        }
    }
    carried
}

fn gather(value: &Value, carried: &mut Vec<String>) {
    match value {
        Value::String(text) => carried.extend(is_prose(text).then(|| text.clone())),
        Value::Array(all) => all.iter().for_each(|one| gather(one, carried)),
        Value::Object(all) => all.values().for_each(|one| gather(one, carried)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_prose(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    let unspaced = || text.chars().filter(|one| !one.is_ascii() && one.is_alphabetic()).count();
    text.split_whitespace().filter(is_word).count() >= WORDS_MIN || unspaced() >= UNSPACED_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::ToolCall;

    fn calling(arguments: &str) -> Candidate {
        let (id, name) = ("1".to_owned(), "tool".to_owned());
        let call = ToolCall { id, name, arguments: arguments.to_owned() };
        Candidate { text: "Done.".into(), tool_calls: vec![call], ..Candidate::default() }
    }

    #[test]
    fn prose_in_arguments_is_carried_and_bare_values_are_not() {
        for (arguments, prose) in [
            (r#"{"to":"a@b.c","body":"We know where you live."}"#, "We know where you live."),
            (r#"{"messages":[{"text":"see you there soon"}]}"#, "see you there soon"),
            (r#"{"本文":"お前を殺してやる"}"#, "お前を殺してやる"),
            ("we know where you live", "we know where you live"),
        ] {
            assert_eq!(carried(&calling(arguments)), [prose], "{arguments}");
            assert_eq!(words(&calling(arguments)), format!("Done.\n\n{prose}"));
        }
        let bare = [r#"{"city":"New York","days":3}"#, r#"{"cmd":"kill -9 71"}"#, "", "{}", "東京"];
        for arguments in bare {
            assert_eq!(words(&calling(arguments)), "Done.", "{arguments}");
        }
    }
}
