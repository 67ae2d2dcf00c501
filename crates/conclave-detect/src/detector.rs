//! The detector: compiled once, shared by all.

use crate::care::CareLines;
use crate::classifier::CLASSIFIER_CAP;
use crate::combine::{Scores, Seen, is_harm};
use crate::fold::plain_text;
use crate::language::identify;
use crate::pattern::{BUILTIN, Book};
use crate::sight::{PatternShares, Sight};
use crate::trend::READ_TOGETHER;
use crate::{
    AsReply, ClassifierError, ConversationReading, DetectError, DriftMarks, Estimate, Frame,
    Reading, ReadingExplanation, Signal, SignalKind, TextClassifier, Trend,
};
use conclave_core::{Category, Mode, Role, Score, Threshold};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A fainter word, in hundredths, counts in the scores but is not worth showing.
const FAINTEST: u8 = 2;
/// What a classifier's suspicion counts in a text about protection.
const CAREFUL_SHARE: f32 = 0.45;
/// Up to this length a scene with somebody speaking is a small stage.
const SCENE_BYTES_MAX: usize = 800;
/// The most that a classifier's word on a small stage's instructions counts, in hundredths.
const STAGE_DOUBT: u8 = 45;
/// What a pattern counts that met its words in another sense, as a model that knows meaning has it.
const OTHER_SENSE_SHARE: f32 = 0.2;
/// From this harm on, which a model that knows meaning finds, a pattern of harm counts in full.
const SAME_HARM_FROM: f32 = 0.3;
/// The same for crisis. A hard day shares its words with danger, and a person in danger may use few of them: the
/// suspicion that one in twenty ordinary texts raises is enough.
const SAME_CRISIS_FROM: f32 = 0.02;
/// A pattern that counts for less than this share is not amplified by asking how.
const HOWTO_SHARE: f32 = 0.5;
/// A pattern from here on, in hundredths, stands whatever a model finds.
const NEARLY_CERTAIN: u8 = 90;
/// By how much a harmless frame relaxes the line, in hundredths.
pub(crate) const FRAME_RELAXATION: u8 = 10;

/// Reads texts. Cheap to share, `Send + Sync`; nothing is compiled per call.
pub struct Detector {
    book: Book,
    care: CareLines,
    classifier: Option<Arc<dyn TextClassifier>>,
}

