//! `conclave keys`: API keys, also while the gateway runs.

use super::Answer;
use crate::cli::{DataArgs, KeyCreateArgs, KeysCommand, RotateArgs};
use crate::config::{self, SecretRef};
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::{anyhow, bail};
use conclave_core::TenantId;
use conclave_engine::{Clock, KeyRecord};
use conclave_store::{KeyBook, NewKey, Pepper, RootKey};
use serde_json::json;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Runs the command.
///
/// # Errors
/// When the data directory cannot be used or a name is wrong.
pub fn run(command: &KeysCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        KeysCommand::Create(args) => create(args, as_json),
        KeysCommand::List(data) => list(&open(data)?, as_json),
        KeysCommand::Revoke { id, data } => revoke(&open(data)?, id, as_json),
        KeysCommand::RotateEpoch(args) => rotate(args, as_json),
    }
}

fn open(args: &DataArgs) -> anyhow::Result<KeyBook> {
    let pepper = Pepper::load(&args.data, &SystemEntropy)?;
    Ok(KeyBook::open(&args.data, args.database.url()?.as_ref(), pepper)?)
}

fn create(args: &KeyCreateArgs, as_json: bool) -> anyhow::Result<Answer> {
    let now_ms = SystemClock.now_ms();
    let lasts = args.expires_in_days.map(|days| u64::from(days) * DAY_MS);
    let new = NewKey {
        environment: "live".into(),
        tenant: TenantId::new(args.tenant.as_str())?,
        role: args.role.key_role(),
        label: args.label.clone(),
        expires_ms: lasts.map(|ms| now_ms.saturating_add(ms)),
    };
    let (record, key) = open(&args.data)?.issue(new, now_ms, &SystemEntropy)?;
    if as_json {
        output::json(&json!({"key": key.reveal(), "record": record}));
    } else {
        output::line(key.reveal());
        output::note("This is the only time the key is shown.");
    }
    Ok(Answer::Yes)
}

fn list(book: &KeyBook, as_json: bool) -> anyhow::Result<Answer> {
    let keys = book.list()?;
    if as_json {
        let rows: Vec<_> = keys
            .iter()
            .map(|key| json!({"record": key.record, "last_used_ms": key.last_used_ms}))
            .collect();
        output::json(&rows);
        return Ok(Answer::Yes);
    }
    if keys.is_empty() {
        output::note("There are no keys yet; `conclave keys create` makes one.");
    }
    for key in keys.iter().map(|key| &key.record) {
        output::line(&format!(
            "{:<14} {:<9} {:<12} {:<8} {}",
            key.id.as_str(),
            key.role.as_str(),
            key.tenant.as_str(),
            state(key),
            key.label
        ));
    }
    Ok(Answer::Yes)
}

fn state(key: &KeyRecord) -> &'static str {
    match (key.revoked_ms, key.is_valid_at(SystemClock.now_ms())) {
        (Some(_), _) => "revoked",
        (None, true) => "valid",
        (None, false) => "expired",
    }
}

fn revoke(book: &KeyBook, id: &str, as_json: bool) -> anyhow::Result<Answer> {
    let known = book.list()?.iter().any(|key| key.record.id.as_str() == id);
    if known {
        book.revoke(id, SystemClock.now_ms(), &SystemEntropy)?;
    }
    if as_json {
        output::json(&json!({"id": id, "revoked": known}));
    } else if known {
        output::line(&format!("{id} opens nothing any more"));
    } else {
        output::line(&format!("there is no key {id}"));
    }
    Ok(if known { Answer::Yes } else { Answer::No })
}

/// Every key that wraps others is replaced, the root key first of all.
fn rotate(args: &RotateArgs, as_json: bool) -> anyhow::Result<Answer> {
    let config = config::load(args.open.config.as_deref())?;
    let external = config.storage.root_key.is_some();
    let given = match &args.new_root_key {
        Some(_) if !external => bail!(
            "the root key is kept in the data directory and made by the program itself; leave \
             --new-root-key out"
        ),
        Some(reference) => {
            let secret = SecretRef::parse(reference).map_err(|why| anyhow!(why))?;
            let secret = secret.resolve().map_err(|why| anyhow!("the new root key: {why}"))?;
            Some(RootKey::parse(&secret)?)
        }
        None if external => bail!(
            "the root key is kept elsewhere: give the new one with --new-root-key env:NAME or \
             file:PATH, and put it in the configuration afterwards"
        ),
        None => None,
    };
    let instead = "stop it first; while it runs it does this by itself within 7 days of an erasure";
    let store = super::opened::open(&args.open, instead)?;
    let rewrapped = store.rotate_keys(given)?;
    let behind: Vec<String> = store.replicas_behind()?.iter().map(hex::encode).collect();
    if as_json {
        output::json(&json!({"rotated": true, "keys": rewrapped, "replicas_behind": behind}));
        return Ok(Answer::Yes);
    }
    output::line(&format!("replaced: {rewrapped} keys of people are wrapped anew"));
    if !behind.is_empty() {
        output::line(&format!(
            "these replicas have the root key of before until they run again: {}. Copies made before \
             can be opened with it",
            behind.join(", ")
        ));
    }
    Ok(Answer::Yes)
}
