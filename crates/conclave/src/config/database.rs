//! Where the database is: its address, or where its address is written.

use super::SecretRef;
use conclave_store::DatabaseUrl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// `postgres://...` without a password, `env:NAME` or `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct DatabaseRef(
    #[schemars(regex(pattern = "^(postgres(ql)?://|env:|file:).+$"))]
    String,
);

impl FromStr for DatabaseRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("env:") || text.starts_with("file:") {
            return Ok(Self(text.to_owned()));
        }
        DatabaseUrl::parse(text).map_err(|error| error.to_string())?;
        Ok(Self(text.to_owned()))
    }
}

impl DatabaseRef {
    /// The address itself.
    ///
    /// # Errors
    /// When it cannot be read or is none; the sentence does not repeat it.
    pub fn url(&self) -> Result<DatabaseUrl, String> {
        database_url(&self.0)
    }
}

/// Reads an address, or where it is written.
///
/// # Errors
/// When it cannot be read or is none; the sentence does not repeat it.
pub fn database_url(text: &str) -> Result<DatabaseUrl, String> {
    let written = text.starts_with("env:") || text.starts_with("file:");
    let address = if written { SecretRef::parse(text)?.resolve()? } else { text.to_owned() };
    DatabaseUrl::parse(&address).map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for DatabaseRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed: Self = text.parse().map_err(serde::de::Error::custom)?;
        // The file is read by more people than the database should be.
        if DatabaseUrl::parse(&text).is_ok_and(|url| url.has_password()) {
            return Err(serde::de::Error::custom(
                "an address with a password must be given as env:NAME or file:PATH, never in the \
                 file itself",
            ));
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DatabaseRef, String> {
        let quoted = format!("database = \"{text}\"");
        let table: Result<super::super::Storage, _> = toml::from_str(&quoted);
        table.map(|storage| storage.database.unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_password_never_stands_in_the_file() {
        let sentence = read("postgres://me:s3cret@db/audit").unwrap_err();
        assert!(sentence.contains("env:NAME or file:PATH"), "{sentence}");
        assert!(read("postgres://me@db/audit").is_ok());
        assert!(read("env:DATABASE_URL").is_ok());
        assert!(read("sqlite://x").unwrap_err().contains("postgres://"));
    }

    #[test]
    fn an_address_may_be_written_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("address");
        std::fs::write(&path, "postgres://me:s3cret@db/audit\n").unwrap();
        let url = read(&format!("file:{}", path.display())).unwrap().url().unwrap();
        assert_eq!(url.to_string(), "postgres://db:5432/audit");
        let missing = database_url("env:CONCLAVE_NO_SUCH_VARIABLE").unwrap_err();
        assert!(missing.contains("is not set"), "{missing}");
    }
}
