//! `/v1/keys` and `/v1/tokens`: who may come in, and for how long.
//!
//! **Invariant:** a key makes and sees keys of its own tenant. Only an owner of the house, whose tenant is
//! `default`, does so for others. The text of a key is answered once and kept nowhere.

use super::tenants::{governed_tenant, governs_all_tenants};
use crate::admission::entrance::{Need, admit_key, admit_request};
use crate::admission::tokens::{LASTS_S, LASTS_S_MAX, LASTS_S_MIN, PersonToken, write_token};
use crate::error::ApiError;
use crate::routes::query::read_query;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::typed_body;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{KeyId, SessionId, TenantId, UserId};
use conclave_engine::{KeyDeskError, KeyOrder, KeyRecord, KeyRole, ListedKey, MadeKey};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

const DAY_S: u64 = 24 * 3600;
/// The longest life of a key, in seconds.
const LIFE_S_MAX: u64 = 3650 * DAY_S;
/// How long a key and its successor open doors together, in seconds, at most and unless asked otherwise.
const OVERLAP_S_MAX: u64 = 30 * DAY_S;
const OVERLAP_S: u64 = DAY_S;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    role: String,
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    label: String,
    #[serde(default)]
    person: Option<String>,
    #[serde(default)]
    expires_in_s: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RotationRequest {
    overlap_s: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRequest {
    user: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    expires_in_s: Option<u64>,
}

/// Makes a key; its text is in the answer and nowhere else.
pub(crate) async fn create_key(State(gateway): State<Gateway>, request: Request) -> Response {
    let made = async {
        let request = admit_request(&gateway, request, Need::Keys, None).await?;
        let asked: KeyRequest = typed_body(request.document)?;
        let role = KeyRole::parse(&asked.role)
            .ok_or_else(|| ApiError::invalid("role", "must be the name of a role"))?;
        let tenant = match &asked.tenant {
            Some(name) => governed_tenant(&request.key, name)?,
            None => request.key.tenant,
        };
        let lasts_s = within("expires_in_s", asked.expires_in_s, 1, LIFE_S_MAX)?;
        let now_ms = gateway.engine().clock.now_ms();
        let expires_ms = lasts_s.map(|seconds| now_ms.saturating_add(seconds * 1000));
        let KeyRequest { label, person, .. } = asked;
        let order = KeyOrder { tenant, role, label, person, expires_ms };
        let made = gateway.services().key_desk.issue(order).await;
        Ok(made_key_response(&made.map_err(key_error)?))
    };
    respond(made.await)
}

/// Every key of a tenant, without secrets.
pub(crate) async fn list_keys(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let listed = async {
        let key = admit_key(&gateway, &headers, Need::Keys)?;
        let tenant = asked_tenant(&key, query.as_deref())?;
        let keys = gateway.services().key_desk.list(tenant).await.map_err(key_error)?;
        let data: Vec<_> = keys.iter().map(key_view).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(listed.await)
}

/// Withdraws a key, at once and for ever; with it every token it made.
pub(crate) async fn revoke_key(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let revoked = async {
        let key = admit_key(&gateway, &headers, Need::Keys)?;
        let tenant = asked_tenant(&key, query.as_deref())?;
        let revoked = gateway.services().key_desk.revoke(tenant, read_key_id(id)?).await;
        let record = revoked.map_err(key_error)?;
        Ok(Json(key_view(&ListedKey { record, last_used_ms: None })).into_response())
    };
    respond(revoked.await)
}

/// Makes the successor of a key; the key goes on for a while.
pub(crate) async fn rotate_key(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let rotated = async {
        let request = admit_request(&gateway, request, Need::Keys, None).await?;
        let asked: RotationRequest = typed_body(request.document)?;
        let tenant = asked_tenant(&request.key, query.as_deref())?;
        let overlap_s = within("overlap_s", asked.overlap_s, 0, OVERLAP_S_MAX)?;
        let overlap_ms = overlap_s.unwrap_or(OVERLAP_S) * 1000;
        let made = gateway.services().key_desk.rotate(tenant, read_key_id(id)?, overlap_ms).await;
        Ok(made_key_response(&made.map_err(key_error)?))
    };
    respond(rotated.await)
}

/// Makes a token for one person.
pub(crate) async fn create_token(State(gateway): State<Gateway>, request: Request) -> Response {
    let minted = async {
        let request = admit_request(&gateway, request, Need::Tokens, None).await?;
        let asked: TokenRequest = typed_body(request.document)?;
        let user = UserId::new(asked.user);
        let user = user.map_err(|error| ApiError::invalid("user", format!("{error}.")))?;
        let session = asked.session.map(SessionId::new).transpose();
        let session = session.map_err(|error| ApiError::invalid("session", format!("{error}.")))?;
        let lasts_s = within("expires_in_s", asked.expires_in_s, LASTS_S_MIN, LASTS_S_MAX)?;
        let now_ms = gateway.engine().clock.now_ms();
        let expires_ms = now_ms.saturating_add(lasts_s.unwrap_or(LASTS_S) * 1000);
        let token = PersonToken { key: request.key.id, user, session, expires_ms };
        let body = json!({
            "object": "end_user_token",
            "token": write_token(gateway.keys(), &token),
            "user": token.user,
            "session": token.session,
            "expires_ms": token.expires_ms,
        });
        Ok(created_secret(body))
    };
    respond(minted.await)
}

fn within(
    name: &str,
    seconds: Option<u64>,
    least: u64,
    most: u64,
) -> Result<Option<u64>, ApiError> {
    match seconds {
        Some(given) if !(least..=most).contains(&given) => {
            Err(ApiError::invalid(name, format!("must be {least} to {most} seconds")))
        }
        given => Ok(given),
    }
}

/// The key's own tenant, or the one that an owner of the house names as `?tenant=`.
fn asked_tenant(key: &KeyRecord, query: Option<&str>) -> Result<TenantId, ApiError> {
    match read_query(query, &["tenant"])?.into_iter().next() {
        None => Ok(key.tenant.clone()),
        Some(field) if governs_all_tenants(key) || field.value == key.tenant.as_str() => {
            governed_tenant(key, &field.value)
        }
        Some(_) => Err(ApiError::forbidden("This key governs its own tenant only.")),
    }
}

fn read_key_id(id: String) -> Result<KeyId, ApiError> {
    KeyId::new(id).map_err(|_| key_error(KeyDeskError::NotFound))
}

fn made_key_response(made: &MadeKey) -> Response {
    let listed = ListedKey { record: made.record.clone(), last_used_ms: None };
    let mut body = key_view(&listed);
    body["key"] = made.text.as_str().into();
    created_secret(body)
}

/// An answer with a secret in it, which no cache may keep.
fn created_secret(body: Value) -> Response {
    let unkept = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::CREATED, unkept, Json(body)).into_response()
}

fn key_view(key: &ListedKey) -> Value {
    let mut body = json!(key);
    body["object"] = "key".into();
    body
}

fn key_error(error: KeyDeskError) -> ApiError {
    match error {
        KeyDeskError::NotFound => ApiError::not_found("There is no key with this id."),
        KeyDeskError::Ended(why) => ApiError::conflict(format!("{why}.")),
        KeyDeskError::Invalid(why) => ApiError::malformed(format!("{why}.")),
        KeyDeskError::Unavailable(why) => {
            tracing::error!(%why, "the keys cannot be read or changed");
            ApiError::archive_unavailable()
        }
    }
}
