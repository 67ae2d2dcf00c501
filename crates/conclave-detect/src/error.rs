//! Why a detector could not be made.

use thiserror::Error;

/// A pattern file that cannot be used. Always the author's fault; trying again does not help.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DetectError {
    /// The file is not valid TOML of the expected shape.
    #[error("pattern file {file}: {message}")]
    Syntax {
        /// Which file.
        file: String,
        /// What is wrong, with its place.
        message: String,
    },
    /// A rule names something that does not exist or contradicts itself.
    #[error("pattern file {file}, {item}: {message}")]
    Rule {
        /// Which file.
        file: String,
        /// Which concept, rule or reading.
        item: String,
        /// What is wrong.
        message: String,
    },
    /// The automaton could not be built.
    #[error("patterns cannot be compiled: {0}")]
    Automaton(String),
}
