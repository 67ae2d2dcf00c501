//! Appeals: a person disagrees with a decision, somebody else looks at it again, and both sides are counted.
//!
//! **Invariant:** a decision is appealed once. What was ruled is told to the person in words that somebody wrote
//! for them, or chose for them.

use crate::names::{Unfit, sentence};
use serde::{Deserialize, Serialize};

/// The most characters that a person may write, whatever their script.
pub const APPEAL_CHARS_MAX: usize = 4_000;
/// The longest words to the person who appealed, in bytes.
const ANSWER_BYTES_MAX: usize = 8_000;

/// What a person thinks was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppealConcern {
    /// There should have been an answer.
    ShouldHaveAnswered,
    /// The reply was harmful, or wrong.
    HarmfulOrWrong,
    /// The person was misunderstood.
    Misunderstood,
    /// Something else.
    Other,
}

impl AppealConcern {
    /// Every one.
    pub const ALL: [Self; 4] =
        [Self::ShouldHaveAnswered, Self::HarmfulOrWrong, Self::Misunderstood, Self::Other];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShouldHaveAnswered => "should_have_answered",
            Self::HarmfulOrWrong => "harmful_or_wrong",
            Self::Misunderstood => "misunderstood",
            Self::Other => "other",
        }
    }

    /// Finds the one with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// What had become of the reply that an appeal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppealedReply {
    /// It was not sent: where that was wrong, it was a false alarm.
    Withheld,
    /// It was sent: where that was wrong, something was missed.
    Sent,
}

impl AppealedReply {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Withheld => "withheld",
            Self::Sent => "sent",
        }
    }
}

/// How an appeal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppealOutcome {
    /// The person was right.
    Upheld,
    /// The person was right in part.
    UpheldInPart,
    /// The decision stands.
    Denied,
}

impl AppealOutcome {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Upheld, Self::UpheldInPart, Self::Denied];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upheld => "upheld",
            Self::UpheldInPart => "upheld_in_part",
            Self::Denied => "denied",
        }
    }

    /// Whether the decision was wrong, at least in part.
    #[must_use]
    pub const fn is_for_person(self) -> bool {
        matches!(self, Self::Upheld | Self::UpheldInPart)
    }
}

/// What whoever rules says to the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppealAnswer {
    /// What they found.
    pub outcome: AppealOutcome,
    /// Why, for the person to read.
    pub words: String,
}

impl AppealAnswer {
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        sentence("words", &self.words, 1, ANSWER_BYTES_MAX)
    }
}

/// How an appeal was ruled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppealRuling {
    /// What was found.
    pub outcome: AppealOutcome,
    /// Why, for the person to read.
    pub words: String,
    /// What the person is told in place of what they were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<String>,
    /// What whoever uses it must keep to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// When.
    pub decided_ms: u64,
}

/// A reply that somebody has mended after an appeal: what could be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppealCorrection {
    /// What was withheld, or sent.
    pub original_response: String,
    /// What had been objected to: names of the catalogue.
    pub safety_concerns: Vec<String>,
    /// What was said instead.
    pub corrected_response: String,
    /// Whether anything was learned from it; nothing is without a person.
    pub learning_applied: bool,
    /// When.
    pub timestamp_ms: u64,
}

/// A person disagrees with a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appeal {
    /// The decision.
    pub audit_id: String,
    /// The review in which somebody rules on it.
    pub review_id: String,
    /// What had become of the reply.
    pub about: AppealedReply,
    /// What the person thinks was wrong.
    pub concern: AppealConcern,
    /// What they say about it.
    pub words: String,
    /// The language they are answered in, as a BCP 47 tag.
    pub language: String,
    /// The key that filed it for them; absent where they did so themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filed_by: Option<String>,
    /// When.
    pub filed_ms: u64,
    /// By when somebody is to have ruled.
    pub due_ms: u64,
    /// What had been withheld or sent, kept for the correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// What had been objected to: names of the catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// How it was ruled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<AppealRuling>,
    /// When the corrected reply was first shown on the page of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_ms: Option<u64>,
}

impl Appeal {
    /// Whether somebody has written what the person is told instead.
    #[must_use]
    pub fn has_corrected_reply(&self) -> bool {
        self.ruling.as_ref().is_some_and(|ruling| ruling.corrected.is_some())
    }

