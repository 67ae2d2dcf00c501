//! How a language model answers that sits as a judge, follows its instructions, and finds what a test
//! wants it to find.

use crate::behaviour::Behaviour;
use serde_json::{Value, json};

/// The vote in the form a judge is asked for, with the check word made from the instructions in the
/// request.
#[must_use]
pub fn judge_vote(body: &Value, vote: &str) -> Behaviour {
    let system = body["messages"][0]["content"].as_str().unwrap_or_default();
    let after = |mark: &str| {
        let rest = system.split(mark).nth(1).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    };
    let check = format!("{}-{}", after("Second check part: "), after("First check part: "));
    let answer = json!({"check": check, "vote": vote, "confidence": 95, "reasons": []});
    Behaviour::Reply(answer.to_string())
}
