//! `conclave directives list|verify|sign`

use super::Answer;
use crate::assemble;
use crate::cli::directives::{DirectivesCommand, DirectivesSet};
use crate::config::{Config, Directives, load};
use crate::output;
use anyhow::{Context, anyhow};
use conclave_instinct::{Instinct, read_seed, sign};
use serde_json::json;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or a set cannot be signed.
pub fn run(command: &DirectivesCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        DirectivesCommand::List(args) => list(&args.set, &args.language, as_json),
        DirectivesCommand::Verify(set) => verify(set, as_json),
        DirectivesCommand::Sign(args) => write_signature(&args.file, &args.seed, as_json),
    }
}

/// The configuration under which the set that is meant is in force.
fn config_of(set: &DirectivesSet) -> anyhow::Result<Config> {
    let file = match set {
        DirectivesSet::InForce(config) => return Ok(load(config.as_deref())?),
        DirectivesSet::File(file) => file,
    };
    if !file.is_file() {
        return Err(anyhow!("{} is not there", file.display()));
    }
    Ok(Config { directives: Directives { file: Some(file.clone()) }, ..Config::default() })
}

fn list(set: &DirectivesSet, language: &str, as_json: bool) -> anyhow::Result<Answer> {
    let instinct = assemble::instinct(&config_of(set)?)?;
    if as_json {
        output::json(&instinct.iter().collect::<Vec<_>>());
        return Ok(Answer::Yes);
    }
    for directive in instinct.iter() {
        output::line(&format!("{}  {}", directive.id, instinct.text(directive.id, language)));
    }
    Ok(Answer::Yes)
}

fn verify(set: &DirectivesSet, as_json: bool) -> anyhow::Result<Answer> {
    let checked = assemble::instinct(&config_of(set)?);
    let (good, said, digest) = match &checked {
        Ok(instinct) => (true, "whole and signed by the pinned key".to_owned(), {
            Some(hex::encode(instinct.digest()))
        }),
        Err(error) => (false, format!("{error:#}"), None),
    };
    if as_json {
        output::json(&json!({"ok": good, "message": said, "digest": digest}));
    } else {
        output::line(&said);
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}

fn write_signature(file: &Path, seed: &Path, as_json: bool) -> anyhow::Result<Answer> {
    let set = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Instinct::check(&set).with_context(|| format!("the set in {}", file.display()))?;
    let bytes = std::fs::read(seed).with_context(|| format!("reading {}", seed.display()))?;
    let bytes = read_seed(&bytes)
        .ok_or_else(|| anyhow!("{} must hold 32 bytes or 64 hexadecimal digits", seed.display()))?;
    let signed = sign(&set, &bytes);
    let beside = file.with_extension("sig");
    std::fs::write(&beside, format!("{}\n", signed.signature_hex))
        .with_context(|| format!("writing {}", beside.display()))?;
    if as_json {
        let written = beside.display().to_string();
        output::json(&json!({"signature": written, "public_key": signed.public_key_hex}));
    } else {
        output::line(&format!(
            "wrote {}; build with CONCLAVE_DIRECTIVES_KEY={} to pin the key",
            beside.display(),
            signed.public_key_hex
        ));
    }
    Ok(Answer::Yes)
}
