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
use bytes::Bytes;
use conclave_core::{SessionId, TenantId, UserId};
use conclave_engine::{
    Engine, KeyRecord, RECORD_BYTES_MAX, Record, RecordChange, RecordKey, RecordKind, RecordQuery,
    Records, RecordsError, Turn,
};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The header.
pub(crate) const HEADER: &str = "idempotency-key";
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

/// A request that asks to be answered once.
#[derive(Clone, Debug)]
pub(crate) struct Repeat {
    key: String,
    digest: String,
}

impl Repeat {
    /// Reads the header; the digest is of everything that the answer depends on.
    pub(crate) fn of(parts: &Parts, body: &[u8]) -> Result<Option<Self>, ApiError> {
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

/// An answer as it left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub digest: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// `None` where it was too long to be kept.
    pub body: Option<String>,
}

/// What a request with a key is told.
pub(crate) enum Entry {
    /// It was answered before.
    Again(Kept),
    /// It is the first.
    First(Claim),
}

/// Where the first tells its answer, and where others wait for it.
type Tell = watch::Sender<Option<Arc<Kept>>>;
type Wait = watch::Receiver<Option<Arc<Kept>>>;
type Running = HashMap<String, (String, Wait)>;

/// Who is being answered in this process.
#[derive(Default)]
pub(crate) struct RepeatDesk {
    running: Mutex<Running>,
    kept: AtomicU32,
}

impl RepeatDesk {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to answer a request for everybody who repeats it.
pub(crate) struct Claim {
    gateway: Gateway,
    place: RecordKey,
    digest: String,
    /// Whose key seals the answer, and the version of the claim; absent where nothing can be kept.
    seal: Option<([u8; 16], u64)>,
    tell: Tell,
}

/// Whose words an answer holds.
#[derive(Clone, Copy)]
pub(crate) struct Person<'a> {
    tenant: &'a TenantId,
    /// Who it is, where somebody is named.
    user: Option<&'a UserId>,
    session: &'a SessionId,
}

impl<'a> Person<'a> {
    /// Whoever a turn is of.
    pub(crate) const fn of(turn: &'a Turn) -> Self {
        Self { tenant: &turn.tenant, user: turn.user.as_ref(), session: &turn.session }
    }

