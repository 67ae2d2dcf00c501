//! `Idempotency-Key`: a request that is sent again is answered with the bytes of the first answer.
//!
//! Whoever comes first with a key claims it, in this process and in the records, where every replica sees
//! it. Others with the same key in this process wait and get the same bytes. The answer is kept, sealed with
//! the key of the person it was given to, before it leaves.
//!
//! **Invariant:** one key, one request: the same key with anything else is refused.
//! **Invariant:** what is kept is sealed with the person's key, so that whoever is erased is erased here too.
//! **Invariant:** trouble with the records never costs anybody an answer; it costs the promise, and the
//! answer says so.

use crate::error::ApiError;
use crate::state::Gateway;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{
    Engine, KeyRecord, RECORD_BYTES_MAX, Record, RecordChange, RecordKey, RecordKind, RecordQuery,
    Records, RecordsError, Turn,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

const HEADER: &str = "idempotency-key";
const KEY_BYTES_MAX: usize = 255;
/// How long an answer is kept.
const KEPT_MS: u64 = 24 * 3600 * 1000;
/// How long a claim holds whose holder says nothing more: longer than any turn takes.
const CLAIM_MS: u64 = 15 * 60 * 1000;
/// So many answers are kept for a tenant; beyond it the oldest go first.
const KEPT_MAX: u32 = 10_000;
/// After how many new answers it is looked at how many there are.
const LOOK_EVERY: u32 = 256;
/// Room for the other fields of a record.
const BODY_BYTES_MAX: usize = RECORD_BYTES_MAX - 16 * 1024;

const RUNNING: &str = "running";
const ANSWERED: &str = "answered";

/// The key of a request that asks to be answered once, and a digest of what it asks.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    key: String,
    digest: String,
}

impl IdempotencyKey {
    /// Reads the header; the digest is of everything that the answer depends on.
    pub(crate) fn read(parts: &Parts, body: &[u8]) -> Result<Option<Self>, ApiError> {
        let mut given = parts.headers.get_all(HEADER).iter();
        let Some(value) = given.next() else { return Ok(None) };
        let key = value.to_str().ok().map(str::trim);
        let fits = |key: &&str| (1..=KEY_BYTES_MAX).contains(&key.len());
        let (Some(key), None) = (key.filter(fits), given.next()) else {
            let message = format!("must stand once, 1 to {KEY_BYTES_MAX} visible ASCII letters");
            return Err(ApiError::invalid("Idempotency-Key", message));
        };
        let mut own: Vec<_> = parts
            .headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("x-conclave-"))
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        own.sort_unstable();
        let mut hash = Sha256::new();
        let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
        let named = own.iter().flat_map(|(name, value)| [*name, *value]);
        for part in [parts.method.as_str().as_bytes(), path.as_bytes()].into_iter().chain(named) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.update(body);
        Ok(Some(Self { key: key.to_owned(), digest: hex::encode(hash.finalize()) }))
    }
}

/// Whether a request was sent before.
pub(crate) enum RepeatCheck {
    /// It was, and these are the bytes of its answer.
    Answered(Response),
    /// It is the first; others may wait for its answer where there is a claim.
    First(Option<AnswerClaim>),
}

/// An answer as it left. The records hold it in this form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeptAnswer {
    digest: String,
    status: u16,
    headers: Vec<(String, String)>,
    /// `None` where it was too long to be kept.
    body: Option<String>,
}

impl KeptAnswer {
    fn of_response(digest: &str, response: &Response, frames: &[Bytes]) -> Self {
        let headers = response.headers().iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        Self {
            digest: digest.to_owned(),
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: String::from_utf8(frames.concat()).ok(),
        }
    }

