//! What every talk does with its turn: count it, run it to its end whether or not the client stays, and word
//! what was decided.
//!
//! **Invariant:** what was begun is finished: a client that hangs up stops neither the decision nor its
//! record, and a claim on an idempotency key is kept or given back.
//! **Invariant:** whoever a rate limit refuses is looked at first, because somebody in crisis is answered.

use super::windowed;
use crate::admission::entrance::{AdmittedRequest, TalkRequest};
use crate::admission::idempotency::{
    AnswerClaim, AnswerOwner, RepeatCheck, check_repeat, give_back_claim, keep_answer,
};
use crate::admission::rates::{self, RateReservation};
use crate::delivery::tracked_body::TrackedBody;
use crate::delivery::waiting_body::WaitingBody;
use crate::delivery::windowed_body::KEEP_ALIVE;
use crate::error::{ApiError, as_sentence};
use crate::observation::metrics::DecisionCount;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::{Dialect, ReplyHead, add_own_headers, overhead_of, own_fields};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_core::{GenerationFailure, GuardCode, Outcome};
use conclave_engine::trace::followed;
use conclave_engine::{DeliverError, OverShare, Reply, StreamPolicy, Turn, refusal_sentence};
use conclave_money::BudgetRefusal;
use conclave_voice::Language;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::time::timeout;

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// Answers a turn in a dialect. Each way to an answer is boxed, so that the layers around a handler, which
/// box it again, carry a pointer instead of the largest of them.
pub(crate) async fn converse(
    gateway: &Gateway,
    request: &AdmittedRequest,
    talk: TalkRequest,
    dialect: Box<dyn Dialect>,
) -> Result<Response, ApiError> {
    let TalkRequest { turn, streams, structured } = talk;
    let reservation = match rates::count_turn(gateway, &request.key, &turn) {
        Ok(reservation) => reservation,
        Err(refusal) => {
            let answering = answer_beyond_limit(gateway, turn, dialect, streams, refusal);
            return Box::pin(answering).await;
        }
    };
    // Counted before it is looked up: a repeated request costs us the lookup too.
    let asked = request.idempotency_key.as_ref();
    let claim =
        match check_repeat(gateway, &request.key, asked, AnswerOwner::of_turn(&turn)).await? {
            RepeatCheck::Answered(response) => return Ok(response),
            RepeatCheck::First(claim) => claim,
        };
    // A client that will parse the whole as JSON has no use for a part of it, and what is to be said again in
    // the same bytes is said as a whole.
    let may_stream_windows = streams && !structured && claim.is_none();
    if may_stream_windows && gateway.engine().settings.stream == StreamPolicy::Windowed {
        return Box::pin(windowed::converse(gateway, turn, reservation, dialect)).await;
    }
    let is_claimed = claim.is_some();
    let is_late = IsLate::default();
    let plan = AnswerPlan {
        gateway: gateway.clone(),
        reservation,
        dialect,
        streams,
        claim,
        is_late: is_late.clone(),
    };
    let answering: Answering = if is_claimed {
        // Others may wait for this answer, whether or not this client does.
        Box::pin(DetachedWork::new(plan.answer(turn)))
    } else {
        Box::pin(plan.answer(turn))
    };
    if streams { answer_as_events(answering, &is_late).await } else { answering.await }
}

/// The way to an answer.
type Answering = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// Whether the client was told to wait: an error is then an event.
type IsLate = Arc<AtomicBool>;

/// Waits for a decision as long as a client waits in silence; one that takes longer becomes a stream that
/// begins with comments.
async fn answer_as_events(
    mut answering: Answering,
    is_late: &AtomicBool,
) -> Result<Response, ApiError> {
    if let Ok(answer) = timeout(KEEP_ALIVE, &mut answering).await {
        return answer;
    }
    // Whatever is decided from here on stands in the stream: its status is sent.
    is_late.store(true, Ordering::Relaxed);
    let answering = Box::pin(async move { respond(answering.await) });
    Ok(event_response(Body::new(WaitingBody::new(answering))))
}

/// Everything that has to be done with a turn, whether or not the client stays.
struct AnswerPlan {
    gateway: Gateway,
    reservation: RateReservation,
    dialect: Box<dyn Dialect>,
    streams: bool,
    claim: Option<AnswerClaim>,
    is_late: IsLate,
}

impl AnswerPlan {
    async fn answer(self, turn: Turn) -> Result<Response, ApiError> {
        let Self { gateway, reservation, mut dialect, streams, claim, is_late } = self;
        let engine = gateway.engine();
        let decided =
            decide_turn(&gateway, Box::pin(async move { engine.deliver(turn).await })).await;
        // Looked at as late as can be: the client may be told to wait at any moment until then.
        match decided {
            Ok(reply) => {
                rates::settle_tokens(&gateway, &reservation, reply.decision.usage);
                let mode = SendMode::new(streams, is_late.load(Ordering::Relaxed));
                let worded = word_reply(&gateway, &reply, dialect, mode);
                let frames = worded.frames.clone();
                Ok(keep_answer(reply_response(reply, worded), &frames, claim).await)
            }
            Err(error) => {
                give_back_claim(claim).await;
                if is_late.load(Ordering::Relaxed) {
                    let frames = dialect.break_stream(&error).concat();
                    return Ok(Response::new(Body::from(frames)));
                }
                Err(error)
            }
        }
    }
}

