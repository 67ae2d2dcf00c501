//! Both tiers together, as the detector uses them.
//!
//! **Invariant:** the second tier is asked only where the first is unsure, unless the policy says always or
//! never; nothing is loaded of it before it is first asked.
//!
//! **Invariant:** a second tier that was asked and fails is an error, never the first tier's word alone.

use crate::curve::{Calibration, Meeting, group};
use crate::drift;
use crate::sentences::sentences;
use crate::{ClassifyError, Features, Linear, Transformer, Voice};
use conclave_core::{Category, Score};
use conclave_detect::{
    AsReply, ClassifierError, Estimate, Manner, MannerFault, TextClassifier, TierCount,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The second tier cannot judge a text of which it knows less than this share.
const UNDERSTANDS_FROM: f32 = 0.8;
/// Longer texts are read in windows of so many bytes, and the gravest counts.
const WINDOW_BYTES: usize = 3000;
/// So many windows are read at most: the first ones and the last.
const WINDOWS_MAX: usize = 12;

/// In shorter texts injection stays a doubt until a pattern agrees.
const CALL_BYTES_MIN: usize = 40;
/// A frame that is to make a model forget its rules takes more words than this; shorter stages are set for
/// harmless plays as well.
const FRAME_BYTES_MIN: usize = 300;
/// The most that such a doubt says: just less than the decision point. Crisis in a few words is one as well:
/// grief and danger share their words, and any hint that a pattern sees makes it a call.
const DOUBT: f32 = 0.45;

/// A text that is less suspicious than this as a whole is not read sentence by sentence.
const SENTENCES_FROM: f32 = -4.0;

/// When the second tier is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Second {
    /// Never: nothing of it is loaded.
    Never,
    /// Where the first tier is unsure.
    #[default]
    Unsure,
    /// For every text.
    Always,
}

/// Both tiers with their calibration.
pub struct Ensemble {
    text: Linear<'static>,
    reply: Linear<'static>,
    drift: Linear<'static>,
    calibration: Calibration,
    second: Second,
    transformer_bytes: &'static [u8],
    transformer: OnceLock<Result<Transformer, ClassifyError>>,
    asked: TiersAsked,
}

/// How often each tier was asked.
#[derive(Default)]
struct TiersAsked {
    first: AtomicU64,
    second: AtomicU64,
}

impl std::fmt::Debug for Ensemble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ensemble").field("second", &self.second).finish_non_exhaustive()
    }
}

/// What the first tier says, and the second where it could.
pub type Pair = (f32, Option<f32>);

/// The logits of one text by both tiers.
#[derive(Clone, Debug, Default)]
pub struct Logits {
    /// Harm of a text.
    pub request: Pair,
    /// A person who needs help.
    pub crisis: Pair,
    /// Overriding instructions.
    pub injection: Pair,
    /// A frame that is to make a model forget its rules.
    pub frame: Pair,
}

/// The logits of one reply by both tiers.
#[derive(Clone, Debug)]
pub struct ReplyLogits {
    /// Harm, whatever the fault.
    pub harm: Pair,
    /// Each fault, in the order of [`MannerFault::ALL`].
    pub faults: [Pair; MannerFault::ALL.len()],
}

impl Ensemble {
    /// The models that are built in.
    ///
    /// # Errors
    /// When a built-in file is broken; a test makes sure that none is.
    pub fn builtin(second: Second) -> Result<Self, ClassifyError> {
        let calibration = include_str!("../../../data/models/calibration.toml");
        Self::new(Calibration::parse(calibration)?, second)
    }

    /// The built-in weights with another calibration, for measuring.
    ///
    /// # Errors
    /// When a built-in file is broken.
    pub fn new(calibration: Calibration, second: Second) -> Result<Self, ClassifyError> {
        Ok(Self {
            text: Linear::parse(include_bytes!("../../../data/models/text.bin"))?,
            reply: Linear::parse(include_bytes!("../../../data/models/reply.bin"))?,
            drift: Linear::parse(include_bytes!("../../../data/models/drift.bin"))?,
            calibration,
            second,
            transformer_bytes: include_bytes!("../../../data/models/transformer.bin"),
            transformer: OnceLock::new(),
            asked: TiersAsked::default(),
        })
    }