    /// The same answer once more, in the same bytes.
    fn replay(self) -> Result<Response, ApiError> {
        let body = self.body.ok_or_else(ApiError::idempotency_gone)?;
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        for (name, value) in self.headers {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
        Ok(response)
    }
}

/// Where the first tells its answer, and where others wait for it.
type AnswerSender = watch::Sender<Option<Arc<KeptAnswer>>>;
type AnswerReceiver = watch::Receiver<Option<Arc<KeptAnswer>>>;

/// A request that is being answered in this process.
struct RunningAnswer {
    digest: String,
    answer: AnswerReceiver,
}

/// Which requests with a key are being answered in this process.
#[derive(Default)]
pub(crate) struct RunningAnswers {
    by_id: Mutex<HashMap<String, RunningAnswer>>,
    kept: AtomicU32,
}

impl RunningAnswers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunningAnswer>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to answer a request for everybody who repeats it.
pub(crate) struct AnswerClaim {
    gateway: Gateway,
    place: RecordKey,
    digest: String,
    /// Absent where nothing can be kept.
    seal: Option<ClaimSeal>,
    tell: AnswerSender,
}

/// Whose key seals the answer, and the version of the claim in the records.
#[derive(Clone, Copy)]
struct ClaimSeal {
    subject: [u8; 16],
    version: u64,
}

/// Whose words an answer holds.
#[derive(Clone, Copy)]
pub(crate) struct AnswerOwner<'a> {
    pub tenant: &'a TenantId,
    /// Who it is, where somebody is named.
    pub user: Option<&'a UserId>,
    pub session: &'a SessionId,
}

impl<'a> AnswerOwner<'a> {
    pub(crate) const fn of_turn(turn: &'a Turn) -> Self {
        Self { tenant: &turn.tenant, user: turn.user.as_ref(), session: &turn.session }
    }
}

/// Answers from what was kept, or says that this request is the first.
pub(crate) async fn check_repeat(
    gateway: &Gateway,
    key: &KeyRecord,
    asked: Option<&IdempotencyKey>,
    owner: AnswerOwner<'_>,
) -> Result<RepeatCheck, ApiError> {
    let Some(asked) = asked else { return Ok(RepeatCheck::First(None)) };
    let engine = gateway.engine();
    let subject = subject_of(&engine, owner).await;
    let person = owner.user.and(subject).map(hex::encode).unwrap_or_default();
    let name = [key.tenant.as_str(), key.id.as_str(), &person, &asked.key].join("\n");
    let id = hex::encode(gateway.keys().mark(&format!("idempotency\n{name}")));
    let place = RecordKey { kind: RecordKind::KeptReply, tenant: key.tenant.clone(), id };
    loop {
        match enter_running(gateway, &place, asked)? {
            FirstOrWait::First(tell) => {
                let digest = asked.digest.clone();
                let claim =
                    AnswerClaim { gateway: gateway.clone(), place, digest, seal: None, tell };
                return claim.enter_in_records(&engine, subject).await;
            }
            FirstOrWait::Wait(mut answer) => {
                // Whoever was first is gone without an answer when nothing comes: then it is our turn.
                if answer.wait_for(Option::is_some).await.is_ok()
                    && let Some(kept) = answer.borrow().as_deref()
                {
                    return kept.clone().replay().map(RepeatCheck::Answered);
                }
            }
        }
    }
}

enum FirstOrWait {
    First(AnswerSender),
    Wait(AnswerReceiver),
}

/// A place to tell others from, for the first; for others a place to wait at.
fn enter_running(
    gateway: &Gateway,
    place: &RecordKey,
    asked: &IdempotencyKey,
) -> Result<FirstOrWait, ApiError> {
    let mut running = gateway.running_answers().lock();
    if let Some(first) = running.get(&place.id)
        && first.answer.has_changed().is_ok()
    {
        if first.digest != asked.digest {
            return Err(ApiError::idempotency_key_reused());
        }
        return Ok(FirstOrWait::Wait(first.answer.clone()));
    }
    let (tell, answer) = watch::channel(None);
    running.insert(place.id.clone(), RunningAnswer { digest: asked.digest.clone(), answer });
    Ok(FirstOrWait::First(tell))
}

