//! `conclave people`: accounts for the dashboard, also while the gateway runs.
//!
//! **Invariant:** a password is made here, shown once and kept nowhere; only its slow hash is stored.

use super::Answer;
use super::data_directory::{announce_new_data, require_data};
use super::gateway::{ask_gateway, escape};
use super::protocols::{find_proposal, proposal_sentence};
use crate::cli::DataArgs;
use crate::cli::people::{PeopleCommand, PersonArgs};
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::bail;
use conclave_core::TenantId;
use conclave_dashboard::hash_password;
use conclave_engine::{Clock, Entropy, KeyRole};
use conclave_store::{PeopleBook, Pepper, PersonRecord};
use serde_json::json;

/// The longest name.
const NAME_BYTES_MAX: usize = 100;

/// Runs the command.
///
/// # Errors
/// When the data directory cannot be used, a name is wrong, or the gateway does not name an elder.
pub fn run(command: &PeopleCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        PeopleCommand::Add(args) => add(args, as_json),
        PeopleCommand::List(data) => list(&open_book(data)?, as_json),
        PeopleCommand::Remove { name, data } => remove(&open_book(data)?, name, as_json),
    }
}

/// Opens the book of accounts in a data directory that is there.
fn open_book(args: &DataArgs) -> anyhow::Result<PeopleBook> {
    require_data(&args.data)?;
    open_or_begin_book(args)
}

fn open_or_begin_book(args: &DataArgs) -> anyhow::Result<PeopleBook> {
    let pepper = Pepper::load(&args.data, &SystemEntropy)?;
    Ok(PeopleBook::open(&args.data, args.database.url()?.as_ref(), &pepper)?)
}

fn add(args: &PersonArgs, as_json: bool) -> anyhow::Result<Answer> {
    let plain = |c: char| c.is_alphanumeric() || "-_.@ ".contains(c);
    if args.name.is_empty() || args.name.len() > NAME_BYTES_MAX || !args.name.chars().all(plain) {
        bail!("a name has 1 to {NAME_BYTES_MAX} bytes: letters, digits, spaces and - _ . @");
    }
    let role = args.role.key_role();
    match role {
        KeyRole::App => bail!("an application has no account; make it a key with `keys create`"),
        KeyRole::Elder => {}
        _ if args.communities.is_empty() => {}
        _ => bail!("--community is for the role elder"),
    }
    let now_ms = SystemClock.now_ms();
    let password = new_password();
    let person = PersonRecord {
        name: args.name.clone(),
        tenant: TenantId::new(args.tenant.as_str())?,
        role,
        password_hash: hash_password(&password, &SystemEntropy),
        created_ms: now_ms,
    };
    announce_new_data(&args.data.data);
    let book = open_or_begin_book(&args.data)?;
    let is_new = book.enter(&person, now_ms, &SystemEntropy)?;
    // Shown before anything else can fail: there is no other way to have it.
    if as_json {
        output::json(&json!({
            "name": person.name, "role": role, "tenant": person.tenant, "password": password,
            "new": is_new, "communities": args.communities,
        }));
    } else {
        output::line(&password);
        output::note(if is_new {
            "This is the only time the password is shown."
        } else {
            "The account was there: it has a new password, shown this once, and its role anew."
        });
    }
    for community in &args.communities {
        name_elder(args, community)?;
    }
    Ok(Answer::Yes)
}

/// The gateway knows who may name an elder, and whom the elders of that community must agree to first.
fn name_elder(args: &PersonArgs, community: &str) -> anyhow::Result<()> {
    let holder = format!("person:{}", args.name);
    let path = format!("v1/protocols/{}/elders/{}", escape(community), escape(&holder));
    let body = json!({"person": args.name});
    let answer = ask_gateway(&args.gateway, "PUT", &path, Some(body))?;
    if let Some(review) = find_proposal(&answer, &holder) {
        output::note(&proposal_sentence(&args.name, community, review));
    }
    Ok(())
}

fn list(book: &PeopleBook, as_json: bool) -> anyhow::Result<Answer> {
    let people = book.list()?;
    if as_json {
        let rows = people.iter().map(|one| {
            json!({"name": one.name, "role": one.role, "tenant": one.tenant, "created_ms": one.created_ms})
        });
        output::json(&rows.collect::<Vec<_>>());
        return Ok(Answer::Yes);
    }
    if people.is_empty() {
        output::note("There are no accounts yet; `conclave people add` makes one.");
    }
    for one in people {
        output::line(&format!("{:<20} {:<9} {}", one.name, one.role.as_str(), one.tenant.as_str()));
    }
    Ok(Answer::Yes)
}

fn remove(book: &PeopleBook, name: &str, as_json: bool) -> anyhow::Result<Answer> {
    let owners = |one: &&PersonRecord| one.role == KeyRole::Owner;
    let people = book.list()?;
    if people.iter().filter(owners).map(|one| one.name.as_str()).eq([name]) {
        bail!("{name} is the last owner; enter another first");
    }
    let known = book.remove(name, SystemClock.now_ms(), &SystemEntropy)?;
    if as_json {
        output::json(&json!({"name": name, "removed": known}));
    } else if known {
        output::line(&format!("{name} cannot sign in any more"));
    } else {
        output::line(&format!("there is no account {name}"));
    }
    Ok(if known { Answer::Yes } else { Answer::No })
}

/// Twenty letters without look-alikes: about 98 bits.
pub(super) fn new_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 20];
    SystemEntropy.fill(&mut random);
    random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}
