//! `conclave keys`: API keys, also while the gateway runs.

use super::Answer;
use super::data_directory::{announce_new_data, open_store, require_data};
use crate::cli::DataArgs;
use crate::cli::keys::{KeyCreateArgs, KeyRotateArgs, KeysCommand, RotateEpochArgs};
use crate::config::{self, SecretRef};
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::{anyhow, bail};
use conclave_core::TenantId;
use conclave_engine::{Clock, KeyRecord};
use conclave_store::{KeyBook, KeyUse, NewKey, Pepper, RootKey};
use serde_json::json;

const HOUR_MS: u64 = 3600 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Runs the command.
///
/// # Errors
/// When the data directory cannot be used or a name is wrong.
pub fn run(command: &KeysCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        KeysCommand::Create(args) => create(args, as_json),
        KeysCommand::List(data) => list(&open_book(data)?, as_json),
        KeysCommand::Revoke { id, data } => revoke(&open_book(data)?, id, as_json),
        KeysCommand::Rotate(args) => rotate(args, as_json),
        KeysCommand::RotateEpoch(args) => rotate_epoch(args, as_json),
    }
}

/// Opens the book of keys in a data directory that is there.
fn open_book(args: &DataArgs) -> anyhow::Result<KeyBook> {
    require_data(&args.data)?;
    open_or_begin_book(args)
}

fn open_or_begin_book(args: &DataArgs) -> anyhow::Result<KeyBook> {
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
        person: args.person.clone(),
        expires_ms: lasts.map(|ms| now_ms.saturating_add(ms)),
    };
    announce_new_data(&args.data.data);
    let book = open_or_begin_book(&args.data)?;
    let (record, key) = book.issue(new, now_ms, &SystemEntropy)?;
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
    let now_ms = SystemClock.now_ms();
    for KeyUse { record: key, last_used_ms } in &keys {
        output::line(&format!(
            "{:<14} {:<9} {:<12} {:<8} {:<16} {:<12} {}",
            key.id.as_str(),
            key.role.as_str(),
            key.tenant.as_str(),
            state(key),
            last_use(*last_used_ms, now_ms),
            key.person.as_deref().unwrap_or("-"),
            key.label
        ));
    }
    Ok(Answer::Yes)
}

/// How long ago a key was last used, in the largest whole unit.
fn last_use(last_used_ms: Option<u64>, now_ms: u64) -> String {
    let Some(used_ms) = last_used_ms.filter(|used_ms| *used_ms > 0) else {
        return "never used".to_owned();
    };
    match now_ms.saturating_sub(used_ms) {
        ms if ms >= DAY_MS => format!("used {} d ago", ms / DAY_MS),
        ms if ms >= HOUR_MS => format!("used {} h ago", ms / HOUR_MS),
        ms => format!("used {} min ago", ms / 60_000),
    }
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

/// The successor is shown once; the key goes on until both have had their time.
fn rotate(args: &KeyRotateArgs, as_json: bool) -> anyhow::Result<Answer> {
    let overlap_ms = u64::from(args.overlap_hours) * HOUR_MS;
    let book = open_book(&args.data)?;
    let (record, key) = book.rotate(&args.id, overlap_ms, SystemClock.now_ms(), &SystemEntropy)?;
    if as_json {
        output::json(&json!({"key": key.reveal(), "record": record}));
    } else {
        output::line(key.reveal());
        output::note(&format!(
            "This is the only time the key is shown. {} ends in {} hours at the latest.",
            args.id, args.overlap_hours
        ));
    }
    Ok(Answer::Yes)
}

/// Every key that wraps others is replaced, the root key first of all.
fn rotate_epoch(args: &RotateEpochArgs, as_json: bool) -> anyhow::Result<Answer> {
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
    let store = open_store(&args.open, instead)?;
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
