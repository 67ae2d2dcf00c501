//! `POST /v1/responses`, and what can be asked of a stored response: itself, what it answered, and to be given
//! out no more.
//!
//! **Invariant:** a response is found under the tenant that made it, and goes on only for the person it
//! was made for. Its words stand in the decision's sealed body and nowhere else, so that whoever is
//! forgotten is forgotten here too.

use super::turns::converse;
use crate::admission::entrance::{AdmittedRequest, Need, admit_key, admit_talk};
use crate::error::ApiError;
use crate::routes::house::decisions::archive_error;
use crate::routes::query::{read_number, read_query};
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::responses::items::input_items;
use crate::wire::responses::reply::{ID_PREFIX, ResponseContent, ResponsesDialect};
use crate::wire::responses::request::{EarlierResponse, ResponsesInquiry, ResponsesRequest};
use crate::wire::{ReplyHead, fraction_of};
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, Outcome, SessionId, TenantId, UserId};
use conclave_engine::{
    Delivered, KeyRecord, Record, RecordChange, RecordKey, RecordKind, RecordsError,
    StoredDecision, pseudonym,
};
use conclave_ledger::{Kind, Value as Public, tenant_number};
use http::HeaderMap;
use serde_json::{Map, Value, json};

/// Items on one page unless asked otherwise, and at most.
const ITEMS: usize = 20;
const ITEMS_MAX: u32 = 100;

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
        Some(id) => Some(find_response(gateway, &admitted.key.tenant, id).await?),
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
        let stored = find_response(&gateway, &key.tenant, &id).await?;
        engine.note_transcript_read(&key.tenant, key.id.as_str(), stored.content.head.id);
        let mut body = stored.content.to_object(&stored.echo);
        if !gateway.settings().omit_own_fields {
            body["conclave"] = stored.own_fields;
        }
        Ok(Json(body).into_response())
    };
    respond(found.await)
}

/// Has a response given out no more, and gone on from no more. The decision stays recorded.
pub(crate) async fn delete_response(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let deleted = async {
        let key = admit_key(&gateway, &headers, Need::Converse)?;
        let audit = find_response(&gateway, &key.tenant, &id).await?.content.head.id;
        record_deletion(&gateway, &key, audit).await?;
        Ok(Json(json!({"id": id, "object": "response", "deleted": true})).into_response())
    };
    respond(deleted.await)
}

/// Where it is kept that a response was deleted.
fn deletion_of(tenant: &TenantId, audit: AuditId) -> RecordKey {
    let id = format!("deleted_{ID_PREFIX}{}", audit.0.simple());
    RecordKey { kind: RecordKind::KeptReply, tenant: tenant.clone(), id }
}

/// Keeps that a response was deleted, together with an entry of the log; who did it stands there as a pseudonym.
async fn record_deletion(
    gateway: &Gateway,
    key: &KeyRecord,
    audit: AuditId,
) -> Result<(), ApiError> {
    let records = gateway.records().ok_or_else(ApiError::archive_unavailable)?;
    let engine = gateway.engine();
    let secret = &engine.settings.pseudonym_key;
    let by = pseudonym(secret, b"reader", key.tenant.as_str(), key.id.as_str());
    let told = Public::map([
        ("what", Public::from("response.deleted")),
        ("decision", Public::Bytes(audit.0.into_bytes().to_vec())),
        ("by", Public::Bytes(by.to_vec())),
    ]);
    let record = Record {
        key: deletion_of(&key.tenant, audit),
        version: 0,
        state: "deleted".to_owned(),
        owner: String::new(),
        rank: 0,
        due_ms: None,
        changed_ms: engine.clock.now_ms(),
        subject: None,
        data: json!({}),
    };
    let change = RecordChange { record, entry: Some((Kind::AdminAction, told)) };
    match records.put(vec![change]).await {
        Ok(_) => Ok(()),
        // Somebody else has just deleted it.
        Err(RecordsError::Conflict) => Err(unknown_response()),
        Err(error) => Err(records_error(&error)),
    }
}

fn records_error(error: &RecordsError) -> ApiError {
    tracing::error!(%error, "whether a response was deleted cannot be read or kept");
    ApiError::archive_unavailable()
}

/// What a stored response answered, as items.
pub(crate) async fn list_input_items(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let listed = async {
        let key = admit_key(&gateway, &headers, Need::Converse)?;
        let asked = ItemsQuery::read(query.as_deref())?;
        let engine = gateway.engine();
        let stored = find_response(&gateway, &key.tenant, &id).await?;
        engine.note_transcript_read(&key.tenant, key.id.as_str(), stored.content.head.id);
        let items = input_items(&stored.content.head, &stored.earlier.messages);
        Ok(Json(asked.page(items)?).into_response())
    };
    respond(listed.await)
}

/// Which items of a response are asked for.
struct ItemsQuery {
    limit: usize,
    is_ascending: bool,
    after: Option<String>,
}

impl ItemsQuery {
    fn read(query: Option<&str>) -> Result<Self, ApiError> {
        let mut asked = Self { limit: ITEMS, is_ascending: false, after: None };
        for field in read_query(query, &["limit", "order", "after", "include"])? {
            match (field.name, field.value.as_str()) {
                ("limit", _) => {
                    let limit = read_number(&field, ITEMS_MAX)?;
                    asked.limit = usize::try_from(limit.max(1)).unwrap_or(ITEMS);
                }
                ("order", "asc") => asked.is_ascending = true,
                ("order", "desc") => asked.is_ascending = false,
                ("order", _) => return Err(ApiError::invalid("order", "must be `asc` or `desc`")),
                ("after", id) => asked.after = Some(id.to_owned()),
                // What else could be shown of an item is not kept.
                _ => {}
            }
        }
        Ok(asked)
    }

    /// The items asked for, and whether there are more.
    fn page(&self, mut items: Vec<Value>) -> Result<Value, ApiError> {
        if !self.is_ascending {
            items.reverse();
        }
        let start = match &self.after {
            None => 0,
            Some(id) => {
                let at = items.iter().position(|item| item["id"] == id.as_str());
                1 + at.ok_or_else(|| ApiError::invalid("after", "is no item of this response"))?
            }
        };
        let rest = items.get(start..).unwrap_or_default();
        let page = rest.get(..self.limit).unwrap_or(rest);
        let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
        Ok(json!({
            "object": "list",
            "data": page,
            "first_id": id(page.first()),
            "last_id": id(page.last()),
            "has_more": page.len() < rest.len(),
        }))
    }
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
    gateway: &Gateway,
    tenant: &TenantId,
    id: &str,
) -> Result<StoredResponse, ApiError> {
    let audit = id.strip_prefix(ID_PREFIX).and_then(AuditId::parse);
    let audit = audit.ok_or_else(unknown_response)?;
    // Where no records are kept, nothing was deleted.
    if let Some(records) = gateway.records()
        && records
            .get(deletion_of(tenant, audit))
            .await
            .map_err(|error| records_error(&error))?
            .is_some()
    {
        return Err(unknown_response());
    }
    let engine = gateway.engine();
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
            as_refusal: delivered.is_refusal || (structured && !verified),
            delivered: delivered.clone(),
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
