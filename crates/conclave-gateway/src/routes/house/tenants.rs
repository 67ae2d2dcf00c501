//! `/v1/tenants`: who there is, and what each may do and spend.
//!
//! **Invariant:** a key governs its own tenant. Only an owner of the house, whose tenant is `default`,
//! governs others too.

use crate::admission::entrance::{Need, admit_key, admit_request};
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
pub(super) const HOUSE: &str = "default";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantRequest {
    id: String,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    projects: Vec<String>,
}

/// What is changed about a tenant; what is left out stays as it was.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantChange {
    users: Option<Vec<String>>,
    projects: Option<Vec<String>>,
}

/// Every tenant the key may see.
pub(crate) async fn list_tenants(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let listed = async {
        let key = admit_key(&gateway, &headers, Need::Policies)?;
        let steward = steward_of(&gateway)?;
        let policies = steward.state.policies();
        let tenants = if governs_all_tenants(&key) {
            policies
                .tenants(read_offset(query.as_deref().unwrap_or(""))?)
                .await
                .map_err(tenants_error)?
        } else {
            policies.tenant(&key.tenant).await.map_err(tenants_error)?.into_iter().collect()
        };
        Ok(Json(json!({"object": "list", "data": tenants})).into_response())
    };
    respond(listed.await)
}

/// How many tenants are left out before the page begins.
fn read_offset(query: &str) -> Result<u32, ApiError> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(0),
        Some(("offset", number)) => number
            .parse()
            .map_err(|_| ApiError::invalid("offset", "must be a number of tenants to leave out")),
        _ => Err(ApiError::invalid("offset", "is all that can be asked for here")),
    }
}

/// Enters a tenant with its users and projects. One that is there is not touched: whoever enters it
/// again does not know what it holds.
pub(crate) async fn enter_tenant(State(gateway): State<Gateway>, request: Request) -> Response {
    let entered = async {
        let request = admit_request(&gateway, request, Need::Govern, None).await?;
        let sent: TenantRequest = serde_json::from_value(request.document)
            .map_err(|error| ApiError::malformed(format!("The tenant cannot be read: {error}.")))?;
        let tenant = governed_tenant(&request.key, &sent.id)?;
        let steward = steward_of(&gateway)?;
        let now_ms = gateway.engine().clock.now_ms();
        let policies = steward.state.policies();
        let made = policies.enter(&tenant, &sent.users, &sent.projects, now_ms).await;
        let made = made.map_err(|error| match error {
            TenantsError::Records(RecordsError::Conflict) => ApiError::conflict(format!(
                "There is a tenant `{tenant}` already; PATCH /v1/tenants/{{id}} changes it."
            )),
            error => tenants_error(error),
        });
        Ok(Json(made?).into_response())
    };
    respond(entered.await)
}

/// Changes the users or the projects of a tenant.
pub(crate) async fn change_tenant(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let changed = async {
        let request = admit_request(&gateway, request, Need::Govern, None).await?;
        let change: TenantChange = serde_json::from_value(request.document)
            .map_err(|error| ApiError::malformed(format!("The change cannot be read: {error}.")))?;
        let tenant = governed_tenant(&request.key, &id)?;
        let steward = steward_of(&gateway)?;
        let now_ms = gateway.engine().clock.now_ms();
        let TenantChange { users, projects } = change;
        let policies = steward.state.policies();
        let made = policies.change(&tenant, users.as_deref(), projects.as_deref(), now_ms).await;
        let made = made.map_err(tenants_error)?;
        let made = made.ok_or_else(|| ApiError::not_found("There is no such tenant."))?;
        Ok(Json(made).into_response())
    };
    respond(changed.await)
}

