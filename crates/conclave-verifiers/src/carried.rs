//! What reaches the client in words: what a reply says, and the prose that its actions carry.
//!
//! **Invariant:** whatever reaches the client in words is read, wherever in the reply it stands.

use crate::call::CallWords;
use conclave_core::Candidate;
use std::borrow::Cow;

/// What a reply says, and whatever prose its actions carry, as one text.
#[must_use]
pub fn words(candidate: &Candidate) -> Cow<'_, str> {
    let carried = CallWords::read(&candidate.tool_calls).prose;
    if carried.is_empty() {
        return Cow::Borrowed(&candidate.text);
    }
    let said = Some(candidate.text.clone()).filter(|text| !text.trim().is_empty());
    Cow::Owned(said.into_iter().chain(carried).collect::<Vec<_>>().join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::ToolCall;

    #[test]
    fn what_is_said_and_what_is_carried_are_one_text() {
        let calling = |arguments: &str| {
            let (id, name) = ("1".to_owned(), "tool".to_owned());
            let call = ToolCall { id, name, arguments: arguments.to_owned() };
            Candidate { text: "Done.".into(), tool_calls: vec![call], ..Candidate::default() }
        };
        let carrying = calling(r#"{"body":"We know where you live."}"#);
        assert_eq!(words(&carrying), "Done.\n\nWe know where you live.");
        assert_eq!(words(&calling(r#"{"city":"New York"}"#)), "Done.");
    }
}
