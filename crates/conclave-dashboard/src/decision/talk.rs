//! What was said: the conversation, candidates, tool calls.

use crate::figure::title;
use crate::text::{Ink, Text};
use serde_json::Value as Json;

/// Messages that are shown at all, the last ones.
const LINES_MAX: usize = 100;
/// Messages that are shown unfolded.
const LINES_OPEN: usize = 6;

/// One message.
pub(crate) struct Line {
    /// Whose, in a word.
    pub(crate) who: String,
    /// Whose, for the stylesheet.
    pub(crate) class: &'static str,
    pub(crate) parts: Vec<Part>,
}

/// A part of a message.
pub(crate) struct Part {
    /// Passed on without being judged, such as an image.
    pub(crate) unjudged: bool,
    pub(crate) text: Text,
}

/// The conversation.
#[derive(Default)]
pub(crate) struct Talk {
    /// Left out altogether.
    pub(crate) dropped: usize,
    /// Folded away.
    pub(crate) earlier: Vec<Line>,
    pub(crate) latest: Vec<Line>,
}

/// What a model proposed to say or do.
pub(crate) struct Speech {
    pub(crate) text: Text,
    pub(crate) calls: Vec<Call>,
}

/// An action a model asked for.
pub(crate) struct Call {
    pub(crate) name: Text,
    pub(crate) arguments: Text,
}

impl Talk {
    /// Reads the stored messages.
    pub(super) fn of(messages: &Json, ink: &mut Ink) -> Self {
        let all = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let dropped = all.len().saturating_sub(LINES_MAX);
        let shown = all.get(dropped..).unwrap_or_default();
        let (earlier, latest) = shown.split_at(shown.len().saturating_sub(LINES_OPEN));
        // The latest are written first: they are what the decision was about, should the ink run
        // out.
        let latest = latest.iter().map(|message| line(message, ink)).collect();
        let earlier = earlier.iter().map(|message| line(message, ink)).collect();
        Self { dropped, earlier, latest }
    }

    /// Whether nothing was said.
    pub(crate) const fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }
}

fn line(message: &Json, ink: &mut Ink) -> Line {
    let role = message["role"].as_str().unwrap_or_default();
    let (who, class) = match role {
        "user" => ("Person".into(), "person"),
        "assistant" => ("Assistant".into(), "assistant"),
        "system" | "developer" => ("Instructions of the application".into(), "tenant"),
        "tool" => ("Tool result".into(), "tool"),
        other => (title(other), "tool"),
    };
    let content = &message["content"];
    let parts = match content.as_array() {
        Some(parts) => parts.iter().map(|part| part_of(part, ink)).collect(),
        None => {
            vec![Part { unjudged: false, text: ink.text(content.as_str().unwrap_or_default()) }]
        }
    };
    Line { who, class, parts }
}

fn part_of(part: &Json, ink: &mut Ink) -> Part {
    match part["text"].as_str() {
        Some(text) => Part { unjudged: false, text: ink.text(text) },
        None => Part { unjudged: true, text: ink.short(part["kind"].as_str().unwrap_or("part")) },
    }
}

impl Speech {
    /// Reads a stored candidate or delivered reply; `None` when it is not there.
    pub(super) fn of(stored: &Json, ink: &mut Ink) -> Option<Self> {
        let text = stored["text"].as_str()?;
        let call = |call: &Json, ink: &mut Ink| Call {
            name: ink.short(call["name"].as_str().unwrap_or_default()),
            arguments: ink.text(call["arguments"].as_str().unwrap_or_default()),
        };
        let calls = stored["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = ink.text(text);
        Some(Self { text, calls: calls.iter().map(|one| call(one, ink)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_talk_shows_its_end() {
        let messages: Vec<_> =
            (0..150).map(|n| json!({"role": "user", "content": format!("line {n}")})).collect();
        let talk = Talk::of(&Json::Array(messages), &mut Ink::new());
        assert_eq!((talk.dropped, talk.earlier.len(), talk.latest.len()), (50, 94, 6));
        assert_eq!(talk.latest[5].parts[0].text.to_string(), "line 149");
        assert_eq!(talk.earlier[0].parts[0].text.to_string(), "line 50");
    }

    #[test]
    fn parts_say_what_was_not_judged() {
        let message = json!([{"role": "user", "content": [
            {"type": "text", "text": "look"}, {"type": "unjudged", "kind": "image_url"}]}]);
        let talk = Talk::of(&message, &mut Ink::new());
        let parts = &talk.latest[0].parts;
        assert!(!parts[0].unjudged && parts[1].unjudged);
        assert_eq!(parts[1].text.to_string(), "image_url");
    }

    #[test]
    fn any_other_form_is_an_empty_talk() {
        for odd in [json!(null), json!("x"), json!({}), json!([])] {
            assert!(Talk::of(&odd, &mut Ink::new()).is_empty(), "{odd}");
        }
        let odd = Talk::of(&json!([1, {"role": 7}, {"content": {"a": 1}}]), &mut Ink::new());
        assert_eq!(odd.latest.len(), 3);
        assert!(Speech::of(&json!(null), &mut Ink::new()).is_none());
    }
}
