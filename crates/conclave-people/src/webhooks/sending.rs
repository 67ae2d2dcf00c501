//! Events that wait to be sent to webhooks.
//!
//! **Invariant:** an event is queued in the same change as what it tells of, and it has one id for ever: a
//! receiver sees a repetition.
//! **Invariant:** an event is in one hand at a time: whoever sends it has taken it by its version, for as
//! long as a call may take.

use super::{NONE, Webhook};
use crate::people::{People, PeopleError};
use crate::records::{key, query, read, read_or_report, recorded, unrecorded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conclave_core::TenantId;
use conclave_ledger::Kind;
use conclave_ports::{
    Announcement, Caller, EventKind, Post, Record, RecordChange, RecordKind, RecordQuery,
};
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

/// The most events that may wait for one webhook.
const WAITING_MAX: u32 = 10_000;
/// How many events are sent side by side.
const AT_ONCE: u32 = 32;
/// How long an event stays in one hand; longer than a call may take.
const HAND_MS: u64 = 60_000;
/// How long it is remembered that an event arrived.
const ARRIVED_MS: u64 = 86_400_000;
/// How long an event that nobody took is kept.
const DEAD_MS: u64 = 30 * 86_400_000;
/// The pauses after failures, more than a day together; after the last an event is dead.
const PAUSES_S: [u64; 10] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200];
const SENDING: &str = "sending";
const NO_EVENT: PeopleError = PeopleError::NotFound("There is no event with this id.");

/// One event on its way to one webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedEvent {
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

/// A queued event with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Its id, which the receiver sees too.
    pub id: String,
    /// The event.
    pub event: QueuedEvent,
    /// When something is due: the next try, or forgetting it.
    pub due_ms: Option<u64>,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    /// It is to be sent, or just being sent.
    Waiting,
    /// The receiver has it.
    Arrived,
    /// It was given up.
    Dead,
}