/// Whose key seals what the person was told; `None` if it cannot be had now.
async fn subject_of(engine: &Engine, owner: AnswerOwner<'_>) -> Option<[u8; 16]> {
    let named = match owner.user {
        Some(_) => {
            let named = engine.subjects.name(owner.tenant, owner.user, owner.session).await;
            named.map(|named| named.subject)
        }
        None => engine.subjects.nobody(owner.tenant).await.map(Some),
    };
    named
        .inspect_err(
            |error| tracing::warn!(%error, "a reply cannot be kept for a repeated request"),
        )
        .ok()
        .flatten()
}

/// Keeps an answer for whoever repeats its request, where somebody may. An answer that is not kept says so:
/// its client must know that a second try would be a second turn.
pub(crate) async fn keep_answer(
    mut response: Response,
    frames: &[Bytes],
    claim: Option<AnswerClaim>,
) -> Response {
    let Some(claim) = claim else { return response };
    let answer = KeptAnswer::of_response(&claim.digest, &response, frames);
    if !claim.keep_and_tell(answer).await {
        let unkept = HeaderValue::from_static("not-kept");
        response.headers_mut().insert("x-conclave-idempotency", unkept);
    }
    response
}

/// Gives a claim back: nothing was decided, and whoever asks again is the first.
pub(crate) async fn give_back_claim(claim: Option<AnswerClaim>) {
    let Some(claim) = claim else { return };
    let records = claim.gateway.records();
    if let (Some(records), Some(seal)) = (records, claim.seal) {
        claim.remove_record(&*records, seal.version).await;
    }
}

impl AnswerClaim {
    /// Looks what the records know of this key, and enters the claim there.
    async fn enter_in_records(
        mut self,
        engine: &Engine,
        subject: Option<[u8; 16]>,
    ) -> Result<RepeatCheck, ApiError> {
        let (Some(records), Some(subject)) = (self.gateway.records(), subject) else {
            return Ok(RepeatCheck::First(Some(self)));
        };
        let now_ms = engine.clock.now_ms();
        let known = match records.get(self.place.clone()).await {
            Ok(known) => known,
            Err(error) => return Ok(self.go_on_unkept(&error)),
        };
        let version = match known {
            None => 0,
            Some(record) => {
                let kept: KeptAnswer = serde_json::from_value(record.data).unwrap_or_default();
                if kept.digest != self.digest {
                    return Err(ApiError::idempotency_key_reused());
                }
                let is_over = record.due_ms.is_none_or(|due_ms| due_ms <= now_ms);
                match (record.state == ANSWERED, is_over) {
                    (true, false) => {
                        self.tell.send_replace(Some(Arc::new(kept.clone())));
                        return kept.replay().map(RepeatCheck::Answered);
                    }
                    (false, false) => return Err(ApiError::idempotency_in_progress()),
                    (_, true) => record.version,
                }
            }
        };
        let seal = ClaimSeal { subject, version };
        let claimed = KeptAnswer { digest: self.digest.clone(), ..KeptAnswer::default() };
        match self.write_record(&*records, seal, RUNNING, now_ms + CLAIM_MS, &claimed).await {
            Ok(version) => self.seal = Some(ClaimSeal { subject, version }),
            Err(RecordsError::Conflict) => return Err(ApiError::idempotency_in_progress()),
            Err(error) => return Ok(self.go_on_unkept(&error)),
        }
        Ok(RepeatCheck::First(Some(self)))
    }

    fn go_on_unkept(self, error: &RecordsError) -> RepeatCheck {
        tracing::warn!(%error, "a reply cannot be kept for a repeated request");
        RepeatCheck::First(Some(self))
    }

