//! `/v1/consents`: what people have agreed to, and how they take it back.

use super::desk::{DeskRequest, PeopleDesk, open_desk, open_desk_to_read, people_error};
use crate::admission::entrance::Need;
use crate::error::ApiError;
use crate::routes::query::read_query;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_govern::{ConsentEvidence, ConsentRecord};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsentRequest {
    subject: String,
    scopes: Vec<String>,
    purposes: Vec<String>,
    #[serde(default)]
    parties: Vec<String>,
    given_ms: Option<u64>,
    expires_ms: Option<u64>,
    evidence: ConsentEvidence,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithdrawalRequest {
    evidence: ConsentEvidence,
}

/// Keeps what somebody agreed to.
pub(crate) async fn give_consent(State(gateway): State<Gateway>, request: Request) -> Response {
    let kept = async {
        let DeskRequest { desk, sent: given } =
            open_desk_to_read::<ConsentRequest>(&gateway, request, Need::Consents).await?;
        let PeopleDesk { engine, people, caller, .. } = desk;
        let now_ms = engine.clock.now_ms();
        let consent = ConsentRecord {
            subject: given.subject,
            scopes: given.scopes,
            purposes: given.purposes,
            parties: given.parties,
            // Nobody agrees in the future: a clock that is ahead must not delay a yes.
            given_ms: given.given_ms.unwrap_or(now_ms).min(now_ms),
            expires_ms: given.expires_ms,
            evidence: given.evidence,
            withdrawn: None,
        };
        let id = people.give_consent(&caller.tenant, &caller.holder, consent.clone()).await;
        let id = id.map_err(people_error)?;
        Ok((StatusCode::CREATED, Json(consent_view(&id, &consent))).into_response())
    };
    respond(kept.await)
}

/// Every consent of a person.
pub(crate) async fn list_consents(
    State(gateway): State<Gateway>,
    RawQuery(asked): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::Consents)?;
        let asked = read_query(asked.as_deref(), &["subject"])?.into_iter().next();
        let missing = || ApiError::invalid("subject", "must name a person");
        let subject = asked.ok_or_else(missing)?.value;
        let records = desk.people.consents_of(&desk.caller.tenant, &subject).await;
        let records = records.map_err(people_error)?;
        let data: Vec<_> = records.iter().map(|(id, consent)| consent_view(id, consent)).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(found.await)
}

pub(crate) async fn show_consent(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::Consents)?;
        let consent = desk.people.consent(&desk.caller.tenant, &id).await.map_err(people_error)?;
        Ok(Json(consent_view(&id, &consent)).into_response())
    };
    respond(found.await)
}

/// Takes consent back, from the next question on.
pub(crate) async fn withdraw_consent(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let done = async {
        let DeskRequest { desk, sent } =
            open_desk_to_read::<WithdrawalRequest>(&gateway, request, Need::Consents).await?;
        let PeopleDesk { people, caller, .. } = desk;
        let withdrawn =
            people.withdraw_consent(&caller.tenant, &caller.holder, &id, sent.evidence).await;
        Ok(Json(consent_view(&id, &withdrawn.map_err(people_error)?)).into_response())
    };
    respond(done.await)
}

fn consent_view(id: &str, consent: &ConsentRecord) -> Value {
    let mut view = serde_json::to_value(consent).unwrap_or_default();
    view["object"] = "consent".into();
    view["id"] = id.into();
    view
}
