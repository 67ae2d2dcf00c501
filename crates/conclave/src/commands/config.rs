//! `conclave config check|schema`

use super::Answer;
use crate::anchor::Anchors;
use crate::assemble;
use crate::cli::ConfigCommand;
use crate::config::{Config, ConfigError, Finding, findings, load, schema};
use crate::output;
use crate::prices::Prices;
use crate::system::{SystemClock, SystemEntropy};
use crate::telemetry;
use crate::upstream::Upstream;
use anyhow::anyhow;
use conclave_engine::{Clock, Entropy};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

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

/// What a start would stumble over, beside what stands in the file: secrets, addresses, other files.
fn unusable(config: &Config) -> Vec<String> {
    let secrets = config.providers.iter().enumerate().filter_map(|(at, provider)| {
        let why = provider.api_key.as_ref()?.resolve().err()?;
        Some(format!("providers[{at}].api_key: {why}"))
    });
    let mut problems: Vec<_> = secrets.collect();
    let upstream = || {
        let upstream = Upstream::connect(config, &Prices::of(config, SystemClock.now_ms())?)?;
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
        upstream.verifiers(&entropy).map(drop)
    };
    // A key that is missing was named by its place already.
    let upstream = if problems.is_empty() { upstream() } else { Ok(()) };
    let database = config.storage.url().map_err(|why| anyhow!("storage.database: {why}"));
    let look = |name: &str| std::env::var(name).ok();
    let others = [
        upstream,
        database.map(drop),
        assemble::root_key(config).map(drop),
        assemble::instinct(config).map(drop),
        assemble::workshop(config).map(drop),
        Anchors::new(config, Arc::new(SystemClock)).map(drop),
        telemetry::check(&config.telemetry, look),
    ];
    problems.extend(others.into_iter().filter_map(Result::err).map(|why| format!("{why:#}")));
    problems
}

fn check(file: &Path, as_json: bool) -> anyhow::Result<Answer> {
    let (problems, warnings) = match load(Some(file)) {
        Ok(config) => {
            let doubts: Vec<_> = findings(&config).iter().map(Finding::to_string).collect();
            (unusable(&config), doubts)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_start_would_stumble_over_is_said_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("conclave.toml");
        let key = "api_key = \"env:CONCLAVE_NO_SUCH_VARIABLE\"\n";
        let provider = "[[providers]]\nname = \"p\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
        let verifier = "[[verifiers]]\nname = \"v\"\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\n\
                        timeout_ms = 100\n";
        for (text, expected) in [
            (String::new(), None),
            (format!("{provider}{key}"), Some("providers[0].api_key")),
            (format!("{verifier}{key}"), Some("the key of `v`")),
            ("[directives]\nfile = \"nowhere.toml\"\n".to_owned(), Some("nowhere")),
            ("[recipes]\ndir = \"nowhere\"\n".to_owned(), Some("recipes.dir nowhere")),
            (
                "[storage]\ndatabase = \"env:CONCLAVE_NO_SUCH_VARIABLE\"\n".to_owned(),
                Some("storage.database"),
            ),
            ("[telemetry]\notlp_endpoint = \"ftp://x\"\n".to_owned(), Some("the collector")),
        ] {
            std::fs::write(&file, &text).unwrap();
            let problems = unusable(&load(Some(&file)).unwrap());
            match expected {
                None => assert_eq!(problems, Vec::<String>::new()),
                Some(expected) => {
                    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
                    assert!(problems[0].contains(expected), "{text}: {problems:?}");
                }
            }
        }
    }
}
