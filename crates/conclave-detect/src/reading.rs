//! What was seen in a text.

use crate::{AsReply, DriftMarks};
use conclave_core::{Category, Mode, Score, Threshold};
use serde::Serialize;
use std::collections::BTreeMap;

/// One thing seen in a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signal {
    /// How it was seen: `pattern`, `hint`, `combination`, `disguise`, `classifier`.
    pub kind: SignalKind,
    /// What it is about.
    pub category: Category,
    /// Where it starts in the original text, in Unicode scalar values.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
    /// How much it says, before combination.
    pub weight: Score,
    /// Which rule said it, e.g. `en/violence/kill-person`.
    pub source: String,
}

/// How a signal was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A pattern of a data file.
    Pattern,
    /// A pattern that ordinary texts show too: it never decides by itself.
    Hint,
    /// Several weaker things together.
    Combination,
    /// Text hidden by a disguise.
    Disguise,
    /// A trained model.
    Classifier,
}

/// A harmless frame that relaxes the threshold a little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// A story.
    Fiction,
    /// Reporting.
    News,
    /// Study.
    Academic,
    /// Engineering.
    Technical,
    /// Medicine.
    Medical,
    /// A game.
    Game,
}

impl Frame {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fiction => "fiction",
            Self::News => "news",
            Self::Academic => "academic",
            Self::Technical => "technical",
            Self::Medical => "medical",
            Self::Game => "game",
        }
    }
}

/// Everything seen in one text, and the scores that follow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// What the text asks for or intends against others; never feelings.
    pub harm: Score,
    /// The harm before how-to amplification: what the directives' floor reads.
    pub harm_unamplified: Score,
    /// Whether the person needs help.
    pub crisis: Score,
    /// Whether it tries to override instructions.
    pub injection: Score,
    /// The score of each category that was seen.
    pub categories: BTreeMap<Category, Score>,
    /// What made the scores.
    pub signals: Vec<Signal>,
    /// Harmless frames that were recognised.
    pub frames: Vec<Frame>,
    /// The mode it was read in.
    pub mode: Mode,
    /// The line in force, frames included.
    pub threshold: Threshold,
    /// Whether the floor of the directives stops it whatever the line.
    pub floor: bool,
    /// What a trained model says of it as a reply; absent for other texts and without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_reply: Option<AsReply>,
    /// How strongly it shows each kind of drift, in the order of [`crate::DriftKind::ALL`].
    #[serde(skip_serializing_if = "unmarked")]
    pub drift: DriftMarks,
    /// ISO 639-1, or `und`.
    pub language: String,
}

fn unmarked(marks: &DriftMarks) -> bool {
    *marks == DriftMarks::default()
}

impl Reading {
    /// Nothing seen.
    #[must_use]
    pub fn empty(mode: Mode) -> Self {
        Self {
            harm: Score::ZERO,
            harm_unamplified: Score::ZERO,
            crisis: Score::ZERO,
            injection: Score::ZERO,
            categories: BTreeMap::new(),
            signals: Vec::new(),
            frames: Vec::new(),
            mode,
            threshold: Threshold::for_mode(mode),
            floor: false,
            as_reply: None,
            drift: DriftMarks::default(),
            language: "und".into(),
        }
    }

    /// What it shows of slow movements, alone or together with what was said before it.
    #[must_use]
    pub fn marks_with(&self, together: Option<&Self>) -> DriftMarks {
        let together = together.map(|together| together.drift).unwrap_or_default();
        std::array::from_fn(|kind| self.drift[kind].max(together[kind]))
    }

    /// Whether the harm reaches the line in force or the floor.
    #[must_use]
    pub fn is_harmful(&self) -> bool {
        self.floor || self.threshold.blocks(self.harm)
    }

    /// The gravest harm category, for naming a directive.
    #[must_use]
    pub fn gravest(&self) -> Option<Category> {
        self.categories
            .iter()
            .filter(|(category, _)| !category.is_about_crisis() && !category.is_about_injection())
            .max_by(|a, b| a.1.get().total_cmp(&b.1.get()))
            .map(|(category, _)| *category)
    }
}
