//! `conclave config check|schema`

use super::Answer;
use crate::cli::ConfigCommand;
use crate::config::{ConfigError, Finding, findings, load, schema};
use crate::output;
use serde_json::json;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When the file cannot be read.
pub fn run(command: &ConfigCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        ConfigCommand::Schema => {
            output::json(&schema());
            Ok(Answer::Yes)
        }
        ConfigCommand::Check { file } => check(file, as_json),
    }
}

fn check(file: &Path, as_json: bool) -> anyhow::Result<Answer> {
    let (problems, warnings) = match load(Some(file)) {
        Ok(config) => {
            let secrets = config.providers.iter().enumerate().filter_map(|(at, provider)| {
                let why = provider.api_key.as_ref()?.resolve().err()?;
                Some(format!("providers[{at}].api_key: {why}"))
            });
            let root_key = crate::assemble::root_key(&config).err();
            let secrets = secrets.chain(root_key.map(|why| format!("{why:#}")));
            let doubts: Vec<_> = findings(&config).iter().map(Finding::to_string).collect();
            (secrets.collect(), doubts)
        }
        Err(ConfigError::Wrong(problems)) => (problems, Vec::new()),
        Err(error @ ConfigError::Unreadable(_)) => return Err(error.into()),
    };
    let good = problems.is_empty();
    if as_json {
        output::json(&json!({"ok": good, "errors": problems, "warnings": warnings}));
    } else {
        for problem in &problems {
            output::line(&format!("{} {problem}", output::coloured("error", "31")));
        }
        for warning in &warnings {
            output::line(&format!("{} {warning}", output::coloured("warning", "33")));
        }
        let verdict = if good { "can be used" } else { "cannot be used" };
        output::line(&format!("{} {verdict}", file.display()));
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}
