//! Who comes in: the key or token of a caller and what it opens, the request they send, and the person
//! who speaks in it.
//!
//! **Invariant:** a role opens what it is given by name in [`role_opens`], and nothing else.
//! **Invariant:** a person's token opens what concerns that person alone, and never a route that talks.
//! **Invariant:** every request that is let in is counted, also one that then cannot be read.

use crate::admission::body::{BodyShare, RequestBody, discard_body, parse_json, read_body};
use crate::admission::circumstances::StatedCircumstances;
use crate::admission::idempotency::IdempotencyKey;
use crate::admission::rates;
use crate::admission::tokens;
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::Inquiry;
use crate::wire::files::check_links;
use axum::body::Body;
use axum::extract::Request;
use conclave_core::{Message, Role, SessionId, TenantId, TurnContext, UserId};
use conclave_engine::{KeyRecord, KeyRole, LONG_BYTES, Turn, off_workers};
use conclave_people::DecisionReader;
use http::request::Parts;
use http::{HeaderMap, header};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The longest key worth looking up.
const KEY_BYTES_MAX: usize = 256;
/// The header that names a conversation.
pub(crate) const SESSION_HEADER: &str = "x-conclave-session-id";

/// What a route is about; deny by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Talk through the gateway.
    Converse,
    /// List decisions and read what is public of them.
    Audit,
    /// Ask why.
    Explain,
    /// Have it proved that a decision is in the log.
    Prove,
    /// Read entries of the log, without words: the tenant's own; all of them for the house.
    Entries,
    /// Be given everything that is kept of a person, words too.
    Export,
    /// Erase a person.
    Erase,
    /// Read policies and tenants.
    Policies,
    /// Change policies and tenants.
    Govern,
    /// See what was used and spent.
    Usage,
    /// Keep and read what people agreed to.
    Consents,
    /// Read what is public of protocols.
    ReadProtocols,
    /// Change a protocol, or who speaks for a community; the records know whose it is.
    EditProtocols,
    /// See everything that waits for people; the records know whose it is.
    ListReviews,
    /// See one review and what became of it; the records know whose it is.
    ReadReviews,
    /// Claim and decide; the records know whose it is.
    DecideReviews,
    /// Disagree with a decision, for its person.
    Appeal,
    /// See which appeals there are, and how they were ruled.
    ReadAppeals,
    /// Say where events are sent to.
    Webhooks,
    /// See which recipes there are, and what is counted of them.
    Recipes,
    /// Make, see, replace and withdraw keys.
    Keys,
    /// Make tokens for the people at the other end.
    Tokens,
}

/// The one person, and the one conversation of theirs, that a token is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    pub user: UserId,
    pub session: Option<SessionId>,
}

/// Somebody who was let in: a key, or a person with a token that the key made.
pub(crate) struct AdmittedCaller {
    pub key: KeyRecord,
    pub holder: Option<TokenHolder>,
}

