//! The detector: compiled once, shared by all.

use crate::classifier::CLASSIFIER_CAP;
use crate::combine::{Scores, Seen};
use crate::pattern::{BUILTIN, Book};
use crate::sight::Sight;
use crate::{
    ConversationReading, DetectError, Explanation, Reading, Signal, SignalKind, TextClassifier,
    Trend,
};
use conclave_core::{Mode, Role, Score, Threshold};
use std::fmt;
use std::sync::Arc;

/// By how much a harmless frame relaxes the line, in hundredths.
pub(crate) const FRAME_RELAXATION: u8 = 10;

/// Reads texts. Cheap to share, `Send + Sync`; nothing is compiled per call.
pub struct Detector {
    book: Book,
    classifier: Option<Arc<dyn TextClassifier>>,
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detector")
            .field("rules", &self.book.rules.len())
            .field("words", &self.book.atoms.len())
            .finish_non_exhaustive()
    }
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
    pub fn with_extra(files: &[(&str, &str)]) -> Result<Self, DetectError> {
        let all: Vec<_> = BUILTIN.iter().chain(files).copied().collect();
        Ok(Self { book: Book::compile(&all)?, classifier: None })
    }

    /// Seats a trained classifier beside the patterns.
    #[must_use]
    pub fn with_classifier(mut self, classifier: Arc<dyn TextClassifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// Reads one text.
    #[must_use]
    pub fn read(&self, text: &str, mode: Mode) -> Reading {
        judge(&self.look(text), mode)
    }

    /// Reads a conversation: each user message, and how they move. Tool results count only for
    /// injection; what the tenant or the model said is not judged.
    #[must_use]
    pub fn read_conversation(&self, turns: &[(Role, &str)], mode: Mode) -> ConversationReading {
        let mut trend = Trend::default();
        let mut whole = Sight::default();
        let mut last = Reading::empty(mode);
        let mut offset = 0;
        for &(role, text) in turns {
            match role {
                Role::User => {
                    let sight = self.look(text);
                    last = judge(&sight, mode);
                    trend.observe(last.harm.max(last.crisis));
                    whole.absorb(sight, offset);
                    offset += text.chars().count() + 1;
                }
                Role::Tool => whole.absorb_injection(self.look(text)),
                Role::System | Role::Developer | Role::Assistant => {}
            }
        }
        let whole = judge(&whole, mode);
        ConversationReading { last, whole, escalating: trend.escalating(), trend }
    }

    /// Why a text is read as it is.
    #[must_use]
    pub fn explain(&self, text: &str, mode: Mode) -> Explanation {
        let sight = self.look(text);
        let reading = judge(&sight, mode);
        Explanation::of(text, &sight, reading)
    }

    fn look(&self, text: &str) -> Sight {
        let mut sight = Sight::of(&self.book, text);
        if let Some(classifier) = &self.classifier {
            let estimate = classifier.score(&sight.plain, sight.language);
            let end = text.chars().count();
            let cap = Score::from_hundredths(CLASSIFIER_CAP).get();
            sight.seen.extend(estimate.categories.into_iter().map(|(category, score)| Seen {
                signal: Signal {
                    kind: SignalKind::Classifier,
                    category,
                    start: 0,
                    end,
                    weight: Score::new(score.get().min(cap)),
                    source: classifier.name().to_owned(),
                },
                howto: false,
            }));
        }
        sight
    }
}

/// The reading that follows from what was seen.
fn judge(sight: &Sight, mode: Mode) -> Reading {
    let mut reading = Reading::empty(mode);
    Scores::of(&sight.seen).fill(&mut reading);
    reading.signals = sight.seen.iter().map(|one| one.signal.clone()).collect();
    reading.frames.clone_from(&sight.frames);
    reading.threshold = threshold(mode, &sight.frames);
    reading.language = if sight.language.is_empty() { "und" } else { sight.language }.to_owned();
    reading
}

/// The line in force: a frame relaxes it, except where children read.
fn threshold(mode: Mode, frames: &[crate::Frame]) -> Threshold {
    let line = Threshold::for_mode(mode);
    if mode == Mode::ChildSafe || frames.is_empty() {
        line
    } else {
        line.relaxed_by(FRAME_RELAXATION)
    }
}
