//! Anchors: copies of every checkpoint in places that whoever holds the database does not hold.
//!
//! **Invariant:** an anchor never delays an entry or a checkpoint: the file has a bounded queue and a
//! thread of its own, the webhook a bounded queue and a task of its own.
//!
//! **Invariant:** trouble with an anchor is told in `/health` until it is over.

use crate::anchor_file::FileAnchor;
use crate::config::{Config, SecretRef};
use crate::witness::Witnesses;
use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conclave_engine::Clock;
use conclave_models::WebClient;
use conclave_people::webhook_signature as sign;
use conclave_store::{Anchor, LedgerReader, Store, put_private};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How many checkpoints may wait for the webhook; the oldest gives way, because every later one
/// vouches for it.
const WAITING_MAX: usize = 1_000;
/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses after failures, the last one again and again.
const PAUSES_S: [u64; 6] = [1, 5, 30, 120, 600, 1_800];
/// After so many failures in a row somebody should look.
const FAILURES_TOLD: usize = 3;
/// What secrets of Standard Webhooks begin with.
const SECRET_START: &str = "whsec_";

/// Where checkpoints are copied to.
pub struct Anchors {
    file: Option<FileAnchor>,
    webhook: Option<Webhook>,
    witnesses: Option<Witnesses>,
    /// Says up to which checkpoint the webhook has taken them.
    mark: PathBuf,
    state: Mutex<State>,
    wake: Notify,
    clock: Arc<dyn Clock>,
}

struct Webhook {
    client: WebClient,
    secret: Vec<u8>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, String)>,
    webhook_trouble: Option<String>,
}