/// A turn that a limit refuses. Somebody in crisis is answered all the same.
async fn answer_beyond_limit(
    gateway: &Gateway,
    turn: Turn,
    dialect: Box<dyn Dialect>,
    streams: bool,
    refusal: ApiError,
) -> Result<Response, ApiError> {
    let now_ms = gateway.engine().clock.now_ms();
    let house = gateway.clone();
    let contact = DetachedWork::new(async move { rates::answer_in_crisis(&house, turn).await });
    match contact.await.map_err(|error| deliver_error(error, now_ms))? {
        Some(reply) => {
            count_reply(gateway, &reply);
            Ok(answer_with(gateway, reply, dialect, streams))
        }
        None => Err(refusal),
    }
}

/// Has a reply decided, traced and counted, whether or not the client stays. What decides it is boxed by
/// whoever asks: it is large, and everything around it would be copied with it.
pub(crate) async fn decide_turn(
    gateway: &Gateway,
    task: BoxFuture<'static, Result<Reply, DeliverError>>,
) -> Result<Reply, ApiError> {
    let now_ms = gateway.engine().clock.now_ms();
    let task = followed(task, |decided| decided.as_ref().err().map(DeliverError::kind));
    // A reply nobody waits for any more is dropped, which records its delivery as aborted.
    let decided = run_to_end(gateway, task).await?;
    let reply = decided.map_err(|error| deliver_error(error, now_ms))?;
    count_reply(gateway, &reply);
    Ok(reply)
}

/// Runs a use-case of the engine to its end, whether or not the client stays, within the limit of turns in
/// flight: what was bought and judged is recorded.
pub(crate) async fn run_to_end<T: Send + 'static>(
    gateway: &Gateway,
    task: impl Future<Output = T> + Send + 'static,
) -> Result<T, ApiError> {
    let in_flight = gateway.enter_turn()?;
    let work = async move {
        let done = task.await;
        drop(in_flight);
        done
    };
    Ok(DetachedWork::new(work).await)
}

/// Work that runs in the request's own task; if that is dropped half-way, because the client went away, the
/// rest is finished in a task of its own.
pub(crate) struct DetachedWork<T: Send + 'static> {
    rest: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T: Send + 'static> DetachedWork<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { rest: Some(Box::pin(work)) }
    }
}

impl<T: Send + 'static> Future for DetachedWork<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = self.rest.as_mut() else { return Poll::Pending };
        let result = work.as_mut().poll(context);
        if result.is_ready() {
            self.rest = None;
        }
        result
    }
}

impl<T: Send + 'static> Drop for DetachedWork<T> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(rest);
        }
    }
}

/// What a client is told when nothing was decided.
pub(crate) fn deliver_error(error: DeliverError, now_ms: u64) -> ApiError {
    match error {
        DeliverError::UnknownModel(_) => ApiError::unknown_model(format!("{error}.")),
        DeliverError::Forbidden(why) => ApiError::forbidden(as_sentence(&why)),
        DeliverError::OverShare(refusal) => over_share_error(refusal),
        DeliverError::Unpaid(refusal, language) => budget_error(&refusal, language, now_ms),
        DeliverError::AuditUnavailable(cause) => {
            tracing::error!(%cause, "a decision could not be recorded");
            ApiError::audit_unavailable()
        }
    }
}

/// A long text whose caller has more of them waiting than its share.
fn over_share_error(refusal: OverShare) -> ApiError {
    let message = as_sentence(&refusal.to_string());
    ApiError::rate_limit_exceeded(message, refusal.retry_after_s)
}

/// How long to wait, in whole seconds, an hour at most.
pub(crate) fn wait_seconds(until_ms: u64, now_ms: u64) -> u32 {
    let seconds = until_ms.saturating_sub(now_ms).div_ceil(1_000).clamp(1, 3_600);
    u32::try_from(seconds).unwrap_or(3_600)
}

/// A turn that would be over a budget.
fn budget_error(refusal: &BudgetRefusal, language: Language, now_ms: u64) -> ApiError {
    let message = refusal_sentence(refusal, language);
    match refusal {
        BudgetRefusal::Unpriced { .. } => ApiError::forbidden(message),
        BudgetRefusal::Unavailable => ApiError::budget_unavailable(),
        _ => {
            let wait = refusal.retry_at_ms(now_ms).map(|until_ms| wait_seconds(until_ms, now_ms));
            ApiError::insufficient_quota(message, wait)
        }
    }
}

