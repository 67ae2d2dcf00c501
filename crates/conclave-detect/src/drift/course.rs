//! Where one person stands: levels that rise with what they say and fall with time.

use super::{DriftAction, DriftAlert, DriftEvidence, DriftKind, DriftMarks, DriftState};
use conclave_core::Score;
use serde::{Deserialize, Serialize};

/// A message that shows a kind less than this is no evidence, in hundredths.
const SHOWN_FROM: u8 = 40;
/// What an ordinary message shows of any kind: so much of every mark does not count, in hundredths. Without it a level
/// would creep up in whoever talks for long.
const ORDINARY: u32 = 20;
/// What is kept of a level at each message, in hundredths.
const KEPT_A_MESSAGE: u32 = 80;
/// What is kept of a level each day, in hundredths: half of it is gone after two weeks.
const KEPT_A_DAY: u32 = 95;
/// After so many days nothing is left.
const FORGOTTEN_DAYS: u64 = 180;
/// A level from here on is yellow, in hundredths of a clear message.
const YELLOW: u32 = 105;
/// A level from here on is red.
const RED: u32 = 180;
/// A level cannot rise further, so that it can come down again.
const LEVEL_MAX: u32 = 300;
/// So many messages must have shown it.
const EVIDENCE_MIN: usize = 3;
/// So many are kept.
const EVIDENCE_MAX: usize = 5;
/// Longer quotes are cut.
const QUOTE_CHARS_MAX: usize = 160;
const DAY_MS: u64 = 86_400_000;

/// Where one person stands in each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// How many messages were observed.
    pub messages: u32,
    /// When the last one was, in milliseconds since the Unix epoch.
    pub updated_ms: u64,
    tracks: [Track; 4],
}

/// One kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Track {
    level: u32,
    evidence: Vec<DriftEvidence>,
}

/// One message as it enters the course.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What was said.
    pub text: &'a str,
    /// What it shows.
    pub marks: DriftMarks,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// The decision in which it was said.
    pub audit_id: &'a str,
}

impl Course {
    /// Takes in one message.
    pub fn observe(&mut self, message: &Observed<'_>) {
        let days = message.timestamp_ms.saturating_sub(self.updated_ms) / DAY_MS;
        for (track, mark) in self.tracks.iter_mut().zip(message.marks) {
            track.age(if self.messages == 0 { 0 } else { days });
            track.add(mark, message);
        }
        self.messages = self.messages.saturating_add(1);
        self.updated_ms = self.updated_ms.max(message.timestamp_ms);
    }

    /// How far the furthest kind has gone.
    #[must_use]
    pub fn state(&self) -> DriftState {
        self.tracks.iter().map(Track::state).max().unwrap_or_default()
    }

    /// Whether nothing at all speaks for a drift, be it far from an alert.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.tracks.iter().all(|track| track.level == 0)
    }

    /// Every kind that is not green, the furthest first.
    #[must_use]
    pub fn alerts(&self) -> Vec<DriftAlert> {
        let mut found: Vec<_> = DriftKind::ALL.into_iter().zip(&self.tracks).collect();
        found.retain(|(_, track)| track.state() > DriftState::Green);
        found.sort_by_key(|(_, track)| std::cmp::Reverse(track.level));
        found.into_iter().map(|(kind, track)| track.alert(kind)).collect()
    }
}

impl Track {
    fn age(&mut self, days: u64) {
        if days >= FORGOTTEN_DAYS {
            *self = Self::default();
        }
        for _ in 0..days.min(FORGOTTEN_DAYS) {
            self.level = self.level * KEPT_A_DAY / 100;
        }
    }

    fn add(&mut self, mark: Score, message: &Observed<'_>) {
        let kept = self.level * KEPT_A_MESSAGE / 100 + u32::from(mark.hundredths());
        self.level = kept.saturating_sub(ORDINARY).min(LEVEL_MAX);
        if self.level == 0 {
            // What came to nothing is no evidence of what may come later.
            self.evidence.clear();
        }
        if mark.hundredths() >= SHOWN_FROM {
            if self.evidence.len() == EVIDENCE_MAX {
                self.evidence.remove(0);
            }
            self.evidence.push(evidence(message));
        }
    }

