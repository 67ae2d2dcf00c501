//! Webhooks: where events are sent to, and the letters that wait to be sent.
//!
//! **Invariant:** a letter is queued in the same change as what it tells of, and it has one id for ever:
//! a receiver sees a repetition.
//! **Invariant:** a letter is in one hand at a time: whoever sends it has taken it by its version, for as
//! long as a call may take.
//! **Invariant:** no secret is stored; it follows from the key of the house and the webhook's id.

use crate::people::{People, PeopleError, all_of, place, read, told, written};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conclave_core::TenantId;
use conclave_govern::Unfit;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{
    Announcement, Caller, EventKind, Post, Record, RecordChange, RecordKind, RecordQuery,
};
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

/// So many webhooks of one tenant.
const WEBHOOKS_MAX: u32 = 16;
/// The longest address, in bytes.
const URL_BYTES_MAX: usize = 1_000;
/// So many letters may wait for one webhook.
const WAITING_MAX: u32 = 10_000;
/// So many letters are sent side by side.
const AT_ONCE: u32 = 32;
/// How long a letter stays in one hand; longer than a call may take.
const HAND_MS: u64 = 60_000;
/// How long it is remembered that a letter arrived.
const ARRIVED_MS: u64 = 86_400_000;
/// How long a letter that nobody took is kept.
const DEAD_MS: u64 = 30 * 86_400_000;
/// The pauses after failures, more than a day together; after the last a letter is dead.
const PAUSES_S: [u64; 10] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200];
/// What secrets of Standard Webhooks begin with.
const SECRET_START: &str = "whsec_";
const NONE: PeopleError = PeopleError::NotFound("There is no webhook with this id.");
const NO_LETTER: PeopleError = PeopleError::NotFound("There is no event with this id.");

/// Where events are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// Of what it is told; of everything where empty.
    pub events: Vec<EventKind>,
    /// How often its secret was replaced.
    pub generation: u32,
    /// Since when.
    pub created_ms: u64,
}

/// One event on its way to one webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// Where to.
    pub webhook: String,
    /// What it tells.
    pub kind: EventKind,
    /// When it happened.
    pub at_ms: u64,
    /// The rest of what it tells.
    pub data: Value,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it did not arrive the last time.
    pub trouble: Option<String>,
}

