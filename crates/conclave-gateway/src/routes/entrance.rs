//! What every endpoint that takes a request body does first: the key, the body, its JSON, the turn.

use crate::auth::{Need, admit, permit};
use crate::error::ApiError;
use crate::idempotency::Repeat;
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
    /// Names the request and what it says, where it asks to be answered once.
    pub repeat: Option<Repeat>,
}

/// Lets a request in, or says why not.
pub(super) async fn enter(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<Entered, ApiError> {
    let key = admit(gateway, request.headers(), need);
    read(gateway, request, key, None).await
}

/// The same; a body that is empty means `default`.
pub(super) async fn enter_or(
    gateway: &Gateway,
    request: Request,
    need: Need,
    default: Value,
) -> Result<Entered, ApiError> {
    let key = admit(gateway, request.headers(), need);
    read(gateway, request, key, Some(default)).await
}

/// The same for a turn, which is counted once it is known who speaks.
pub(super) async fn enter_to_talk(
    gateway: &Gateway,
    request: Request,
) -> Result<Entered, ApiError> {
    let key = permit(gateway, request.headers(), Need::Converse);
    read(gateway, request, key, None).await
}

async fn read(
    gateway: &Gateway,
    request: Request,
    key: Result<KeyRecord, ApiError>,
    default: Option<Value>,
) -> Result<Entered, ApiError> {
    let (parts, body) = request.into_parts();
    // The body is read either way: a client that is still sending cannot read our refusal.
    let bytes = intake::read(&parts.headers, body, gateway.limits()).await;
    let (key, bytes) = (key?, bytes?);
    let malformed = |error| ApiError::malformed(format!("The body is not valid JSON: {error}."));
    let document = match default {
        Some(default) if bytes.is_empty() => default,
        _ => strict_json::parse(&bytes).map_err(malformed)?,
    };
    let repeat = Repeat::of(&parts, &bytes)?;
    Ok(Entered { headers: parts.headers, key, document, repeat })
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
