//! What every endpoint that takes a request body does first: the key, the body, its JSON, the turn.

use crate::admission::auth::{Need, admit, permit};
use crate::admission::idempotency::Repeat;
use crate::admission::intake::{Share, Whole};
use crate::admission::{identity, intake, pacing, strict_json};
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::inquiry::Inquiry;
use axum::extract::Request;
use conclave_engine::{KeyRecord, Turn};
use http::HeaderMap;
use serde_json::Value;
use std::sync::Arc;

/// A request whose key opens this, and whose body is JSON.
pub(crate) struct Entered {
    pub headers: HeaderMap,
    pub key: KeyRecord,
    pub document: Value,
    /// Names the request and what it says, where it asks to be answered once.
    pub repeat: Option<Repeat>,
    /// Its place among the large bodies.
    _share: Share,
}

impl Entered {
    /// What was read of a request to talk. One that cannot be read is no turn, and counts all the same.
    pub(crate) fn understood<T>(
        &self,
        gateway: &Gateway,
        read: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        read.map_err(|wrong| counted(gateway, &self.key, wrong))
    }
}

/// The error, or that the limits do not let even that be said.
fn counted(gateway: &Gateway, key: &KeyRecord, wrong: ApiError) -> ApiError {
    pacing::count(gateway, key).err().unwrap_or(wrong)
}

/// Lets a request in, or says why not.
pub(crate) async fn enter(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<Entered, ApiError> {
    let key = admit(gateway, request.headers(), need);
    let (key, request) = known(request, key).await?;
    read(gateway, request, None).await.map(|read| read.by(key))
}

/// The same; a body that is empty means `default`.
pub(crate) async fn enter_or(
    gateway: &Gateway,
    request: Request,
    need: Need,
    default: Value,
) -> Result<Entered, ApiError> {
    let key = admit(gateway, request.headers(), need);
    let (key, request) = known(request, key).await?;
    read(gateway, request, Some(default)).await.map(|read| read.by(key))
}

/// The same for a turn, which is counted once it is known who speaks.
pub(crate) async fn enter_to_talk(
    gateway: &Gateway,
    request: Request,
) -> Result<Entered, ApiError> {
    let key = permit(gateway, request.headers(), Need::Converse);
    let (key, request) = known(request, key).await?;
    match read(gateway, request, None).await {
        Ok(read) => Ok(read.by(key)),
        Err(wrong) => Err(counted(gateway, &key, wrong)),
    }
}

/// The request of somebody who was let in.
async fn known(
    request: Request,
    key: Result<KeyRecord, ApiError>,
) -> Result<(KeyRecord, Request), ApiError> {
    match key {
        Ok(key) => Ok((key, request)),
        Err(error) => {
            let (parts, mut body) = request.into_parts();
            // A client that is still sending cannot read our refusal; of what it sends nothing is kept.
            intake::discard(&mut body, &parts.headers).await;
            Err(error)
        }
    }
}

/// A request that was read, whoever sent it.
struct Read {
    headers: HeaderMap,
    document: Value,
    repeat: Option<Repeat>,
    share: Share,
}

impl Read {
    fn by(self, key: KeyRecord) -> Entered {
        let Self { headers, document, repeat, share } = self;
        Entered { headers, key, document, repeat, _share: share }
    }
}

async fn read(
    gateway: &Gateway,
    request: Request,
    default: Option<Value>,
) -> Result<Read, ApiError> {
    let (parts, body) = request.into_parts();
    let Whole { bytes, share } =
        intake::read(&parts.headers, body, gateway.limits(), gateway.room()).await?;
    let malformed = |error| ApiError::malformed(format!("The body is not valid JSON: {error}."));
    let document = match default {
        Some(default) if bytes.is_empty() => default,
        _ => strict_json::parse(&bytes).map_err(malformed)?,
    };
    let repeat = Repeat::of(&parts, &bytes)?;
    Ok(Read { headers: parts.headers, document, repeat, share })
}

/// The turn that an inquiry is.
pub(crate) fn turn(
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
