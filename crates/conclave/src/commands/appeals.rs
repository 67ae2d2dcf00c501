//! `conclave appeals`: persons disagree with decisions, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, print_fields, print_rows, printable};
use crate::cli::appeals::{AppealDecideArgs, AppealFileArgs, AppealsCommand};
use crate::output;
use anyhow::anyhow;
use serde_json::{Value, json};

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or refuses.
pub fn run(command: &AppealsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        AppealsCommand::List { status, user, gateway } => {
            let filters = [("status", status), ("user", user)];
            let given = filters
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}={}", escape(value.as_deref()?))));
            let path = format!("v1/appeals?{}", given.collect::<Vec<_>>().join("&"));
            let columns = ["id", "status", "about", "concern", "audit_id", "due_ms"];
            let list = ask_gateway(gateway, "GET", &path, None)?;
            print_answer(&list, as_json, |list| print_rows(list, &columns));
        }
        AppealsCommand::Show { id, gateway } => {
            let appeal = ask_gateway(gateway, "GET", &path_of(id), None)?;
            print_answer(&appeal, as_json, print_fields);
        }
        AppealsCommand::File(args) => {
            let appeal = ask_gateway(&args.gateway, "POST", "v1/appeals", Some(filing(args)))?;
            print_answer(&appeal, as_json, print_filed);
        }
        AppealsCommand::Decide(args) => {
            let review = decide(args)?;
            print_answer(&review, as_json, |review| print_decided(&args.id, review));
        }
        AppealsCommand::Result { id, gateway } => {
            let result = ask_gateway(gateway, "GET", &format!("{}/result", path_of(id)), None)?;
            print_answer(&result, as_json, super::reviews::print_result);
            let is_upheld = result["status"] == "approved";
            return Ok(if is_upheld { Answer::Yes } else { Answer::No });
        }
        AppealsCommand::Estimates { gateway } => {
            let estimates = ask_gateway(gateway, "GET", "v1/appeals/estimates", None)?;
            print_answer(&estimates, as_json, print_estimates);
        }
    }
    Ok(Answer::Yes)
}

fn path_of(id: &str) -> String {
    format!("v1/appeals/{}", escape(id))
}

fn filing(args: &AppealFileArgs) -> Value {
    let mut body = json!({
        "audit_id": args.audit_id, "concern": args.concern.as_str(), "words": args.words,
    });
    if let Some(user) = &args.user {
        body["user"] = user.as_str().into();
    }
    body
}

/// Claims the review that rules on the appeal, and decides it; a claim that is left over ends by itself.
fn decide(args: &AppealDecideArgs) -> anyhow::Result<Value> {
    let appeal = ask_gateway(&args.gateway, "GET", &path_of(&args.id), None)?;
    let review = appeal["review_id"].as_str();
    let review = review.ok_or_else(|| anyhow!("the gateway names no review of this appeal"))?;
    let path = format!("v1/reviews/{}", escape(review));
    let claimed = ask_gateway(&args.gateway, "POST", &format!("{path}/claim"), Some(json!({})))?;
    let mut body = json!({
        "token": claimed["claim"]["token"], "ruling": args.ruling.as_str(), "notes": args.notes,
    });
    for (name, value) in [("words", &args.words), ("text", &args.text)] {
        if let Some(value) = value {
            body[name] = value.as_str().into();
        }
    }
    ask_gateway(&args.gateway, "POST", &format!("{path}/decide"), Some(body))
}

fn print_filed(appeal: &Value) {
    let text = |name: &str| printable(appeal[name].as_str().unwrap_or_default());
    output::line(&format!("{} is {}", text("id"), text("status")));
}

/// Where several people must agree, one yes decides nothing yet.
fn print_decided(id: &str, review: &Value) {
    let status = printable(review["status"].as_str().unwrap_or("unknown"));
    let told = match status.as_str() {
        "approved" => "upheld",
        "rejected" => "denied",
        other => other,
    };
    output::line(&format!("{} is {told}", printable(id)));
}

fn print_estimates(estimates: &Value) {
    for (name, told) in [("false_alarms", "false alarms"), ("misses", "misses")] {
        let rate = &estimates[name];
        let share = &rate["share"];
        if share.is_null() {
            output::line(&format!("{told}: nobody has ruled on an appeal about them"));
            continue;
        }
        let percent = |field: &str| share[field].as_f64().unwrap_or_default() * 100.0;
        output::line(&format!(
            "{told}: {} of {} appeals that were ruled on ({:.0} %, 95 % interval {:.0} to {:.0} %)",
            rate["wrong"],
            rate["ruled"],
            percent("value"),
            percent("low"),
            percent("high")
        ));
    }
}
