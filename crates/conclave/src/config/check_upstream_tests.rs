//! What is said of providers, models and verifiers that cannot be used.

use crate::config::load::parse;
use crate::config::{Config, findings};

const HOUSE: &str = "
    [providers.openai]
    base_url = 'https://api.example.com/v1'
    [providers.claude]
    kind = 'anthropic'
    base_url = 'https://claude.example.com/v1'
    [[models]]
    name = 'large'
    provider = 'openai'
    fallback = ['middle']
    [[models]]
    name = 'middle'
    provider = 'claude'
    fallback = ['small']
    [[models]]
    name = 'small'
    provider = 'openai'
";

fn problem(more: &str) -> String {
    let text = format!("{more}\n{HOUSE}");
    parse(&text).err().map(|error| error.to_string()).unwrap_or_default()
}

fn read(more: &str) -> Config {
    parse(&format!("{more}\n{HOUSE}")).unwrap()
}

#[test]
fn both_ways_of_naming_entries_are_read() {
    let config = read(
        "[deliberation]\npanel_deadline_ms = 6000\n[[verifiers]]\nname = 'shadow'\n\
        weight = 2\n[[verifiers]]\nname = 'judge'\nkind = 'judge'\nmodel = 'small'",
    );
    let mut names: Vec<_> = config.providers.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["claude", "openai"]);
    assert_eq!(config.verifiers["shadow"].weight, Some(2));
    assert_eq!(config.verifiers["judge"].model.as_deref(), Some("small"));
    let table = read("[verifiers.shadow]\nweight = 2");
    assert_eq!(table.verifiers["shadow"].weight, Some(2));
}

#[test]
fn whoever_stands_in_is_asked_in_order_and_nobody_for_themselves() {
    let config = read("");
    let models = config.models.iter().map(|model| (model.name.as_str(), model)).collect();
    assert_eq!(super::stand_ins(&config.models[0], &models).unwrap(), ["middle", "small"]);
    for (fallback, expected) in [
        ("['large']", "would stand in for itself"),
        ("['small', 'small']", "stands twice"),
        ("['nobody']", "there is no model `nobody`"),
        ("['builtin']", "`builtin` cannot stand in"),
    ] {
        let text = HOUSE.replace("fallback = ['middle']", &format!("fallback = {fallback}"));
        let problem = parse(&text).unwrap_err().to_string();
        assert!(problem.contains(expected), "{fallback}: {problem}");
    }
    let circle = HOUSE.replace("fallback = ['small']", "fallback = ['large']");
    let problem = parse(&circle).unwrap_err().to_string();
    assert!(problem.contains("models[0].fallback: `large` would stand in for itself"), "{problem}");
}

#[test]
fn a_provider_that_cannot_be_used_is_named() {
    for (provider, expected) in [
        ("base_url = 'http://169.254.169.254/'", "providers.p.base_url|providers[2].base_url"),
        ("base_url = 'https://a.example'\nkind = 'azure'", ".api_version: is needed"),
        ("base_url = 'https://a.example'\napi_version = 'x'", ".api_version: is for Azure only"),
        ("base_url = 'https://a.example'\ntimeout_ms = 1", ".timeout_ms: must be"),
        ("base_url = 'https://a.example'\nkind = 'soap'", "kind: "),
        (
            "base_url = 'https://a.example'\napi_key = 'env:A'\nkeys = [{api_key = 'env:B'}]",
            "either `api_key` or `keys`",
        ),
        (
            "base_url = 'https://a.example'\nkeys = [{api_key = 'env:B', weight = 0}]",
            "keys[0].weight: must be",
        ),
    ] {
        let problem = problem(&format!("[providers.p]\n{provider}"));
        assert!(expected.split('|').any(|part| problem.contains(part)), "{provider}: {problem}");
    }
}

#[test]
fn a_verifier_that_cannot_be_used_is_named() {
    let slow = "[deliberation]\npanel_deadline_ms = 6000\n";
    for (verifier, expected) in [
        ("[verifiers.j]\nkind = 'judge'", "verifiers.j.model: is needed"),
        ("[verifiers.j]\nkind = 'judge'\nmodel = 'x'", "there is no model `x`"),
        ("[verifiers.j]\nkind = 'judge'\nmodel = 'builtin'", "there is no model `builtin`"),
        ("[verifiers.j]\nkind = 'http'", "verifiers.j.url: is needed"),
        ("[verifiers.j]\nkind = 'http'\nurl = 'http://10.0.0.1/'", "verifiers.j.url: "),
        ("[verifiers.j]\nkind = 'moderation'\nprovider = 'claude'", "of the kind `openai`"),
        ("[verifiers.j]\nkind = 'judge'\nmodel = 'small'\nurl = 'http://x'", "not for a verifier"),
        ("[verifiers.j]\nkind = 'judge'\nmodel = 'small'\nweight = 50", "weight: must be 1 to 10"),
        ("[verifiers.J]\nkind = 'judge'\nmodel = 'small'", "must be named with"),
        ("[verifiers.crisis]\nkind = 'judge'\nmodel = 'small'", "name of a built-in"),
        ("[verifiers.shadow]\ntimeout_ms = 9", "is not for a built-in verifier"),
        (
            "[verifiers.j]\nkind = 'judge'\nmodel = 'small'\nrequired = true\n\
             on_failure = 'leave_out'",
            "a required verifier cannot be left out",
        ),
        ("[[verifiers]]\nkind = 'judge'\nmodel = 'small'", "an entry has no `name`"),
    ] {
        let problem = problem(&format!("{slow}{verifier}"));
        assert!(problem.contains(expected), "{verifier}: {problem}");
    }
    let hasty = problem("[verifiers.j]\nkind = 'judge'\nmodel = 'small'");
    assert!(hasty.contains("set deliberation.panel_deadline_ms"), "{hasty}");
}

#[test]
fn verifiers_that_could_outvote_the_built_in_ones_are_doubted() {
    let mut more = "[deliberation]\npanel_deadline_ms = 6000\n".to_owned();
    for number in 0..2 {
        more += &format!("[verifiers.j{number}]\nkind = 'judge'\nmodel = 'small'\nweight = 9\n");
    }
    let warned = findings(&read(&more));
    assert!(warned.iter().any(|finding| finding.message.contains("talked round")), "{warned:?}");
}

/// A piece of a file may refer to what stands in another piece; anything else must be right.
#[test]
fn the_files_in_the_guides_can_be_used() {
    let mut blocks = 0;
    for page in ["before-openai", "before-ollama", "write-a-verifier", "quick-start"] {
        let path = format!("{}/../../docs/guide/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let problems = parse(block).err().map(|error| error.to_string()).unwrap_or_default();
            let refers =
                |line: &str| line.contains("there is no") || line.contains("panel_deadline");
            assert!(problems.lines().all(refers), "{page}: {problems}\n{block}");
            blocks += 1;
        }
    }
    assert!(blocks >= 10, "the guides have files in them");
}

#[test]
fn nobody_takes_the_seat_of_the_floor() {
    let text = "[verifiers.floor]\nkind = 'http'\nurl = 'https://judge.example.com/'";
    assert!(problem(text).contains("seat of the directives' floor"), "{}", problem(text));
}
