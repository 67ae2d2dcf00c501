//! References to secrets, so that none stands in the file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `env:NAME` or `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct SecretRef(#[schemars(regex(pattern = "^(env|file):.+$"))] String);

impl SecretRef {
    /// Reads a reference.
    ///
    /// # Errors
    /// When it is none. The text is not repeated: somebody may have written the secret there.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text.split_once(':') {
            Some(("env" | "file", rest)) if !rest.is_empty() => Ok(Self(text.to_owned())),
            _ => Err("a secret must be given as env:NAME or file:PATH, never in the file itself"),
        }
    }

    /// The secret itself.
    ///
    /// # Errors
    /// When the variable is not set or the file cannot be read; the sentence names it.
    pub fn resolve(&self) -> Result<String, String> {
        let secret = match self.0.split_once(':') {
            Some(("env", name)) => std::env::var(name)
                .map_err(|_| format!("the environment variable {name} is not set"))?,
            Some(("file", path)) => std::fs::read_to_string(path)
                .map_err(|error| format!("the file {path} cannot be read: {error}"))?,
            _ => return Err("a secret must be given as env:NAME or file:PATH".into()),
        };
        let secret = secret.trim().to_owned();
        if secret.is_empty() { Err(format!("{} is empty", self.0)) } else { Ok(secret) }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
