//! What a model would be shown of a conversation besides what the person asks now, read before it is shown.
//!
//! A client may bring back what was refused, in any role: as an earlier message, as a name, as the arguments of a
//! call, as the description of a tool. What is over its line is replaced by a note in what goes to the model, in this
//! turn and in every later one; what a tool brought and gives orders is marked as data.
//!
//! **Invariant:** no model is shown a text of the history that nobody has read. What could not be read in time is
//! replaced like what is over its line.
//! **Invariant:** the same text is read once by the same detector; what is kept of it are scores, no words.

use super::long_text::{graver, read_all};
use super::memory::RecentMap;
use conclave_core::{Mode, TenantId, Threshold};
use conclave_detect::{Detector, Reading, SignalKind};
use conclave_voice::{Language, data_of_tool, withheld_note};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a history is read at most. Only one that was never seen and is very long takes so much.
const READING_TIME_MAX: Duration = Duration::from_secs(3);
/// Of so many refused texts the panel is told; more say nothing new.
const REFUSED_MAX: usize = 8;
/// A text in a place where no prose is expected is read from so many words on, or so many unspaced letters.
const WORDS_MIN: usize = 3;
const UNSPACED_MIN: usize = 6;
/// From this score of the model of replies on, in hundredths, what an earlier reply says is what the request in it asks.
const REPLY_BEARS_OUT_FROM: u8 = 10;

/// Who a text of the history is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryOrigin {
    /// An earlier message of the person.
    Person,
    /// An earlier reply, as the client has it.
    Assistant,
    /// What a tool brought.
    Tool,
    /// A file that is text, in an earlier message or in the one that is answered.
    Document,
    /// A name, the arguments of an earlier call, or the description of a tool.
    Aside,
}

/// One text of the history.
#[derive(Clone, Debug)]
pub struct HistoryText {
    /// Who it is of.
    pub origin: HistoryOrigin,
    /// The words.
    pub text: String,
    /// What an earlier reply answered.
    pub asked: String,
}

/// A text that a model was not shown, and how it was read.
#[derive(Clone, Debug)]
pub struct RefusedText {
    /// The words.
    pub text: String,
    /// What they were read as; absent where nobody could read them in time.
    pub reading: Option<Arc<Reading>>,
}

/// What the history held that a model may not be shown as it was.
#[derive(Clone, Debug, Default)]
pub struct HistoryReading {
    /// One slot for each text of the content: what stands in its place.
    pub replacements: Vec<Option<String>>,
    /// What was refused.
    pub refused: Arc<[RefusedText]>,
    /// Whether a tool's words were marked as data.
    pub has_orders: bool,
}

impl HistoryReading {
    /// Whether a model is shown everything as it was.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.replacements.iter().all(Option::is_none)
    }
}

/// The lines a history is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryLines {
    pub mode: Mode,
    /// A tenant's own line of harm, where it is stricter.
    pub threshold: Option<Threshold>,
    /// Whether a doubt is refused like harm.
    pub refuses_doubts: bool,
    /// Whether attempts to override instructions are refused.
    pub refuses_injection: bool,
    /// Whether only what reaches the directives' floor is held back, because the tenant merely watches.
    pub floor_alone: bool,
    pub language: Language,
}

impl HistoryLines {
    fn refuses(&self, reading: &Reading) -> bool {
        if self.floor_alone {
            return reading.floor;
        }
        let mut reading = reading.clone();
        if let Some(own) = self.threshold {
            reading.threshold = reading.threshold.min(own);
        }
        let is_harmful = reading.is_harmful() && (self.refuses_doubts || !reading.is_doubt());
        is_harmful || (self.refuses_injection && reading.injection.is_injection())
    }
}

/// How texts of histories were read, by a digest of them.
#[derive(Default)]
pub struct KnownReadings(RecentMap<Option<Arc<Reading>>>);

/// Reads the texts of a history, with one slot for each text of the content: `None` for what is asked now and for what
/// is the tenant's.
pub(crate) fn read_history(
    detector: &Detector,
    known: &KnownReadings,
    tenant: &TenantId,
    texts: &[Option<HistoryText>],
    lines: &HistoryLines,
) -> HistoryReading {
    let started = Instant::now();
    let mut refused = Vec::new();
    let mut has_orders = false;
    let mut replacements = vec![None; texts.len()];
    // The newest first: they are what a model goes on from, should time run out.
    for (slot, one) in replacements.iter_mut().zip(texts).rev() {
        let Some(one) = one.as_ref().filter(|one| one.is_worth_reading()) else { continue };
        let key = one.digest(tenant, lines.mode);
        let reading = match known.0.get(key) {
            Some(reading) => reading,
            None if started.elapsed() > READING_TIME_MAX => {
                *slot = Some(one.note(lines.language));
                refused.push(RefusedText { text: one.text.clone(), reading: None });
                continue;
            }
            None => {
                let reading = one.read(detector, lines.mode);
                known.0.put(key, reading.clone());
                reading
            }
        };
        let Some(reading) = reading else { continue };
        let is_brought = matches!(one.origin, HistoryOrigin::Tool | HistoryOrigin::Document);
        let has_no_say = one.origin == HistoryOrigin::Tool || !lines.refuses(&reading);
        if is_brought && has_no_say {
            if reading.injection.is_injection() && !lines.floor_alone {
                has_orders = true;
                *slot = Some(data_of_tool(&without_orders(&one.text, &reading), lines.language));
            }
        } else if lines.refuses(&reading) {
            *slot = Some(one.note(lines.language));
            if refused.len() < REFUSED_MAX {
                refused.push(RefusedText { text: one.text.clone(), reading: Some(reading) });
            }
        }
    }
    HistoryReading { replacements, refused: refused.into(), has_orders }
}

