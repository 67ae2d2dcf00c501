//! The tiers together, as the detector uses them.
//!
//! **Invariant:** the n-grams read every text, the encoder too unless the policy says never, the transformer only
//! where those two leave an answer open; nothing is loaded of a tier before it is first asked.
//!
//! **Invariant:** a tier that was asked and fails is an error, never the quicker tiers' word alone.

use crate::curve::{Calibration, Question, TierLogits, TierWeights, group};
use crate::drift;
use crate::sentences::sentences;
use crate::{ClassifyError, Features, Linear, SentenceEncoder, Transformer, Voice};
use conclave_core::{Category, Score};
use conclave_detect::{
    AsReply, ClassifierError, Estimate, Manner, MannerFault, TextClassifier, TierCount, TierPart,
    TieredScore,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The transformer cannot judge a text of which it knows less than this share.
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
/// The most that such a doubt says: just less than the decision point. Crisis in a few words is one as well
/// where n-grams alone see it: grief and danger share their words.
const DOUBT: f32 = 0.45;

/// A text that is less suspicious than this as a whole is not read sentence by sentence.
const SENTENCES_FROM: f32 = -4.0;

/// What the tiers are called in metrics and explanations.
const NGRAMS: &str = "ngrams";
const ENCODER: &str = "encoder";
const TRANSFORMER: &str = "transformer";

/// When the slower tiers are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowTiers {
    /// Never: nothing of them is loaded.
    Never,
    /// The encoder for every text, the transformer where the answer is open.
    #[default]
    Unsure,
    /// All of them for every text.
    Always,
}

/// All tiers with their calibration.
pub struct Ensemble {
    text: Linear<'static>,
    reply: Linear<'static>,
    drift: Linear<'static>,
    calibration: Calibration,
    slow: SlowTiers,
    encoder_bytes: &'static [u8],
    encoder: OnceLock<Result<SentenceEncoder, ClassifyError>>,
    transformer_bytes: &'static [u8],
    transformer: OnceLock<Result<Transformer, ClassifyError>>,
    asked: TiersAsked,
}

/// How often each tier was asked.
#[derive(Default)]
struct TiersAsked {
    ngrams: AtomicU64,
    encoder: AtomicU64,
    depth: AtomicU64,
}

impl std::fmt::Debug for Ensemble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ensemble").field("slow", &self.slow).finish_non_exhaustive()
    }
}

/// What the tiers say of one text.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextLogits {
    /// Harm of a text.
    pub request: TierLogits,
    /// A person who needs help.
    pub crisis: TierLogits,
    /// Overriding instructions.
    pub injection: TierLogits,
    /// A frame that is to make a model forget its rules.
    pub frame: TierLogits,
}

/// What the tiers say of one reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLogits {
    /// Harm, whatever the fault.
    pub harm: TierLogits,
    /// Each fault, in the order of [`MannerFault::ALL`].
    pub faults: [TierLogits; MannerFault::ALL.len()],
}

impl Ensemble {
    /// The models that are built in.
    ///
    /// # Errors
    /// When a built-in file is broken; a test makes sure that none is.
    pub fn builtin(slow: SlowTiers) -> Result<Self, ClassifyError> {
        let calibration = include_str!("../../../data/models/calibration.toml");
        Self::new(Calibration::parse(calibration)?, slow)
    }

    /// The built-in weights with another calibration, for measuring.
    ///
    /// # Errors
    /// When a built-in file is broken.
    pub fn new(calibration: Calibration, slow: SlowTiers) -> Result<Self, ClassifyError> {
        Ok(Self {
            text: Linear::parse(include_bytes!("../../../data/models/text.bin"))?,
            reply: Linear::parse(include_bytes!("../../../data/models/reply.bin"))?,
            drift: Linear::parse(include_bytes!("../../../data/models/drift.bin"))?,
            calibration,
            slow,
            encoder_bytes: include_bytes!("../../../data/models/encoder.bin"),
            encoder: OnceLock::new(),
            transformer_bytes: include_bytes!("../../../data/models/transformer.bin"),
            transformer: OnceLock::new(),
            asked: TiersAsked::default(),
        })
    }

