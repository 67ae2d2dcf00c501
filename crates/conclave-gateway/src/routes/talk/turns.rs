//! What every judged endpoint does with its turn: run it to its end, and word what was decided.

use super::repeated::{Sent, give_back, keep, sent};
use super::windowed;
use crate::admission::entrance::{Entered, turn};
use crate::admission::idempotency::{Claim, Person};
use crate::admission::pacing;
use crate::admission::rates::Taken;
use crate::delivery::tracked_body::TrackedBody;
use crate::delivery::unabandoned::Unabandoned;
use crate::delivery::waiting_body::WaitingBody;
use crate::delivery::windowed_body::KEEP_ALIVE;
use crate::error::ApiError;
use crate::observation::metrics::Counted;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::dialect::{Dialect, Head};
use crate::wire::inquiry::Inquiry;
use crate::wire::own_fields::{add_headers, overhead, own_fields};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_core::{GenerationFailure, Outcome};
use conclave_engine::trace::followed;
use conclave_engine::{DeliverError, Reply, StreamPolicy, Turn};
use conclave_money::BudgetRefusal;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// What a stream of events is called.
pub(crate) const EVENTS: &str = "text/event-stream; charset=utf-8";

/// Answers an inquiry in a dialect.
pub(crate) async fn converse(
    gateway: &Gateway,
    entered: &Entered,
    inquiry: Inquiry,
    dialect: Box<dyn Dialect>,
) -> Result<Response, ApiError> {
    let streams = inquiry.stream;
    // A client that will parse the whole as JSON has no use for a part of it.
    let in_parts = streams && !inquiry.structured;
    let turn = turn(gateway, &entered.headers, &entered.key, inquiry);
    let turn = entered.understood(gateway, turn)?;
    let taken = match pacing::count_turn(gateway, &entered.key, &turn) {
        Ok(taken) => taken,
        Err(limited) => return beyond_limit(gateway, turn, dialect, streams, limited).await,
    };
    let repeat = entered.repeat.as_ref();
    let claim = match sent(gateway, &entered.key, repeat, Person::of(&turn)).await? {
        Sent::Before(response) => return Ok(response),
        Sent::First(claim) => claim,
    };
    let engine = gateway.engine();
    // What is to be said again in the same bytes is said as a whole.
    if in_parts && claim.is_none() && engine.settings.stream == StreamPolicy::Windowed {
        return windowed::converse(gateway, turn, taken, dialect).await;
    }
    let (is_late, is_claimed) = (IsLate::default(), claim.is_some());
    let late = is_late.clone();
    let work = Decided { gateway: gateway.clone(), taken, dialect, streams, claim, is_late };
    if !streams && !is_claimed {
        return work.answer(turn).await;
    }
    let mut work: Work = if is_claimed {
        // Others may wait for this answer, whether or not this client does.
        Box::pin(Unabandoned::new(work.answer(turn)))
    } else {
        Box::pin(work.answer(turn))
    };
    if !streams {
        return work.await;
    }
    if let Ok(answer) = timeout(KEEP_ALIVE, &mut work).await {
        return answer;
    }
    // Whatever is decided from here on stands in the stream: its status is sent.
    late.store(true, Ordering::Relaxed);
    let work = Box::pin(async move { respond(work.await) });
    Ok(windowed::events(Body::new(WaitingBody::new(work))))
}

/// Answers a turn.
type Work = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// Whether the client was told to wait: an error is then an event.
type IsLate = Arc<AtomicBool>;

/// Everything that has to be done with a turn once it is decided, whether or not the client stays.
struct Decided {
    gateway: Gateway,
    taken: Taken,
    dialect: Box<dyn Dialect>,
    streams: bool,
    claim: Option<Claim>,
    is_late: IsLate,
}

impl Decided {
    async fn answer(self, turn: Turn) -> Result<Response, ApiError> {
        let Self { gateway, taken, mut dialect, streams, claim, is_late } = self;
        let is_late = || is_late.load(Ordering::Relaxed);
        let engine = gateway.engine();
        match (detached(&gateway, async move { engine.deliver(turn).await }).await, claim) {
            (Ok(reply), claim) => {
                pacing::settle(&gateway, &taken, reply.decision.usage);
                let worded = word(&gateway, &reply, dialect, Way::of(streams, is_late()));
                let frames = worded.frames.clone();
                Ok(keep(response(reply, worded), &frames, claim).await)
            }
            (Err(error), claim) => {
                give_back(claim).await;
                if is_late() {
                    let frames = dialect.broken(&error).concat();
                    return Ok(Response::new(Body::from(frames)));
                }
                Err(error)
            }
        }
    }
}

/// A turn that a limit refuses. Somebody in crisis is answered all the same.
async fn beyond_limit(
    gateway: &Gateway,
    turn: Turn,
    dialect: Box<dyn Dialect>,
    streams: bool,
    limited: ApiError,
) -> Result<Response, ApiError> {
    let (now_ms, work) = (gateway.engine().clock.now_ms(), gateway.clone());
    let contact = Unabandoned::new(async move { pacing::contact(&work, turn).await });
    match contact.await.map_err(|error| undecided(error, now_ms))? {
        Some(reply) => {
            count(gateway, &reply);
            Ok(answer(gateway, reply, dialect, streams))
        }
        None => Err(limited),
    }
}

