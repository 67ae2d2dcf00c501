//! `conclave reviews`, `consents`, `protocols` and `webhooks`: asked of a running gateway, with a key.
//!
//! **Invariant:** nothing is decided here; every rule is the gateway's, and the same as for everybody
//! who asks it over HTTP.

use super::Answer;
use crate::cli::gateway::GatewayArgs;
use crate::cli::people::{
    ConsentsCommand, EvidenceArgs, ProtocolsCommand, ReviewsCommand, WebhooksCommand,
};
use crate::output;
use anyhow::{Context, anyhow, bail};
use conclave_models::WebClient;
use serde_json::{Value, json};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Asks about reviews.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn reviews(command: &ReviewsCommand, as_json: bool) -> anyhow::Result<Answer> {
    let one = |id: &str| format!("v1/reviews/{}", escaped(id));
    match command {
        ReviewsCommand::List { status, community, gateway } => {
            let given = [("status", status), ("community", community)];
            let filters = given
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?))));
            let query = filters.collect::<Vec<_>>().join("&");
            let found = ask(gateway, "GET", &format!("v1/reviews?{query}"), None)?;
            show_list(
                &found,
                as_json,
                &["id", "status", "priority", "kind", "community", "due_ms"],
            );
        }
        ReviewsCommand::Show(args) => show(&ask(&args.gateway, "GET", &one(&args.id), None)?),
        ReviewsCommand::Claim(args) => {
            show(&ask(
                &args.gateway,
                "POST",
                &format!("{}/claim", one(&args.id)),
                Some(json!({})),
            )?);
        }
        ReviewsCommand::Release { token, review } => {
            let path = format!("{}/release", one(&review.id));
            show(&ask(&review.gateway, "POST", &path, Some(json!({"token": token})))?);
        }
        ReviewsCommand::Decide(args) => {
            let mut body = json!({
                "token": args.token, "ruling": args.ruling.as_str(), "notes": args.notes,
                "conditions": args.conditions,
                "pii_missed": args.pii_missed,
            });
            if let Some(text) = &args.text {
                body["text"] = text.as_str().into();
            }
            let path = format!("{}/decide", one(&args.review.id));
            show(&ask(&args.review.gateway, "POST", &path, Some(body))?);
        }
        ReviewsCommand::Result(args) => {
            let found = ask(&args.gateway, "GET", &format!("{}/result", one(&args.id)), None)?;
            show(&found);
            let approved = found["status"] == "approved";
            return Ok(if approved { Answer::Yes } else { Answer::No });
        }
    }
    Ok(Answer::Yes)
}

/// Asks about consents.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn consents(command: &ConsentsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        ConsentsCommand::List { subject, gateway } => {
            let path = format!("v1/consents?subject={}", escaped(subject));
            let found = ask(gateway, "GET", &path, None)?;
            show_list(&found, as_json, &["id", "scopes", "purposes", "expires_ms", "withdrawn"]);
        }
        ConsentsCommand::Give(args) => {
            let body = json!({
                "subject": args.subject, "scopes": args.scopes, "purposes": args.purposes,
                "parties": args.parties, "expires_ms": args.expires_ms,
                "evidence": evidence(&args.evidence),
            });
            show(&ask(&args.gateway, "POST", "v1/consents", Some(body))?);
        }
        ConsentsCommand::Withdraw { id, evidence: shown, gateway } => {
            let body = json!({"evidence": evidence(shown)});
            show(&ask(gateway, "DELETE", &format!("v1/consents/{}", escaped(id)), Some(body))?);
        }
    }
    Ok(Answer::Yes)
}

fn evidence(given: &EvidenceArgs) -> Value {
    json!({"kind": given.evidence_kind, "reference": given.evidence})
}

