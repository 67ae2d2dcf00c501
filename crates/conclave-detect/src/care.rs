//! From which crisis score on somebody is offered help although they are not in crisis.
//!
//! **Invariant:** every line is above 0 and below the decision point, so that nobody is offered help for
//! nothing and the band never reaches into a crisis.

use crate::DetectError;
use conclave_core::Score;
use serde::Deserialize;
use std::collections::BTreeMap;

const FILE: &str = "crisis/care.toml";
const BUILTIN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/crisis/care.toml"));

/// The lines by language, in hundredths.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CareLines {
    default: u8,
    #[serde(default)]
    language: BTreeMap<String, u8>,
}

impl CareLines {
    /// Those compiled in.
    pub(crate) fn builtin() -> Result<Self, DetectError> {
        Self::parse(BUILTIN)
    }

    fn parse(text: &str) -> Result<Self, DetectError> {
        let broken = |message: String| DetectError::Syntax { file: FILE.to_owned(), message };
        let lines: Self = toml::from_str(text).map_err(|error| broken(error.to_string()))?;
        let mut all = std::iter::once(&lines.default).chain(lines.language.values());
        match all.find(|line| !(1..Score::DECISION_POINT).contains(*line)) {
            Some(wrong) => {
                let below = Score::DECISION_POINT;
                Err(broken(format!("a line must be at least 1 and below {below}, not {wrong}")))
            }
            None => Ok(lines),
        }
    }

    /// The line of a language (ISO 639-1).
    pub(crate) fn line_of(&self, language: &str) -> u8 {
        self.language.get(language).copied().unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_without_a_line_of_its_own_has_the_default() {
        let lines = CareLines::parse("default = 25\n[language]\nja = 30").unwrap();
        assert_eq!((lines.line_of("ja"), lines.line_of("fr"), lines.line_of("und")), (30, 25, 25));
        assert!(CareLines::builtin().is_ok());
    }

    #[test]
    fn a_line_outside_the_band_is_refused() {
        for text in ["default = 0", "default = 50", "default = 25\n[language]\nen = 60"] {
            let error = CareLines::parse(text).unwrap_err().to_string();
            assert!(error.contains("below 50"), "{error}");
        }
    }
}
