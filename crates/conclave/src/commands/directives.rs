//! `conclave directives list|verify|sign`

use super::Answer;
use crate::assemble;
use crate::cli::DirectivesCommand;
use crate::config::{Config, Directives};
use crate::output;
use anyhow::{Context, anyhow};
use conclave_instinct::{Instinct, sign};
use serde_json::json;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or a set cannot be signed.
pub fn run(command: &DirectivesCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        DirectivesCommand::List(args) => list(&args.language, as_json),
        DirectivesCommand::Verify { file } => verify(file.as_deref(), as_json),
        DirectivesCommand::Sign(args) => write_signature(&args.file, &args.seed, as_json),
    }
}

fn list(language: &str, as_json: bool) -> anyhow::Result<Answer> {
    let instinct = Instinct::builtin()?;
    if as_json {
        output::json(&instinct.iter().collect::<Vec<_>>());
        return Ok(Answer::Yes);
    }
    for directive in instinct.iter() {
        output::line(&format!("{}  {}", directive.id, instinct.text(directive.id, language)));
    }
    Ok(Answer::Yes)
}

fn verify(file: Option<&Path>, as_json: bool) -> anyhow::Result<Answer> {
    if let Some(file) = file
        && !file.is_file()
    {
        return Err(anyhow!("{} is not there", file.display()));
    }
    let directives = Directives { file: file.map(Into::into) };
    let checked = assemble::instinct(&Config { directives, ..Config::default() });
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
    let text =
        std::fs::read_to_string(seed).with_context(|| format!("reading {}", seed.display()))?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(text.trim(), &mut bytes)
        .map_err(|_| anyhow!("{} must hold 64 hexadecimal digits", seed.display()))?;
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
