//! `conclave webhooks`: where events are sent to, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, print_rows, printable};
use crate::cli::people::{WebhookArgs, WebhooksCommand};
use crate::output;
use serde_json::{Value, json};

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or refuses.
pub fn run(command: &WebhooksCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        WebhooksCommand::List(gateway) => {
            let list = ask_gateway(gateway, "GET", "v1/webhooks", None)?;
            print_answer(&list, as_json, |list| print_rows(list, &["id", "url", "events"]));
        }
        WebhooksCommand::Add { address, events, gateway } => {
            let body = json!({"url": address, "events": events});
            let webhook = ask_gateway(gateway, "POST", "v1/webhooks", Some(body))?;
            print_answer(&webhook, as_json, print_secret);
        }
        WebhooksCommand::Remove(args) => {
            let removed = ask_gateway(&args.gateway, "DELETE", &path_of(args), None)?;
            print_answer(&removed, as_json, |_| output::line(&format!("{} is ended", args.id)));
        }
        WebhooksCommand::Secret(args) => {
            let path = format!("{}/secret", path_of(args));
            let webhook = ask_gateway(&args.gateway, "POST", &path, Some(json!({})))?;
            print_answer(&webhook, as_json, print_secret);
        }
        WebhooksCommand::Events { state, webhook } => {
            let path = format!("{}/events?state={}", path_of(webhook), escape(state));
            let columns = ["id", "type", "state", "attempts", "trouble"];
            let list = ask_gateway(&webhook.gateway, "GET", &path, None)?;
            print_answer(&list, as_json, |list| print_rows(list, &columns));
        }
        WebhooksCommand::Resend { event, webhook } => {
            let path = format!("{}/events/{}/resend", path_of(webhook), escape(event));
            let queued = ask_gateway(&webhook.gateway, "POST", &path, Some(json!({})))?;
            print_answer(&queued, as_json, |_| {
                output::line(&format!("{event} is sent once more"));
            });
        }
    }
    Ok(Answer::Yes)
}

fn path_of(webhook: &WebhookArgs) -> String {
    format!("v1/webhooks/{}", escape(&webhook.id))
}

/// The secret alone on stdout, so that it can be piped to where it is kept.
fn print_secret(webhook: &Value) {
    let id = printable(webhook["id"].as_str().unwrap_or_default());
    output::line(&printable(webhook["secret"].as_str().unwrap_or_default()));
    output::note(&format!("This is the only time the secret of {id} is shown."));
}