/// The signature of Standard Webhooks over an id, a time in seconds and a body.
#[must_use]
pub fn webhook_signature(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    // A key of any length is taken; an empty signature would be refused by the receiver.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

impl People {
    /// Makes a webhook; returns its id and its secret, which is shown this once.
    ///
    /// # Errors
    /// When the address may not be used, or there are too many.
    pub async fn add_webhook(
        &self,
        caller: &Caller,
        post: &dyn Post,
        url: &str,
        events: Vec<EventKind>,
    ) -> Result<(String, String), PeopleError> {
        if url.len() > URL_BYTES_MAX {
            let why = format!("must have at most {URL_BYTES_MAX} bytes");
            return Err(Unfit::new("url", why).into());
        }
        post.check(url).map_err(|why| Unfit::new("url", format!("cannot be used: {why}")))?;
        let known = self.list(all_of(RecordKind::Webhook, &caller.tenant, WEBHOOKS_MAX)).await?;
        if known.len() >= WEBHOOKS_MAX as usize {
            return Err(PeopleError::Full(format!("a tenant has at most {WEBHOOKS_MAX} webhooks")));
        }
        let (id, created_ms) = (self.new_id("wh"), self.clock.now_ms());
        let webhook = Webhook { url: url.to_owned(), events, generation: 0, created_ms };
        let record = Record {
            key: place(RecordKind::Webhook, &caller.tenant, &id),
            version: 0,
            state: "active".to_owned(),
            owner: String::new(),
            rank: 0,
            due_ms: None,
            changed_ms: created_ms,
            subject: None,
            data: written(&webhook),
        };
        let entry = self.webhook_entry(caller, &id, "webhook.create");
        self.put(vec![RecordChange { record, entry }]).await?;
        let secret = self.shown_secret(&caller.tenant, &id, 0);
        Ok((id, secret))
    }

    /// Replaces the secret of a webhook; returns the new one, which is shown this once.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn replace_secret(&self, caller: &Caller, id: &str) -> Result<String, PeopleError> {
        let key = place(RecordKind::Webhook, &caller.tenant, id);
        let mut record = self.get(key).await?.ok_or(NONE)?;
        let mut webhook: Webhook = read(&record).ok_or(NONE)?;
        webhook.generation = webhook.generation.wrapping_add(1);
        record.changed_ms = self.clock.now_ms();
        record.data = written(&webhook);
        let entry = self.webhook_entry(caller, id, "webhook.secret");
        self.put(vec![RecordChange { record, entry }]).await?;
        Ok(self.shown_secret(&caller.tenant, id, webhook.generation))
    }

    /// Ends a webhook; what waits for it is not sent any more.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn remove_webhook(&self, caller: &Caller, id: &str) -> Result<(), PeopleError> {
        let key = place(RecordKind::Webhook, &caller.tenant, id);
        let mut record = self.get(key.clone()).await?.ok_or(NONE)?;
        record.state = "ended".to_owned();
        let entry = self.webhook_entry(caller, id, "webhook.remove");
        let ended = self.put(vec![RecordChange { record, entry }]).await?;
        let version = ended.first().map_or(0, |record| record.version);
        Ok(self.records.remove(key, version).await?)
    }

    /// The webhooks of a tenant.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn webhooks(&self, tenant: &TenantId) -> Result<Vec<(String, Webhook)>, PeopleError> {
        let query = all_of(RecordKind::Webhook, tenant, WEBHOOKS_MAX);
        let records = self.list(RecordQuery { states: vec!["active".into()], ..query }).await?;
        Ok(records.iter().filter_map(|one| Some((one.key.id.clone(), read(one)?))).collect())
    }

    /// The letters of a webhook in a state: `waiting`, `dead` or `arrived`.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn letters_of(
        &self,
        tenant: &TenantId,
        webhook: &str,
        state: &str,
        limit: u32,
    ) -> Result<Vec<(String, Letter, Option<u64>)>, PeopleError> {
        self.get(place(RecordKind::Webhook, tenant, webhook)).await?.ok_or(NONE)?;
        let states = match state {
            "waiting" => vec!["waiting".to_owned(), "sending".to_owned()],
            other => vec![other.to_owned()],
        };
        let owner = Some(webhook.to_owned());
        let query = all_of(RecordKind::Event, tenant, limit);
        let found = self.list(RecordQuery { states, owner, ..query }).await?;
        let read = |one: &Record| Some((one.key.id.clone(), read(one)?, one.due_ms));
        Ok(found.iter().filter_map(read).collect())
    }

    /// Has a dead letter sent once more, from the beginning and under the same id.
    ///
    /// # Errors
    /// When there is no such letter, or it is not dead.
    pub async fn send_again(
        &self,
        caller: &Caller,
        webhook: &str,
        letter: &str,
    ) -> Result<(), PeopleError> {
        let key = place(RecordKind::Event, &caller.tenant, letter);
        let mut record = self.get(key).await?.ok_or(NO_LETTER)?;
        if record.owner != webhook || record.state != "dead" {
            return Err(NO_LETTER);
        }
        let mut dead: Letter = read(&record).ok_or(NO_LETTER)?;
        (dead.attempts, dead.trouble) = (0, None);
        record.state = "waiting".to_owned();
        record.due_ms = Some(self.clock.now_ms());
        record.data = written(&dead);
        let entry = self.webhook_entry(caller, letter, "event.resend");
        self.put(vec![RecordChange { record, entry }]).await?;
        Ok(())
    }

    fn webhook_entry(&self, caller: &Caller, id: &str, what: &str) -> Option<(Kind, Public)> {
        let public = Public::map([
            ("what", Public::from(what)),
            ("record", Public::from(id)),
            ("by", self.digest(b"reader", &caller.tenant, &caller.holder)),
        ]);
        told(Kind::AdminAction, public)
    }

    pub(crate) async fn send_out(
        &self,
        tenant: &TenantId,
        announcement: &Announcement,
    ) -> Result<(), PeopleError> {
        let letters = self.letters(tenant, announcement).await?;
        if letters.is_empty() {
            return Ok(());
        }
        self.put(letters).await?;
        Ok(())
    }

    /// A letter for each webhook that wants to be told.
    pub(crate) async fn letters(
        &self,
        tenant: &TenantId,
        announcement: &Announcement,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        let mut letters = Vec::new();
        for (id, webhook) in self.webhooks(tenant).await? {
            let wanted = webhook.events.is_empty() || webhook.events.contains(&announcement.kind);
            if wanted && !self.is_full(tenant, &id).await? {
                letters.push(self.letter(tenant, &id, announcement));
            }
        }
        Ok(letters)
    }

    async fn is_full(&self, tenant: &TenantId, webhook: &str) -> Result<bool, PeopleError> {
        let query = RecordQuery {
            states: vec!["waiting".into(), "sending".into()],
            owner: Some(webhook.to_owned()),
            offset: WAITING_MAX - 1,
            ..all_of(RecordKind::Event, tenant, 1)
        };
        let full = !self.list(query).await?.is_empty();
        if full {
            tracing::warn!(webhook, "too many events wait for a webhook: one is not queued");
        }
        Ok(full)
    }

    fn letter(&self, tenant: &TenantId, webhook: &str, told: &Announcement) -> RecordChange {
        let at_ms = self.clock.now_ms();
        let letter = Letter {
            webhook: webhook.to_owned(),
            kind: told.kind,
            at_ms,
            data: told.data.clone(),
            attempts: 0,
            trouble: None,
        };
        let record = Record {
            key: place(RecordKind::Event, tenant, &self.new_id("msg")),
            version: 0,
            state: "waiting".to_owned(),
            owner: webhook.to_owned(),
            rank: 0,
            due_ms: Some(at_ms),
            changed_ms: at_ms,
            subject: None,
            data: written(&letter),
        };
        RecordChange { record, entry: None }
    }

    /// Sends what is due, and forgets what arrived or died long ago. Returns how many letters were taken
    /// in hand.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn send_due(&self, post: &dyn Post) -> Result<usize, PeopleError> {
        let due = RecordQuery {
            kind: RecordKind::Event,
            tenant: None,
            states: vec!["waiting".into(), "sending".into()],
            owner: None,
            due_before_ms: Some(self.clock.now_ms().saturating_add(1)),
            offset: 0,
            limit: AT_ONCE,
        };
        let letters = self.list(due.clone()).await?;
        let sent = join_all(letters.into_iter().map(|one| self.send_one(post, one))).await;
        let over = RecordQuery { states: vec!["arrived".into(), "dead".into()], ..due };
        for record in self.list(over).await? {
            // Somebody else may have forgotten it, or have sent it again.
            let _ = self.records.remove(record.key, record.version).await;
        }
        Ok(sent.into_iter().filter(|taken| *taken).count())
    }

    /// Whether it was taken in hand.
    async fn send_one(&self, post: &dyn Post, mut record: Record) -> bool {
        let Some(mut letter) = read::<Letter>(&record) else { return false };
        record.state = "sending".to_owned();
        record.due_ms = Some(self.clock.now_ms().saturating_add(HAND_MS));
        let taken = self.put(vec![RecordChange { record, entry: None }]).await;
        let Some(mut record) = taken.ok().and_then(|mut taken| taken.pop()) else { return false };
        let answer = self.send_letter(post, &record, &letter).await;
        let now_ms = self.clock.now_ms();
        letter.attempts += 1;
        letter.trouble = answer.err();
        let pause = PAUSES_S.get(letter.attempts as usize - 1);
        let (state, due_ms) = match (&letter.trouble, pause) {
            (None, _) => ("arrived", now_ms + ARRIVED_MS),
            (Some(_), Some(pause)) => ("waiting", now_ms + pause * 1_000),
            (Some(_), None) => ("dead", now_ms + DEAD_MS),
        };
        if let Some(why) = letter.trouble.as_deref().filter(|_| state == "dead") {
            tracing::error!(
                event = record.key.id,
                webhook = letter.webhook,
                why,
                "an event is dead"
            );
        }
        record.state = state.to_owned();
        record.due_ms = Some(due_ms);
        record.data = written(&letter);
        if let Err(error) = self.put(vec![RecordChange { record, entry: None }]).await {
            tracing::warn!(%error, "what became of an event could not be noted; it is sent again");
        }
        true
    }

    async fn send_letter(
        &self,
        post: &dyn Post,
        record: &Record,
        letter: &Letter,
    ) -> Result<(), String> {
        let key = place(RecordKind::Webhook, &record.key.tenant, &letter.webhook);
        let found = self.get(key).await.map_err(|error| error.to_string())?;
        let gone = "the webhook was removed";
        let webhook: Webhook = found.as_ref().and_then(read).ok_or(gone)?;
        let body = json!({
            "type": letter.kind,
            "timestamp_ms": letter.at_ms,
            "tenant": record.key.tenant,
            "data": letter.data,
        });
        let (body, id) = (body.to_string(), record.key.id.clone());
        let timestamp = (self.clock.now_ms() / 1_000).to_string();
        let secret = self.secret(&record.key.tenant, &letter.webhook, webhook.generation);
        let signature = webhook_signature(&secret, &id, &timestamp, &body);
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signature),
        ];
        match post.post(&webhook.url, headers, body).await {
            Ok(200..=299) => Ok(()),
            Ok(status) => Err(format!("it answered {status}")),
            Err(why) => Err(why),
        }
    }

    fn secret(&self, tenant: &TenantId, id: &str, generation: u32) -> Vec<u8> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return Vec::new() };
        for part in ["webhook secret", tenant.as_str(), id] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&generation.to_be_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    fn shown_secret(&self, tenant: &TenantId, id: &str, generation: u32) -> String {
        format!("{SECRET_START}{}", STANDARD.encode(self.secret(tenant, id, generation)))
    }
}
