//! `conclave protocols`: what communities have laid down, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, print_fields, print_rows};
use crate::cli::people::ProtocolsCommand;
use crate::output;
use anyhow::Context;
use serde_json::{Value, json};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, or the gateway cannot be reached or refuses.
pub fn run(command: &ProtocolsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        ProtocolsCommand::List(gateway) => {
            let columns = ["community", "version", "restrictions", "contact"];
            let list = ask_gateway(gateway, "GET", "v1/protocols", None)?;
            print_answer(&list, as_json, |list| print_rows(list, &columns));
        }
        ProtocolsCommand::Show { community, gateway } => {
            let protocol = ask_gateway(gateway, "GET", &path_of(community), None)?;
            print_answer(&protocol, as_json, print_fields);
        }
        ProtocolsCommand::Set { community, file, gateway } => {
            let body = read_protocol(file)?;
            let set = ask_gateway(gateway, "PUT", &path_of(community), Some(body))?;
            print_answer(&set, as_json, |set| {
                output::line(&format!(
                    "{community} has version {} of its protocol",
                    set["version"]
                ));
            });
        }
        ProtocolsCommand::NameElder { community, holder, person, gateway } => {
            let body = json!({"person": person});
            let elders = ask_gateway(gateway, "PUT", &seat_of(community, holder), Some(body))?;
            print_answer(&elders, as_json, |elders| match find_proposal(elders, holder) {
                Some(review) => output::line(&proposal_sentence(person, community, review)),
                None => {
                    let count = count_elders(elders);
                    output::line(&format!("{person} speaks for {community}, as one of {count}"));
                }
            });
        }
        ProtocolsCommand::RemoveElder { community, holder, gateway } => {
            let elders = ask_gateway(gateway, "DELETE", &seat_of(community, holder), None)?;
            print_answer(&elders, as_json, |elders| {
                let count = count_elders(elders);
                output::line(&format!("{holder} no longer speaks for {community}; {count} do"));
            });
        }
    }
    Ok(Answer::Yes)
}

fn path_of(community: &str) -> String {
    format!("v1/protocols/{}", escape(community))
}

fn seat_of(community: &str, holder: &str) -> String {
    format!("{}/elders/{}", path_of(community), escape(holder))
}

/// The review in which the elders decide whether somebody becomes one of them.
pub fn find_proposal<'a>(elders: &'a Value, holder: &str) -> Option<&'a str> {
    let mut proposed = elders["proposed"].as_array()?.iter();
    proposed.find(|proposal| proposal["holder"] == holder)?["review_id"].as_str()
}

pub fn proposal_sentence(person: &str, community: &str, review: &str) -> String {
    format!(
        "{person} is proposed: the elders of {community} decide in the review {review}. If nobody decides \
         within 30 days, it takes effect."
    )
}

fn count_elders(elders: &Value) -> usize {
    elders["data"].as_array().map_or(0, Vec::len)
}

fn read_protocol(file: &Path) -> anyhow::Result<Value> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))
}
