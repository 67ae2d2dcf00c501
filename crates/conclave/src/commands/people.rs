//! `conclave reviews`, `consents`, `protocols` and `webhooks`: asked of a running gateway, with a key.
//!
//! **Invariant:** nothing is decided here; every rule is the gateway's, and the same as for everybody
//! who asks it over HTTP.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::print_rows;
use crate::cli::people::{
    ConsentsCommand, EvidenceArgs, ProtocolsCommand, ReviewsCommand, WebhooksCommand,
};
use crate::output;
use anyhow::Context;
use serde_json::{Value, json};

/// Asks about reviews.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn reviews(command: &ReviewsCommand, as_json: bool) -> anyhow::Result<Answer> {
    let one = |id: &str| format!("v1/reviews/{}", escape(id));
    match command {
        ReviewsCommand::List { status, community, gateway } => {
            let given = [("status", status), ("community", community)];
            let filters = given
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}={}", escape(value.as_deref()?))));
            let query = filters.collect::<Vec<_>>().join("&");
            let found = ask_gateway(gateway, "GET", &format!("v1/reviews?{query}"), None)?;
            show_list(
                &found,
                as_json,
                &["id", "status", "priority", "kind", "community", "due_ms"],
            );
        }
        ReviewsCommand::Show(args) => {
            show(&ask_gateway(&args.gateway, "GET", &one(&args.id), None)?);
        }
        ReviewsCommand::Claim(args) => {
            show(&ask_gateway(
                &args.gateway,
                "POST",
                &format!("{}/claim", one(&args.id)),
                Some(json!({})),
            )?);
        }
        ReviewsCommand::Release { token, review } => {
            let path = format!("{}/release", one(&review.id));
            show(&ask_gateway(&review.gateway, "POST", &path, Some(json!({"token": token})))?);
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
            show(&ask_gateway(&args.review.gateway, "POST", &path, Some(body))?);
        }
        ReviewsCommand::Result(args) => {
            let found =
                ask_gateway(&args.gateway, "GET", &format!("{}/result", one(&args.id)), None)?;
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
            let path = format!("v1/consents?subject={}", escape(subject));
            let found = ask_gateway(gateway, "GET", &path, None)?;
            show_list(&found, as_json, &["id", "scopes", "purposes", "expires_ms", "withdrawn"]);
        }
        ConsentsCommand::Give(args) => {
            let body = json!({
                "subject": args.subject, "scopes": args.scopes, "purposes": args.purposes,
                "parties": args.parties, "expires_ms": args.expires_ms,
                "evidence": evidence(&args.evidence),
            });
            show(&ask_gateway(&args.gateway, "POST", "v1/consents", Some(body))?);
        }
        ConsentsCommand::Withdraw { id, evidence: shown, gateway } => {
            let body = json!({"evidence": evidence(shown)});
            show(&ask_gateway(
                gateway,
                "DELETE",
                &format!("v1/consents/{}", escape(id)),
                Some(body),
            )?);
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
    let one = |community: &str| format!("v1/protocols/{}", escape(community));
    match command {
        ProtocolsCommand::List(gateway) => {
            let found = ask_gateway(gateway, "GET", "v1/protocols", None)?;
            show_list(&found, as_json, &["community", "version", "restrictions", "contact"]);
        }
        ProtocolsCommand::Show { community, gateway } => {
            show(&ask_gateway(gateway, "GET", &one(community), None)?);
        }
        ProtocolsCommand::Set { community, file, gateway } => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let body: Value = serde_json::from_str(&text)
                .with_context(|| format!("{} is not JSON", file.display()))?;
            show(&ask_gateway(gateway, "PUT", &one(community), Some(body))?);
        }
        ProtocolsCommand::NameElder { community, holder, person, gateway } => {
            let path = format!("{}/elders/{}", one(community), escape(holder));
            show(&ask_gateway(gateway, "PUT", &path, Some(json!({"person": person})))?);
        }
        ProtocolsCommand::RemoveElder { community, holder, gateway } => {
            let path = format!("{}/elders/{}", one(community), escape(holder));
            show(&ask_gateway(gateway, "DELETE", &path, None)?);
        }
    }
    Ok(Answer::Yes)
}

/// Asks about webhooks.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn webhooks(command: &WebhooksCommand, as_json: bool) -> anyhow::Result<Answer> {
    let one = |id: &str| format!("v1/webhooks/{}", escape(id));
    match command {
        WebhooksCommand::List(gateway) => {
            let found = ask_gateway(gateway, "GET", "v1/webhooks", None)?;
            show_list(&found, as_json, &["id", "url", "events"]);
        }
        WebhooksCommand::Add { address, events, gateway } => {
            let body = json!({"url": address, "events": events});
            show(&ask_gateway(gateway, "POST", "v1/webhooks", Some(body))?);
        }
        WebhooksCommand::Remove(args) => {
            show(&ask_gateway(&args.gateway, "DELETE", &one(&args.id), None)?);
        }
        WebhooksCommand::Secret(args) => {
            show(&ask_gateway(
                &args.gateway,
                "POST",
                &format!("{}/secret", one(&args.id)),
                Some(json!({})),
            )?);
        }
        WebhooksCommand::Events { state, webhook } => {
            let path = format!("{}/events?state={}", one(&webhook.id), escape(state));
            let found = ask_gateway(&webhook.gateway, "GET", &path, None)?;
            show_list(&found, as_json, &["id", "type", "state", "attempts", "trouble"]);
        }
        WebhooksCommand::Resend { event, webhook } => {
            let path = format!("{}/events/{}/resend", one(&webhook.id), escape(event));
            show(&ask_gateway(&webhook.gateway, "POST", &path, Some(json!({})))?);
        }
    }
    Ok(Answer::Yes)
}

fn show(value: &Value) {
    output::json(value);
}

/// One line each for people, everything for machines.
fn show_list(found: &Value, as_json: bool, columns: &[&str]) {
    if as_json {
        return output::json(found);
    }
    print_rows(found, columns);
}