    fn transformer(&self) -> Result<&Transformer, ClassifyError> {
        let loaded = self.transformer.get_or_init(|| Transformer::parse(self.transformer_bytes));
        loaded.as_ref().map_err(Clone::clone)
    }

    /// What the second tier says of a text, or of a reply to what was asked; `None` where it does not
    /// know the language.
    fn ask_second(
        &self,
        asked: &str,
        judged: &str,
    ) -> Result<Option<SecondLogits<'_>>, ClassifyError> {
        let transformer = self.transformer()?;
        let Some(logits) = transformer.logits_if_known(asked, judged, UNDERSTANDS_FROM) else {
            return Ok(None);
        };
        self.asked.second.fetch_add(1, Ordering::Relaxed);
        if !logits.iter().all(|logit| logit.is_finite()) {
            return Err(ClassifyError::NotANumber);
        }
        Ok(Some(SecondLogits { outputs: transformer.outputs(), logits }))
    }

    fn unsure(&self, score: f32) -> bool {
        match self.second {
            Second::Never => false,
            Second::Always => true,
            Second::Unsure => {
                (self.calibration.unsure.0..=self.calibration.unsure.1).contains(&score)
            }
        }
    }

    fn output(&self, logits: &[f32], name: &str) -> f32 {
        at(self.text.outputs(), logits, name)
    }

    /// What a window says.
    fn window(&self, folded: &str, language: &str) -> Result<Estimate, ClassifyError> {
        self.asked.first.fetch_add(1, Ordering::Relaxed);
        let features = features_of(folded);
        let first = self.with_sentences(folded, self.text.logits(&features));
        let group = group(language, folded);
        let guess = self.scores(group, &first, None);
        let is_unsure = guess.iter().any(|score| self.unsure(*score));
        let second = if is_unsure { self.ask_second("", folded)? } else { None };
        let [harm, needs, overrides, frame] = match &second {
            None => guess,
            Some(_) => self.scores(group, &first, second.as_ref()),
        };
        let few_words = folded.len() < CALL_BYTES_MIN;
        Ok(Estimate {
            harm: Score::new(harm),
            crisis: Score::new(if few_words { needs.min(DOUBT) } else { needs }),
            injection: Score::new(if few_words { overrides.min(DOUBT) } else { overrides }),
            frame: Score::new(if folded.len() < FRAME_BYTES_MIN { 0.0 } else { frame }),
            drift: drift::marks(&self.drift.logits(&features)),
            category: self.category(&first),
        })
    }

    /// Harm, crisis, injection and frame, by the first tier or by both.
    fn scores(&self, group: &str, first: &[f32], second: Option<&SecondLogits<'_>>) -> [f32; 4] {
        let Calibration { request, crisis, injection, frame, .. } = &self.calibration;
        let score = |meeting: &Meeting, first_says: &str, second_says: &str| {
            let second = second.map(|second| second.output(second_says));
            meeting.score(group, self.output(first, first_says), second)
        };
        [
            score(request, "request", "request"),
            score(crisis, "crisis", "crisis"),
            score(injection, "injection", "injection"),
            score(frame, "jailbreak", "injection"),
        ]
    }

    /// The first tier's logits of a text.
    #[must_use]
    pub fn text_logits(&self, folded: &str) -> Vec<f32> {
        self.with_sentences(folded, self.text.logits(&features_of(folded)))
    }

    /// A request among friendly words is a request: each sentence of a suspicious text is also read alone.
    fn with_sentences(&self, folded: &str, mut logits: Vec<f32>) -> Vec<f32> {
        let at = self.text.outputs().iter().position(|output| output == "request");
        if let Some(at) = at
            && logits[at] > SENTENCES_FROM
        {
            for sentence in sentences(folded) {
                let alone = self.text.logit_of(&features_of(sentence), at);
                logits[at] = logits[at].max(alone);
            }
        }
        logits
    }

    /// The first tier's logits of a reply.
    fn reply_logits(&self, asked: &str, reply: &str) -> Vec<f32> {
        self.asked.first.fetch_add(1, Ordering::Relaxed);
        let mut features = Features::default();
        features.read(reply, Voice::Reply);
        features.read(asked, Voice::Asked);
        self.reply.logits(&features.unique())
    }

    /// What both tiers say of a reply by the name of the output, the second where it was asked.
    fn reply_output(&self, first: &[f32], second: Option<&SecondLogits<'_>>, name: &str) -> Pair {
        (at(self.reply.outputs(), first, name), second.map(|second| second.output(name)))
    }

    /// Both tiers' logits of a text, the second asked whatever the policy.
    ///
    /// # Errors
    /// When the second tier failed.
    pub fn both(&self, folded: &str) -> Result<Logits, ClassifyError> {
        let first = self.text_logits(folded);
        let second = self.ask_second("", folded)?;
        let second = |name| second.as_ref().map(|second| second.output(name));
        let pair = |name| (self.output(&first, name), second(name));
        Ok(Logits {
            request: pair("request"),
            crisis: pair("crisis"),
            injection: pair("injection"),
            frame: (self.output(&first, "jailbreak"), second("injection")),
        })
    }

    /// Both tiers' logits of a reply, the second asked whatever the policy.
    ///
    /// # Errors
    /// When the second tier failed.
    pub fn both_of_reply(&self, asked: &str, reply: &str) -> Result<ReplyLogits, ClassifyError> {
        let first = self.reply_logits(asked, reply);
        let second = self.ask_second(asked, reply)?;
        let said = |name| self.reply_output(&first, second.as_ref(), name);
        let faults = MannerFault::ALL.map(|fault| said(fault.as_str()));
        Ok(ReplyLogits { harm: said("reply"), faults })
    }

    /// The scores of a reply, by the first tier or by both.
    fn reply_scores(
        &self,
        group: &str,
        first: &[f32],
        second: Option<&SecondLogits<'_>>,
    ) -> AsReply {
        let score = |meeting: &Meeting, name| {
            let (first, second) = self.reply_output(first, second, name);
            Score::new(meeting.score(group, first, second))
        };
        let meeting = |fault: MannerFault| self.calibration.manner.get(fault.as_str());
        AsReply {
            harm: score(&self.calibration.reply, "reply"),
            manner: Manner::of(|fault| {
                meeting(fault).map_or(Score::ZERO, |meeting| score(meeting, fault.as_str()))
            }),
        }
    }

    /// The likeliest kind of harm, as the first tier has it.
    fn category(&self, logits: &[f32]) -> Category {
        let named = self.text.outputs().iter().zip(logits);
        let kinds = named.filter_map(|(name, logit)| Some((Category::parse(name)?, *logit)));
        let harms = kinds
            .filter(|(category, _)| !category.is_about_crisis() && !category.is_about_injection());
        harms
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(Category::Violence, |(category, _)| category)
    }
}