/// Runs a use-case to its end, whether or not the client stays, within the limit of turns in flight:
/// what was bought and judged is recorded.
pub(crate) async fn detached(
    gateway: &Gateway,
    task: impl Future<Output = Result<Reply, DeliverError>> + Send + 'static,
) -> Result<Reply, ApiError> {
    let now_ms = gateway.engine().clock.now_ms();
    let permit = gateway.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())?;
    let work = async move {
        let result = task.await;
        drop(permit);
        result
    };
    // A reply nobody waits for any more is dropped, which records its delivery as aborted.
    let work = followed(work, |done| done.as_ref().err().map(DeliverError::kind));
    let reply = Unabandoned::new(work).await.map_err(|error| undecided(error, now_ms))?;
    count(gateway, &reply);
    Ok(reply)
}

/// What a client is told when nothing was decided.
pub(crate) fn undecided(error: DeliverError, now_ms: u64) -> ApiError {
    match error {
        DeliverError::UnknownModel(_) => ApiError::unknown_model(format!("{error}.")),
        DeliverError::Forbidden(why) => ApiError::forbidden(sentence(&why)),
        DeliverError::Unpaid(refusal) => refused(&refusal, now_ms),
        DeliverError::AuditUnavailable(cause) => {
            tracing::error!(%cause, "a decision could not be recorded");
            ApiError::audit_unavailable()
        }
    }
}

/// How long to wait, in whole seconds, an hour at most.
pub(crate) fn wait_seconds(until_ms: u64, now_ms: u64) -> u32 {
    let seconds = until_ms.saturating_sub(now_ms).div_ceil(1_000).clamp(1, 3_600);
    u32::try_from(seconds).unwrap_or(3_600)
}

/// A turn that would be over a budget.
fn refused(refusal: &BudgetRefusal, now_ms: u64) -> ApiError {
    let message = sentence(&refusal.to_string());
    match refusal {
        BudgetRefusal::Unpriced { .. } => ApiError::forbidden(message),
        BudgetRefusal::Unavailable => ApiError::budget_unavailable(),
        _ => {
            let wait = refusal.retry_at_ms().map(|until_ms| wait_seconds(until_ms, now_ms));
            ApiError::insufficient_quota(message, wait)
        }
    }
}

/// Words of an error as a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter();
    first.chain(letters).chain(['.']).collect()
}

/// Adds a decision to the counters.
pub(crate) fn count(gateway: &Gateway, reply: &Reply) {
    gateway.metrics().deliberation(&reply.decision);
    gateway.metrics().decision(&Counted {
        recorded: reply.leaf_hash.is_some(),
        outcome: reply.decision.outcome,
        attempts: reply.decision.attempts(),
        usage: reply.decision.usage,
        cost: reply.decision.cost,
        overhead: overhead(reply),
    });
}

/// Answers with a decided reply, whole or as events.
pub(crate) fn answer(
    gateway: &Gateway,
    reply: Reply,
    dialect: Box<dyn Dialect>,
    streams: bool,
) -> Response {
    let worded = word(gateway, &reply, dialect, Way::of(streams, false));
    response(reply, worded)
}

/// How a reply is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Whole,
    Events,
    /// As events whose status is sent already.
    LateEvents,
}

impl Way {
    const fn of(streams: bool, is_late: bool) -> Self {
        match (streams, is_late) {
            (false, _) => Self::Whole,
            (true, false) => Self::Events,
            (true, true) => Self::LateEvents,
        }
    }
}

/// A reply as it leaves.
struct Worded {
    status: StatusCode,
    content_type: &'static str,
    frames: Vec<Bytes>,
}

impl Worded {
    fn json(status: StatusCode, body: &Value) -> Self {
        let frames = vec![Bytes::from(body.to_string())];
        Self { status, content_type: "application/json", frames }
    }
}

fn word(gateway: &Gateway, reply: &Reply, mut dialect: Box<dyn Dialect>, way: Way) -> Worded {
    let manners = gateway.manners();
    let events = |frames| Worded { status: StatusCode::OK, content_type: EVENTS, frames };
    if let Some(error) = error_of(reply, manners.reply_on_input_block) {
        if way == Way::LateEvents {
            return events(dialect.broken(&error));
        }
        let mut body = error.body(dialect.envelope());
        if !manners.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        return Worded::json(error.status(), &body);
    }
    if way != Way::Whole {
        let mut frames = dialect.opening(&Head::of(reply));
        frames.extend(dialect.closing(reply));
        return events(frames);
    }
    Worded::json(StatusCode::OK, &dialect.whole(reply))
}

/// The error that a decision is answered with, if it is.
pub(crate) fn error_of(reply: &Reply, reply_on_block: bool) -> Option<ApiError> {
    if let Some(refusal) = reply.decision.refusal {
        return Some(ApiError::refused(refusal));
    }
    match reply.decision.outcome {
        Outcome::Blocked if !reply_on_block => {
            let text = reply.decision.choices.first().map_or("", |c| &c.delivered.text);
            Some(ApiError::content_filter(text))
        }
        Outcome::Failed => Some(match reply.decision.failure() {
            Some(GenerationFailure::Timeout) => ApiError::upstream_timeout(),
            _ => ApiError::upstream(),
        }),
        _ => None,
    }
}

/// A decided reply as JSON, kept for whoever repeats the request.
pub(crate) async fn kept_json_response(
    (reply, claim): (Reply, Option<Claim>),
    status: StatusCode,
    body: &Value,
    change: impl FnOnce(&mut HeaderMap),
) -> Response {
    let worded = Worded::json(status, body);
    let frames = worded.frames.clone();
    let mut response = response(reply, worded);
    change(response.headers_mut());
    keep(response, &frames, claim).await
}

fn response(reply: Reply, worded: Worded) -> Response {
    let mut headers = HeaderMap::new();
    add_headers(&mut headers, &reply);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(worded.content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let body = TrackedBody::new(worded.frames, vec![reply.delivery]);
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = worded.status;
    *response.headers_mut() = headers;
    response
}
