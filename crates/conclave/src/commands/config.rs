//! `conclave config check|schema`

use super::Answer;
use crate::anchor::Anchors;
use crate::assemble;
use crate::cli::ConfigCommand;
use crate::config::{Config, ConfigError, Finding, findings, load, schema};
use crate::output;
use crate::own_files;
use crate::prices::Prices;
use crate::system::{SystemClock, SystemEntropy};
use crate::telemetry;
use crate::upstream::Upstream;
use anyhow::anyhow;
use conclave_engine::{Clock, Entropy};
use conclave_voice::{Date, Freshness, Resources, Stale};
use serde_json::json;
use std::collections::BTreeSet;
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
        assemble::resources(config)
            .and_then(|resources| own_files::voices(config, &resources))
            .map(drop),
        own_files::detectors(config).map(drop),
        assemble::tls(config, SystemClock.now_ms()).map(drop),
        Anchors::new(config, Arc::new(SystemClock)).map(drop),
        telemetry::check(&config.telemetry, look),
    ];
    problems.extend(others.into_iter().filter_map(Result::err).map(|why| format!("{why:#}")));
    problems
}

/// Which crisis lines nobody has compared with their source within twelve months. The lines of one's
/// own are named; the built-in ones are too many, and they are marked where they are shown.
fn unchecked(config: &Config, now_ms: u64) -> Vec<String> {
    let Some(today) = Date::of_ms(now_ms) else {
        return Vec::new();
    };
    let (Ok(all), Ok(builtin)) = (assemble::resources(config), Resources::builtin()) else {
        return Vec::new();
    };
    let is_builtin =
        |stale: &Stale| all.lines(&stale.country).iter().eq(builtin.lines(&stale.country));
    let (shipped, own): (Vec<_>, Vec<_>) = all.stale(today).into_iter().partition(is_builtin);
    let mut doubts: Vec<_> = own.iter().map(told).collect();
    if !shipped.is_empty() {
        let countries: BTreeSet<_> = shipped.iter().map(|stale| stale.country.as_str()).collect();
        doubts.push(format!(
            "resources: {} crisis lines of {} countries were not checked in the last twelve months \
             and are shown with a mark; check those of your countries and give them in \
             resources.file",
            shipped.len(),
            countries.len()
        ));
    }
    doubts
}

fn told(stale: &Stale) -> String {
    let Stale { country, name, freshness } = stale;
    match freshness {
        Freshness::Unchecked => format!(
            "resources.file: nobody has checked `{name}` ({country}): compare it with its source \
             and say when, as checked = \"YYYY-MM-DD\""
        ),
        Freshness::Old(date) => format!(
            "resources.file: `{name}` ({country}) was last checked on {date}, more than twelve \
             months ago"
        ),
    }
}

fn check(file: &Path, as_json: bool) -> anyhow::Result<Answer> {
    let (problems, warnings) = match load(Some(file)) {
        Ok(config) => {
            let mut doubts: Vec<_> = findings(&config).iter().map(Finding::to_string).collect();
            doubts.extend(unchecked(&config, SystemClock.now_ms()));
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
            ("[resources]\nfile = \"nowhere\"\n".to_owned(), Some("resources.file nowhere")),
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

    #[test]
    fn crisis_lines_that_nobody_checked_within_a_year_are_named() {
        const NOW_MS: u64 = 1_794_900_000_000; // 2026-11-17
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lines.toml");
        let own = |checked: &str| {
            std::fs::write(
                &file,
                format!(
                    "[[country]]\ncode = \"NZ\"\nname = \"New Zealand\"\nname_ja = \"NZ\"\n\
                     emergency = \"111\"\n[[country.line]]\nname = \"House line\"\n\
                     call = \"1737\"\nsource = \"asked them\"\n{checked}\n"
                ),
            )
            .unwrap();
            let resources = crate::config::ResourceSection { file: Some(file.clone()) };
            unchecked(&Config { resources, ..Config::default() }, NOW_MS)
        };
        let [none, old, fresh] =
            ["", "checked = \"2025-11-01\"", "checked = \"2026-02-01\""].map(own);
        assert!(none[0].contains("nobody has checked `House line` (NZ)"), "{none:?}");
        assert!(old[0].contains("last checked on 2025-11-01"), "{old:?}");
        assert!(!fresh.iter().any(|doubt| doubt.contains("House line")), "{fresh:?}");
        let usual = unchecked(&Config::default(), NOW_MS);
        assert_eq!(usual.len(), 1, "the built-in ones are told in one sentence: {usual:?}");
    }
}