/// What holds for a tenant, and what it has set itself.
pub(crate) async fn show_policy(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Policies)?;
        let tenant = governed_tenant(&key, &id)?;
        let steward = steward_of(&gateway)?;
        Ok(Json(policy_view(&steward, &tenant)).into_response())
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
        let request = admit_request(&gateway, request, Need::Govern, None).await?;
        let tenant = governed_tenant(&request.key, &id)?;
        let steward = steward_of(&gateway)?;
        let PolicyRequest { policy, version } = read_policy_request(request.document)?;
        let now_ms = gateway.engine().clock.now_ms();
        steward
            .state
            .policies()
            .set(&tenant, policy, version, now_ms)
            .await
            .map_err(tenants_error)?;
        Ok(Json(policy_view(&steward, &tenant)).into_response())
    };
    respond(set.await)
}

struct PolicyRequest {
    policy: Value,
    /// That which was read, where it must not have changed meanwhile.
    version: Option<u64>,
}

fn read_policy_request(document: Value) -> Result<PolicyRequest, ApiError> {
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
        None => Ok(PolicyRequest { policy, version }),
    }
}

pub(crate) fn governs_all_tenants(key: &KeyRecord) -> bool {
    key.role == KeyRole::Owner && key.tenant.as_str() == HOUSE
}

/// The tenant that is named, if the key governs it. Whether another exists is not told.
pub(crate) fn governed_tenant(key: &KeyRecord, id: &str) -> Result<TenantId, ApiError> {
    let tenant = TenantId::new(id).map_err(|error| ApiError::invalid("id", format!("{error}.")))?;
    if tenant == key.tenant || governs_all_tenants(key) {
        return Ok(tenant);
    }
    Err(ApiError::forbidden("This key governs its own tenant only."))
}

pub(crate) fn steward_of(gateway: &Gateway) -> Result<Arc<Steward>, ApiError> {
    let steward = gateway.engine().steward.clone();
    steward.ok_or_else(|| ApiError::not_found("No tenants are kept here."))
}

fn policy_view(steward: &Steward, tenant: &TenantId) -> Value {
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

fn tenants_error(error: TenantsError) -> ApiError {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Envelope;
    use conclave_core::KeyId;

    fn key(tenant: &str, role: KeyRole) -> KeyRecord {
        KeyRecord {
            id: KeyId::new("k").unwrap(),
            tenant: TenantId::new(tenant).unwrap(),
            role,
            label: String::new(),
            person: None,
            created_ms: 0,
            expires_ms: None,
            revoked_ms: None,
        }
    }

    #[test]
    fn a_key_governs_its_own_tenant_and_the_owner_of_the_house_all() {
        for (own, role, asked, status) in [
            ("acme", KeyRole::Admin, "acme", None),
            ("acme", KeyRole::Owner, "other", Some(403)),
            ("default", KeyRole::Admin, "acme", Some(403)),
            ("default", KeyRole::Owner, "acme", None),
            ("default", KeyRole::Owner, "", Some(400)),
        ] {
            let refused = governed_tenant(&key(own, role), asked).err();
            let refused = refused.map(|error| error.status().as_u16());
            assert_eq!(refused, status, "{role:?} of {own} asks for {asked:?}");
        }
    }

    #[test]
    fn a_policy_is_sent_whole_with_the_version_that_was_read() {
        let sent = read_policy_request(json!({"policy": {}, "version": 3})).unwrap();
        assert_eq!((sent.policy, sent.version), (json!({}), Some(3)));
        assert_eq!(read_policy_request(json!({"policy": 1})).unwrap().version, None);
        for (body, param) in [
            (json!([]), Value::Null),
            (json!({}), json!("policy")),
            (json!({"policy": {}, "version": "3"}), json!("version")),
            (json!({"policy": {}, "other": 1}), json!("other")),
        ] {
            let error = read_policy_request(body.clone()).err().unwrap().body(Envelope::OpenAi);
            assert_eq!(error["error"]["param"], param, "{body}");
        }
    }

    #[test]
    fn an_offset_is_all_that_tenants_are_asked_with() {
        assert_eq!(read_offset("").unwrap(), 0);
        assert_eq!(read_offset("offset=20").unwrap(), 20);
        for bad in ["offset=-1", "offset=x", "limit=3", "offset"] {
            assert!(read_offset(bad).is_err(), "{bad}");
        }
    }
}
