//! What the gateway does about policies, protocols and money while it runs.
//!
//! **Invariant:** a database that is away changes nothing: the policies and protocols of the last contact
//! hold, also after a start, by the copies that were written then.

use crate::assemble;
use crate::config::{self, Config};
use conclave_engine::{Clock, People, Policies, StewardState};
use conclave_store::Store;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often policies are read again: other replicas may have changed them.
const REFRESH: Duration = Duration::from_secs(2);
/// After how many of those the ledger is asked about money that nobody settled.
const RECONCILE_TICKS: u32 = 3;
/// The copies of all policies and protocols, beside the spool.
const COPY: &str = "policies.json";
const PROTOCOLS_COPY: &str = "protocols.json";

/// Makes the steward and reads the policies, before anything is served.
pub async fn begin(store: &Store, config: &Config, clock: Arc<dyn Clock>) -> Arc<StewardState> {
    let policies = Policies::over(store.records());
    let read = (store.archive(), store.usage());
    let steward = Arc::new(StewardState::new(store.accounts(), policies, read, clock));
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
pub async fn know_protocols(people: &People, data: &Path) {
    let Err(error) = people.refresh_protocols().await else {
        write_protocols(people, data);
        return;
    };
    tracing::warn!(%error, "protocols are those of the last contact");
    let copied = std::fs::read(data.join(PROTOCOLS_COPY)).ok();
    let copied = copied.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let restored = people.restore_protocols(&copied.unwrap_or_default());
    if let Err(error) = restored {
        tracing::error!(%error, "no protocols are known: what must be looked at is held");
    }
}

fn write_protocols(people: &People, data: &Path) {
    if let Err(error) = write(data, PROTOCOLS_COPY, &people.copy_protocols()) {
        tracing::warn!(%error, "the copy of the protocols could not be written");
    }
}

/// Keeps policies and protocols up to date and settles from the ledger what nobody settled, for as long as it runs.
pub async fn run(
    (steward, people): (Arc<StewardState>, Arc<People>),
    store: Arc<Store>,
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
            Ok(true) => write_protocols(&people, &data),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "protocols are those of the last contact"),
        }
        if ticks.is_multiple_of(RECONCILE_TICKS) {
            match steward.reconcile().await {
                Ok(0) => {}
                Ok(settled) => tracing::info!(settled, "requests were settled from the ledger"),
                Err(error) => tracing::debug!(%error, "money could not be looked after"),
            }
        }
    }
}

fn changed(steward: &StewardState, store: &Store, file: Option<&Path>, data: &Path) {
    if let Ok(config) = config::load(file) {
        store.set_retention(assemble::retention_under(&config, steward.policies()));
    }
    if let Err(error) = write(data, COPY, &steward.policies().copy()) {
        tracing::warn!(%error, "the copy of the policies could not be written");
    }
}

fn write(data: &Path, name: &str, copy: &Value) -> io::Result<()> {
    let (new, place) = (data.join(format!("{name}.new")), data.join(name));
    std::fs::write(&new, copy.to_string())?;
    std::fs::rename(new, place)
}
