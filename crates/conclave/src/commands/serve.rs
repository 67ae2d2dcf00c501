//! `conclave serve`: the gateway.

use super::Answer;
use super::accounts::new_password;
use crate::anchor::Anchors;
use crate::assemble::{self, Ground};
use crate::bare;
use crate::cli::ServeArgs;
use crate::config::{self, Config};
use crate::governing;
use crate::outbox::{GuardedPost, Outbox};
use crate::output;
use crate::reload::{self, Reloading};
use crate::staff::{self, Employed};
use crate::system::{SystemClock, SystemEntropy};
use crate::telemetry;
use anyhow::{Context, anyhow};
use conclave_core::TenantId;
use conclave_dashboard::{AccountBook, Dashboard, Ports, hash_password};
use conclave_engine::{Clock, Entropy, KeyRole};
use conclave_gateway::{Gateway, router, serve};
use conclave_ledger::{Body, Draft, Kind};
use conclave_people::MissingReviews;
use conclave_store::{
    Anchor, LedgerReader, NewKey, PersonRecord, Stamp, Store, StoreError, StoreOptions,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Readers do not wait for it; a longer wait makes larger and so cheaper transactions.
const DRAIN_LINGER: Duration = Duration::from_millis(250);

/// Runs until it is told to stop.
///
/// # Errors
/// When it cannot start; the sentence says what to do.
pub fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
    let config = settings(args)?;
    bare::admit(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_until_stopped(args, config))?;
    Ok(Answer::Yes)
}

fn settings(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = config::load(args.config.as_deref())?;
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    if let Some(data) = &args.data {
        config.server.data.clone_from(data);
    }
    if let Some(database) = &args.database.database {
        config.storage.database = Some(database.parse().map_err(|why: String| anyhow!(why))?);
    }
    Ok(config)
}

async fn serve_until_stopped(args: &ServeArgs, config: Config) -> anyhow::Result<()> {
    // Before anybody is told that we are ready: a signal without a handler ends the process on the spot.
    let (stop, hangup) = (stop_signal()?, signal(SignalKind::hangup())?);
    let tls = assemble::tls(&config, SystemClock.now_ms())?;
    if let Some(why) = config::exposure(&config) {
        tracing::warn!("{why}");
    }
    let listener = listen(&config).await?;
    let address = listener.local_addr()?;
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let anchors = Anchors::new(&config, clock.clone())?;
    let ports = (clock.clone(), entropy.clone());
    let store = Arc::new(Store::open(storing(&config, anchors.clone(), ports)?)?);
    let steward = governing::begin(&store, &config, clock.clone()).await;
    let staff = Arc::new(Employed::new(store.clone(), clock.clone()));
    let ground = assemble::ground(&store, steward.clone(), Some(staff), clock, entropy);
    governing::know_protocols(&ground.people, &store, &config.server.data).await;
    let services = assemble::services(&config, &ground)?;
    let limits = assemble::limits(&config);
    let gateway = Gateway::new(services, store.keys(), store.proofs(), limits.clone());
    let exporting = telemetry::begin(&config.telemetry, |name| std::env::var(name).ok())?;
    if let Some(exporting) = &exporting {
        gateway.collect_spans(exporting.exporter.clone());
    }
    welcome(&store, &config)?;
    if let Err(error) = store.sync_keys() {
        away(error)?;
    }
    let accounts = staff::book(&store)?;
    let dashboard = dashboard(&config, &accounts, &ground, &gateway);
    announce(&config, address, tls.is_some());
    let places = (args.config.clone(), config.server.data.clone());
    let missing =
        MissingReviews::new(ground.archive.clone(), ground.people.clone(), ground.clock.clone());
    let looked_after = (steward, ground.people.clone(), missing);
    let governing = tokio::spawn(governing::run(looked_after, (store.clone(), accounts), places));
    let anchoring = anchors.map(|anchors| anchoring(&anchors, &store, &config));
    let outbox = tokio::spawn(outbox(&config, &ground)?.run());
    let reloading = Reloading {
        begun: reload::begun(args.config.as_deref(), &config),
        file: args.config.clone(),
        ground,
        store: store.clone(),
        gateway: gateway.clone(),
        tls: tls.clone(),
    };
    let chores = tokio::spawn(reloading.run(hangup));
    let pages = conclave_dashboard::router(dashboard);
    let routes = router(gateway.clone()).merge(pages);
    let deadline = serve(listener, routes, limits, tls, gateway.server(), stop).await;
    tracing::info!("stopping: finishing what was begun");
    if tokio::time::timeout_at(deadline, gateway.wait_until_idle()).await.is_err() {
        tracing::warn!("some turns did not finish in time");
    }
    chores.abort();
    governing.abort();
    outbox.abort();
    gateway.flush_refusals();
    if let Some(exporting) = exporting {
        exporting.finish().await;
    }
    tokio::task::spawn_blocking(move || store.shutdown()).await?;
    for task in anchoring.into_iter().flatten() {
        task.abort();
    }
    tracing::info!("stopped");
    Ok(())
}

