//! `/v1/appeals`: a person disagrees with a decision, and reads how it was ruled.
//!
//! **Invariant:** an end user's token files and reads what is their own; a key of an application does so for a
//! person it names. Whoever oversees sees that there are appeals and how they ended, and no words.

use super::desk::people_error;
use super::reviews::result_or_gap;
use crate::admission::body::{parse_json, read_body};
use crate::admission::entrance::{AdmittedCaller, Need, TokenHolder, admit_person, turn_away};
use crate::error::ApiError;
use crate::routes::house::decisions::{archive_error, find_own};
use crate::routes::query::{read_number, read_query};
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::typed_body;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, UserId};
use conclave_engine::{KeyRole, StoredDecision};
use conclave_govern::AppealConcern;
use conclave_people::{AppealFilter, AppealRecord, AppealView, FiledAppeals, NewAppeal};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;

/// Appeals on one page unless asked otherwise, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u32 = 200;
/// As far as pages go.
const OFFSET_MAX: u32 = 100_000;
const NO_APPEAL: &str = "There is no appeal with this id.";

/// An appeal as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppealRequest {
    audit_id: String,
    concern: String,
    words: String,
    /// Whose it is, where a key files it.
    #[serde(default)]
    user: Option<String>,
}

/// Takes an appeal in.
pub(crate) async fn file_appeal(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(take_appeal(&gateway, request).await)
}

async fn take_appeal(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let caller = match admit_person(gateway, &parts.headers, Need::Appeal) {
        Ok(caller) => caller,
        Err(refusal) => return Err(turn_away(&parts.headers, body, refusal).await),
    };
    let read = read_body(&parts.headers, body, gateway.limits(), gateway.room()).await?;
    let malformed = |error| ApiError::malformed(format!("The body is not valid JSON: {error}."));
    let sent: AppealRequest = typed_body(parse_json(&read.bytes).map_err(malformed)?)?;
    let unknown = || {
        let names = AppealConcern::ALL.map(AppealConcern::as_str).join(", ");
        ApiError::invalid("concern", format!("must be one of {names}"))
    };
    let concern = AppealConcern::parse(&sent.concern).ok_or_else(unknown)?;
    let caller = speak_for(caller, sent.user.as_deref())?;
    let stored = find_own(&gateway.engine(), &caller, &sent.audit_id).await?;
    let is_named = caller.holder.is_some();
    if !is_named && stored.leaf.draft.subject.is_some() {
        return Err(ApiError::invalid("user", "must name the person whose decision it is"));
    }
    let filed_by = sent.user.is_some() || !is_named;
    let filed_by = filed_by.then(|| caller.key.id.as_str().to_owned());
    let new = NewAppeal { concern, words: sent.words, filed_by };
    let filed = gateway.services().appeals.file(&caller.key.tenant, &stored, new).await;
    let record = filed.map_err(people_error)?;
    Ok((StatusCode::CREATED, Json(AppealView::for_person(&record))).into_response())
}

/// The caller as the person they speak for: a token says who, a key is told who.
fn speak_for(caller: AdmittedCaller, user: Option<&str>) -> Result<AdmittedCaller, ApiError> {
    let Some(user) = user else { return Ok(caller) };
    if caller.holder.is_some() {
        return Err(ApiError::invalid("user", "is known from the token; leave it out"));
    }
    let user = UserId::new(user).map_err(|error| ApiError::invalid("user", error.to_string()))?;
    Ok(AdmittedCaller { holder: Some(TokenHolder { user, session: None }), ..caller })
}

/// The appeals of a person, or without words those of the tenant.
pub(crate) async fn list_appeals(
    State(gateway): State<Gateway>,
    RawQuery(asked): RawQuery,
    headers: HeaderMap,
) -> Response {
    respond(appeals_page(&gateway, asked.as_deref(), &headers).await)
}

