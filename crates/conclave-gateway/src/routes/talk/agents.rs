//! `/v1/agents...`: which recipes there are, running one, and fetching what people have decided about.

use super::repeated::{Sent, give_back, keep, sent};
use super::turns::wait_seconds;
use crate::admission::auth::{Need, admit};
use crate::admission::entrance::enter_to_talk;
use crate::admission::idempotency::{Claim, Person};
use crate::admission::pacing;
use crate::admission::rates::Taken;
use crate::delivery::tracked_body::TrackedBody;
use crate::delivery::unabandoned::Unabandoned;
use crate::error::ApiError;
use crate::observation::metrics::Counted;
use crate::routes::people::desk::caller;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use conclave_core::{AuditId, SessionId, UserId};
use conclave_engine::trace::followed;
use conclave_engine::{Ending, ExecuteError, Executed, FetchedRun, KeyRecord, Run};
use conclave_recipes::RunRequest;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Runs are no conversation: all that are asked for again have this one name.
const SESSION: &str = "repeated-runs";

/// Every recipe.
pub(crate) async fn list(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let found = admit(&gateway, &headers, Need::Recipes).map(|_| {
        let engine = gateway.engine();
        let all: Vec<_> = engine.workshop.recipes.iter().map(|one| one.view(false)).collect();
        Json(json!({"object": "list", "data": all})).into_response()
    });
    respond(found)
}

/// One recipe with its schemas, and what is counted of its runs.
pub(crate) async fn one(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Recipes)?;
        let engine = gateway.engine();
        let recipe = engine.workshop.recipes.find(&name);
        let recipe =
            recipe.ok_or_else(|| ApiError::not_found("There is no recipe of this name."))?;
        let mut view = recipe.view(true);
        view["kpis"] = engine.recipe_kpis(&key.tenant, &recipe).await.map_err(api_error)?;
        Ok(Json(view).into_response())
    };
    respond(found.await)
}

/// Runs a recipe.
pub(crate) async fn execute(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    respond(run(&gateway, name, request).await)
}

async fn run(gateway: &Gateway, recipe: String, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = asked(entered.document.take(), &entered.key, recipe);
    let asked = entered.understood(gateway, read)?;
    let context = &asked.request.context;
    let user = context.user_id.as_deref().and_then(|name| UserId::new(name).ok());
    let bytes = asked.request.input.to_string().len();
    let taken = pacing::count_run(gateway, &entered.key, user.as_ref(), bytes)?;
    // Whose words a result holds; a name that is none is refused when the run begins.
    let subject = context.subject().and_then(|name| UserId::new(name).ok());
    let session = SessionId::new(SESSION).map_err(|_| ApiError::overloaded())?;
    let person = Person::named(&entered.key.tenant, subject.as_ref(), &session);
    let claim = match sent(gateway, &entered.key, entered.repeat.as_ref(), person).await? {
        Sent::Before(response) => return Ok(response),
        Sent::First(claim) => claim,
    };
    let gateway = gateway.clone();
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        match executed(&gateway, asked, &taken).await {
            Ok(done) => Ok(answer(&gateway, done, claim).await),
            Err(error) => {
                give_back(claim).await;
                Err(error)
            }
        }
    };
    Unabandoned::new(work).await
}

async fn executed(gateway: &Gateway, asked: Run, taken: &Taken) -> Result<Executed, ApiError> {
    let permit = gateway.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())?;
    let engine = gateway.engine();
    let work = async move {
        let result = engine.execute(asked).await;
        drop(permit);
        result
    };
    let work = followed(work, |done| done.is_err().then_some("refused"));
    let done = Unabandoned::new(work).await.map_err(api_error)?;
    pacing::settle(gateway, taken, done.usage);
    gateway.metrics().decision(&Counted {
        recorded: true,
        outcome: done.outcome,
        attempts: done.attempts,
        usage: done.usage,
        cost: done.cost,
        overhead: done.overhead,
    });
    Ok(done)
}

fn asked(document: Value, key: &KeyRecord, recipe: String) -> Result<Run, ApiError> {
    let Value::Object(mut body) = document else {
        return Err(ApiError::malformed("The request body must be a JSON object."));
    };
    let approved_run = match body.remove("approved_run") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(
            AuditId::parse(&id)
                .ok_or_else(|| ApiError::invalid("approved_run", "must be the id of a run"))?,
        ),
        Some(_) => return Err(ApiError::invalid("approved_run", "must be a string")),
    };
    let request: RunRequest = serde_json::from_value(Value::Object(body))
        .map_err(|error| ApiError::malformed(format!("The request cannot be read: {error}.")))?;
    let (tenant, key) = (key.tenant.clone(), Some(key.id.clone()));
    Ok(Run { tenant, key, recipe, request, approved_run })
}