/// Where everything is kept, and how.
fn storing(
    config: &Config,
    anchors: Option<Arc<Anchors>>,
    (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
) -> anyhow::Result<StoreOptions> {
    Ok(StoreOptions {
        stamp: assemble::stamp(config)?,
        root_key: assemble::root_key(config)?,
        drain_linger: DRAIN_LINGER,
        database: config.storage.url().map_err(|why| anyhow!("storage.database: {why}"))?,
        origin: config.ledger.origin.clone(),
        anchor: anchors.map(|anchors| anchors as Arc<dyn Anchor>),
        spool_fallback: config.storage.spool_fallback.clone(),
        spool_bytes_max: config.storage.spool_bytes_max,
        kept: config.storage.kept(),
        ..StoreOptions::new(&config.server.data, clock, entropy)
    })
}

/// Copies checkpoints elsewhere and shows them to witnesses. What the webhook had not taken before is
/// taken up; a database that cannot be asked now only costs those.
fn anchoring(anchors: &Arc<Anchors>, store: &Arc<Store>, config: &Config) -> [JoinHandle<()>; 2] {
    let stored = match config.storage.url() {
        Ok(Some(url)) => LedgerReader::open_database(&url, &config.server.data),
        _ => LedgerReader::open(&config.server.data),
    };
    if let Err(error) = stored.map_err(anyhow::Error::from).and_then(|it| anchors.recall(&it)) {
        tracing::warn!(%error, "checkpoints that the webhook had not taken are not sent again");
    }
    let asking = Arc::clone(anchors).ask_witnesses(Arc::clone(store));
    [tokio::spawn(Arc::clone(anchors).run()), tokio::spawn(asking)]
}

/// Tells webhooks what happens, and lets time go by for what waits.
fn outbox(config: &Config, ground: &Ground) -> anyhow::Result<Outbox> {
    Ok(Outbox {
        people: ground.people.clone(),
        post: Arc::new(GuardedPost::new(config.webhooks.allow_private)),
        ledger: ground.ledger.clone(),
        house: TenantId::new("default")?,
    })
}

async fn listen(config: &Config) -> anyhow::Result<TcpListener> {
    let address = config.server.listen;
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}: is another program using it? Choose another with \
             --listen ADDR:PORT"
        )
    })
}

/// At the very first start the log begins, and an owner key and a password are made and shown once;
/// only their hashes are kept.
fn welcome(store: &Store, config: &Config) -> anyhow::Result<()> {
    begin_log(store, config)?;
    if let Err(error) = first_key(store, config).and_then(|()| first_person(store)) {
        away(error.downcast::<StoreError>()?)?;
    }
    Ok(())
}

/// The first entry of a new log.
///
/// # Errors
/// When the directives cannot be read.
pub(super) fn begin_log(store: &Store, config: &Config) -> anyhow::Result<()> {
    if store.is_new() {
        let draft = Draft::new(Kind::Genesis, 0);
        let Stamp { policy, directives, build } = assemble::stamp(config)?;
        store.ledger().append_soon(Draft { policy, directives, build, ..draft }, Body::empty());
    }
    Ok(())
}

/// A database that cannot be reached now is no reason not to serve; whatever else is, is.
fn away(error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::Unreachable { .. } => {
            tracing::warn!(%error, "keys and people are those of the last contact");
            Ok(())
        }
        error => Err(error),
    }
}

fn first_key(store: &Store, config: &Config) -> anyhow::Result<()> {
    if !store.key_book().list()?.is_empty() {
        return Ok(());
    }
    let new = NewKey {
        environment: "live".into(),
        tenant: TenantId::new("default")?,
        role: KeyRole::Owner,
        label: "first owner".into(),
        person: None,
        expires_ms: None,
    };
    // Of several replicas that begin at once, one makes the key.
    let made = store.key_book().issue_first(new, SystemClock.now_ms(), &SystemEntropy)?;
    if let Some((_, key)) = made {
        output::note(&format!(
            "\nA new owner key was made. It is shown this once; keep it:\n\n    {}\n\nMake others \
             with `conclave keys create --data {}`.\n",
            key.reveal(),
            config.server.data.display()
        ));
    }
    Ok(())
}

fn first_person(store: &Store) -> anyhow::Result<()> {
    if !store.people_book().list()?.is_empty() {
        return Ok(());
    }
    let password = new_password();
    let made = store.people_book().put_first(&PersonRecord {
        name: "owner".into(),
        tenant: TenantId::new("default")?,
        role: KeyRole::Owner,
        password_hash: hash_password(&password, &SystemEntropy),
        created_ms: SystemClock.now_ms(),
    })?;
    if made {
        output::note(&format!(
            "Sign in to the dashboard as `owner` with this password, shown this once:\n\n    \
             {password}\n"
        ));
    }
    Ok(())
}

fn dashboard(
    config: &Config,
    accounts: &Arc<AccountBook>,
    ground: &Ground,
    gateway: &Gateway,
) -> Dashboard {
    let gateway = gateway.clone();
    let in_force = gateway.clone();
    Dashboard::new(Ports {
        sign_in: accounts.clone(),
        archive: ground.archive.clone(),
        clock: ground.clock.clone(),
        entropy: ground.entropy.clone(),
        on_transcript_read: Arc::new(move |account, id| {
            gateway.engine().note_transcript_read(&account.tenant, &account.name, id);
        }),
        people: Some(ground.people.clone()),
        appeals: Some(Arc::new(move || in_force.services().appeals)),
        https: config.server.https || config.tls.files().is_some(),
    })
}

fn announce(config: &Config, address: std::net::SocketAddr, is_encrypted: bool) {
    let scheme = if is_encrypted { "https" } else { "http" };
    tracing::info!(
        dashboard = %format!("{scheme}://{address}/"),
        api = %format!("{scheme}://{address}/v1"),
        health = %format!("{scheme}://{address}/health"),
        data = %config.server.data.display(),
        "conclave is ready"
    );
}

fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
