//! `/v1/keys` and `/v1/tokens`: who may come in, and for how long.
//!
//! **Invariant:** a key makes and sees keys of its own tenant. Only an owner of the house, whose tenant is
//! `default`, does so for others. The text of a key is answered once and kept nowhere.

use super::tenants::{governs_all, tenant};
use crate::admission::auth::{Need, admit};
use crate::admission::entrance;
use crate::admission::tokens::{self, LASTS_S, LASTS_S_MAX, LASTS_S_MIN, Token};
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{KeyId, SessionId, TenantId, UserId};
use conclave_engine::{KeyDeskError, KeyOrder, KeyRecord, KeyRole, ListedKey, MadeKey};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const DAY_S: u64 = 24 * 3600;
/// The longest life of a key, in seconds.
const LIFE_S_MAX: u64 = 3650 * DAY_S;
/// How long a key and its successor open doors together, in seconds, at most and unless asked otherwise.
const OVERLAP_S_MAX: u64 = 30 * DAY_S;
const OVERLAP_S: u64 = DAY_S;

/// A key as it is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
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

/// How a key is replaced.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Replacement {
    overlap_s: Option<u64>,
}

/// A token as it is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    user: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    expires_in_s: Option<u64>,
}

/// Makes a key; its text is in the answer and nowhere else.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    let made = async {
        let (key, order): (_, Order) = take(&gateway, request, Need::Keys).await?;
        let role = KeyRole::parse(&order.role)
            .ok_or_else(|| ApiError::invalid("role", "must be the name of a role"))?;
        let tenant = match &order.tenant {
            Some(name) => tenant(&key, name)?,
            None => key.tenant.clone(),
        };
        let lasts_s = within("expires_in_s", order.expires_in_s, 1, LIFE_S_MAX)?;
        let now_ms = gateway.engine().clock.now_ms();
        let expires_ms = lasts_s.map(|seconds| now_ms.saturating_add(seconds * 1000));
        let Order { label, person, .. } = order;
        let order = KeyOrder { tenant, role, label, person, expires_ms };
        Ok(shown_once(&gateway.services().key_desk.issue(order).await.map_err(failed)?))
    };
    respond(made.await)
}

/// Every key of a tenant, without secrets.
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let listed = async {
        let key = admit(&gateway, &headers, Need::Keys)?;
        let tenant = asked_for(&key, query.as_deref().unwrap_or(""))?;
        let keys = gateway.services().key_desk.list(tenant).await.map_err(failed)?;
        let data: Vec<_> = keys.iter().map(view).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(listed.await)
}

/// Withdraws a key, at once and for ever; with it every token it made.
pub(crate) async fn revoke(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let revoked = async {
        let key = admit(&gateway, &headers, Need::Keys)?;
        let tenant = asked_for(&key, query.as_deref().unwrap_or(""))?;
        let record =
            gateway.services().key_desk.revoke(tenant, named(id)?).await.map_err(failed)?;
        Ok(Json(view(&ListedKey { record, last_used_ms: None })).into_response())
    };
    respond(revoked.await)
}

/// Makes the successor of a key; the key goes on for a while.
pub(crate) async fn rotate(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let rotated = async {
        let (key, wish): (_, Replacement) = take(&gateway, request, Need::Keys).await?;
        let tenant = asked_for(&key, query.as_deref().unwrap_or(""))?;
        let overlap_s = within("overlap_s", wish.overlap_s, 0, OVERLAP_S_MAX)?;
        let overlap_ms = overlap_s.unwrap_or(OVERLAP_S) * 1000;
        let made = gateway.services().key_desk.rotate(tenant, named(id)?, overlap_ms).await;
        Ok(shown_once(&made.map_err(failed)?))
    };
    respond(rotated.await)
}

/// Makes a token for one person.
pub(crate) async fn mint(State(gateway): State<Gateway>, request: Request) -> Response {
    let minted = async {
        let (key, wish): (_, Wish) = take(&gateway, request, Need::Tokens).await?;
        let user = UserId::new(wish.user);
        let user = user.map_err(|error| ApiError::invalid("user", format!("{error}.")))?;
        let session = wish.session.map(SessionId::new).transpose();
        let session = session.map_err(|error| ApiError::invalid("session", format!("{error}.")))?;
        let lasts_s = within("expires_in_s", wish.expires_in_s, LASTS_S_MIN, LASTS_S_MAX)?;
        let now_ms = gateway.engine().clock.now_ms();
        let expires_ms = now_ms.saturating_add(lasts_s.unwrap_or(LASTS_S) * 1000);
        let token = Token { key: key.id, user, session, expires_ms };
        let body = json!({
            "object": "end_user_token",
            "token": tokens::write(gateway.keys(), &token),
            "user": token.user,
            "session": token.session,
            "expires_ms": token.expires_ms,
        });
        Ok(once(StatusCode::CREATED, body))
    };
    respond(minted.await)
}

async fn take<T: DeserializeOwned>(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<(KeyRecord, T), ApiError> {
    let entered = entrance::enter(gateway, request, need).await?;
    let sent = serde_json::from_value(entered.document)
        .map_err(|error| ApiError::malformed(format!("The body cannot be used: {error}.")))?;
    Ok((entered.key, sent))
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
fn asked_for(key: &KeyRecord, query: &str) -> Result<TenantId, ApiError> {
    match crate::routes::people::desk::query(query, &["tenant"])?.into_iter().next() {
        None => Ok(key.tenant.clone()),
        Some((_, name)) if governs_all(key) || name == key.tenant.as_str() => tenant(key, &name),
        Some(_) => Err(ApiError::forbidden("This key governs its own tenant only.")),
    }
}

fn named(id: String) -> Result<KeyId, ApiError> {
    KeyId::new(id).map_err(|_| failed(KeyDeskError::NotFound))
}

fn shown_once(made: &MadeKey) -> Response {
    let listed = ListedKey { record: made.record.clone(), last_used_ms: None };
    let mut body = view(&listed);
    body["key"] = made.text.as_str().into();
    once(StatusCode::CREATED, body)
}

/// An answer with a secret in it, which no cache may keep.
fn once(status: StatusCode, body: Value) -> Response {
    let unkept = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, unkept, Json(body)).into_response()
}

fn view(key: &ListedKey) -> Value {
    let mut body = json!(key);
    body["object"] = "key".into();
    body
}

fn failed(error: KeyDeskError) -> ApiError {
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
