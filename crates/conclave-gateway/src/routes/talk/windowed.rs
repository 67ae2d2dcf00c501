//! Answers as events that begin before the whole reply is decided.

use super::turns::{EVENTS, answer, count, error_of, undecided};
use crate::admission::pacing;
use crate::admission::rates::Taken;
use crate::delivery::windowed_body::{KEEP_ALIVE, Opening, Sent, WindowedBody, promise};
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::dialect::{Dialect, Head};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_engine::trace::followed;
use conclave_engine::{DeliverError, Progress, ReleasedWindow, Reply, Turn};
use http::{HeaderName, HeaderValue, header};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};

/// Answers a turn. Until something is released, nothing has left: an error still has its own status, and
/// a reply that was written again looks as if it were the first. A client that has heard nothing for too
/// long is sent comments; whatever goes wrong from then on is said in the stream.
pub(crate) async fn converse(
    gateway: &Gateway,
    turn: Turn,
    taken: Taken,
    dialect: Box<dyn Dialect>,
) -> Result<Response, ApiError> {
    let (started, now_ms) = (Instant::now(), gateway.engine().clock.now_ms());
    let sent = Sent::default();
    let model = turn.model.clone();
    let mut progress = begin(gateway, turn, taken, &sent)?;
    let Ok(first) = timeout(KEEP_ALIVE, progress.recv()).await else {
        let opening = opening(gateway.clone(), model, started);
        let body = WindowedBody::new(Vec::new(), progress, dialect, ending, sent);
        return Ok(events(Body::new(body.opening_later(opening))));
    };
    match first {
        Some(Progress::Released(released)) => {
            gateway.metrics().first_window(started.elapsed());
            Ok(stream(&released, model, progress, dialect, sent))
        }
        Some(Progress::Decided(decided)) => {
            let reply = (*decided).map_err(|error| undecided(error, now_ms))?;
            Ok(answer(gateway, reply, dialect, true))
        }
        None => Err(ApiError::internal()),
    }
}

/// What a stream opens with that began before there was anything to say.
fn opening(gateway: Gateway, model: String, started: Instant) -> Opening {
    Box::new(move |dialect, progress| match progress {
        Progress::Released(first) => {
            gateway.metrics().first_window(started.elapsed());
            dialect.opening(&Head::released(first, model))
        }
        Progress::Decided(decided) => match decided.as_ref() {
            Ok(reply) if error_of(reply, true).is_none() => dialect.opening(&Head::of(reply)),
            _ => Vec::new(),
        },
    })
}

/// Runs the turn to its end in a task of its own, whether or not the client stays.
fn begin(
    gateway: &Gateway,
    turn: Turn,
    taken: Taken,
    sent: &Sent,
) -> Result<UnboundedReceiver<Progress>, ApiError> {
    let permit = gateway.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())?;
    let (sender, progress) = unbounded_channel();
    let (gateway, sent) = (gateway.clone(), sent.clone());
    let engine = gateway.engine();
    let streamed = sender.clone();
    let work = async move { engine.stream(turn, streamed).await };
    // The trace is looked for here: the task has none of its own.
    let work = followed(work, |done| done.as_ref().err().map(DeliverError::kind));
    tokio::spawn(async move {
        let decided = work.await;
        if let Ok(reply) = &decided {
            count(&gateway, reply);
            pacing::settle(&gateway, &taken, reply.decision.usage);
        }
        if let Err(unheard) = sender.send(Progress::Decided(Box::new(decided)))
            && let Progress::Decided(decided) = unheard.0
        {
            // Dropped, it notes that the client went away, and after how many bytes.
            drop(promise(*decided, &sent));
        }
        drop(permit);
    });
    Ok(progress)
}

fn stream(
    first: &ReleasedWindow,
    model: String,
    progress: UnboundedReceiver<Progress>,
    mut dialect: Box<dyn Dialect>,
    sent: Sent,
) -> Response {
    let head = Head::released(first, model);
    let mut frames = dialect.opening(&head);
    frames.extend(dialect.piece(&first.text));
    let body = WindowedBody::new(frames, progress, dialect, ending, sent);
    let mut response = events(Body::new(body));
    if let Ok(id) = HeaderValue::try_from(head.id.to_string()) {
        response.headers_mut().insert(HeaderName::from_static("x-conclave-audit-id"), id);
    }
    response
}

/// A response that is sent while it is made.
pub(crate) fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Some proxies would gather the whole before they pass it on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The end of a stream that began: the rest of the reply, or why there is none.
fn ending(
    dialect: &mut dyn Dialect,
    decided: &Result<Reply, DeliverError>,
) -> Result<Vec<Bytes>, ApiError> {
    match decided {
        Ok(reply) => match error_of(reply, true) {
            Some(error) => Err(error),
            None => Ok(dialect.closing(reply)),
        },
        Err(DeliverError::AuditUnavailable(cause)) => {
            tracing::error!(%cause, "a decision could not be recorded");
            Err(ApiError::audit_unavailable())
        }
        // Whatever else forbids a turn forbids it before a model is asked.
        Err(_) => Err(ApiError::upstream()),
    }
}
