//! What every endpoint that takes a request body does first: the key, the body, its JSON, the turn.

use crate::auth::{Need, admit};
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::inquiry::Inquiry;
use crate::{identity, intake, strict_json};
use axum::extract::Request;
use conclave_engine::{KeyRecord, Turn};
use http::HeaderMap;
use serde_json::Value;
use std::sync::Arc;

/// A request whose key opens this, and whose body is JSON.
pub(super) struct Entered {
    pub headers: HeaderMap,
    pub key: KeyRecord,
    pub document: Value,
}

/// Lets a request in, or says why not.
pub(super) async fn enter(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<Entered, ApiError> {
    enter_with(gateway, request, need, None).await
}

/// The same; a body that is empty means `default`.
pub(super) async fn enter_or(
    gateway: &Gateway,
    request: Request,
    need: Need,
    default: Value,
) -> Result<Entered, ApiError> {
    enter_with(gateway, request, need, Some(default)).await
}

async fn enter_with(
    gateway: &Gateway,
    request: Request,
    need: Need,
    default: Option<Value>,
) -> Result<Entered, ApiError> {
    let (parts, body) = request.into_parts();
    let key = admit(gateway, &parts.headers, need);
    // The body is read either way: a client that is still sending cannot read our refusal.
    let bytes = intake::read(&parts.headers, body, gateway.limits()).await;
    let (key, bytes) = (key?, bytes?);
    let malformed = |error| ApiError::malformed(format!("The body is not valid JSON: {error}."));
    let document = match default {
        Some(default) if bytes.is_empty() => default,
        _ => strict_json::parse(&bytes).map_err(malformed)?,
    };
    Ok(Entered { headers: parts.headers, key, document })
}

/// The turn that an inquiry is.
pub(super) fn turn(
    gateway: &Gateway,
    headers: &HeaderMap,
    key: &KeyRecord,
    inquiry: Inquiry,
) -> Result<Turn, ApiError> {
    let user = inquiry.user;
    let session = match inquiry.session {
        Some(session) if !headers.contains_key(identity::SESSION_HEADER) => session,
        _ => identity::session(headers, &key.tenant, user.as_ref(), &inquiry.conversation)?,
    };
    let modes = &gateway.engine().settings.modes_allowed;
    let context = identity::context(headers, inquiry.metadata.as_ref(), modes)?;
    Ok(Turn {
        tenant: key.tenant.clone(),
        key: Some(key.id.clone()),
        user,
        session,
        model: inquiry.model,
        choices: inquiry.choices,
        conversation: inquiry.conversation,
        body: Arc::new(inquiry.body),
        context,
        kept: inquiry.kept.map(Arc::new),
    })
}