impl HistoryText {
    /// What a text in a place where nobody writes prose says by a word or two is nothing.
    fn is_worth_reading(&self) -> bool {
        if self.origin != HistoryOrigin::Aside {
            return !self.text.trim().is_empty();
        }
        let is_word = |word: &&str| word.chars().filter(|one| one.is_alphabetic()).count() > 1;
        let unspaced = self.text.chars().filter(|one| !one.is_ascii() && one.is_alphabetic());
        // Signs between words are blanks here: a name may hold no others.
        let words = self.text.split(|one: char| !one.is_alphanumeric());
        words.filter(is_word).take(WORDS_MIN).count() >= WORDS_MIN
            || unspaced.take(UNSPACED_MIN).count() >= UNSPACED_MIN
    }

    /// How it is read; `None` where there is nothing a line could be about.
    fn read(&self, detector: &Detector, mode: Mode) -> Option<Arc<Reading>> {
        let spoken = match self.origin {
            // Names are written without blanks.
            HistoryOrigin::Aside => self.text.replace(['_', '-', '.'], " "),
            _ => self.text.clone(),
        };
        let mut reading = read_all(&spoken, |passage| detector.read(passage, mode));
        if self.origin == HistoryOrigin::Assistant && is_of_interest(&reading) {
            // An honest reply shares its words with what it declines, so that it is asked as a reply as well. What
            // tries to override instructions is no reply.
            let reply = detector.read_reply(&self.asked, &self.text, mode);
            let bears_out = reply
                .as_reply
                .as_ref()
                .is_none_or(|reply| reply.harm.hundredths() >= REPLY_BEARS_OUT_FROM);
            if !bears_out && !reading.injection.is_injection() && !reading.floor {
                return None;
            }
            reading = graver(reading, Reading { as_reply: None, ..reply });
        }
        is_of_interest(&reading).then(|| Arc::new(reading))
    }

    fn digest(&self, tenant: &TenantId, mode: Mode) -> [u8; 16] {
        let mut hash = Sha256::new();
        let kind = [self.origin as u8];
        for part in
            [tenant.as_str().as_bytes(), mode.as_str().as_bytes(), &kind, self.asked.as_bytes()]
        {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.update(self.text.as_bytes());
        let digest = hash.finalize();
        std::array::from_fn(|at| digest[at])
    }

    /// What a model is shown instead. The arguments of a call stay JSON, or a provider would refuse them.
    fn note(&self, language: Language) -> String {
        let is_object = self.text.trim_start().starts_with('{')
            && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&self.text)
                .is_ok();
        match self.origin {
            HistoryOrigin::Aside if is_object => r#"{"withheld":true}"#.to_owned(),
            // A name may hold letters and signs of ASCII only.
            HistoryOrigin::Aside => "withheld".to_owned(),
            _ => withheld_note(language).to_owned(),
        }
    }
}

/// Whether a stricter line than any could be about it.
fn is_of_interest(reading: &Reading) -> bool {
    reading.injection.is_injection() || Threshold::for_mode(Mode::ChildSafe).blocks(reading.harm)
}

/// The text without the sentences in which patterns see orders to a model.
fn without_orders(text: &str, reading: &Reading) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_end = |one: char| matches!(one, '.' | '!' | '?' | '\n' | '。' | '！' | '？');
    let mut left_out = vec![false; letters.len()];
    let seen = reading.signals.iter().filter(|signal| {
        signal.kind == SignalKind::Pattern && signal.category.is_about_injection()
    });
    for signal in seen.filter(|signal| signal.start < signal.end && signal.end <= letters.len()) {
        let before = letters[..signal.start].iter().rposition(|one| is_end(*one));
        let start = before.map_or(0, |at| at + 1);
        let after = letters[signal.end - 1..].iter().position(|one| is_end(*one));
        let end = after.map_or(letters.len(), |at| signal.end + at);
        left_out[start..end].fill(true);
    }
    let kept = letters.iter().zip(&left_out).filter(|(_, out)| !**out);
    kept.map(|(letter, _)| *letter).collect()
}
