//! The seat of a trained classifier.
//!
//! **Invariant:** the detector works without one; a classifier alone never exceeds
//! [`CLASSIFIER_CAP`], so that it cannot reach the floor of the directives by itself.
//!
//! **Invariant:** a classifier that cannot read a text says so; nobody takes that for a clean text.

use crate::{AsReply, DriftMarks};
use conclave_core::{Category, Score};
use serde::Serialize;
use thiserror::Error;

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
    /// Whether a model that knows meaning was asked: a pattern that it does not share has met its words in another
    /// sense, unless it is nearly certain.
    pub knows_meaning: bool,
}

impl Estimate {
    /// What counts where the classifier failed: the worst it could have said of the text, and that the
    /// person may need help, so that the content is stopped and the person is still answered. It shows
    /// no drift, because drift is remembered of a person long after the failure was mended.
    #[must_use]
    pub fn worst() -> Self {
        Self {
            harm: Score::ONE,
            crisis: Score::ONE,
            injection: Score::ONE,
            frame: Score::ONE,
            drift: DriftMarks::default(),
            category: Category::Violence,
            knows_meaning: false,
        }
    }

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
            knows_meaning: self.knows_meaning && other.knows_meaning,
        }
    }
}

/// Why a classifier could not read a text; it never quotes the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ClassifierError(pub String);

/// How often one tier of a classifier was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierCount {
    /// The tier's name.
    pub tier: &'static str,
    /// Since the classifier was built.
    pub asked: u64,
}

/// What one tier of a classifier gave to one of its scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TierPart {
    /// The tier's name.
    pub tier: &'static str,
    /// What it gave to the sum, which may be against the score; `None` where it was not asked.
    pub part: Option<f32>,
}

/// How the tiers of a classifier made one of its scores of one text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TieredScore {
    /// Which score: `harm`, `crisis`, `injection`, or `frame`, a frame that is to make a model forget its rules.
    pub score: &'static str,
    /// What each tier gave, the quickest first.
    pub tiers: Vec<TierPart>,
    /// The score that the calibrated curve makes of the sum.
    pub value: Score,
}

/// A trained model that reads folded texts; `language` is ISO 639-1 or `und`.
pub trait TextClassifier: Send + Sync {
    /// A short stable name; it stands in the source of its signals.
    fn name(&self) -> &'static str;
    /// Whether it may take milliseconds and more.
    fn may_be_slow(&self) -> bool {
        false
    }
    /// How often each of its tiers was asked, the quickest first; empty where it does not count.
    fn tier_counts(&self) -> Vec<TierCount> {
        Vec::new()
    }
    /// How its tiers make each score of a text, of the first part of a long one; empty where it has no tiers.
    ///
    /// # Errors
    /// When it could not be read.
    fn tiered_scores(
        &self,
        _folded: &str,
        _language: &str,
    ) -> Result<Vec<TieredScore>, ClassifierError> {
        Ok(Vec::new())
    }
    /// Scores one text of a person.
    ///
    /// # Errors
    /// When it could not be read.
    fn text(&self, folded: &str, language: &str) -> Result<Estimate, ClassifierError>;
    /// What is wrong with a reply in the light of what was asked.
    ///
    /// # Errors
    /// When it could not be read.
    fn reply(&self, asked: &str, reply: &str, language: &str) -> Result<AsReply, ClassifierError>;
    /// The same for whoever cannot wait, as good as it can be said at once.
    ///
    /// # Errors
    /// When it could not be read.
    fn reply_at_once(
        &self,
        asked: &str,
        reply: &str,
        language: &str,
    ) -> Result<AsReply, ClassifierError> {
        self.reply(asked, reply, language)
    }
}
