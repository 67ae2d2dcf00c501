//! How fast somebody may ask, counted in integers on a clock that never goes back.
//!
//! Each limit is a bucket that holds one minute's worth and fills evenly. What is kept of a bucket is one
//! number: the moment at which it will be full again. A bucket that is full is as good as none, so that
//! the table forgets it.
//!
//! **Invariant:** the table has at most [`PLACES_MAX`] buckets. Whoever finds no place shares one bucket with
//! all others who found none: a flood of names makes nobody's limit wider.
//! **Invariant:** a request that one limit refuses takes nothing from the others.

use conclave_core::{KeyId, TenantId, UserId};
use conclave_govern::{Rate, Rates};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many buckets are known at once.
pub const PLACES_MAX: usize = 64 * 1024;
const SHARDS: usize = 16;
const MINUTE_NS: u64 = 60_000_000_000;
/// How long a full shard waits before it looks again for buckets that are full.
const SWEEP_PAUSE_NS: u64 = 100_000_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    Requests,
    Tokens,
}

/// Whom it is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Key,
    Tenant,
    User,
    Keyless,
}

impl Scope {
    const fn words(self) -> &'static str {
        match self {
            Self::Key => "this key",
            Self::Tenant => "this tenant",
            Self::User => "this person",
            Self::Keyless => "callers without a valid key",
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub tenant: &'a TenantId,
    pub key: &'a KeyId,
    /// The person; `None` where nobody is asked for, `Some(None)` for somebody without an id.
    pub user: Option<Option<&'a UserId>>,
    /// How many requests it stands for: as many as it holds texts to be decided on.
    pub requests: u32,
}

/// How one limit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub limit: u32,
    pub remaining: u64,
    /// Until it is full again.
    pub reset_ms: u64,
}

/// How the scarcest limits stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub requests: Option<Level>,
    pub tokens: Option<Level>,
}

/// What was taken: to be settled when the tokens are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    pub standing: Standing,
    buckets: Vec<(Bucket, u64)>,
}

/// Which limit refuses, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limited {
    pub scope: Scope,
    pub counted: Counted,
    pub level: Level,
    pub retry_after_s: u32,
}

impl Limited {
    /// What the caller is told.
    pub(crate) fn sentence(&self) -> String {
        let what = match self.counted {
            Counted::Requests => "requests",
            Counted::Tokens => "tokens",
        };
        format!(
            "The limit of {} {what} a minute for {} is reached; try again in {} s.",
            self.level.limit,
            self.scope.words(),
            self.retry_after_s
        )
    }

    pub(crate) fn standing(&self) -> Standing {
        let level = Some(self.level);
        match self.counted {
            Counted::Requests => Standing { requests: level, tokens: None },
            Counted::Tokens => Standing { requests: None, tokens: level },
        }
    }
}

/// One limit of somebody.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    place: u128,
    scope: Scope,
    counted: Counted,
    limit: u32,
}

impl Bucket {
    /// Nanoseconds in which one flows back; rounded so that never more than the limit does.
    const fn interval_ns(self) -> u64 {
        MINUTE_NS.div_ceil(self.limit as u64)
    }

    /// The whole of it, in nanoseconds.
    const fn depth_ns(self) -> u64 {
        self.interval_ns().saturating_mul(self.limit as u64)
    }

    fn level(self, full_ns: u64, now_ns: u64) -> Level {
        let missing_ns = full_ns.saturating_sub(now_ns);
        let remaining = self.depth_ns().saturating_sub(missing_ns) / self.interval_ns();
        Level { limit: self.limit, remaining, reset_ms: missing_ns.div_ceil(1_000_000) }
    }
}

#[derive(Default)]
struct Shard {
    /// When each bucket will be full again, in nanoseconds since the start.
    full_ns: HashMap<u128, u64>,
    swept_ns: u64,
}

impl Shard {
    /// The place of a bucket, or the one that is shared where there is no room.
    fn place(&mut self, place: u128, now_ns: u64) -> u128 {
        if self.full_ns.len() < PLACES_MAX / SHARDS || self.full_ns.contains_key(&place) {
            return place;
        }
        if self.swept_ns.saturating_add(SWEEP_PAUSE_NS) <= now_ns {
            self.swept_ns = now_ns;
            self.full_ns.retain(|_, full_ns| *full_ns > now_ns);
        }
        if self.full_ns.len() < PLACES_MAX / SHARDS { place } else { 0 }
    }
}

/// Counts who asks how much.
pub(crate) struct RateLimiter {
    shards: [Mutex<Shard>; SHARDS],
    hashers: [RandomState; 2],
    began: Instant,
}

impl Default for RateLimiter {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        let hashers = [RandomState::new(), RandomState::new()];
        Self { shards, hashers, began: Instant::now() }
    }
}

impl RateLimiter {
    /// Takes a request and so many tokens from every limit that counts for the asker, or nothing from any.
    pub(crate) fn take(
        &self,
        asker: Asker<'_>,
        rates: &Rates,
        tokens: Option<u64>,
        now: Instant,
    ) -> Result<Taken, Limited> {
        let now_ns = self.now_ns(now);
        let mut taken = Taken::default();
        for bucket in self.buckets(asker, rates, tokens.is_some()) {
            let amount = match bucket.counted {
                Counted::Requests => u64::from(asker.requests),
                Counted::Tokens => tokens.unwrap_or(0),
            };
            // What alone is more than a minute's worth passes when the bucket is full.
            let amount = amount.clamp(1, bucket.limit.into());
            match self.take_one(bucket, amount, now_ns) {
                Ok(level) => {
                    taken.standing = taken.standing.with(bucket.counted, level);
                    taken.buckets.push((bucket, amount));
                }
                Err(limited) => {
                    taken.buckets.iter().for_each(|(bucket, amount)| {
                        self.change(*bucket, now_ns, |full| {
                            full.saturating_sub(bucket.cost(*amount))
                        });
                    });
                    return Err(limited);
                }
            }
        }
        Ok(taken)
    }

