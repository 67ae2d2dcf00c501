//! Pattern and persona files of one's own, for everybody or for one tenant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// So many pattern files of one's own are read for everybody, and for each tenant.
pub(super) const PATTERN_FILES_MAX: usize = 64;

/// How the system's own messages are worded: files that take the place of the built-in ones, in the form of
/// `data/personas`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonaFiles {
    /// What is said in English.
    pub english: Option<PathBuf>,
    /// What is said in Japanese.
    pub japanese: Option<PathBuf>,
    /// How formal, warm and detailed each persona is.
    pub vectors: Option<PathBuf>,
}

impl PersonaFiles {
    /// Whether nothing is said otherwise than by the built-in files.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
