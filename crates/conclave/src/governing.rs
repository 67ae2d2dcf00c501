//! What the gateway does about policies, protocols, accounts, money and what waits, while it runs.
//!
//! **Invariant:** a database that is away changes nothing: the policies and protocols of the last contact
//! hold, also after a start, by the copies that were written then.

use crate::assemble;
use crate::config::{self, Config};
use crate::staff;
use conclave_dashboard::AccountBook;
use conclave_engine::Clock;
use conclave_money::{Policies, StewardState};
use conclave_people::{MissingReviews, People};
use conclave_store::{Store, put_private};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often policies are read again: other replicas may have changed them.
const REFRESH: Duration = Duration::from_secs(2);
/// After how many of those the ledger is asked about money that nobody settled.
const RECONCILE_TICKS: u32 = 3;
/// After how many of those it is looked whether something waits that nobody was asked about.
const MISSING_TICKS: u32 = 5;
/// The copies of all policies and protocols, beside the spool.
const COPY: &str = "policies.json";
const PROTOCOLS_COPY: &str = "protocols.json";

/// Makes the steward and reads the policies, before anything is served.
pub async fn begin(store: &Store, config: &Config, clock: Arc<dyn Clock>) -> Arc<StewardState> {
    let policies = Policies::over(store.records());
    let (archive, usage) = (store.archive(), store.usage());
    let steward = StewardState::new(store.accounts(), policies, archive, usage, clock);
    let steward = Arc::new(steward);
    know_policies(&steward, &config.server.data).await;
    store.set_retention(assemble::retention_under(config, steward.policies()));
    steward
}

async fn know_policies(steward: &StewardState, data: &Path) {
    if let Err(error) = steward.policies().refresh().await {
        tracing::warn!(%error, "policies are those of the last contact");
        let copied = std::fs::read(data.join(COPY)).ok();
        let copied = copied.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        steward.policies().restore(&copied.unwrap_or_default());
    }
}

/// Reads the protocols before anything is served; those of the last contact if they cannot be read.
pub async fn know_protocols(people: &People, store: &Store, data: &Path) {
    let Err(error) = people.refresh_protocols().await else {
        write_protocols(people, store, data);
        return;
    };
    tracing::warn!(%error, "protocols are those of the last contact");
    let copied = std::fs::read(data.join(PROTOCOLS_COPY)).ok();
    let copied = copied.and_then(|sealed| store.open_copy(PROTOCOLS_COPY, &sealed));
    let copied = copied.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let restored = people.restore_protocols(&copied.unwrap_or_default());
    if let Err(error) = restored {
        tracing::error!(%error, "no protocols are known: what must be looked at is held");
    }
}

/// The terms of communities are theirs: the copy is sealed like what it was made from.
fn write_protocols(people: &People, store: &Store, data: &Path) {
    let written = people.copy_protocols().map_err(anyhow::Error::from).and_then(|copy| {
        let sealed = store.seal_copy(PROTOCOLS_COPY, copy.to_string().as_bytes());
        Ok(write(data, PROTOCOLS_COPY, &sealed)?)
    });
    if let Err(error) = written {
        tracing::warn!(%error, "the copy of the protocols could not be written");
    }
}

/// Keeps policies and protocols up to date and settles from the ledger what nobody settled, for as long as it runs.
pub async fn run(
    (steward, people, missing): (Arc<StewardState>, Arc<People>, MissingReviews),
    (store, accounts): (Arc<Store>, Arc<AccountBook>),
    (file, data): (Option<PathBuf>, PathBuf),
) {
    let mut tick = tokio::time::interval(REFRESH);
    for ticks in 1_u32.. {
        tick.tick().await;
        match steward.policies().refresh().await {
            Ok(true) => changed(&steward, &store, file.as_deref(), &data),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "policies are those of the last contact"),
        }
        match people.refresh_protocols().await {
            Ok(true) => write_protocols(&people, &store, &data),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "protocols are those of the last contact"),
        }
        staff::refresh(&accounts, &store).await;
        if ticks % MISSING_TICKS == 1 {
            match missing.open_missing().await {
                Ok(0) => {}
                Ok(opened) => tracing::warn!(opened, "reviews that were missing are open"),
                Err(error) => tracing::debug!(%error, "what waits could not be looked through"),
            }
        }
        if ticks.is_multiple_of(RECONCILE_TICKS) {
            match steward.reconcile().await {
                Ok(0) => {}
                Ok(settled) => tracing::info!(settled, "requests were settled from the ledger"),
                Err(error) => tracing::warn!(%error, "money could not be settled from the ledger"),
            }
        }
    }
}

fn changed(steward: &StewardState, store: &Store, file: Option<&Path>, data: &Path) {
    if let Ok(config) = config::load(file) {
        store.set_retention(assemble::retention_under(&config, steward.policies()));
    }
    if let Err(error) = write(data, COPY, steward.policies().copy().to_string().as_bytes()) {
        tracing::warn!(%error, "the copy of the policies could not be written");
    }
}

fn write(data: &Path, name: &str, copy: &[u8]) -> io::Result<()> {
    put_private(&data.join(name), copy)
}