    /// Whoever else.
    pub(crate) const fn named(
        tenant: &'a TenantId,
        user: Option<&'a UserId>,
        session: &'a SessionId,
    ) -> Self {
        Self { tenant, user, session }
    }
}

/// Answers from what was kept, or claims the right to answer.
pub(crate) async fn begin(
    gateway: &Gateway,
    key: &KeyRecord,
    repeat: &Repeat,
    person: Person<'_>,
) -> Result<Entry, ApiError> {
    let engine = gateway.engine();
    let subject = subject_of(&engine, person).await;
    let person = person.user.and(subject).map(hex::encode).unwrap_or_default();
    let name = [key.tenant.as_str(), key.id.as_str(), &person, &repeat.key].join("\n");
    let id = hex::encode(gateway.keys().mark(&format!("idempotency\n{name}")));
    let place = RecordKey { kind: RecordKind::KeptReply, tenant: key.tenant.clone(), id };
    loop {
        match first_or_wait(gateway, &place, repeat)? {
            Ok(tell) => {
                let digest = repeat.digest.clone();
                let claim = Claim { gateway: gateway.clone(), place, digest, seal: None, tell };
                return claim.look(&engine, subject).await;
            }
            Err(mut answer) => {
                // Whoever was first is gone without an answer when nothing comes: then it is our turn.
                if answer.wait_for(Option::is_some).await.is_ok()
                    && let Some(kept) = answer.borrow().as_deref()
                {
                    return Ok(Entry::Again(kept.clone()));
                }
            }
        }
    }
}

/// A place to tell others from, for the first; for others a place to wait at.
fn first_or_wait(
    gateway: &Gateway,
    place: &RecordKey,
    repeat: &Repeat,
) -> Result<Result<Tell, Wait>, ApiError> {
    let mut running = gateway.repeats().lock();
    if let Some((digest, answer)) = running.get(&place.id)
        && answer.has_changed().is_ok()
    {
        let same = *digest == repeat.digest;
        return if same {
            Ok(Err(answer.clone()))
        } else {
            Err(ApiError::idempotency_key_reused())
        };
    }
    let (tell, wait) = watch::channel(None);
    running.insert(place.id.clone(), (repeat.digest.clone(), wait));
    Ok(Ok(tell))
}

/// Whose key seals what the person was told; `None` if it cannot be had now.
async fn subject_of(engine: &Engine, person: Person<'_>) -> Option<[u8; 16]> {
    let named = match person.user {
        Some(_) => {
            let named = engine.subjects.name(person.tenant, person.user, person.session).await;
            named.map(|named| named.subject)
        }
        None => engine.subjects.nobody(person.tenant).await.map(Some),
    };
    named
        .inspect_err(
            |error| tracing::warn!(%error, "a reply cannot be kept for a repeated request"),
        )
        .ok()
        .flatten()
}

impl Claim {
    /// Looks what the records know of this key, and enters the claim there.
    async fn look(mut self, engine: &Engine, subject: Option<[u8; 16]>) -> Result<Entry, ApiError> {
        let (Some(records), Some(subject)) = (engine.governed.records.clone(), subject) else {
            return Ok(Entry::First(self));
        };
        let now_ms = engine.clock.now_ms();
        let known = match records.get(self.place.clone()).await {
            Ok(known) => known,
            Err(error) => return Ok(self.unkept(&error)),
        };
        let version = match known {
            None => 0,
            Some(record) => {
                let kept: Kept = serde_json::from_value(record.data).unwrap_or_default();
                if kept.digest != self.digest {
                    return Err(ApiError::idempotency_key_reused());
                }
                let is_over = record.due_ms.is_none_or(|due_ms| due_ms <= now_ms);
                match (record.state == ANSWERED, is_over) {
                    (true, false) => {
                        self.tell.send_replace(Some(Arc::new(kept.clone())));
                        return Ok(Entry::Again(kept));
                    }
                    (false, false) => return Err(ApiError::idempotency_in_progress()),
                    (_, true) => record.version,
                }
            }
        };
        let claim = Kept { digest: self.digest.clone(), ..Kept::default() };
        let entered =
            self.write(&*records, (subject, version), RUNNING, now_ms + CLAIM_MS, &claim).await;
        match entered {
            Ok(version) => self.seal = Some((subject, version)),
            Err(RecordsError::Conflict) => return Err(ApiError::idempotency_in_progress()),
            Err(error) => return Ok(self.unkept(&error)),
        }
        Ok(Entry::First(self))
    }

    fn unkept(self, error: &RecordsError) -> Entry {
        tracing::warn!(%error, "a reply cannot be kept for a repeated request");
        Entry::First(self)
    }

    async fn write(
        &self,
        records: &dyn Records,
        (subject, version): ([u8; 16], u64),
        state: &str,
        due_ms: u64,
        kept: &Kept,
    ) -> Result<u64, RecordsError> {
        let record = Record {
            key: self.place.clone(),
            version,
            state: state.to_owned(),
            owner: String::new(),
            rank: 0,
            due_ms: Some(due_ms),
            changed_ms: self.gateway.engine().clock.now_ms(),
            subject: Some(subject),
            data: serde_json::json!(kept),
        };
        let put = records.put(vec![RecordChange { record, entry: None }]).await?;
        Ok(put.first().map_or(0, |record| record.version))
    }

    /// Keeps an answer and tells it to everybody who waits. Says whether it is kept.
    pub(crate) async fn answer(
        self,
        status: u16,
        headers: Vec<(String, String)>,
        frames: &[Bytes],
    ) -> bool {
        let whole = frames.concat();
        let text = String::from_utf8(whole).ok();
        let told = Kept { digest: self.digest.clone(), status, headers, body: text };
        let kept = self.keep(&told).await;
        self.tell.send_replace(Some(Arc::new(told)));
        kept
    }

