//! `POST /v1/chat/completions`: parse, permit, deliver; unary and streaming differ only at the end.

use super::respond;
use crate::auth::{Need, admit};
use crate::error::{ApiError, error_body};
use crate::metrics::Counted;
use crate::state::Gateway;
use crate::tracked_body::TrackedBody;
use crate::unabandoned::Unabandoned;
use crate::wire::chat_reply::{Form, completion};
use crate::wire::chat_request::ChatRequest;
use crate::wire::own_fields::{add_headers, overhead, own_fields};
use crate::wire::sse;
use crate::{identity, intake, strict_json};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use conclave_core::{GenerationFailure, Outcome};
use conclave_engine::{DeliverError, KeyRecord, Reply, Turn, Unpaid};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;

/// Answers one chat request.
pub(super) async fn complete(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(handle(&gateway, request).await)
}

async fn handle(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let key = admit(gateway, &parts.headers, Need::Converse);
    // The body is read either way: a client that is still sending cannot read our refusal.
    let bytes = intake::read(&parts.headers, body, gateway.limits()).await;
    let (key, bytes) = (key?, bytes?);
    let document = strict_json::parse(&bytes)
        .map_err(|error| ApiError::malformed(format!("The body is not valid JSON: {error}.")))?;
    drop(bytes);
    let request = ChatRequest::parse(document)?;
    let streaming = Streaming { on: request.stream, include_usage: request.include_usage };
    let manners = gateway.manners();
    let form = Form { structured: request.structured, omit_own_fields: manners.omit_own_fields };
    let turn = turn(gateway, &parts.headers, &key, request)?;
    let reply = run(gateway, turn).await?;
    Ok(answer(reply, form, streaming, manners.reply_on_input_block))
}

#[derive(Clone, Copy)]
struct Streaming {
    on: bool,
    include_usage: bool,
}

fn turn(
    gateway: &Gateway,
    headers: &HeaderMap,
    key: &KeyRecord,
    request: ChatRequest,
) -> Result<Turn, ApiError> {
    let user = identity::user(&request.body)?;
    let session = identity::session(headers, &key.tenant, user.as_ref(), &request.conversation)?;
    let modes = &gateway.engine().settings.modes_allowed;
    let context = identity::context(headers, request.metadata.as_ref(), modes)?;
    Ok(Turn {
        tenant: key.tenant.clone(),
        key: Some(key.id.clone()),
        user,
        session,
        model: request.model,
        choices: request.choices,
        conversation: request.conversation,
        body: Arc::new(request.body),
        context,
    })
}

/// Runs the turn to its end whether or not the client stays: what was bought and judged is recorded.
pub(super) async fn run(gateway: &Gateway, turn: Turn) -> Result<Reply, ApiError> {
    let engine = gateway.engine();
    let task = async move { engine.deliver(turn).await };
    detached(gateway, task).await
}

/// Runs a use-case to its end, within the limit of turns in flight.
pub(super) async fn detached(
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
    let reply = Unabandoned::new(work).await.map_err(|error| match error {
        DeliverError::UnknownModel(_) => ApiError::unknown_model(format!("{error}.")),
        DeliverError::Forbidden(why) => ApiError::forbidden(sentence(&why)),
        DeliverError::Unpaid(unpaid) => refused(&unpaid, now_ms),
        DeliverError::AuditUnavailable(cause) => {
            tracing::error!(%cause, "a decision could not be recorded");
            ApiError::audit_unavailable()
        }
    })?;
    gateway.metrics().decision(&Counted {
        recorded: reply.leaf_hash.is_some(),
        outcome: reply.decision.outcome,
        attempts: reply.decision.attempts(),
        usage: reply.decision.usage,
        cost: reply.decision.cost,
        overhead: overhead(&reply),
    });
    Ok(reply)
}

/// A turn that may not be paid for. How long to wait is said in whole seconds, an hour at most.
fn refused(unpaid: &Unpaid, now_ms: u64) -> ApiError {
    let wait = |until_ms: u64| {
        let seconds = until_ms.saturating_sub(now_ms).div_ceil(1_000).clamp(1, 3_600);
        u32::try_from(seconds).ok()
    };
    let message = sentence(&unpaid.to_string());
    match unpaid {
        Unpaid::Request { .. } => ApiError::insufficient_quota(message, None),
        Unpaid::Exceeded { resets_ms, .. } => {
            ApiError::insufficient_quota(message, wait(*resets_ms))
        }
        Unpaid::RunningAway { until_ms } => ApiError::insufficient_quota(message, wait(*until_ms)),
        Unpaid::Unpriced(_) => ApiError::forbidden(message),
        Unpaid::Unavailable => ApiError::budget_unavailable(),
    }
}

/// Words of an error as a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter();
    first.chain(letters).chain(['.']).collect()
}

fn answer(reply: Reply, form: Form, streaming: Streaming, reply_on_block: bool) -> Response {
    match reply.decision.outcome {
        Outcome::Blocked if !reply_on_block => {
            let text = reply.decision.choices.first().map_or("", |c| &c.delivered.text).to_owned();
            let body =
                error_body(&text, "invalid_request_error", Some("messages"), "content_filter");
            error_response(reply, StatusCode::BAD_REQUEST, body, form)
        }
        Outcome::Failed => {
            let (status, code, text) = match reply.decision.failure() {
                Some(GenerationFailure::Timeout) => (
                    StatusCode::GATEWAY_TIMEOUT,
                    "upstream_timeout",
                    "The model did not answer in time.",
                ),
                _ => (StatusCode::BAD_GATEWAY, "upstream_error", "The model could not answer."),
            };
            error_response(reply, status, error_body(text, "api_error", None, code), form)
        }
        _ if streaming.on => {
            let frames = sse::frames(&reply, form, streaming.include_usage);
            response(reply, StatusCode::OK, "text/event-stream; charset=utf-8", frames)
        }
        _ => {
            let body = completion(&reply, form);
            json_response(reply, StatusCode::OK, &body)
        }
    }
}

fn error_response(reply: Reply, status: StatusCode, mut body: Value, form: Form) -> Response {
    if !form.omit_own_fields {
        body["conclave"] = own_fields(&reply);
    }
    json_response(reply, status, &body)
}

pub(super) fn json_response(reply: Reply, status: StatusCode, body: &Value) -> Response {
    response(reply, status, "application/json", vec![Bytes::from(body.to_string())])
}

fn response(
    reply: Reply,
    status: StatusCode,
    content_type: &'static str,
    frames: Vec<Bytes>,
) -> Response {
    let mut headers = HeaderMap::new();
    add_headers(&mut headers, &reply);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut response = Response::new(Body::new(TrackedBody::new(frames, reply.delivery)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
