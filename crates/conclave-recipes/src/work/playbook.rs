//! A plan without a model: one step for each goal, costs that can be added up, and who must approve.

use serde_json::{Value, json};

/// Three steps for each goal at most: ask, do, look back.
const GOALS_MAX: usize = 16;

/// Steps for the goals that were given, in their own words.
#[must_use]
pub fn extract_playbook(input: &Value) -> Value {
    let goals = input.get("goals").and_then(Value::as_array);
    let goals: Vec<_> =
        goals.into_iter().flatten().filter_map(Value::as_str).take(GOALS_MAX).collect();
    let count = input["segment_definition"]["count"].as_u64().unwrap_or(0);
    let criteria = input["segment_definition"]["criteria"].as_array();
    let criteria: Vec<_> = criteria.into_iter().flatten().filter_map(Value::as_str).collect();
    let each = input["budget_envelope"]["per_message_microusd"].as_u64().unwrap_or(0);
    let messages = count.saturating_mul(u64::try_from(goals.len()).unwrap_or(u64::MAX));
    let cost = messages.saturating_mul(each);
    let envelope = input["budget_envelope"]["microusd"].as_u64();
    json!({
        "extractive": true,
        "steps": goals.iter().enumerate().map(|(at, goal)| step(at, goal)).collect::<Vec<_>>(),
        "message_drafts": goals.iter().map(|goal| draft(goal)).collect::<Vec<_>>(),
        "required_approvals": approvals(input),
        "estimated_cost": {"microusd": cost, "within_budget": envelope.map(|most| cost <= most)},
        "estimated_impact": {
            "people": count, "basis": format!("everybody who fits: {}", criteria.join(", ")),
        },
    })
}

fn step(at: usize, goal: &str) -> Value {
    json!({
        "step": format!("Speak with them about: {goal}"), "channel": "in person",
        "timing": format!("week {}", at + 1), "condition": "they agreed to be contacted",
    })
}

fn draft(goal: &str) -> Value {
    json!({
        "channel": "letter",
        "text": format!("We write to you about this: {goal}. You decide whether you take part. \
            Tell us what you think, or that you do not want to be asked again."),
    })
}

fn approvals(input: &Value) -> Vec<&'static str> {
    let asked = input.get("approval_required").and_then(Value::as_bool).unwrap_or(true);
    let mut approvals = vec!["whoever answers for the messages"];
    if asked {
        approvals.push("whoever answers for the budget");
    }
    approvals
}