async fn appeals_page(
    gateway: &Gateway,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let caller = admit_person(gateway, headers, Need::ReadAppeals)?;
    let mut filter = AppealFilter { limit: PAGE, ..AppealFilter::default() };
    let mut user = None;
    for field in read_query(asked, &["status", "user", "limit", "offset"])? {
        match field.name {
            "status" => {
                let known = FiledAppeals::parse(&field.value);
                let unknown = "must be filed, upheld, upheld_in_part or denied";
                filter.status = Some(known.ok_or_else(|| ApiError::invalid("status", unknown))?);
            }
            "user" => user = Some(field.value),
            "limit" => filter.limit = read_number(&field, PAGE_MAX)?.max(1),
            _ => filter.offset = read_number(&field, OFFSET_MAX)?,
        }
    }
    let caller = speak_for(caller, user.as_deref())?;
    let role = caller.key.role;
    if caller.holder.is_none() && role == KeyRole::App {
        return Err(ApiError::invalid("user", "must name the person whose appeals are asked for"));
    }
    let with_words = caller.holder.is_some() && may_read_words(role);
    if let Some(holder) = &caller.holder {
        let names = gateway.engine().subjects.find_all(&caller.key.tenant, &holder.user).await;
        let failed = |error: conclave_engine::SubjectsError| {
            archive_error(conclave_engine::ArchiveError(error.to_string()))
        };
        filter.subjects = Some(names.map_err(failed)?);
    }
    let found = gateway.services().appeals.list(&caller.key.tenant, &filter).await;
    let found = found.map_err(people_error)?;
    let view = |record: &AppealRecord| {
        if with_words { AppealView::for_person(record) } else { AppealView::for_overseer(record) }
    };
    let data: Vec<_> = found.iter().map(view).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

const fn may_read_words(role: KeyRole) -> bool {
    matches!(role, KeyRole::App | KeyRole::Owner)
}

/// One appeal and how it was ruled.
pub(crate) async fn show_appeal(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let caller = admit_person(&gateway, &headers, Need::ReadAppeals)?;
        let (record, _) = find_appeal(&gateway, &caller, &id).await?;
        let with_words = may_read_words(caller.key.role);
        let view = if with_words {
            AppealView::for_person(&record)
        } else {
            AppealView::for_overseer(&record)
        };
        Ok(Json(view).into_response())
    };
    respond(found.await)
}

/// The corrected reply, for the person and their application: 202 until somebody has ruled.
pub(crate) async fn show_result(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let caller = admit_person(&gateway, &headers, Need::Appeal)?;
        let (record, stored) = find_appeal(&gateway, &caller, &id).await?;
        let audit = stored.leaf.draft.audit.map(AuditId::from_bytes);
        let audit = audit.ok_or_else(|| ApiError::not_found(NO_APPEAL))?;
        let tenant = &caller.key.tenant;
        let reader = caller.key.id.as_str();
        let fetched = gateway.services().hand_out.fetch_appealed(tenant, audit, reader).await;
        result_or_gap(&record.appeal.review_id, fetched.map_err(people_error)?)
    };
    respond(found.await)
}

/// An appeal with its decision, if it is the caller's to know of. Whether another exists is not told.
async fn find_appeal(
    gateway: &Gateway,
    caller: &AdmittedCaller,
    id: &str,
) -> Result<(AppealRecord, StoredDecision), ApiError> {
    let found = gateway.services().appeals.find(&caller.key.tenant, id).await;
    let missing = || ApiError::not_found(NO_APPEAL);
    let record = found.map_err(people_error)?.ok_or_else(missing)?;
    let stored = find_own(&gateway.engine(), caller, &record.appeal.audit_id).await;
    let stored = stored
        .map_err(|error| if error.status() == StatusCode::NOT_FOUND { missing() } else { error })?;
    Ok((record, stored))
}

/// How often decisions that were appealed turned out to be wrong.
pub(crate) async fn show_estimates(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let found = async {
        let caller = admit_person(&gateway, &headers, Need::ReadAppeals)?;
        if caller.holder.is_some() || caller.key.role == KeyRole::App {
            return Err(ApiError::forbidden("This is for whoever oversees the tenant."));
        }
        let estimates = gateway.services().appeals.estimates(&caller.key.tenant).await;
        let estimates = estimates.map_err(people_error)?;
        Ok(Json(json!({
            "object": "appeal.estimates",
            "of": "decisions that were appealed and ruled on",
            "false_alarms": estimates.false_alarms,
            "misses": estimates.misses,
        }))
        .into_response())
    };
    respond(found.await)
}
