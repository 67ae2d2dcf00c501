//! Sends what webhooks are to be told, lets time go by for reviews, and tells of trouble with the ledger.
//!
//! **Invariant:** nobody waits for this task: trouble with a webhook or the records delays no reply.

use conclave_core::TenantId;
use conclave_engine::{Announcement, EventKind, Governance, Ledger, Post};
use conclave_models::{AddressPolicy, BaseUrl, Lookup, WebClient, system_lookup};
use conclave_people::People;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a name may take to be resolved.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);
/// How often letters that are due are looked for.
const PAUSE: Duration = Duration::from_secs(1);
/// Every so many rounds, time is let go by for reviews.
const REVIEWS_EVERY: u64 = 60;
/// Every so many rounds, the ledger is asked how it is doing.
const LEDGER_EVERY: u64 = 10;

/// Posts to addresses that tenants named.
///
/// **Invariant:** a name is held to all it resolves to when a webhook is made and again before each call, and the
/// connection goes to an address that was checked.
pub struct GuardedPost {
    /// Private and unencrypted addresses are permitted, because the configuration says so.
    allow_private: bool,
    lookup: Lookup,
}

impl GuardedPost {
    /// Asks the operating system for addresses.
    pub fn new(allow_private: bool) -> Self {
        Self { allow_private, lookup: system_lookup() }
    }

    async fn checked(&self, url: &str) -> Result<BaseUrl, String> {
        let base = BaseUrl::parse(url, self.allow_private).map_err(|error| error.to_string())?;
        // A provider on this machine is the operator's choice; a webhook is a tenant's.
        if !self.allow_private && base.policy() == AddressPolicy::Loopback {
            return Err("it is an address of this machine".to_owned());
        }
        if !self.allow_private && !base.is_encrypted() {
            return Err("it must begin with https://".to_owned());
        }
        let found = tokio::time::timeout(LOOKUP_PATIENCE, base.check_addresses(&self.lookup)).await;
        match found {
            Ok(Ok(())) => Ok(base),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_late) => Err("its name could not be resolved in time".to_owned()),
        }
    }
}

