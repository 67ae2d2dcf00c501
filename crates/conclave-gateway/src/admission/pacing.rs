//! Who may go on, by the limits on how fast one may ask.
//!
//! **Invariant:** whoever a limit refuses and seems to be in crisis is answered all the same, by the system
//! itself: no model is asked for it.

use crate::admission::rates::{Asker, Standing, Taken};
use crate::error::ApiError;
use crate::state::Gateway;
use conclave_core::{Usage, UserId};
use conclave_engine::{DeliverError, KeyRecord, Reply, Turn};
use http::HeaderMap;
use std::cell::Cell;
use std::time::Instant;

tokio::task_local! {
    /// How the limits of the request that is being answered stand.
    static STANDING: Cell<Standing>;
}

/// Runs a request and says how its limits stood.
pub(crate) async fn watched<T>(request: impl Future<Output = T>) -> (T, Standing) {
    let scope = STANDING.scope(Cell::default(), async {
        let answer = request.await;
        (answer, STANDING.try_with(Cell::get).unwrap_or_default())
    });
    scope.await
}

/// Adds how the limits stand to an answer.
pub(crate) fn tell(standing: Standing, headers: &mut HeaderMap) {
    standing.add_headers(headers);
}

fn note(standing: Standing) {
    // Outside a request nobody is told.
    let _ = STANDING.try_with(|known| known.set(standing));
}

/// Counts a request that is no turn, for its key and tenant.
pub(crate) fn count(gateway: &Gateway, key: &KeyRecord) -> Result<(), ApiError> {
    take(gateway, key, None).map(|_| ())
}

/// Counts a turn, for its key, tenant and person, with the tokens it seems to bring. The error is what
/// somebody who is not in crisis is told.
pub(crate) fn count_turn(
    gateway: &Gateway,
    key: &KeyRecord,
    turn: &Turn,
) -> Result<Taken, ApiError> {
    take(gateway, key, Some(Load { user: turn.user.as_ref(), turns: 1, tokens: tokens_of(turn) }))
}

/// Counts several turns of nobody in particular at once.
pub(crate) fn count_turns(
    gateway: &Gateway,
    key: &KeyRecord,
    turns: &[Turn],
) -> Result<Taken, ApiError> {
    let tokens = turns.iter().map(tokens_of).fold(0, u64::saturating_add);
    let turns = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    take(gateway, key, Some(Load { user: None, turns, tokens }))
}

/// Counts a run of a recipe over an input of so many bytes.
pub(crate) fn count_run(
    gateway: &Gateway,
    key: &KeyRecord,
    user: Option<&UserId>,
    bytes: usize,
) -> Result<Taken, ApiError> {
    take(gateway, key, Some(Load { user, turns: 1, tokens: Usage::tokens_of(bytes) }))
}

/// What turns bring.
struct Load<'a> {
    user: Option<&'a UserId>,
    turns: u32,
    tokens: u64,
}

fn take(gateway: &Gateway, key: &KeyRecord, load: Option<Load<'_>>) -> Result<Taken, ApiError> {
    let rates = gateway.rates(&key.tenant);
    if rates.is_unlimited() {
        return Ok(Taken::default());
    }
    let user = load.as_ref().map(|load| load.user);
    let requests = load.as_ref().map_or(1, |load| load.turns);
    let asker = Asker { tenant: &key.tenant, key: &key.id, user, requests };
    let tokens = load.map(|load| load.tokens);
    match gateway.limiter().take(asker, &rates, tokens, Instant::now()) {
        Ok(taken) => {
            note(taken.standing);
            Ok(taken)
        }
        Err(limited) => {
            note(limited.standing());
            Err(ApiError::rate_limit_exceeded(limited.sentence(), limited.retry_after_s))
        }
    }
}

/// About how many tokens a model will read.
fn tokens_of(turn: &Turn) -> u64 {
    let texts = turn.conversation.iter().map(|message| message.content.as_text().len());
    Usage::tokens_of(texts.sum())
}

/// Puts what a turn really used in the place of what was expected.
pub(crate) fn settle(gateway: &Gateway, taken: &Taken, usage: Usage) {
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    gateway.limiter().settle(taken, tokens, Instant::now());
}

/// What somebody without a valid key is told: all of them share one limit.
pub(crate) fn stranger(gateway: &Gateway) -> ApiError {
    let limit = gateway.manners().keyless_requests_per_minute;
    match gateway.limiter().take_keyless(limit, Instant::now()) {
        Ok(()) => ApiError::unauthorized(),
        Err(limited) => ApiError::rate_limit_exceeded(limited.sentence(), limited.retry_after_s),
    }
}

/// The system's own answer to a turn beyond a limit, if the person seems to be in crisis.
pub(crate) async fn contact(gateway: &Gateway, turn: Turn) -> Result<Option<Reply>, DeliverError> {
    let (Some(_look), Ok(_turn)) = (gateway.look().await, gateway.turns().try_acquire()) else {
        return Ok(None);
    };
    gateway.engine().contact(turn).await
}