    /// Takes one request of somebody without a valid key: all of them share one limit.
    pub(crate) fn take_keyless(&self, limit: u32, now: Instant) -> Result<(), Limited> {
        if limit == 0 {
            return Ok(());
        }
        let (scope, counted) = (Scope::Keyless, Counted::Requests);
        let bucket = Bucket { place: 1, scope, counted, limit };
        self.take_one(bucket, 1, self.now_ns(now)).map(|_| ())
    }

    /// Puts the tokens that were really used in the place of those that were expected; what is more than
    /// there is has to flow back first.
    pub(crate) fn settle(&self, taken: &Taken, tokens: u64, now: Instant) {
        let now_ns = self.now_ns(now);
        let counted = taken.buckets.iter().filter(|(one, _)| one.counted == Counted::Tokens);
        for (bucket, expected) in counted {
            let (used, expected) = (bucket.cost(tokens), bucket.cost(*expected));
            self.change(*bucket, now_ns, |full_ns| {
                full_ns.saturating_sub(expected).max(now_ns).saturating_add(used)
            });
        }
    }

    fn now_ns(&self, now: Instant) -> u64 {
        // The bucket of a moment ago must not look emptier than it was, so the clock begins a minute in.
        let since = now.saturating_duration_since(self.began).as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX / 2).saturating_add(MINUTE_NS)
    }

    fn buckets(&self, asker: Asker<'_>, rates: &Rates, with_tokens: bool) -> Vec<Bucket> {
        let (tenant, nobody) = (asker.tenant.as_str(), "");
        let user = asker.user.map(|user| user.map_or(nobody, UserId::as_str));
        let all = [
            (Scope::Key, rates.per_key, Some(asker.key.as_str())),
            (Scope::Tenant, rates.per_tenant, Some(nobody)),
            (Scope::User, rates.per_user, user),
        ];
        let mut buckets = Vec::new();
        for (scope, rate, name) in all {
            let Some(name) = name else { continue };
            let Rate { requests_per_minute, tokens_per_minute } = rate;
            let tokens = tokens_per_minute.filter(|_| with_tokens);
            let limits = [(Counted::Requests, requests_per_minute), (Counted::Tokens, tokens)];
            for (counted, limit) in limits {
                let Some(limit) = limit.filter(|limit| *limit > 0) else { continue };
                let place = self.place_of(&(scope, counted, tenant, name));
                buckets.push(Bucket { place, scope, counted, limit });
            }
        }
        buckets
    }

    fn place_of(&self, name: &impl Hash) -> u128 {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one(name));
        // 0 is the place of those who found none, 1 of those without a key.
        ((u128::from(high) << 64) | u128::from(low)).max(2)
    }

    fn take_one(&self, bucket: Bucket, amount: u64, now_ns: u64) -> Result<Level, Limited> {
        let mut refused_ns = None;
        let full_ns = self.change(bucket, now_ns, |full_ns| {
            let after = full_ns.max(now_ns).saturating_add(bucket.cost(amount));
            let most = now_ns.saturating_add(bucket.depth_ns());
            if after <= most {
                return after;
            }
            refused_ns = Some(after - most);
            full_ns
        });
        let level = bucket.level(full_ns, now_ns);
        let Some(wait_ns) = refused_ns else { return Ok(level) };
        let seconds = wait_ns.div_ceil(1_000_000_000).max(1);
        let retry_after_s = u32::try_from(seconds).unwrap_or(u32::MAX);
        let Bucket { scope, counted, .. } = bucket;
        Err(Limited { scope, counted, level, retry_after_s })
    }

    fn change(&self, bucket: Bucket, now_ns: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        let mut shard = self.shard(bucket.place);
        let place = shard.place(bucket.place, now_ns);
        let full_ns = shard.full_ns.entry(place).or_insert(0);
        *full_ns = change(*full_ns);
        *full_ns
    }

    fn shard(&self, place: u128) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(place % SHARDS as u128).unwrap_or(0);
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    const fn cost(self, amount: u64) -> u64 {
        self.interval_ns().saturating_mul(amount)
    }
}

impl Standing {
    /// The scarcer of both is what the caller is told.
    fn with(mut self, counted: Counted, level: Level) -> Self {
        let told = match counted {
            Counted::Requests => &mut self.requests,
            Counted::Tokens => &mut self.tokens,
        };
        if told.is_none_or(|known| level.remaining < known.remaining) {
            *told = Some(level);
        }
        self
    }

    /// Adds the `x-ratelimit-*` headers.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        let named = [("requests", self.requests), ("tokens", self.tokens)];
        for (what, level) in named {
            let Some(Level { limit, remaining, reset_ms }) = level else { continue };
            let values = [
                ("limit", limit.to_string()),
                ("remaining", remaining.to_string()),
                ("reset", format!("{reset_ms}ms")),
            ];
            for (field, value) in values {
                let name = HeaderName::try_from(format!("x-ratelimit-{field}-{what}"));
                if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                    headers.insert(name, value);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