/// The caller's key, if it opens this and the limits let it. A person's token opens nothing here.
pub(crate) fn admit_key(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<KeyRecord, ApiError> {
    let key = permit_key(gateway, headers, need)?;
    rates::count_request(gateway, &key)?;
    Ok(key)
}

/// The caller's key, if it opens this; the request is counted by whoever finds out who speaks.
fn permit_key(gateway: &Gateway, headers: &HeaderMap, need: Need) -> Result<KeyRecord, ApiError> {
    let caller =
        identify_caller(gateway, headers).ok_or_else(|| rates::refuse_stranger(gateway))?;
    if caller.holder.is_none() && role_opens(caller.key.role, need) {
        return Ok(caller.key);
    }
    Err(role_forbids())
}

/// The same for what concerns one person: their token opens it too, where it is their own.
pub(crate) fn admit_person(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<AdmittedCaller, ApiError> {
    let caller =
        identify_caller(gateway, headers).ok_or_else(|| rates::refuse_stranger(gateway))?;
    let is_open = match &caller.holder {
        // A token is in the hands of the person at the other end, in a browser or on a phone: it lets them ask
        // about themselves, and never spend the tenant's money.
        Some(_) => {
            matches!(need, Need::Explain | Need::Prove | Need::Appeal | Need::ReadAppeals)
        }
        None => role_opens(caller.key.role, need),
    };
    if !is_open {
        return Err(role_forbids());
    }
    rates::count_request(gateway, &caller.key)?;
    Ok(caller)
}

fn role_forbids() -> ApiError {
    ApiError::forbidden("This key's role does not open this.")
}

/// Who calls, if their key or token is valid at all.
pub(crate) fn identify_caller(gateway: &Gateway, headers: &HeaderMap) -> Option<AdmittedCaller> {
    let shown = bearer_text(headers).or_else(|| headers.get("x-api-key")?.to_str().ok())?;
    if shown.starts_with(tokens::PREFIX) {
        return tokens::read_token(gateway, shown);
    }
    if shown.len() > KEY_BYTES_MAX {
        return None;
    }
    let now_ms = gateway.engine().clock.now_ms();
    let key = gateway.keys().find(shown).filter(|record| record.is_valid_at(now_ms))?;
    Some(AdmittedCaller { key, holder: None })
}

fn bearer_text(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

const fn role_opens(role: KeyRole, need: Need) -> bool {
    match role {
        KeyRole::Owner => true,
        KeyRole::App => matches!(
            need,
            Need::Converse
                | Need::Explain
                | Need::Prove
                | Need::Recipes
                | Need::Consents
                | Need::ReadProtocols
                | Need::ReadReviews
                | Need::Appeal
                | Need::ReadAppeals
                | Need::Tokens
        ),
        KeyRole::Admin => matches!(
            need,
            Need::Audit
                | Need::Prove
                | Need::Recipes
                | Need::Erase
                | Need::Policies
                | Need::Govern
                | Need::Usage
                | Need::Consents
                | Need::ReadProtocols
                | Need::ListReviews
                | Need::ReadReviews
                | Need::ReadAppeals
                | Need::Webhooks
        ),
        KeyRole::Auditor => matches!(
            need,
            Need::Audit
                | Need::Prove
                | Need::Recipes
                | Need::Entries
                | Need::Policies
                | Need::Usage
                | Need::ReadProtocols
                | Need::ListReviews
                | Need::ReadReviews
                | Need::ReadAppeals
        ),
        KeyRole::Reviewer => matches!(
            need,
            Need::ReadProtocols
                | Need::ListReviews
                | Need::ReadReviews
                | Need::DecideReviews
                | Need::ReadAppeals
        ),
        KeyRole::Elder => matches!(
            need,
            Need::ReadProtocols
                | Need::EditProtocols
                | Need::ListReviews
                | Need::ReadReviews
                | Need::DecideReviews
        ),
    }
}

/// Words are for the owner alone; auditors see what people rejected, which nobody else does.
pub(crate) const fn reader_of(role: KeyRole) -> DecisionReader {
    match role {
        KeyRole::Owner => DecisionReader::Words,
        KeyRole::Auditor => DecisionReader::Auditor,
        _ => DecisionReader::Public,
    }
}

/// A request whose key opens this, and whose body is JSON.
pub(crate) struct AdmittedRequest {
    pub headers: HeaderMap,
    pub key: KeyRecord,
    pub document: Value,
    /// Names the request and what it says, where it asks to be answered once.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Its place among the large bodies.
    _share: BodyShare,
}

/// Lets a request in, or says why not. One without a body is taken for `empty`, where that is something.
pub(crate) async fn admit_request(
    gateway: &Gateway,
    request: Request,
    need: Need,
    empty: Option<Value>,
) -> Result<AdmittedRequest, ApiError> {
    let (parts, body) = request.into_parts();
    match admit_key(gateway, &parts.headers, need) {
        Ok(key) => Ok(read_document(gateway, &parts, body, empty).await?.sent_by(key, parts)),
        Err(refusal) => Err(turn_away(&parts.headers, body, refusal).await),
    }
}

/// The same for a turn, which is counted once it is known who speaks.
pub(crate) async fn admit_talk(
    gateway: &Gateway,
    request: Request,
) -> Result<AdmittedRequest, ApiError> {
    let (parts, body) = request.into_parts();
    match permit_key(gateway, &parts.headers, Need::Converse) {
        Ok(key) => match read_document(gateway, &parts, body, None).await {
            Ok(read) => Ok(read.sent_by(key, parts)),
            Err(wrong) => Err(count_unread(gateway, &key, wrong)),
        },
        Err(refusal) => Err(turn_away(&parts.headers, body, refusal).await),
    }
}

/// Refuses somebody whose body may still be on its way: who is still sending cannot read a refusal. Of what
/// they send nothing is kept.
pub(crate) async fn turn_away(headers: &HeaderMap, mut body: Body, refusal: ApiError) -> ApiError {
    discard_body(&mut body, headers).await;
    refusal
}

/// What a body says, whoever sent it.
struct ReadDocument {
    document: Value,
    idempotency_key: Option<IdempotencyKey>,
    share: BodyShare,
}

impl ReadDocument {
    fn sent_by(self, key: KeyRecord, parts: Parts) -> AdmittedRequest {
        let Self { document, idempotency_key, share } = self;
        let headers = parts.headers;
        AdmittedRequest { headers, key, document, idempotency_key, _share: share }
    }
}

async fn read_document(
    gateway: &Gateway,
    parts: &Parts,
    body: Body,
    empty: Option<Value>,
) -> Result<ReadDocument, ApiError> {
    let RequestBody { bytes, share } =
        read_body(&parts.headers, body, gateway.limits(), gateway.room()).await?;
    let malformed = |error| ApiError::malformed(format!("The body is not valid JSON: {error}."));
    let document = match empty {
        Some(empty) if bytes.is_empty() => empty,
        _ if bytes.len() > LONG_BYTES => off_workers(|| parse_json(&bytes)).map_err(malformed)?,
        _ => parse_json(&bytes).map_err(malformed)?,
    };
    let idempotency_key = IdempotencyKey::read(parts, &bytes)?;
    Ok(ReadDocument { document, idempotency_key, share })
}

/// The error, or that the limits do not let even that be said: nonsense would otherwise be free, and somebody
/// could keep us parsing for nothing.
fn count_unread(gateway: &Gateway, key: &KeyRecord, wrong: ApiError) -> ApiError {
    rates::count_request(gateway, key).err().unwrap_or(wrong)
}

/// What a request to talk comes to: a turn, and how its client wants to be answered.
pub(crate) struct TalkRequest {
    pub turn: Turn,
    /// Whether the client reads events.
    pub streams: bool,
    /// Whether the client will parse the whole reply as JSON.
    pub structured: bool,
}

impl AdmittedRequest {
    /// What was read of a request to talk. One that cannot be read is no turn, and counts all the same.
    pub(crate) fn or_count<T>(
        &self,
        gateway: &Gateway,
        read: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        read.map_err(|wrong| count_unread(gateway, &self.key, wrong))
    }

    /// Finds out who speaks, and in which conversation and circumstances.
    pub(crate) fn begin_talk(
        &self,
        gateway: &Gateway,
        inquiry: Inquiry,
    ) -> Result<TalkRequest, ApiError> {
        let streams = inquiry.stream;
        let structured = inquiry.structured;
        let links = check_links(&inquiry.body, gateway.settings().link_check);
        let turn = self.or_count(gateway, links.and_then(|()| self.make_turn(gateway, inquiry)))?;
        Ok(TalkRequest { turn, streams, structured })
    }

    /// The turn that an inquiry is.
    pub(crate) fn make_turn(&self, gateway: &Gateway, inquiry: Inquiry) -> Result<Turn, ApiError> {
        let user = inquiry.user;
        let session = match inquiry.session {
            Some(session) if !self.headers.contains_key(SESSION_HEADER) => session,
            _ => self.session_of(user.as_ref(), &inquiry.conversation)?,
        };
        let context = self.context_of(gateway, inquiry.metadata.as_ref())?;
        Ok(Turn {
            tenant: self.key.tenant.clone(),
            key: Some(self.key.id.clone()),
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

    /// The circumstances that headers and metadata state.
    pub(crate) fn context_of(
        &self,
        gateway: &Gateway,
        metadata: Option<&Map<String, Value>>,
    ) -> Result<TurnContext, ApiError> {
        let modes_allowed = &gateway.engine().settings.modes_allowed;
        StatedCircumstances { headers: &self.headers, metadata }.read(modes_allowed)
    }

    /// The conversation: the header, else a digest of the person and their first words.
    pub(crate) fn session_of(
        &self,
        user: Option<&UserId>,
        conversation: &[Message],
    ) -> Result<SessionId, ApiError> {
        session_of(&self.headers, &self.key.tenant, user, conversation)
    }
}

fn session_of(
    headers: &HeaderMap,
    tenant: &TenantId,
    user: Option<&UserId>,
    conversation: &[Message],
) -> Result<SessionId, ApiError> {
    let wrong = |message: String| ApiError::invalid(SESSION_HEADER, message);
    if let Some(value) = headers.get(SESSION_HEADER) {
        let name = value.to_str().map_err(|_| wrong("must be visible ASCII".into()))?;
        return SessionId::new(name).map_err(|error| wrong(error.to_string()));
    }
    let mut hash = Sha256::new();
    for part in [tenant.as_str(), user.map_or("", UserId::as_str)] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    if let Some(first) = conversation.iter().find(|message| message.role == Role::User) {
        hash.update(first.content.as_text().as_bytes());
    }
    let digest = hex::encode(&hash.finalize()[..16]);
    SessionId::new(digest).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
#[path = "entrance_tests.rs"]
mod tests;