impl Post for GuardedPost {
    fn check<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async move { self.checked(url).await.map(|_| ()) }.boxed()
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> BoxFuture<'a, Result<u16, String>> {
        async move {
            // What was permitted when it was named may not be permitted any more.
            let base = self.checked(url).await?;
            let client = WebClient::of(base, self.lookup.clone(), PATIENCE);
            let client = client.map_err(|error| error.to_string())?;
            client.post(&headers, body.into_bytes()).await.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// What the task works with.
pub struct Outbox {
    /// Knows what is to be told, and to whom.
    pub people: Arc<People>,
    /// Sends.
    pub post: Arc<dyn Post>,
    /// Whose trouble is told.
    pub ledger: Arc<dyn Ledger>,
    /// Who is told of it: the tenant that runs the house.
    pub house: TenantId,
}

impl Outbox {
    /// Works for ever.
    pub async fn run(self) {
        let (mut round, mut told) = (0_u64, Vec::new());
        let mut pause = tokio::time::interval(PAUSE);
        loop {
            pause.tick().await;
            if let Err(error) = self.people.send_due(&*self.post).await {
                tracing::warn!(%error, "events could not be sent");
            }
            if round.is_multiple_of(REVIEWS_EVERY)
                && let Err(error) = self.people.pass_time().await
            {
                tracing::warn!(%error, "reviews could not be looked through");
            }
            if round.is_multiple_of(LEDGER_EVERY) {
                told = self.tell_of_ledger(told).await;
            }
            round = round.wrapping_add(1);
        }
    }

    /// Tells of trouble that was not there before; returns all there is.
    async fn tell_of_ledger(&self, told: Vec<&'static str>) -> Vec<&'static str> {
        let alerts = self.ledger.state().alerts;
        for alert in alerts.iter().filter(|alert| !told.contains(&alert.code)) {
            let data = json!({"code": alert.code, "message": alert.message});
            let announcement = Announcement { kind: EventKind::LedgerAlert, data };
            if let Err(error) = self.people.announce(&self.house, announcement).await {
                tracing::warn!(%error, "nobody could be told of trouble with the ledger");
            }
        }
        alerts.into_iter().map(|alert| alert.code).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_engine::{Caller, LedgerAlert, LedgerState};

    /// A name server that knows every name, and sends some of them inward.
    fn resolving(allow_private: bool) -> GuardedPost {
        let lookup: Lookup = Arc::new(|name: String| {
            let is_inward = name.contains("nip.io") || name.contains("localtest");
            let address = if is_inward { "127.0.0.1:0" } else { "93.184.215.14:0" };
            let found = address.parse().map(|one| vec![one]);
            std::future::ready(found.map_err(std::io::Error::other)).boxed()
        });
        GuardedPost { allow_private, lookup }
    }

    #[tokio::test]
    async fn tenants_cannot_name_this_machine_or_what_is_behind_it() {
        let guarded = resolving(false);
        for url in [
            "http://127.0.0.1:1/",
            "https://localhost/",
            "https://[::1]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest",
            "https://[::ffff:127.0.0.1]/",
            "http://example.com/",
            "https://user:pw@example.com/",
            "ftp://example.com/",
            "nonsense",
            "https://127.0.0.1.nip.io/",
            "https://localtest.me/hook",
            "https://metadata.google.internal/",
        ] {
            assert!(guarded.check(url).await.is_err(), "{url}");
            assert!(guarded.post(url, Vec::new(), String::new()).await.is_err(), "{url}");
        }
        assert_eq!(guarded.check("https://example.com/hook").await, Ok(()));
        let open = resolving(true);
        assert_eq!(open.check("http://127.0.0.1:1/").await, Ok(()));
        assert!(open.check("http://169.254.169.254/").await.is_err(), "never");
        assert!(open.check("http://metadata.google.internal/").await.is_err(), "never");
    }

    #[tokio::test]
    async fn a_redirect_to_this_machine_is_not_followed() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let inner = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let outer = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", outer.local_addr().unwrap());
        let location = format!("http://{}/secret", inner.local_addr().unwrap());
        let answering = tokio::spawn(async move {
            let (mut stream, _) = outer.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let answer =
                format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let post = GuardedPost::new(true);
        assert_eq!(post.post(&url, vec![], "{}".into()).await, Ok(302));
        answering.await.unwrap();
        assert!(inner.accept().now_or_never().is_none(), "nobody knocked there");
    }

    /// A ledger that says what it is told to say about itself.
    struct Troubled(std::sync::Mutex<Vec<LedgerAlert>>);

    impl Ledger for Troubled {
        fn append(
            &self,
            _: conclave_ledger::Draft,
            _: conclave_ledger::Body,
        ) -> BoxFuture<'_, Result<conclave_engine::Appended, conclave_engine::AppendError>>
        {
            Box::pin(std::future::pending())
        }

        fn append_soon(&self, _: conclave_ledger::Draft, _: conclave_ledger::Body) {}

        fn dropped(&self) -> u64 {
            0
        }

        fn health(&self) -> Result<(), conclave_engine::AppendError> {
            Ok(())
        }

        fn state(&self) -> LedgerState {
            LedgerState { alerts: self.0.lock().unwrap().clone(), ..LedgerState::default() }
        }
    }

    #[tokio::test]
    async fn webhooks_of_the_house_are_told_of_trouble_with_the_ledger_once() {
        let people = Arc::new(People::new(
            Arc::new(conclave_engine::RecordsInMemory::default()),
            Arc::new(conclave_engine::KeyedSubjects([9; 32])),
            Arc::new(crate::system::SystemClock),
            Arc::new(crate::system::SystemEntropy),
            [9; 32],
        ));
        let post = Arc::new(GuardedPost::new(true));
        let house = TenantId::new("default").unwrap();
        let owner = Caller {
            holder: "o".into(),
            tenant: house.clone(),
            role: conclave_engine::KeyRole::Owner,
            person: None,
        };
        let hook = "http://127.0.0.1:1/hook";
        let id = people.add_webhook(&owner, &*post, hook, vec![]).await.unwrap().id;
        let alert = LedgerAlert { code: "disk", message: "A disk takes no more.".into() };
        let ledger = Arc::new(Troubled(std::sync::Mutex::new(vec![alert])));
        let outbox = Outbox { people, post, ledger: ledger.clone(), house: house.clone() };
        let told = outbox.tell_of_ledger(Vec::new()).await;
        assert_eq!(told, ["disk"]);
        let told = outbox.tell_of_ledger(told).await;
        let waiting = conclave_people::EventState::Waiting;
        let events = outbox.people.queued_events(&house, &id, waiting, 9).await.unwrap();
        let kinds: Vec<_> = events.iter().map(|one| one.event.kind.as_str()).collect();
        assert_eq!(kinds, ["ledger.alert"], "once, as long as it lasts");
        ledger.0.lock().unwrap().clear();
        assert!(outbox.tell_of_ledger(told).await.is_empty());
    }
}
