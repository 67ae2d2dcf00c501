//! Buckets, on a clock of the test's own.

use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn rate(requests: Option<u32>, tokens: Option<u32>) -> Rate {
    Rate { requests_per_minute: requests, tokens_per_minute: tokens }
}

struct Names {
    tenant: TenantId,
    key: KeyId,
    user: UserId,
}

fn names(number: usize) -> Names {
    Names {
        tenant: TenantId::new("acme").unwrap(),
        key: KeyId::new("key").unwrap(),
        user: UserId::new(format!("user {number}")).unwrap(),
    }
}

impl Names {
    fn asker(&self) -> Asker<'_> {
        Asker { tenant: &self.tenant, key: &self.key, user: Some(Some(&self.user)), requests: 1 }
    }
}

#[test]
fn a_minute_lets_its_limit_through_and_then_one_at_a_time() {
    let (limiter, names) = (RateLimiter::default(), names(0));
    let rates = Rates { per_key: rate(Some(60), None), ..Rates::default() };
    let now = limiter.began;
    for left in (0..60).rev() {
        let reserved = limiter.reserve(names.asker(), &rates, None, now).unwrap();
        assert_eq!(reserved.standing.requests.unwrap().remaining, left);
    }
    let refusal = limiter.reserve(names.asker(), &rates, None, now).unwrap_err();
    assert_eq!((refusal.scope, refusal.unit), (RateScope::Key, RateUnit::Requests));
    assert_eq!((refusal.level.remaining, refusal.retry_after_s), (0, 1));
    assert!(refusal.sentence().contains("60 requests a minute for this key"));
    let later = now + Duration::from_secs(1);
    assert!(limiter.reserve(names.asker(), &rates, None, later).is_ok());
    assert!(limiter.reserve(names.asker(), &rates, None, later).is_err());
    let next = now + Duration::from_secs(120);
    let reserved = limiter.reserve(names.asker(), &rates, None, next).unwrap();
    assert_eq!(
        reserved.standing.requests.unwrap().remaining,
        59,
        "it never holds more than a minute"
    );
}

#[test]
fn a_request_with_many_texts_counts_as_many() {
    let (limiter, names) = (RateLimiter::default(), names(0));
    let rates = Rates { per_key: rate(Some(60), None), ..Rates::default() };
    let asker = |requests| Asker { requests, ..names.asker() };
    let now = limiter.began;
    let reserved = limiter.reserve(asker(32), &rates, None, now).unwrap();
    assert_eq!(reserved.standing.requests.unwrap().remaining, 28);
    assert!(limiter.reserve(asker(32), &rates, None, now).is_err());
    assert!(limiter.reserve(asker(28), &rates, None, now).is_ok());
    let next = now + Duration::from_secs(120);
    assert!(limiter.reserve(asker(600), &rates, None, next).is_ok(), "more than a minute's worth");
}

#[test]
fn a_clock_that_goes_back_gives_nothing_away() {
    let (limiter, names) = (RateLimiter::default(), names(0));
    let rates = Rates { per_key: rate(Some(2), None), ..Rates::default() };
    let now = limiter.began + Duration::from_secs(5);
    assert!(limiter.reserve(names.asker(), &rates, None, now).is_ok());
    assert!(limiter.reserve(names.asker(), &rates, None, now).is_ok());
    assert!(limiter.reserve(names.asker(), &rates, None, limiter.began).is_err());
}

#[test]
fn what_one_limit_refuses_takes_nothing_from_the_others() {
    let limiter = RateLimiter::default();
    let rates =
        Rates { per_key: rate(Some(10), None), per_user: rate(Some(1), None), ..Rates::default() };
    let (ana, ben, now) = (names(1), names(2), limiter.began);
    assert!(limiter.reserve(ana.asker(), &rates, None, now).is_ok());
    for _ in 0..50 {
        let refusal = limiter.reserve(ana.asker(), &rates, None, now).unwrap_err();
        assert_eq!(refusal.scope, RateScope::User);
    }
    let reserved = limiter.reserve(ben.asker(), &rates, None, now).unwrap();
    assert_eq!(reserved.standing.requests.unwrap().remaining, 0, "the scarcest is told");
    let open = Rates { per_key: rate(Some(10), None), ..Rates::default() };
    let reserved = limiter.reserve(ben.asker(), &open, None, now).unwrap();
    assert_eq!(reserved.standing.requests.unwrap().remaining, 7, "three were reserved, not fifty");
}

