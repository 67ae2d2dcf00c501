//! `/v1/agents...`: which recipes there are, running one, and fetching what people have decided about.

use super::turns::{DetachedWork, run_to_end, wait_seconds};
use crate::admission::entrance::{Need, admit_key, admit_talk};
use crate::admission::idempotency::{
    AnswerClaim, AnswerOwner, RepeatCheck, check_repeat, give_back_claim, keep_answer,
};
use crate::admission::rates::{self, RateReservation};
use crate::delivery::tracked_body::TrackedBody;
use crate::error::ApiError;
use crate::observation::metrics::DecisionCount;
use crate::routes::people::desk::caller_of;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use conclave_core::{AuditId, SessionId, UserId};
use conclave_engine::KeyRecord;
use conclave_engine::trace::followed;
use conclave_recipes::{ExecuteError, ExecutedRun, FetchedRun, Run, RunEnding, RunRequest};
use conclave_voice::guard_sentence;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Runs are no conversation: all that are asked for again have this one name.
const SESSION: &str = "repeated-runs";

pub(crate) async fn list_recipes(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let found = admit_key(&gateway, &headers, Need::Recipes).map(|_| {
        let recipes = gateway.services().recipes;
        let all: Vec<_> = recipes.workshop.recipes.iter().map(|one| one.view(false)).collect();
        Json(json!({"object": "list", "data": all})).into_response()
    });
    respond(found)
}

/// One recipe with its schemas, and what is counted of its runs.
pub(crate) async fn show_recipe(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Recipes)?;
        let recipes = gateway.services().recipes;
        let recipe = recipes.workshop.recipes.find(&name);
        let recipe =
            recipe.ok_or_else(|| ApiError::not_found("There is no recipe of this name."))?;
        let mut view = recipe.view(true);
        view["kpis"] = recipes.recipe_kpis(&key.tenant, &recipe).await.map_err(execute_error)?;
        Ok(Json(view).into_response())
    };
    respond(found.await)
}

pub(crate) async fn run_recipe(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    respond(answer_run(&gateway, name, request).await)
}

async fn answer_run(
    gateway: &Gateway,
    recipe: String,
    request: Request,
) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let read = read_run(request.document.take(), &request.key, recipe);
    let run = request.or_count(gateway, read)?;
    let context = &run.request.context;
    let user = context.user_id.as_deref().and_then(|name| UserId::new(name).ok());
    let input_bytes = run.request.input.to_string().len();
    let reservation = rates::count_run(gateway, &request.key, user.as_ref(), input_bytes)?;
    // Whose words a result holds; a name that is none is refused when the run begins.
    let subject = context.subject().and_then(|name| UserId::new(name).ok());
    let session = SessionId::new(SESSION).map_err(|_| ApiError::overloaded())?;
    let tenant = &request.key.tenant;
    let owner = AnswerOwner { tenant, user: subject.as_ref(), session: &session };
    let asked = request.idempotency_key.as_ref();
    let claim = match check_repeat(gateway, &request.key, asked, owner).await? {
        RepeatCheck::Answered(response) => return Ok(response),
        RepeatCheck::First(claim) => claim,
    };
    let gateway = gateway.clone();
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        match execute_run(&gateway, run, &reservation).await {
            Ok(done) => Ok(answer_with_run(&gateway, done, claim).await),
            Err(error) => {
                give_back_claim(claim).await;
                Err(error)
            }
        }
    };
    DetachedWork::new(work).await
}

async fn execute_run(
    gateway: &Gateway,
    run: Run,
    reservation: &RateReservation,
) -> Result<ExecutedRun, ApiError> {
    let recipes = gateway.services().recipes;
    let task = Box::pin(async move { recipes.execute(run).await });
    let task = followed(task, |done| done.is_err().then_some("refused"));
    let done = run_to_end(gateway, task).await?.map_err(execute_error)?;
    rates::settle_tokens(gateway, reservation, done.usage);
    gateway.metrics().count_decision(&DecisionCount {
        recorded: true,
        outcome: done.outcome,
        attempts: done.attempts,
        usage: done.usage,
        cost: done.cost,
        overhead: done.overhead,
    });
    Ok(done)
}

fn read_run(document: Value, key: &KeyRecord, recipe: String) -> Result<Run, ApiError> {
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
    Ok(Run { tenant: key.tenant.clone(), key: Some(key.id.clone()), recipe, request, approved_run })
}

/// A run as it stands; what was held comes out once it was approved.
pub(crate) async fn show_run(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Converse)?;
        let missing = || ApiError::not_found("There is no run with this id.");
        let audit = AuditId::parse(&id).ok_or_else(missing)?;
        let caller = caller_of(&key);
        let services = gateway.services();
        let found = services.recipes.fetch_run(&*services.hand_out, &caller, audit).await;
        match found.map_err(execute_error)? {
            FetchedRun::Missing => Err(missing()),
            FetchedRun::Waiting { review, state } => {
                let body =
                    json!({"status": state, "review_id": review, "status_url": run_url(&id)});
                Ok((StatusCode::ACCEPTED, Json(body)).into_response())
            }
            FetchedRun::MayGoOn { review } => {
                let body = json!({
                    "status": "approved", "review_id": review, "status_url": run_url(&id),
                    "approved_run": id,
                    "message": "Send the same request again with this `approved_run`.",
                });
                Ok((StatusCode::ACCEPTED, Json(body)).into_response())
            }
            FetchedRun::Rejected { review } => Err(ApiError::forbidden(format!(
                "People decided that this result is not given out (review {review})."
            ))),
            FetchedRun::Refused(code) => {
                Err(ApiError::refused_by_guard(code, guard_sentence(code, "en")))
            }
            FetchedRun::Ended(response) => Ok(Json(*response).into_response()),
        }
    };
    respond(found.await)
}

