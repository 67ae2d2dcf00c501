//! `conclave tenants`: tenants and their policies, through a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, printable};
use crate::cli::tenants::{TenantPolicyCommand, TenantsCommand};
use crate::output;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::path::Path;

/// The largest file with a policy.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or refuses, or a file cannot be read.
pub fn run(command: &TenantsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        TenantsCommand::List(gateway) => {
            let list = ask_gateway(gateway, "GET", "v1/tenants", None)?;
            print_answer(&list, as_json, print_tenants);
        }
        TenantsCommand::Add(args) => {
            let body = json!({"id": args.id, "users": args.user, "projects": args.project});
            let made = ask_gateway(&args.gateway, "POST", "v1/tenants", Some(body))?;
            print_answer(&made, as_json, |_| output::line(&format!("{} is entered", args.id)));
        }
        TenantsCommand::Change(args) => {
            let mut body = json!({});
            if let Some(users) = &args.user {
                body["users"] = json!(users);
            }
            if let Some(projects) = &args.project {
                body["projects"] = json!(projects);
            }
            let path = format!("v1/tenants/{}", escape(&args.id));
            let changed = ask_gateway(&args.gateway, "PATCH", &path, Some(body))?;
            print_answer(&changed, as_json, print_tenant);
        }
        TenantsCommand::Policy(TenantPolicyCommand::Show { id, gateway }) => {
            let policy = ask_gateway(gateway, "GET", &policy_path(id), None)?;
            let as_file = write_policy(&policy["in_force"])?;
            print_answer(&policy, as_json, |_| output::line(as_file.trim_end()));
        }
        TenantsCommand::Policy(TenantPolicyCommand::Set { id, file, gateway }) => {
            let body = json!({"policy": read_policy(file)?});
            let set = ask_gateway(gateway, "PUT", &policy_path(id), Some(body))?;
            print_answer(&set, as_json, |set| {
                output::line(&format!("{id} has version {} of its policy", set["version"]));
            });
        }
    }
    Ok(Answer::Yes)
}

fn print_tenants(list: &Value) {
    list["data"].as_array().into_iter().flatten().for_each(print_tenant);
}

fn print_tenant(tenant: &Value) {
    let id = printable(tenant["id"].as_str().unwrap_or_default());
    let users = tenant["users"].as_array().map_or(0, Vec::len);
    let projects = tenant["projects"].as_array().map_or(0, Vec::len);
    output::line(&format!("{id:<20} {users} users, {projects} projects"));
}

fn policy_path(tenant: &str) -> String {
    format!("v1/tenants/{}/policy", escape(tenant))
}

/// A policy as `policy set` reads it from a file. TOML has no null: what is not set is left out.
fn write_policy(policy: &Value) -> anyhow::Result<String> {
    let policy = policy.as_object().context("the answer has no policy")?;
    Ok(toml::to_string_pretty(&without_nulls(&Value::Object(policy.clone())))?)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect(),
        other => other.clone(),
    }
}

/// A policy in TOML or JSON.
fn read_policy(file: &Path) -> anyhow::Result<Value> {
    let place = || format!("the policy in {}", file.display());
    if std::fs::metadata(file).with_context(place)?.len() > FILE_BYTES_MAX {
        bail!("{} is larger than a policy can be", file.display());
    }
    let text = std::fs::read_to_string(file).with_context(place)?;
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).with_context(place);
    }
    toml::from_str(&text).with_context(place)
}
