//! A draft without a model: what the person wrote, taken seriously, and nothing promised.

use super::words::feeling;
use serde_json::{Value, json};

/// The longest part of a message that a draft repeats.
const QUOTE_CHARS_MAX: usize = 160;

/// A draft for a person to finish, made of the last message that is not the organisation's own.
#[must_use]
pub fn extract_reply(input: &Value) -> Value {
    let thread = input.get("ticket_thread").and_then(Value::as_array);
    let messages: Vec<_> = thread.into_iter().flatten().collect();
    let last = messages.iter().rev().find(|message| !is_ours(message)).or(messages.last());
    let text = last.and_then(|message| message["text"].as_str()).unwrap_or_default();
    let sentence =
        text.split_inclusive(['.', '!', '?']).map(str::trim).find(|part| !part.is_empty());
    let quote: String = sentence.unwrap_or(text).chars().take(QUOTE_CHARS_MAX).collect();
    let felt = feeling(text).map(|(name, _)| name);
    let named = match felt {
        Some("anger") => "It sounds as if you are angry about this, and that is understandable.",
        Some("fear") => "It sounds worrying, and that is understandable.",
        Some("sadness") => "It sounds painful, and that is understandable.",
        Some("exhaustion") => "It sounds exhausting, and that is understandable.",
        _ => "It sounds frustrating, and that is understandable.",
    };
    let asking = "We will answer you in person. What would help you most now?";
    let draft = format!("You wrote: \"{quote}\" {named} I am sorry that it came to this. {asking}");
    json!({
        "extractive": true,
        "draft_response": draft,
        "proof_of_empathy": [named, asking],
        "follow_up_actions": [{
            "action": "Read the whole thread and complete this draft.", "owner": "whoever answers",
            "deadline": null, "priority": if felt.is_some() { "high" } else { "medium" },
        }],
        "tone_analysis": {"original": felt.unwrap_or("neutral"), "suggested": "calm"},
    })
}

fn is_ours(message: &Value) -> bool {
    let author = message["author"].as_str().unwrap_or_default().to_lowercase();
    ["agent", "support", "staff", "us"].contains(&author.as_str())
}
