//! `conclave consents`: what people have agreed to, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, print_rows, printable};
use crate::cli::people::{ConsentsCommand, EvidenceArgs};
use crate::output;
use serde_json::{Value, json};

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or refuses.
pub fn run(command: &ConsentsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        ConsentsCommand::List { subject, gateway } => {
            let path = format!("v1/consents?subject={}", escape(subject));
            let columns = ["id", "scopes", "purposes", "expires_ms", "withdrawn/at_ms"];
            let list = ask_gateway(gateway, "GET", &path, None)?;
            print_answer(&list, as_json, |list| print_rows(list, &columns));
        }
        ConsentsCommand::Give(args) => {
            let body = json!({
                "subject": args.subject, "scopes": args.scopes, "purposes": args.purposes,
                "parties": args.parties, "expires_ms": args.expires_ms,
                "evidence": evidence(&args.evidence),
            });
            let consent = ask_gateway(&args.gateway, "POST", "v1/consents", Some(body))?;
            print_answer(&consent, as_json, |consent| {
                let id = printable(consent["id"].as_str().unwrap_or_default());
                output::line(&format!("{id} keeps what {} has agreed to", args.subject));
            });
        }
        ConsentsCommand::Withdraw { id, evidence: shown, gateway } => {
            let path = format!("v1/consents/{}", escape(id));
            let body = json!({"evidence": evidence(shown)});
            let consent = ask_gateway(gateway, "DELETE", &path, Some(body))?;
            print_answer(&consent, as_json, |_| output::line(&format!("{id} is withdrawn")));
        }
    }
    Ok(Answer::Yes)
}

fn evidence(args: &EvidenceArgs) -> Value {
    json!({"kind": args.evidence_kind, "reference": args.evidence})
}
