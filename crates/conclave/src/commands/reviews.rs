//! `conclave reviews`: what waits for a person, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, print_fields, print_rows, printable};
use crate::cli::people::{DecideArgs, ReviewArgs, ReviewsCommand};
use crate::output;
use serde_json::{Value, json};

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or refuses.
pub fn run(command: &ReviewsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        ReviewsCommand::List { status, community, gateway } => {
            let filters = [("status", status), ("community", community)];
            let given = filters
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}={}", escape(value.as_deref()?))));
            let path = format!("v1/reviews?{}", given.collect::<Vec<_>>().join("&"));
            let columns = ["id", "status", "priority", "kind", "community", "due_ms"];
            let list = ask_gateway(gateway, "GET", &path, None)?;
            print_answer(&list, as_json, |list| print_rows(list, &columns));
        }
        ReviewsCommand::Show(args) => {
            let review = ask_gateway(&args.gateway, "GET", &path_of(args), None)?;
            print_answer(&review, as_json, print_fields);
        }
        ReviewsCommand::Claim(args) => {
            let review = ask_about(args, "claim", json!({}))?;
            print_answer(&review, as_json, print_claimed);
        }
        ReviewsCommand::Release { token, review } => {
            let released = ask_about(review, "release", json!({"token": token}))?;
            print_answer(&released, as_json, |_| {
                output::line(&format!("{} is given back", review.id));
            });
        }
        ReviewsCommand::Decide(args) => {
            let review = ask_about(&args.review, "decide", decision(args))?;
            print_answer(&review, as_json, |review| print_decided(&args.review.id, review));
        }
        ReviewsCommand::Result(args) => {
            let path = format!("{}/result", path_of(args));
            let result = ask_gateway(&args.gateway, "GET", &path, None)?;
            print_answer(&result, as_json, print_result);
            let is_approved = result["status"] == "approved";
            return Ok(if is_approved { Answer::Yes } else { Answer::No });
        }
    }
    Ok(Answer::Yes)
}

fn path_of(review: &ReviewArgs) -> String {
    format!("v1/reviews/{}", escape(&review.id))
}

fn ask_about(review: &ReviewArgs, what: &str, body: Value) -> anyhow::Result<Value> {
    ask_gateway(&review.gateway, "POST", &format!("{}/{what}", path_of(review)), Some(body))
}

fn decision(args: &DecideArgs) -> Value {
    let mut body = json!({
        "token": args.token, "ruling": args.ruling.as_str(), "notes": args.notes,
        "conditions": args.conditions, "pii_missed": args.pii_missed,
    });
    if let Some(text) = &args.text {
        body["text"] = text.as_str().into();
    }
    body
}

fn print_claimed(review: &Value) {
    print_fields(review);
    output::note(&format!("Decide it with --token {}.", review["claim"]["token"]));
}

/// Where several people must agree, one yes decides nothing yet.
fn print_decided(id: &str, review: &Value) {
    let status = printable(review["status"].as_str().unwrap_or("unknown"));
    if ["approved", "rejected"].contains(&status.as_str()) {
        output::line(&format!("{id} is {status}"));
        return;
    }
    let given = &review["approvals"];
    let needed = &review["approvals_needed"];
    output::line(&format!("{id} is {status}, with {given} of {needed} approvals"));
}

pub(super) fn print_result(result: &Value) {
    output::line(&printable(result["status"].as_str().unwrap_or("unknown")));
    for line in result["text"].as_str().unwrap_or_default().lines() {
        output::line(&printable(line));
    }
    for condition in result["conditions"].as_array().into_iter().flatten() {
        output::line(&format!("condition: {}", printable(condition.as_str().unwrap_or_default())));
    }
    if let Some(notes) = result["notes"].as_str().filter(|notes| !notes.is_empty()) {
        output::line(&format!("notes: {}", printable(notes)));
    }
}
