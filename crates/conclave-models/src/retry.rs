//! When a request may be sent a second time.
//!
//! **Invariant:** over time a provider sees at most a tenth more requests than were asked for,
//! whatever it answers: retries are paid from a budget that requests fill.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Requests that pay for one retry.
const REQUESTS_PER_RETRY: u32 = 10;
/// The most that can be saved up, in requests.
const SAVED_MAX: u32 = 10 * REQUESTS_PER_RETRY;
/// The longest wait a provider may ask for.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What retries are paid from.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    saved: AtomicU32,
}

impl RetryBudget {
    pub(crate) fn new() -> Self {
        Self { saved: AtomicU32::new(SAVED_MAX) }
    }

    /// A request was sent.
    pub(crate) fn deposit(&self) {
        let add = |saved: u32| (saved < SAVED_MAX).then_some(saved + 1);
        // An error means that the budget is full.
        let _ = self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes one retry if there is one.
    pub(crate) fn withdraw(&self) -> bool {
        let take = |saved: u32| saved.checked_sub(REQUESTS_PER_RETRY);
        self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// How long to wait before asking again, where the provider said that it did not take the request
/// and that it soon will.
pub(crate) fn wait_asked_for(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let wait = retry_after(headers).filter(|_| is_busy)?;
    (wait <= WAIT_MAX).then_some(wait)
}

/// The seconds a provider asks to be left alone.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_of_failures_is_hardly_retried() {
        let budget = RetryBudget::new();
        let retries = (0..5_000)
            .filter(|_| {
                budget.deposit();
                budget.withdraw()
            })
            .count();
        assert!((500..=520).contains(&retries), "{retries}");
    }

    fn asked(status: u16, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        wait_asked_for(StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn only_a_short_wait_of_a_busy_provider_is_honoured() {
        assert_eq!(asked(429, "0"), Some(Duration::ZERO));
        assert_eq!(asked(503, "1"), Some(Duration::from_secs(1)));
        for (status, value) in [
            (429, "2"),
            (503, "-1"),
            (503, "Wed, 21 Oct 2026 07:28:00 GMT"),
            (503, "99999999999999999999"),
            (500, "0"),
            (400, "0"),
            (302, "0"),
        ] {
            assert_eq!(asked(status, value), None, "{status} {value}");
        }
        assert_eq!(wait_asked_for(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new()), None);
    }
}
