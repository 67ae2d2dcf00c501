//! `POST /v1/responses` and `GET /v1/responses/{id}`.
//!
//! **Invariant:** a response is found under the tenant that made it, and goes on only for the person it
//! was made for. Its words stand in the decision's sealed body and nowhere else, so that whoever is
//! forgotten is forgotten here too.

use super::turns::converse;
use crate::admission::entrance::{AdmittedRequest, Need, admit_key, admit_talk};
use crate::error::ApiError;
use crate::routes::house::decisions::archive_error;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::responses::reply::{ID_PREFIX, ResponseContent, ResponsesDialect};
use crate::wire::responses::request::{EarlierResponse, ResponsesInquiry, ResponsesRequest};
use crate::wire::{ReplyHead, fraction_of};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, Outcome, SessionId, TenantId, UserId};
use conclave_engine::{Delivered, Engine, StoredDecision};
use conclave_ledger::tenant_number;
use http::HeaderMap;
use serde_json::{Map, Value, json};

pub(crate) async fn create_response(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer_response(&gateway, request).await)
}

async fn answer_response(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let document = request.document.take();
    let read = read_inquiry(gateway, &request, document).await;
    let ResponsesInquiry { inquiry, echo } = request.or_count(gateway, read)?;
    let omit_own_fields = gateway.settings().omit_own_fields;
    let dialect = Box::new(ResponsesDialect::new(echo, inquiry.structured, omit_own_fields));
    let talk = request.begin_talk(gateway, inquiry)?;
    converse(gateway, &request, talk, dialect).await
}

/// The inquiry, together with the conversation it goes on with.
async fn read_inquiry(
    gateway: &Gateway,
    admitted: &AdmittedRequest,
    document: Value,
) -> Result<ResponsesInquiry, ApiError> {
    let request = ResponsesRequest::parse(document)?;
    let previous = request.previous.clone();
    let earlier = match &previous {
        Some(id) => Some(find_response(&gateway.engine(), &admitted.key.tenant, id).await?),
        None => None,
    };
    let belongs_to = earlier.as_ref().and_then(|stored| stored.user.clone());
    let asked = request.inquire(earlier.map(|stored| stored.earlier))?;
    // Somebody else's conversation is not gone on with; that it exists is not said either.
    if previous.is_some() && belongs_to.is_some() && belongs_to != asked.inquiry.user {
        return Err(unknown_response());
    }
    Ok(asked)
}

/// One response, as long as its words are kept.
pub(crate) async fn show_response(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Converse)?;
        let engine = gateway.engine();
        let stored = find_response(&engine, &key.tenant, &id).await?;
        engine.note_transcript_read(&key.tenant, key.id.as_str(), stored.content.head.id);
        let mut body = stored.content.to_object(&stored.echo);
        if !gateway.settings().omit_own_fields {
            body["conclave"] = stored.own_fields;
        }
        Ok(Json(body).into_response())
    };
    respond(found.await)
}

/// A response read back.
struct StoredResponse {
    content: ResponseContent,
    echo: Map<String, Value>,
    own_fields: Value,
    earlier: EarlierResponse,
    user: Option<UserId>,
}

async fn find_response(
    engine: &Engine,
    tenant: &TenantId,
    id: &str,
) -> Result<StoredResponse, ApiError> {
    let audit = id.strip_prefix(ID_PREFIX).and_then(AuditId::parse);
    let audit = audit.ok_or_else(unknown_response)?;
    let entries = engine.archive.find(tenant_number(tenant.as_str()), audit).await;
    let stored =
        StoredDecision::from_entries(entries.map_err(archive_error)?).map_err(|error| {
            tracing::error!(%audit, %error, "a stored decision cannot be read");
            ApiError::archive_unavailable()
        })?;
    stored.and_then(|stored| read_back(audit, &stored)).ok_or_else(unknown_response)
}

/// `None` where it was not stored, or its words are gone.
fn read_back(audit: AuditId, stored: &StoredDecision) -> Option<StoredResponse> {
    let mut kept = stored.words("kept")?;
    let Value::Array(messages) = kept.get_mut("messages")?.take() else { return None };
    let Value::Object(echo) = kept.get_mut("echo")?.take() else { return None };
    let delivered: Delivered = serde_json::from_value(stored.words("delivered.0")?).ok()?;
    let who = stored.words("who").unwrap_or_default();
    let name = |field: &str| who.get(field).and_then(Value::as_str);
    let outcome = stored.text("outcome");
    let verified = [Outcome::Delivered, Outcome::Redacted].map(Outcome::as_str).contains(&outcome);
    let structured = echo.get("text").and_then(|text| text.pointer("/format/type"));
    let structured = structured.and_then(Value::as_str).is_some_and(|kind| kind != "text");
    let head = ReplyHead {
        id: audit,
        created_s: stored.leaf.ts_ms / 1_000,
        model: stored.text("model").to_owned(),
    };
    let score = u16::try_from(stored.number("score")).ok();
    let own_fields = json!({
        "audit_id": audit.to_string(),
        "outcome": outcome,
        "action": stored.text("action"),
        "verified": verified,
        "safety_score": stored.public("score").and(score).map(fraction_of),
        "attempts": stored.number("attempts"),
        "scrutiny": stored.text("scrutiny"),
        "receipt_url": format!("/v1/decisions/{audit}/receipt"),
        "leaf_hash": hex::encode(stored.leaf_hash),
    });
    let session = name("session").and_then(|name| SessionId::new(name).ok());
    Some(StoredResponse {
        content: ResponseContent {
            head,
            delivered: delivered.clone(),
            as_refusal: structured && !verified,
        },
        echo,
        own_fields,
        earlier: EarlierResponse { messages, delivered, session },
        user: name("user").and_then(|name| UserId::new(name).ok()),
    })
}

fn unknown_response() -> ApiError {
    ApiError::not_found("There is no response with this id, or its words are not kept.")
        .at_field("previous_response_id")
}
