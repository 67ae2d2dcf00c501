//! `/v1/tenants`: who there is, and what each may do and spend.
//!
//! **Invariant:** a key governs its own tenant. Only an owner of the house, whose tenant is `default`,
//! governs others too.

use crate::admission::auth::{Need, admit};
use crate::admission::entrance;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::TenantId;
use conclave_engine::{KeyRecord, KeyRole, RecordsError};
use conclave_money::{Steward, TenantsError};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Whose owner is the owner of the house.
const HOUSE: &str = "default";

/// What is entered about a tenant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entered {
    id: String,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    projects: Vec<String>,
}

/// Every tenant the key may see.
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let listed = async {
        let key = admit(&gateway, &headers, Need::Policies)?;
        let steward = steward(&gateway)?;
        let policies = steward.state.policies();
        let tenants = if governs_all(&key) {
            policies.tenants(offset(query.as_deref().unwrap_or(""))?).await.map_err(failed)?
        } else {
            policies.tenant(&key.tenant).await.map_err(failed)?.into_iter().collect()
        };
        Ok(Json(json!({"object": "list", "data": tenants})).into_response())
    };
    respond(listed.await)
}

/// How many tenants are left out before the page begins.
fn offset(query: &str) -> Result<u32, ApiError> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(0),
        Some(("offset", number)) => number
            .parse()
            .map_err(|_| ApiError::invalid("offset", "must be a number of tenants to leave out")),
        _ => Err(ApiError::invalid("offset", "is all that can be asked for here")),
    }
}

/// Enters a tenant with its users and projects, or changes one.
pub(crate) async fn enter(State(gateway): State<Gateway>, request: Request) -> Response {
    let entered = async {
        let (key, document) = read(&gateway, request).await?;
        let entered: Entered = serde_json::from_value(document)
            .map_err(|error| ApiError::malformed(format!("The tenant cannot be read: {error}.")))?;
        let tenant = tenant(&key, &entered.id)?;
        let (steward, now_ms) = (steward(&gateway)?, gateway.engine().clock.now_ms());
        let policies = steward.state.policies();
        let made = policies.enter(&tenant, &entered.users, &entered.projects, now_ms).await;
        Ok(Json(made.map_err(failed)?).into_response())
    };
    respond(entered.await)
}

/// What holds for a tenant, and what it has set itself.
pub(crate) async fn policy(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Policies)?;
        let (tenant, steward) = (tenant(&key, &id)?, steward(&gateway)?);
        Ok(Json(shown(&steward, &tenant)).into_response())
    };
    respond(found.await)
}

/// Sets a tenant's policy as a whole.
pub(crate) async fn set_policy(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let set = async {
        let (key, document) = read(&gateway, request).await?;
        let (tenant, steward) = (tenant(&key, &id)?, steward(&gateway)?);
        let (policy, version) = parts(document)?;
        let now_ms = gateway.engine().clock.now_ms();
        steward.state.policies().set(&tenant, policy, version, now_ms).await.map_err(failed)?;
        Ok(Json(shown(&steward, &tenant)).into_response())
    };
    respond(set.await)
}

/// `{"policy": {...}, "version": 3}`: the version is that which was read, where it must not have
/// changed meanwhile.
fn parts(document: Value) -> Result<(Value, Option<u64>), ApiError> {
    let Value::Object(mut fields) = document else {
        return Err(ApiError::malformed("The body must be an object with `policy`."));
    };
    let policy = fields.remove("policy");
    let policy = policy.ok_or_else(|| ApiError::invalid("policy", "`policy` is missing."))?;
    let version = match fields.remove("version") {
        None | Some(Value::Null) => None,
        Some(version) => Some(version.as_u64().ok_or_else(|| {
            ApiError::invalid("version", "`version` must be the number that was read.")
        })?),
    };
    match fields.keys().next() {
        Some(name) => Err(ApiError::invalid(name.clone(), "This field is not known.")),
        None => Ok((policy, version)),
    }
}

async fn read(gateway: &Gateway, request: Request) -> Result<(KeyRecord, Value), ApiError> {
    let entered = entrance::enter(gateway, request, Need::Govern).await?;
    Ok((entered.key, entered.document))
}

pub(crate) fn governs_all(key: &KeyRecord) -> bool {
    key.role == KeyRole::Owner && key.tenant.as_str() == HOUSE
}

/// The tenant that is named, if the key governs it. Whether another exists is not told.
pub(crate) fn tenant(key: &KeyRecord, id: &str) -> Result<TenantId, ApiError> {
    let tenant = TenantId::new(id).map_err(|error| ApiError::invalid("id", format!("{error}.")))?;
    if tenant == key.tenant || governs_all(key) {
        return Ok(tenant);
    }
    Err(ApiError::forbidden("This key governs its own tenant only."))
}

pub(crate) fn steward(gateway: &Gateway) -> Result<Arc<Steward>, ApiError> {
    let steward = gateway.engine().steward.clone();
    steward.ok_or_else(|| ApiError::not_found("No tenants are kept here."))
}

fn shown(steward: &Steward, tenant: &TenantId) -> Value {
    let own = steward.state.policies().of(tenant);
    let (version, in_force) = steward.policy(tenant);
    json!({
        "object": "tenant.policy",
        "tenant": tenant,
        "version": version,
        "policy": *own.policy,
        "in_force": *in_force,
    })
}

fn failed(error: TenantsError) -> ApiError {
    match error {
        TenantsError::Policy(error) => {
            ApiError::invalid(format!("policy.{}", error.field), format!("{error}."))
        }
        TenantsError::Invalid(why) => ApiError::malformed(format!("{why}.")),
        TenantsError::Records(RecordsError::Conflict) => {
            ApiError::conflict("Somebody else has changed this meanwhile; read it again.")
        }
        TenantsError::Records(RecordsError::Invalid(why)) => ApiError::malformed(format!("{why}.")),
        TenantsError::Records(error @ RecordsError::Unavailable(_)) => {
            tracing::error!(%error, "tenants cannot be read or changed");
            ApiError::archive_unavailable()
        }
    }
}