impl EventState {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Arrived => "arrived",
            Self::Dead => "dead",
        }
    }

    /// Finds the state with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Waiting, Self::Arrived, Self::Dead].into_iter().find(|one| one.as_str() == name)
    }

    /// The states of the records; an event that is being sent still waits, for people.
    fn stored(self) -> Vec<String> {
        let sending = (self == Self::Waiting).then(|| SENDING.to_owned());
        std::iter::once(self.as_str().to_owned()).chain(sending).collect()
    }
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
    /// The events of a webhook in a state.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn queued_events(
        &self,
        tenant: &TenantId,
        webhook: &str,
        state: EventState,
        limit: u32,
    ) -> Result<Vec<EventRecord>, PeopleError> {
        self.records.get(key(RecordKind::Webhook, tenant, webhook)).await?.ok_or(NONE)?;
        let query = RecordQuery {
            states: state.stored(),
            owner: Some(webhook.to_owned()),
            ..query(RecordKind::Event, Some(tenant), limit)
        };
        let found = self.records.list(query).await?.into_iter();
        let readable = found.filter_map(|record| {
            let event = read_or_report(&record)?;
            Some(EventRecord { event, id: record.key.id, due_ms: record.due_ms })
        });
        Ok(readable.collect())
    }

    /// Has a dead event sent once more, from the beginning and under the same id.
    ///
    /// # Errors
    /// When there is no such event, or it is not dead.
    pub async fn resend_event(
        &self,
        caller: &Caller,
        webhook: &str,
        id: &str,
    ) -> Result<(), PeopleError> {
        let found = self.records.get(key(RecordKind::Event, &caller.tenant, id)).await?;
        let mut record = found.ok_or(NO_EVENT)?;
        if record.owner != webhook || record.state != EventState::Dead.as_str() {
            return Err(NO_EVENT);
        }
        let mut event: QueuedEvent = read(&record)?;
        event.attempts = 0;
        event.trouble = None;
        record.state = EventState::Waiting.as_str().to_owned();
        record.due_ms = Some(self.clock.now_ms());
        self.rewrite(&mut record, &event)?;
        let public = self.webhook_entry(caller, id, "event.resend");
        self.records.put(vec![recorded(record, Kind::AdminAction, public)]).await?;
        Ok(())
    }

    pub(crate) async fn queue_event(
        &self,
        tenant: &TenantId,
        announcement: &Announcement,
    ) -> Result<(), PeopleError> {
        let changes = self.event_changes(tenant, announcement).await?;
        if !changes.is_empty() {
            self.records.put(changes).await?;
        }
        Ok(())
    }

    /// An event for each webhook that wants to be told.
    pub(crate) async fn event_changes(
        &self,
        tenant: &TenantId,
        announcement: &Announcement,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        let mut changes = Vec::new();
        for (id, webhook) in self.webhooks(tenant).await? {
            let wanted = webhook.events.is_empty() || webhook.events.contains(&announcement.kind);
            if wanted && !self.is_full(tenant, &id).await? {
                changes.push(self.event_change(tenant, id, announcement)?);
            }
        }
        Ok(changes)
    }

    async fn is_full(&self, tenant: &TenantId, webhook: &str) -> Result<bool, PeopleError> {
        let last = RecordQuery {
            states: EventState::Waiting.stored(),
            owner: Some(webhook.to_owned()),
            offset: WAITING_MAX - 1,
            ..query(RecordKind::Event, Some(tenant), 1)
        };
        let full = !self.records.list(last).await?.is_empty();
        if full {
            tracing::warn!(webhook, "too many events wait for a webhook: one is not queued");
        }
        Ok(full)
    }

    fn event_change(
        &self,
        tenant: &TenantId,
        webhook: String,
        announcement: &Announcement,
    ) -> Result<RecordChange, PeopleError> {
        let at_ms = self.clock.now_ms();
        let place = key(RecordKind::Event, tenant, &self.new_id("msg"));
        let waiting = self.new_record(place, EventState::Waiting.as_str(), &webhook);
        let mut record = Record { due_ms: Some(at_ms), ..waiting };
        let event = QueuedEvent {
            webhook,
            kind: announcement.kind,
            at_ms,
            data: announcement.data.clone(),
            attempts: 0,
            trouble: None,
        };
        self.rewrite(&mut record, &event)?;
        Ok(unrecorded(record))
    }

    /// Sends what is due, and forgets what arrived or died long ago. Returns how many events were taken in
    /// hand.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn send_due(&self, post: &dyn Post) -> Result<usize, PeopleError> {
        let due = RecordQuery {
            states: EventState::Waiting.stored(),
            due_before_ms: Some(self.clock.now_ms().saturating_add(1)),
            ..query(RecordKind::Event, None, AT_ONCE)
        };
        let events = self.records.list(due.clone()).await?;
        let sent = join_all(events.into_iter().map(|one| self.send_event(post, one))).await;
        let states = [EventState::Arrived, EventState::Dead].map(|state| state.as_str().to_owned());
        let over = RecordQuery { states: states.into(), ..due };
        for record in self.records.list(over).await? {
            // Somebody else may have forgotten it, or have sent it again.
            if let Err(error) = self.records.remove(record.key, record.version).await {
                tracing::debug!(%error, "an old event is forgotten later");
            }
        }
        Ok(sent.into_iter().filter(|taken| *taken).count())
    }

    /// Whether it was taken in hand.
    async fn send_event(&self, post: &dyn Post, mut record: Record) -> bool {
        let Some(mut event) = read_or_report::<QueuedEvent>(&record) else { return false };
        record.state = SENDING.to_owned();
        record.due_ms = Some(self.clock.now_ms().saturating_add(HAND_MS));
        // Whoever cannot take it leaves it: it is another's, or the records are away.
        let Ok(mut taken) = self.records.put(vec![unrecorded(record)]).await else { return false };
        let Some(mut record) = taken.pop() else { return false };
        event.trouble = self.post_event(post, &record, &event).await.err();
        event.attempts += 1;
        let now_ms = self.clock.now_ms();
        let pause = PAUSES_S.get(event.attempts as usize - 1);
        let (state, due_ms) = match (&event.trouble, pause) {
            (None, _) => (EventState::Arrived, now_ms + ARRIVED_MS),
            (Some(_), Some(pause)) => (EventState::Waiting, now_ms + pause * 1_000),
            (Some(why), None) => {
                let webhook = &event.webhook;
                tracing::error!(event = record.key.id, webhook, why, "an event is dead");
                (EventState::Dead, now_ms + DEAD_MS)
            }
        };
        record.state = state.as_str().to_owned();
        record.due_ms = Some(due_ms);
        let noted = match self.rewrite(&mut record, &event) {
            Ok(()) => self.records.put(vec![unrecorded(record)]).await.map_err(PeopleError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "what became of an event could not be noted; it is sent again");
        }
        true
    }

    async fn post_event(
        &self,
        post: &dyn Post,
        record: &Record,
        event: &QueuedEvent,
    ) -> Result<(), String> {
        let tenant = &record.key.tenant;
        let found = self.records.get(key(RecordKind::Webhook, tenant, &event.webhook)).await;
        let found = found.map_err(|error| error.to_string())?.ok_or("the webhook was removed")?;
        let webhook: Webhook = read(&found).map_err(|error| error.to_string())?;
        let body = json!({
            "type": event.kind,
            "timestamp_ms": event.at_ms,
            "tenant": tenant,
            "data": event.data,
        });
        let body = body.to_string();
        let id = record.key.id.clone();
        let timestamp = (self.clock.now_ms() / 1_000).to_string();
        let secret = self.secret(tenant, &event.webhook, webhook.generation);
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
}
