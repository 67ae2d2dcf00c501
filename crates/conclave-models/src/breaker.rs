//! Stops asking a provider that is down, so that a turn fails at once instead of waiting.
//!
//! **Invariant:** while it is open nothing is sent; when the pause is over exactly one request is
//! let through, and what becomes of it decides.
//!
//! **Invariant:** a request that is given up half-way says nothing about the provider, and never
//! leaves the breaker stuck.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// When a provider counts as down, and for how long it is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// How many outages in a row open it; 0 switches it off.
    pub failures: u32,
    /// How long it stays open before one request may try again.
    pub pause: Duration,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self { failures: 10, pause: Duration::from_secs(5) }
    }
}

/// The longest pause; also keeps the sum with the present time in range.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct Breaker {
    limits: BreakerLimits,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Requests pass; this many outages came in a row.
    Closed { failures: u32 },
    /// Nothing passes before this time.
    Open { until: Instant },
    /// One request is under way to see whether the provider is back.
    Probing,
}

impl Breaker {
    pub(crate) fn new(limits: BreakerLimits) -> Self {
        Self { limits, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    /// Lets a request pass, or not. The permit must be told how it went.
    pub(crate) fn admit(&self, now: Instant) -> Option<Permit<'_>> {
        let mut state = self.lock();
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open { until } if now >= until => true,
            State::Open { .. } | State::Probing => return None,
        };
        if is_probe {
            *state = State::Probing;
        }
        Some(Permit { breaker: self, is_probe })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, is_outage: bool, is_probe: bool, now: Instant) {
        let mut state = self.lock();
        let failures = match *state {
            State::Closed { failures } => failures,
            // Requests sent before it opened come back late and change nothing.
            State::Open { .. } | State::Probing if !is_probe => return,
            State::Open { .. } | State::Probing => self.limits.failures,
        };
        *state = self.next(is_outage, failures, now);
    }

    fn next(&self, is_outage: bool, failures: u32, now: Instant) -> State {
        let failures = failures.saturating_add(1);
        if !is_outage || self.limits.failures == 0 {
            State::Closed { failures: 0 }
        } else if failures >= self.limits.failures {
            State::Open { until: now + self.limits.pause.min(PAUSE_MAX) }
        } else {
            State::Closed { failures }
        }
    }

    fn abandon_probe(&self, now: Instant) {
        *self.lock() = State::Open { until: now };
    }
}

/// Leave to send one request.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Permit<'_> {
    /// Says how it went.
    pub(crate) fn report(mut self, is_outage: bool, now: Instant) {
        self.breaker.record(is_outage, self.is_probe, now);
        self.is_probe = false;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.abandon_probe(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(5);

    fn opened(now: Instant) -> Breaker {
        let breaker = Breaker::new(BreakerLimits { failures: 3, pause: PAUSE });
        for _ in 0..3 {
            breaker.admit(now).unwrap().report(true, now);
        }
        breaker
    }

    #[test]
    fn it_opens_after_so_many_outages_in_a_row() {
        let now = Instant::now();
        let breaker = opened(now);
        assert!(breaker.admit(now).is_none());
        assert!(breaker.admit(now + PAUSE / 2).is_none());
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        let now = Instant::now();
        let breaker = Breaker::new(BreakerLimits { failures: 2, pause: PAUSE });
        for is_outage in [true, false, true, false, true] {
            breaker.admit(now).unwrap().report(is_outage, now);
        }
        assert!(breaker.admit(now).is_some());
    }

    #[test]
    fn one_probe_passes_and_a_good_one_closes_it() {
        let now = Instant::now();
        let breaker = opened(now);
        let later = now + PAUSE;
        let probe = breaker.admit(later).unwrap();
        assert!(breaker.admit(later).is_none());
        probe.report(false, later);
        assert!(breaker.admit(later).is_some());
        assert!(breaker.admit(later).is_some());
    }

    #[test]
    fn a_bad_probe_opens_it_again() {
        let now = Instant::now();
        let breaker = opened(now);
        let later = now + PAUSE;
        breaker.admit(later).unwrap().report(true, later);
        assert!(breaker.admit(later + PAUSE / 2).is_none());
        assert!(breaker.admit(later + PAUSE).is_some());
    }

    #[test]
    fn a_probe_that_is_given_up_lets_the_next_one_try() {
        let now = Instant::now();
        let breaker = opened(now);
        let later = now + PAUSE;
        drop(breaker.admit(later));
        assert!(breaker.admit(later).is_some());
    }

    #[test]
    fn late_answers_from_before_do_not_close_it() {
        let now = Instant::now();
        let breaker = Breaker::new(BreakerLimits { failures: 1, pause: PAUSE });
        let early = breaker.admit(now).unwrap();
        breaker.admit(now).unwrap().report(true, now);
        early.report(false, now);
        assert!(breaker.admit(now).is_none());
    }

    #[test]
    fn without_a_limit_it_never_opens() {
        let now = Instant::now();
        let breaker = Breaker::new(BreakerLimits { failures: 0, pause: PAUSE });
        for _ in 0..100 {
            breaker.admit(now).unwrap().report(true, now);
        }
        assert!(breaker.admit(now).is_some());
    }
}
