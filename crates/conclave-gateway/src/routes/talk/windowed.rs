//! Answers as events that begin before the whole reply is decided.

use super::turns::{answer_with, count_reply, deliver_error, error_of_reply, event_response};
use crate::admission::rates::{self, RateReservation};
use crate::delivery::windowed_body::{
    KEEP_ALIVE, SentBytes, StreamOpening, WindowedBody, promised_delivery,
};
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::{Dialect, ReplyHead};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_engine::trace::followed;
use conclave_engine::{DeliverError, Progress, ReleasedWindow, Reply, Turn};
use http::{HeaderName, HeaderValue};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};

/// Answers a turn. Until something is released, nothing has left: an error still has its own status, and
/// a reply that was written again looks as if it were the first. A client that has heard nothing for too
/// long is sent comments; whatever goes wrong from then on is said in the stream.
pub(crate) async fn converse(
    gateway: &Gateway,
    turn: Turn,
    reservation: RateReservation,
    dialect: Box<dyn Dialect>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let now_ms = gateway.engine().clock.now_ms();
    let sent = SentBytes::default();
    let model = turn.model.clone();
    let mut progress = begin_turn(gateway, turn, reservation, &sent)?;
    let Ok(first) = timeout(KEEP_ALIVE, progress.recv()).await else {
        let opening = late_opening(gateway.clone(), model, started);
        let body = WindowedBody::new(Vec::new(), progress, dialect, end_stream, sent);
        return Ok(event_response(Body::new(body.opening_later(opening))));
    };
    match first {
        Some(Progress::Released(released)) => {
            gateway.metrics().observe_first_window(started.elapsed());
            Ok(window_response(&released, model, progress, dialect, sent))
        }
        Some(Progress::Decided(decided)) => {
            let reply = (*decided).map_err(|error| deliver_error(error, now_ms))?;
            Ok(answer_with(gateway, reply, dialect, true))
        }
        None => Err(ApiError::internal()),
    }
}

/// What a stream opens with that began before there was anything to say.
fn late_opening(gateway: Gateway, model: String, started: Instant) -> StreamOpening {
    Box::new(move |dialect, progress| match progress {
        Progress::Released(first) => {
            gateway.metrics().observe_first_window(started.elapsed());
            dialect.open_stream(&ReplyHead::of_window(first, model))
        }
        Progress::Decided(decided) => match decided.as_ref() {
            Ok(reply) if error_of_reply(reply, true).is_none() => {
                dialect.open_stream(&ReplyHead::of_reply(reply))
            }
            _ => Vec::new(),
        },
    })
}

/// Runs the turn to its end in a task of its own, whether or not the client stays.
fn begin_turn(
    gateway: &Gateway,
    turn: Turn,
    reservation: RateReservation,
    sent: &SentBytes,
) -> Result<UnboundedReceiver<Progress>, ApiError> {
    let in_flight = gateway.enter_turn()?;
    let (sender, progress) = unbounded_channel();
    let gateway = gateway.clone();
    let sent = sent.clone();
    let engine = gateway.engine();
    let streamed = sender.clone();
    let work = async move { engine.stream(turn, streamed).await };
    // The trace is looked for here: the task has none of its own.
    let work = followed(work, |done| done.as_ref().err().map(DeliverError::kind));
    tokio::spawn(async move {
        let decided = work.await;
        if let Ok(reply) = &decided {
            count_reply(&gateway, reply);
            rates::settle_tokens(&gateway, &reservation, reply.decision.usage);
        }
        if let Err(unheard) = sender.send(Progress::Decided(Box::new(decided)))
            && let Progress::Decided(decided) = unheard.0
        {
            // Dropped, it notes that the client went away, and after how many bytes.
            drop(promised_delivery(*decided, &sent));
        }
        drop(in_flight);
    });
    Ok(progress)
}

fn window_response(
    first: &ReleasedWindow,
    model: String,
    progress: UnboundedReceiver<Progress>,
    mut dialect: Box<dyn Dialect>,
    sent: SentBytes,
) -> Response {
    let head = ReplyHead::of_window(first, model);
    let mut frames = dialect.open_stream(&head);
    frames.extend(dialect.stream_piece(&first.text));
    let body = WindowedBody::new(frames, progress, dialect, end_stream, sent);
    let mut response = event_response(Body::new(body));
    if let Ok(id) = HeaderValue::try_from(head.id.to_string()) {
        response.headers_mut().insert(HeaderName::from_static("x-conclave-audit-id"), id);
    }
    response
}

/// The end of a stream that began: the rest of the reply, or why there is none.
fn end_stream(
    dialect: &mut dyn Dialect,
    decided: &Result<Reply, DeliverError>,
) -> Result<Vec<Bytes>, ApiError> {
    match decided {
        Ok(reply) => match error_of_reply(reply, true) {
            Some(error) => Err(error),
            None => Ok(dialect.close_stream(reply)),
        },
        Err(DeliverError::AuditUnavailable(cause)) => {
            tracing::error!(%cause, "a decision could not be recorded");
            Err(ApiError::audit_unavailable())
        }
        // Whatever else forbids a turn forbids it before a model is asked.
        Err(_) => Err(ApiError::upstream()),
    }
}