impl TextClassifier for Ensemble {
    fn name(&self) -> &'static str {
        "trained"
    }

    fn may_be_slow(&self) -> bool {
        self.second != Second::Never
    }

    fn tier_counts(&self) -> Vec<TierCount> {
        let count =
            |tier, asked: &AtomicU64| TierCount { tier, asked: asked.load(Ordering::Relaxed) };
        vec![count("first", &self.asked.first), count("second", &self.asked.second)]
    }

    fn text(&self, folded: &str, language: &str) -> Result<Estimate, ClassifierError> {
        let mut readings = windows(folded).map(|window| self.window(window, language));
        let first = readings.next().unwrap_or_else(|| self.window("", language))?;
        let gravest = readings
            .try_fold(first, |gravest, reading| Ok::<_, ClassifyError>(gravest.graver(reading?)))?;
        Ok(gravest)
    }

    fn reply_at_once(
        &self,
        asked: &str,
        reply: &str,
        language: &str,
    ) -> Result<AsReply, ClassifierError> {
        let first = self.reply_logits(asked, reply);
        Ok(self.reply_scores(group(language, reply), &first, None))
    }

    fn reply(&self, asked: &str, reply: &str, language: &str) -> Result<AsReply, ClassifierError> {
        let first = self.reply_logits(asked, reply);
        let group = group(language, reply);
        let guess = self.reply_scores(group, &first, None);
        let doubtful = |score: Score| self.unsure(score.get());
        let faults = MannerFault::ALL.map(|fault| guess.manner.shows(fault));
        if !doubtful(guess.harm) && !faults.into_iter().any(doubtful) {
            return Ok(guess);
        }
        Ok(match self.ask_second(asked, reply)? {
            None => guess,
            second => self.reply_scores(group, &first, second.as_ref()),
        })
    }
}

