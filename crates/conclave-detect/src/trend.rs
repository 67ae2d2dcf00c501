//! How the risk of a conversation moves: one small state, one update a message.
//!
//! **Invariant:** constant memory and constant time per message, whatever the length of the session.
//! **Invariant:** the state is plain data, so that it can be stored and taken up after a restart.

use conclave_core::Score;
use serde::{Deserialize, Serialize};

/// A message above this counts as risky, in hundredths.
const HIGH: u8 = 20;
/// This many risky messages in a row are an escalation.
const CONSECUTIVE: u32 = 3;
/// The least rise of each of the last steps of a climb.
const CLIMB_STEP: u8 = 5;
/// The least step that is a jump.
const SPIKE_STEP: u8 = 30;
/// What is kept of the accumulated risk at each message, in hundredths.
const KEPT: u32 = 85;
/// Accumulated risk from here on is an escalation, in ten-thousandths.
const ACCUMULATED: u32 = 9_000;
/// Accumulation speaks only after this many messages.
const ACCUMULATED_AFTER: u32 = 4;

/// The last messages read as one text are an escalation from this harm on, in hundredths: what each of
/// them leaves to the next stands together there.
const TOGETHER: u8 = 12;
/// So many of the last messages of a person are read as one text.
pub const READ_TOGETHER: usize = 3;

/// So many doubts of one conversation are remembered.
const DOUBTS_KEPT: usize = 4;
/// From this many doubts in one conversation on they are refused.
const DOUBTS_REFUSED: usize = 3;

/// Which rules of escalation hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Escalation {
    /// Three risky messages in a row.
    pub consecutive_high_risk: bool,
    /// The last three messages rise steadily.
    pub monotonic_increase: bool,
    /// One step is a jump.
    pub sudden_spike: bool,
    /// Many small risks add up.
    pub accumulated: bool,
    /// The last messages together ask for what none of them asks alone.
    pub together: bool,
}

impl Escalation {
    /// Whether any rule holds.
    #[must_use]
    pub const fn any(self) -> bool {
        self.consecutive_high_risk
            || self.monotonic_increase
            || self.sudden_spike
            || self.accumulated
            || self.together
    }

    /// What holds in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            consecutive_high_risk: self.consecutive_high_risk || other.consecutive_high_risk,
            monotonic_increase: self.monotonic_increase || other.monotonic_increase,
            sudden_spike: self.sudden_spike || other.sudden_spike,
            accumulated: self.accumulated || other.accumulated,
            together: self.together || other.together,
        }
    }
}

/// The risk of a conversation so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// How many messages were observed.
    pub messages: u32,
    /// How many of the latest messages were risky without a pause.
    pub streak: u32,
    /// The last risks, newest first, in hundredths.
    pub recent: [u8; 3],
    /// The highest risk so far, in hundredths.
    pub peak: u8,
    /// Risk added up over messages and slowly forgotten, in ten-thousandths.
    pub accumulated_risk: u32,
    /// The rules that hold at the latest message.
    pub now: Escalation,
    /// The rules that held at any message so far.
    pub ever: Escalation,
    /// Marks of the last messages that were in doubt, newest first; 0 stands for none. A mark and not a count,
    /// so that who sends the same words again is not doubted again.
    #[serde(default, skip_serializing_if = "are_none")]
    pub doubts: [u32; DOUBTS_KEPT],
}

fn are_none(doubts: &[u32; DOUBTS_KEPT]) -> bool {
    doubts.iter().all(|mark| *mark == 0)
}

/// A small mark of a text (FNV-1a), the same on every machine and never 0.
fn mark_of(text: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, mix).max(1)
}

impl Trend {
    /// Notes a message that is in doubt.
    pub fn note_doubt(&mut self, text: &str) {
        let mark = mark_of(text);
        if !self.doubts.contains(&mark) {
            self.doubts.rotate_right(1);
            self.doubts[0] = mark;
        }
    }