/// Asks about protocols.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn protocols(command: &ProtocolsCommand, as_json: bool) -> anyhow::Result<Answer> {
    let one = |community: &str| format!("v1/protocols/{}", escaped(community));
    match command {
        ProtocolsCommand::List(gateway) => {
            let found = ask(gateway, "GET", "v1/protocols", None)?;
            show_list(&found, as_json, &["community", "version", "restrictions", "contact"]);
        }
        ProtocolsCommand::Show { community, gateway } => {
            show(&ask(gateway, "GET", &one(community), None)?);
        }
        ProtocolsCommand::Set { community, file, gateway } => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let body: Value = serde_json::from_str(&text)
                .with_context(|| format!("{} is not JSON", file.display()))?;
            show(&ask(gateway, "PUT", &one(community), Some(body))?);
        }
        ProtocolsCommand::NameElder { community, holder, person, gateway } => {
            let path = format!("{}/elders/{}", one(community), escaped(holder));
            show(&ask(gateway, "PUT", &path, Some(json!({"person": person})))?);
        }
        ProtocolsCommand::RemoveElder { community, holder, gateway } => {
            let path = format!("{}/elders/{}", one(community), escaped(holder));
            show(&ask(gateway, "DELETE", &path, None)?);
        }
    }
    Ok(Answer::Yes)
}

/// Asks about webhooks.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn webhooks(command: &WebhooksCommand, as_json: bool) -> anyhow::Result<Answer> {
    let one = |id: &str| format!("v1/webhooks/{}", escaped(id));
    match command {
        WebhooksCommand::List(gateway) => {
            let found = ask(gateway, "GET", "v1/webhooks", None)?;
            show_list(&found, as_json, &["id", "url", "events"]);
        }
        WebhooksCommand::Add { address, events, gateway } => {
            let body = json!({"url": address, "events": events});
            show(&ask(gateway, "POST", "v1/webhooks", Some(body))?);
        }
        WebhooksCommand::Remove(args) => show(&ask(&args.gateway, "DELETE", &one(&args.id), None)?),
        WebhooksCommand::Secret(args) => {
            show(&ask(
                &args.gateway,
                "POST",
                &format!("{}/secret", one(&args.id)),
                Some(json!({})),
            )?);
        }
        WebhooksCommand::Events { state, webhook } => {
            let path = format!("{}/events?state={}", one(&webhook.id), escaped(state));
            let found = ask(&webhook.gateway, "GET", &path, None)?;
            show_list(&found, as_json, &["id", "type", "state", "attempts", "trouble"]);
        }
        WebhooksCommand::Resend { event, webhook } => {
            let path = format!("{}/events/{}/resend", one(&webhook.id), escaped(event));
            show(&ask(&webhook.gateway, "POST", &path, Some(json!({})))?);
        }
    }
    Ok(Answer::Yes)
}

pub(super) fn ask(
    gateway: &GatewayArgs,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> anyhow::Result<Value> {
    let key = gateway.key.as_deref();
    let key = key.ok_or_else(|| anyhow!("give an API key with --key or in CONCLAVE_KEY"))?;
    let client = WebClient::new(&gateway.url, true, PATIENCE)?;
    let body = body.map(|body| body.to_string().into_bytes());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = client.ask(method, path, key, body, ANSWER_BYTES_MAX);
    let (status, answer) = runtime.block_on(asked).context("the gateway does not answer")?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if (200..300).contains(&status) {
        return Ok(answer);
    }
    let said = answer["error"]["message"].as_str().unwrap_or("it gave no reason");
    bail!("the gateway answered {status}: {said}")
}

fn show(value: &Value) {
    output::json(value);
}

/// One line each for people, everything for machines.
fn show_list(found: &Value, as_json: bool, columns: &[&str]) {
    if as_json {
        return output::json(found);
    }
    let rows = found["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        output::line("There is nothing.");
    }
    for row in rows {
        let cells = columns.iter().map(|column| match &row[*column] {
            Value::Null => "-".to_owned(),
            Value::String(text) => printable(text),
            other => printable(&other.to_string()),
        });
        output::line(&cells.collect::<Vec<_>>().join("  "));
    }
}

/// What others wrote must not steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Percent-encoded, so that a name cannot become another path.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_part_of_a_path_and_cannot_steer_a_terminal() {
        assert_eq!(escaped("River/People ?é"), "River%2FPeople%20%3F%C3%A9");
        assert_eq!(printable("a\u{1b}[31mb\n"), "a [31mb ");
    }
}
