//! `/v1/webhooks`: where events are sent to, and what did not arrive.

use super::desk::{DeskRequest, PeopleDesk, open_desk, open_desk_to_read, people_error};
use crate::admission::entrance::Need;
use crate::error::ApiError;
use crate::routes::query::read_query;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_engine::EventKind;
use conclave_people::{EventRecord, EventState, NewWebhook, Webhook};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// Events on one page.
const PAGE: u32 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookRequest {
    url: String,
    #[serde(default)]
    events: Vec<String>,
}

/// Makes a webhook; its secret is shown this once.
pub(crate) async fn create_webhook(State(gateway): State<Gateway>, request: Request) -> Response {
    let made = async {
        let DeskRequest { desk, sent } =
            open_desk_to_read::<WebhookRequest>(&gateway, request, Need::Webhooks).await?;
        let PeopleDesk { people, post, caller, .. } = desk;
        let mut events = Vec::with_capacity(sent.events.len());
        for name in &sent.events {
            let unknown = || ApiError::invalid("events", format!("`{name}` is not known"));
            let kind = EventKind::parse(name).ok_or_else(unknown)?;
            if !events.contains(&kind) {
                events.push(kind);
            }
        }
        let added = people.add_webhook(&caller, &*post, &sent.url, events).await;
        let NewWebhook { id, webhook, secret } = added.map_err(people_error)?;
        let mut shown = webhook_view(&id, &webhook);
        shown["secret"] = secret.into();
        Ok((StatusCode::CREATED, Json(shown)).into_response())
    };
    respond(made.await)
}

/// Every webhook of the tenant, without secrets.
pub(crate) async fn list_webhooks(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::Webhooks)?;
        let webhooks = desk.people.webhooks(&desk.caller.tenant).await.map_err(people_error)?;
        let data: Vec<_> = webhooks.iter().map(|(id, webhook)| webhook_view(id, webhook)).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(found.await)
}

pub(crate) async fn remove_webhook(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let ended = async {
        let desk = open_desk(&gateway, &headers, Need::Webhooks)?;
        desk.people.remove_webhook(&desk.caller, &id).await.map_err(people_error)?;
        Ok(Json(json!({"object": "webhook", "id": id, "deleted": true})).into_response())
    };
    respond(ended.await)
}

/// Replaces the secret of a webhook; the new one is shown this once.
pub(crate) async fn replace_secret(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let replaced = async {
        let desk = open_desk(&gateway, &headers, Need::Webhooks)?;
        let secret = desk.people.replace_secret(&desk.caller, &id).await.map_err(people_error)?;
        Ok(Json(json!({"object": "webhook", "id": id, "secret": secret})).into_response())
    };
    respond(replaced.await)
}

/// The events of a webhook: `dead` ones unless asked otherwise.
pub(crate) async fn list_events(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    RawQuery(asked): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::Webhooks)?;
        let asked = read_query(asked.as_deref(), &["state"])?.into_iter().next();
        let unknown = || ApiError::invalid("state", "must be waiting, dead or arrived");
        let state = match asked {
            Some(field) => EventState::parse(&field.value).ok_or_else(unknown)?,
            None => EventState::Dead,
        };
        let found = desk.people.queued_events(&desk.caller.tenant, &id, state, PAGE).await;
        let data: Vec<_> = found
            .map_err(people_error)?
            .into_iter()
            .map(|EventRecord { id, event, due_ms }| {
                json!({
                    "object": "event", "id": id, "type": event.kind, "state": state.as_str(),
                    "timestamp_ms": event.at_ms, "attempts": event.attempts,
                    "trouble": event.trouble, "due_ms": due_ms, "data": event.data,
                })
            })
            .collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(found.await)
}

/// Has a dead event sent once more.
pub(crate) async fn resend_event(
    State(gateway): State<Gateway>,
    Path((webhook, event)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let queued = async {
        let desk = open_desk(&gateway, &headers, Need::Webhooks)?;
        desk.people.resend_event(&desk.caller, &webhook, &event).await.map_err(people_error)?;
        let body = json!({"object": "event", "id": event, "state": "waiting"});
        Ok((StatusCode::ACCEPTED, Json(body)).into_response())
    };
    respond(queued.await)
}

fn webhook_view(id: &str, webhook: &Webhook) -> Value {
    json!({
        "object": "webhook",
        "id": id,
        "url": webhook.url,
        "events": webhook.events,
        "created_ms": webhook.created_ms,
    })
}