    /// The encoder, which also tells how near two texts are to each other.
    ///
    /// # Errors
    /// When its built-in file is broken.
    pub fn encoder(&self) -> Result<&SentenceEncoder, ClassifyError> {
        let loaded = self.encoder.get_or_init(|| SentenceEncoder::parse(self.encoder_bytes));
        loaded.as_ref().map_err(Clone::clone)
    }

    /// The transformer that reads English in depth.
    ///
    /// # Errors
    /// When its built-in file is broken.
    pub fn transformer(&self) -> Result<&Transformer, ClassifyError> {
        let loaded = self.transformer.get_or_init(|| Transformer::parse(self.transformer_bytes));
        loaded.as_ref().map_err(Clone::clone)
    }

    fn ask_encoder_of_text(&self, text: &str) -> Result<NamedLogits<'_>, ClassifyError> {
        self.asked.encoder.fetch_add(1, Ordering::Relaxed);
        let encoder = self.encoder()?;
        Ok(NamedLogits { names: encoder.text_heads(), logits: encoder.text_logits(text)? })
    }

    fn ask_encoder_of_reply(
        &self,
        asked: &str,
        reply: &str,
    ) -> Result<NamedLogits<'_>, ClassifyError> {
        self.asked.encoder.fetch_add(1, Ordering::Relaxed);
        let encoder = self.encoder()?;
        let logits = encoder.reply_logits(asked, reply)?;
        Ok(NamedLogits { names: encoder.reply_heads(), logits })
    }

    /// What the transformer says of a text, or of a reply to what was asked; `None` where it does not know
    /// the language.
    fn ask_depth(
        &self,
        asked: &str,
        judged: &str,
        language: &str,
    ) -> Result<Option<NamedLogits<'_>>, ClassifyError> {
        if !matches!(language, "en" | "und") {
            return Ok(None);
        }
        let transformer = self.transformer()?;
        let logits = transformer.logits_if_known(asked, judged, UNDERSTANDS_FROM)?;
        if logits.is_some() {
            self.asked.depth.fetch_add(1, Ordering::Relaxed);
        }
        Ok(logits.map(|logits| NamedLogits { names: transformer.outputs(), logits }))
    }

    /// What the n-grams say of a text.
    #[must_use]
    pub fn ngram_logits(&self, folded: &str) -> Vec<f32> {
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

    /// What the tiers that were asked say of a text.
    fn text_logits(
        &self,
        ngrams: &[f32],
        encoder: Option<&NamedLogits<'_>>,
        depth: Option<&NamedLogits<'_>>,
    ) -> TextLogits {
        let said = |name| TierLogits {
            ngrams: named(self.text.outputs(), ngrams, name),
            encoder: encoder.map(|encoder| encoder.logit(name)),
            depth: depth.map(|depth| depth.logit(name)),
        };
        TextLogits {
            request: said("request"),
            crisis: said("crisis"),
            injection: said("injection"),
            frame: said("jailbreak"),
        }
    }

    /// Asks the tiers about a window, the slower ones as the policy has it.
    fn ask_tiers(
        &self,
        folded: &str,
        features: &[u32],
        language: &str,
    ) -> Result<WindowLogits<'_>, ClassifyError> {
        self.asked.ngrams.fetch_add(1, Ordering::Relaxed);
        let ngrams = self.with_sentences(folded, self.text.logits(features));
        let encoder = match self.slow {
            SlowTiers::Never => None,
            SlowTiers::Unsure | SlowTiers::Always => Some(self.ask_encoder_of_text(folded)?),
        };
        let mut logits = self.text_logits(&ngrams, encoder.as_ref(), None);
        if self.is_open(self.calibration.of_text(&logits), group(language, folded)) {
            let depth = self.ask_depth("", folded, language)?;
            logits = self.text_logits(&ngrams, encoder.as_ref(), depth.as_ref());
        }
        Ok(WindowLogits { ngrams, encoder, logits })
    }

    /// What a window says.
    fn window(&self, folded: &str, language: &str) -> Result<Estimate, ClassifyError> {
        let features = features_of(folded);
        let WindowLogits { ngrams, encoder, logits } =
            self.ask_tiers(folded, &features, language)?;
        let group = group(language, folded);
        let [harm, needs, overrides, frame] =
            self.calibration.of_text(&logits).map(|asked| asked.score(group));
        let few_words = folded.len() < CALL_BYTES_MIN;
        let is_doubt = few_words && encoder.is_none();
        Ok(Estimate {
            harm: Score::new(harm),
            crisis: Score::new(if is_doubt { needs.min(DOUBT) } else { needs }),
            injection: Score::new(if few_words { overrides.min(DOUBT) } else { overrides }),
            frame: Score::new(if folded.len() < FRAME_BYTES_MIN { 0.0 } else { frame }),
            drift: drift::marks(&self.drift.logits(&features)),
            knows_meaning: encoder.is_some(),
            category: match &encoder {
                Some(encoder) => likeliest_category(encoder.names, &encoder.logits),
                None => likeliest_category(self.text.outputs(), &ngrams),
            },
        })
    }

    /// Whether the transformer is to be asked: by the policy, or because an answer is open.
    fn is_open<const COUNT: usize>(&self, answers: [Asked<'_>; COUNT], group: &str) -> bool {
        match self.slow {
            SlowTiers::Never => false,
            SlowTiers::Always => true,
            SlowTiers::Unsure => {
                answers.iter().any(|asked| asked.question.is_open(asked.score(group)))
            }
        }
    }

    /// What the n-grams say of a reply.
    fn reply_ngrams(&self, asked: &str, reply: &str) -> Vec<f32> {
        self.asked.ngrams.fetch_add(1, Ordering::Relaxed);
        let mut features = Features::default();
        features.read(reply, Voice::Reply);
        features.read(asked, Voice::Asked);
        self.reply.logits(&features.unique())
    }

    /// What the tiers that were asked say of a reply.
    fn reply_logits(
        &self,
        ngrams: &[f32],
        encoder: Option<&NamedLogits<'_>>,
        depth: Option<&NamedLogits<'_>>,
    ) -> ReplyLogits {
        let said = |name| TierLogits {
            ngrams: named(self.reply.outputs(), ngrams, name),
            encoder: encoder.map(|encoder| encoder.logit(name)),
            depth: depth.map(|depth| depth.logit(name)),
        };
        ReplyLogits {
            harm: said("reply"),
            faults: MannerFault::ALL.map(|fault| said(fault.as_str())),
        }
    }

    /// What every tier says of a text, whatever the policy.
    ///
    /// # Errors
    /// When a tier failed.
    pub fn all_of_text(&self, folded: &str, language: &str) -> Result<TextLogits, ClassifyError> {
        let encoder = self.ask_encoder_of_text(folded)?;
        let depth = self.ask_depth("", folded, language)?;
        Ok(self.text_logits(&self.ngram_logits(folded), Some(&encoder), depth.as_ref()))
    }

    /// What every tier says of a reply, whatever the policy.
    ///
    /// # Errors
    /// When a tier failed.
    pub fn all_of_reply(
        &self,
        asked: &str,
        reply: &str,
        language: &str,
    ) -> Result<ReplyLogits, ClassifyError> {
        let encoder = self.ask_encoder_of_reply(asked, reply)?;
        let depth = self.ask_depth(asked, reply, language)?;
        Ok(self.reply_logits(&self.reply_ngrams(asked, reply), Some(&encoder), depth.as_ref()))
    }

    fn reply_scores(&self, group: &str, logits: &ReplyLogits) -> AsReply {
        AsReply {
            harm: Score::new(self.calibration.reply.score(group, &logits.harm)),
            manner: Manner::of(|fault| {
                let question = self.calibration.manner.get(fault.as_str());
                let logits = &logits.faults[fault as usize];
                question.map_or(Score::ONE, |question| Score::new(question.score(group, logits)))
            }),
        }
    }
}

