//! A conversation that runs away: refused again and again, or spending too fast.

use conclave_core::MicroUsd;
use conclave_govern::Breaker;

/// How long things are counted, and how long a conversation is stopped.
pub const RUNAWAY_WINDOW_MS: u64 = 60_000;

/// What a conversation did within the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runaway {
    window_ms: u64,
    refused: u16,
    spent: u64,
    stopped_until_ms: u64,
}

impl Runaway {
    /// When it may go on, if it is stopped now.
    #[must_use]
    pub fn stopped_until(&self, now_ms: u64) -> Option<u64> {
        (now_ms < self.stopped_until_ms).then_some(self.stopped_until_ms)
    }

    /// Whether nothing of it is worth remembering.
    #[must_use]
    pub const fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.stopped_until_ms
            && now_ms >= self.window_ms.saturating_add(RUNAWAY_WINDOW_MS)
    }

    /// Notes that it was refused for want of money; says whether that stops it.
    pub fn note_refused(&mut self, now_ms: u64, bounds: &Breaker) -> bool {
        self.roll(now_ms);
        self.refused = self.refused.saturating_add(1);
        self.judge(now_ms, bounds)
    }

    /// Notes what it spent; says whether that stops it.
    pub fn note_spent(&mut self, now_ms: u64, spent: MicroUsd, bounds: &Breaker) -> bool {
        self.roll(now_ms);
        self.spent = self.spent.saturating_add(spent.0);
        self.judge(now_ms, bounds)
    }

    fn roll(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.window_ms) >= RUNAWAY_WINDOW_MS {
            *self = Self {
                window_ms: now_ms,
                stopped_until_ms: self.stopped_until_ms,
                ..Self::default()
            };
        }
    }

    fn judge(&mut self, now_ms: u64, bounds: &Breaker) -> bool {
        let fast = bounds.spend_per_minute_usd.is_some_and(|bound| self.spent > bound.0.0);
        let runs = fast || self.refused >= bounds.refusals_per_minute;
        if runs && self.stopped_until(now_ms).is_none() {
            self.stopped_until_ms = now_ms.saturating_add(RUNAWAY_WINDOW_MS);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_govern::Usd;

    #[test]
    fn many_refusals_or_fast_spending_stop_for_a_minute() {
        let bounds =
            Breaker { refusals_per_minute: 3, spend_per_minute_usd: Some(Usd(MicroUsd(100))) };
        let mut run = Runaway::default();
        let now = 1_000_000;
        assert!(!run.note_refused(now, &bounds));
        assert!(!run.note_refused(now + 1, &bounds));
        assert!(run.note_refused(now + 2, &bounds));
        assert_eq!(run.stopped_until(now + 3), Some(now + 2 + RUNAWAY_WINDOW_MS));
        assert_eq!(run.stopped_until(now + 2 + RUNAWAY_WINDOW_MS), None);
        let mut run = Runaway::default();
        assert!(!run.note_spent(now, MicroUsd(100), &bounds));
        assert!(!run.note_spent(now + RUNAWAY_WINDOW_MS, MicroUsd(60), &bounds), "a new minute");
        assert!(run.note_spent(now + RUNAWAY_WINDOW_MS + 1, MicroUsd(41), &bounds));
        assert!(run.is_over(now + 3 * RUNAWAY_WINDOW_MS));
    }
}
