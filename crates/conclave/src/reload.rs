//! A new configuration for a program that runs.
//!
//! **Invariant:** a file is put in force whole or not at all: a wrong one leaves everything as it was.
//! **Invariant:** either way the ledger gets an entry, and so does the log.
//! **Invariant:** entries of the store and of the engine carry the digests of the same configuration.

use crate::assemble::{self, Ground};
use crate::config::{self, Config};
use conclave_gateway::{Gateway, TlsError, TlsIdentity};
use conclave_ledger::{Body, Draft, Kind, Value};
use conclave_store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::task::JoinHandle;

const DAY_MS: u64 = 86_400_000;
/// From when on somebody is told that a certificate ends.
const ENDS_SOON_MS: u64 = 14 * DAY_MS;

/// What is needed to take up a new configuration.
pub struct Reloading {
    /// The file; without one there is nothing to read again.
    pub file: Option<PathBuf>,
    /// What was in force at the start: some of it stays so until the next.
    pub begun: Config,
    /// What outlives a reload.
    pub ground: Ground,
    /// Keeps words as long as the configuration says.
    pub store: Arc<Store>,
    /// Answers by it.
    pub gateway: Gateway,
    /// The certificate in force, where connections are encrypted.
    pub tls: Option<Arc<TlsIdentity>>,
}

impl Reloading {
    /// Reloads on SIGHUP, writes summed-up refusals every second, and lets go of kept replies.
    pub async fn run(self, mut hangup: Signal) {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        let mut minute = tokio::time::interval(Duration::from_secs(60));
        let mut forgetting = None;
        let mut told_of_end = 0;
        loop {
            tokio::select! {
                _ = second.tick() => {
                    self.gateway.flush_refusals();
                    self.look_at_certificate();
                }
                _ = minute.tick() => {
                    told_of_end = self.tell_of_end(told_of_end);
                    // In a task of its own: a slow database holds up neither refusals nor a reload.
                    if forgetting.as_ref().is_none_or(JoinHandle::is_finished) {
                        let gateway = self.gateway.clone();
                        let forget = async move { gateway.remove_expired().await };
                        forgetting = Some(tokio::spawn(forget));
                    }
                }
                _ = hangup.recv() => {
                    self.reload();
                    self.reload_certificate();
                }
            }
        }
    }

    fn reload(&self) {
        let rebuilt = config::load(self.file.as_deref())
            .map_err(anyhow::Error::from)
            .and_then(|config| Ok((assemble::services(&config, &self.ground)?, config)));
        match rebuilt {
            Ok((services, config)) => {
                let policies = self.ground.steward.policies();
                self.store.set_retention(assemble::retention_under(&config, policies));
                self.store.set_stamp(services.engine.settings.stamp());
                self.gateway.reload(services);
                self.enter(Kind::PolicySet, "loaded");
                tracing::info!("the configuration was reloaded");
                self.say_what_waits(&config);
            }
            Err(error) => {
                self.gateway.note_refused_reload();
                self.enter(Kind::AdminAction, "refused");
                let error = format!("{error:#}");
                tracing::error!(error, "the configuration is wrong: the old one stays");
            }
        }
    }

    /// Takes up a certificate whose files were replaced, as whoever renews it does.
    fn look_at_certificate(&self) {
        let Some(tls) = &self.tls else { return };
        if let Some(taken_up) = tls.reload_if_changed(self.ground.clock.now_ms()) {
            self.tell_of_certificate(taken_up);
        }
    }

    fn reload_certificate(&self) {
        let Some(tls) = &self.tls else { return };
        self.tell_of_certificate(tls.reload(self.ground.clock.now_ms()));
    }

    fn tell_of_certificate(&self, taken_up: Result<(), TlsError>) {
        match taken_up {
            Ok(()) => tracing::info!("the certificate was read again and is in force"),
            Err(error) => {
                tracing::error!(%error, "the new certificate cannot be used: the old one stays");
            }
        }
    }

    /// Says once a day that a certificate is about to end, or has; gives back when it was said last.
    fn tell_of_end(&self, told_ms: u64) -> u64 {
        let now_ms = self.ground.clock.now_ms();
        let Some(tls) = &self.tls else { return told_ms };
        let left_ms = tls.until_ms().saturating_sub(now_ms);
        if left_ms > ENDS_SOON_MS || now_ms.saturating_sub(told_ms) < DAY_MS {
            return told_ms;
        }
        let days = left_ms / DAY_MS;
        if left_ms == 0 {
            tracing::error!("the certificate has ended: clients refuse to connect");
        } else {
            tracing::warn!(days, "the certificate ends soon");
        }
        now_ms
    }

    /// What is wrong with a file stands in the log: it may name what a leaf must not.
    fn enter(&self, kind: Kind, result: &str) {
        let engine = self.gateway.engine();
        let draft = Draft {
            policy: engine.settings.policy,
            directives: engine.settings.directives,
            build: engine.settings.build.clone(),
            public: Value::map([
                ("what", Value::from("config.reload")),
                ("result", Value::from(result)),
            ]),
            ..Draft::new(kind, 0)
        };
        self.ground.ledger.append_soon(draft, Body::empty());
    }

    fn say_what_waits(&self, config: &Config) {
        for part in fixed_parts(&self.begun, config) {
            tracing::warn!(part, "this part was changed and takes effect at the next start");
        }
    }
}

/// The parts that are read at the start only and differ.
fn fixed_parts(begun: &Config, now: &Config) -> Vec<&'static str> {
    // What cannot be written down differs from everything that can.
    let json = |part: Result<serde_json::Value, serde_json::Error>| part.map_err(|_| "unwritable");
    macro_rules! differs {
        ($($part:ident),*) => {
            [$((
                stringify!($part),
                json(serde_json::to_value(&begun.$part)) != json(serde_json::to_value(&now.$part)),
            )),*]
        };
    }
    // Days and the root key of `storage` are looked at anew; the rest of it is not.
    let storage = |config: &Config| {
        let config::Storage { database, spool_fallback, spool_bytes_max, .. } = &config.storage;
        json(serde_json::to_value((database, spool_fallback, spool_bytes_max)))
    };
    let parts = differs!(server, tls, limits, ledger, telemetry, webhooks);
    let parts = parts.into_iter().filter_map(|(name, differs)| differs.then_some(name));
    parts.chain((storage(begun) != storage(now)).then_some("storage")).collect()
}

/// The file as it was read at the start, before the command line changed it.
pub fn begun(file: Option<&Path>, config: &Config) -> Config {
    config::load(file).unwrap_or_else(|_| config.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_effect_at_the_next_start_only_is_named() {
        let begun = Config::default();
        assert!(fixed_parts(&begun, &begun).is_empty());
        let mut now = begun.clone();
        now.limits.turns_max += 1;
        now.storage.spool_bytes_max += 1;
        now.storage.retention_days = 30;
        now.deliberation.attempts_max = 2;
        assert_eq!(fixed_parts(&begun, &now), ["limits", "storage"]);
    }
}
