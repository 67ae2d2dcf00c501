//! `GET /v1/decisions...`: what was decided, and why.

use crate::admission::entrance::{
    AdmittedCaller, Need, TokenHolder, admit_key, admit_person, reader_of,
};
use crate::error::ApiError;
use crate::routes::people::desk::people_error;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use conclave_core::AuditId;
use conclave_engine::{Archive, DecisionFilter, Engine, KeyRecord, ReceiptState, StoredDecision};
use conclave_ledger::tenant_number;
use conclave_people::{AppealView, DecisionReader, ReviewStanding, decision_view, explain};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Decisions on one page unless asked otherwise, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u32 = 500;

/// A page of decisions, newest first.
pub(crate) async fn list_decisions(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    respond(decisions_page(&gateway, query.as_deref().unwrap_or(""), &headers).await)
}

async fn decisions_page(
    gateway: &Gateway,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let key = admit_key(gateway, headers, Need::Audit)?;
    let filter = read_filter(query, tenant_number(key.tenant.as_str()))?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let rows = gateway.engine().archive.list(filter).await.map_err(archive_error)?;
    let next = if rows.len() == limit { rows.last().map(|row| row.id.to_string()) } else { None };
    Ok(Json(json!({"object": "list", "data": rows, "next_before": next})).into_response())
}

fn read_filter(query: &str, tenant: u64) -> Result<DecisionFilter, ApiError> {
    let mut filter =
        DecisionFilter { tenant: Some(tenant), limit: PAGE, ..DecisionFilter::default() };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
        match name {
            "limit" => {
                filter.limit =
                    value.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit)).ok_or_else(
                        || ApiError::invalid("limit", format!("must be 1 to {PAGE_MAX}")),
                    )?;
            }
            "before" => {
                let id = AuditId::parse(value);
                filter.before =
                    Some(id.ok_or_else(|| ApiError::invalid("before", "must be an audit id"))?);
            }
            "outcome" => filter.outcome = Some(read_word("outcome", value)?),
            "action" => filter.action = Some(read_word("action", value)?),
            other => return Err(ApiError::invalid(other, "is not a filter")),
        }
    }
    Ok(filter)
}

fn read_word(name: &str, value: &str) -> Result<String, ApiError> {
    let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    plain.then(|| value.to_owned()).ok_or_else(|| ApiError::invalid(name, "is not known"))
}

pub(crate) async fn show_decision(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Audit)?;
        let engine = gateway.engine();
        let stored = find_decision(&engine, &key, &id).await?;
        let reader = reader_of(key.role);
        let standing = standing_of(&gateway, &key, &stored).await?;
        let mut view = decision_view(&stored, reader, standing);
        view["appeal"] = appeal_view(&gateway, &key, &stored, reader, standing).await?;
        let shows_words = reader == DecisionReader::Words || view["held"]["text"].is_string();
        if shows_words && let Some(read) = AuditId::parse(&id) {
            engine.note_transcript_read(&key.tenant, key.id.as_str(), read);
        }
        Ok(Json(view).into_response())
    };
    respond(found.await)
}

/// Why a decision came out as it did, in plain words.
pub(crate) async fn explain_decision(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let caller = admit_person(&gateway, &headers, Need::Explain)?;
        let stored = find_own(&gateway.engine(), &caller, &id).await?;
        let standing = standing_of(&gateway, &caller.key, &stored).await?;
        let appeal = gateway.services().appeals.standing(&caller.key.tenant, &stored).await;
        let told = explain(&stored, standing, &appeal.map_err(people_error)?);
        Ok(Json(told).into_response())
    };
    respond(found.await)
}

/// The appeal against a decision, with the correction that came of it for whoever may read words.
async fn appeal_view(
    gateway: &Gateway,
    key: &KeyRecord,
    stored: &StoredDecision,
    reader: DecisionReader,
    standing: ReviewStanding,
) -> Result<Value, ApiError> {
    let Some(audit) = stored.leaf.draft.audit.map(AuditId::from_bytes) else {
        return Ok(Value::Null);
    };
    let found = gateway.services().people.appeal_of(&key.tenant, audit).await;
    let Some(record) = found.map_err(people_error)? else { return Ok(Value::Null) };
    if reader != DecisionReader::Words {
        return Ok(json!(AppealView::for_overseer(&record)));
    }
    let mut view = json!(AppealView::for_person(&record));
    let mut correction = record.appeal.correction();
    if let Some(correction) = &mut correction
        && standing.is_closed()
    {
        // What people keep closed is not shown by way of what was said instead.
        correction.original_response.clear();
    }
    view["correction"] = json!(correction);
    Ok(view)
}

