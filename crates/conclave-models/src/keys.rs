//! The keys of a provider: which one a request uses, and which one rests.
//!
//! **Invariant:** a key that was refused or is exhausted is left alone for a while as long as another
//! one is not; where all of them rest, the one that has rested longest is tried, so that one bad answer
//! never closes a provider.
//!
//! **Invariant:** no randomness: over time each key gets its share of the requests by its weight.

use crate::retry::retry_after;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderValue};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a key rests that was not accepted: somebody has to look at it.
const REFUSED_REST: Duration = Duration::from_secs(300);
/// How long a key rests that was used too much, unless the provider says otherwise.
const EXHAUSTED_REST: Duration = Duration::from_secs(10);
/// The longest rest a provider may ask for.
const EXHAUSTED_REST_MAX: Duration = Duration::from_secs(60);

/// The keys of one provider.
#[derive(Debug)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    turns: Mutex<Vec<Turn>>,
}

#[derive(Debug)]
struct Key {
    /// As it is sent; marked as sensitive.
    value: HeaderValue,
    weight: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// How much it is owed.
    credit: i64,
    rests_until: Option<Instant>,
}

impl Turn {
    fn is_awake(self, now: Instant) -> bool {
        self.rests_until.is_none_or(|until| until <= now)
    }
}

impl Keys {
    /// Takes header values with their weights.
    pub(crate) fn new(keys: impl IntoIterator<Item = (HeaderValue, u16)>) -> Self {
        let keys: Vec<_> = keys
            .into_iter()
            .map(|(value, weight)| Key { value, weight: i64::from(weight.max(1)) })
            .collect();
        let turns = Mutex::new(vec![Turn::default(); keys.len()]);
        Self { keys, turns }
    }

    /// Whose turn it is; `None` where there are no keys.
    pub(crate) fn choose(&self, now: Instant) -> Option<usize> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = fairest(&self.keys, &mut turns, None, now);
        chosen.or_else(|| longest_rested(&turns))
    }

    /// A key that does not rest, other than this one.
    pub(crate) fn another(&self, than: usize, now: Instant) -> Option<usize> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        fairest(&self.keys, &mut turns, Some(than), now)
    }

    /// The key as it is sent.
    pub(crate) fn value(&self, key: usize) -> Option<&HeaderValue> {
        self.keys.get(key).map(|key| &key.value)
    }

    /// Takes note of how the provider received a key. `true` when the key is what it refused.
    pub(crate) fn heed(
        &self,
        key: usize,
        status: StatusCode,
        headers: &HeaderMap,
        now: Instant,
    ) -> bool {
        let rest = match status {
            StatusCode::UNAUTHORIZED => REFUSED_REST,
            StatusCode::TOO_MANY_REQUESTS => {
                retry_after(headers).map_or(EXHAUSTED_REST, |wait| wait.min(EXHAUSTED_REST_MAX))
            }
            _ => return false,
        };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get_mut(key) {
            turn.rests_until = Some(now + rest);
        }
        true
    }
}

/// Smooth weighted round robin over whoever is awake: each is credited its weight, and the one with
/// the most credit pays for all.
fn fairest(keys: &[Key], turns: &mut [Turn], but: Option<usize>, now: Instant) -> Option<usize> {
    let mut total = 0;
    let mut best: Option<(usize, i64)> = None;
    for (at, (key, turn)) in keys.iter().zip(turns.iter_mut()).enumerate() {
        if Some(at) == but || !turn.is_awake(now) {
            continue;
        }
        total += key.weight;
        turn.credit += key.weight;
        if best.is_none_or(|(_, credit)| turn.credit > credit) {
            best = Some((at, turn.credit));
        }
    }
    let (chosen, _) = best?;
    if let Some(turn) = turns.get_mut(chosen) {
        turn.credit -= total;
    }
    Some(chosen)
}

fn longest_rested(turns: &[Turn]) -> Option<usize> {
    let rests = turns.iter().enumerate();
    rests.min_by_key(|(_, turn)| turn.rests_until).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(weights: &[u16]) -> Keys {
        Keys::new(weights.iter().map(|weight| (HeaderValue::from_static("k"), *weight)))
    }

    fn refuse(keys: &Keys, key: usize, now: Instant) {
        assert!(keys.heed(key, StatusCode::UNAUTHORIZED, &HeaderMap::new(), now));
    }

    #[test]
    fn requests_are_shared_by_weight() {
        let keys = keys(&[3, 1, 1]);
        let now = Instant::now();
        let mut counts = [0; 3];
        for _ in 0..50 {
            counts[keys.choose(now).unwrap()] += 1;
        }
        assert_eq!(counts, [30, 10, 10]);
    }

    #[test]
    fn a_refused_key_rests_and_comes_back() {
        let keys = keys(&[1, 1]);
        let now = Instant::now();
        refuse(&keys, 0, now);
        assert!((0..10).all(|_| keys.choose(now) == Some(1)));
        assert_eq!(keys.another(1, now), None);
        let later = now + REFUSED_REST;
        assert!((0..10).any(|_| keys.choose(later) == Some(0)));
    }

    #[test]
    fn where_all_rest_the_one_that_wakes_first_is_tried() {
        let keys = keys(&[1, 1]);
        let now = Instant::now();
        refuse(&keys, 0, now);
        assert!(keys.heed(1, StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), now));
        assert_eq!(keys.choose(now), Some(1));
    }

    #[test]
    fn a_rest_is_as_long_as_the_provider_asks_within_bounds() {
        let keys = keys(&[1, 1]);
        let now = Instant::now();
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("86400"));
        assert!(keys.heed(0, StatusCode::TOO_MANY_REQUESTS, &headers, now));
        assert_eq!(keys.another(1, now + Duration::from_secs(59)), None);
        assert_eq!(keys.another(1, now + EXHAUSTED_REST_MAX), Some(0));
    }

    #[test]
    fn other_answers_say_nothing_about_a_key() {
        let keys = keys(&[1]);
        let now = Instant::now();
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::BAD_GATEWAY] {
            assert!(!keys.heed(0, status, &HeaderMap::new(), now));
        }
        assert_eq!(keys.choose(now), Some(0));
        assert_eq!(self::keys(&[]).choose(now), None);
    }
}