#[test]
fn tokens_are_settled_with_what_was_really_used() {
    let (limiter, names) = (RateLimiter::default(), names(0));
    let rates = Rates { per_tenant: rate(None, Some(1_000)), ..Rates::default() };
    let now = limiter.began;
    let reserved = limiter.reserve(names.asker(), &rates, Some(100), now).unwrap();
    assert_eq!(reserved.standing.tokens.unwrap().remaining, 900);
    limiter.settle(&reserved, 2_000, now);
    let refusal = limiter.reserve(names.asker(), &rates, Some(1), now).unwrap_err();
    assert_eq!(refusal.unit, RateUnit::Tokens);
    assert!((60..=61).contains(&refusal.retry_after_s), "{refusal:?}");
    let later = now + Duration::from_secs(62);
    let reserved = limiter.reserve(names.asker(), &rates, Some(10), later).unwrap();
    limiter.settle(&reserved, 0, later);
    let reserved = limiter.reserve(names.asker(), &rates, Some(1), later).unwrap();
    assert!(reserved.standing.tokens.unwrap().remaining >= 20, "what was not used is given back");
    let alone = later + Duration::from_secs(61);
    assert!(limiter.reserve(names.asker(), &rates, Some(u64::MAX), alone).is_ok(), "a full bucket");
}

#[test]
fn a_flood_of_names_is_bounded_and_shares_one_limit() {
    let limiter = RateLimiter::default();
    let rates = Rates { per_user: rate(Some(1), None), ..Rates::default() };
    let now = limiter.began;
    let let_in = (0..BUCKETS_MAX * 2)
        .filter(|number| limiter.reserve(names(*number).asker(), &rates, None, now).is_ok())
        .count();
    let known: usize = limiter.shards.iter().map(|shard| shard.lock().unwrap().full_ns.len()).sum();
    assert!(known <= BUCKETS_MAX + SHARDS, "{known}");
    assert!(let_in <= BUCKETS_MAX + SHARDS, "{let_in}");
    // Once the minute is over, what is full again makes room.
    let later = now + Duration::from_secs(61);
    assert!(limiter.reserve(names(usize::MAX).asker(), &rates, None, later).is_ok());
}

#[test]
fn callers_without_a_key_share_one_limit() {
    let limiter = RateLimiter::default();
    let now = limiter.began;
    let let_in = (0..100).filter(|_| limiter.count_keyless(7, now).is_ok()).count();
    assert_eq!(let_in, 7);
    assert!((0..100).all(|_| limiter.count_keyless(0, now).is_ok()), "0 counts nobody");
}

proptest! {
    /// Whatever the pace, no minute lets more through than twice the limit, and no two minutes more than
    /// three times: a bucketful and what flows in.
    #[test]
    fn never_more_than_the_bucket_and_what_flows_in(
        limit in 1_u32..200,
        steps in prop::collection::vec(0_u64..3_000, 1..400),
    ) {
        let (limiter, names) = (RateLimiter::default(), names(0));
        let rates = Rates { per_key: rate(Some(limit), None), ..Rates::default() };
        let (mut at_ms, mut let_in) = (0, 0_u64);
        for step in steps {
            at_ms += step;
            let now = limiter.began + Duration::from_millis(at_ms);
            let_in += u64::from(limiter.reserve(names.asker(), &rates, None, now).is_ok());
            let most = u64::from(limit) + u64::from(limit) * at_ms / 60_000;
            prop_assert!(let_in <= most, "{let_in} of {most} after {at_ms} ms");
        }
    }
}

#[tokio::test]
async fn the_answer_says_how_the_limits_stood_and_nothing_where_none_counted() {
    let level = BucketLevel { limit: 60, remaining: 59, reset_ms: 1_000 };
    let counted = async {
        STANDING.with(|known| known.set(LimitStanding { requests: Some(level), tokens: None }));
        Response::default()
    };
    let told = tell_limits(counted).await;
    let told = |name: &str| told.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!(told("x-ratelimit-limit-requests"), Some("60"));
    assert_eq!(told("x-ratelimit-remaining-requests"), Some("59"));
    assert_eq!(told("x-ratelimit-reset-requests"), Some("1000ms"));
    assert_eq!(told("x-ratelimit-limit-tokens"), None);
    let uncounted = tell_limits(async { Response::default() }).await;
    assert!(uncounted.headers().is_empty());
}
