//! Whether the clock can be believed where words are deleted by it.
//!
//! A clock that is set ten years ahead by mistake would make everybody's words due at once, and they would not
//! come back when it is set right.
//!
//! **Invariant:** nothing is deleted by age while the clock is doubted. It is doubted when it ran ahead of the
//! time that passed, and when it stands far beyond what was last believed, until a day has passed with it.

use crate::durable;
use conclave_engine::Clock;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that has passed, whatever anybody sets the clock to.
pub type Steady = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The time that was last believed, for the next start.
const FILE: &str = "clock";
const HOUR_MS: u64 = 3_600_000;
/// How far the clock may run ahead of the time that passed.
const AHEAD_MS: u64 = 24 * HOUR_MS;
/// How far it may stand beyond what was last believed; so long an installation may be switched off.
const AWAY_MS: u64 = 30 * 24 * HOUR_MS;
/// So long a doubted clock has to go like any other before it is believed.
const PROOF: Duration = Duration::from_secs(24 * 3_600);

/// The time since now, from the machine.
pub(crate) fn machine() -> Steady {
    let start = Instant::now();
    Arc::new(move || start.elapsed())
}

/// Looks at the clock of one data directory.
pub(crate) struct Watch {
    clock: Arc<dyn Clock>,
    steady: Steady,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// What the clock said, and how much time had passed then.
    since: (u64, Duration),
    doubted: Option<Duration>,
    believed_ms: u64,
    written_ms: u64,
}

impl Watch {
    /// Begins to look; `newest_ms` is the time of the newest entry, for a directory that has no note yet.
    pub(crate) fn open(
        dir: &std::path::Path,
        (clock, steady): (Arc<dyn Clock>, Steady),
        newest_ms: u64,
    ) -> Self {
        let path = dir.join(FILE);
        let noted = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        let (now_ms, up) = (clock.now_ms(), steady());
        let known = noted.or((newest_ms > 0).then_some(newest_ms));
        let is_far = known.is_some_and(|known: u64| now_ms > known.saturating_add(AWAY_MS));
        let state = State {
            since: (now_ms, up),
            doubted: is_far.then_some(up),
            believed_ms: known.unwrap_or(now_ms),
            written_ms: noted.unwrap_or(0),
        };
        Self { clock, steady, path, state: Mutex::new(state) }
    }

    /// The time, if it can be believed.
    ///
    /// # Errors
    /// Says why not.
    pub(crate) fn now_ms(&self) -> Result<u64, String> {
        let mut state = self.lock();
        let (now_ms, up) = (self.clock.now_ms(), (self.steady)());
        state.look(now_ms, up);
        if state.doubted.is_some() {
            let days = now_ms.saturating_sub(state.believed_ms) / (24 * HOUR_MS);
            return Err(format!(
                "the clock stands {days} days beyond what was last believed; nothing is deleted by \
                 age until it is set right, or has gone on for a day"
            ));
        }
        state.believed_ms = now_ms;
        if now_ms.abs_diff(state.written_ms) >= HOUR_MS {
            state.written_ms = now_ms;
            if let Err(error) = durable::replace(&self.path, format!("{now_ms}\n").as_bytes()) {
                tracing::warn!(%error, "the time could not be noted");
            }
        }
        Ok(now_ms)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn look(&mut self, now_ms: u64, up: Duration) {
        let (then_ms, then_up) = self.since;
        let passed = u64::try_from(up.saturating_sub(then_up).as_millis()).unwrap_or(u64::MAX);
        let expected = then_ms.saturating_add(passed);
        if now_ms > expected.saturating_add(AHEAD_MS) {
            (self.since, self.doubted) = ((now_ms, up), Some(up));
        } else if now_ms.saturating_add(AHEAD_MS) < expected {
            // Set back: right again, unless it is still far ahead.
            let is_far = now_ms > self.believed_ms.saturating_add(AWAY_MS);
            (self.since, self.doubted) = ((now_ms, up), is_far.then_some(up));
        }
        if self.doubted.is_some_and(|since| up.saturating_sub(since) >= PROOF) {
            self.doubted = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const DAY_MS: u64 = 24 * HOUR_MS;
    const NOW: u64 = 1_800_000_000_000;

    #[derive(Default)]
    struct Hand(AtomicU64);
    impl Clock for Hand {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    struct Both {
        clock: Arc<Hand>,
        up: Arc<AtomicU64>,
        dir: tempfile::TempDir,
    }

    impl Both {
        fn new() -> Self {
            let clock = Arc::new(Hand(AtomicU64::new(NOW)));
            Self { clock, up: Arc::default(), dir: tempfile::tempdir().unwrap() }
        }

        fn watch(&self, newest_ms: u64) -> Watch {
            let up = Arc::clone(&self.up);
            let steady: Steady =
                Arc::new(move || Duration::from_millis(up.load(Ordering::Relaxed)));
            Watch::open(self.dir.path(), (self.clock.clone(), steady), newest_ms)
        }

        /// Time passes, and the clock says so.
        fn pass(&self, ms: u64) {
            self.clock.0.fetch_add(ms, Ordering::Relaxed);
            self.up.fetch_add(ms, Ordering::Relaxed);
        }

        fn set_ahead(&self, ms: u64) {
            self.clock.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_clock_that_goes_is_believed_and_one_that_jumps_is_not_until_it_is_set_right() {
        let both = Both::new();
        let watch = both.watch(0);
        both.pass(400 * DAY_MS);
        assert!(watch.now_ms().is_ok(), "it ran for a year");
        both.set_ahead(23 * HOUR_MS);
        assert!(watch.now_ms().is_ok());
        both.set_ahead(3_650 * DAY_MS);
        assert!(watch.now_ms().unwrap_err().contains("3650 days"));
        both.pass(HOUR_MS);
        assert!(watch.now_ms().is_err());
        both.clock.0.fetch_sub(3_650 * DAY_MS, Ordering::Relaxed);
        assert!(watch.now_ms().is_ok(), "it was set right");
    }

    #[test]
    fn a_jump_over_a_start_is_seen_and_a_second_start_does_not_make_it_true() {
        let both = Both::new();
        assert!(both.watch(0).now_ms().is_ok());
        both.set_ahead(29 * DAY_MS);
        assert!(both.watch(NOW).now_ms().is_ok(), "it was switched off for a while");
        both.set_ahead(3_650 * DAY_MS);
        for newest in [NOW, NOW + 3_679 * DAY_MS] {
            assert!(both.watch(newest).now_ms().is_err(), "entries are as wrong as the clock");
        }
        let watch = both.watch(NOW);
        both.pass(23 * HOUR_MS);
        assert!(watch.now_ms().is_err());
        both.pass(HOUR_MS);
        assert!(watch.now_ms().is_ok(), "a day has passed with it");
        assert!(both.watch(NOW).now_ms().is_ok(), "and that is known at the next start");
    }

    #[test]
    fn without_a_note_the_newest_entry_counts() {
        let both = Both::new();
        assert!(both.watch(NOW - 31 * DAY_MS).now_ms().is_err());
        assert!(both.watch(NOW - 29 * DAY_MS).now_ms().is_ok());
    }
}