fn run_url(id: &str) -> String {
    format!("/v1/agents/runs/{id}")
}

fn execute_error(error: ExecuteError) -> ApiError {
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
async fn answer_with_run(
    gateway: &Gateway,
    mut done: ExecutedRun,
    claim: Option<AnswerClaim>,
) -> Response {
    let now_ms = gateway.engine().clock.now_ms();
    let status = word_ending(&mut done);
    let frames = vec![Bytes::from(done.response.to_string())];
    let response = run_response(status, done, frames.clone(), now_ms);
    if status == StatusCode::TOO_MANY_REQUESTS {
        give_back_claim(claim).await;
        return response;
    }
    keep_answer(response, &frames, claim).await
}

/// Says in the response how the run ended, and gives the status for it. A refusal that follows from a
/// recorded decision carries its metadata.
fn word_ending(done: &mut ExecutedRun) -> StatusCode {
    let (error, message) = match &done.ending {
        RunEnding::Done => return StatusCode::OK,
        RunEnding::Held { review } => {
            done.response["review_id"] = json!(review);
            done.response["status_url"] = json!(run_url(&done.id.to_string()));
            return StatusCode::ACCEPTED;
        }
        RunEnding::Refused { code, message } => {
            (ApiError::refused_by_guard(*code, message.as_str()), message.clone())
        }
        RunEnding::GuardUnavailable => {
            let message = "This must wait for a person, and nobody is configured who could decide.";
            (ApiError::guard_unavailable(), message.to_owned())
        }
        RunEnding::Failed { late: true, message } => {
            (ApiError::upstream_timeout(), message.clone())
        }
        RunEnding::Failed { late: false, message } => (ApiError::upstream(), message.clone()),
    };
    done.response["error"] = json!({
        "message": message, "type": error.kind(), "param": null, "code": error.code(),
    });
    error.status()
}

/// The guards that looked, each once, in their order.
fn guard_names(response: &Value) -> String {
    let rows = response["metadata"]["guards"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = rows.filter_map(|row| row["guard"].as_str()).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names.join(",")
}

fn run_response(
    status: StatusCode,
    done: ExecutedRun,
    frames: Vec<Bytes>,
    now_ms: u64,
) -> Response {
    let mut headers = HeaderMap::new();
    let overhead_ms = done.overhead.as_secs_f64() * 1e3;
    let mut pairs = vec![
        ("x-conclave-audit-id", done.id.to_string()),
        ("x-conclave-outcome", done.outcome.as_str().to_owned()),
        ("x-conclave-leaf", hex::encode(done.leaf_hash)),
        ("x-conclave-overhead-duration-ms", format!("{overhead_ms:.3}")),
        ("x-conclave-response-cost", format!("{:.6}", done.cost.dollars())),
        ("x-conclave-applied-guardrails", guard_names(&done.response)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Envelope;
    use conclave_core::GuardCode;
    use conclave_core::{KeyId, TenantId};
    use conclave_engine::KeyRole;

    #[test]
    fn each_refusal_of_a_guard_has_its_status_type_and_code() {
        for (guard, status, kind, code) in [
            (GuardCode::ConsentRequired, 403, "permission_error", "consent_required"),
            (GuardCode::ConsentWithdrawn, 403, "permission_error", "consent_withdrawn"),
            (GuardCode::Jurisdiction, 403, "permission_error", "jurisdiction"),
            (GuardCode::JurisdictionUnknown, 403, "permission_error", "jurisdiction"),
            (GuardCode::InsufficientQuota, 429, "insufficient_quota", "insufficient_quota"),
            (GuardCode::UnknownModel, 404, "invalid_request_error", "model_not_found"),
            (GuardCode::ModelNotPermitted, 403, "permission_error", "forbidden"),
            (GuardCode::Unpriced, 403, "permission_error", "forbidden"),
            (GuardCode::TooLong, 400, "invalid_request_error", "context_length_exceeded"),
            (GuardCode::Harmful, 400, "invalid_request_error", "content_filter"),
            (GuardCode::PersonalData, 400, "invalid_request_error", "content_filter"),
        ] {
            let refusal = ApiError::refused_by_guard(guard, "x");
            let told = (refusal.status().as_u16(), refusal.kind(), refusal.code());
            assert_eq!(told, (status, kind, code), "{guard:?}");
        }
    }

    #[test]
    fn a_run_that_cannot_be_read_says_where() {
        let key = KeyRecord {
            id: KeyId::new("k").unwrap(),
            tenant: TenantId::new("acme").unwrap(),
            role: KeyRole::App,
            label: String::new(),
            person: None,
            created_ms: 0,
            expires_ms: None,
            revoked_ms: None,
        };
        for (document, param) in [
            (json!([]), Value::Null),
            (json!({"approved_run": 7}), json!("approved_run")),
            (json!({"approved_run": "no id"}), json!("approved_run")),
            (json!({"input": 7, "unheard_of": true}), Value::Null),
        ] {
            let error = read_run(document.clone(), &key, "r".into()).unwrap_err();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST, "{document}");
            assert_eq!(error.body(Envelope::OpenAi)["error"]["param"], param, "{document}");
        }
    }

    #[test]
    fn each_guard_is_named_once_in_its_order() {
        let guards = ["pii", "consent", "pii"].map(|guard| json!({"guard": guard}));
        assert_eq!(guard_names(&json!({"metadata": {"guards": guards}})), "pii,consent");
        assert_eq!(guard_names(&json!({})), "");
    }
}
