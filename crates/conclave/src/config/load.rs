//! Reading the file, with errors that say where.

use super::Config;
use std::path::Path;

/// Why a configuration cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Unreadable(String),
    /// The file is wrong; each line names its place.
    Wrong(Vec<String>),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(why) => f.write_str(why),
            Self::Wrong(problems) => f.write_str(&problems.join("\n")),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Reads a file; without one, everything has its default.
///
/// # Errors
/// When the file cannot be read or is wrong.
pub fn load(path: Option<&Path>) -> Result<Config, ConfigError> {
    let Some(path) = path else { return Ok(Config::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        ConfigError::Unreadable(format!("{} cannot be read: {error}", path.display()))
    })?;
    parse(&text)
}

/// Reads the text of a file and checks what types alone cannot.
///
/// # Errors
/// When it is wrong.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    let one = |problem: String| ConfigError::Wrong(vec![problem]);
    let reader = toml::Deserializer::parse(text).map_err(|error| one(plain(&error)))?;
    let config: Config = serde_path_to_error::deserialize(reader)
        .map_err(|error| one(format!("{}: {}", error.path(), plain(error.inner()))))?;
    let problems: Vec<_> = super::findings(&config)
        .into_iter()
        .filter(|finding| finding.is_error)
        .map(|finding| finding.to_string())
        .collect();
    if problems.is_empty() { Ok(config) } else { Err(ConfigError::Wrong(problems)) }
}

/// The message and the line, without a drawing of the file: it may hold what should not be logged.
fn plain(error: &toml::de::Error) -> String {
    error.message().trim().to_owned()
}

/// The JSON Schema of the file, for editors.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    schema["title"] = "conclave.toml".into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(text).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let config = parse("").unwrap();
        assert_eq!(config.server.listen.port(), 8420);
        assert_eq!(config.deliberation.attempts_max, 3);
    }

    #[test]
    fn unknown_keys_and_wrong_values_name_their_path() {
        for (text, expected) in [
            ("[server]\nlisen = \"x\"", "server.lisen: unknown field `lisen`"),
            ("[verifiers.crisis]\nwieght = 3", "verifiers.crisis.wieght: unknown field `wieght`"),
            ("[server]\nlisten = \"nowhere\"", "server.listen: "),
            ("[deliberation]\nattempts_max = 9", "deliberation.attempts_max: "),
            ("[deliberation]\ncrisis_deadline_ms = 20000", "deliberation.crisis_deadline_ms: "),
            ("[policy]\non_injection = \"ignore\"", "policy.on_injection: "),
            ("[policy]\non_doubt = \"ignore\"", "policy.on_doubt: "),
            ("[policy]\nunjudged = \"ignore\"", "policy.unjudged: "),
            (
                "[deliberation]\nturn_deadline_ms = 9000\nreply_timeout_ms = 8000",
                "deliberation.reply_timeout_ms: ",
            ),
            ("[verifiers.crisis]\nmonitor = true", "verifiers.crisis: "),
            ("[verifiers.nobody]\nweight = 1", "verifiers.nobody: "),
            ("[[models]]\nname = \"m\"\nprovider = \"p\"", "models[0].provider: "),
            (
                "[[providers]]\nname = \"p\"\nbase_url = \"http://x\"\napi_key = \"sk-secret\"",
                "providers[0].api_key: a secret must be given as env:NAME",
            ),
            ("[storage]\nretention_days = 40000", "storage.retention_days: "),
            ("[storage]\nroot_key = \"sk-secret\"", "storage.root_key: a secret must be given as"),
            ("[tenants.acme]\nretention_days = 40000", "tenants.acme.retention_days: "),
            ("[tenants.acme.policy]\non_doubt = \"ignore\"", "tenants.acme.policy.policy: "),
            ("[tenants.acme.policy]\ncare = \"never\"", "tenants.acme.policy.policy: "),
            ("[tenants.acme]\nretention = 4", "tenants.acme.retention: unknown field"),
            ("[tenants.acme]\nlegal_hold_users = [\"\"]", "tenants.acme.legal_hold_users[0]: "),
            ("a = ", ""),
        ] {
            let problem = problem(text);
            assert!(!problem.is_empty() && problem.contains(expected), "{text}: {problem}");
            assert!(!problem.contains("sk-secret"), "a secret was repeated: {problem}");
        }
    }

    #[test]
    fn the_schema_describes_every_part() {
        let schema = schema();
        let parts = [
            "server",
            "limits",
            "storage",
            "tenants",
            "directives",
            "resources",
            "deliberation",
            "detection",
            "policy",
            "providers",
            "models",
            "verifiers",
            "ledger",
            "reviews",
            "webhooks",
            "recipes",
            "telemetry",
        ];
        for part in parts {
            assert!(schema["properties"][part].is_object(), "{part}");
        }
        let described = schema["properties"].as_object().unwrap();
        assert!(described.values().all(|part| part["description"].is_string()), "{schema}");
        assert_eq!(schema["additionalProperties"], false);
    }
}