impl Anchors {
    /// The anchors of a configuration; `None` when there are none.
    ///
    /// # Errors
    /// When an address or a secret cannot be used.
    pub fn new(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Option<Arc<Self>>> {
        let anchor = &config.ledger.anchor;
        let webhook = match &anchor.webhook {
            Some(url) => Some(Webhook {
                client: WebClient::new(url, anchor.allow_private, PATIENCE)
                    .context("ledger.anchor.webhook")?,
                secret: secret(anchor.webhook_secret.as_ref())?,
            }),
            None => None,
        };
        let witnesses = Witnesses::new(&config.ledger.witnesses)?;
        if anchor.file.is_none() && webhook.is_none() && witnesses.is_none() {
            return Ok(None);
        }
        let (state, wake, mark) =
            (Mutex::default(), Notify::new(), config.server.data.join("anchored"));
        let file = anchor.file.clone().map(FileAnchor::new).transpose();
        let file = file.context("ledger.anchor.file")?;
        Ok(Some(Arc::new(Self { file, webhook, witnesses, mark, state, wake, clock })))
    }

    /// Takes up what the webhook had not taken when the gateway stopped, and shows the last checkpoint
    /// to witnesses that may not have seen it.
    ///
    /// # Errors
    /// When the stored checkpoints cannot be read.
    pub fn recall(&self, stored: &LedgerReader) -> anyhow::Result<()> {
        let sent = std::fs::read_to_string(&self.mark).ok();
        let sent = sent.and_then(|text| text.trim().parse::<u64>().ok());
        let mut last = None;
        stored.checkpoints(|size, note, _| {
            if sent.is_some_and(|sent| size > sent) {
                self.enqueue(size, note);
            }
            last = Some((size, note.to_owned()));
            anyhow::Ok(())
        })?;
        if let (Some(witnesses), Some((size, note))) = (&self.witnesses, last) {
            witnesses.recall(size, &note);
        }
        Ok(())
    }

    fn enqueue(&self, size: u64, note: &str) {
        if self.webhook.is_none() {
            return;
        }
        let mut state = self.state();
        if state.waiting.iter().any(|(waiting, _)| *waiting == size) {
            return;
        }
        state.waiting.push_back((size, note.to_owned()));
        if state.waiting.len() > WAITING_MAX {
            state.waiting.pop_front();
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Notes how far the webhook has come; a note that is lost only makes it hear something twice.
    fn note_sent(&self, size: u64) {
        if let Err(error) = put_private(&self.mark, format!("{size}\n").as_bytes()) {
            tracing::warn!(%error, "it could not be noted how far the webhook has come");
        }
    }

    /// Shows every new checkpoint to the witnesses, for ever.
    pub async fn ask_witnesses(self: Arc<Self>, store: Arc<Store>) {
        if let Some(witnesses) = &self.witnesses {
            witnesses.run(store).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what waits, for ever.
    pub async fn run(self: Arc<Self>) {
        let Some(webhook) = &self.webhook else { return };
        let mut failures = 0_usize;
        loop {
            let next = self.state().waiting.front().cloned();
            let Some((size, note)) = next else {
                self.wake.notified().await;
                continue;
            };
            match webhook.send(size, &note, self.clock.now_ms()).await {
                Ok(()) => {
                    failures = 0;
                    self.note_sent(size);
                    let mut state = self.state();
                    state.waiting.retain(|(waiting, _)| *waiting != size);
                    if state.webhook_trouble.take().is_some() {
                        tracing::info!("the webhook takes checkpoints again");
                    }
                }
                Err(error) => {
                    failures += 1;
                    self.note_failure(failures, &error);
                    let pause = PAUSES_S.get(failures - 1).or(PAUSES_S.last()).copied();
                    tokio::time::sleep(Duration::from_secs(pause.unwrap_or(1))).await;
                }
            }
        }
    }

    fn note_failure(&self, failures: usize, error: &str) {
        tracing::warn!(error, failures, "the webhook did not take a checkpoint");
        if failures >= FAILURES_TOLD {
            let sentence = format!("the webhook failed {failures} times in a row: {error}");
            self.state().webhook_trouble = Some(sentence);
        }
    }
}

impl Anchor for Anchors {
    fn published(&self, size: u64, note: &str) {
        if let Some(file) = &self.file {
            file.published(size, note);
        }
        self.enqueue(size, note);
        if let Some(witnesses) = &self.witnesses {
            witnesses.published(size, note);
        }
    }

    fn trouble(&self) -> Option<String> {
        let own = self.file.as_ref().and_then(FileAnchor::trouble);
        let own = own.or_else(|| self.state().webhook_trouble.clone());
        own.or_else(|| self.witnesses.as_ref().and_then(Witnesses::trouble))
    }
}

fn secret(reference: Option<&SecretRef>) -> anyhow::Result<Vec<u8>> {
    let place = "ledger.anchor.webhook_secret";
    let reference = reference.ok_or_else(|| anyhow!("{place} is needed for a webhook"))?;
    let text = reference.resolve().map_err(|why| anyhow!("{place}: {why}"))?;
    let encoded = text.strip_prefix(SECRET_START).unwrap_or(&text);
    let secret = STANDARD.decode(encoded).ok().filter(|secret| (24..=64).contains(&secret.len()));
    secret
        .ok_or_else(|| anyhow!("{place}: it must be `{SECRET_START}` and 24 to 64 bytes in base64"))
}

impl Webhook {
    /// Says what went wrong; anything but a 2xx is a failure.
    async fn send(&self, size: u64, note: &str, now_ms: u64) -> Result<(), String> {
        let id = message_id(size, note);
        let body = json!({"type": "ledger.checkpoint", "data": {"size": size, "note": note}});
        let (body, timestamp) = (body.to_string(), (now_ms / 1_000).to_string());
        let signature = sign(&self.secret, &id, &timestamp, &body);
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signature),
        ];
        match self.client.post(&headers, body.into_bytes()).await {
            Ok(200..=299) => Ok(()),
            Ok(status) => Err(format!("it answered {status}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The same checkpoint always has the same id, so that a receiver sees a repetition.
fn message_id(size: u64, note: &str) -> String {
    format!("msg_{size}_{}", hex::encode(&Sha256::digest(note)[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SystemClock;
    use std::path::Path;

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        // The example of the specification.
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = "{\"test\": 2432232314}";
        let signed = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn secret_in(dir: &Path) -> SecretRef {
        let file = dir.join("secret");
        std::fs::write(&file, format!("whsec_{SECRET}\n")).unwrap();
        serde_json::from_value(json!(format!("file:{}", file.display()))).unwrap()
    }

    #[tokio::test]
    async fn a_webhook_gets_each_checkpoint_signed() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let dir = tempfile::tempdir().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::default();
        config.server.data = dir.path().to_owned();
        config.ledger.anchor.webhook =
            Some(format!("http://{}/hook", listener.local_addr().unwrap()));
        config.ledger.anchor.webhook_secret = Some(secret_in(dir.path()));
        let anchors = Anchors::new(&config, Arc::new(SystemClock)).unwrap().unwrap();
        anchors.published(7, "log\n7\n");
        let task = tokio::spawn(anchors.clone().run());
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut request, body) = (Vec::new(), json!({"size": 7, "note": "log\n7\n"}));
        let body = json!({"type": "ledger.checkpoint", "data": body}).to_string();
        while !request.ends_with(body.as_bytes()) {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "the request broke off");
        }
        let request = String::from_utf8(request).unwrap();
        assert!(request.starts_with("POST /hook HTTP/1.1"), "{request}");
        let header = |name: &str| {
            let line = request.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(": ").to_owned()
        };
        let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
        let secret = STANDARD.decode(SECRET).unwrap();
        assert_eq!(header("webhook-signature"), sign(&secret, &id, &at, &body));
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        while !anchors.state().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(anchors.trouble(), None);
        assert_eq!(std::fs::read_to_string(dir.path().join("anchored")).unwrap(), "7\n");
        task.abort();
    }

    #[test]
    fn what_the_webhook_had_not_taken_waits_again_after_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.server.data = dir.path().to_owned();
        config.ledger.anchor.webhook = Some("http://127.0.0.1:1/".into());
        config.ledger.anchor.webhook_secret = Some(secret_in(dir.path()));
        let options = conclave_store::StoreOptions::new(
            dir.path(),
            Arc::new(SystemClock),
            Arc::new(crate::system::SystemEntropy),
        );
        let store = Store::open(options).unwrap();
        for _ in 0..3 {
            let draft = conclave_ledger::Draft::new(conclave_ledger::Kind::AdminAction, 1);
            store.ledger().append_soon(draft, conclave_ledger::Body::empty());
            store.settle(Duration::from_secs(20)).unwrap();
            store.publish().unwrap();
        }
        drop(store);
        let stored = LedgerReader::open(dir.path()).unwrap();
        let again = || Anchors::new(&config, Arc::new(SystemClock)).unwrap().unwrap();
        let first = again();
        first.recall(&stored).unwrap();
        assert!(first.state().waiting.is_empty(), "it was never used before");
        first.note_sent(1);
        let second = again();
        second.recall(&stored).unwrap();
        let waiting: Vec<u64> = second.state().waiting.iter().map(|(size, _)| *size).collect();
        assert_eq!(waiting, [2, 3]);
    }

    #[test]
    fn what_waits_is_bounded_and_a_webhook_needs_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.ledger.anchor.webhook = Some("http://127.0.0.1:1/".into());
        let refused = Anchors::new(&config, Arc::new(SystemClock)).err().unwrap();
        assert!(refused.to_string().contains("webhook_secret is needed"), "{refused}");
        config.ledger.anchor.webhook_secret = Some(secret_in(dir.path()));
        let anchors = Anchors::new(&config, Arc::new(SystemClock)).unwrap().unwrap();
        for size in 0..WAITING_MAX as u64 + 5 {
            anchors.published(size, "n\n");
        }
        assert_eq!(anchors.state().waiting.len(), WAITING_MAX);
        assert_eq!(anchors.state().waiting.front().unwrap().0, 5);
        assert_eq!(message_id(5, "n\n"), message_id(5, "n\n"));
        config.ledger.anchor.webhook = Some("http://169.254.169.254/".into());
        assert!(Anchors::new(&config, Arc::new(SystemClock)).is_err());
    }
}
