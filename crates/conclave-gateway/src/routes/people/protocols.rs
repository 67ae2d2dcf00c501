//! `/v1/protocols`: what communities have laid down, and who speaks for them.

use super::desk::{DeskRequest, PeopleDesk, open_desk, open_desk_to_read, people_error};
use crate::admission::entrance::Need;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_govern::{LABELS, Protocol};
use conclave_people::{CommunityElders, Elder, ElderProposal, ProtocolVersion};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// A protocol as it is sent: the community stands in the address.
#[derive(Deserialize)]
struct ProtocolRequest {
    /// The version that was read; a change since then is a conflict.
    version: Option<u64>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ElderRequest {
    person: String,
}

/// The protocols of the tenant's communities, and the labels there are.
pub(crate) async fn list_protocols(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let found = async {
        let PeopleDesk { people, caller, .. } = open_desk(&gateway, &headers, Need::ReadProtocols)?;
        let protocols = people.protocols(&caller).await.map_err(people_error)?;
        let mut data = Vec::with_capacity(protocols.len());
        for one in protocols {
            data.push(protocol_view(&one.protocol, one.version, None));
        }
        let labels: Vec<_> =
            LABELS.iter().map(|label| json!({"code": label.code, "name": label.name})).collect();
        Ok(Json(json!({"object": "list", "data": data, "labels": labels})).into_response())
    };
    respond(found.await)
}

/// One protocol: all of it for its elders, the public part for others.
pub(crate) async fn show_protocol(
    State(gateway): State<Gateway>,
    Path(community): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let PeopleDesk { people, caller, .. } = open_desk(&gateway, &headers, Need::ReadProtocols)?;
        let found = people.protocol(&caller, &community).await;
        let ProtocolVersion { protocol, version } = found.map_err(people_error)?;
        let elders = people.elders(&caller.tenant, &community).await.map_err(people_error)?;
        Ok(Json(protocol_view(&protocol, version, Some(&elders))).into_response())
    };
    respond(found.await)
}

/// Lays down a protocol, or changes it.
pub(crate) async fn put_protocol(
    State(gateway): State<Gateway>,
    Path(community): Path<String>,
    request: Request,
) -> Response {
    let kept = async {
        let DeskRequest { desk, mut sent } =
            open_desk_to_read::<ProtocolRequest>(&gateway, request, Need::EditProtocols).await?;
        let PeopleDesk { people, caller, .. } = desk;
        sent.rest.insert("community".into(), community.into());
        let protocol: Protocol = serde_json::from_value(Value::Object(sent.rest))
            .map_err(|error| ApiError::malformed(format!("This is no protocol: {error}.")))?;
        let laid = people.lay_down(&caller, protocol.clone(), sent.version).await;
        Ok(Json(protocol_view(&protocol, laid.map_err(people_error)?, None)).into_response())
    };
    respond(kept.await)
}

/// 200, or 202 where somebody is only proposed and the elders decide.
pub(crate) async fn name_elder(
    State(gateway): State<Gateway>,
    Path((community, holder)): Path<(String, String)>,
    request: Request,
) -> Response {
    let named = async {
        let DeskRequest { desk, sent } =
            open_desk_to_read::<ElderRequest>(&gateway, request, Need::EditProtocols).await?;
        let PeopleDesk { people, caller, .. } = desk;
        let named = people.name_elder(&caller, &community, &holder, &sent.person).await;
        let named = named.map_err(people_error)?;
        let is_proposed = named.proposals.iter().any(|one| one.elder.holder == holder);
        let status = if is_proposed { StatusCode::ACCEPTED } else { StatusCode::OK };
        Ok((status, Json(elders_view(&community, &named))).into_response())
    };
    respond(named.await)
}

pub(crate) async fn remove_elder(
    State(gateway): State<Gateway>,
    Path((community, holder)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let removed = async {
        let PeopleDesk { people, caller, .. } = open_desk(&gateway, &headers, Need::EditProtocols)?;
        let elders = people.remove_elder(&caller, &community, &holder).await;
        Ok(Json(elders_view(&community, &elders.map_err(people_error)?)).into_response())
    };
    respond(removed.await)
}

fn protocol_view(protocol: &Protocol, version: u64, elders: Option<&[Elder]>) -> Value {
    let mut view = serde_json::to_value(protocol).unwrap_or_default();
    view["object"] = "protocol".into();
    view["version"] = version.into();
    if let Some(elders) = elders {
        // Who they are is theirs to tell; that there are some is what a caller needs.
        view["elders"] = elders.len().into();
    }
    view
}

fn elders_view(community: &str, now: &CommunityElders) -> Value {
    let proposed = now.proposals.iter().map(|ElderProposal { elder, review_id }| {
        json!({
            "holder": elder.holder,
            "person": elder.person,
            "review_id": review_id,
            "effective_ms": elder.since_ms,
        })
    });
    let proposed: Vec<_> = proposed.collect();
    json!({"object": "elders", "community": community, "data": now.elders, "proposed": proposed})
}