/// What the tiers that were asked say of a window.
struct WindowLogits<'a> {
    ngrams: Vec<f32>,
    encoder: Option<NamedLogits<'a>>,
    logits: TextLogits,
}

/// One question with what the tiers said of it.
#[derive(Clone, Copy)]
struct Asked<'a> {
    question: &'a Question,
    logits: TierLogits,
}

impl Asked<'_> {
    fn score(&self, group: &str) -> f32 {
        self.question.score(group, &self.logits)
    }

    /// The same with what each tier gave to it.
    fn tiered(&self, score: &'static str, group: &str) -> TieredScore {
        let TierWeights { ngrams, encoder, depth } =
            self.question.joint(&self.logits).weights_of(group);
        let slower = |weight: f32, logit: Option<f32>| logit.map(|logit| weight * logit);
        let tiers = vec![
            TierPart { tier: NGRAMS, part: Some(ngrams * self.logits.ngrams) },
            TierPart { tier: ENCODER, part: slower(encoder, self.logits.encoder) },
            TierPart { tier: TRANSFORMER, part: slower(depth, self.logits.depth) },
        ];
        TieredScore { score, tiers, value: Score::new(self.score(group)) }
    }
}

impl Calibration {
    /// Harm, crisis, injection and frame of a text.
    const fn of_text(&self, logits: &TextLogits) -> [Asked<'_>; 4] {
        [
            Asked { question: &self.request, logits: logits.request },
            Asked { question: &self.crisis, logits: logits.crisis },
            Asked { question: &self.injection, logits: logits.injection },
            Asked { question: &self.frame, logits: logits.frame },
        ]
    }
}

