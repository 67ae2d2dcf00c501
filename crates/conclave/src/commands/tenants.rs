//! `conclave tenants`: tenants and their policies, through a running gateway.

use super::Answer;
use crate::cli::gateway::GatewayArgs;
use crate::cli::tenants::{TenantPolicyCommand, TenantsCommand};
use crate::output;
use anyhow::{Context, anyhow, bail};
use conclave_models::WebClient;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The largest file with a policy.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Runs the command.
///
/// # Errors
/// When the gateway cannot be reached or a file cannot be read.
pub fn run(command: &TenantsCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        TenantsCommand::List(gateway) => {
            let answer = ask(gateway, "GET", "v1/tenants", None)?;
            print(answer, as_json, |list| {
                for tenant in list["data"].as_array().into_iter().flatten() {
                    let count = |field: &str| tenant[field].as_array().map_or(0, Vec::len);
                    let (users, projects) = (count("users"), count("projects"));
                    let id = tenant["id"].as_str().unwrap_or_default();
                    output::line(&format!("{id:<20} {users} users, {projects} projects"));
                }
            })
        }
        TenantsCommand::Add(args) => {
            let body = json!({"id": args.id, "users": args.user, "projects": args.project});
            let answer = ask(&args.gateway, "POST", "v1/tenants", Some(body))?;
            print(answer, as_json, |_| output::line(&format!("{} is entered", args.id)))
        }
        TenantsCommand::Policy(command) => policy(command, as_json),
    }
}

fn policy(command: &TenantPolicyCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        TenantPolicyCommand::Show { id, gateway } => {
            let answer = ask(gateway, "GET", &path(id)?, None)?;
            print(answer, as_json, |found| {
                let text = serde_json::to_string_pretty(&found["in_force"]).unwrap_or_default();
                output::line(&text);
            })
        }
        TenantPolicyCommand::Set { id, file, gateway } => {
            let body = json!({"policy": read(file)?});
            let answer = ask(gateway, "PUT", &path(id)?, Some(body))?;
            print(answer, as_json, |set| {
                output::line(&format!("{id} has version {} of its policy", set["version"]));
            })
        }
    }
}

fn path(id: &str) -> anyhow::Result<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if id.is_empty() || !id.bytes().all(plain) {
        bail!("a tenant named here has letters, digits, `-`, `_` and `.` only");
    }
    Ok(format!("v1/tenants/{id}/policy"))
}

/// A policy in TOML or JSON.
fn read(file: &Path) -> anyhow::Result<Value> {
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

fn ask(
    gateway: &GatewayArgs,
    method: &'static str,
    path: &str,
    body: Option<Value>,
) -> anyhow::Result<(u16, Value)> {
    let client = WebClient::new(&gateway.url, true, PATIENCE)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let key = gateway.key.as_deref().ok_or_else(|| anyhow!("this needs --key or CONCLAVE_KEY"))?;
    let answer = runtime.block_on(async {
        match body {
            None => client.get(path, Some(key), ANSWER_BYTES_MAX).await,
            Some(body) => {
                let body = body.to_string().into_bytes();
                client.ask(method, path, key, Some(body), ANSWER_BYTES_MAX).await
            }
        }
    });
    let (status, bytes) = answer.with_context(|| format!("{method} /{path}"))?;
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Prints what was answered; a refusal is the answer no, with its sentence.
fn print(
    (status, answer): (u16, Value),
    as_json: bool,
    say: impl FnOnce(&Value),
) -> anyhow::Result<Answer> {
    let done = (200..300).contains(&status);
    match answer["error"]["message"].as_str() {
        _ if as_json => output::json(&answer),
        Some(why) if !done => output::line(why),
        _ if !done => bail!("the gateway answered with status {status}"),
        _ => say(&answer),
    }
    Ok(if done { Answer::Yes } else { Answer::No })
}
