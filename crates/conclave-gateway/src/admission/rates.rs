//! How fast somebody may ask: the buckets, and what the routes take from them.
//!
//! Each limit is a bucket that holds one minute's worth and fills evenly. What is kept of a bucket is one
//! number: the moment at which it will be full again. A bucket that is full is as good as none, so that
//! the table forgets it. Everything is counted in integers on a clock that never goes back.
//!
//! **Invariant:** the table has at most [`BUCKETS_MAX`] buckets. Whoever finds no place shares one bucket with
//! all others who found none: a flood of names makes nobody's limit wider.
//! **Invariant:** a request that one limit refuses takes nothing from the others.
//! **Invariant:** whoever a limit refuses and seems to be in crisis is answered all the same, by the system
//! itself: no model is asked for it.

use crate::error::ApiError;
use crate::state::Gateway;
use axum::response::Response;
use conclave_core::{KeyId, TenantId, Usage, UserId};
use conclave_engine::{DeliverError, KeyRecord, Reply, Turn};
use conclave_govern::{Rate, Rates};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many buckets are known at once.
pub(crate) const BUCKETS_MAX: usize = 64 * 1024;
const SHARDS: usize = 16;
const MINUTE_NS: u64 = 60_000_000_000;
/// How long a full shard waits before it looks again for buckets that are full: looking takes as long as
/// the shard is large, and in a flood everybody would look.
const SWEEP_PAUSE_NS: u64 = 100_000_000;
/// Whoever finds no place of their own.
const SHARED_PLACE: u128 = 0;
/// Everybody without a valid key.
const KEYLESS_PLACE: u128 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateUnit {
    Requests,
    Tokens,
}

/// Whose bucket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateScope {
    Key,
    Tenant,
    User,
    Keyless,
}

impl RateScope {
    const fn words(self) -> &'static str {
        match self {
            Self::Key => "this key",
            Self::Tenant => "this tenant",
            Self::User => "this person",
            Self::Keyless => "callers without a valid key",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub tenant: &'a TenantId,
    pub key: &'a KeyId,
    /// The person; `None` where nobody is asked for, `Some(None)` for somebody without an id.
    pub user: Option<Option<&'a UserId>>,
    /// How many requests it stands for: as many as it holds texts to be decided on.
    pub requests: u32,
}

/// How full one bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLevel {
    pub limit: u32,
    pub remaining: u64,
    /// Until it is full again.
    pub reset_ms: u64,
}

/// How the scarcest limits of a request stand: what its answer says in headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitStanding {
    pub requests: Option<BucketLevel>,
    pub tokens: Option<BucketLevel>,
}

/// What a request took, kept until the tokens it really used are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateReservation {
    pub standing: LimitStanding,
    withdrawals: Vec<BucketWithdrawal>,
}

#[derive(Clone, Copy, Debug)]
struct BucketWithdrawal {
    bucket: Bucket,
    amount: u64,
}

/// Which limit refuses, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RateRefusal {
    pub scope: RateScope,
    pub unit: RateUnit,
    pub level: BucketLevel,
    pub retry_after_s: u32,
}

impl RateRefusal {
    pub(crate) fn sentence(&self) -> String {
        let what = match self.unit {
            RateUnit::Requests => "requests",
            RateUnit::Tokens => "tokens",
        };
        format!(
            "The limit of {} {what} a minute for {} is reached; try again in {} s.",
            self.level.limit,
            self.scope.words(),
            self.retry_after_s
        )
    }

    fn standing(&self) -> LimitStanding {
        LimitStanding::default().with(self.unit, self.level)
    }
}

impl From<RateRefusal> for ApiError {
    fn from(refusal: RateRefusal) -> Self {
        Self::rate_limit_exceeded(refusal.sentence(), refusal.retry_after_s)
    }
}

/// One limit of somebody.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    place: u128,
    scope: RateScope,
    unit: RateUnit,
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

    const fn cost_ns(self, amount: u64) -> u64 {
        self.interval_ns().saturating_mul(amount)
    }

    fn level(self, full_ns: u64, now_ns: u64) -> BucketLevel {
        let missing_ns = full_ns.saturating_sub(now_ns);
        let remaining = self.depth_ns().saturating_sub(missing_ns) / self.interval_ns();
        BucketLevel { limit: self.limit, remaining, reset_ms: missing_ns.div_ceil(1_000_000) }
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
    fn find_place(&mut self, place: u128, now_ns: u64) -> u128 {
        if self.full_ns.len() < BUCKETS_MAX / SHARDS || self.full_ns.contains_key(&place) {
            return place;
        }
        if self.swept_ns.saturating_add(SWEEP_PAUSE_NS) <= now_ns {
            self.swept_ns = now_ns;
            self.full_ns.retain(|_, full_ns| *full_ns > now_ns);
        }
        if self.full_ns.len() < BUCKETS_MAX / SHARDS { place } else { SHARED_PLACE }
    }
}

