//! `/v1/consents`: what people have agreed to, and how they take it back.

use super::desk::{Desk, enter, query, take, trouble};
use crate::admission::auth::Need;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_govern::{ConsentRecord, Evidence};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// What somebody agreed to, as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    subject: String,
    scopes: Vec<String>,
    purposes: Vec<String>,
    #[serde(default)]
    parties: Vec<String>,
    given_ms: Option<u64>,
    expires_ms: Option<u64>,
    evidence: Evidence,
}

/// How it is taken back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TakenBack {
    evidence: Evidence,
}

/// Keeps what somebody agreed to.
pub(crate) async fn give(State(gateway): State<Gateway>, request: Request) -> Response {
    let kept = async {
        let (desk, given) = take::<Given>(&gateway, request, Need::Consents).await?;
        let Desk { engine, people, caller, .. } = desk;
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
        let id = id.map_err(trouble)?;
        Ok((StatusCode::CREATED, Json(view(&id, &consent))).into_response())
    };
    respond(kept.await)
}

/// Every consent of a person.
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    RawQuery(asked): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = enter(&gateway, &headers, Need::Consents)?;
        let asked = query(asked.as_deref().unwrap_or(""), &["subject"])?;
        let missing = || ApiError::invalid("subject", "must name a person");
        let (_, subject) = asked.into_iter().next().ok_or_else(missing)?;
        let records = desk.people.consents_of(&desk.caller.tenant, &subject).await;
        let records = records.map_err(trouble)?;
        let data: Vec<_> = records.iter().map(|(id, consent)| view(id, consent)).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(found.await)
}

/// One consent.
pub(crate) async fn one(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = enter(&gateway, &headers, Need::Consents)?;
        let consent = desk.people.consent(&desk.caller.tenant, &id).await.map_err(trouble)?;
        Ok(Json(view(&id, &consent)).into_response())
    };
    respond(found.await)
}

/// Takes consent back, from the next question on.
pub(crate) async fn withdraw(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let done = async {
        let (desk, sent) = take::<TakenBack>(&gateway, request, Need::Consents).await?;
        let Desk { people, caller, .. } = desk;
        let (tenant, by) = (&caller.tenant, &caller.holder);
        let taken = people.withdraw_consent(tenant, by, &id, sent.evidence).await;
        Ok(Json(view(&id, &taken.map_err(trouble)?)).into_response())
    };
    respond(done.await)
}

fn view(id: &str, consent: &ConsentRecord) -> Value {
    let mut view = serde_json::to_value(consent).unwrap_or_default();
    view["object"] = "consent".into();
    view["id"] = id.into();
    view
}