/// Where the review of what a decision withholds stands. Who cannot find out shows nothing.
async fn standing_of(
    gateway: &Gateway,
    key: &KeyRecord,
    stored: &StoredDecision,
) -> Result<ReviewStanding, ApiError> {
    let people = gateway.services().people;
    people.review_standing(&key.tenant, stored).await.map_err(people_error)
}

/// What proves that a decision is in the log; 202 until a checkpoint covers it.
pub(crate) async fn show_receipt(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let caller = admit_person(&gateway, &headers, Need::Prove)?;
        let key = &caller.key;
        let missing = || ApiError::not_found("There is no decision with this id.");
        let audit = AuditId::parse(&id).ok_or_else(missing)?;
        if caller.holder.is_some() {
            find_own(&gateway.engine(), &caller, &id).await?;
        }
        let tenant = tenant_number(key.tenant.as_str());
        match gateway.proofs().receipt(tenant, audit).await.map_err(archive_error)? {
            ReceiptState::Unknown => Err(missing()),
            ReceiptState::Pending => {
                let soon = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
                let body = json!({"status": "pending", "audit_id": audit.to_string()});
                Ok((StatusCode::ACCEPTED, soon, Json(body)).into_response())
            }
            ReceiptState::Ready(receipt) => {
                let receipt = receipt.to_json().map_err(|error| {
                    tracing::error!(%audit, %error, "a receipt cannot be written");
                    ApiError::archive_unavailable()
                })?;
                Ok(Json(receipt).into_response())
            }
        }
    };
    respond(found.await)
}

/// The decision, if it is the person's own. Whether another exists is not told.
pub(crate) async fn find_own(
    engine: &Engine,
    caller: &AdmittedCaller,
    id: &str,
) -> Result<StoredDecision, ApiError> {
    let stored = find_decision(engine, &caller.key, id).await?;
    let Some(holder) = &caller.holder else { return Ok(stored) };
    if is_own(engine, &caller.key, holder, &stored).await? {
        return Ok(stored);
    }
    Err(ApiError::not_found("There is no decision with this id."))
}

async fn is_own(
    engine: &Engine,
    key: &KeyRecord,
    holder: &TokenHolder,
    stored: &StoredDecision,
) -> Result<bool, ApiError> {
    let failed = |error: conclave_engine::SubjectsError| {
        archive_error(conclave_engine::ArchiveError(error.to_string()))
    };
    let names = engine.subjects.find_all(&key.tenant, &holder.user).await.map_err(failed)?;
    if !stored.leaf.draft.subject.is_some_and(|subject| names.contains(&subject)) {
        return Ok(false);
    }
    let Some(session) = &holder.session else { return Ok(true) };
    // Somebody who is known is named without being entered anew.
    let named = engine.subjects.name(&key.tenant, Some(&holder.user), session).await;
    Ok(stored.leaf.draft.session == Some(named.map_err(failed)?.session))
}

async fn find_decision(
    engine: &Engine,
    key: &KeyRecord,
    id: &str,
) -> Result<StoredDecision, ApiError> {
    let missing = || ApiError::not_found("There is no decision with this id.");
    let id = AuditId::parse(id).ok_or_else(missing)?;
    let archive: &dyn Archive = &*engine.archive;
    let entries =
        archive.find(tenant_number(key.tenant.as_str()), id).await.map_err(archive_error)?;
    StoredDecision::from_entries(entries)
        .map_err(|error| {
            tracing::error!(%id, %error, "a stored decision cannot be read");
            ApiError::archive_unavailable()
        })?
        .ok_or_else(missing)
}

pub(crate) fn archive_error(error: conclave_engine::ArchiveError) -> ApiError {
    let why = error.0;
    tracing::error!(%why, "the archive does not answer");
    ApiError::archive_unavailable()
}
