//! Owns what people said, as recipes are given it: segments in order, each with its number.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// So many transcripts may be looked at in one run.
pub const TRANSCRIPTS_MAX: usize = 64;
/// So many segments may all of them have together.
pub const SEGMENTS_MAX: usize = 10_000;
/// So many bytes of text may all of them have together.
pub const TEXT_BYTES_MAX: usize = 2 << 20;

/// So many bytes may an id or the name of a speaker have.
pub const NAME_BYTES_MAX: usize = 256;

/// One passage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its number in the transcript.
    pub index: u32,
    /// Who spoke.
    #[serde(default)]
    pub speaker: String,
    /// What was said.
    pub text: String,
    /// Whether it was marked as sacred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sacred: bool,
}

/// What somebody said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// Its id, as the tenant knows it.
    pub id: String,
    /// Whose story it is, where it is not the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storyteller_id: Option<String>,
    /// The passages.
    pub segments: Vec<Segment>,
}

impl Transcript {
    /// The transcripts that an input brings itself.
    ///
    /// # Errors
    /// When they are not of the right shape or too much; the sentence names the place.
    pub fn given(input: &Value) -> Result<Vec<Self>, String> {
        let Some(given) = input.get("transcripts").filter(|given| !given.is_null()) else {
            return Ok(Vec::new());
        };
        let all: Vec<Self> = serde_json::from_value(given.clone())
            .map_err(|error| format!("input.transcripts: {error}"))?;
        Self::check(&all)?;
        Ok(all)
    }

    /// Whether these are not too much, and can be told apart.
    ///
    /// # Errors
    /// When they are or cannot.
    pub fn check(all: &[Self]) -> Result<(), String> {
        if all.len() > TRANSCRIPTS_MAX {
            return Err(format!("at most {TRANSCRIPTS_MAX} transcripts fit in one run"));
        }
        let segments: usize = all.iter().map(|one| one.segments.len()).sum();
        let bytes: usize = all.iter().map(Self::text_bytes).sum();
        if segments > SEGMENTS_MAX || bytes > TEXT_BYTES_MAX {
            return Err(format!(
                "transcripts may have {SEGMENTS_MAX} segments and {TEXT_BYTES_MAX} bytes together"
            ));
        }
        for (at, one) in all.iter().enumerate() {
            let speakers = one.segments.iter().map(|segment| segment.speaker.as_str());
            // They stand in the lines that a model is shown, and must not be able to make another.
            if !std::iter::once(one.id.as_str()).chain(speakers).all(is_name) {
                return Err(format!(
                    "input.transcripts[{at}]: an id or a speaker has at most {NAME_BYTES_MAX} bytes \
                     and no control characters"
                ));
            }
            if all[..at].iter().any(|earlier| earlier.id == one.id) {
                return Err(format!("input.transcripts[{at}].id stands there twice"));
            }
            let mut numbers: Vec<_> = one.segments.iter().map(|segment| segment.index).collect();
            numbers.sort_unstable();
            if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(format!("input.transcripts[{at}] has a segment index twice"));
            }
        }
        Ok(())
    }

    /// How much was said, and by whom, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.segments.iter().map(|one| one.text.len() + one.speaker.len()).sum()
    }

    /// The passage with this number.
    #[must_use]
    pub fn segment(&self, index: u32) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.index == index)
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Transcripts as a model is shown them: every line can be cited.
#[must_use]
pub fn shown(transcripts: &[Transcript]) -> String {
    let mut out = String::new();
    for transcript in transcripts {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "transcript {}", transcript.id);
        for segment in &transcript.segments {
            let text = segment.text.replace('\n', " ");
            let _ = writeln!(out, "[{}] {}: {}", segment.index, segment.speaker, text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_told_apart_or_is_too_much_is_refused() {
        let one = |id: &str| json!({"id": id, "segments": [{"index": 0, "text": "hello"}]});
        assert_eq!(Transcript::given(&json!({})).unwrap(), []);
        assert_eq!(Transcript::given(&json!({"transcripts": [one("a")]})).unwrap().len(), 1);
        let twice = json!({"transcripts": [one("a"), one("a")]});
        assert!(Transcript::given(&twice).unwrap_err().contains("twice"));
        let same = json!([{"index": 1, "text": "a"}, {"index": 1, "text": "b"}]);
        let same = json!({"transcripts": [{"id": "a", "segments": same}]});
        assert!(Transcript::given(&same).unwrap_err().contains("index twice"));
        for speaker in ["a\n[9] b", "a".repeat(257).as_str()] {
            let segments = json!([{"index": 1, "speaker": speaker, "text": "a"}]);
            let forged = json!({"transcripts": [{"id": "a", "segments": segments}]});
            assert!(Transcript::given(&forged).unwrap_err().contains("speaker"), "{speaker}");
        }
        let many: Vec<_> = (0..65).map(|at| one(&at.to_string())).collect();
        assert!(Transcript::given(&json!({"transcripts": many})).unwrap_err().contains("64"));
        assert!(Transcript::given(&json!({"transcripts": 7})).is_err());
    }
}