    /// Lets go of doubts about anything but these messages. People without a name who begin with the same
    /// words share what is remembered, and nobody answers for another's words.
    pub fn keep_doubts_about<'a>(&mut self, messages: impl IntoIterator<Item = &'a str>) {
        let known: Vec<u32> = messages.into_iter().map(mark_of).collect();
        for mark in &mut self.doubts {
            if !known.contains(mark) {
                *mark = 0;
            }
        }
        // Marks stand before gaps, so that the oldest is the one that is dropped.
        self.doubts.sort_by_key(|mark| *mark == 0);
    }

    /// Whether there were so many doubts that another is refused.
    #[must_use]
    pub fn refuses_doubts(&self) -> bool {
        self.doubts.iter().filter(|mark| **mark != 0).count() >= DOUBTS_REFUSED
    }

    /// Takes in one message's risk, the larger of harm and crisis, and the harm of the last
    /// [`READ_TOGETHER`] messages read as one text.
    pub fn observe(&mut self, risk: Score, together: Score) {
        let risk = risk.hundredths();
        let earlier = self.recent;
        self.recent = [risk, earlier[0], earlier[1]];
        self.messages = self.messages.saturating_add(1);
        self.streak = if risk > HIGH { self.streak.saturating_add(1) } else { 0 };
        self.peak = self.peak.max(risk);
        self.accumulated_risk = self.accumulated_risk * KEPT / 100 + u32::from(risk) * 100;
        self.now = self.escalation(earlier, together);
        self.ever = self.ever.or(self.now);
    }

    /// Whether the conversation has escalated at any message so far.
    #[must_use]
    pub const fn escalating(&self) -> bool {
        self.ever.any()
    }

    fn escalation(&self, earlier: [u8; 3], together: Score) -> Escalation {
        let [newest, middle, oldest] = self.recent;
        let climbs = |from: u8, to: u8| to >= from.saturating_add(CLIMB_STEP);
        Escalation {
            consecutive_high_risk: self.streak >= CONSECUTIVE,
            monotonic_increase: self.messages >= 3
                && climbs(oldest, middle)
                && climbs(middle, newest)
                && newest >= HIGH,
            sudden_spike: self.messages >= 2 && newest >= earlier[0].saturating_add(SPIKE_STEP),
            accumulated: self.messages >= ACCUMULATED_AFTER && self.accumulated_risk >= ACCUMULATED,
            together: self.messages >= 2 && together.hundredths() >= TOGETHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend_of(risks: &[u8]) -> Trend {
        let mut trend = Trend::default();
        for &risk in risks {
            trend.observe(Score::from_hundredths(risk), Score::ZERO);
        }
        trend
    }

    #[test]
    fn each_rule_fires_on_its_own_shape() {
        let shape = |risks: &[u8]| trend_of(risks).ever;
        assert!(shape(&[21, 22, 21]).consecutive_high_risk);
        assert!(!shape(&[21, 20, 21]).consecutive_high_risk);
        assert!(shape(&[5, 12, 20]).monotonic_increase);
        assert!(!shape(&[5, 12, 19]).monotonic_increase);
        assert!(!shape(&[12, 20]).monotonic_increase);
        assert!(shape(&[0, 30]).sudden_spike);
        assert!(!shape(&[0, 29]).sudden_spike);
        assert!(!shape(&[90]).sudden_spike);
        assert!(shape(&[18; 12]).accumulated);
        assert!(!shape(&[18; 3]).accumulated);
        assert!(!shape(&[8; 500]).any());
    }

    #[test]
    fn messages_that_are_harmless_alone_are_seen_together() {
        let mut trend = Trend::default();
        trend.observe(Score::ZERO, Score::from_hundredths(50));
        assert!(!trend.now.together, "one message is not several");
        trend.observe(Score::ZERO, Score::from_hundredths(11));
        assert!(!trend.now.together);
        trend.observe(Score::ZERO, Score::from_hundredths(12));
        assert!(trend.now.together && trend.escalating());
    }

    #[test]
    fn what_was_seen_stays_seen_but_now_is_now() {
        let trend = trend_of(&[0, 60, 0, 0]);
        assert!(trend.escalating());
        assert!(!trend.now.any());
    }

    #[test]
    fn the_third_doubt_is_refused_and_the_same_words_are_one() {
        let mut trend = Trend::default();
        for text in ["one", "one", "two", "one"] {
            trend.note_doubt(text);
            assert!(!trend.refuses_doubts(), "{text}");
        }
        trend.note_doubt("three");
        assert!(trend.refuses_doubts());
        let mut shared = trend;
        shared.keep_doubts_about(["hello", "two", "three"]);
        assert!(!shared.refuses_doubts(), "somebody else's words");
        shared.note_doubt("four");
        assert!(shared.refuses_doubts());
    }

    #[test]
    fn a_trend_stored_before_doubts_were_remembered_is_still_read() {
        let stored = serde_json::to_value(trend_of(&[5, 12])).unwrap();
        assert!(stored.get("doubts").is_none(), "{stored}");
        assert_eq!(serde_json::from_value::<Trend>(stored).unwrap(), trend_of(&[5, 12]));
    }

    #[test]
    fn a_stored_trend_goes_on_as_if_never_stored() {
        let mut stored = trend_of(&[5, 12]);
        let json = serde_json::to_string(&stored).unwrap();
        let mut taken_up: Trend = serde_json::from_str(&json).unwrap();
        stored.observe(Score::from_hundredths(40), Score::ZERO);
        taken_up.observe(Score::from_hundredths(40), Score::ZERO);
        assert_eq!(stored, taken_up);
        assert!(taken_up.escalating());
    }
}
