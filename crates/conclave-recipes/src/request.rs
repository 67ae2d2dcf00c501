//! Owns what is asked of a recipe: who, for whom, what for, with what, and within which limits.

use conclave_core::Sensitivity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest list in a context.
const LIST_MAX: usize = 32;
/// The longest name in a context, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The circumstances of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunContext {
    /// Whose; the key says so anyway, and another is refused.
    pub tenant_id: Option<String>,
    /// Who asks.
    pub user_id: Option<String>,
    /// Of which project.
    pub project_id: Option<String>,
    /// Of which story.
    pub story_id: Option<String>,
    /// Of which transcript.
    pub transcript_id: Option<String>,
    /// Whose words they are.
    pub storyteller_id: Option<String>,
    /// How carefully they must be handled.
    pub sensitivity_level: Sensitivity,
    /// The communities they belong to.
    pub cultural_affiliations: Vec<String>,
    /// Labels that stand on them, such as `tk_ss`.
    pub labels: Vec<String>,
    /// What was agreed to, and would be done.
    pub consent_scope: Vec<String>,
    /// What for.
    pub purpose: String,
    /// The person's country, ISO 3166.
    pub country: Option<String>,
    /// Who would read it, as the protocols name audiences.
    pub audience: Option<String>,
    /// Who would be given the result, if somebody else: consent must name them.
    pub party: Option<String>,
}

/// How a run is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// The most tokens written; at most the recipe's own limit.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Not offered: a result is checked as a whole.
    pub streaming: bool,
    /// Milliseconds it may take.
    pub timeout: Option<u64>,
}

/// A run that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Which recipe; the path says so anyway.
    #[serde(default)]
    pub agent_name: Option<String>,
    /// The circumstances.
    #[serde(default)]
    pub context: RunContext,
    /// What it works on.
    #[serde(default)]
    pub input: Value,
    /// How.
    #[serde(default)]
    pub options: RunOptions,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where.
    pub path: String,
    /// What is expected.
    pub message: String,
}

impl Wrong {
    /// Something wrong at a place.
    #[must_use]
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl RunContext {
    /// Whose words they are: the storyteller, else who asks.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.storyteller_id.as_deref().or(self.user_id.as_deref())
    }

    fn check(&self) -> Result<(), Wrong> {
        let lists = [
            ("cultural_affiliations", &self.cultural_affiliations),
            ("labels", &self.labels),
            ("consent_scope", &self.consent_scope),
        ];
        for (name, list) in lists {
            let path = format!("context.{name}");
            if list.len() > LIST_MAX {
                return Err(Wrong::at(path, format!("may have {LIST_MAX} entries")));
            }
            if !list.iter().all(|item| is_name(item)) {
                return Err(Wrong::at(path, NAME));
            }
        }
        let names = [
            ("tenant_id", &self.tenant_id),
            ("user_id", &self.user_id),
            ("project_id", &self.project_id),
            ("story_id", &self.story_id),
            ("transcript_id", &self.transcript_id),
            ("storyteller_id", &self.storyteller_id),
            ("audience", &self.audience),
            ("party", &self.party),
        ];
        let bad = names.iter().find(|(_, name)| name.as_ref().is_some_and(|name| !is_name(name)));
        if let Some((name, _)) = bad {
            return Err(Wrong::at(format!("context.{name}"), NAME));
        }
        if self.purpose.len() > NAME_BYTES_MAX || self.purpose.chars().any(char::is_control) {
            return Err(Wrong::at("context.purpose", NAME));
        }
        let is_country =
            |code: &String| code.len() == 2 && code.bytes().all(|sign| sign.is_ascii_alphabetic());
        match &self.country {
            Some(code) if !is_country(code) => {
                Err(Wrong::at("context.country", "must be two letters, ISO 3166"))
            }
            _ => Ok(()),
        }
    }
}

const NAME: &str = "must have 1 to 256 bytes without control characters";

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

impl RunRequest {
    /// Whether it can be looked at, whatever the recipe.
    ///
    /// # Errors
    /// When it cannot; the error names the place.
    pub fn check(&self) -> Result<(), Wrong> {
        self.context.check()?;
        let options = &self.options;
        if options.streaming {
            return Err(Wrong::at(
                "options.streaming",
                "is not offered: a result is checked whole",
            ));
        }
        if options.temperature.is_some_and(|heat| !(0.0..=2.0).contains(&heat)) {
            return Err(Wrong::at("options.temperature", "must be 0 to 2"));
        }
        if options.timeout.is_some_and(|timeout| !(100..=600_000).contains(&timeout)) {
            return Err(Wrong::at("options.timeout", "must be 100 to 600000 milliseconds"));
        }
        if options.max_tokens == Some(0) {
            return Err(Wrong::at("options.max_tokens", "must be at least 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (bad, place) in [
            (json!({"options": {"streaming": true}}), "options.streaming"),
            (json!({"options": {"temperature": 3}}), "options.temperature"),
            (json!({"options": {"timeout": 1}}), "options.timeout"),
            (json!({"context": {"country": "Japan"}}), "context.country"),
            (json!({"context": {"user_id": ""}}), "context.user_id"),
            (json!({"context": {"consent_scope": vec!["x"; 33]}}), "context.consent_scope"),
            (json!({"context": {"purpose": "a\nb"}}), "context.purpose"),
        ] {
            let request: RunRequest = serde_json::from_value(bad.clone()).unwrap();
            assert_eq!(request.check().unwrap_err().path, place, "{bad}");
        }
        assert!(serde_json::from_value::<RunRequest>(json!({"contxt": {}})).is_err());
    }
}
