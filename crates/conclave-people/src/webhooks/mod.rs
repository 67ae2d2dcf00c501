//! Webhooks: where a tenant has events sent to. Events wait and are sent in [`sending`].
//!
//! **Invariant:** no secret is stored; it follows from the key of the house and the webhook's id.

mod sending;

pub use sending::{EventRecord, EventState, QueuedEvent, webhook_signature};

use crate::people::{People, PeopleError};
use crate::records::{key, query, read, read_or_report, recorded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conclave_core::TenantId;
use conclave_govern::Unfit;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, EventKind, Post, RecordKind, RecordQuery};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::collections::BTreeMap;

/// The most webhooks of one tenant.
const WEBHOOKS_MAX: u32 = 16;
/// The longest address, in bytes.
const URL_BYTES_MAX: usize = 1_000;
/// What secrets of Standard Webhooks begin with.
const SECRET_START: &str = "whsec_";
const NONE: PeopleError = PeopleError::NotFound("There is no webhook with this id.");

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

/// A webhook that was just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// Its id.
    pub id: String,
    /// The webhook.
    pub webhook: Webhook,
    /// What its events are signed with; shown this once.
    pub secret: String,
}

impl People {
    /// Makes a webhook.
    ///
    /// # Errors
    /// When the address may not be used, or there are too many.
    pub async fn add_webhook(
        &self,
        caller: &Caller,
        post: &dyn Post,
        url: &str,
        events: Vec<EventKind>,
    ) -> Result<NewWebhook, PeopleError> {
        if url.len() > URL_BYTES_MAX {
            let why = format!("must have at most {URL_BYTES_MAX} bytes");
            return Err(Unfit::new("url", why).into());
        }
        let checked = post.check(url).await;
        checked.map_err(|why| Unfit::new("url", format!("cannot be used: {why}")))?;
        let all = query(RecordKind::Webhook, Some(&caller.tenant), WEBHOOKS_MAX);
        if self.records.list(all).await?.len() >= WEBHOOKS_MAX as usize {
            return Err(PeopleError::Full(format!("a tenant has at most {WEBHOOKS_MAX} webhooks")));
        }
        let id = self.new_id("wh");
        let created_ms = self.clock.now_ms();
        let webhook = Webhook { url: url.to_owned(), events, generation: 0, created_ms };
        let place = key(RecordKind::Webhook, &caller.tenant, &id);
        let mut record = self.new_record(place, "active", "");
        self.rewrite(&mut record, &webhook)?;
        let public = self.webhook_entry(caller, &id, "webhook.create");
        self.records.put(vec![recorded(record, Kind::AdminAction, public)]).await?;
        let secret = self.shown_secret(&caller.tenant, &id, 0);
        Ok(NewWebhook { id, webhook, secret })
    }

    /// Replaces the secret of a webhook; returns the new one, which is shown this once.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn replace_secret(&self, caller: &Caller, id: &str) -> Result<String, PeopleError> {
        let found = self.records.get(key(RecordKind::Webhook, &caller.tenant, id)).await?;
        let mut record = found.ok_or(NONE)?;
        let mut webhook: Webhook = read(&record)?;
        webhook.generation = webhook.generation.wrapping_add(1);
        self.rewrite(&mut record, &webhook)?;
        let public = self.webhook_entry(caller, id, "webhook.secret");
        self.records.put(vec![recorded(record, Kind::AdminAction, public)]).await?;
        Ok(self.shown_secret(&caller.tenant, id, webhook.generation))
    }

    /// Ends a webhook; what waits for it is not sent any more.
    ///
    /// # Errors
    /// When there is no such webhook.
    pub async fn remove_webhook(&self, caller: &Caller, id: &str) -> Result<(), PeopleError> {
        let place = key(RecordKind::Webhook, &caller.tenant, id);
        let mut record = self.records.get(place.clone()).await?.ok_or(NONE)?;
        record.state = "ended".to_owned();
        let version = record.version + 1;
        let public = self.webhook_entry(caller, id, "webhook.remove");
        self.records.put(vec![recorded(record, Kind::AdminAction, public)]).await?;
        Ok(self.records.remove(place, version).await?)
    }

    /// The webhooks of a tenant, by id.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn webhooks(
        &self,
        tenant: &TenantId,
    ) -> Result<BTreeMap<String, Webhook>, PeopleError> {
        let all = query(RecordKind::Webhook, Some(tenant), WEBHOOKS_MAX);
        let active = RecordQuery { states: vec!["active".to_owned()], ..all };
        let records = self.records.list(active).await?;
        // One that cannot be read must not keep the others from being told.
        let readable = records.iter().filter_map(|record| {
            let webhook = read_or_report(record)?;
            Some((record.key.id.clone(), webhook))
        });
        Ok(readable.collect())
    }

    fn webhook_entry(&self, caller: &Caller, id: &str, what: &str) -> Public {
        Public::map([
            ("what", Public::from(what)),
            ("record", Public::from(id)),
            ("by", self.digest(b"reader", &caller.tenant, &caller.holder)),
        ])
    }

    fn secret(&self, tenant: &TenantId, id: &str, generation: u32) -> Vec<u8> {
        // HMAC takes a key of any length, so this cannot fail; nothing would verify with an empty secret.
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