/// The table of all buckets.
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
    pub(crate) fn reserve(
        &self,
        asker: Asker<'_>,
        rates: &Rates,
        tokens: Option<u64>,
        now: Instant,
    ) -> Result<RateReservation, RateRefusal> {
        let now_ns = self.now_ns(now);
        let mut reservation = RateReservation::default();
        for bucket in self.buckets_of(asker, rates, tokens.is_some()) {
            let amount = match bucket.unit {
                RateUnit::Requests => u64::from(asker.requests),
                RateUnit::Tokens => tokens.unwrap_or(0),
            };
            // What alone is more than a minute's worth passes when the bucket is full.
            let amount = amount.clamp(1, bucket.limit.into());
            match self.withdraw(bucket, amount, now_ns) {
                Ok(level) => {
                    reservation.standing = reservation.standing.with(bucket.unit, level);
                    reservation.withdrawals.push(BucketWithdrawal { bucket, amount });
                }
                Err(refusal) => {
                    for BucketWithdrawal { bucket, amount } in reservation.withdrawals {
                        let cost_ns = bucket.cost_ns(amount);
                        self.change_bucket(bucket, now_ns, |full| full.saturating_sub(cost_ns));
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(reservation)
    }

    /// Takes one request of somebody without a valid key: all of them share one limit.
    pub(crate) fn count_keyless(&self, limit: u32, now: Instant) -> Result<(), RateRefusal> {
        if limit == 0 {
            return Ok(());
        }
        let bucket = Bucket {
            place: KEYLESS_PLACE,
            scope: RateScope::Keyless,
            unit: RateUnit::Requests,
            limit,
        };
        self.withdraw(bucket, 1, self.now_ns(now)).map(|_| ())
    }

    /// Puts the tokens that were really used in the place of those that were expected; what is more than
    /// there is has to flow back first.
    pub(crate) fn settle(&self, reservation: &RateReservation, tokens: u64, now: Instant) {
        let now_ns = self.now_ns(now);
        for BucketWithdrawal { bucket, amount } in &reservation.withdrawals {
            if bucket.unit == RateUnit::Tokens {
                let used_ns = bucket.cost_ns(tokens);
                let expected_ns = bucket.cost_ns(*amount);
                self.change_bucket(*bucket, now_ns, |full_ns| {
                    full_ns.saturating_sub(expected_ns).max(now_ns).saturating_add(used_ns)
                });
            }
        }
    }

    fn now_ns(&self, now: Instant) -> u64 {
        // The bucket of a moment ago must not look emptier than it was, so the clock begins a minute in.
        let since = now.saturating_duration_since(self.began).as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX / 2).saturating_add(MINUTE_NS)
    }

    fn buckets_of(&self, asker: Asker<'_>, rates: &Rates, with_tokens: bool) -> Vec<Bucket> {
        let tenant = asker.tenant.as_str();
        let user = asker.user.map(|user| user.map_or("", UserId::as_str));
        let all = [
            (RateScope::Key, rates.per_key, Some(asker.key.as_str())),
            (RateScope::Tenant, rates.per_tenant, Some("")),
            (RateScope::User, rates.per_user, user),
        ];
        let mut buckets = Vec::new();
        for (scope, rate, name) in all {
            let Some(name) = name else { continue };
            let Rate { requests_per_minute, tokens_per_minute } = rate;
            let tokens = tokens_per_minute.filter(|_| with_tokens);
            for (unit, limit) in
                [(RateUnit::Requests, requests_per_minute), (RateUnit::Tokens, tokens)]
            {
                let Some(limit) = limit.filter(|limit| *limit > 0) else { continue };
                let place = self.place_of(&(scope, unit, tenant, name));
                buckets.push(Bucket { place, scope, unit, limit });
            }
        }
        buckets
    }

    fn place_of(&self, name: &impl Hash) -> u128 {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one(name));
        ((u128::from(high) << 64) | u128::from(low)).max(KEYLESS_PLACE + 1)
    }

    fn withdraw(
        &self,
        bucket: Bucket,
        amount: u64,
        now_ns: u64,
    ) -> Result<BucketLevel, RateRefusal> {
        let mut refused_ns = None;
        let full_ns = self.change_bucket(bucket, now_ns, |full_ns| {
            let after = full_ns.max(now_ns).saturating_add(bucket.cost_ns(amount));
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
        Err(RateRefusal { scope: bucket.scope, unit: bucket.unit, level, retry_after_s })
    }

    fn change_bucket(&self, bucket: Bucket, now_ns: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        let mut shard = self.shard_of(bucket.place);
        let place = shard.find_place(bucket.place, now_ns);
        let full_ns = shard.full_ns.entry(place).or_insert(0);
        *full_ns = change(*full_ns);
        *full_ns
    }

    fn shard_of(&self, place: u128) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(place % SHARDS as u128).unwrap_or(0);
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitStanding {
    /// The scarcer of both is what the caller is told.
    fn with(mut self, unit: RateUnit, level: BucketLevel) -> Self {
        let known = match unit {
            RateUnit::Requests => &mut self.requests,
            RateUnit::Tokens => &mut self.tokens,
        };
        if known.is_none_or(|known| level.remaining < known.remaining) {
            *known = Some(level);
        }
        self
    }

    /// Adds the `x-ratelimit-*` headers.
    fn add_headers(self, headers: &mut HeaderMap) {
        for (what, level) in [("requests", self.requests), ("tokens", self.tokens)] {
            let Some(BucketLevel { limit, remaining, reset_ms }) = level else { continue };
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

tokio::task_local! {
    /// How the limits of the request that is being answered stand. Whoever counts is deep in a route, and
    /// the headers are added to whatever answer comes out of it.
    static STANDING: Cell<LimitStanding>;
}

/// Answers a request and says in its headers how the limits stood that it was counted by.
pub(crate) async fn tell_limits(answer: impl Future<Output = Response>) -> Response {
    let told = STANDING.scope(Cell::default(), async {
        let mut response = answer.await;
        STANDING.with(Cell::get).add_headers(response.headers_mut());
        response
    });
    told.await
}

/// Counts a request that is no turn, for its key and tenant.
pub(crate) fn count_request(gateway: &Gateway, key: &KeyRecord) -> Result<(), ApiError> {
    reserve_for_key(gateway, key, None).map(|_| ())
}

/// Counts a turn, for its key, tenant and person, with the tokens it seems to bring. The error is what
/// somebody who is not in crisis is told.
pub(crate) fn count_turn(
    gateway: &Gateway,
    key: &KeyRecord,
    turn: &Turn,
) -> Result<RateReservation, ApiError> {
    let load = TurnLoad { user: turn.user.as_ref(), turns: 1, tokens: expected_tokens(turn) };
    reserve_for_key(gateway, key, Some(load))
}

/// Counts several turns of nobody in particular at once.
pub(crate) fn count_turns(
    gateway: &Gateway,
    key: &KeyRecord,
    turns: &[Turn],
) -> Result<RateReservation, ApiError> {
    let tokens = turns.iter().map(expected_tokens).fold(0, u64::saturating_add);
    let turns = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    reserve_for_key(gateway, key, Some(TurnLoad { user: None, turns, tokens }))
}

/// Counts a run of a recipe over an input of so many bytes.
pub(crate) fn count_run(
    gateway: &Gateway,
    key: &KeyRecord,
    user: Option<&UserId>,
    input_bytes: usize,
) -> Result<RateReservation, ApiError> {
    let load = TurnLoad { user, turns: 1, tokens: Usage::tokens_of(input_bytes) };
    reserve_for_key(gateway, key, Some(load))
}

/// What turns bring beside the request itself.
struct TurnLoad<'a> {
    user: Option<&'a UserId>,
    turns: u32,
    tokens: u64,
}

fn reserve_for_key(
    gateway: &Gateway,
    key: &KeyRecord,
    load: Option<TurnLoad<'_>>,
) -> Result<RateReservation, ApiError> {
    let rates = gateway.rates(&key.tenant);
    if rates.is_unlimited() {
        return Ok(RateReservation::default());
    }
    let user = load.as_ref().map(|load| load.user);
    let requests = load.as_ref().map_or(1, |load| load.turns);
    let asker = Asker { tenant: &key.tenant, key: &key.id, user, requests };
    let tokens = load.map(|load| load.tokens);
    let reserved = gateway.limiter().reserve(asker, &rates, tokens, Instant::now());
    let standing = match &reserved {
        Ok(reservation) => reservation.standing,
        Err(refusal) => refusal.standing(),
    };
    // Fails outside a request, where nobody is told.
    let _ = STANDING.try_with(|known| known.set(standing));
    reserved.map_err(ApiError::from)
}

/// About how many tokens a model will read.
fn expected_tokens(turn: &Turn) -> u64 {
    let texts = turn.conversation.iter().map(|message| message.content.as_text().len());
    Usage::tokens_of(texts.sum())
}

/// Puts what a turn really used in the place of what was expected.
pub(crate) fn settle_tokens(gateway: &Gateway, reservation: &RateReservation, usage: Usage) {
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    gateway.limiter().settle(reservation, tokens, Instant::now());
}

/// What somebody without a valid key is told.
pub(crate) fn refuse_stranger(gateway: &Gateway) -> ApiError {
    let limit = gateway.settings().keyless_requests_per_minute;
    match gateway.limiter().count_keyless(limit, Instant::now()) {
        Ok(()) => ApiError::unauthorized(),
        Err(refusal) => refusal.into(),
    }
}

/// The system's own answer to a turn beyond a limit, if the person seems to be in crisis. Where too many
/// wait to be looked at already, nobody looks: the limit has to bound this too.
pub(crate) async fn answer_in_crisis(
    gateway: &Gateway,
    turn: Turn,
) -> Result<Option<Reply>, DeliverError> {
    // Held until the answer is there: both places bound how much is looked at together.
    let Some(_look) = gateway.look().await else { return Ok(None) };
    let Ok(_in_flight) = gateway.turns().try_acquire() else { return Ok(None) };
    gateway.engine().contact(turn).await
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