    async fn write_record(
        &self,
        records: &dyn Records,
        seal: ClaimSeal,
        state: &str,
        due_ms: u64,
        kept: &KeptAnswer,
    ) -> Result<u64, RecordsError> {
        let record = Record {
            key: self.place.clone(),
            version: seal.version,
            state: state.to_owned(),
            owner: String::new(),
            rank: 0,
            due_ms: Some(due_ms),
            changed_ms: self.gateway.engine().clock.now_ms(),
            subject: Some(seal.subject),
            data: serde_json::json!(kept),
        };
        let put = records.put(vec![RecordChange { record, entry: None }]).await?;
        Ok(put.first().map_or(0, |record| record.version))
    }

    /// Keeps an answer, then tells it to everybody who waits. Says whether it is kept.
    async fn keep_and_tell(self, answer: KeptAnswer) -> bool {
        let is_kept = self.keep_in_records(&answer).await;
        self.tell.send_replace(Some(Arc::new(answer)));
        is_kept
    }

    async fn keep_in_records(&self, answer: &KeptAnswer) -> bool {
        let engine = self.gateway.engine();
        let (Some(records), Some(seal)) = (self.gateway.records(), self.seal) else {
            return false;
        };
        // Trouble of ours is worth another try, so that it is not kept.
        if answer.status >= 500 {
            self.remove_record(&*records, seal.version).await;
            return false;
        }
        let due_ms = engine.clock.now_ms().saturating_add(KEPT_MS);
        let fits = answer.body.as_ref().is_some_and(|text| escaped_len(text) <= BODY_BYTES_MAX);
        let kept = if fits { answer.clone() } else { KeptAnswer { body: None, ..answer.clone() } };
        if let Err(error) = self.write_record(&*records, seal, ANSWERED, due_ms, &kept).await {
            tracing::warn!(%error, "a reply could not be kept for a repeated request");
            return false;
        }
        let kept_before = self.gateway.running_answers().kept.fetch_add(1, Ordering::Relaxed);
        if kept_before.is_multiple_of(LOOK_EVERY) {
            drop_oldest(&*records, &self.place.tenant).await;
        }
        fits
    }

    async fn remove_record(&self, records: &dyn Records, version: u64) {
        if let Err(error) = records.remove(self.place.clone(), version).await {
            tracing::warn!(%error, "a claim on an idempotency key ends by itself later");
        }
    }
}

impl Drop for AnswerClaim {
    fn drop(&mut self) {
        self.gateway.running_answers().lock().remove(&self.place.id);
    }
}

/// How long a text is as a JSON string, at most.
fn escaped_len(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).count();
    text.len() + escapes * 5
}

/// Lets the oldest answers of a tenant go where there are too many.
async fn drop_oldest(records: &dyn Records, tenant: &TenantId) {
    let page = |offset, limit| RecordQuery {
        kind: RecordKind::KeptReply,
        tenant: Some(tenant.clone()),
        states: vec![ANSWERED.to_owned()],
        owner: None,
        due_before_ms: None,
        offset,
        limit,
    };
    match records.list(page(KEPT_MAX, 1)).await {
        Ok(beyond) if !beyond.is_empty() => remove_all(records, page(0, 2 * LOOK_EVERY)).await,
        _ => {}
    }
}

/// Lets answers and claims go whose time is over.
pub(crate) async fn remove_expired(records: &dyn Records, now_ms: u64) {
    let over = RecordQuery {
        kind: RecordKind::KeptReply,
        tenant: None,
        states: vec![RUNNING.to_owned(), ANSWERED.to_owned()],
        owner: None,
        due_before_ms: Some(now_ms),
        offset: 0,
        limit: 4 * LOOK_EVERY,
    };
    remove_all(records, over).await;
}

async fn remove_all(records: &dyn Records, query: RecordQuery) {
    let found = records.list(query).await.unwrap_or_default();
    for record in found {
        // Somebody else was faster, or it was claimed anew: both are fine.
        let _ = records.remove(record.key, record.version).await;
    }
}

#[cfg(test)]
#[path = "idempotency_tests.rs"]
mod tests;