impl TextClassifier for Ensemble {
    fn name(&self) -> &'static str {
        "trained"
    }

    fn may_be_slow(&self) -> bool {
        self.slow != SlowTiers::Never
    }

    fn tier_counts(&self) -> Vec<TierCount> {
        let count =
            |tier, asked: &AtomicU64| TierCount { tier, asked: asked.load(Ordering::Relaxed) };
        let TiersAsked { ngrams, encoder, depth } = &self.asked;
        vec![count(NGRAMS, ngrams), count(ENCODER, encoder), count(TRANSFORMER, depth)]
    }

    fn tiered_scores(
        &self,
        folded: &str,
        language: &str,
    ) -> Result<Vec<TieredScore>, ClassifierError> {
        let first = windows(folded).next().unwrap_or_default();
        let said = self.ask_tiers(first, &features_of(first), language)?;
        let asked = self.calibration.of_text(&said.logits);
        let named = ["harm", "crisis", "injection", "frame"].into_iter().zip(asked);
        Ok(named.map(|(name, asked)| asked.tiered(name, group(language, first))).collect())
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
        let logits = self.reply_logits(&self.reply_ngrams(asked, reply), None, None);
        Ok(self.reply_scores(group(language, reply), &logits))
    }

    fn reply(&self, asked: &str, reply: &str, language: &str) -> Result<AsReply, ClassifierError> {
        if self.slow == SlowTiers::Never {
            return self.reply_at_once(asked, reply, language);
        }
        let ngrams = self.reply_ngrams(asked, reply);
        let encoder = self.ask_encoder_of_reply(asked, reply)?;
        let group = group(language, reply);
        let mut logits = self.reply_logits(&ngrams, Some(&encoder), None);
        let harm = Asked { question: &self.calibration.reply, logits: logits.harm };
        if self.is_open([harm], group) {
            let depth = self.ask_depth(asked, reply, language)?;
            logits = self.reply_logits(&ngrams, Some(&encoder), depth.as_ref());
        }
        Ok(self.reply_scores(group, &logits))
    }
}

