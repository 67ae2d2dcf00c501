//! The seat of a trained classifier.
//!
//! **Invariant:** the detector works without one; a classifier alone never exceeds
//! [`CLASSIFIER_CAP`], so that it cannot reach the floor of the directives by itself.

use crate::{AsReply, DriftMarks};
use conclave_core::{Category, Score};

/// The most a classifier can say alone about harm, in hundredths.
pub const CLASSIFIER_CAP: u8 = 69;

/// What a classifier says about one text, in calibrated scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// What it asks for or intends against others.
    pub harm: Score,
    /// Whether the person needs help.
    pub crisis: Score,
    /// Whether it tries to override instructions.
    pub injection: Score,
    /// Whether it is a frame that is to make a model forget its rules, as harm.
    pub frame: Score,
    /// How strongly it shows each kind of drift.
    pub drift: DriftMarks,
    /// The likeliest kind of harm, if it is harmful at all.
    pub category: Category,
}

impl Estimate {
    /// The higher of each score; the kind of harm is that of the graver harm.
    #[must_use]
    pub fn graver(self, other: Self) -> Self {
        let category = if other.harm > self.harm { other.category } else { self.category };
        Self {
            harm: self.harm.max(other.harm),
            crisis: self.crisis.max(other.crisis),
            injection: self.injection.max(other.injection),
            frame: self.frame.max(other.frame),
            drift: std::array::from_fn(|kind| self.drift[kind].max(other.drift[kind])),
            category,
        }
    }
}

/// A trained model that reads folded texts; `language` is ISO 639-1 or `und`.
pub trait TextClassifier: Send + Sync {
    /// A short stable name; it stands in the source of its signals.
    fn name(&self) -> &'static str;
    /// Whether it may take milliseconds and more.
    fn may_be_slow(&self) -> bool {
        false
    }
    /// Scores one text of a person.
    fn text(&self, folded: &str, language: &str) -> Estimate;
    /// What is wrong with a reply in the light of what was asked.
    fn reply(&self, asked: &str, reply: &str, language: &str) -> AsReply;
    /// The same for whoever cannot wait, as good as it can be said at once.
    fn reply_at_once(&self, asked: &str, reply: &str, language: &str) -> AsReply {
        self.reply(asked, reply, language)
    }
}
