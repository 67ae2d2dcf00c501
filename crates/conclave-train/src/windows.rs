//! Messages of one conversation once more, several together, as the engine reads them.
//!
//! **Invariant:** a window shows a movement only where at least two of its messages do.

use crate::rows::Row;
use conclave_detect::READ_TOGETHER;

/// The messages of one conversation share a topic of this kind and stand in order.
const CONVERSATION: &str = "drift-conversation-";
/// So many messages of a window must show it.
const SHOWN_MIN: usize = 2;

/// Every run of two and more neighbouring messages that the engine would read as one text.
#[must_use]
pub fn windows(rows: &[Row]) -> Vec<Row> {
    let same = |a: &Row, b: &Row| a.topic == b.topic && a.topic.starts_with(CONVERSATION);
    let conversations = rows.chunk_by(same).filter(|messages| messages.len() > 1);
    conversations
        .flat_map(|messages| (1..messages.len()).map(|last| window(messages, last)))
        .collect()
}

fn window(messages: &[Row], last: usize) -> Row {
    let messages = &messages[(last + 1).saturating_sub(READ_TOGETHER)..=last];
    let said: Vec<_> = messages.iter().map(Row::said).collect();
    let showing: Vec<_> = messages.iter().filter(|row| row.is_harmful()).collect();
    let like = showing.first().copied().unwrap_or(&messages[0]);
    like.with_text(said.join(" ")).labelled(showing.len() >= SHOWN_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(topic: &str, text: &str, label: &str) -> Row {
        let kind = if label == "harmful" { "isolation" } else { "no_drift" };
        let json = serde_json::json!({
            "id": text, "source": "corpus_drift_en", "task": "drift", "text": text, "label": label,
            "categories": [kind], "language": "en", "topic": topic,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn neighbouring_messages_of_one_conversation_are_joined() {
        let rows = [
            row("drift-a-1", "alone", "harmful"),
            row("drift-conversation-1", "one", "safe"),
            row("drift-conversation-1", "two", "harmful"),
            row("drift-conversation-1", "three", "harmful"),
            row("drift-conversation-1", "four", "safe"),
            row("drift-conversation-2", "other", "safe"),
        ];
        let made: Vec<_> =
            windows(&rows).iter().map(|row| (row.said(), row.is_harmful())).collect();
        let expected = [("one two", false), ("one two three", true), ("two three four", true)];
        assert_eq!(made, expected.map(|(text, shows)| (text.to_owned(), shows)));
    }
}
