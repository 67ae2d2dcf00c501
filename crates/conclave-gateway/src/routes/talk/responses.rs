//! `POST /v1/responses` and `GET /v1/responses/{id}`.
//!
//! **Invariant:** a response is found under the tenant that made it, and goes on only for the person it
//! was made for. Its words stand in the decision's sealed body and nowhere else, so that whoever is
//! forgotten is forgotten here too.

use super::turns::converse;
use crate::admission::auth::{Need, admit};
use crate::admission::entrance::{Entered, enter_to_talk};
use crate::error::ApiError;
use crate::routes::house::decisions::unavailable;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::dialect::Head;
use crate::wire::inquiry::Inquiry;
use crate::wire::own_fields::fraction;
use crate::wire::responses::reply::{ID_PREFIX, Responses, Said};
use crate::wire::responses::request::{Earlier, ResponsesRequest};
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, Outcome, SessionId, TenantId, UserId};
use conclave_engine::{Delivered, Engine, StoredDecision};
use conclave_ledger::tenant_number;
use http::HeaderMap;
use serde_json::{Map, Value, json};

/// Answers one request.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let document = entered.document.take();
    let read = asked(gateway, &entered, document).await;
    let (inquiry, echo) = entered.understood(gateway, read)?;
    let omit_own_fields = gateway.manners().omit_own_fields;
    let dialect = Box::new(Responses::new(echo, inquiry.structured, omit_own_fields));
    converse(gateway, &entered, inquiry, dialect).await
}

/// The inquiry, with the conversation it goes on with, and what the response will say again of it.
async fn asked(
    gateway: &Gateway,
    entered: &Entered,
    document: Value,
) -> Result<(Inquiry, Map<String, Value>), ApiError> {
    let request = ResponsesRequest::parse(document)?;
    let previous = request.previous.clone();
    let earlier = match &previous {
        Some(id) => Some(find(&gateway.engine(), &entered.key.tenant, id).await?),
        None => None,
    };
    let belongs_to = earlier.as_ref().and_then(|stored| stored.user.clone());
    let (inquiry, echo) = request.inquire(earlier.map(|stored| stored.earlier))?;
    // Somebody else's conversation is not gone on with; that it exists is not said either.
    if previous.is_some() && belongs_to.is_some() && belongs_to != inquiry.user {
        return Err(missing("previous_response_id"));
    }
    Ok((inquiry, echo))
}

/// One response, as long as its words are kept.
pub(crate) async fn one(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Converse)?;
        let engine = gateway.engine();
        let stored = find(&engine, &key.tenant, &id).await?;
        engine.note_transcript_read(&key.tenant, key.id.as_str(), stored.said.head.id);
        let mut body = stored.said.object(&stored.echo);
        if !gateway.manners().omit_own_fields {
            body["conclave"] = stored.own;
        }
        Ok(Json(body).into_response())
    };
    respond(found.await)
}

/// A response read back.
struct Stored {
    said: Said,
    echo: Map<String, Value>,
    own: Value,
    earlier: Earlier,
    user: Option<UserId>,
}

async fn find(engine: &Engine, tenant: &TenantId, id: &str) -> Result<Stored, ApiError> {
    let nowhere = || missing("previous_response_id");
    let audit = id.strip_prefix(ID_PREFIX).and_then(AuditId::parse).ok_or_else(nowhere)?;
    let entries = engine.archive.find(tenant_number(tenant.as_str()), audit).await;
    let stored = StoredDecision::from_entries(entries.map_err(unavailable)?).map_err(|error| {
        tracing::error!(%audit, %error, "a stored decision cannot be read");
        ApiError::archive_unavailable()
    })?;
    stored.and_then(|stored| read(audit, &stored)).ok_or_else(nowhere)
}

/// `None` where it was not stored, or its words are gone.
fn read(audit: AuditId, stored: &StoredDecision) -> Option<Stored> {
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
    let head = Head {
        id: audit,
        created_s: stored.leaf.ts_ms / 1_000,
        model: stored.text("model").to_owned(),
    };
    let score = u16::try_from(stored.number("score")).ok();
    let own = json!({
        "audit_id": audit.to_string(),
        "outcome": outcome,
        "action": stored.text("action"),
        "verified": verified,
        "safety_score": stored.public("score").and(score).map(fraction),
        "attempts": stored.number("attempts"),
        "scrutiny": stored.text("scrutiny"),
        "receipt_url": format!("/v1/decisions/{audit}/receipt"),
        "leaf_hash": hex::encode(stored.leaf_hash),
    });
    let session = name("session").and_then(|name| SessionId::new(name).ok());
    Some(Stored {
        said: Said { head, delivered: delivered.clone(), as_refusal: structured && !verified },
        echo,
        own,
        earlier: Earlier { messages, delivered, session },
        user: name("user").and_then(|name| UserId::new(name).ok()),
    })
}

fn missing(param: &str) -> ApiError {
    ApiError::not_found("There is no response with this id, or its words are not kept.").at(param)
}