    fn state(&self) -> DriftState {
        match self.level {
            _ if self.evidence.len() < EVIDENCE_MIN => DriftState::Green,
            RED.. => DriftState::Red,
            YELLOW.. => DriftState::Yellow,
            _ => DriftState::Green,
        }
    }

    fn alert(&self, kind: DriftKind) -> DriftAlert {
        let state = self.state();
        DriftAlert {
            pattern: kind,
            state,
            confidence: Score::from_hundredths(
                u8::try_from((self.level * 100 / (RED + YELLOW / 2)).min(99)).unwrap_or(99),
            ),
            historical_evidence: self.evidence.clone(),
            recommended_action: match (state, kind) {
                (DriftState::Red, DriftKind::Escalation | DriftKind::Manipulation) => {
                    DriftAction::Escalate
                }
                (DriftState::Red, DriftKind::Isolation | DriftKind::Dependency) => {
                    DriftAction::ResourceOffer
                }
                _ => DriftAction::GentleCheckIn,
            },
        }
    }
}

fn evidence(message: &Observed<'_>) -> DriftEvidence {
    let quote: String = message.text.chars().take(QUOTE_CHARS_MAX).collect();
    DriftEvidence {
        audit_id: message.audit_id.to_owned(),
        timestamp_ms: message.timestamp_ms,
        start: 0,
        end: quote.chars().count(),
        quote,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, marks: [u8; 4], day: u64) -> Observed<'_> {
        Observed {
            text,
            marks: marks.map(Score::from_hundredths),
            timestamp_ms: 1_000 + day * DAY_MS,
            audit_id: "a",
        }
    }

    fn after(messages: &[Observed<'_>]) -> Course {
        let mut course = Course::default();
        messages.iter().for_each(|message| course.observe(message));
        course
    }

    #[test]
    fn one_sentence_is_no_drift_and_several_are() {
        let lonely = said("stayed in again", [90, 0, 0, 0], 0);
        assert_eq!(after(&[lonely]).state(), DriftState::Green);
        assert_eq!(after(&[lonely; 2]).state(), DriftState::Green);
        assert_eq!(after(&[lonely; 3]).state(), DriftState::Yellow);
        let red = after(&[lonely; 5]);
        assert_eq!(red.state(), DriftState::Red);
        let alerts = red.alerts();
        assert_eq!(alerts.len(), 1);
        assert_eq!(alerts[0].pattern, DriftKind::Isolation);
        assert_eq!(alerts[0].recommended_action, DriftAction::ResourceOffer);
        assert!(alerts[0].historical_evidence.iter().all(|one| one.quote == "stayed in again"));
    }

    #[test]
    fn it_fades_with_other_talk_and_with_time() {
        let angry = said("he will see", [0, 90, 0, 0], 0);
        let calm = said("nice weather", [0; 4], 0);
        let mut course = after(&[angry; 3]);
        (0..6).for_each(|_| course.observe(&calm));
        assert_eq!(course.state(), DriftState::Green);
        let mut course = after(&[angry; 5]);
        assert_eq!(course.state(), DriftState::Red);
        course.observe(&said("nice weather", [0; 4], 30));
        assert_eq!(course.state(), DriftState::Green);
        course.observe(&said("nice weather", [0; 4], 600));
        assert!(course.tracks[1].evidence.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_state_survives_storing() {
        let long = "あ".repeat(100_000);
        let message = said(&long, [100; 4], 0);
        let course = after(&vec![message; 1_000]);
        let stored = serde_json::to_string(&course).unwrap();
        assert!(stored.len() < 20_000, "{}", stored.len());
        assert_eq!(serde_json::from_str::<Course>(&stored).unwrap(), course);
    }
}