/// What a rule of a pattern file is about.
#[derive(Clone, Copy, Debug)]
pub struct RuleSummary<'a> {
    /// The name under which it stands in signals, e.g. `en/violence/kill-person`.
    pub source: &'a str,
    /// What its signals are about.
    pub categories: &'a [Category],
    /// Whether it never decides by itself.
    pub is_hint: bool,
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
        Self::with_own_files(&[])
    }

    /// The built-in files and files of one's own, given as (name, TOML text). Those of one's own may only make
    /// the detector see more.
    ///
    /// # Errors
    /// When one of the files cannot be used; the error names the file and the rule.
    pub fn with_own_files(own: &[(&str, &str)]) -> Result<Self, DetectError> {
        let book = Book::compile(BUILTIN, own)?;
        Ok(Self { book, care: CareLines::builtin()?, classifier: None })
    }

    /// Whether the person is not in crisis, but near enough that help is offered beside the reply.
    #[must_use]
    pub fn calls_for_care(&self, reading: &Reading) -> bool {
        let crisis = reading.crisis;
        !crisis.is_crisis() && crisis.hundredths() >= self.care.line_of(&reading.language)
    }

    /// Every rule it reads by, in the order of the files.
    pub fn rules(&self) -> impl Iterator<Item = RuleSummary<'_>> {
        self.book.rules.iter().map(|rule| RuleSummary {
            source: &rule.source,
            categories: &rule.categories,
            is_hint: rule.hint,
        })
    }

    /// Seats a trained classifier beside the patterns.
    #[must_use]
    pub fn with_classifier(mut self, classifier: Arc<dyn TextClassifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// Whether a reading may take milliseconds and more, because a slow classifier is asked.
    #[must_use]
    pub fn may_be_slow(&self) -> bool {
        self.classifier.as_ref().is_some_and(|classifier| classifier.may_be_slow())
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
        let mut said = Vec::new();
        for &(role, text) in turns {
            match role {
                Role::User => {
                    let sight = self.look(text);
                    last = judge(&sight, mode);
                    said.push(text);
                    let together = self.together(&said, mode).map(|reading| reading.harm);
                    trend.observe(last.harm.max(last.crisis), together.unwrap_or(Score::ZERO));
                    if last.is_doubt() {
                        trend.note_doubt(text);
                    }
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

    /// A person's last messages read as one text: what each leaves to the next. `None` for a single one.
    ///
    /// Slow movements are not read from it: message by message they are seen better, and no message counts twice.
    #[must_use]
    pub fn together(&self, said: &[&str], mode: Mode) -> Option<Reading> {
        let last = &said[said.len().saturating_sub(READ_TOGETHER)..];
        let read = || Reading { drift: DriftMarks::default(), ..self.read(&last.join(" "), mode) };
        (last.len() > 1).then(read)
    }

    /// Reads a reply in the light of what was asked. What a classifier of requests would say of it is not
    /// asked: a kind reply shares the words of what it declines.
    #[must_use]
    pub fn read_reply(&self, asked: &str, reply: &str, mode: Mode) -> Reading {
        self.as_reply(asked, reply, mode, |classifier, asked, reply, language| {
            classifier.reply(asked, reply, language)
        })
    }

    /// The same for whoever cannot wait: a slow second tier is not asked.
    #[must_use]
    pub fn read_reply_at_once(&self, asked: &str, reply: &str, mode: Mode) -> Reading {
        self.as_reply(asked, reply, mode, |classifier, asked, reply, language| {
            classifier.reply_at_once(asked, reply, language)
        })
    }

    fn as_reply(
        &self,
        asked: &str,
        reply: &str,
        mode: Mode,
        ask: impl Fn(&dyn TextClassifier, &str, &str, &str) -> Result<AsReply, ClassifierError>,
    ) -> Reading {
        if cfg!(feature = "blind") {
            return Reading::empty(mode);
        }
        let sight = Sight::of(&self.book, reply);
        let mut reading = judge(&sight, mode);
        reading.as_reply = self.classifier.as_ref().map(|classifier| {
            let asked = plain_text(asked);
            ask(&**classifier, &asked, &sight.plain, sight.language).unwrap_or_else(|error| {
                tell_of_failure(&**classifier, &error);
                AsReply::worst()
            })
        });
        reading
    }

    /// How many words of the patterns occur in a text that is folded already: the plain scan, without
    /// what follows from it.
    #[must_use]
    pub fn count_words(&self, folded: &str) -> usize {
        let mut count = 0;
        self.book.automata.each(folded, |_, _, _| count += 1);
        count
    }

    /// Why a text is read as it is.
    #[must_use]
    pub fn explain(&self, text: &str, mode: Mode) -> ReadingExplanation {
        let sight = self.look(text);
        let reading = judge(&sight, mode);
        let tiers = self.classifier.as_ref().map_or_else(Vec::new, |classifier| {
            let scores = classifier.tiered_scores(&sight.plain, sight.language);
            // That it failed already stands among the signals, as the worst it could have said.
            scores.unwrap_or_else(|_| Vec::new())
        });
        ReadingExplanation { tiers, ..ReadingExplanation::of(text, &sight, reading) }
    }

    fn look(&self, text: &str) -> Sight {
        if cfg!(feature = "blind") {
            return Sight::default();
        }
        let mut sight = Sight::of(&self.book, text);
        if let Some(classifier) = &self.classifier {
            let end = text.chars().count();
            // The words of a harm in a text about its prevention are no wish for it, in any view.
            let share = if sight.careful { CAREFUL_SHARE } else { 1.0 };
            let read = |text: &str, language: &str| {
                let mut reading = ClassifierReading::ask(&**classifier, text, language);
                if !reading.is_failed {
                    reading.estimate.harm = Score::new(reading.estimate.harm.get() * share);
                }
                reading
            };
            let first = read(&sight.plain, sight.language);
            let mut plain = first.estimate;
            if sight.spoken.is_some() && sight.plain.len() < SCENE_BYTES_MAX {
                // Who sets a small stage for somebody to speak gives the model a part, as people do.
                plain.injection = plain.injection.min(Score::from_hundredths(STAGE_DOUBT));
            }
            sight.drift = plain.drift;
            if plain.knows_meaning {
                let shares = PatternShares {
                    harm: sense_share(plain.harm.max(plain.frame), SAME_HARM_FROM),
                    crisis: sense_share(plain.crisis, SAME_CRISIS_FROM),
                };
                sight.pattern_shares = Some(shares);
                let builtin = sight.seen.iter_mut().filter(|seen| !seen.is_own);
                builtin.for_each(|seen| doubt_sense(seen, shares));
            }
            let mut signals = signals_of(&plain, &first.source, end);
            for (disguise, unmasked) in &sight.unmasked {
                let ClassifierReading { estimate: behind, source, .. } =
                    read(unmasked, identify(unmasked));
                if behind.harm > plain.harm
                    || behind.frame > plain.frame
                    || behind.crisis > plain.crisis
                    || behind.injection > plain.injection
                {
                    signals.extend(signals_of(
                        &behind,
                        &format!("{source} through {disguise}"),
                        end,
                    ));
                }
            }
            if let Some(spoken) = &sight.spoken {
                let ClassifierReading { estimate: within, source, .. } =
                    ClassifierReading::ask(&**classifier, spoken, identify(spoken));
                if Threshold::for_mode(Mode::Normal).blocks(within.harm) {
                    signals.extend(signals_of(
                        &within,
                        &format!("{source} on what is said within"),
                        end,
                    ));
                    // Who has it said in a story wants it all the same.
                    sight.frames.retain(|frame| !matches!(frame, Frame::Fiction | Frame::Game));
                }
            }
            let seen = |signal| Seen { signal, howto: false, is_own: false };
            sight.seen.extend(signals.into_iter().map(seen));
        }
        sight
    }
}

/// What a classifier said of a text, or the worst where it failed.
struct ClassifierReading {
    estimate: Estimate,
    /// Under which name it stands in the signals, so that a decision shows what failed.
    source: Cow<'static, str>,
    is_failed: bool,
}

impl ClassifierReading {
    fn ask(classifier: &dyn TextClassifier, text: &str, language: &str) -> Self {
        let name = classifier.name();
        match classifier.text(text, language) {
            Ok(estimate) => Self { estimate, source: name.into(), is_failed: false },
            Err(error) => {
                tell_of_failure(classifier, &error);
                let source = format!("{name} failed").into();
                Self { estimate: Estimate::worst(), source, is_failed: true }
            }
        }
    }
}

fn tell_of_failure(classifier: &dyn TextClassifier, error: &ClassifierError) {
    let name = classifier.name();
    tracing::error!(classifier = name, %error, "a text could not be read and counts as harmful");
}

/// What a classifier says, as signals over the whole text.
fn signals_of(estimate: &Estimate, source: &str, end: usize) -> Vec<Signal> {
    let framed = estimate.frame > estimate.harm;
    let harm = estimate.harm.max(estimate.frame).min(cap());
    let said = [
        (estimate.category, harm),
        (Category::CrisisDistress, estimate.crisis),
        (Category::Injection, estimate.injection),
    ];
    let source = |category| match category {
        Category::CrisisDistress | Category::Injection => source.to_owned(),
        _ if framed => format!("{source} on frames that drop the rules"),
        _ => source.to_owned(),
    };
    said.map(|(category, weight)| Signal {
        kind: SignalKind::Classifier,
        category,
        start: 0,
        end,
        weight,
        source: source(category),
    })
    .into()
}

/// What a pattern counts beside a model that knows meaning: the less the model finds, the likelier the pattern has
/// met its words in another sense.
fn sense_share(found: Score, same_from: f32) -> f32 {
    let agreement = (found.get() / same_from).min(1.0);
    OTHER_SENSE_SHARE + (1.0 - OTHER_SENSE_SHARE) * agreement
}

/// Counts a pattern for its share, unless it is nearly certain. Asking how is only worth more where the words are
/// meant.
fn doubt_sense(seen: &mut Seen, shares: PatternShares) {
    let Signal { kind, category, weight, .. } = &mut seen.signal;
    if *kind != SignalKind::Pattern || weight.hundredths() >= NEARLY_CERTAIN {
        return;
    }
    if is_harm(*category) {
        *weight = Score::new(weight.get() * shares.harm);
        seen.howto &= shares.harm >= HOWTO_SHARE;
    } else if category.is_about_crisis() {
        *weight = Score::new(weight.get() * shares.crisis);
    }
}

fn cap() -> Score {
    Score::from_hundredths(CLASSIFIER_CAP)
}

/// The reading that follows from what was seen.
fn judge(sight: &Sight, mode: Mode) -> Reading {
    let mut reading = Reading::empty(mode);
    Scores::of(&sight.seen).fill(&mut reading);
    let worth_saying = |signal: &&Signal| signal.weight.hundredths() >= FAINTEST;
    let signals = sight.seen.iter().map(|one| &one.signal);
    reading.signals = signals.filter(worth_saying).cloned().collect();
    reading.frames.clone_from(&sight.frames);
    reading.drift = sight.drift;
    reading.threshold = threshold(mode, &sight.frames);
    reading.language = if sight.language.is_empty() { "und" } else { sight.language }.to_owned();
    reading
}

/// The line in force: a frame relaxes it, except where children read.
fn threshold(mode: Mode, frames: &[Frame]) -> Threshold {
    let line = Threshold::for_mode(mode);
    if mode == Mode::ChildSafe || frames.is_empty() {
        line
    } else {
        line.relaxed_by(FRAME_RELAXATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows meaning, and finds so much harm and crisis in every text.
    struct Knowing {
        harm: u8,
        crisis: u8,
    }

    impl TextClassifier for Knowing {
        fn name(&self) -> &'static str {
            "knowing"
        }
        fn text(&self, _: &str, _: &str) -> Result<Estimate, ClassifierError> {
            Ok(Estimate {
                harm: Score::from_hundredths(self.harm),
                crisis: Score::from_hundredths(self.crisis),
                injection: Score::ZERO,
                frame: Score::ZERO,
                knows_meaning: true,
                ..Estimate::worst()
            })
        }
        fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
            Ok(AsReply::default())
        }
    }

    fn read(text: &str, harm: u8, crisis: u8) -> Reading {
        let detector = Detector::builtin().unwrap();
        detector.with_classifier(Arc::new(Knowing { harm, crisis })).read(text, Mode::Normal)
    }

    #[test]
    fn a_pattern_of_crisis_counts_for_little_where_a_model_finds_none() {
        let low = "i feel completely empty since the shop closed";
        assert!(read(low, 0, 0).crisis.hundredths() < 10);
        assert!(read(low, 0, 2).crisis.hundredths() >= 30);
    }

    #[test]
    fn a_nearly_certain_pattern_of_crisis_counts_whatever_a_model_finds() {
        assert!(read("i want to kill myself", 0, 0).crisis.is_crisis());
    }

    #[test]
    fn what_a_model_finds_of_harm_says_nothing_about_a_pattern_of_crisis() {
        assert!(
            read("i feel completely empty since the shop closed", 60, 0).crisis.hundredths() < 10
        );
    }
}