/// What one tier said of one text.
struct NamedLogits<'a> {
    names: &'a [String],
    logits: Vec<f32>,
}

impl NamedLogits<'_> {
    fn logit(&self, name: &str) -> f32 {
        named(self.names, &self.logits, name)
    }
}

fn features_of(text: &str) -> Vec<u32> {
    let mut features = Features::default();
    features.read(text, Voice::Text);
    features.unique()
}

/// The logit of this output. A model without it has not measured anything: that is not a number, which
/// every score takes for the worst.
fn named(outputs: &[String], logits: &[f32], name: &str) -> f32 {
    let found = outputs.iter().position(|output| output == name).and_then(|at| logits.get(at));
    found.copied().unwrap_or(f32::NAN)
}

/// The likeliest kind of harm.
fn likeliest_category(outputs: &[String], logits: &[f32]) -> Category {
    let named = outputs.iter().zip(logits);
    let kinds = named.filter_map(|(name, logit)| Some((Category::parse(name)?, *logit)));
    let harms =
        kinds.filter(|(category, _)| !category.is_about_crisis() && !category.is_about_injection());
    harms.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Category::Violence, |(category, _)| category)
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
        let models = Ensemble::builtin(SlowTiers::Always).unwrap();
        assert!(Transformer::parse(models.transformer_bytes).is_ok());
        let bomb = "how do i build a bomb and hide it in a school";
        let bread = "how do i bake bread and keep it fresh for school";
        let bomb = models.all_of_text(bomb, "en").unwrap().request;
        let bread = models.all_of_text(bread, "en").unwrap().request;
        assert!(bomb.ngrams > bread.ngrams);
        assert!(bomb.encoder > bread.encoder && bomb.depth > bread.depth);
        // The transformer knows English only.
        assert_eq!(models.all_of_text("วันนี้อากาศดีมาก", "th").unwrap().request.depth, None);
    }

    #[test]
    fn the_parts_of_a_score_are_told_and_a_tier_that_was_not_asked_gave_none() {
        for (slow, asked) in
            [(SlowTiers::Never, [true, false, false]), (SlowTiers::Always, [true; 3])]
        {
            let models = Ensemble::builtin(slow).unwrap();
            let text = "how do i build a bomb and hide it in a school";
            let scores = models.tiered_scores(text, "en").unwrap();
            let names: Vec<_> = scores.iter().map(|one| one.score).collect();
            assert_eq!(names, ["harm", "crisis", "injection", "frame"]);
            for one in &scores {
                let told: Vec<_> = one.tiers.iter().map(|part| part.part.is_some()).collect();
                assert_eq!(told, asked, "{one:?}");
            }
            assert_eq!(scores[0].value, models.text(text, "en").unwrap().harm);
        }
    }

    #[test]
    fn a_tier_that_cannot_be_loaded_is_an_error_and_never_a_clean_reading() {
        let broken = || Ensemble::builtin(SlowTiers::Always).unwrap();
        for broken in [
            Ensemble { transformer_bytes: b"no weights", ..broken() },
            Ensemble { encoder_bytes: b"no weights", ..broken() },
        ] {
            let why = ClassifierError::from(ClassifyError::NotAModel);
            assert_eq!(broken.text("how do i bake bread", "en"), Err(why.clone()));
            assert_eq!(broken.reply("how do i bake bread", "with flour", "en"), Err(why));
            assert!(broken.all_of_text("how do i bake bread", "en").is_err());
            assert!(broken.reply_at_once("how do i bake bread", "with flour", "en").is_ok());
            // Who never asks it does not notice.
            let alone = Ensemble { slow: SlowTiers::Never, ..broken };
            assert!(alone.text("how do i bake bread", "en").is_ok());
        }
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
