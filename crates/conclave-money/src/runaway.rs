//! Stops whoever runs away: is refused again and again, or spends too fast.

use conclave_core::MicroUsd;
use conclave_govern::Breaker;

/// How long things are counted, and how long somebody is stopped.
pub(crate) const WINDOW_MS: u64 = 60_000;

/// What one payer did within the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunawayBreaker {
    since_ms: u64,
    refused: u16,
    spent: u64,
    stopped_until_ms: u64,
}

impl RunawayBreaker {
    /// When the payer may go on, if it is stopped now.
    pub(crate) fn stopped_until(&self, now_ms: u64) -> Option<u64> {
        (now_ms < self.stopped_until_ms).then_some(self.stopped_until_ms)
    }

    pub(crate) const fn is_idle(&self, now_ms: u64) -> bool {
        now_ms >= self.stopped_until_ms && now_ms >= self.since_ms.saturating_add(WINDOW_MS)
    }

    /// Counts a refusal; says whether it is the one that stops the payer.
    pub(crate) fn count_refusal(&mut self, now_ms: u64, bounds: &Breaker) -> bool {
        self.begin_window(now_ms);
        self.refused = self.refused.saturating_add(1);
        self.trip(now_ms, bounds)
    }

    /// Counts what was spent; says whether that stops the payer.
    pub(crate) fn count_spending(
        &mut self,
        now_ms: u64,
        spent: MicroUsd,
        bounds: &Breaker,
    ) -> bool {
        self.begin_window(now_ms);
        self.spent = self.spent.saturating_add(spent.0);
        self.trip(now_ms, bounds)
    }

    fn begin_window(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.since_ms) >= WINDOW_MS {
            *self = Self {
                since_ms: now_ms,
                stopped_until_ms: self.stopped_until_ms,
                ..Self::default()
            };
        }
    }

    fn trip(&mut self, now_ms: u64, bounds: &Breaker) -> bool {
        let fast = bounds.spend_per_minute_usd.is_some_and(|bound| self.spent > bound.0.0);
        let runs = fast || self.refused >= bounds.refusals_per_minute;
        if runs && self.stopped_until(now_ms).is_none() {
            self.stopped_until_ms = now_ms.saturating_add(WINDOW_MS);
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
        let mut run = RunawayBreaker::default();
        let now = 1_000_000;
        assert!(!run.count_refusal(now, &bounds));
        assert!(!run.count_refusal(now + 1, &bounds));
        assert!(run.count_refusal(now + 2, &bounds));
        assert_eq!(run.stopped_until(now + 3), Some(now + 2 + WINDOW_MS));
        assert_eq!(run.stopped_until(now + 2 + WINDOW_MS), None);
        let mut run = RunawayBreaker::default();
        assert!(!run.count_spending(now, MicroUsd(100), &bounds));
        assert!(!run.count_spending(now + WINDOW_MS, MicroUsd(60), &bounds), "a new minute");
        assert!(run.count_spending(now + WINDOW_MS + 1, MicroUsd(41), &bounds));
        assert!(run.is_idle(now + 3 * WINDOW_MS));
    }
}
