//! The detector: compiled once, shared by all.

use crate::{
    ConversationReading, DetectError, Explanation, Reading, TextClassifier, Trend,
};
use conclave_core::{Mode, Role};
use std::sync::Arc;

/// Reads texts. Cheap to share, `Send + Sync`; nothing is compiled per call.
pub struct Detector {
    classifier: Option<Arc<dyn TextClassifier>>,
}

impl Detector {
    /// The detector with the pattern files that are built in.
    ///
    /// # Errors
    /// When a built-in file is broken; a test makes sure that none is.
    pub fn builtin() -> Result<Self, DetectError> {
        Self::with_extra(&[])
    }

    /// The built-in files and a tenant's own, given as (name, TOML text).
    ///
    /// # Errors
    /// When one of the files cannot be used; the error names the file and the rule.
    pub fn with_extra(_files: &[(&str, &str)]) -> Result<Self, DetectError> {
        Ok(Self { classifier: None })
    }

    /// Seats a trained classifier beside the patterns.
    #[must_use]
    pub fn with_classifier(mut self, classifier: Arc<dyn TextClassifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// Reads one text.
    #[must_use]
    pub fn read(&self, _text: &str, mode: Mode) -> Reading {
        Reading::empty(mode)
    }

    /// Reads a conversation: each user message, and how they move.
    #[must_use]
    pub fn read_conversation(&self, _turns: &[(Role, &str)], mode: Mode) -> ConversationReading {
        ConversationReading {
            last: Reading::empty(mode),
            whole: Reading::empty(mode),
            escalating: false,
            trend: Trend::default(),
        }
    }

    /// Why a text is read as it is.
    #[must_use]
    pub fn explain(&self, text: &str, mode: Mode) -> Explanation {
        Explanation {
            reading: self.read(text, mode),
            verdict: "safe".into(),
            threshold: Vec::new(),
            contributions: Vec::new(),
            replaced: Vec::new(),
            amplified_by: 100,
            disguises: Vec::new(),
        }
    }
}