/// What the second tier said of one text.
struct SecondLogits<'a> {
    outputs: &'a [String],
    logits: Vec<f32>,
}

impl SecondLogits<'_> {
    fn output(&self, name: &str) -> f32 {
        at(self.outputs, &self.logits, name)
    }
}

fn features_of(text: &str) -> Vec<u32> {
    let mut features = Features::default();
    features.read(text, Voice::Text);
    features.unique()
}

/// The logit of this output. A model without it has not measured anything: that is not a number, which
/// every score takes for the worst.
fn at(outputs: &[String], logits: &[f32], name: &str) -> f32 {
    let found = outputs.iter().position(|output| output == name).and_then(|at| logits.get(at));
    found.copied().unwrap_or(f32::NAN)
}

/// The text, or pieces of it with some overlap where it is long.
fn windows(text: &str) -> impl Iterator<Item = &str> {
    let step = WINDOW_BYTES * 5 / 6;
    let count =
        if text.len() <= WINDOW_BYTES { 1 } else { (text.len() - WINDOW_BYTES).div_ceil(step) + 1 };
    let wanted = move |at: &usize| *at < WINDOWS_MAX - 1 || at + 1 == count;
    (0..count).filter(wanted).map(move |at| {
        let start = text.floor_char_boundary(at * step);
        let end = text.floor_char_boundary((start + WINDOW_BYTES).min(text.len()));
        &text[start..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_built_in_can_be_read() {
        let models = Ensemble::builtin(Second::Always).unwrap();
        assert!(Transformer::parse(models.transformer_bytes).is_ok());
        let bomb = models.both("how do i build a bomb and hide it in a school").unwrap();
        let bread = models.both("how do i bake bread and keep it fresh for school").unwrap();
        assert!(bomb.request.0 > bread.request.0 && bomb.request.1 > bread.request.1);
        // Its vocabulary has no Thai.
        assert_eq!(models.both("วันนี้อากาศดีมาก").unwrap().request.1, None);
    }

    #[test]
    fn a_second_tier_that_cannot_be_loaded_is_an_error_and_never_a_clean_reading() {
        let broken = Ensemble {
            transformer_bytes: b"no weights",
            ..Ensemble::builtin(Second::Always).unwrap()
        };
        let why = ClassifierError::from(ClassifyError::NotAModel);
        assert_eq!(broken.text("how do i bake bread", "en"), Err(why.clone()));
        assert_eq!(broken.reply("how do i bake bread", "with flour", "en"), Err(why));
        assert!(broken.both("how do i bake bread").is_err());
        assert!(broken.reply_at_once("how do i bake bread", "with flour", "en").is_ok());
        // Who never asks it does not notice.
        let alone = Ensemble { second: Second::Never, ..broken };
        assert!(alone.text("how do i bake bread", "en").is_ok());
    }

    #[test]
    fn long_texts_are_read_at_both_ends_and_bounded() {
        assert_eq!(windows("").count(), 1);
        assert_eq!(windows("short").collect::<Vec<_>>(), ["short"]);
        let long = "あ".repeat(200_000);
        let pieces: Vec<_> = windows(&long).collect();
        assert_eq!(pieces.len(), WINDOWS_MAX);
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= WINDOW_BYTES));
        let middle = "x".repeat(4000);
        assert_eq!(windows(&middle).map(str::len).collect::<Vec<_>>(), [3000, 1500]);
    }
}
