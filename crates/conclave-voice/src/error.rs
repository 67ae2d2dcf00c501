//! What can be wrong with the data files.

use thiserror::Error;

/// Why a voice could not be built: always the fault of a data file, never worth a retry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VoiceError {
    /// The file does not read as what it should hold.
    #[error("{file}: {message}")]
    Malformed {
        /// Which file.
        file: String,
        /// What is wrong with it, in the parser's words.
        message: String,
    },
    /// The file reads well but something needed is not in it.
    #[error("{file}: missing {what}")]
    Missing {
        /// Which file.
        file: String,
        /// What is missing.
        what: String,
    },
}

impl VoiceError {
    /// A file that does not parse.
    pub(crate) fn malformed(file: &str, error: &impl ToString) -> Self {
        Self::Malformed { file: file.to_owned(), message: error.to_string() }
    }

    /// A file without something needed.
    pub(crate) fn missing(file: &str, what: impl Into<String>) -> Self {
        Self::Missing { file: file.to_owned(), what: what.into() }
    }
}

/// Parses one data file.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    file: &str,
    text: &str,
) -> Result<T, VoiceError> {
    toml::from_str(text).map_err(|error| VoiceError::malformed(file, &error))
}
