//! `conclave serve`: the gateway.

use super::Answer;
use crate::assemble::{self, Ground};
use crate::cli::ServeArgs;
use crate::config::{self, Config};
use crate::output;
use crate::system::{SystemClock, SystemEntropy};
use anyhow::Context;
use conclave_core::TenantId;
use conclave_engine::{Acquaintances, Clock, Entropy, KeyRole};
use conclave_gateway::{Gateway, router, serve};
use conclave_store::{NewKey, Stamp, Store, StoreOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Separates the key of pseudonyms from the keyed hashes of API keys.
const PSEUDONYMS: &str = "conclave.pseudonyms.v1";

/// Runs until it is told to stop.
///
/// # Errors
/// When it cannot start; the sentence says what to do.
pub fn run(args: &ServeArgs) -> anyhow::Result<Answer> {
    let config = settings(args)?;
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
    Ok(config)
}

async fn serve_until_stopped(args: &ServeArgs, config: Config) -> anyhow::Result<()> {
    let listener = listen(&config).await?;
    let address = listener.local_addr()?;
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let store = Store::open(StoreOptions {
        stamp: stamp(&config)?,
        ..StoreOptions::new(&config.server.data, clock.clone(), entropy.clone())
    })?;
    let ground = Ground {
        ledger: store.ledger(),
        archive: store.archive(),
        acquaintances: Arc::new(Acquaintances::new(store.archive())),
        clock,
        entropy,
        pseudonym_key: store.key_book().digest(PSEUDONYMS),
    };
    let engine = Arc::new(assemble::engine(&config, &ground)?);
    let limits = assemble::limits(&config);
    let gateway = Gateway::new(engine, assemble::manners(&config), store.keys(), limits.clone());
    first_key(&store, &config)?;
    store.sync_keys()?;
    announce(&config, address);
    let chores = tokio::spawn(reload_and_flush(args.config.clone(), ground, gateway.clone()));
    serve(listener, router(gateway.clone()), limits.clone(), stop_signal()?).await;
    tracing::info!("stopping: finishing what was begun");
    if tokio::time::timeout(limits.drain_timeout, gateway.idle()).await.is_err() {
        tracing::warn!("some turns did not finish in time");
    }
    chores.abort();
    gateway.flush_refusals();
    tokio::task::spawn_blocking(move || store.shutdown()).await?;
    tracing::info!("stopped");
    Ok(())
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

/// At the very first start an owner key is made and shown once; only its keyed hash is kept.
fn first_key(store: &Store, config: &Config) -> anyhow::Result<()> {
    if !store.key_book().list()?.is_empty() {
        return Ok(());
    }
    let new = NewKey {
        environment: "live".into(),
        tenant: TenantId::new("default")?,
        role: KeyRole::Owner,
        label: "first owner".into(),
        expires_ms: None,
    };
    let (_, key) = store.key_book().issue(new, SystemClock.now_ms(), &SystemEntropy)?;
    let key = key.reveal();
    output::note(&format!(
        "\nA new owner key was made. It is shown this once; keep it:\n\n    {key}\n\nMake others \
         with `conclave keys create --data {}`.\n",
        config.server.data.display()
    ));
    Ok(())
}

fn stamp(config: &Config) -> anyhow::Result<Stamp> {
    Ok(Stamp {
        policy: assemble::digest(config),
        directives: assemble::instinct(config)?.digest(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn announce(config: &Config, address: std::net::SocketAddr) {
    tracing::info!(
        api = %format!("http://{address}/v1"),
        health = %format!("http://{address}/health"),
        data = %config.server.data.display(),
        "conclave is ready"
    );
}

/// Reloads on SIGHUP, and writes summed-up refusals every second.
async fn reload_and_flush(file: Option<std::path::PathBuf>, ground: Ground, gateway: Gateway) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = second.tick() => gateway.flush_refusals(),
            _ = hangup.recv() => reload(file.as_deref(), &ground, &gateway),
        }
    }
}

/// A bad file keeps the old configuration.
fn reload(file: Option<&std::path::Path>, ground: &Ground, gateway: &Gateway) {
    let rebuilt = config::load(file)
        .map_err(anyhow::Error::from)
        .and_then(|config| Ok((assemble::engine(&config, ground)?, assemble::manners(&config))));
    match rebuilt {
        Ok((engine, manners)) => {
            gateway.reload(Arc::new(engine), manners);
            tracing::info!("the configuration was reloaded");
        }
        Err(error) => {
            tracing::error!(error = %format!("{error:#}"), "the configuration is wrong: the old one stays");
        }
    }
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