    /// The correction that came of it, if there is one.
    #[must_use]
    pub fn correction(&self) -> Option<AppealCorrection> {
        let ruling = self.ruling.as_ref()?;
        Some(AppealCorrection {
            original_response: self.original.clone()?,
            safety_concerns: self.objections.clone(),
            corrected_response: ruling.corrected.clone()?,
            learning_applied: false,
            timestamp_ms: ruling.decided_ms,
        })
    }
}

/// How often appeals of one kind were ruled in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulingCount {
    /// The person was right.
    pub upheld: u64,
    /// The person was right in part.
    pub upheld_in_part: u64,
    /// The decision stands.
    pub denied: u64,
}

impl RulingCount {
    fn count(&mut self, outcome: AppealOutcome) {
        let one = match outcome {
            AppealOutcome::Upheld => &mut self.upheld,
            AppealOutcome::UpheldInPart => &mut self.upheld_in_part,
            AppealOutcome::Denied => &mut self.denied,
        };
        *one = one.saturating_add(1);
    }

    /// How many of the decisions were wrong, at least in part.
    #[must_use]
    pub const fn wrong(self) -> u64 {
        self.upheld.saturating_add(self.upheld_in_part)
    }

    /// How many were ruled on.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.wrong().saturating_add(self.denied)
    }
}

/// How the appeals of a tenant were ruled; it holds numbers alone, and outlives what people wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppealTally {
    /// About replies that were withheld.
    pub withheld: RulingCount,
    /// About replies that were sent.
    pub sent: RulingCount,
}

impl AppealTally {
    /// Counts a ruling.
    pub fn count(&mut self, about: AppealedReply, outcome: AppealOutcome) {
        match about {
            AppealedReply::Withheld => self.withheld.count(outcome),
            AppealedReply::Sent => self.sent.count(outcome),
        }
    }
}

/// The words of a person as they are kept: line ends of one kind, and nothing around them.
///
/// # Errors
/// When there are none, or too many.
pub fn appeal_words(text: &str) -> Result<String, Unfit> {
    // Longer texts are not looked at: no script needs more bytes for this many characters.
    let bytes_max = 2 * 4 * APPEAL_CHARS_MAX;
    let long = || Unfit::new("words", format!("must have 1 to {APPEAL_CHARS_MAX} characters"));
    if text.len() > bytes_max {
        return Err(long());
    }
    let words = text.replace("\r\n", "\n").replace('\r', "\n");
    let words = words.trim();
    if words.is_empty() || words.chars().count() > APPEAL_CHARS_MAX {
        return Err(long());
    }
    if words.contains('\0') {
        return Err(Unfit::new("words", "must not hold the character 0"));
    }
    Ok(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_characters_whatever_their_script() {
        for letter in ["a", "あ", "م", "👩"] {
            assert_eq!(appeal_words(&letter.repeat(4_000)).unwrap().chars().count(), 4_000);
            assert!(appeal_words(&letter.repeat(4_001)).is_err(), "{letter}");
        }
        for none in ["", "  \n\t ", "\u{0}", "a\u{0}b"] {
            assert!(appeal_words(none).is_err(), "{none:?}");
        }
        assert!(appeal_words(&"x".repeat(1 << 20)).is_err());
        let markup = "<script>alert(1)</script>\r\nline";
        assert_eq!(appeal_words(markup).unwrap(), "<script>alert(1)</script>\nline");
    }

    #[test]
    fn a_ruling_in_part_counts_as_a_mistake() {
        let mut tally = AppealTally::default();
        for outcome in AppealOutcome::ALL {
            tally.count(AppealedReply::Withheld, outcome);
        }
        tally.count(AppealedReply::Sent, AppealOutcome::Denied);
        assert_eq!((tally.withheld.wrong(), tally.withheld.all()), (2, 3));
        assert_eq!((tally.sent.wrong(), tally.sent.all()), (0, 1));
    }

    #[test]
    fn names_are_found_again() {
        for one in AppealConcern::ALL {
            assert_eq!(AppealConcern::parse(one.as_str()), Some(one));
        }
        assert_eq!(AppealConcern::parse("x"), None);
    }
}