/// A run as it stands; what was held comes out once it was approved.
pub(crate) async fn fetch(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Converse)?;
        let missing = || ApiError::not_found("There is no run with this id.");
        let audit = AuditId::parse(&id).ok_or_else(missing)?;
        let caller = caller(&key);
        let services = gateway.services();
        let found = services.engine.fetch_run(&*services.hand_out, &caller, audit).await;
        match found.map_err(api_error)? {
            FetchedRun::Missing => Err(missing()),
            FetchedRun::Waiting { review, state } => {
                let body = json!({"status": state, "review_id": review, "status_url": url(&id)});
                Ok((StatusCode::ACCEPTED, Json(body)).into_response())
            }
            FetchedRun::MayGoOn { review } => {
                let body = json!({
                    "status": "approved", "review_id": review, "status_url": url(&id),
                    "approved_run": id,
                    "message": "Send the same request again with this `approved_run`.",
                });
                Ok((StatusCode::ACCEPTED, Json(body)).into_response())
            }
            FetchedRun::Rejected { review } => Err(ApiError::forbidden(format!(
                "People decided that this result is not given out (review {review})."
            ))),
            FetchedRun::Refused(refusal) => Err(ApiError::refused(refusal)),
            FetchedRun::Ended(response) => Ok(Json(*response).into_response()),
        }
    };
    respond(found.await)
}

fn url(id: &str) -> String {
    format!("/v1/agents/runs/{id}")
}

fn api_error(error: ExecuteError) -> ApiError {
    match error {
        ExecuteError::UnknownRecipe(_) => ApiError::not_found(format!("{error}.")),
        ExecuteError::Invalid(wrong) => ApiError::invalid(wrong.path, wrong.message),
        ExecuteError::OtherTenant => {
            ApiError::forbidden("The context names a tenant that this key does not belong to.")
        }
        ExecuteError::AuditUnavailable(cause) => {
            tracing::error!(%cause, "a run could not be recorded");
            ApiError::audit_unavailable()
        }
        ExecuteError::Unavailable(why) => {
            tracing::error!(%why, "runs cannot be read");
            ApiError::archive_unavailable()
        }
    }
}

/// The answer to each ending, kept for whoever repeats the request. What only money stood in the way of is
/// worth another try, so that it is not kept.
async fn answer(gateway: &Gateway, done: Executed, claim: Option<Claim>) -> Response {
    let now_ms = gateway.engine().clock.now_ms();
    let (status, done) = worded(done);
    let frames = vec![Bytes::from(done.response.to_string())];
    let response = response(status, done, frames.clone(), now_ms);
    if status == StatusCode::TOO_MANY_REQUESTS {
        give_back(claim).await;
        return response;
    }
    keep(response, &frames, claim).await
}

/// The status of each ending; a refusal that follows from a recorded decision carries its metadata.
fn worded(mut done: Executed) -> (StatusCode, Executed) {
    let (status, kind, code, message) = match &done.ending {
        Ending::Done => return (StatusCode::OK, done),
        Ending::Held { review } => {
            let (review, id) = (json!(review), done.id.to_string());
            done.response["review_id"] = review;
            done.response["status_url"] = json!(url(&id));
            return (StatusCode::ACCEPTED, done);
        }
        Ending::Refused { code, message } => {
            let (status, kind, code) = refusal(code);
            (status, kind, code, message.clone())
        }
        Ending::Unguarded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "guard_unavailable",
            "This must wait for a person, and nobody is configured who could decide.".to_owned(),
        ),
        Ending::Failed { late: true, message } => {
            (StatusCode::GATEWAY_TIMEOUT, "api_error", "upstream_timeout", message.clone())
        }
        Ending::Failed { late: false, message } => {
            (StatusCode::BAD_GATEWAY, "api_error", "upstream_error", message.clone())
        }
    };
    done.response["error"] = json!({"message": message, "type": kind, "param": null, "code": code});
    (status, done)
}

fn refusal(code: &str) -> (StatusCode, &'static str, &'static str) {
    let permission = |code| (StatusCode::FORBIDDEN, "permission_error", code);
    let request = |code| (StatusCode::BAD_REQUEST, "invalid_request_error", code);
    match code {
        "consent_required" => permission("consent_required"),
        "consent_withdrawn" => permission("consent_withdrawn"),
        "jurisdiction" => permission("jurisdiction"),
        "insufficient_quota" => {
            (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", "insufficient_quota")
        }
        "unknown_model" => (StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found"),
        "model_not_permitted" | "unpriced" => permission("forbidden"),
        "too_long" => request("context_length_exceeded"),
        _ => request("content_filter"),
    }
}

/// The guards that looked, each once, in their order.
fn guards(response: &Value) -> String {
    let rows = response["metadata"]["guards"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = rows.filter_map(|row| row["guard"].as_str()).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names.join(",")
}

fn response(status: StatusCode, done: Executed, frames: Vec<Bytes>, now_ms: u64) -> Response {
    let mut headers = HeaderMap::new();
    let outcome = done.outcome.as_str().to_owned();
    let overhead_ms = done.overhead.as_secs_f64() * 1e3;
    let mut pairs = vec![
        ("x-conclave-audit-id", done.id.to_string()),
        ("x-conclave-outcome", outcome),
        ("x-conclave-leaf", hex::encode(done.leaf_hash)),
        ("x-conclave-overhead-duration-ms", format!("{overhead_ms:.3}")),
        ("x-conclave-response-cost", format!("{:.6}", done.cost.dollars())),
        ("x-conclave-applied-guardrails", guards(&done.response)),
    ];
    if let Some(at_ms) = done.retry_at_ms.filter(|_| status == StatusCode::TOO_MANY_REQUESTS) {
        pairs.push(("retry-after", wait_seconds(at_ms, now_ms).to_string()));
    }
    for (name, value) in pairs {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut response = Response::new(Body::new(TrackedBody::new(frames, vec![done.delivery])));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