/// Adds a decision to the counters.
pub(crate) fn count_reply(gateway: &Gateway, reply: &Reply) {
    gateway.metrics().count_deliberation(&reply.decision);
    gateway.metrics().count_decision(&DecisionCount {
        recorded: reply.leaf_hash.is_some(),
        outcome: reply.decision.outcome,
        attempts: reply.decision.attempts(),
        usage: reply.decision.usage,
        cost: reply.decision.cost,
        overhead: overhead_of(reply),
    });
}

/// Answers with a decided reply, whole or as events.
pub(crate) fn answer_with(
    gateway: &Gateway,
    reply: Reply,
    dialect: Box<dyn Dialect>,
    streams: bool,
) -> Response {
    let worded = word_reply(gateway, &reply, dialect, SendMode::new(streams, false));
    reply_response(reply, worded)
}

/// How a reply is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendMode {
    Whole,
    Events,
    /// As events whose status is sent already.
    LateEvents,
}

impl SendMode {
    const fn new(streams: bool, is_late: bool) -> Self {
        match (streams, is_late) {
            (false, _) => Self::Whole,
            (true, false) => Self::Events,
            (true, true) => Self::LateEvents,
        }
    }
}

/// A reply as it leaves.
struct WordedReply {
    status: StatusCode,
    content_type: &'static str,
    frames: Vec<Bytes>,
}

impl WordedReply {
    fn json(status: StatusCode, body: &Value) -> Self {
        let frames = vec![Bytes::from(body.to_string())];
        Self { status, content_type: "application/json", frames }
    }

    const fn events(frames: Vec<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type: EVENT_STREAM, frames }
    }
}

fn word_reply(
    gateway: &Gateway,
    reply: &Reply,
    mut dialect: Box<dyn Dialect>,
    mode: SendMode,
) -> WordedReply {
    let settings = gateway.settings();
    if let Some(error) = error_of_reply(reply, settings.reply_on_input_block) {
        if mode == SendMode::LateEvents {
            return WordedReply::events(dialect.break_stream(&error));
        }
        let status = error.status();
        let mut body = error.body(dialect.envelope());
        if !settings.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        return WordedReply::json(status, &body);
    }
    if mode == SendMode::Whole {
        return WordedReply::json(StatusCode::OK, &dialect.whole_reply(reply));
    }
    let mut frames = dialect.open_stream(&ReplyHead::of_reply(reply));
    frames.extend(dialect.close_stream(reply));
    WordedReply::events(frames)
}

/// The error that a decision is answered with, if it is.
pub(crate) fn error_of_reply(reply: &Reply, reply_on_block: bool) -> Option<ApiError> {
    match reply.decision.outcome {
        // Once a model was asked, what is withheld is a reply, and the notice stands in its place.
        Outcome::Blocked if reply.decision.attempts() == 0 => {
            let text = reply.decision.choices.first().map_or("", |c| &c.delivered.text);
            let code = reply.decision.refusal.unwrap_or(GuardCode::Harmful);
            let error = ApiError::refused_by_guard(code, text);
            (!reply_on_block || !error.is_content_filter()).then_some(error)
        }
        Outcome::Failed => Some(match reply.decision.upstream_refusal() {
            Some(refusal) => ApiError::refused_upstream(refusal),
            None if reply.decision.failure() == Some(GenerationFailure::Timeout) => {
                ApiError::upstream_timeout()
            }
            None => ApiError::upstream(),
        }),
        _ => None,
    }
}

/// A decided reply as JSON, kept for whoever repeats the request; `outcome` is said in the place of the
/// decision's own.
pub(crate) async fn kept_json_response(
    reply: Reply,
    claim: Option<AnswerClaim>,
    status: StatusCode,
    body: &Value,
    outcome: Option<&'static str>,
) -> Response {
    let worded = WordedReply::json(status, body);
    let frames = worded.frames.clone();
    let mut response = reply_response(reply, worded);
    if let Some(outcome) = outcome {
        let name = HeaderName::from_static("x-conclave-outcome");
        response.headers_mut().insert(name, HeaderValue::from_static(outcome));
    }
    keep_answer(response, &frames, claim).await
}

fn reply_response(reply: Reply, worded: WordedReply) -> Response {
    let mut headers = HeaderMap::new();
    add_own_headers(&mut headers, &reply);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(worded.content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A provider that takes no more for now says how long.
    let refused = reply.decision.upstream_refusal().filter(|_| worded.status != StatusCode::OK);
    if let Some(seconds) = refused.and_then(|refusal| refusal.retry_after_s) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    let body = TrackedBody::new(worded.frames, vec![reply.delivery]);
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = worded.status;
    *response.headers_mut() = headers;
    response
}

/// A response that is sent while it is made.
pub(crate) fn event_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Some proxies would gather the whole before they pass it on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