    async fn keep(&self, told: &Kept) -> bool {
        let engine = self.gateway.engine();
        let (Some(records), Some(seal)) = (engine.governed.records.clone(), self.seal) else {
            return false;
        };
        // Trouble of ours is worth another try, so that it is not kept.
        if told.status >= 500 {
            self.forget(&*records, seal.1).await;
            return false;
        }
        let due_ms = engine.clock.now_ms().saturating_add(KEPT_MS);
        let fits = told.body.as_ref().is_some_and(|text| escaped_len(text) <= BODY_BYTES_MAX);
        let kept = if fits { told.clone() } else { Kept { body: None, ..told.clone() } };
        let written = self.write(&*records, seal, ANSWERED, due_ms, &kept).await;
        if let Err(error) = &written {
            tracing::warn!(%error, "a reply could not be kept for a repeated request");
            return false;
        }
        let kept_before = self.gateway.repeats().kept.fetch_add(1, Ordering::Relaxed);
        if kept_before.is_multiple_of(LOOK_EVERY) {
            make_room(&*records, &self.place.tenant).await;
        }
        fits
    }

    /// Gives the claim back: nothing was decided, and whoever asks again is the first.
    pub(crate) async fn give_back(self) {
        if let (Some(records), Some((_, version))) =
            (self.gateway.engine().governed.records.clone(), self.seal)
        {
            self.forget(&*records, version).await;
        }
    }

    async fn forget(&self, records: &dyn Records, version: u64) {
        if let Err(error) = records.remove(self.place.clone(), version).await {
            tracing::warn!(%error, "a claim on an idempotency key ends by itself later");
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.gateway.repeats().lock().remove(&self.place.id);
    }
}

/// How long a text is as a JSON string, at most.
fn escaped_len(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).count();
    text.len() + escapes * 5
}

/// Lets the oldest answers of a tenant go where there are too many.
async fn make_room(records: &dyn Records, tenant: &TenantId) {
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
pub(crate) async fn forget_old(engine: &Engine) {
    let Some(records) = engine.governed.records.clone() else { return };
    let over = RecordQuery {
        kind: RecordKind::KeptReply,
        tenant: None,
        states: vec![RUNNING.to_owned(), ANSWERED.to_owned()],
        owner: None,
        due_before_ms: Some(engine.clock.now_ms()),
        offset: 0,
        limit: 4 * LOOK_EVERY,
    };
    remove_all(&*records, over).await;
}

async fn remove_all(records: &dyn Records, query: RecordQuery) {
    let found = records.list(query).await.unwrap_or_default();
    for record in found {
        // Somebody else was faster, or it was claimed anew: both are fine.
        let _ = records.remove(record.key, record.version).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)], path: &str) -> Parts {
        let mut request = http::Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_same_request_has_the_same_digest_and_any_other_another() {
        let base = [("idempotency-key", "k1")];
        let of = |headers: &[(&str, &str)], path: &str, body: &str| {
            Repeat::of(&request(headers, path), body.as_bytes()).unwrap().unwrap().digest
        };
        let first = of(&base, "/v1/chat/completions", "{}");
        assert_eq!(first, of(&base, "/v1/chat/completions", "{}"));
        let with_other = [("idempotency-key", "k1"), ("accept", "*/*")];
        assert_eq!(first, of(&with_other, "/v1/chat/completions", "{}"));
        assert_ne!(first, of(&base, "/v1/messages", "{}"));
        assert_ne!(first, of(&base, "/v1/chat/completions", "{ }"));
        let child = [("idempotency-key", "k1"), ("x-conclave-mode", "child-safe")];
        assert_ne!(first, of(&child, "/v1/chat/completions", "{}"));
    }

    #[test]
    fn keys_are_checked() {
        assert!(Repeat::of(&request(&[], "/"), b"").unwrap().is_none());
        let long = "k".repeat(256);
        for bad in ["", "  ", "caf\u{e9}", long.as_str()] {
            assert!(Repeat::of(&request(&[("idempotency-key", bad)], "/"), b"").is_err(), "{bad}");
        }
        let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
        assert!(Repeat::of(&request(&twice, "/"), b"").is_err());
    }
}
