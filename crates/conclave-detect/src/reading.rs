//! What was seen in a text.

use crate::{AsReply, DriftMarks};
use conclave_core::{Category, Mode, Score, Threshold};
use serde::Serialize;
use std::collections::BTreeMap;

/// Under this harm, in hundredths, one signal alone is a doubt.
const DOUBT_UNDER: u8 = 60;
/// A pattern of this weight, in hundredths, leaves no doubt by itself.
const CRITICAL: u8 = 100;
/// A fainter signal of harm, in hundredths, supports no other: a classifier says something of every text.
const SUPPORTS_FROM: u8 = 20;
/// Over this score, in hundredths, a category is the subject of a text although no pattern names it.
const SUBJECT_OVER: u8 = 60;

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

impl Signal {
    /// Whether words of the text made it, as opposed to the text as a whole. Kinds are named one by one, so
    /// that a new kind supports nothing before somebody says that it does.
    const fn is_of_words(&self) -> bool {
        matches!(self.kind, SignalKind::Pattern | SignalKind::Combination | SignalKind::Disguise)
    }

    fn is_about_harm(&self) -> bool {
        !self.category.is_about_crisis() && !self.category.is_about_injection()
    }
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

/// A category at or over its decision line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NamedCategory {
    /// Which.
    pub category: Category,
    /// Its score.
    pub score: Score,
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

    /// Whether the harm reaches its line on the word of one signal alone, and not by much: a text that is
    /// answered with care and not refused.
    #[must_use]
    pub fn is_doubt(&self) -> bool {
        let is_critical = |one: &Signal| {
            one.is_of_words() && one.is_about_harm() && one.weight.hundredths() >= CRITICAL
        };
        self.is_harmful()
            && !self.floor
            && self.harm.hundredths() < DOUBT_UNDER
            && !self.signals.iter().any(is_critical)
            && !self.has_independent_signals()
    }

    /// Whether two signals of harm support each other: patterns at different words, or a pattern and a
    /// classifier. Whatever classifiers say is one signal.
    fn has_independent_signals(&self) -> bool {
        let counted =
            |one: &&Signal| one.is_about_harm() && one.weight.hundredths() >= SUPPORTS_FROM;
        let counted: Vec<_> = self.signals.iter().filter(counted).collect();
        let of_words: Vec<_> = counted.iter().filter(|one| one.is_of_words()).collect();
        // Spans are apart somewhere exactly where one ends before another begins.
        let first_end = of_words.iter().map(|one| one.end).min();
        let last_start = of_words.iter().map(|one| one.start).max();
        let are_apart = first_end.zip(last_start).is_some_and(|(end, start)| end <= start);
        let by_classifier = counted.iter().any(|one| one.kind == SignalKind::Classifier);
        are_apart || (by_classifier && !of_words.is_empty())
    }

    /// The categories that may be named to anybody: those at or over their decision line.
    pub fn named_categories(&self) -> impl Iterator<Item = NamedCategory> {
        let all = self
            .categories
            .iter()
            .map(|(category, score)| NamedCategory { category: *category, score: *score });
        all.filter(|one| self.is_over_line(one.category, one.score))
    }

    fn is_over_line(&self, category: Category, score: Score) -> bool {
        if category.is_about_crisis() || category.is_about_injection() {
            return score.hundredths() >= Score::DECISION_POINT;
        }
        self.threshold.blocks(score)
    }

    /// What a refusal may say that a harmful text is about: the gravest category at or over its line that a
    /// pattern names or whose score is high. `None` where that would be a guess.
    #[must_use]
    pub fn subject(&self) -> Option<Category> {
        let is_of_words = |category: Category| {
            self.signals.iter().any(|one| one.category == category && one.is_of_words())
        };
        self.named_categories()
            .filter(|one| !one.category.is_about_crisis() && !one.category.is_about_injection())
            .filter(|one| one.score.hundredths() > SUBJECT_OVER || is_of_words(one.category))
            .max_by(|a, b| a.score.get().total_cmp(&b.score.get()))
            .map(|one| one.category)
    }

    /// The gravest harm category, whether or not it may be named.
    #[must_use]
    pub fn gravest(&self) -> Option<Category> {
        self.categories
            .iter()
            .filter(|(category, _)| !category.is_about_crisis() && !category.is_about_injection())
            .max_by(|a, b| a.1.get().total_cmp(&b.1.get()))
            .map(|(category, _)| *category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignalKind::{Classifier, Combination, Pattern};

    fn signal(kind: SignalKind, weight: u8, start: usize) -> Signal {
        Signal {
            kind,
            category: Category::Violence,
            start,
            end: start + 4,
            weight: Score::from_hundredths(weight),
            source: "test".into(),
        }
    }

    fn harmful(harm: u8, signals: Vec<Signal>) -> Reading {
        let harm = Score::from_hundredths(harm);
        let categories = [(Category::Violence, harm)].into();
        Reading { harm, signals, categories, ..Reading::empty(Mode::Normal) }
    }

    #[test]
    fn one_signal_between_the_line_and_sixty_is_a_doubt() {
        let doubts = [
            harmful(30, vec![signal(Pattern, 30, 0)]),
            harmful(59, vec![signal(Classifier, 59, 0)]),
            harmful(45, vec![signal(Classifier, 45, 0), signal(Classifier, 40, 9)]),
            harmful(45, vec![signal(Pattern, 45, 0), signal(Combination, 30, 2)]),
            harmful(45, vec![signal(Pattern, 45, 0), signal(Classifier, 19, 0)]),
        ];
        for reading in doubts {
            assert!(reading.is_harmful() && reading.is_doubt(), "{reading:?}");
        }
    }

    #[test]
    fn what_is_certain_grave_or_seen_twice_is_no_doubt() {
        let certain = [
            harmful(29, vec![signal(Pattern, 29, 0)]),
            harmful(60, vec![signal(Pattern, 60, 0)]),
            harmful(50, vec![signal(Pattern, 100, 0)]),
            harmful(45, vec![signal(Pattern, 40, 0), signal(Pattern, 20, 4)]),
            harmful(45, vec![signal(Pattern, 40, 0), signal(Classifier, 20, 0)]),
            Reading { floor: true, ..harmful(45, vec![signal(Pattern, 45, 0)]) },
        ];
        for reading in certain {
            assert!(!reading.is_doubt(), "{reading:?}");
        }
    }

    #[test]
    fn signals_of_crisis_or_injection_do_not_support_one_of_harm() {
        let mut reading = harmful(45, vec![signal(Pattern, 45, 0), signal(Pattern, 90, 9)]);
        for category in [Category::CrisisDistress, Category::Jailbreak] {
            reading.signals[1].category = category;
            assert!(reading.is_doubt(), "{category:?}");
        }
    }

    #[test]
    fn a_category_is_named_from_its_decision_line_on() {
        let scores = [
            (Category::Violence, 30),
            (Category::Fraud, 29),
            (Category::CrisisDistress, 49),
            (Category::CrisisSuicide, 50),
            (Category::Injection, 49),
        ];
        let scored = scores.map(|(one, score)| (one, Score::from_hundredths(score)));
        let reading = Reading { categories: scored.into(), ..Reading::empty(Mode::Normal) };
        let named: Vec<_> = reading.named_categories().map(|one| one.category).collect();
        assert_eq!(named, [Category::Violence, Category::CrisisSuicide]);
    }

    #[test]
    fn a_subject_needs_a_pattern_or_a_high_score() {
        assert_eq!(harmful(55, vec![signal(Classifier, 55, 0)]).subject(), None);
        assert_eq!(harmful(60, vec![signal(Classifier, 60, 0)]).subject(), None);
        let sure = harmful(61, vec![signal(Classifier, 61, 0)]);
        assert_eq!(sure.subject(), Some(Category::Violence));
        let named = harmful(35, vec![signal(Pattern, 35, 0)]);
        assert_eq!(named.subject(), Some(Category::Violence));
        let mut other = harmful(35, vec![signal(Pattern, 35, 0)]);
        other.signals[0].category = Category::Fraud;
        assert_eq!(other.subject(), None, "another category's pattern");
    }
}
